"""Operators over values that are kept: the triangle of a kernel matrix where it fits, or a Gram matrix that was given."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Rows, Table
from mercer.kernels.base import Kernel
from mercer.operators.kernel import Columns, KernelOperator, _many
from mercer.ops import tiles
from mercer.ops.threads import parallel_map

PIECE = 256  # rows of a given matrix that are multiplied at a time


class StoredOperator(KernelOperator):
    """K = k(X, X) by the tiles of one triangle, computed once: half the memory of K, and products at the speed of memory.

    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> K = StoredOperator(Gaussian(), X)
    >>> bool(np.allclose(K @ np.ones(600), Gaussian()(X).sum(1)))
    True
    """

    def __init__(self, kernel: Kernel, X: Any) -> None:
        super().__init__(kernel, X)
        self._kept: dict[tuple[int, int, int, int], Array] = {}
        columns = self._prepared(self._step(tiles.square(self.dtype.itemsize)))
        tiles.settle_allocator()
        parallel_map(lambda i: self._keep(columns[i][0], columns[i:]), range(len(columns)))

    @staticmethod
    def bytes(n: int, itemsize: int) -> float:
        """The memory that it takes for n rows."""
        return itemsize * (n * n / 2 + n * tiles.square(itemsize))

    def _keep(self, rows: slice, columns: Columns) -> None:
        for cols, tile in super()._tiles(rows, columns):
            self._kept[_corners(rows, cols)] = np.array(super()._value(tile))

    def _tiles(self, rows: slice, columns: Columns) -> Iterator[tuple[slice, Any]]:
        for cols, side in columns:
            kept = self._kept.get(_corners(rows, cols))
            yield from [(cols, kept)] if kept is not None else super()._tiles(rows, [(cols, side)])

    def _value(self, tile: Any) -> Array:
        return tile if isinstance(tile, np.ndarray) else super()._value(tile)


def _corners(rows: slice, cols: slice) -> tuple[int, int, int, int]:
    return rows.start, rows.stop, cols.start, cols.stop


class GivenOperator:
    """A Gram matrix (n, m) that a user computed, dense or CSR, read like a kernel's operator; float32 values keep float64 vectors exact.

    >>> K = GivenOperator(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> K @ np.ones(2), K.diag(), K.block([1], [0, 1])
    (array([3., 4.]), array([2., 3.]), array([[1., 3.]]))
    """

    __array_ufunc__ = None
    kernel = None

    def __init__(self, K: Any) -> None:
        real = (isinstance(K, np.ndarray) or sp.issparse(K)) and K.dtype in (np.float32, np.float64)
        self.K = K if real else np.asarray(K, np.float64)
        if self.K.ndim != 2:
            raise ValueError(f"a Gram matrix must have two dimensions, got shape {self.K.shape}.")
        self.shape, self.dtype = self.K.shape, self.K.dtype
        self.symmetric = self.shape[0] == self.shape[1]
        self.X = Table(self.K)

    def block(self, rows: Rows = slice(None), cols: Rows = slice(None)) -> Array:
        """K[rows, cols]"""
        part: Any = self.K[_many(rows)][:, _many(cols)]
        return part.toarray() if sp.issparse(part) else np.array(part)

    def diag(self) -> Array:
        return np.array(self.K.diagonal())

    def pullback(self, U: Any, V: Any) -> Array:
        """Given values have no parameters: (0,)."""
        return np.zeros(0)

    def restrict(self, rows: Rows, cols: Rows | None = None) -> GivenOperator:
        """Some rows, and these or other columns."""
        return GivenOperator(self.block(rows, rows if cols is None else cols))

    def astype(self, dtype: Any) -> GivenOperator:
        """Itself: what was given is as precise as it is."""
        return self

    @property
    def T(self) -> GivenOperator:
        return GivenOperator(self.K.T)

    def __matmul__(self, V: Any) -> Array:
        V = np.asarray(V)
        out = np.empty((self.shape[0], *V.shape[1:]), np.result_type(self.dtype, V.dtype))

        def add(rows: slice) -> None:
            out[rows] = self.K[rows] @ V

        parallel_map(add, tiles.cuts(self.shape[0], PIECE))
        return out
