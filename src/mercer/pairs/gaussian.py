"""Gaussians between rows that are made ready once: a product, and one pass over it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from mercer.inputs import Array, Matrix, Table
from mercer.ops import gaussian
from mercer.ops.distances import TOLERANCE, WIDE_COLUMNS
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts, settle_allocator
from mercer.pairs.side import Bandwidth, centre_of, over, per_column, square_norms

MIN_PAIRS = 1 << 16  # fewer are taken plainly, so that no loop is compiled for them
MIN_PRODUCTS = 1 << 24  # the same, of multiplications: of very wide rows few take long
MIN_SPARSE_PRODUCTS = 1 << 20  # the same of sparse rows, of those that are not with zero
RAW = 0.05  # of the tolerance: rows as they are, neither moved nor scaled, may use so much of it
PIECE = 1 << 17  # numbers of rows that a task makes ready
SIDE = {4: 640, 8: 512}  # of square tiles, by bytes of a number
TASKS = 8  # that few rows are shared between, so that threads end together
PANELS, LEAST_SIDE = 5, 128  # that wide rows are cut into at least, if each has as many rows
SHARED = 6_000_000  # multiplications that are worth another thread
USUAL = 1e-9  # and its inverse: bandwidths between them
SYRK_COLUMNS = 160  # below, NumPy takes longer to mirror a product than to compute it twice
SHIFT = 8  # columns by which it is not seen that a product is of rows with themselves


@dataclass(frozen=True, eq=False)
class RowsWithNorms:
    """Rows A (n, d), dense or sparse, and their squared norms."""

    A: Matrix
    norms: Array
    _turned: dict[tuple[int, int], tuple[Array, Array, Array, Array]] = field(
        default_factory=dict, repr=False
    )

    @classmethod
    def raw(cls, X: Array) -> Self:
        """As they are."""
        norms = np.empty(len(X))
        parallel_map(lambda s: gaussian.squares(X[s], norms[s]), _pieces(X))
        return cls(X, norms)

    @classmethod
    def moved(cls, X: Array, centre: Array, scale: Array, dtype: Any) -> Self:
        """About a centre, scaled, in this precision."""
        A, norms = np.empty(X.shape, dtype), np.empty(len(X))
        parallel_map(lambda s: gaussian.moved(X[s], centre, scale, A[s], norms[s]), _pieces(X))
        return cls(A, norms)

    @classmethod
    def sparse(cls, X: Matrix, bandwidth: Bandwidth) -> Self:
        """Sparse ones in float64, as their products take no longer; as they are, or over an unusual
        bandwidth."""
        A = X.astype(np.float64, copy=False)
        if not usual(bandwidth):
            A = over(A, per_column(bandwidth, A.shape[1]), np.float64)
        return cls(A, square_norms(A))

    def some(self, rows: Array) -> RowsWithNorms:
        """Those at some places."""
        return RowsWithNorms(self.A[rows], self.norms[rows])

    def turned(self, cols: slice) -> tuple[Array, Array, Array, Array]:
        """Some sparse rows by their columns: where each begins and ends, places and numbers."""
        key = cols.start, cols.stop
        if key not in self._turned:
            Z = self.A[cols].tocsc()
            ends = unsigned(Z.indptr)
            self._turned[key] = ends[:-1], ends[1:], unsigned(Z.indices), Z.data
        return self._turned[key]

    def ready(self) -> RowsWithNorms:
        """Norms in the precision of the rows; one column has a zero beside it, as BLAS is not
        asked for products of single numbers."""
        single = self.A.shape[1] == 1 and isinstance(self.A, np.ndarray)
        A = np.pad(self.A, ((0, 0), (0, 1))) if single else self.A
        return RowsWithNorms(A, self.norms.astype(A.dtype))


@dataclass(frozen=True, eq=False)
class GaussianPairs:
    """exp(-gamma |a - b|^2) of rows a and b of two sets, tile by tile."""

    left: RowsWithNorms
    right: RowsWithNorms
    gamma: float

    @classmethod
    def of(
        cls,
        X: Table,
        Z: Table,
        bandwidth: Bandwidth,
        dtype: Any = None,
        centre: Array | None = None,
    ) -> GaussianPairs | None:
        """Values in this precision, that of the rows if none is given, about a centre where it is
        known; None where digits would be lost, or for few rows: others know how."""
        if X.items or X.sparse != Z.sparse:
            return None
        dtype, pairs = np.dtype(X.dtype if dtype is None else dtype), len(X) * len(Z)
        if X.sparse:
            few = few_products(X.data, Z.data)
            return None if few else cls._sparse(X, Z, bandwidth, dtype)
        if pairs < MIN_PAIRS and pairs * X.width < MIN_PRODUCTS:
            return None
        raw = cls._raw(X, Z, bandwidth) if X.dtype == dtype else None
        return raw or cls._moved(X, Z, bandwidth, dtype, centre)

    @classmethod
    def _sparse(
        cls, X: Table, Z: Table, bandwidth: Bandwidth, dtype: np.dtype[Any]
    ) -> GaussianPairs | None:
        """Of sparse rows, products in float64 whatever the values are."""
        with np.errstate(over="ignore"):
            left = RowsWithNorms.sparse(X.data, bandwidth)
            right = left if Z is X else RowsWithNorms.sparse(Z.data, bandwidth)
        found = cls(left, right, gamma_of(bandwidth))
        return found if found.rounding <= TOLERANCE[dtype] else None

    @classmethod
    def _raw(cls, X: Table, Z: Table, bandwidth: Bandwidth) -> GaussianPairs | None:
        """Of rows as they are, where an offset that they have costs next to no digits."""
        if not usual(bandwidth):
            return None
        left = RowsWithNorms.raw(X.data)
        right = left if Z is X else RowsWithNorms.raw(Z.data)
        found = cls(left, right, gamma_of(bandwidth))
        return found._ready() if found.rounding <= RAW * TOLERANCE[X.dtype] else None

    @classmethod
    def _moved(
        cls,
        X: Table,
        Z: Table,
        bandwidth: Bandwidth,
        values: np.dtype[Any],
        centre: Array | None,
    ) -> GaussianPairs | None:
        """About their mean, in the precision that squared distances need."""
        b, centre = per_column(bandwidth, X.width), centre_of(X, Z) if centre is None else centre
        assert centre is not None  # rows are dense
        with np.errstate(over="ignore", divide="ignore"):
            scale = 1 / b
        for dtype in dict.fromkeys((values, np.dtype(np.float64))):
            left = RowsWithNorms.moved(X.data, centre, scale, dtype)
            right = left if Z is X else RowsWithNorms.moved(Z.data, centre, scale, dtype)
            found = cls(left, right, 0.5)
            if found.rounding <= TOLERANCE[values]:
                return found._ready()
        return None

    def _ready(self) -> GaussianPairs:
        left = self.left.ready()
        right = left if self.right is self.left else self.right.ready()
        return GaussianPairs(left, right, self.gamma)

    def some(self, rows: Array) -> GaussianPairs:
        """Those of some rows of a set with themselves."""
        both = self.left.some(rows)
        return GaussianPairs(both, both, self.gamma)

    @property
    def rounding(self) -> float:
        """Of squared distances over the bandwidth, by products."""
        eps = float(np.finfo(self.left.A.dtype).eps)
        return eps * self.gamma * float(self.left.norms.max() + self.right.norms.max())

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of products; values may have another."""
        return self.left.A.dtype

    def fill(
        self,
        rows: slice,
        cols: slice,
        out: Array,
        row: int,
        col: int,
        room: Array,
        half: bool = False,
    ) -> None:
        """The values of these rows and columns, written to `out` from this row and column on; `room`
        is for as many numbers or more. Of a half only those on and above its diagonal."""
        shape = rows.stop - rows.start, cols.stop - cols.start
        P = room[: shape[0] * shape[1]].reshape(shape)
        self._products(rows, cols, P, half)
        norms = self.left.norms[rows], self.right.norms[cols]
        gaussian.values(P, *norms, self.gamma, out, row, col, half)
        if self.left is self.right:
            own = out[row : row + shape[0], col : col + shape[1]]
            meet(own, rows.start - cols.start)

    def _products(self, rows: slice, cols: slice, P: Array, half: bool) -> None:
        if not isinstance(self.left.A, np.ndarray):
            self.sparse_products(rows, cols, P, half)
            return
        A, B = self.left.A[rows], self.right.A[cols]
        itself = self.left is self.right and rows == cols
        cut = len(A) // 2 if A.shape[1] < SYRK_COLUMNS and itself else 0
        first = max(cut - SHIFT, 0) if half else 0  # of the columns that the lower rows need
        with np.errstate(all="ignore"):  # BLAS may leave flags of lanes that hold no entry
            np.matmul(A[cut:], B[first:].T, out=P[cut:, first:])
            if cut:
                np.matmul(A[:cut], B.T, out=P[:cut])

    def sparse_products(self, rows: slice, cols: slice, P: Array, half: bool) -> None:
        """P = the inner products of these sparse rows; of a half only those above its diagonal."""
        X, (begin, end, at, other) = self.left.A, self.right.turned(cols)
        start, places = unsigned(X.indptr), unsigned(X.indices)
        begin = begin.copy() if half else begin
        gaussian.sparse_products(start, places, X.data, rows.start, begin, end, at, other, half, P)

    def matrix(self, out: Array, *, mirrored: bool = True) -> Array:
        """out = all values, its columns beyond them as they were: of rows with themselves one
        triangle, and its mirror image unless only what is on and above the diagonal is asked for."""
        symmetric = self.left is self.right
        down, across = self.tile(symmetric=symmetric)
        jobs = [
            (rows, cols)
            for rows in cuts(self.left.A.shape[0], down)
            for cols in cuts(self.right.A.shape[0], across)
            if not symmetric or rows.start <= cols.start
        ]
        settle_allocator()

        def work(job: tuple[slice, slice]) -> None:
            rows, cols = job
            room = np.empty(down * across, self.dtype)
            # a BLAS may round the product of a tile with itself in two ways, so half of it is read
            half = symmetric and rows == cols
            self.fill(rows, cols, out, rows.start, cols.start, room, half)
            if symmetric and mirrored:
                gaussian.mirror(out, rows.start, rows.stop, cols.start, cols.stop)

        parallel_map(work, jobs)
        return out

    def _square(self, n: int, side: int) -> int:
        """The side of square tiles: as few as there can be, of one size, but two where products
        take long enough for two threads."""
        parts = max(-(-n // side), 2 if n * n * self.left.A.shape[1] > SHARED else 1)
        return -(-n // (parts * 8)) * 8

    def tile(self, *, symmetric: bool) -> tuple[int, int]:
        """The most rows and columns of a tile."""
        n, m = self.left.A.shape[0], self.right.A.shape[0]
        side = SIDE[self.dtype.itemsize]
        dense = isinstance(self.left.A, np.ndarray)
        if symmetric and dense and self.left.A.shape[1] >= WIDE_COLUMNS:  # few rows take time too
            side = min(side, max(LEAST_SIDE, -(-n // PANELS)))
        if symmetric:
            return (self._square(n, side),) * 2
        across = -(-m // -(-m // (2 * side)))  # as few pieces as there can be, of one size
        most = max(64, side * side // across // 16 * 16)
        return min(most, max(64, -(-n // TASKS))), across


def meet(K: Array, offset: int) -> None:
    """1 where rows are the columns themselves: row i is column i + offset."""
    if -K.shape[0] < offset < K.shape[1]:
        i = np.arange(max(0, -offset), min(K.shape[0], K.shape[1] - offset))
        K[i, i + offset] = 1


def multiplications(X: Matrix, Z: Matrix) -> float:
    """Those of the inner products of all pairs of sparse rows."""
    x = np.bincount(X.indices, minlength=X.shape[1])
    z = x if Z is X else np.bincount(Z.indices, minlength=X.shape[1])
    return float(x.astype(np.float64) @ z)


def usual(bandwidth: Bandwidth) -> bool:
    """Whether rows need not be scaled: one bandwidth for all columns, whose square has all digits
    in float32."""
    return isinstance(bandwidth, float) and USUAL < bandwidth < 1 / USUAL


def gamma_of(bandwidth: Bandwidth) -> float:
    """That of rows as they are, or of scaled ones.

    >>> gamma_of(0.5), gamma_of((1.0, 2.0)), gamma_of(1e-30)
    (2.0, 0.5, 0.5)
    """
    return 0.5 / float(bandwidth) ** 2 if usual(bandwidth) else 0.5  # type: ignore[arg-type]


def few_products(X: Matrix, Z: Matrix) -> bool:
    """Whether so few pairs of sparse rows are taken plainly."""
    if X.shape[0] * Z.shape[0] >= MIN_PAIRS:
        return False
    return multiplications(X, Z) < MIN_SPARSE_PRODUCTS


def unsigned(places: Array) -> Array:
    """The same places or ends, for loops."""
    return places.view(np.uint32 if places.itemsize == 4 else np.uint64)


def _pieces(X: Array) -> list[slice]:
    return cuts(len(X), max(1, PIECE // X.shape[1]))
