"""OneClassSVM: the region where most of the rows are, by its exact dual."""
from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from mercer.estimators.base import all_or_nothing, bytes_of
from mercer.estimators.svm_base import SupportVectors
from mercer.estimators.svr import exact_only
from mercer.inputs import Array
from mercer.invariants import Floats
from mercer.learners.smo import solve
from mercer.learners.smo_box import Box
from mercer.learners.smo_scores import dense_enough
from mercer.models.settings import positive, whole
from mercer.store import register

EDGE = {4: 5e-7, 8: 3e-13}  # of the size of its terms, by that of a float: a score within it of rho is on the edge


@register("svm.OneClassSVM")
class OneClassSVM(OutlierMixin, SupportVectors):
    """argmin |f|^2/2 - nu W rho + sum_i w_i max(0, rho - f(x_i)), W = sum w: at most a share nu of the weight is left outside.

    f(x) - rho is positive inside. Schoelkopf et al., Estimating the support of a high-dimensional distribution (2001).

    Parameters
    ----------
    kernel : a kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of the columns, "linear": x'z,
        "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d columns.
    nu : the largest share of the weight of the rows that lies outside (decision_function < 0), in (0, 1]; at least this share is that
        of support vectors.
    via : "auto" or "exact": the dual over the rows.
    tol : of the optimality conditions, as in scikit-learn, for weights of mean 1; they are met more closely until the duality gap is
        at most tol of the objective. A gap of tol/100 ends it in any case; `plan_` says which did.
    max_iter : of rounds, each of which solves one block.
    memory_limit : of the kernel rows and blocks that are kept, as bytes or "4GB". Not counted: X and its support vectors, some vectors
        of n, a tile a thread, blocks of 256 rows, and the whole kernel matrix up to 2,048 rows (34 MB).

    Where rows lie all around the origin of a linear kernel, the best f is 0 and every row is at its edge: an objective below
    tol nu W times the mean of k(x, x) counts as zero, and `gap_` is relative to that.

    Attributes: `support_`, `support_vectors_`, `dual_coef_` (1, m), `n_support_`, `intercept_`, `offset_` = rho, `gap_`
    (relative, with what rounding may add), `objective_` (of the dual), `n_iter_`, `kernel_`, `plan_`.

    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(200, 2)), [[9.0, 9.0]]])
    >>> OneClassSVM(nu=0.05).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

    _remedies = "scale the columns of X", "scale the columns of X, or raise tol"
    _size = 0.0  # of the terms of a score: what its rounding is relative to
    must = dict(dual_coef_=Floats(1, "m"), intercept_=Floats(1), offset_=Floats(1))

    def __init__(
        self, kernel: Any = None, nu: float = 0.5, via: Any = "auto", *, tol: float = 1e-3, max_iter: int = 1000, memory_limit: Any = None
    ) -> None:
        self.kernel = kernel
        self.nu = nu
        self.via = via
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Solve the dual: duals in [0, w_i] whose sum is nu W."""
        exact_only(self.via)
        if not (isinstance(self.nu, int | float | np.number) and 0 < self.nu <= 1):
            raise ValueError(f"nu must be a number in (0, 1], got {self.nu!r}.")
        tol, most = positive(self.tol, "tol"), whole(self.max_iter, "max_iter")
        every = self._checked_rows(X, reset=True)
        self._square(every)
        w = self._row_weights(sample_weight, every)
        rows, c, mean = self._only(every, w > 0), w[w > 0] / w[w > 0].mean(), float(w[w > 0].mean())
        self.kernel_ = self._resolved(rows, c)
        source = self._source(rows, float(c.max()), tol)
        start = filled(c, float(self.nu))
        total = float(start.sum())
        box = Box(np.zeros(len(c)), np.zeros(len(c)), c, total=total, least=tol * total * float(np.abs(source.diag).mean()))
        found = solve(source, box, tol, most, limit=bytes_of(self.memory_limit), start=start)
        if source.dtype != np.float64 and found.rounding > 0.1 * tol * max(abs(found.objective), found.least):
            source = source.wide  # an objective near zero is a sum that cancels: float32 would show in it
            found = solve(source, box, tol, most, limit=bytes_of(self.memory_limit), start=found.b)
        found = found.times(mean)
        self._keep_support(rows, np.flatnonzero(w > 0), found.b[None], np.arange(len(rows)))
        self.intercept_, self.n_support_ = np.array([found.intercept]), np.array([len(self.support_)], np.int32)
        self._size = float(np.abs(found.b).sum() * np.abs(source.scale).max())
        used = every[w > 0] if self._pairwise else dense_enough(rows, bytes_of(self.memory_limit))
        self.offset_ = np.minimum(-self.intercept_, highest(self._of_table(used)[:, 0].astype(np.float64), c, float(self.nu)))
        self.intercept_ = -self.offset_
        self._settle([found], source, f"{len(rows):,} rows, by blocks of the dual until its gap is {found.relative:.1e}")
        return self

    def score_samples(self, X: Any) -> Array:
        """f(x); rho itself where it is that up to the rounding of the sum."""
        f = self._raw(X)[:, 0]
        rho = self.offset_[0].astype(f.dtype)
        return np.where(np.abs(f - rho) <= EDGE[f.dtype.itemsize] * self._size, rho, f)

    def decision_function(self, X: Any) -> Array:
        """f(x) - rho: positive inside, zero on the edge."""
        f = self.score_samples(X)
        return f - self.offset_[0].astype(f.dtype)

    def predict(self, X: Any) -> Array:
        """1 inside, -1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


def highest(f: Array, c: Array, nu: float) -> float:
    """The largest rho below which lies at most a share nu of the weight c.

    >>> highest(np.array([3.0, 1.0, 2.0, 4.0]), np.ones(4), 0.5), highest(np.ones(4), np.ones(4), 0.1)
    (3.0, 1.0)
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
