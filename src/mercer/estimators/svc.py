"""KernelSVC: the exact dual over rows; over features, squared hinge by Newton's rounds, hinge by dual coordinate descent."""
from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import VIAS, all_or_nothing
from mercer.estimators.logistic import FeaturesClassifier
from mercer.estimators.svm_classifier import EXACT_ROWS, ExactClassifier
from mercer.estimators.svm_probability import calibrated, enough_rows
from mercer.inputs import Array
from mercer.kernels import Kernel
from mercer.learners.hinge import Dual, Gapped, SquaredHinge
from mercer.learners.rounds import minimise
from mercer.learners.smo_calibrate import probabilities
from mercer.learners.smooth import Problem, Rows
from mercer.methods import Method
from mercer.models.settings import positive, whole
from mercer.plan import Plan
from mercer.store import register

LOSSES = ("hinge", "squared_hinge")
EXACT = ("support_", "support_vectors_", "dual_coef_", "n_support_", "multiclass_", "compression_")
FEATURES = ("coef_", "lift_", "n_features_lifted_")
EITHER = ("sigmoid_", "gap_")


@register("svm.KernelSVC")
class KernelSVC(FeaturesClassifier, ExactClassifier):
    """argmin |f|^2/2 + C sum_i w_i loss(y_i (f(x_i) + b)), f in the RKHS of a kernel, or linear in features of it.

    loss(t) = max(0, 1 - t) ("hinge") or its square ("squared_hinge"). As in scikit-learn's SVC the intercept b is not penalised
    (its LinearSVC penalises it). Exactly: the dual, by blocks with second-order steps and shrinking, until its gap is closed;
    the kernel matrix is never formed beyond 2,048 rows. Over features: the squared hinge by rounds over passes, as in
    `KernelLogistic`; the hinge by dual coordinate descent (Hsieh et al. 2008), and by the method of multipliers where sweeps
    are slow. Models do not add: there is no partial_fit, merge or forget.

    Parameters
    ----------
    kernel : a kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of the columns, "linear": x'z,
        "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d columns.
    C : the weight of the losses, > 0.
    via : "exact", "features", "landmarks", a value of `mercer.methods`, or "auto": exact up to 20,000 rows, features beyond.
    lift : a feature map, instead of a kernel.
    fit_intercept : whether there is a bias b.
    class_weight : None, "balanced", or a dict of weights by class, which multiply those of the rows.
    multiclass : "ovo" (every two classes, by votes), "ovr" (each against the rest), or "auto": "ovo" where it is exact, "ovr" over
        features, where there is no other.
    probability : whether `predict_proba` is there: a sigmoid for every score, fitted on five folds that their models did not see.
    warm_start : whether a next exact `fit` with the same y and another C starts from the duals of the last.
    tol : of the optimality conditions, as in scikit-learn, where the duality gap is at most tol of the objective as well (else
        they are met more closely, until it is); a gap of tol/100 ends it in any case, and `plan_` says which did. Over
        features: a gap of tol/10 (squared hinge: as `KernelLogistic`, with tol/10).
    max_iter : of rounds, each of which solves one block; over features of rounds, or of sweeps over the rows, for each class.
    memory_limit : of the kernel rows and blocks, or the features, kept in memory, as bytes or "4GB". Not counted: X and its support
        vectors, some vectors of n, a tile a thread, blocks of 256 rows, and the whole kernel matrix up to 2,048 rows (34 MB).

    Attributes: `classes_`, `intercept_`, `n_iter_`, `objective_`, `gap_` (hinge or exact: relative;
    exact: with what rounding may add), `kernel_`,
    `plan_`; exact: `support_`, `support_vectors_`, `dual_coef_` (1, m), (K, m) or of pairs (K - 1, m) as in scikit-learn,
    `n_support_`; over features: `coef_` (1 or K, D), `lift_`.

    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> m = KernelSVC(C=10.0).fit(X, np.abs(X[:, 0]) < 1)
    >>> m.predict([[0.0], [2.0]]), bool(m.gap_ <= 1e-3), bool(len(m.support_) < 30)
    (array([ True, False]), True, True)
    """

    kernel_: Any

    def __init__(
        self, kernel: Any = None, C: float = 1.0, loss: str = "hinge", via: Any = "auto", *, lift: Any = None,
        fit_intercept: bool = True, class_weight: Any = None, multiclass: str = "auto", probability: bool = False,
        warm_start: bool = False, tol: float = 1e-3, max_iter: int = 1000, memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.loss = loss
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.probability = probability
        self.warm_start = warm_start
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual over the rows, or fit the map and then one rule for two classes, or one a class against the rest."""
        if self.loss not in LOSSES:
            raise ValueError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}.")
        C, tol, most = positive(self.C, "C"), positive(self.tol, "tol"), whole(self.max_iter, "max_iter")
        exact = self._exactly(X)
        for name in (*EXACT, *FEATURES, *EITHER, *(() if exact and self.warm_start else ("_last",))):
            self.__dict__.pop(name, None)  # of a former fit that went another way
        rows, y = (self._fit_exact if exact else self._fit_features)(X, y, sample_weight, C, tol, most)
        if self.probability:
            self.sigmoid_ = calibrated(self, rows, y, sample_weight)
        return self

    def _exactly(self, X: Any) -> bool:
        """Whether the dual over rows is asked for, or chosen."""
        if self.multiclass not in ("auto", "ovo", "ovr"):
            raise ValueError(f"multiclass must be 'auto', 'ovo' or 'ovr', got {self.multiclass!r}.")
        named = isinstance(self.via, str) and self.via in (*VIAS, "exact")
        if not (named or isinstance(self.via, Method)):
            raise ValueError(f"via must be one of exact, {', '.join(VIAS)}, or a value of mercer.methods, got {self.via!r}.")
        exact = self.via == "exact" or (self.via == "auto" and self.lift is None and (self._rows_only() or length(X) <= EXACT_ROWS))
        if self.lift is not None and (exact or self.kernel is not None):
            raise ValueError("give a kernel or a lift, not both; a lift goes with features, not with via='exact'.")
        if not exact and (self._rows_only() or self.multiclass == "ovo"):
            raise ValueError("kernel='precomputed', kernels of items and multiclass='ovo' need via='exact'.")
        return exact

    def _rows_only(self) -> bool:
        return self._pairwise or (isinstance(self.kernel, Kernel) and self.kernel.takes_items)

    def decision_function(self, X: Any) -> Array:
        """(n,) for two classes, the second where positive, else (n, K): one score a class, or its votes among pairs."""
        check_is_fitted(self, "intercept_")
        return self._decide(X) if hasattr(self, "dual_coef_") else FeaturesClassifier.decision_function(self, X)

    @available_if(lambda self: self.probability)
    def predict_proba(self, X: Any) -> Array:
        """The probability of every class, (n, K)."""
        check_is_fitted(self, "sigmoid_")
        return probabilities(self.decision_function(X), *self.sigmoid_)

    @available_if(lambda self: self.probability)
    def predict_log_proba(self, X: Any) -> Array:
        """Its logarithm."""
        return np.log(self.predict_proba(X))

    # over features
    def _fit_features(self, X: Any, y: Any, sample_weight: Any, C: float, tol: float, most: int) -> tuple[Any, Any]:
        n, (checked, codes, w) = length(X), self._checked(X, y, sample_weight)
        if self.probability:
            enough_rows(codes)
        rows, K = self._rows(checked), len(self.classes_)
        signs = [np.where(codes == k, 1.0, -1.0) for k in ([1] if K == 2 else range(K))]
        solve = self._hinge if self.loss == "hinge" else self._squared
        solve(rows, signs, C * w, 0.1 * tol, most)
        if self.via == "auto" and self.lift is None:
            self.plan_ = replace(self.plan_, rejected=(("exact dual", f"{n:,} rows are more than {EXACT_ROWS:,}"),))
        return X, y

    def _squared(self, rows: Rows, signs: list[Array], c: Array, tol: float, most: int) -> None:
        found = [minimise(Problem(rows, SquaredHinge(), y[:, None], c, 1.0, self.fit_intercept), tol, most) for y in signs]
        self._keep_minima(rows, found)
        self.plan_ = self._rounds_plan(rows, found)

    def _hinge(self, rows: Rows, signs: list[Array], c: Array, tol: float, most: int) -> None:
        found = [Dual(rows, y, c, self.fit_intercept).solve(tol, most) for y in signs]
        self._keep_minima(rows, found)
        self.gap_ = max(m.gap for m in found)
        self.plan_ = self._dual_plan(rows, found)

    def _keep_minima(self, rows: Rows, found: list[Any]) -> None:
        self._keep(rows, np.concatenate([m.theta for m in found], axis=1))
        self.n_iter_, self.objective_ = max(m.rounds for m in found), sum(m.value for m in found)
        stale = any(getattr(m, "stale", False) for m in found)
        rounded = "what is left is rounding: give X in float64, raise tol, or lower C"
        self._warn(all(m.converged for m in found), rounded if stale else "raise max_iter or tol, or lower C")

    def _dual_plan(self, rows: Rows, found: list[Gapped]) -> Plan:
        where = "kept in memory" if rows.kept else "computed again at every sweep, as they exceed memory_limit"
        why = f"{rows.D:,} features, {where}; the dual of the hinge, until its gap is {self.gap_:.1e}"
        settings = {
            "lift": type(self.lift_).__name__, "n_features": rows.D, "rows": rows.n, "sweeps": sum(m.rounds for m in found),
            "duality_gap": self.gap_,
        }  # fmt: skip
        passes = sum(m.passes for m in found)
        held = float(rows.dtype.itemsize) * rows.D * (rows.n if rows.kept else 0)
        return Plan("dual coordinate descent", why, settings, bytes=held, flops=4.0 * rows.n * rows.D * passes, passes=passes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse() and not self._pairwise
        return tags


def length(X: Any) -> int:
    """The number of rows of whatever came, before it is checked."""
    shape = getattr(X, "shape", None)
    return int(shape[0]) if shape else len(X) if hasattr(X, "__len__") else 0
