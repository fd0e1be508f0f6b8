"""KernelSVC: the exact dual over rows; over features, squared hinge by Newton's rounds, hinge by
dual coordinate descent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array
from mercer.invariants import Is
from mercer.models.base import all_or_nothing, note_columns, part
from mercer.models.naming import Named, scored
from mercer.models.penalties import PenaltyPath, checked_folds
from mercer.models.settings import (
    Gamma,
    KernelSetting,
    LiftSetting,
    MemoryLimit,
    Seed,
    Via,
    of_largest,
)
from mercer.models.svm.base import SupportVectorEstimator
from mercer.models.svm.calibration import probabilities
from mercer.models.svm.fit import fit, fit_partitions, with_probabilities
from mercer.models.svm.machine import DualMachine, WarmStart, chosen_C
from mercer.models.svm.plan import ClassifierSettings, LabelledRows
from mercer.store import register


@register("svm.KernelSVC")
class KernelSVC(ClassifierMixin, SupportVectorEstimator):
    """argmin |f|^2/2 + C sum_i w_i loss(y_i (f(x_i) + b)), f in the RKHS of a kernel.

    Or f linear in features of it. As in scikit-learn's SVC the intercept b is not penalised
    (its LinearSVC penalises it). Exactly: the dual, by blocks with second-order steps and
    shrinking, until its gap is closed; the kernel matrix is never formed beyond 2,048 rows.
    Over features, dense or sparse: the squared hinge by rounds over passes, as in
    `KernelLogistic`; the hinge by dual coordinate descent (Hsieh et al. 2008), and by the
    method of multipliers where sweeps are slow. Models do not add: there is no partial_fit,
    merge or forget.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        A kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of
        the columns, "linear": x'z, "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d
        columns; other names, functions and kernels of scikit-learn as in `KernelRidge`.
    C : float, default=1.0
        The weight of the losses, > 0; `np.inf` lets no row lie inside the margin, and refuses
        rows that the kernel does not separate. All rows of positive weight then count alike.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        loss(t) = max(0, 1 - t), or its square.
    via : str or a value of `mercer.methods`, default="auto"
        "exact", "features", "landmarks", a value, or "auto": exact up to 20,000 rows; beyond,
        where the support vectors that two samples let expect take no more than twice the work
        of features (`plan_` says how many), else features. Sparse rows of which at most a
        quarter is not zero are the features of `Linear` themselves, under "auto" and
        "features": nothing is sketched, and no n x n or D x D array is made.
    gamma, degree, coef0 : float, default=None
        Of a kernel given by name, as in `KernelRidge`.
    lift : Lift or transformer, default=None
        A feature map, instead of a kernel.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    class_weight : None, "balanced" or dict of float by class, default=None
        Weights of the classes, which multiply those of the rows.
    multiclass : {"auto", "ovo", "ovr"}, default="auto"
        "ovo" (every two classes, by votes), "ovr" (each against the rest), or "auto": "ovo"
        where it is exact, "ovr" over features, where there is no other.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of more than two classes: one score a class, or as in scikit-learn one a pair of them,
        in the order (0, 1), (0, 2), ..., (1, 2), ..., the first of the two where positive.
    break_ties : bool, default=True
        Whether `predict` gives classes with equally many votes by how clearly they won;
        otherwise, as scikit-learn by default, the first of them.
    probability : bool, default=False
        Whether `predict_proba` is there: a sigmoid for every score, fitted on five folds that
        their models did not see.
    warm_start : bool, default=False
        Whether a next exact `fit` with the same y and another C starts from the duals of the
        last.
    tol : float, default=1e-3
        Of the optimality conditions, as in scikit-learn, where the duality gap is at most tol
        of the objective as well (else they are met more closely, until it is); a gap of tol/100
        ends it in any case, and `plan_` says which did. Over features: a gap of tol/10 (squared
        hinge: as `KernelLogistic`, with tol/10).
    max_iter : int, default=1000
        Of rounds, each of which solves one block; over features of rounds, or of sweeps over
        the rows, for each class.
    memory_limit : float or str, default=None
        Of the kernel rows and blocks, or the features, kept in memory, as bytes or "4GB". Not
        counted: X and its support vectors, some vectors of n, a tile a thread, blocks of 256
        rows, and the whole kernel matrix up to 2,048 rows (34 MB).
    random_state : int, RandomState, Generator or None, default=None
        The seed of features and landmarks.
    cv : int, splitter or iterable of (training, test) positions, default=None
        C is then the best of `Cs` by the accuracy on folds of models of the others, one C after
        another, each from where the last ended. A number of folds is fixed by a hash of each
        row, so that equal rows are in one.
    Cs : array-like of float, default=None
        The C to choose from with `cv`; None is 9 from 0.01 to 100 times C.
    device : str, default="cpu"
        "cuda" (or "cuda:1") keeps the gradients of the exact dual by products on that GPU,
        where there are more than 2,048 rows, and predicts there; it needs torch and triton.
        "auto" takes a GPU where there is one. `plan_` says where it was.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    machine_ : DualMachine or FeatureMachine
        The fitted value.
    classes_ : ndarray of shape (n_classes,)
    intercept_ : ndarray
        One a score.
    C_ : float
        The C given, or chosen.
    path_ : PenaltyPath
        With `cv`: the accuracies of every C and fold.
    n_iter_ : int
    objective_ : float
    gap_ : float
        Hinge or exact: relative to the objective; exact: with what rounding may add.
    kernel_ : Kernel
    plan_ : Plan
    support_ : ndarray of shape (m,)
        Exact, as what follows: the places of the support vectors among the rows.
    support_vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (1, m), (K, m), or of pairs (K - 1, m) as in scikit-learn
    n_support_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, D) or (K, D)
        Over features; with a linear kernel also exact, of the columns, a row of every score (as
        in scikit-learn of every pair of classes, the first where positive).
    lift_ : Lift
        Over features.

    Examples
    --------
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> m = KernelSVC(C=10.0).fit(X, np.abs(X[:, 0]) < 1)
    >>> m.predict([[0.0], [2.0]]), bool(m.gap_ <= 1e-3), bool(len(m.support_) < 30)
    (array([ True, False]), True, True)
    """

    classes_: Array

    must = dict(machine_=Is("DualMachine", "FeatureMachine"))

    def _laws(self) -> str | None:
        m, K = self.machine_, len(self.classes_)
        said = (
            len(m.counts) if isinstance(m, DualMachine) else 2 if len(m.coef) == 1 else len(m.coef)
        )
        if said != K or K < 2:
            return f"has a machine of {said} classes for {K} classes"
        if m.last is not None and m.last.codes.max(initial=0) >= K:
            return "starts at classes that are not there"
        return m.misfit(self.n_features_in_)

    def __init__(
        self,
        kernel: KernelSetting = None,
        C: float = 1.0,
        loss: str = "hinge",
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        degree: int | None = None,
        coef0: float | None = None,
        lift: LiftSetting = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        multiclass: str = "auto",
        decision_function_shape: str = "ovr",
        break_ties: bool = True,
        probability: bool = False,
        warm_start: bool = False,
        tol: float = 1e-3,
        max_iter: int = 1000,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
        cv: Any = None,
        Cs: Any = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.loss = loss
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.probability = probability
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.cv = cv
        self.Cs = Cs
        self.device = device
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual over rows X (n, d) with labels y (n,), or fit the map, then the rules.

        Of two classes there is one rule. Weights of rows are (n,), or none.
        """
        s = ClassifierSettings.of(self)
        every, y = self._rows_and_targets(X, y, reset=True)
        if not (whole := y.dtype.kind in "biu"):  # a look that takes a tenth of a fit of few rows
            check_classification_targets(y)
        rows = LabelledRows.of(every, y, self._weights(sample_weight, every), gram=s.precomputed)
        if whole and 2 * len(rows.classes) > len(y):
            check_classification_targets(y)  # warns of so many classes
        if (folds := checked_folds(self.cv, every, y)) is not None:
            s = replace(s, folds=folds.among(rows.kept))
        machine = fit(s, rows, self._last)
        found = with_probabilities(s, rows, machine) if s.probability else machine
        self.classes_, self.machine_ = rows.classes, found
        return self

    @all_or_nothing
    def _fit_dask(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """The squared hinge over features of dask collections: rounds whose slopes add."""
        s = ClassifierSettings.of(self)
        self.machine_, self.classes_ = fit_partitions(s, self.cv, X, y, sample_weight)
        note_columns(self, X)
        return self

    @property
    def _last(self) -> WarmStart | None:
        """Where the last fit ended, and a next may start."""
        return self.machine_.last if self.__sklearn_is_fitted__() else None

    # what is known
    @property
    def multiclass_(self) -> str:
        """ "ovo" or "ovr"; AttributeError over features, which have no other than "ovr"."""
        return self._dual().multiclass

    @property
    def C_(self) -> float:
        """The C given, or chosen."""
        return chosen_C(self._machine(), float(self.C))

    @property
    def path_(self) -> PenaltyPath:
        """The accuracies of every C and fold; AttributeError without cv."""
        return part(self._machine().summary, "path", "path_ is there with cv.")

    def coef_by_name(self, names: Any = None, top: int | None = None) -> Named:
        """The nonzero coefficients by name, signed, the largest first: those of the second of two
        classes, or of each, or of each pair where it is pairs that have scores.

        names : the D names, a transformer that has them (`NGrams`, `HashedFeatures`: of
        hashed columns, by the sign of the most frequent name), a mapping or
        function from places, or None for those of the lift; top : how many of each, or all
        """
        pairs = self._machine().of_pairs
        return self._strongest(scored(self.classes_, pairs=pairs), names, top)

    @property
    def sigmoid_(self) -> tuple[Array, Array]:
        """(a, b), one of each a score."""
        if (found := self._machine().sigmoid) is None:
            raise AttributeError("sigmoid_ is there with probability=True.")
        return found

    # asking
    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, the second where positive, else (n, K).

        One score a class, or its votes among pairs; or the scores of all pairs.
        """
        machine, shape = self._machine(), self.decision_function_shape
        rows, gpu = self._rows(X, reset=False), self._gpu
        if shape == "ovr" or len(self.classes_) == 2:
            return machine.decide(rows, gpu)
        if not isinstance(machine, DualMachine) or not machine.of_pairs:
            raise ValueError(
                f"decision_function_shape={shape!r} needs scores of pairs of classes; fit with multiclass='ovo'."
            )
        return machine.by_pair(rows, gpu)

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (n,)."""
        f = self._class_scores(X)
        ties = (
            self._machine().of_pairs and not self.break_ties
        )  # votes are what is whole of a score
        return of_largest(np.rint(f) if ties else f, self.classes_)

    def _class_scores(self, X: Any) -> Array:
        """(n,), or (n, K), whatever the shape asked for."""
        machine = self._machine()
        return machine.decide(self._rows(X, reset=False), self._gpu)

    @available_if(lambda self: self.probability)
    def predict_proba(self, X: Any) -> Array:
        """The probability of every class, (n, K)."""
        check_is_fitted(self, "sigmoid_")
        return probabilities(self._class_scores(X), *self.sigmoid_)

    @available_if(lambda self: self.probability)
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`, (n, K)."""
        return np.log(self.predict_proba(X))
