"""OneClassSVM: the region where most of the rows are, by its exact dual."""
from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OutlierMixin

from mercer.estimators.base import all_or_nothing, bytes_of
from mercer.estimators.settings import positive, whole
from mercer.estimators.svm_base import SupportVectors
from mercer.estimators.svr import exact_only
from mercer.inputs import Array
from mercer.invariants import Floats
from mercer.learners.smo import solve
from mercer.learners.smo_box import Box


class OneClassSVM(OutlierMixin, SupportVectors):
    """argmin |f|^2/2 - nu W rho + sum_i w_i max(0, rho - f(x_i)), W = sum w: at most a share nu of the weight is left outside.

    f(x) - rho is positive inside. Schoelkopf et al., Estimating the support of a high-dimensional distribution (2001).

    Parameters
    ----------
    kernel : a kernel, "precomputed", None or "rbf": exp(-|x - z|^2/s), s the sum of the variances of the columns, "linear": x'z,
        "poly": (1 + x'z)^3, or "laplacian": exp(-|x - z|_1/d) of d columns.
    nu : the share of rows that may lie outside, in (0, 1]; at least this share are support vectors.
    via : "auto" or "exact": the dual over the rows.
    tol : of the optimality conditions, as in scikit-learn, for weights of mean 1; they are met more closely until the duality gap is
        at most tol of the objective. A gap of tol/100 ends it in any case; `plan_` says which did.
    max_iter : of rounds, each of which solves one block.
    memory_limit : of the kernel rows and blocks that are kept, as bytes or "4GB". Not counted: X and its support vectors, some vectors
        of n, a tile a thread, blocks of 256 rows, and the whole kernel matrix up to 2,048 rows (34 MB).

    Attributes: `support_`, `support_vectors_`, `dual_coef_` (1, m), `n_support_`, `intercept_`, `offset_` = rho, `gap_`
    (relative), `objective_` (of the dual), `n_iter_`, `kernel_`, `plan_`.

    >>> X = np.concatenate([np.random.default_rng(0).normal(size=(200, 2)), [[9.0, 9.0]]])
    >>> OneClassSVM(nu=0.05).fit(X).predict([[0.0, 0.0], [9.0, 9.0]])
    array([ 1, -1])
    """

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
        rows = self._checked_rows(X, reset=True)
        self._square(rows)
        w = self._row_weights(sample_weight, rows)
        rows, c, mean = self._only(rows, w > 0), w[w > 0] / w[w > 0].mean(), float(w[w > 0].mean())
        self.kernel_ = self._resolved(rows, c)
        source = self._source(rows, float(c.max()), tol)
        start = filled(c, float(self.nu))
        box = Box(np.zeros(len(c)), np.zeros(len(c)), c, total=float(start.sum()))
        found = solve(source, box, tol, most, limit=bytes_of(self.memory_limit), start=start).times(mean)
        self._keep_support(rows, np.flatnonzero(w > 0), found.b[None], np.arange(len(rows)))
        self.intercept_, self.n_support_ = np.array([found.intercept]), np.array([len(self.support_)], np.int32)
        self.offset_ = -self.intercept_
        self._settle([found], source, f"{len(rows):,} rows, by blocks of the dual until its gap is {found.relative:.1e}")
        return self

    def score_samples(self, X: Any) -> Array:
        """f(x)"""
        return self._raw(X)[:, 0]

    def decision_function(self, X: Any) -> Array:
        """f(x) - rho: positive inside."""
        f = self.score_samples(X)
        return f - self.offset_[0].astype(f.dtype)

    def predict(self, X: Any) -> Array:
        """1 inside, -1 outside."""
        return np.where(self.decision_function(X) >= 0, 1, -1)


def filled(c: Array, nu: float) -> Array:
    """Duals at their bounds from the first on, until they sum to nu of all.

    >>> filled(np.ones(4), 0.6)
    array([1. , 1. , 0.4, 0. ])
    """
    return np.clip(nu * c.sum() - np.concatenate([[0.0], np.cumsum(c)[:-1]]), 0, c)
