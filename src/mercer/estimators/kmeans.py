"""KernelKMeans: clusters about means in the space of a kernel, exactly or over features."""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import all_or_nothing, bytes_of
from mercer.estimators.dual import OverKernel
from mercer.estimators.dual_pca import check_finite, check_via
from mercer.inputs import Array, Items, Matrix
from mercer.invariants import Floats, Ints, Number, Samples
from mercer.kernels import Linear, Scale
from mercer.learners.kmeans import Clusters, FeatureSpace, KernelSpace, kmeans
from mercer.lifts.base import stream_of
from mercer.models.settings import whole
from mercer.plan import Plan
from mercer.store import register

EXACT = ("auto", "exact", "iterative")
MOST_ROWS = 20_000  # that via="auto" compares with each other
ROUNDING = 512  # units in the last place by which means that are the same may differ
LARGE = 64 << 20  # bytes of rows that are kept as they are, not copied: leave them so while you use the model


@register("kmeans.KernelKMeans")
class KernelKMeans(ClusterMixin, OverKernel):
    """argmin sum_i w_i min_c |phi(x_i) - m_c|^2: k-means in the space of a kernel.

    Parameters
    ----------
    n_clusters : how many.
    kernel : a kernel, a name, "precomputed" (X is then the Gram matrix with the rows of `fit`), or None: a Gaussian scaled to the data.
    via : "exact" (tiles of the kernel matrix, one sweep a step), "features", "landmarks" or a value of `mercer.methods`; "auto" is
        exact up to 20,000 rows, else features.
    n_init, max_iter : runs from other seeds, of which the best counts, and steps of each.
    memory_limit : up to which features are kept between the steps, as bytes or "1GB".

    Attributes: `labels_`, `inertia_`, `n_iter_`, `kernel_`, `plan_`; exactly `dual_coef_` (n, k), over features
    `cluster_centers_` (k, D). Where clusters are left empty the row farthest from its mean becomes one; a ConvergenceWarning
    tells of those that stay empty, as where fewer rows differ than there are clusters.

    Dhillon, Guan and Kulis, Kernel k-means (2004); Lattanzi and Sohler, A better k-means++ algorithm via local search (2019).

    >>> rng = np.random.default_rng(0)
    >>> t, r = rng.uniform(0, 2 * np.pi, 200), np.repeat([1.0, 4.0], 100)
    >>> rings = np.column_stack([r * np.cos(t), r * np.sin(t)])
    >>> from mercer.kernels import Linear
    >>> labels = KernelKMeans(2, Linear().warped(lambda X: np.square(X).sum(1)), random_state=0).fit(rings).labels_
    >>> len(set(labels[:100])), labels[0] != labels[100]
    (1, np.True_)
    """

    must = dict(
        labels_=Ints("n", below="k"), dual_coef_=Floats("n", "k"), X_fit_=Samples("n", "n_features_in_") | None,
        center_squares_=Floats("k"), cluster_centers_=Floats("k", "n_features_lifted_"), _origin=Number() | Floats(None),
    )  # fmt: skip

    def __init__(
        self, n_clusters: int = 8, kernel: Any = None, via: Any = "auto", *, lift: Any = None, n_init: int = 3, max_iter: int = 300,
        memory_limit: Any = None, random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.via = via
        self.lift = lift
        self.n_init = n_init
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.random_state = random_state

    cluster_centers_: Array
    _origin: Any = 0.0  # about which distances are computed, where they are the same about any; a large offset then costs no digits

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Seeds by k-means++ and swaps of them, then steps until no row changes its cluster."""
        k, n_init, steps = (whole(getattr(self, name), name) for name in ("n_clusters", "n_init", "max_iter"))
        bytes_of(self.memory_limit)
        check_via(self.via, self.lift)
        X = self._check_X(X, reset=True)
        n = X.shape[0]
        if n < k:
            raise ValueError(f"n_samples={n} should be >= n_clusters={k}; give fewer clusters, or more rows.")
        weight = self._weights(sample_weight, X)
        w = np.ones(n) if weight is None else weight
        if not w.any():
            raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
        for name in ("dual_coef_", "X_fit_", "cluster_centers_", "lift_", "_origin"):
            self.__dict__.pop(name, None)
        exact = self._is_exact(n)
        with np.errstate(over="ignore", invalid="ignore"):
            space: Any = self._kernel_space(X, weight, w) if exact else self._feature_space(X, weight, w)
            found = kmeans(space, k, w, self._order(X), stream_of(self.random_state), n_init=n_init, max_iter=steps)
            distinct = self._keep(found, space, X, exact)
        self._warn(found, k, distinct)
        return self

    def _is_exact(self, n: int) -> bool:
        if self._pairwise and not (isinstance(self.via, str) and self.via in EXACT):
            raise ValueError("kernel='precomputed' has no features; give via='exact' or 'auto'.")
        if self.lift is not None or not isinstance(self.via, str) or self.via not in EXACT:
            return False
        return self._pairwise or self.via != "auto" or n <= MOST_ROWS

    def _kernel_space(self, X: Matrix, weight: Array | None, w: Array) -> KernelSpace:
        self._set_kernel(X, weight)
        if _moves(self.kernel_) and not sp.issparse(X):
            self._origin = _mean([(slice(0, len(X)), X)], w)
        return KernelSpace(self._operator(self._about(X)))

    def _about(self, X: Matrix) -> Matrix:
        """Rows about the origin."""
        if not isinstance(self._origin, np.ndarray):
            return X
        return ((X.toarray() if sp.issparse(X) else X) - self._origin).astype(X.dtype, copy=False)

    def _feature_space(self, X: Matrix, weight: Array | None, w: Array) -> FeatureSpace:
        self._fit_lift(X, weight)
        batches = self._kept(X)
        self._origin = _mean(batches(), w)
        return FeatureSpace(batches, X.shape[0], self._origin)

    def _kept(self, X: Matrix) -> Callable[[], Iterable[tuple[slice, Array]]]:
        """The features in batches; kept where they fit."""
        if X.shape[0] * self.n_features_lifted_ * X.dtype.itemsize > bytes_of(self.memory_limit):
            return lambda: self._lifted(X)
        batches = list(self._lifted(X))
        return lambda: batches

    def _order(self, X: Matrix) -> Array:
        """By values, so that draws do not depend on the order of the rows, or on a row that comes twice instead of weighing two."""
        if self._pairwise or isinstance(X, Items):
            return np.arange(X.shape[0])
        return np.argsort(X @ np.cos(np.arange(X.shape[1])), kind="stable")

    def _keep(self, found: Clusters, space: Any, X: Matrix, exact: bool) -> int:
        """What was found; how many of the means differ."""
        check_finite(found.inertia)
        self.labels_, self.inertia_, self.n_iter_ = found.labels, found.inertia, found.steps
        n, k = found.coef.shape
        if exact:
            self.dual_coef_, self.X_fit_ = found.coef, None if self._pairwise else _own(X)
            P = (space.op @ found.coef.astype(space.op.dtype)).astype(np.float64)
            inner = found.coef.T @ P
        else:
            points = space.points(found.coef)
            self.cluster_centers_, inner = points + self._origin, points @ points.T
        self.center_squares_ = np.diag(inner).copy()
        way = "exact" if exact else "features"
        why = f"{n:,} rows: " + ("compared with each other, tile by tile" if exact else f"{self.n_features_lifted_:,} features of each")
        self.plan_ = Plan(way, why, {"rows": n, "n_clusters": k}, bytes=24.0 * n * k, passes=found.steps)
        return _distinct(inner, X.dtype)

    def _warn(self, found: Clusters, k: int, distinct: int) -> None:
        if not found.settled:
            warnings.warn(f"rows still change their clusters after {found.steps} steps; raise max_iter.", ConvergenceWarning, stacklevel=4)
        if (there := min(len(np.unique(found.labels)), distinct)) < k:
            why = f"only {there} of {k} clusters have rows of their own, as too few rows differ; give fewer clusters."
            warnings.warn(why, ConvergenceWarning, stacklevel=4)

    # asking
    @available_if(lambda self: not self._pairwise)
    def distances(self, X: Any) -> Array:
        """To the means, in the space of the kernel, (n, k); a Gram matrix does not tell k(x, x), and so no distances."""
        check_is_fitted(self, "plan_")
        X = self._check_X(X, reset=False)
        square = self._partial(X) + self._squares(X)[:, None]
        check_finite(square)
        return np.sqrt(np.maximum(square, 0)).astype(X.dtype, copy=False)

    def predict(self, X: Any) -> Array:
        """The nearest mean of each row."""
        check_is_fitted(self, "plan_")
        return np.asarray(self._partial(self._check_X(X, reset=False)).argmin(axis=1))

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """`fit`, and the clusters of its rows."""
        return self.fit(X, sample_weight=sample_weight).labels_

    @available_if(lambda self: not self._pairwise)
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """- sum_i w_i min_c |phi(x_i) - m_c|^2."""
        nearest = np.square(self.distances(X).astype(np.float64)).min(axis=1)
        w = self._weights(sample_weight, nearest)
        return -float(nearest.sum() if w is None else w @ nearest)

    def _partial(self, X: Matrix) -> Array:
        """|phi(x) - m_c|^2 - |phi(x)|^2, which needs no k(x, x)."""
        with np.errstate(over="ignore", invalid="ignore"):
            if hasattr(self, "dual_coef_"):
                dots = self._operator(self._about(X), None if self._pairwise else self._about(self.X_fit_)) @ self.dual_coef_
            else:
                dots = np.vstack([F @ (self.cluster_centers_ - self._origin).T for F in self._about_origin(X)])
        check_finite(dots)
        return np.asarray(self.center_squares_ - 2 * dots)

    def _squares(self, X: Matrix) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            if hasattr(self, "dual_coef_"):
                return np.asarray(self.kernel_.diag(self._named(self._about(X))), np.float64)
            return np.concatenate([np.square(F).sum(1) for F in self._about_origin(X)])

    def _about_origin(self, X: Matrix) -> Iterator[Array]:
        """The features about the origin, batch by batch."""
        return (F.astype(np.float64) - self._origin for _, F in self._lifted(X))


def _moves(kernel: Any) -> bool:
    """Whether distances of this kernel's are the same for rows that are all moved, though its values are not."""
    return _moves(kernel.kernel) if isinstance(kernel, Scale) else isinstance(kernel, Linear)


def _mean(batches: Iterable[tuple[slice, Array]], w: Array) -> Array:
    """Of the rows, by their weights; 0 in columns where it overflows."""
    mean = np.asarray(sum(w[rows] @ F.astype(np.float64, copy=False) for rows, F in batches)) / w.sum()
    return np.where(np.isfinite(mean), mean, 0.0)


def _distinct(inner: Array, dtype: Any) -> int:
    """How many points differ by more than rounding, from their inner products."""
    square = np.diag(inner)
    same = square[:, None] + square - 2 * inner <= ROUNDING * np.finfo(dtype).eps * (square[:, None] + square)
    return int((~np.tril(same, -1).any(axis=1)).sum())


def _own(X: Matrix) -> Matrix:
    """A copy, where X is not large."""
    return X.copy() if (X.data if sp.issparse(X) else X).nbytes <= LARGE else X
