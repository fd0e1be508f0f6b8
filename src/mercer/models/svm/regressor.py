"""KernelSVR: the epsilon-insensitive loss by its exact dual, its one way."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from mercer import methods
from mercer.inputs import Array
from mercer.models.base import all_or_nothing, bytes_of
from mercer.models.expansion import scaled_kernel_at
from mercer.models.settings import (
    KernelSetting,
    MemoryLimit,
    Via,
    checked_flag,
    number,
    positive,
    whole,
)
from mercer.models.svm.base import SupportVectorEstimator
from mercer.models.svm.dual import intercept_of, operator_of, summary_of, support_of, warn_if_open
from mercer.models.svm.machine import DualMachine
from mercer.models.svm.plan import EXACT_ONLY, with_positive_weight
from mercer.models.svm.problem import DualProblem
from mercer.models.svm.solver import solve
from mercer.store import register

REMEDIES = "lower C", "centre and scale the columns of X, or lower C"


@register("svm.KernelSVR")
class KernelSVR(RegressorMixin, SupportVectorEstimator):
    """argmin |f|^2/2 + C sum_i w_i max(0, |y_i - f(x_i) - b| - epsilon), f in an RKHS, b free.

    The dual has one variable a row, b_i = alpha_i - alpha*_i in [-C w_i, C w_i], with a kink at
    zero; it is solved by blocks with second-order steps and shrinking. The kernel matrix is
    never formed beyond 2,048 rows.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of
        the columns, "linear": x'z, "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d
        columns.
    C : float, default=1.0
        The weight of the losses, > 0.
    epsilon : float, default=0.1
        The width of the tube without loss, >= 0.
    via : {"auto", "exact"}, default="auto"
        The dual over the rows.
    fit_intercept : bool, default=True
        Whether there is a bias b.
    tol : float, default=1e-3
        Of the optimality conditions, in the unit of y, or of its standard deviation where that
        is below 1; they are met more closely until the duality gap is at most tol of the
        objective. A gap of tol/100 ends it in any case; `plan_` says which did.
    max_iter : int, default=1000
        Of rounds, each of which solves one block.
    memory_limit : float or str, default=None
        Of the kernel rows and blocks that are kept, as bytes or "4GB". Not counted: X and its
        support vectors, some vectors of n, a tile a thread, blocks of 256 rows, and the whole
        kernel matrix up to 2,048 rows (34 MB).

    Attributes
    ----------
    machine_ : DualMachine
        The fitted value.
    support_ : ndarray of shape (m,)
        The places of the support vectors among the rows.
    support_vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (1, m)
    n_support_ : ndarray of shape (1,)
    intercept_ : ndarray of shape (1,)
    gap_ : float
        Relative to the objective, with what rounding may add.
    objective_ : float
        Of the dual.
    n_iter_ : int
    kernel_ : Kernel
    plan_ : Plan

    Examples
    --------
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> m = KernelSVR(C=100.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(m.predict([[1.0]])[0] - np.sin(1.0)) < 0.07), bool(len(m.support_) < 30)
    (True, True)
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        C: float = 1.0,
        epsilon: float = 0.1,
        via: Via = "auto",
        *,
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        memory_limit: MemoryLimit = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon
        self.via = via
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Solve the dual of rows X (n, d) with y (n,) and weights (n,) or none."""
        methods.resolve(self.via, EXACT_ONLY)
        bias = checked_flag(self.fit_intercept, "fit_intercept")
        C, tol, most, e = (
            positive(self.C, "C"),
            positive(self.tol, "tol"),
            whole(self.max_iter, "max_iter"),
            tube(self.epsilon),
        )
        every, y = self._rows_and_targets(X, y, reset=True, y_numeric=True)
        w, memory = self._row_weights(sample_weight, every), bytes_of(self.memory_limit)
        rows, kept = with_positive_weight(every, w, gram=self._precomputed)
        t, c = targets(y)[kept], C * w[kept]
        kernel, unit = scaled_kernel_at(self.kernel, rows, w[kept]), min(1.0, float(t.std()) or 1.0)
        op = operator_of(
            kernel,
            rows,
            largest=float(c.max()),
            tol=tol * unit,
            memory=memory,
            bias=bias,
            balanced=bias,
        )
        found = solve(op, DualProblem(t, -c, c, e, bias=bias, unit=unit), tol, most, memory=memory)
        parts = support_of(kernel, rows, kept, found.b[None])
        counts = np.array([len(parts["support"])], np.int32)
        why = f"{len(rows):,} rows, by blocks of the dual until its gap is {found.relative:.1e}"
        summary = summary_of([found], op, why, vectors=int(counts[0]), memory=memory)
        warn_if_open(type(self).__name__, [found], summary, tol, most, REMEDIES)
        intercept = np.array([intercept_of(op, found)])
        self.machine_ = DualMachine(
            **parts, intercept=intercept, counts=counts, summary=summary, memory=memory
        )
        return self

    def predict(self, X: Any) -> Array:
        """sum_j coef_j k(x, z_j) + intercept, (n,)."""
        f = self._raw(X)[:, 0]
        return f + self.machine_.intercept[0].astype(f.dtype)


def tube(epsilon: object) -> float:
    if (found := number(epsilon)) is not None and found >= 0:
        return found
    raise ValueError(f"epsilon must be a number >= 0, got {epsilon!r}.")


def targets(y: Any) -> Array:
    """y as numbers, of a size whose squares stay finite."""
    t = np.asarray(y, np.float64)
    if len(t) and np.abs(t).max() > 1e100:
        raise ValueError(
            f"y has values up to {np.abs(t).max():.1e}, which are too large to square; scale y first."
        )
    return t
