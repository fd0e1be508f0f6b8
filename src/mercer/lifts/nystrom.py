"""Nystrom: features from the kernel values at landmarks, for any kernel at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from mercer.inputs import Array, Matrix, Table, sample_weights, table
from mercer.invariants import Floats, Ints, Samples
from mercer.kernels import Gaussian, Kernel, positioned
from mercer.kernels.base import whole
from mercer.kernels.defaults import check_domain, is_open, is_precomputed, kernel_of, resolve
from mercer.kernels.named import Gamma
from mercer.lifts.base import Lift, Seed, by_rows, stream_of
from mercer.lifts.digits import least_share, values_dtype, warn_if_hidden
from mercer.lifts.landmarks import CHOICES, all_rows, pivoted
from mercer.lifts.means import means
from mercer.lifts.pivots import rpcholesky_factor
from mercer.lifts.residual import in_float64, inverse_of, times_upper
from mercer.lifts.written import Fill, filled, of_few, written
from mercer.operators import KernelOperator, Operator
from mercer.operators.stored import GivenOperator
from mercer.operators.tiled import checked_diag
from mercer.ops.threads import single_blas
from mercer.ops.tiles import broadcast, cuts
from mercer.pairs import Side, Tile, centre_of
from mercer.pairs.side import square_norms
from mercer.store import register

# A landmark counts where more than this share of k(x, x) is not told by those before it: what
# rounding does to a feature is eps / sqrt(share), what the feature tells sqrt(share). Under some
# kernels float32 rows have the share of float64 too, and float64 values (`mercer.lifts.digits`).
MIN_RESIDUAL = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 3e-5}
LOOK_VALUES = 1 << 16  # features that are squared at a time
Choice = tuple[Table, "Array | None", Array]  # landmarks, the rows they are, and their root


@register("lifts.Nystrom")
class Nystrom(Lift):
    """phi(x) = k(x, L) R^-1 with R'R = k(L, L): a projection onto features of landmarks L.

    The error k - phi phi' is itself a kernel, zero at the landmarks: to 1e-11 of k(x, x), or
    3e-5 for float32 rows whose k(x, x) is of one size and little of it common to all, and
    rounding. R is a Cholesky factor in float64, whatever the input,
    in the order of what the landmarks before one leave untold of it; one of which no more than
    that share is untold is left out, so the map may have fewer features than landmarks. Under
    one seed more landmarks contain the fewer ones (but for "kmeans"), so that the error rises
    by rounding at most. With "rpcholesky", rows of one weight and fewer landmarks than rows,
    they only append features: its pivots keep the order in which they were drawn.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel, a name, "precomputed" (X is then the Gram matrix with the training rows) or
        None (Gaussian scaled to X).
    n_landmarks : int, default=100
        Their number; where X has fewer rows, all rows.
    landmarks : str or array-like of shape (m, d), default="rpcholesky"
        "rpcholesky" (residual-weighted pivots), "uniform", "leverage", "kmeans" (means instead
        of rows; the smallest error for smooth kernels of numbers), or an array of points.
    random_state : int, RandomState, Generator or None, default=None
        The seed of the choice.
    gamma, degree, coef0 : float, default=None
        Of a kernel given by name, as in `KernelRidge`.

    Attributes
    ----------
    landmarks_ : ndarray of shape (m, d), list of items, or None
        The landmarks in use; None for a given matrix.
    landmark_indices_ : ndarray of shape (m,), or None
        The rows they are; None for points.
    components_ : ndarray of shape (m, D)
        R^-1.

    References
    ----------
    Williams and Seeger, Using the Nystrom method to speed up kernel machines (2001); Chen,
    Epperly, Tropp and Webber, Randomly pivoted Cholesky (2025).

    Examples
    --------
    >>> from mercer.kernels import Laplace
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> F = Nystrom(Laplace(2.0), n_landmarks=200, random_state=0).fit_transform(X)
    >>> bool(np.allclose(F @ F.T, Laplace(2.0)(X)))
    True
    """

    sparse: ClassVar[bool] = True
    gamma: Gamma = None  # as in files of before there were these
    degree: int | None = None
    coef0: float | None = None

    must = dict(
        landmarks_=Samples("n_features_out_", "n_features_in_") | None,
        landmark_indices_=Ints("n_features_out_", below=1 << 48) | None,
        components_=Floats("n_features_out_", "n_features_out_"),
    )

    def _laws(self) -> str | None:
        at: Any = self.landmark_indices_ if self._pairwise else 0
        last = np.max(at, initial=0)
        return (
            None if last < self.n_features_in_ else f"reads column {last} of {self.n_features_in_}"
        )

    def __init__(
        self,
        kernel: Any = None,
        n_landmarks: int = 100,
        landmarks: Any = "rpcholesky",
        random_state: Seed = None,
        *,
        gamma: Gamma = None,
        degree: int | None = None,
        coef0: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Choose the landmarks, rows in proportion to their weights, and factor their matrix."""
        self._fit(self._rows(X, reset=True), sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Matrix:
        """`fit`, and the features of the same rows, which are looked at once."""
        rows = self._rows(X, reset=True)
        return self._mapped(rows, self._fit(rows, sample_weight))

    def _fit(self, rows: Table, sample_weight: Any) -> Array | None:
        """The first features of all rows, where they are known."""
        weight = self._weight(rows, sample_weight)
        self.kernel_ = "precomputed" if self._pairwise else _resolved(kernel_of(self), rows, weight)
        if not (self._pairwise or rows.items):
            checked_diag(self.kernel_, rows)
            warn_if_hidden(self.kernel_, rows)
        look = _Look(self, rows)
        with single_blas():  # the same bits whatever the number of threads
            self._factor(*self._choose(rows, weight, look))
        return look.features

    def transform(self, X: Any) -> Matrix:
        """k(X, L) R^-1, (n, D); float32 stays float32."""
        check_is_fitted(self)
        return self._mapped(self._rows(X, reset=False))

    def _mapped(self, rows: Table, known: Array | None = None) -> Matrix:
        """All features of rows of which the first ones may be known."""
        dtype = self._digits(rows)
        known = known if dtype == rows.dtype else None
        k = 0 if known is None else known.shape[1]
        if known is not None and k == self.n_features_out_:
            return known
        fill = self._values(rows, dtype)
        root = self.components_.astype(dtype, copy=False)
        F = np.empty((len(rows), len(root)), rows.dtype)

        def piece(at: slice) -> None:
            to = F[at]
            K = to if dtype == F.dtype else np.empty(to.shape, dtype)
            fill(at, K)
            if known is None:
                times_upper(K, root)
                if K is not to:
                    to[:] = K
                return
            new = K @ root[:, k:]
            to[:, :k], to[:, k:] = known[at], new

        if rows.items:
            piece(slice(0, len(rows)))
        else:
            by_rows(rows.data, len(root), lambda _, at: piece(at))
        return F

    def inverse_transform(self, F: Any) -> Array:
        """Pre-images (n, d) of features F (n, D), near-exact at the landmarks.

        The ridge regression of the landmarks on their features, x = mean + F B.

        Bakir, Weston and Scholkopf, Learning to find pre-images (2003).
        """
        check_is_fitted(self)
        if self._pairwise or isinstance(self.landmarks_, list):
            raise ValueError(
                "inverse_transform needs landmarks that are rows of numbers; Gram matrices and items have none."
            )
        L = _dense(self.landmarks_)
        mean = L.mean(axis=0, dtype=np.float64)
        P = np.linalg.inv(self.components_).T  # phi(L), lower triangular
        normal = P.T @ P
        normal.flat[:: len(P) + 1] += 1e-8 * np.trace(normal) / len(P)
        F = np.asarray(F)
        return (F @ np.linalg.solve(normal, P.T @ (L - mean)) + mean).astype(F.dtype, copy=False)

    # inside
    @property
    def _pairwise(self) -> bool:
        return is_precomputed(self.kernel)

    def _rows(self, X: Any, *, reset: bool) -> Table:
        if isinstance(self.kernel, Kernel) and self.kernel.takes_items:
            rows = table(X, items=True)
            if rows.items:
                self.n_features_in_ = 1 if reset else self.n_features_in_
                return rows
        data = self._check(X, reset=reset)
        if reset and self._pairwise and data.shape[0] != data.shape[1]:
            raise ValueError(
                f"X must be a square Gram matrix with kernel='precomputed', got shape {data.shape}."
            )
        rows = self._table(data)
        check_domain(self.kernel, rows)
        return rows

    def _weight(self, rows: Table, sample_weight: Any) -> Array:
        if sample_weight is None:
            return np.ones(len(rows))
        if not np.any(np.asarray(sample_weight)):
            raise ValueError(
                "sample_weight is zero for every row; give some row a positive weight."
            )
        X = np.empty((len(rows), 1)) if rows.items else rows.data
        return sample_weights(sample_weight, X)

    def _choose(self, rows: Table, weight: Array, look: _Look) -> Choice:
        """The landmarks that count, the rows they are, and the Cholesky factor of their kernel
        matrix, in float64."""
        cut = self._cut(rows)
        if not isinstance(self.landmarks, str):
            given = table(self.landmarks, "landmarks", items=rows.items, width=rows.width or None)
            return self._points(given, cut)
        op: Operator = (
            GivenOperator(rows.data) if self._pairwise else KernelOperator(self.kernel_, rows)
        )
        m = self._count(rows)
        drawn = m < np.count_nonzero(weight)
        # Pivots keep the order in which they were drawn, unless weights chose rows that tell little
        # before rows that tell much.
        if self.landmarks == "rpcholesky" and drawn and np.ptp(weight[weight > 0]) == 0:
            # a look in the precision of the rows tells no share as small as that of float64
            blind = rows.items or cut < MIN_RESIDUAL[rows.dtype]
            index, root = rpcholesky_factor(
                op, m, stream_of(self.random_state), weight, cut, None if blind else look
            )
            return rows[index], index, root
        index = self._indices(op, rows, m, weight)
        if self.landmarks == "kmeans" and drawn:
            points = means(rows, index, weight, self.kernel_)
            return self._points(Table(points.astype(rows.dtype), rows.columns), cut)
        K = in_float64(op.restrict(index, index).astype(np.float64), slice(None), slice(None))
        kept, root = pivoted(K, cut)
        return rows[index[kept]], index[kept], root

    def _points(self, points: Table, cut: float) -> Choice:
        if self._pairwise:
            raise ValueError(
                f"landmarks must name a choice of rows with kernel='precomputed', got {self.landmarks!r}."
            )
        kept, root = pivoted(self.kernel_(points.astype(np.float64)), cut)
        return points[kept], None, root

    def _cut(self, rows: Table) -> float:
        return least_share(self.kernel_, rows, MIN_RESIDUAL[rows.dtype])

    def _count(self, rows: Table) -> int:
        """How many landmarks are asked for, by a choice that there is."""
        m = whole(self.n_landmarks, "n_landmarks", least=1)
        if self.landmarks not in (*CHOICES, "kmeans"):
            raise ValueError(
                f"landmarks must be {', '.join(CHOICES)}, kmeans or an array of points, got {self.landmarks!r}."
            )
        if self.landmarks == "kmeans" and (self._pairwise or rows.items):
            raise ValueError(
                "landmarks='kmeans' needs rows of numbers; use 'rpcholesky' for items and for Gram matrices."
            )
        return m

    def _indices(self, op: Operator, rows: Table, m: int, weight: Array) -> Array:
        if m >= np.count_nonzero(weight):
            return all_rows(rows, weight)
        choose = CHOICES["rpcholesky" if self.landmarks == "kmeans" else self.landmarks]
        return choose(op, m, stream_of(self.random_state), weight, self._cut(rows))

    def _factor(self, points: Table, index: Array | None, root: Array) -> None:
        self.landmarks_ = None if self._pairwise else points.data
        self.landmark_indices_ = index
        self.components_ = np.ascontiguousarray(inverse_of(root).T)
        self.n_features_out_ = len(root)

    def _digits(self, rows: Table) -> np.dtype[Any]:
        """The precision of kernel values of these rows."""
        if self._pairwise or rows.items or rows.dtype == np.float64:
            return rows.dtype
        with np.errstate(divide="ignore"):
            told = 1 / self.components_.diagonal()
        points = Table(self.landmarks_, rows.columns).astype(rows.dtype)
        return values_dtype(self.kernel_, points, told, MIN_RESIDUAL[rows.dtype])

    def _values(self, rows: Table, dtype: np.dtype[Any]) -> Fill:
        """What writes k(x, L) of pieces of these rows, computed in this precision."""
        if self._pairwise:
            index = self.landmark_indices_
            assert index is not None
            return written(lambda at: GivenOperator(rows.data[at]).block(cols=index))
        kernel, points = self.kernel_, Table(self.landmarks_, rows.columns).astype(dtype)
        points = Table(_like(points.data, rows), rows.columns)
        pairs = kernel.fast(rows, points) if dtype == rows.dtype else None
        if pairs is not None:
            return partial(filled, pairs)
        centre = centre_of(points, points)
        z = Side(points, centre)

        def plain(at: slice) -> Array:
            part = rows[at].astype(dtype)
            K = kernel.on(Tile(Side(part, centre), z))
            return broadcast(K, (len(part), len(points)), dtype)

        fill = written(plain)
        plainly = (
            rows.sparse
            or dtype != rows.dtype
            or type(kernel) is not Gaussian
            or np.ndim(kernel.bandwidth) > 0
        )
        return fill if plainly else of_few(kernel.bandwidth, rows.data, points.data, fill)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        tags.input_tags.string = isinstance(self.kernel, Kernel) and self.kernel.takes_items
        return tags


def _resolved(kernel: Any, rows: Table, weight: Array) -> Kernel:
    """The kernel meant; one scaled to the rows sees each as often as its weight says."""
    if is_open(kernel) and (weight != 1).any():
        centre = weight @ rows.data / weight.sum()
        moved = rows.data if rows.sparse else rows.data - centre
        spread = weight @ square_norms(moved) / weight.sum() - (
            float(centre @ centre) if rows.sparse else 0.0
        )
        return Gaussian(math.sqrt(spread / 2)) if spread > 1e-300 else Gaussian(math.sqrt(0.5))
    return positioned(resolve(kernel, rows), rows)


@dataclass
class _Look:
    """What landmarks tell of all rows, which are the features that a map would have by them: where
    no other landmark is found after it, those that it has."""

    phi: Nystrom
    rows: Table
    features: Array | None = None

    def __call__(self, index: Array, root: Array) -> Array:
        self.phi._factor(self.rows[index], index, root)
        self.features = F = self.phi._mapped(self.rows)
        return np.concatenate(
            [
                np.square(F[at], dtype=np.float64).sum(1)
                for at in cuts(len(F), LOOK_VALUES // F.shape[1])
            ]
        )


def _dense(A: Matrix) -> Array:
    return A.toarray() if sp.issparse(A) else np.asarray(A)


def _like(A: Matrix, rows: Table) -> Matrix:
    """The landmarks dense or sparse, as the rows are."""
    if rows.items or sp.issparse(A) == rows.sparse:
        return A
    return sp.csr_array(A) if rows.sparse else A.toarray()
