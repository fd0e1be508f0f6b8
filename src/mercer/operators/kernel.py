"""KernelOperator: a kernel matrix seen only through @, blocks, its diagonal and the pullback to its
parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mercer.inputs import Array, Rows
from mercer.kernels.base import Kernel, empty
from mercer.operators.gradients import gradients_of
from mercer.ops import tiles
from mercer.ops.distances import WIDE_COLUMNS
from mercer.ops.threads import parallel_map
from mercer.ops.triangles import multiplied
from mercer.pairs import Side, Tile, centre_of
from mercer.pairs.gaussian import GaussianPairs
from mercer.tensors import common_place

Columns = list[tuple[slice, Side | None]]
Values = Iterator[tuple[slice, Array]]  # of tiles from left to right, and the columns they are of
TileValues = Callable[..., Values]  # of rows and columns; `upper`: j >= i suffices where they meet
WIDE_BYTES = 2 << 20  # of the rows on one side of a tile
# sums kept apart in a symmetric product, and so the most threads that share one
LANES, LANE_BYTES = 16, 16 << 20
# columns are kept prepared between tiles while they are smaller than this; wide ones, which take
# about as long to prepare as to multiply, also while they are larger
KEPT_BYTES, KEPT_WIDE_BYTES = 24 << 20, 128 << 20


class KernelOperator:
    """K = k(X, Z), never formed.

    Parameters
    ----------
    kernel : Kernel
        The k.
    X : array-like or sparse of shape (n, d), data frame, or list of items
        The rows.
    Z : as X, of shape (m, d), default=None
        The columns; None is X.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> K = KernelOperator(Gaussian(), X)
    >>> K.shape, bool(np.allclose(K @ np.ones(1000), Gaussian()(X).sum(1)))
    ((1000, 1000), True)
    """

    __array_ufunc__ = None

    def __init__(self, kernel: Kernel, X: Any, Z: Any = None) -> None:
        if not isinstance(kernel, Kernel):
            raise ValueError(f"kernel must be a kernel, got {kernel!r}.")
        self.X, self.Z = kernel.tables(X, Z)
        self.kernel = kernel.settled(self.X, self.Z)
        self.symmetric = self.Z is self.X
        self.shape = len(self.X), len(self.Z)
        self.dtype = self.X.dtype

    def __repr__(self) -> str:
        return f"KernelOperator({self.kernel!r}, shape={self.shape}, dtype={self.dtype})"

    @property
    def T(self) -> KernelOperator:
        """The transposed operator, k(Z, X)."""
        return self if self.symmetric else KernelOperator(self.kernel, self.Z, self.X)

    def block(self, rows: Rows = slice(None), cols: Rows = slice(None)) -> Array:
        """K[rows, cols], formed."""
        whole = (
            self.symmetric and isinstance(rows, slice) and isinstance(cols, slice) and rows == cols
        )
        return np.asarray(self.kernel(self.X[_many(rows)], None if whole else self.Z[_many(cols)]))

    def upper(self) -> Array:
        """A new array with K on and above the diagonal of a symmetric operator; what is below is
        not told."""
        if self._fast is None:
            return self.block()
        return self._fast.matrix(empty(self.shape, self.dtype), mirrored=False)

    def restrict(self, rows: Rows, cols: Rows | None = None) -> KernelOperator:
        """The operator of some rows, and of these or other columns."""
        left = self.X[_many(rows)]
        if cols is None and self.symmetric:
            return KernelOperator(self.kernel, left)
        return KernelOperator(self.kernel, left, self.Z[_many(rows if cols is None else cols)])

    def astype(self, dtype: DTypeLike) -> KernelOperator:
        """The same matrix with its rows, and so its values, in another precision.

        Items have but one.
        """
        if self.dtype == dtype or self.X.items:
            return self
        left = self.X.astype(dtype)
        return KernelOperator(self.kernel, left, None if self.symmetric else self.Z.astype(dtype))

    def diag(self) -> Array:
        """The diagonal of a square operator: k(x_i, z_i)."""
        if self.shape[0] != self.shape[1]:
            raise ValueError(f"diag needs as many rows as columns; K has shape {self.shape}.")
        return self._diagonal.copy()

    @cached_property
    def _diagonal(self) -> Array:
        return self.kernel.diag(self.X) if self.symmetric else self.kernel.paired(self.X, self.Z)

    def __matmul__(self, V: ArrayLike) -> Array:
        """K @ V for one vector (m,) or many (m, q)."""
        return self.product(V, self.values)

    def product(self, V: ArrayLike, values: TileValues) -> Array:
        """K @ V from the values of tiles, computed or kept."""
        W = self._vectors(V, self.shape[1], "V")
        lanes = min(LANES, LANE_BYTES // max(8 * W.size, 1)) if self.symmetric else 0
        out = self._times_symmetric(W, lanes, values) if lanes > 1 else self._times(W, values)
        out = out.astype(np.result_type(self.dtype, W.dtype), copy=False)
        return out if np.ndim(V) == 2 else out[:, 0]

    def _times(self, W: Array, values: TileValues) -> Array:
        """K @ W by rows of tiles."""
        out = np.empty((self.shape[0], W.shape[1]), np.result_type(self.dtype, W.dtype))

        def add(rows: slice) -> None:
            total = np.zeros((rows.stop - rows.start, W.shape[1]))
            for cols, K in values(rows, self._columns):
                total += K @ W[cols]
            out[rows] = total

        tiles.settle_allocator()
        parallel_map(add, tiles.cuts(self.shape[0], self._rows_step))
        return out

    def _times_symmetric(self, W: Array, lanes: int, values: TileValues) -> Array:
        """K @ W by one triangle, each tile used twice; in lanes, so that threads change nothing."""
        parts = self._parts()

        def add(lane: int) -> Array:
            total = np.zeros(W.shape)
            for rows, columns in parts[lane::lanes]:
                for cols, K in values(rows, columns, upper=True):
                    if cols == rows:
                        total[rows] += multiplied(K, W[rows])
                    else:
                        total[rows] += K @ W[cols]
                        total[cols] += K.T @ W[rows]
            return total

        tiles.settle_allocator()
        return np.sum(parallel_map(add, range(min(lanes, len(parts)))), axis=0)

    def _parts(self) -> list[tuple[slice, Columns]]:
        """The triangle by tiles; where these share what is computed of rows, by rows of tiles."""
        columns = self.triangle()
        rows = [(columns[i][0], columns[i:]) for i in range(len(columns))]
        if self._fast is None:
            return rows
        return [(left, [one]) for left, right in rows for one in right]

    def pullback(self, U: ArrayLike, V: ArrayLike) -> Array:
        """d tr(U'KV) / d parameter, in the order of `kernel.parameters()`.

        U is (n,) or (n, q), V (m,) or (m, q).
        """
        U, V = self._vectors(U, self.shape[0], "U"), self._vectors(V, self.shape[1], "V")
        if U.shape[1] != V.shape[1]:
            raise ValueError(
                f"U and V must have as many columns as each other, got {U.shape[1]} and {V.shape[1]}."
            )

        # Of a symmetric operator one triangle: the weights of a pair and of its mirror image add.
        # Tiles are those of the formula, whose sides are copies of rows.
        across = tiles.square if self.symmetric else tiles.columns
        columns = self._prepared(self._step(across(self.dtype.itemsize)))

        def add(i: int) -> Array:
            rows, right = (columns[i][0], columns[i:]) if self.symmetric else (pieces[i], columns)
            found = self._tiles(rows, right)
            return np.sum(
                [self.kernel.dual(tile, self._outer(U, V, rows, cols)) for cols, tile in found],
                axis=0,
            )

        pieces = tiles.cuts(self.shape[0], self._step(tiles.TILE_ROWS))
        tiles.settle_allocator()
        return np.sum(
            parallel_map(add, range(len(columns) if self.symmetric else len(pieces))), axis=0
        )

    def _outer(self, U: Array, V: Array, rows: slice, cols: slice) -> Array:
        """The weights of a tile in tr(U'KV)."""
        once = U[rows] @ V[cols].T
        return once + V[rows] @ U[cols].T if self.symmetric and rows != cols else once

    def input_gradients(
        self, A: ArrayLike, rows: Rows | None = None, *, near: float = 0.0
    ) -> Array:
        """The gradients of the functions sum_j A_jt k(., z_j) at the rows of X, or at chosen ones.

        Parameters
        ----------
        A : array-like of shape (m,) or (m, t)
            Weights of the columns, for each function.
        rows : slice, mask or positions, default=None
            Which rows of X; None is all.
        near : float, default=0.0
            Distances below so many bandwidths count as that where slopes divide by them, as
            those of rough kernels do: near-copies then do not dominate.

        Returns
        -------
        ndarray of shape (n, t, d)
            0 is what a pair adds where its distance, or under the 1-norm a column's difference,
            is 0. No (n, m, d) array is formed.

        Examples
        --------
        >>> from mercer.kernels import Polynomial
        >>> K = KernelOperator(Polynomial(degree=2), [[1.0], [2.0]])
        >>> K.input_gradients([1.0, 0.0], rows=[1])
        array([[[6.]]])
        """
        return gradients_of(self.kernel, self.X, self.Z, A, rows, near).all()

    def gradient_outer_product(
        self, A: ArrayLike, rows: Rows | None = None, diagonal: bool = False, *, near: float = 0.0
    ) -> Array:
        """The mean over rows of J'J, where J (t, d) holds the gradients of all functions there.

        That is the mean over rows and the sum over outputs of g g', so that it does not change
        when outputs are rotated. One pass over tiles, in float64.

        Parameters
        ----------
        A : array-like of shape (m,) or (m, t)
            Weights of the columns, for each function sum_j A_jt k(., z_j).
        rows : slice, mask or positions, default=None
            Which rows of X the mean is over; None is all.
        diagonal : bool, default=False
            Whether only the diagonal is asked for.
        near : float, default=0.0
            As in `input_gradients`.

        Returns
        -------
        ndarray of shape (d, d), or (d,) where `diagonal`

        Examples
        --------
        >>> from mercer.kernels import Linear
        >>> K = KernelOperator(Linear(), [[1.0, 2.0], [0.0, 1.0]])
        >>> K.gradient_outer_product([1.0, 1.0])
        array([[1., 3.],
               [3., 9.]])
        """
        return gradients_of(self.kernel, self.X, self.Z, A, rows, near).outer(diagonal=diagonal)

    def matvec(self, v: ArrayLike) -> Array:
        """K @ v, as SciPy's iterative solvers ask for it."""
        return self @ v

    matmat = matvec

    def rmatvec(self, v: ArrayLike) -> Array:
        """K.T @ v."""
        return self.T @ v

    def __rmatmul__(self, V: ArrayLike) -> Array:
        """V @ K, for (n,) or (q, n)."""
        return np.asarray((self.T @ np.asarray(V).T).T)

    # tiles
    def values(self, rows: slice, columns: Columns, *, upper: bool = False) -> Values:
        """K of these rows by columns, from left to right."""
        if self._fast is not None:
            yield from self._fast_values(rows, columns, upper)
            return
        for cols, tile in self._tiles(rows, columns):
            shape = (len(tile.X), len(tile.Z))
            yield cols, tiles.broadcast(self.kernel.on(tile), shape, self.dtype)

    def _fast_values(self, rows: slice, columns: Columns, upper: bool) -> Values:
        """The same by loops of the kernel; a tile is read before the next is asked for."""
        assert self._fast is not None
        n, wide = rows.stop - rows.start, max(cols.stop - cols.start for cols, _ in columns)
        room, found = np.empty(n * wide, self._fast.dtype), np.empty(n * wide, self.dtype)
        for cols, _ in columns:
            m = cols.stop - cols.start
            K = found[: n * m].reshape(n, m)
            self._fast.fill(rows, cols, K, 0, 0, room, upper and cols == rows)
            yield cols, K

    @cached_property
    def _centre(self) -> Array | None:
        return centre_of(self.X, self.Z)

    @cached_property
    def _fast(self) -> GaussianPairs | None:
        return self.kernel.fast(self.X, self.Z)

    def triangle(self) -> Columns:
        """The pieces of a symmetric operator's rows; those from number i on are the columns of the
        i-th.
        """
        if self._fast is not None:
            return self._plain(self._fast.tile(symmetric=True)[0])
        return self._prepared(self._step(tiles.square(self.dtype.itemsize)))

    def _tiles(self, rows: slice, columns: Columns) -> Iterator[tuple[slice, Tile]]:
        """The tiles of these rows, from left to right: an order that does not depend on the
        threads.
        """
        x = Side(self.X[rows], self._centre)
        for cols, z in columns:
            yield (
                cols,
                Tile(
                    x,
                    z or Side(self.Z[cols], self._centre),
                    rows.start - cols.start if self.symmetric else None,
                ),
            )

    @property
    def _rows_step(self) -> int:
        """Rows of a tile."""
        if self._fast is not None:
            return self._fast.tile(symmetric=False)[0]
        return self._step(tiles.TILE_ROWS)

    @cached_property
    def _columns(self) -> Columns:
        if self._fast is not None:
            return self._plain(self._fast.tile(symmetric=False)[1])
        wide = tiles.WIDE if self.Z.items else 1
        return self._prepared(self._step(wide * tiles.columns(self.dtype.itemsize)))

    def _plain(self, width: int) -> Columns:
        """The columns of tiles of loops, which have the rows ready themselves."""
        return [(cols, None) for cols in tiles.cuts(self.shape[1], width)]

    def _step(self, most: int) -> int:
        """Rows of a piece: fewer where they are wide."""
        return max(32, min(most, WIDE_BYTES // max(1, self.X.width * self.dtype.itemsize)))

    def _prepared(self, width: int) -> Columns:
        """The columns of tiles; what they compute of themselves is kept where that takes little
        memory.
        """
        pieces = tiles.cuts(self.shape[1], width)
        each, wide = len(self.kernel.parameters()), self.Z.width >= WIDE_COLUMNS
        copies = 1 + each if wide else 2 + 2 * each  # of the columns, scaled by each bandwidth
        most = KEPT_WIDE_BYTES if wide else KEPT_BYTES
        small = copies * self.Z.width * self.shape[1] * self.dtype.itemsize <= most  # items too
        return [(cols, Side(self.Z[cols], self._centre) if small else None) for cols in pieces]

    def _vectors(self, V: ArrayLike, n: int, name: str) -> Array:
        V = np.asarray(V)
        V = V.astype(np.float64) if V.dtype.kind in "biu" else V
        if V.ndim not in (1, 2) or len(V) != n or V.dtype.kind != "f":
            raise ValueError(
                f"{name} must be numbers of shape ({n},) or ({n}, q), got shape {V.shape} of dtype {V.dtype}."
            )
        return V.reshape(n, -1)


def _many(rows: Rows) -> slice | Array:
    """Rows as a slice, a mask or a list of positions."""
    if isinstance(rows, slice):
        return rows
    index = np.atleast_1d(np.asarray(rows))
    return index if index.dtype == bool else index.astype(np.intp, copy=False)


def operator(kernel: Kernel, X: Any, Z: Any = None) -> Any:
    """The kernel matrix K = k(X, Z) as an operator: `K @ v`, `K.block()`, `K.diag()`,
    `K.pullback(U, V)`, `K.shape`, `K.dtype`.

    The parameters are those of `KernelOperator`; of tensors on a GPU it is a
    `mercer.gpu.operator.GPUOperator` there, whose products with tensors are tensors.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> operator(Linear(), [[1.0], [2.0]]) @ np.ones(2)
    array([3., 6.])
    """
    if common_place(X, Z) is not None:
        return import_module("mercer.gpu.rows").operator(kernel, X, Z)
    return KernelOperator(kernel, X, Z)
