"""Operators that are read by tiles, written where they are to be kept: what solvers of duals ask of
a kernel, perhaps about a point."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mercer.inputs import Array, Rows, Table
from mercer.kernels import Gaussian
from mercer.kernels.base import Kernel
from mercer.operators.base import TiledOperator
from mercer.operators.gradients import Gradients, chosen, gradients_of, weights
from mercer.operators.kernel import KernelOperator
from mercer.operators.tiles import (
    TILE_COLUMNS,
    TILE_ROWS,
    BitTiles,
    CentredTiles,
    Tiles,
    tiles_about,
    tiles_of,
)
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.pairs import centre_of
from mercer.pairs.gaussian import GaussianPairs

MAX_FLOAT32_VALUE = 1e15  # of kernel values that float32 can hold with room for sums
MAX_VALUE = {4: 1e30, 8: 1e100}  # of kernel values of rows of this precision


class TileOperator:
    """K = k(X, Z), never formed beyond a block, its values in a precision of their own.

    Fast tiles are taken where they are precise enough: Gaussians in float32, and of rows of
    bits.

    Parameters
    ----------
    kernel : Kernel
        The k.
    X : Table
        The rows.
    dtype : dtype, default=float64
        Of the values, where their range allows.
    Z : Table, default=None
        The columns; None is X.
    diagonal : ndarray of shape (n,), default=None
        k(x, x) in float64, where it is known already.
    given : Table, default=None
        The rows of a square operator as they came, where they were sparse and X is dense:
        what few values are exact of.
    gpu : str, default=None
        The torch device on which solvers of duals take products with its rows; None: the CPU.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> K = TileOperator(Linear(), Table(np.array([[1.0], [2.0]])))
    >>> K.block([1], [0, 1]), K.diag(), K @ np.ones(2)
    (array([[2., 4.]]), array([1., 4.]), array([3., 6.]))
    """

    __array_ufunc__ = None

    def __init__(
        self,
        kernel: Kernel,
        X: Table,
        dtype: DTypeLike = np.float64,
        Z: Table | None = None,
        *,
        diagonal: Array | None = None,
        given: Table | None = None,
        gpu: str | None = None,
    ) -> None:
        self.kernel, self.X, self.Z, self.symmetric = kernel, X, X if Z is None else Z, Z is None
        self.given, self.gpu = given, gpu
        self.shape = len(self.X), len(self.Z)
        self._diag = checked_diag(kernel, X) if diagonal is None else diagonal
        self.scale, self.edge = self._diag, np.zeros(self.shape[1])
        largest = (
            self._diag
            if self.symmetric
            else np.concatenate([self._diag, checked_diag(kernel, self.Z)])
        )
        self.dtype = in_range(dtype, largest)

    @cached_property
    def centre(self) -> Array | None:
        """What distances are measured about."""
        return centre_of(self.X, self.Z)

    @cached_property
    def _tiles(self) -> Tiles:
        return tiles_of(self.kernel, self.X, self.Z, self.dtype, self.centre)

    @property
    def pairs(self) -> GaussianPairs | None:
        """All values of a square operator by loops of their own; None where there are none, or
        tiles are quicker."""
        kernel, X = self.kernel, self.X
        if type(kernel) is not Gaussian or not self.symmetric or X.items:
            return None
        if not X.sparse and BitTiles.of(kernel, X, X, self.dtype) is not None:
            return None
        about = self.__dict__.get("centre")  # where others have asked for it
        return GaussianPairs.of(X, X, kernel.bandwidth, self.dtype, about)

    def side(self, rows: Rows, *, left: bool) -> Any:
        """Rows or columns of tiles, made ready."""
        if self.symmetric and (made := getattr(self._tiles, "whole", None)) is not None:
            return tuple(part[rows] for part in made)
        return self._tiles.side((self.X if left else self.Z)[rows], left=left)

    def fill(self, left: Any, right: Any, out: Array) -> None:
        """out = K of these rows and columns."""
        self._tiles.fill(left, right, out)

    def block(
        self, rows: Rows = slice(None), cols: Rows = slice(None), out: Array | None = None
    ) -> Array:
        return block(self, rows, cols, out)

    def diag(self) -> Array:
        return own_diagonal(self, self._diag)

    def __matmul__(self, V: ArrayLike) -> Array:
        return product(self, V)

    def pullback(self, U: ArrayLike, V: ArrayLike) -> Array:
        return KernelOperator(self.kernel, self.X, None if self.symmetric else self.Z).pullback(
            U, V
        )

    def input_gradients(
        self, A: ArrayLike, rows: Rows | None = None, *, near: float = 0.0
    ) -> Array:
        """As `KernelOperator.input_gradients`, from the rows in their own precision."""
        return gradients_of(self.kernel, self.X, self.Z, A, rows, near).all()

    def gradient_outer_product(
        self, A: ArrayLike, rows: Rows | None = None, diagonal: bool = False, *, near: float = 0.0
    ) -> Array:
        """As `KernelOperator.gradient_outer_product`: mean over rows, sum over outputs."""
        return gradients_of(self.kernel, self.X, self.Z, A, rows, near).outer(diagonal=diagonal)

    def restrict(self, rows: Rows, cols: Rows | None = None) -> TileOperator:
        given = None if self.given is None or cols is not None else self.given[rows]
        some = _columns_of(self, rows, cols)
        return TileOperator(self.kernel, self.X[rows], self.dtype, some, given=given, gpu=self.gpu)

    def astype(self, dtype: DTypeLike) -> TileOperator:
        Z, own = None if self.symmetric else self.Z, self._diag
        found = TileOperator(
            self.kernel, self.X, dtype, Z, diagonal=own, given=self.given, gpu=self.gpu
        )
        found.__dict__["centre"] = self.centre
        return found

    @cached_property
    def wide(self) -> TileOperator:
        """The same in float64, whatever the rows are."""
        if self.dtype == np.float64 and (self.X.items or self.X.dtype == np.float64):
            return self
        return TileOperator(
            self.kernel,
            self.X.astype(np.float64),
            Z=None if self.symmetric else self.Z.astype(np.float64),
            gpu=self.gpu,
        )

    def balanced(self) -> TileOperator | AboutOperator:
        """For duals that sum to zero: about the mean of the rows.

        Where they share most of k(x, x).
        """
        if not self.symmetric:
            return self
        tiles = tiles_about(self.kernel, self.X, self.dtype, self._diag)
        return self if tiles is None else AboutOperator(tiles, self.X, self.dtype, gpu=self.gpu)


class AboutOperator:
    """k(x, z) - k(x, p) - k(p, z) + k(p, p): what duals that sum to zero see of k(x, z).

    To all its digits.

    Parameters
    ----------
    tiles : AboutTiles or DifferenceTiles
        The tiles of the kernel about the point p.
    X : Table
        The rows.
    dtype : dtype
        Of the values, where their range allows.
    Z : Table, default=None
        The columns; None is X.
    gpu : str, default=None
        As of `TileOperator`.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> X = Table(np.array([[1e9], [1e9 + 2]]))
    >>> K = TileOperator(Linear(), X).balanced()
    >>> K.block(), K.edge.tolist()
    (array([[ 1., -1.],
           [-1.,  1.]]), [-1000000001.0, 1000000001.0])
    """

    __array_ufunc__ = None

    def __init__(
        self,
        tiles: CentredTiles,
        X: Table,
        dtype: DTypeLike,
        Z: Table | None = None,
        *,
        gpu: str | None = None,
    ) -> None:
        self.X, self.Z, self.symmetric, self.gpu = X, X if Z is None else Z, Z is None, gpu
        self.shape, self.kernel, self._about = (len(self.X), len(self.Z)), tiles.kernel, tiles
        raw = checked_diag(self.kernel, X)
        self._diag, self.edge = np.maximum(tiles.diag(X), 0.0), tiles.edge(self.Z)
        self.scale = raw if tiles.rounded(X) else self._diag
        self.dtype = in_range(dtype, self._diag)
        self._tiles: Tiles = tiles.astype(self.dtype)

    def side(self, rows: Rows, *, left: bool) -> Any:
        """Rows or columns of tiles, made ready."""
        return self._tiles.side((self.X if left else self.Z)[rows], left=left)

    def fill(self, left: Any, right: Any, out: Array) -> None:
        """out = K of these rows and columns."""
        self._tiles.fill(left, right, out)

    def block(
        self, rows: Rows = slice(None), cols: Rows = slice(None), out: Array | None = None
    ) -> Array:
        return block(self, rows, cols, out)

    def diag(self) -> Array:
        return own_diagonal(self, self._diag)

    def __matmul__(self, V: ArrayLike) -> Array:
        return product(self, V)

    def pullback(self, U: ArrayLike, V: ArrayLike) -> Array:
        """That of the kernel with p as one more row, of weights less the sums of the others."""
        p = self._about.p[None]
        X, Z = (Table(np.concatenate([t.data.astype(np.float64), p])) for t in (self.X, self.Z))
        U, V = (
            np.concatenate([W, -W.sum(0, keepdims=True)])
            for W in (np.asarray(U, np.float64), np.asarray(V, np.float64))
        )
        return KernelOperator(self.kernel, X, Z).pullback(U, V)

    def input_gradients(
        self, A: ArrayLike, rows: Rows | None = None, *, near: float = 0.0
    ) -> Array:
        """As `KernelOperator.input_gradients`, of the kernel about p."""
        return self._gradients(A, rows, near).all()

    def gradient_outer_product(
        self, A: ArrayLike, rows: Rows | None = None, diagonal: bool = False, *, near: float = 0.0
    ) -> Array:
        """As `KernelOperator.gradient_outer_product`, of the kernel about p."""
        return self._gradients(A, rows, near).outer(diagonal=diagonal)

    def _gradients(self, A: ArrayLike, rows: Rows | None, near: float) -> Gradients:
        """Those of the kernel with p as one more column, of weights less the sums of the others."""
        W, wide = weights(A, self.shape[1]), np.float64
        Z = Table(np.concatenate([self.Z.data.astype(wide), self._about.p[None]]))
        W = np.concatenate([W, -W.sum(0, dtype=wide)[None]])
        return Gradients(self.kernel, chosen(self.X.astype(wide), rows), Z, W, near)

    def restrict(self, rows: Rows, cols: Rows | None = None) -> AboutOperator:
        Z = _columns_of(self, rows, cols)
        return AboutOperator(self._about, self.X[rows], self.dtype, Z, gpu=self.gpu)

    def astype(self, dtype: DTypeLike) -> AboutOperator:
        Z = None if self.symmetric else self.Z
        return AboutOperator(self._about, self.X, dtype, Z, gpu=self.gpu)

    @cached_property
    def wide(self) -> AboutOperator:
        """The same in float64."""
        return self if self.dtype == np.float64 else self.astype(np.float64)

    def balanced(self) -> AboutOperator:
        """It is so already."""
        return self


# what all operators that are read by tiles share
def block(op: TiledOperator, rows: Rows, cols: Rows, out: Array | None = None) -> Array:
    """K[rows, cols], by columns of tiles in threads."""
    i, j = _places(rows, op.shape[0]), _places(cols, op.shape[1])
    out = np.empty((len(i), len(j)), op.dtype) if out is None else out
    left = [(s, op.side(i[s], left=True)) for s in cuts(len(i), TILE_ROWS)]

    def work(c: slice) -> None:
        right, tile = (
            op.side(j[c], left=False),
            np.empty((min(TILE_ROWS, len(i)), c.stop - c.start), op.dtype),
        )
        for s, side in left:
            op.fill(side, right, tile[: s.stop - s.start])
            out[s, c] = tile[: s.stop - s.start]

    parallel_map(work, cuts(len(j), TILE_COLUMNS))
    return with_diagonal(op, out, i, j)


def product(op: TiledOperator, V: ArrayLike) -> Array:
    """K @ V, summed in float64 from left to right, whatever the number of threads."""
    V = np.asarray(V)
    W = V.reshape(len(V), -1)
    if len(V) != op.shape[1]:
        raise ValueError(f"V must have {op.shape[1]} rows, got shape {V.shape}.")
    right = [(c, op.side(c, left=False)) for c in cuts(op.shape[1], TILE_COLUMNS)]

    def work(rows: slice) -> Array:
        left, total = op.side(rows, left=True), np.zeros((rows.stop - rows.start, W.shape[1]))
        for c, side in right:
            tile = np.empty((len(total), c.stop - c.start), op.dtype)
            op.fill(left, side, tile)
            total += tile @ W[c]
        return total

    found = parallel_map(work, cuts(op.shape[0], TILE_COLUMNS))
    out = np.concatenate(found) if found else np.zeros((0, W.shape[1]))
    return out.reshape(op.shape[0], *V.shape[1:]).astype(np.result_type(op.dtype, V.dtype))


def own_diagonal(op: TileOperator | AboutOperator, found: Array) -> Array:
    """The diagonal of a square operator."""
    if not op.symmetric:
        raise ValueError(
            f"diag is that of rows with themselves; K of shape {op.shape} is of two sets of rows."
        )
    return found


def checked_diag(kernel: Kernel, X: Table) -> Array:
    """k(x, x) in float64, which bounds all values of a kernel."""
    with np.errstate(over="ignore"):
        return checked(kernel.diag(X))


def checked(diagonal: Array) -> Array:
    most = MAX_VALUE[diagonal.dtype.itemsize]
    diagonal = diagonal.astype(np.float64)
    if not (np.abs(diagonal) < most).all():
        raise ValueError(
            "the kernel of some row of X with itself is too large; scale the columns of X first."
        )
    return diagonal


def in_range(dtype: DTypeLike, diagonal: Array) -> np.dtype[Any]:
    """This precision, or float64 where values beside this diagonal are beyond it."""
    return np.dtype(dtype if np.abs(diagonal).max() < MAX_FLOAT32_VALUE else np.float64)


def with_diagonal(op: TiledOperator, K: Array, rows: Array, cols: Array) -> Array:
    """The diagonal of the kernel where a row meets itself."""
    if op.symmetric:
        _, i, j = np.intersect1d(rows, cols, assume_unique=True, return_indices=True)
        K[i, j] = op.diag()[rows[i]]
    return K


def _places(rows: Rows, n: int) -> Array:
    return np.atleast_1d(np.arange(n)[rows])


def _columns_of(op: TileOperator | AboutOperator, rows: Rows, cols: Rows | None) -> Table | None:
    """The columns of a restriction: None where they are its rows."""
    return None if cols is None and op.symmetric else op.Z[rows if cols is None else cols]
