"""KernelLogistic over features, and what classifiers over features share."""
from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import OverFeatures, all_or_nothing, bytes_of
from mercer.inputs import Array, Matrix
from mercer.invariants import Floats
from mercer.models.linear import Logistic, Problem, Rows, Softmax, moved, offset
from mercer.models.newton import Minimum, minimise
from mercer.models.settings import class_weights, positive, whole
from mercer.plan import Plan
from mercer.store import register


class FeaturesClassifier(ClassifierMixin, OverFeatures):
    """A classifier by scores that are linear in features: f(x) = phi(x)'coef + intercept, one score a class, or one for two."""

    fit_intercept: bool
    class_weight: Any
    max_iter: int
    n_iter_: int
    coef_: Array
    intercept_: Array

    must = dict(coef_=Floats("k", "n_features_lifted_"), intercept_=Floats("k"))

    def _laws(self) -> str | None:
        K, k = len(self.classes_), len(self.coef_) if hasattr(self, "coef_") else None
        return None if k in (None, K if K > 2 else 1) and K > 1 else f"has coefficients of {k} scores for {K} classes"

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, Array, Array]:
        """Rows, the number of each row's class and its weight; a row of weight 0 is as absent."""
        X, y = self._check_Xy(X, y, reset=True)
        check_classification_targets(y)
        w = self._weights(sample_weight, X)
        if w is not None:
            X, y, w = X[w > 0], y[w > 0], w[w > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has {len(self.classes_)} class among rows of positive weight; give rows of at least two classes.")
        self._fit_lift(X, w)
        w = np.ones(len(codes)) if w is None else w
        return X, codes, w * class_weights(self.class_weight, self.classes_, codes, w)[codes]

    def _rows(self, X: Matrix) -> Rows:
        """The features of X: kept as one array where they fit `memory_limit`, else computed again at every pass."""
        head = self._features(X[:1024])
        shift = offset(head) if self.fit_intercept else None
        n, D, limit = X.shape[0], self.n_features_lifted_, bytes_of(self.memory_limit)
        if float(n) * D * head.dtype.itemsize <= limit:
            kept = moved(self._features(X), shift)
            return Rows(n, D, kept.dtype, shift, True, lambda: [(slice(0, n), kept)], lambda i: kept[i], limit)

        def pick(i: Array) -> Array:
            return moved(self._features(X[i]), shift)

        return Rows(n, D, head.dtype, shift, False, lambda: ((rows, moved(F, shift)) for rows, F in self._lifted(X)), pick, limit)

    def _keep(self, rows: Rows, theta: Array) -> None:
        """coef_ (K, D) and intercept_ (K,) of features that are not shifted."""
        coef = theta[: rows.D]
        b = theta[rows.D] if self.fit_intercept else np.zeros(theta.shape[1])
        self.coef_, self.intercept_ = coef.T.copy(), b if rows.shift is None else b - rows.shift @ coef

    def decision_function(self, X: Any) -> Array:
        """phi(x)'coef + intercept: (n,) for two classes, the second where positive, else (n, K)."""
        check_is_fitted(self, "coef_")
        f = self._linear(self._check_X(X, reset=False), self.coef_.T, self.intercept_)
        return f[:, 0] if len(self.classes_) == 2 else f

    def predict(self, X: Any) -> Array:
        """The class of the largest score."""
        f = self.decision_function(X)
        return self.classes_[(f > 0).astype(int) if f.ndim == 1 else f.argmax(1)]

    def _warn(self, converged: bool, remedy: str) -> None:
        if not converged:
            text = f"stopped after {self.n_iter_} rounds (max_iter={self.max_iter}) before tol was reached"
            warnings.warn(f"{type(self).__name__} {text}; {remedy}.", ConvergenceWarning, stacklevel=3)

    def _rounds_plan(self, rows: Rows, found: list[Minimum]) -> Plan:
        """How the rounds of `minimise` went."""
        passes, r = sum(m.passes for m in found), found[0].rows
        way = "newton" if found[0].exact else "preconditioned quasi-newton"
        curvature = "all rows at every round" if found[0].exact else f"{r:,} sampled rows, preconditioning L-BFGS; no D x D array"
        where = "kept in memory" if rows.kept else "computed again at every pass, as they exceed memory_limit"
        settings = {"lift": type(self.lift_).__name__, "n_features": rows.D, "rows": rows.n, "rounds": sum(m.rounds for m in found)}
        held = float(rows.dtype.itemsize) * rows.D * (r + (rows.n if rows.kept else 0))
        work = 4.0 * rows.n * rows.D * found[0].theta.shape[1] * passes
        return Plan(way, f"{rows.D:,} features, {where}; curvature of {curvature}", settings, bytes=held, flops=work, passes=passes)


@register("logistic.KernelLogistic")
class KernelLogistic(FeaturesClassifier):
    """argmin sum_i w_i loss_i + alpha/2 |coef|^2 over the features of a kernel; scikit-learn's C is 1/alpha.

    loss = log(1 + exp(-y f)) for two classes, -log softmax(f)_y for more; f = phi(x)'coef + intercept, the intercept free.
    Few rows (8,192, or 512 of more than 512 features) and two classes: Newton's rounds; else L-BFGS, preconditioned by the
    curvature of a fixed sample of rows. A round is one pass, a fold of values and gradients; D x D arrays are never
    needed beyond D = 512. Models of losses that are not quadratic do not add, so there is no partial_fit, merge or forget.

    Parameters
    ----------
    kernel : a kernel, a name as in scikit-learn ("rbf", "linear", "poly", "laplacian"), or None: a Gaussian scaled to the data.
    alpha : the penalty, > 0.
    via : "auto" or "features", "landmarks", or a value of `mercer.methods` (`Fourier(1000)`, `Landmarks(500)`, `Exact()`).
    lift : a feature map, instead of a kernel.
    class_weight : None, "balanced", or a dict of weights by class, which multiply those of the rows.
    tol : the last step is the one that promises to lower the objective by less than tol^2 of it (float32: 1e-7 of it).
    memory_limit : of the features kept in memory, as bytes or "4GB"; beyond it they are computed again at every pass.

    Attributes: `classes_`, `coef_` (1 or K, D), `intercept_`, `n_iter_`, `objective_`, `lift_`, `kernel_`, `plan_`.

    >>> X = np.linspace(-3, 3, 200)[:, None]
    >>> m = KernelLogistic(alpha=1e-2, random_state=0).fit(X, np.abs(X[:, 0]) < 1)
    >>> m.predict([[0.0], [2.0]]), bool(m.predict_proba([[0.0]])[0, 1] > 0.95)
    (array([ True, False]), True)
    """

    def __init__(
        self, kernel: Any = None, alpha: float = 1.0, via: Any = "auto", *, lift: Any = None, fit_intercept: bool = True,
        class_weight: Any = None, tol: float = 1e-6, max_iter: int = 100, memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.alpha = alpha
        self.via = via
        self.lift = lift
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the map, then rounds of passes over its features."""
        alpha = positive(self.alpha, "alpha")
        X, codes, w = self._checked(X, y, sample_weight)
        two, rows = len(self.classes_) == 2, self._rows(X)
        Y = 2.0 * codes[:, None] - 1 if two else np.eye(len(self.classes_))[codes]
        p = Problem(rows, Logistic() if two else Softmax(), Y, w, alpha, self.fit_intercept)
        m = minimise(p, positive(self.tol, "tol"), whole(self.max_iter, "max_iter"))
        self._keep(rows, m.theta)
        self.n_iter_, self.objective_, self.plan_ = m.rounds, m.value, self._rounds_plan(rows, [m])
        self._warn(m.converged, "raise max_iter or alpha")
        return self

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class, (n, K)."""
        f = self.decision_function(X)
        return np.stack([expit(-f), expit(f)], axis=1) if f.ndim == 1 else softmax(f, axis=1)

    def predict_log_proba(self, X: Any) -> Array:
        """Its logarithm, without underflow."""
        f = self.decision_function(X)
        return np.stack([log_expit(-f), log_expit(f)], axis=1) if f.ndim == 1 else log_softmax(f, axis=1)
