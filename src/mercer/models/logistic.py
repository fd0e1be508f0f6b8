"""KernelLogistic: logistic and softmax regression over the features of a kernel, its one way."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer import methods
from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is, Number, Whole
from mercer.kernels.defaults import is_precomputed
from mercer.models import sparse_newton
from mercer.models.base import KernelEstimator, all_or_nothing, bytes_of, checked, parted
from mercer.models.linear import Logistic, Problem, Softmax, feature_rows, unshifted
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.newton import Minimum, minimise, rounds_plan
from mercer.models.settings import (
    FittedKernel,
    FittedLift,
    KernelSetting,
    LiftSetting,
    MemoryLimit,
    Seed,
    Via,
    checked_flag,
    class_weights,
    of_largest,
    positive,
    way_of,
    whole,
)
from mercer.models.sparse_newton import SparseProblem, newton_plan
from mercer.models.sparse_rows import SparseRows
from mercer.plans import Plan
from mercer.store import register

WAYS = (
    "auto",
    "features",
    "landmarks",
)  # of features all: rounds of passes over them are the one way
GIVEN = "a Gram matrix has no features, over which a logistic regression is fitted; give a kernel, or use KernelSVC."


@dataclass(frozen=True, eq=False)
class LogisticSettings:
    """The parameters of `KernelLogistic`, checked: `method` is what `via` says, `memory` is in
    bytes.
    """

    kernel: KernelSetting
    lift: LiftSetting
    alpha: float
    method: methods.Method
    intercept: bool
    tol: float
    max_iter: int
    memory: float
    random_state: Seed

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        if is_precomputed(m.kernel):
            raise ValueError(GIVEN)
        alpha, tol, steps = (
            positive(m.alpha, "alpha"),
            positive(m.tol, "tol"),
            whole(m.max_iter, "max_iter"),
        )
        intercept, (_, method) = (
            checked_flag(m.fit_intercept, "fit_intercept"),
            way_of(m.via, m.kernel, m.lift, WAYS),
        )
        return cls(
            m.kernel,
            m.lift,
            alpha,
            method,
            intercept,
            tol,
            steps,
            bytes_of(m.memory_limit),
            m.random_state,
        )


@register("logistic.Solution")
@dataclass(frozen=True, eq=False)
class LogisticSolution:
    """Scores f(x) = phi(x)'coef + intercept: coef (K, D), intercept (K,), K = 1 for two classes."""

    plan: Plan
    phi: FittedMap
    coef: Array
    intercept: Array
    objective: float
    steps: int  # rounds

    must = dict(
        plan=Is("Plan"),
        phi=Is("FittedMap"),
        coef=Floats("K", "D"),
        intercept=Floats("K"),
        objective=Number(),
        steps=Whole(),
    )

    def _laws(self) -> str | None:
        D = self.coef.shape[1]
        return (
            None
            if self.phi.width == D
            else f"has coefficients of {D} features, not of {self.phi.width}"
        )

    def scores(self, X: Table) -> Array:
        """(n, K), in the precision of the rows."""
        return self.phi.linear(X, self.coef.T, self.intercept)


def fit(
    s: LogisticSettings, X: Table, codes: Array, K: int, w: Array, phi: FittedMap
) -> tuple[LogisticSolution, bool]:
    """Rounds of passes over the features of rows of classes `codes`; and whether they reached
    the tolerance.
    """
    two = K == 2
    loss, Y = (
        Logistic() if two else Softmax(),
        2.0 * codes[:, None] - 1 if two else np.eye(K)[codes],
    )
    if (F := phi.sparse_features(X)) is not None:
        sparse = SparseRows.of(F)
        m = sparse_newton.minimise(
            SparseProblem(sparse, loss, Y, w, s.alpha, s.intercept), s.tol, s.max_iter
        )
        coef, b = sparse.spread(m.theta[: sparse.p]), m.theta[sparse.p :].sum(0)
        return _solution(newton_plan(sparse, [m]), phi, coef, b, m)
    rows = feature_rows(phi, X, intercept=s.intercept, limit=s.memory)
    m = minimise(Problem(rows, loss, Y, w, s.alpha, s.intercept), s.tol, s.max_iter)
    coef, b = unshifted(rows, m.theta, intercept=s.intercept)
    return _solution(rounds_plan(phi.lift, rows, [m]), phi, coef, b, m)


def _solution(
    plan: Plan, phi: FittedMap, coef: Array, b: Array, m: Minimum
) -> tuple[LogisticSolution, bool]:
    return LogisticSolution(plan, phi, coef, b, m.value, m.rounds), m.converged


@register("logistic.KernelLogistic")
class KernelLogistic(ClassifierMixin, KernelEstimator):
    """argmin sum_i w_i loss_i + alpha/2 |coef|^2 over the features of a kernel.

    scikit-learn's C is 1/alpha.

    loss = log(1 + exp(-y f)) for two classes, -log softmax(f)_y for more; f = phi(x)'coef +
    intercept, the intercept free. Few rows (8,192, or 512 of more than 512 features) and two
    classes: Newton's rounds; else L-BFGS, preconditioned by the curvature of a fixed sample of
    rows. A round is one pass, a fold of values and gradients; D x D arrays are never needed
    beyond D = 512. Models of losses that are not quadratic do not add, so there is no
    partial_fit, merge or forget.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel, a name as in scikit-learn ("rbf", "linear", "poly", "laplacian"), or None: a
        Gaussian scaled to the data.
    alpha : float, default=1.0
        The penalty, > 0.
    via : str or a value of `mercer.methods`, default="auto"
        "auto" or "features", "landmarks", or a value (`Fourier(1000)`, `Landmarks(500)`,
        `Exact()`).
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

    Attributes
    ----------
    solution_ : LogisticSolution
        The fitted value.
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, D) or (n_classes, D)
    intercept_ : ndarray of shape (1,) or (n_classes,)
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
        lift: LiftSetting = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        memory_limit: MemoryLimit = None,
        random_state: Seed = None,
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
        rows, classes, codes, weight = self._checked(X, y, sample_weight)
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
        w = w * class_weights(self.class_weight, classes, codes, w)[codes]
        found, converged = fit(s, rows, codes, len(classes), w, phi)
        if not converged:
            text = f"stopped after {found.steps} rounds (max_iter={self.max_iter}) before tol was reached; raise max_iter or alpha."
            warnings.warn(f"KernelLogistic {text}", ConvergenceWarning, stacklevel=3)
        self.classes_, self.solution_ = classes, found
        return self

    def _checked(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Table, Array, Array, Array | None]:
        """Rows, the classes, the number of each row's and its weight; a row of weight 0 is as
        absent."""
        rows, y = self._rows_and_targets(X, y, reset=True)
        check_classification_targets(y)
        w = self._weights(sample_weight, rows)
        if w is not None:
            rows, y, w = rows[w > 0], y[w > 0], w[w > 0]
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"y has {len(classes)} class among rows of positive weight; give rows of at least two classes."
            )
        return rows, classes, codes, w

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
    def coef_(self) -> Array:
        """(1, D) for two classes, else (K, D)."""
        return self._solution().coef

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
