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
RAW = 0.05  # of the tolerance: rows as they are, neither moved nor scaled, may use so much of it
PIECE = 1 << 17  # numbers of rows that a task makes ready
SIDE = {4: 640, 8: 512}  # of square tiles, by bytes of a number
TASKS = 8  # that few rows are shared between, so that threads end together
PANELS, LEAST_SIDE = 5, 128  # that wide rows are cut into at least, if each has as many rows
SHARED = 6_000_000  # multiplications that are worth another thread
SYRK_COLUMNS = 160  # below, NumPy takes longer to mirror a product than to compute it twice
SHIFT = 8  # columns by which it is not seen that a product is of rows with themselves


@dataclass(frozen=True, eq=False)
class RowsWithNorms:
    """Rows A (n, d), dense or sparse, and their squared norms."""

    A: Matrix
    norms: Array
    _turned: dict[int, Matrix] = field(default_factory=dict, repr=False)

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
    def sparse(cls, X: Matrix, scale: Array, dtype: Any) -> Self:
        """Scaled, in this precision."""
        A = over(X, 1 / scale, dtype)
        return cls(A, square_norms(A))

    def turned(self, cols: slice) -> Matrix:
        """Some sparse rows by their columns, once."""
        if cols.start not in self._turned:
            self._turned[cols.start] = self.A[cols].tocsc()
        return self._turned[cols.start]

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
    def of(cls, X: Table, Z: Table, bandwidth: Bandwidth) -> GaussianPairs | None:
        """None where digits would be lost, or for few rows: others know how."""
        if X.items or X.sparse != Z.sparse:
            return None
        pairs = len(X) * len(Z)
        if pairs < MIN_PAIRS and (X.sparse or pairs * X.width < MIN_PRODUCTS):
            return None
        if X.sparse:
            return cls._moved(X, Z, bandwidth)
        return cls._raw(X, Z, bandwidth) or cls._moved(X, Z, bandwidth)

    @classmethod
    def _raw(cls, X: Table, Z: Table, bandwidth: Bandwidth) -> GaussianPairs | None:
        """Of rows as they are, where an offset that they have costs next to no digits."""
        if not isinstance(bandwidth, float):
            return None
        left = RowsWithNorms.raw(X.data)
        right = left if Z is X else RowsWithNorms.raw(Z.data)
        gamma = 0.5 / bandwidth**2 if bandwidth > 1e-100 else np.inf
        if not _rounding(left, right, X.dtype) * 2 * gamma <= RAW * TOLERANCE[X.dtype]:
            return None
        return cls._ready(left, right, gamma)

    @classmethod
    def _moved(cls, X: Table, Z: Table, bandwidth: Bandwidth) -> GaussianPairs | None:
        """About their mean where they are dense, in the precision that squared distances need."""
        b, centre = per_column(bandwidth, X.width), centre_of(X, Z)
        with np.errstate(over="ignore", divide="ignore"):
            scale = 1 / b

        def made(data: Matrix, dtype: Any) -> RowsWithNorms:
            if centre is None:
                return RowsWithNorms.sparse(data, scale, dtype)
            return RowsWithNorms.moved(data, centre, scale, dtype)

        for dtype in dict.fromkeys((X.dtype, np.dtype(np.float64))):
            left = made(X.data, dtype)
            right = left if Z is X else made(Z.data, dtype)
            if _rounding(left, right, dtype) <= TOLERANCE[X.dtype]:
                return cls._ready(left, right, 0.5)
        return None

    @classmethod
    def _ready(cls, left: RowsWithNorms, right: RowsWithNorms, gamma: float) -> Self:
        ready = left.ready()
        return cls(ready, ready if right is left else right.ready(), gamma)

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

    def _products(self, rows: slice, cols: slice, P: Array, upper: bool) -> None:
        if not isinstance(self.left.A, np.ndarray):
            X, Z = self.left.A, self.right.turned(cols)
            left, right = (X.indptr, X.indices, X.data), (Z.indptr, Z.indices, Z.data)
            gaussian.sparse_products(*left, rows.start, *right, P)
            return
        A, B = self.left.A[rows], self.right.A[cols]
        itself = self.left is self.right and rows == cols
        half = len(A) // 2 if A.shape[1] < SYRK_COLUMNS and itself else 0
        first = max(half - SHIFT, 0) if upper else 0  # of the columns that the lower rows need
        with np.errstate(all="ignore"):  # BLAS may leave flags of lanes that hold no entry
            np.matmul(A[half:], B[first:].T, out=P[half:, first:])
            if half:
                np.matmul(A[:half], B.T, out=P[:half])

    def matrix(self, out: Array, *, mirrored: bool = True) -> Array:
        """out = all values: of rows with themselves one triangle, and its mirror image unless only
        what is on and above the diagonal is asked for."""
        symmetric = self.left is self.right
        down, across = self.tile(symmetric=symmetric)
        jobs = [
            (rows, cols)
            for rows in cuts(out.shape[0], down)
            for cols in cuts(out.shape[1], across)
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
        if not isinstance(self.left.A, np.ndarray):
            return side
        parts = max(-(-n // side), 2 if n * n * self.left.A.shape[1] > SHARED else 1)
        return -(-n // (parts * 8)) * 8

    def tile(self, *, symmetric: bool) -> tuple[int, int]:
        """The most rows and columns of a tile."""
        n, m = self.left.A.shape[0], self.right.A.shape[0]
        side = SIDE[self.dtype.itemsize]
        if symmetric and self.left.A.shape[1] >= WIDE_COLUMNS:  # so few rows take time, shared
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


def _rounding(left: RowsWithNorms, right: RowsWithNorms, dtype: Any) -> float:
    """Of squared distances by products."""
    return float(np.finfo(dtype).eps / 2 * (left.norms.max() + right.norms.max()))


def _pieces(X: Array) -> list[slice]:
    return cuts(len(X), max(1, PIECE // X.shape[1]))
