"""Operator: what a kernel matrix is to those who learn from it, whether it is computed tile by
tile, kept, or given."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from mercer.inputs import Array, Rows, Table


class Operator(Protocol):
    """K (n, m), seen through products, blocks, its diagonal and the pullback to its parameters.

    Examples
    --------
    >>> from mercer.operators import GivenOperator
    >>> K: Operator = GivenOperator([[2.0, 1.0], [1.0, 3.0]])
    >>> dense(K, np.float64)
    array([[2., 1.],
           [1., 3.]])
    """

    X: Table  # what the rows of K are made of: rows of a table, or the values themselves

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __matmul__(self, V: ArrayLike) -> Array:
        """K @ V for one vector (m,) or many (m, q)."""

    def block(self, rows: Rows = ..., cols: Rows = ...) -> Array:
        """K[rows, cols], formed."""

    def diag(self) -> Array:
        """The diagonal of a square K."""

    def pullback(self, U: ArrayLike, V: ArrayLike) -> Array:
        """d tr(U'KV) / d parameter."""

    def restrict(self, rows: Rows, cols: Rows | None = None) -> Operator:
        """The operator of some rows, and of these or other columns."""

    def astype(self, dtype: DTypeLike) -> Operator:
        """The same matrix with its values in another precision."""


class TiledOperator(Operator, Protocol):
    """A kernel matrix that is read by tiles, as solvers of duals do it.

    For duals that sum to zero, perhaps about a point.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> from mercer.operators import TileOperator
    >>> K: TiledOperator = TileOperator(Linear(), Table(np.array([[1.0], [2.0]])))
    >>> out = np.empty((2, 2))
    >>> K.fill(K.side(slice(None), left=True), K.side(slice(None), left=False), out)
    >>> out
    array([[1., 2.],
           [2., 4.]])
    """

    symmetric: bool  # whether columns are the rows themselves
    scale: Array  # (n,): what the rounding of k(x, x) is relative to
    # (m,): what the kernel has more, by column (what it has more by row, duals that sum to zero do
    # not see)
    edge: Array
    gpu: str | None  # the torch device that products with rows are taken on; None: the CPU

    def block(self, rows: Rows = ..., cols: Rows = ..., out: Array | None = None) -> Array:
        """K[rows, cols], formed, where it is to be kept."""

    def restrict(self, rows: Rows, cols: Rows | None = None) -> Self:
        """That of some rows, read by tiles too."""

    def astype(self, dtype: DTypeLike) -> Self:
        """The same with tiles of another precision, where their range allows."""

    @property
    def wide(self) -> TiledOperator:
        """The same in float64; itself where it is that."""

    def balanced(self) -> TiledOperator:
        """The same as duals that sum to zero see it."""

    def side(self, rows: Rows, *, left: bool) -> Any:
        """Rows or columns of tiles, made ready."""

    def fill(self, left: Any, right: Any, out: Array) -> None:
        """out = K of these rows and columns, but for the diagonal.

        That may have the rounding of tiles.
        """


def dense(op: Operator, dtype: DTypeLike) -> Array:
    """K as one new array.

    >>> from mercer.kernels import Linear
    >>> dense(Linear().operator([[1.0], [2.0]]), np.float64)
    array([[1., 2.],
           [2., 4.]])
    """
    return np.array(op.astype(dtype).block(), dtype, copy=None)
