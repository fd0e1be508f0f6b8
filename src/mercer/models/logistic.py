"""KernelLogistic: logistic and softmax regression over the features of a kernel, its one way."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.models.base import (
    KernelEstimator,
    all_or_nothing,
    bytes_of,
    checked,
    note_columns,
    part,
    parted,
)
from mercer.models.folds import Folds
from mercer.models.logistic_fit import (
    LogisticSettings,
    LogisticSolution,
    LossWeights,
    fit,
    fit_partitions,
)
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.naming import Named, scored, strongest
from mercer.models.penalties import PenaltyPath, checked_folds
from mercer.models.settings import (
    FittedKernel,
    FittedLift,
    Gamma,
    KernelSetting,
    LiftSetting,
    MemoryLimit,
    Seed,
    Via,
    of_largest,
)
from mercer.plans import Plan
from mercer.store import register


@register("logistic.KernelLogistic")
class KernelLogistic(ClassifierMixin, KernelEstimator):
    """argmin sum_i w_i loss_i + alpha/2 |coef|^2 over the features of a kernel.

    scikit-learn's C is 1/alpha.

    Sparse rows of which at most a quarter is not zero are the features of `Linear` themselves:
    nothing is sketched, and Newton's rounds go by conjugate gradients over the nonzeros.

    loss = log(1 + exp(-y f)) for two classes, -log softmax(f)_y for more; f = phi(x)'coef +
    intercept, the intercept free. Few rows (8,192, or 512 of more than 512 features) and two
    classes: Newton's rounds; else L-BFGS, preconditioned by the curvature of a fixed sample of
    rows. A round is one pass, a fold of values and gradients; D x D arrays are never needed
    beyond D = 512. Models of losses that are not quadratic do not add, so there is no
    partial_fit, merge or forget.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        A kernel, a name or function as in `KernelRidge`, or None: a Gaussian scaled to the
        data.
    alpha : float, default=1.0
        The penalty, > 0.
    via : str or a value of `mercer.methods`, default="auto"
        "auto" or "features", "landmarks", or a value (`Fourier(1000)`, `Landmarks(500)`,
        `Exact()`).
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    lift : Lift or transformer, default=None
        A feature map, instead of a kernel.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    class_weight : None, "balanced" or dict of float by class, default=None
        Weights of the classes, which multiply those of the rows.
    tol : float, default=1e-6
        The last step is the one that promises to lower the objective by less than tol^2 of it
        (float32: 1e-7 of it).
    max_iter : int, default=100
        Rounds at most.
    memory_limit : float or str, default=None
        Of the features kept in memory, as bytes or "4GB"; beyond it they are computed again at
        every pass.
    random_state : int, RandomState, Generator or None, default=None
        The seed of features and landmarks.
    cv : int, splitter or iterable of (training, test) positions, default=None
        alpha is then the best of `alphas` by the likelihood of folds in models of the others,
        one penalty after another, each from where the last ended. A number of folds is fixed by
        a hash of each row, so that equal rows are in one.
    alphas : array-like of float, default=None
        The penalties to choose from with `cv`; None is 9 from 0.01 to 100 times alpha.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    solution_ : LogisticSolution
        The fitted value.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, D) or (n_classes, D)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    alpha_ : float
        The penalty given, or chosen.
    path_ : PenaltyPath
        With `cv`: the mean log-likelihoods of every penalty and fold.
    n_iter_ : int
    objective_ : float
    lift_ : Lift
    kernel_ : Kernel
    plan_ : Plan

    Examples
    --------
    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> m = KernelLogistic(alpha=1e-2, random_state=0).fit(X, np.abs(X[:, 0]) < 1)
    >>> m.predict([[0.0], [2.0]]), bool(m.predict_proba([[0.0]])[0, 1] > 0.95)
    (array([ True, False]), True)
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        alpha: float = 1.0,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        lift: LiftSetting = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
        cv: Any = None,
        alphas: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.alpha = alpha
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.cv = cv
        self.alphas = alphas
        self.verbose = verbose

    solution_: LogisticSolution
    classes_: Array

    must = dict(solution_=Is("LogisticSolution"))

    def _laws(self) -> str | None:
        K, k, reads = len(self.classes_), len(self.solution_.coef), self.solution_.phi.reads
        if k != (K if K > 2 else 1) or K < 2:
            return f"has coefficients of {k} scores for {K} classes"
        return (
            None
            if reads in (None, self.n_features_in_)
            else f"has coefficients over {reads} columns, which are not those that it takes"
        )

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map of rows X (n, d), then rounds over its features; y and weights are (n,)."""
        s = LogisticSettings.of(self)
        rows, classes, codes, weight, folds = self._checked(X, y, sample_weight)
        s = s if folds is None else replace(s, folds=folds)
        phi = fitted_map(
            s.kernel,
            s.lift,
            s.method,
            rows,
            weight,
            seed=s.random_state,
            memory=s.memory,
            y=codes,
            wide=True,
        )
        w = np.ones(len(codes)) if weight is None else weight
        weights = LossWeights(w, self.class_weight, classes, codes)
        found, converged = fit(s, rows, codes, len(classes), weights, phi)
        if not converged:
            self._warn(found.steps)
        self.classes_, self.solution_ = classes, found
        return self

    @all_or_nothing
    def _fit_dask(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """The same of dask collections: rounds whose slopes add over partitions."""
        s = LogisticSettings.of(self)
        found, classes, converged = fit_partitions(
            s, self.class_weight, self.cv, X, y, sample_weight
        )
        note_columns(self, X)
        if not converged:
            self._warn(found.steps)
        self.classes_, self.solution_ = classes, found
        return self

    def _warn(self, steps: int) -> None:
        text = f"stopped after {steps} rounds (max_iter={self.max_iter}) before tol was reached; raise max_iter or alpha."
        warnings.warn(f"KernelLogistic {text}", ConvergenceWarning, stacklevel=4)

    def _checked(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Table, Array, Array, Array | None, Folds | None]:
        """Rows, the classes, the number of each row's, its weight and its fold; a row of weight 0 is
        as absent."""
        rows, y = self._rows_and_targets(X, y, reset=True)
        check_classification_targets(y)
        w = self._weights(sample_weight, rows)
        folds = checked_folds(self.cv, rows, y)
        if w is not None:
            on = np.flatnonzero(w > 0)
            rows, y, w = rows[on], y[on], w[on]
            folds = None if folds is None else folds.among(on)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has {len(classes)} class among rows of positive weight; give rows of at least two classes."
            )
        return rows, classes, codes, w, folds

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "solution_" in vars(self)

    def _solution(self) -> LogisticSolution:
        check_is_fitted(self)
        return self.solution_

    @property
    def plan_(self) -> Plan:
        return self._solution().plan

    @property
    def alpha_(self) -> float:
        """The penalty given, or chosen."""
        path = self._solution().path
        return float(self.alpha) if path is None else path.best

    @property
    def path_(self) -> PenaltyPath:
        """The mean log-likelihoods of every penalty and fold; AttributeError without cv."""
        return part(self._solution(), "path", "path_ is there with cv.")

    @property
    def coef_(self) -> Array:
        """(1, D) for two classes, else (K, D)."""
        return self._solution().coef

    def coef_by_name(self, names: Any = None, top: int | None = None) -> Named:
        """The nonzero coefficients by name, signed, the largest first: those of the second of two classes, or of each.

        names : the D names, a transformer that has them (`NGrams`, `HashedFeatures`: of
        hashed columns, by the sign of the most frequent name), a mapping or
        function from places, or None for those of the lift; top : how many of each, or all
        """
        return strongest(self.coef_, scored(self.classes_), self.lift_, names, top)

    @property
    def intercept_(self) -> Array:
        return self._solution().intercept

    @property
    def objective_(self) -> float:
        return self._solution().objective

    @property
    def n_iter_(self) -> int:
        return self._solution().steps

    @property
    def lift_(self) -> FittedLift:
        return self._solution().phi.lift

    @property
    def kernel_(self) -> FittedKernel:
        return self._solution().phi.kernel

    @property
    def n_features_lifted_(self) -> int:
        """D"""
        return self._solution().phi.width

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Of a file in which the parts of the solution were attributes."""
        names = ("coef_", "intercept_", "objective_", "n_iter_")
        rest, old = parted(state, *names, "plan_", "lift_", "kernel_", "n_features_lifted_")
        if old["plan_"] is None:
            return rest
        phi = FittedMap.of_file(old["lift_"], bytes_of(rest["memory_limit"]))
        return {
            **rest,
            "solution_": checked(
                LogisticSolution(old["plan_"], phi, *(old[name] for name in names))
            ),
        }

    # asking
    def decision_function(self, X: Any) -> Array:
        """phi(x)'coef + intercept: (n,), positive for the second of two classes, else (n, K)."""
        f = self._solution().scores(self._rows(X, reset=False))
        return f[:, 0] if len(self.classes_) == 2 else f

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (n,)."""
        return of_largest(self.decision_function(X), self.classes_)

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class, (n, K)."""
        f = self.decision_function(X)
        return np.stack([expit(-f), expit(f)], axis=1) if f.ndim == 1 else softmax(f, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of `predict_proba`, (n, K), without underflow."""
        f = self.decision_function(X)
        return (
            np.stack([log_expit(-f), log_expit(f)], axis=1)
            if f.ndim == 1
            else log_softmax(f, axis=1)
        )
