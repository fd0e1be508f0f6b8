"""OneClassSVM: the region where most of the rows are, by its exact dual, its one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from mercer import methods
from mercer.gpu.devices import checked_device, device_of
from mercer.inputs import Array, Table
from mercer.kernels.defaults import kernel_of
from mercer.kernels.ways import value_ways
from mercer.models.base import all_or_nothing, bytes_of
from mercer.models.expansion import scaled_kernel_at
from mercer.models.settings import Gamma, KernelSetting, MemoryLimit, Via, positive, whole
from mercer.models.svm.base import SupportVectorEstimator
from mercer.models.svm.dual import operator_of, summary_of, support_of, warn_if_open
from mercer.models.svm.machine import DualMachine
from mercer.models.svm.plan import EXACT_ONLY, with_positive_weight
from mercer.models.svm.problem import DualProblem, DualSolution
from mercer.models.svm.solver import solve
from mercer.operators import TiledOperator
from mercer.operators.products import dense_enough
from mercer.store import register

EDGE = {
    4: 5e-7,
    8: 3e-13,
}  # of the size of its terms, by that of a float: a score within it of rho is on the edge
REMEDIES = "scale the columns of X", "scale the columns of X, or raise tol"


@register("svm.OneClassSVM")
class OneClassSVM(OutlierMixin, SupportVectorEstimator):
    """argmin |f|^2/2 - nu W rho + sum_i w_i max(0, rho - f(x_i)), W = sum w.

    At most a share nu of the weight is left outside; f(x) - rho is positive inside. Where rows
    lie all around the origin of a linear kernel, the best f is 0 and every row is at its edge:
    an objective below tol nu W times the mean of k(x, x) counts as zero, and `gap_` is relative
    to that.

    Parameters
    ----------
    kernel : Kernel, str or callable, default=None
        A kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of
        the columns, "linear": x'z, "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d
        columns; other names, functions and kernels of scikit-learn as in `KernelRidge`.
    nu : float, default=0.5
        The largest share of the weight of the rows that lies outside (decision_function < 0),
        in (0, 1]; at least this share is that of support vectors.
    via : {"auto", "exact"}, default="auto"
        The dual over the rows.
    gamma, degree, coef0 : float, default=None
        Of a kernel given by name, as in `KernelRidge`.
    tol : float, default=1e-3
        Of the optimality conditions, as in scikit-learn, for weights of mean 1; they are met
        more closely until the duality gap is at most tol of the objective. A gap of tol/100
        ends it in any case; `plan_` says which did.
    max_iter : int, default=1000
        Of rounds, each of which solves one block.
    memory_limit : float or str, default=None
        Of the kernel rows and blocks that are kept, as bytes or "4GB". Not counted: X and its
        support vectors, some vectors of n, a tile a thread, blocks of 256 rows, and the whole
        kernel matrix up to 2,048 rows (34 MB).
    device : str, default="cpu"
        "cuda" (or "cuda:1") keeps the gradients of the exact dual by products on that GPU,
        where there are more than 2,048 rows, and predicts there; it needs torch and triton.
        "auto" takes a GPU where there is one. `plan_` says where it was.
    verbose : bool or int, default=False
        Whether progress is told, by the logger "mercer", which writes to stderr where nobody
        else listens to it.

    Attributes
    ----------
    machine_ : DualMachine
        The fitted value.
    support_ : ndarray of shape (m,)
        The places of the support vectors among the rows.
    support_vectors_ : ndarray of shape (m, d)
    dual_coef_ : ndarray of shape (1, m)
    n_support_ : ndarray of shape (1,)
    coef_ : ndarray of shape (1, d)
        Of a linear kernel.
    intercept_ : ndarray of shape (1,)
    offset_ : ndarray of shape (1,)
        rho.
    gap_ : float
        Relative to the objective, with what rounding may add.
    objective_ : float
        Of the dual.
    n_iter_ : int
    kernel_ : Kernel
    plan_ : Plan

    References
    ----------
    Schoelkopf et al., Estimating the support of a high-dimensional distribution (2001).

    Examples
    --------
    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(200, 2)), [[9.0, 9.0]]])
    >>> OneClassSVM(nu=0.05).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        nu: float = 0.5,
        via: Via = "auto",
        *,
        gamma: Gamma = None,
        degree: int | None = None,
        coef0: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        memory_limit: MemoryLimit = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu = nu
        self.via = via
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.device = device
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Solve the dual of rows X (n, d): duals in [0, w_i] of sum nu W; y is not read."""
        methods.resolve(self.via, EXACT_ONLY)
        if not (isinstance(self.nu, int | float | np.number) and 0 < self.nu <= 1):
            raise ValueError(f"nu must be a number in (0, 1], got {self.nu!r}.")
        tol, most, memory = (
            positive(self.tol, "tol"),
            whole(self.max_iter, "max_iter"),
            bytes_of(self.memory_limit),
        )
        device = checked_device(self.device)
        every = self._rows(X, reset=True)
        w = self._row_weights(sample_weight, every)
        rows, kept = with_positive_weight(every, w, gram=self._precomputed)
        mean = float(w[kept].mean())
        c = w[kept] / w[kept].mean()
        kernel = scaled_kernel_at(kernel_of(self), rows, c)
        op = operator_of(
            kernel, rows, largest=float(c.max()), tol=tol, memory=memory, device=device
        )
        op, found = region(op, c, float(self.nu), tol, most, memory)
        found = found.times(mean)
        parts = support_of(kernel, rows, kept, found.b[None])
        counts, size = (
            np.array([len(parts["support"])], np.int32),
            float(np.abs(found.b).sum() * np.abs(op.scale).max()),
        )
        why = f"{len(rows):,} rows, by blocks of the dual until its gap is {found.relative:.1e}"
        ways = value_ways(kernel, rows)
        summary = summary_of(
            [found], op, why, vectors=int(counts[0]), memory=memory, ways=ways, device=device
        )
        rho = np.array([found.intercept])
        machine = DualMachine(
            **parts, intercept=rho, counts=counts, summary=summary, size=size, memory=memory
        )
        used = every[kept] if self._precomputed else dense_enough(rows, memory)
        machine = replace(
            machine, intercept=-offset(machine, used, c, float(self.nu), device_of(device))
        )
        warn_if_open(type(self).__name__, [found], summary, tol, most, REMEDIES)
        self.machine_ = machine
        return self

    @property
    def offset_(self) -> Array:
        """rho"""
        return -self._machine().intercept

    def score_samples(self, X: Any) -> Array:
        """f(x), (n,); rho itself where it is that up to the rounding of the sum."""
        f = self._raw(X)[:, 0]
        rho = self.offset_[0].astype(f.dtype)
        return np.where(np.abs(f - rho) <= EDGE[f.dtype.itemsize] * self._dual().size, rho, f)

    def decision_function(self, X: Any) -> Array:
        """f(x) - rho, (n,): positive inside, zero on the edge."""
        f = self.score_samples(X)
        return f - self.offset_[0].astype(f.dtype)

    def predict(self, X: Any) -> Array:
        """1 inside, -1 outside, (n,)."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


def region(
    op: TiledOperator, c: Array, nu: float, tol: float, most: int, memory: float
) -> tuple[TiledOperator, DualSolution]:
    """The duals of weights c, and the operator they were found with: in float64 where float32
    would show.
    """
    start = filled(c, nu)
    total = float(start.sum())
    least = tol * total * float(np.abs(op.diag()).mean())
    problem = DualProblem(np.zeros(len(c)), np.zeros(len(c)), c, total=total, least=least)
    found = solve(op, problem, tol, most, memory=memory, start=start)
    if op.dtype != np.float64 and found.rounding > 0.1 * tol * max(
        abs(found.objective), found.least
    ):
        op = op.wide  # an objective near zero is a sum that cancels: float32 would show in it
        found = solve(op, problem, tol, most, memory=memory, start=found.b)
    return op, found


def offset(machine: DualMachine, rows: Table, c: Array, nu: float, gpu: str | None = None) -> Array:
    """rho: that of the dual, or less, so that at most a share nu of the weight of these rows
    lies outside.
    """
    return np.minimum(
        -machine.intercept, highest(machine.queried(rows, gpu)[:, 0].astype(np.float64), c, nu)
    )


def highest(f: Array, c: Array, nu: float) -> float:
    """The largest rho below which lies at most a share nu of the weight c.

    Examples
    --------
    >>> highest(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 0.5)
    3.0
    >>> highest(np.ones(4), np.ones(4), 0.1)
    1.0
    """
    order = np.argsort(f, kind="stable")
    below = np.cumsum(c[order]) - c[order]
    return float(f[order[np.flatnonzero(below <= nu * c.sum() * (1 + 1e-12))[-1]]])


def filled(c: Array, nu: float) -> Array:
    """Duals at their bounds from the first on, until they sum to nu of all.

    >>> filled(np.ones(4), 0.6)
    array([1. , 1. , 0.4, 0. ])
    """
    return np.clip(nu * c.sum() - np.concatenate([[0.0], np.cumsum(c)[:-1]]), 0, c)
