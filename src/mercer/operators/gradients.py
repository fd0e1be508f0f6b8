"""Derivatives by the inputs of the functions sum_j A_jt k(., z_j), and their mean outer product, in
one pass over tiles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mercer.inputs import Array, Rows, Table
from mercer.kernels.base import Kernel
from mercer.ops import tiles
from mercer.ops.threads import parallel_map
from mercer.pairs import Side, Tile, centre_of
from mercer.pairs.inputs import NO_COLUMNS, dense_block, input_gradients

SUM_BYTES = 8 << 20  # of the gradients of a piece of rows, kept while tiles add to them
WIDE_BYTES = 2 << 20  # of the rows on one side of a tile
LEAST_ROWS = 32  # of a piece
LANES, LANE_BYTES = 16, 64 << 20  # sums of outer products kept apart, and what they may take


class Gradients:
    """The gradients at rows X of t functions with weights A (m, t) of columns Z, by pieces.

    Parameters
    ----------
    kernel : Kernel
        The k.
    X : Table
        The rows, (n, d).
    Z : Table
        The columns, (m, d).
    A : ndarray of shape (m, t)
        Weights of the columns, one function each.
    near : float, default=0.0
        Distances below so many bandwidths count as that where slopes divide by them.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> X = Table(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> Gradients(Linear(), X, X, np.array([[1.0], [2.0]])).all()
    array([[[ 7., 10.]],
    <BLANKLINE>
           [[ 7., 10.]]])
    """

    def __init__(self, kernel: Kernel, X: Table, Z: Table, A: Array, near: float = 0.0) -> None:
        if X.items or Z.items:
            raise ValueError(NO_COLUMNS)
        if not (np.isfinite(near) and near >= 0):
            raise ValueError(f"near must be a number >= 0, of bandwidths, got {near!r}.")
        self.kernel, self.X, self.Z, self.A, self.near = kernel, X, Z, A, float(near)
        self.centre = centre_of(X, Z)
        itemsize = X.dtype.itemsize
        self.widest = max(LEAST_ROWS, WIDE_BYTES // max(1, X.width * itemsize))
        self.columns = tiles.cuts(len(Z), min(tiles.columns(itemsize), self.widest))
        each = 8 * X.width  # bytes of one gradient
        self.outputs = tiles.cuts(A.shape[1], max(1, SUM_BYTES // (LEAST_ROWS * each)))
        shared = min(A.shape[1], self.outputs[0].stop) if self.outputs else 1
        most = max(LEAST_ROWS, SUM_BYTES // max(1, shared * each))
        self.rows = tiles.cuts(len(X), min(tiles.TILE_ROWS, self.widest, most))

    def piece(self, rows: slice) -> Iterator[tuple[slice, Array]]:
        """The gradients at some rows, (rows, outputs, d) in float64, as many outputs at a time as
        memory allows; columns from left to right."""
        x = Side(dense_block(self.X[rows]), self.centre)
        for some in self.outputs:
            total = np.zeros((len(x), some.stop - some.start, self.X.width))
            for cols in self.columns:
                tile = Tile(
                    x, Side(dense_block(self.Z[cols]), self.centre), self._diagonal(rows, cols)
                )
                total += input_gradients(self.kernel.on, tile, self.A[cols, some], self.near)
            yield some, total

    def _diagonal(self, rows: slice, cols: slice) -> int | None:
        return rows.start - cols.start if self.X is self.Z else None

    def all(self) -> Array:
        """(n, t, d)"""
        shape = len(self.X), self.A.shape[1], self.X.width
        out = np.empty(shape, np.result_type(self.X.dtype, self.A.dtype))

        def add(rows: slice) -> None:
            for some, G in self.piece(rows):
                out[rows, some] = G

        tiles.settle_allocator()
        parallel_map(add, self.rows)
        return out

    def outer(self, *, diagonal: bool) -> Array:
        """The mean over rows of the sum over outputs of g g', (d, d), or its diagonal, (d,); lanes
        add up apart, so that threads change nothing."""
        d = self.X.width
        shape = (d,) if diagonal else (d, d)
        lanes = min(LANES, len(self.rows), max(1, LANE_BYTES // (8 * int(np.prod(shape)))))

        def add(lane: int) -> Array:
            total = np.zeros(shape)
            for rows in self.rows[lane::lanes]:
                for _, G in self.piece(rows):
                    g = G.reshape(-1, d)
                    total += np.einsum("ij,ij->j", g, g) if diagonal else g.T @ g
            return total

        tiles.settle_allocator()
        return np.sum(parallel_map(add, range(lanes)), axis=0) / len(self.X)


def weights(A: ArrayLike, m: int) -> Array:
    """One column of weights for each function."""
    A = np.asarray(A)
    A = A.astype(np.float64) if A.dtype.kind in "biu" else A
    if A.ndim not in (1, 2) or len(A) != m or A.dtype.kind != "f":
        raise ValueError(
            f"A must be numbers of shape ({m},) or ({m}, t), got shape {A.shape} of dtype {A.dtype}."
        )
    return A if A.ndim == 2 else A[:, None]


def gradients_of(
    kernel: Kernel, X: Table, Z: Table, A: ArrayLike, rows: Rows | None, near: float
) -> Gradients:
    """Those at chosen rows of X."""
    return Gradients(kernel, chosen(X, rows), Z, weights(A, len(Z)), near)


def chosen(X: Table, rows: Rows | None) -> Table:
    """Some rows, at least one; all of them are the table itself."""
    if rows is None:
        return X
    index = np.atleast_1d(np.arange(len(X))[rows])
    if not len(index):
        raise ValueError("rows chooses none; give at least one row.")
    return X[index]
