"""Operators over values that are kept: the triangle of a kernel matrix where it fits, or a Gram
matrix that was given."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from mercer.inputs import Array, Matrix, Rows, Table
from mercer.kernels.base import Kernel
from mercer.operators import tiled
from mercer.operators.kernel import Columns, KernelOperator, Values, _many
from mercer.operators.tiles import MIN_SHARED_MEAN
from mercer.ops import tiles
from mercer.ops.threads import parallel_map

PIECE_ROWS = 256  # rows of a given matrix that are multiplied at a time
MEAN_ROWS = 1024  # rows of it whose means are taken at a time


class StoredOperator:
    """K = k(X, X) by the tiles of one triangle, computed once.

    That is half the memory of K, and products at the speed of memory.

    Parameters
    ----------
    kernel : Kernel
        The k.
    X : array-like of shape (n, d), data frame, or list of items
        The rows.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).normal(size=(600, 3))
    >>> K = StoredOperator(Gaussian(), X)
    >>> bool(np.allclose(K @ np.ones(600), Gaussian()(X).sum(1)))
    True
    """

    __array_ufunc__ = None
    symmetric = True

    def __init__(self, kernel: Kernel, X: Any) -> None:
        self.computed = KernelOperator(kernel, X)
        self.kernel, self.X = self.computed.kernel, self.computed.X
        self.shape, self.dtype = self.computed.shape, self.computed.dtype
        self._kept: dict[tuple[int, int, int, int], Array] = {}
        columns = self.computed.triangle()
        tiles.settle_allocator()
        parallel_map(lambda i: self._keep(columns[i][0], columns[i:]), range(len(columns)))

    def __repr__(self) -> str:
        return f"StoredOperator({self.kernel!r}, shape={self.shape}, dtype={self.dtype})"

    @staticmethod
    def bytes(n: int, itemsize: int) -> float:
        """The memory that it takes for n rows."""
        return itemsize * (n * n / 2 + n * tiles.square(itemsize))

    def _keep(self, rows: slice, columns: Columns) -> None:
        for cols, K in self.computed.values(rows, columns):
            self._kept[_corners(rows, cols)] = np.array(K)

    def _values(self, rows: slice, columns: Columns, *, upper: bool = False) -> Values:
        for cols, side in columns:
            kept = self._kept.get(_corners(rows, cols))
            if kept is None:
                yield from self.computed.values(rows, [(cols, side)], upper=upper)
            else:
                yield cols, kept

    def __matmul__(self, V: ArrayLike) -> Array:
        """K @ V for one vector (n,) or many (n, q)."""
        return self.computed.product(V, self._values)

    # what products do not need is computed
    def block(self, rows: Rows = slice(None), cols: Rows = slice(None)) -> Array:
        """K[rows, cols], formed."""
        return self.computed.block(rows, cols)

    def diag(self) -> Array:
        """k(x_i, x_i)"""
        return self.computed.diag()

    def pullback(self, U: ArrayLike, V: ArrayLike) -> Array:
        """d tr(U'KV) / d parameter, in the order of `kernel.parameters()`."""
        return self.computed.pullback(U, V)

    def input_gradients(
        self, A: ArrayLike, rows: Rows | None = None, *, near: float = 0.0
    ) -> Array:
        """As `KernelOperator.input_gradients`."""
        return self.computed.input_gradients(A, rows, near=near)

    def gradient_outer_product(
        self, A: ArrayLike, rows: Rows | None = None, diagonal: bool = False, *, near: float = 0.0
    ) -> Array:
        """As `KernelOperator.gradient_outer_product`: mean over rows, sum over outputs."""
        return self.computed.gradient_outer_product(A, rows, diagonal, near=near)

    def restrict(self, rows: Rows, cols: Rows | None = None) -> KernelOperator:
        """The operator of some rows, and of these or other columns; nothing of it is kept."""
        return self.computed.restrict(rows, cols)

    def astype(self, dtype: DTypeLike) -> StoredOperator | KernelOperator:
        """Itself, or the same matrix in another precision, of which nothing is kept."""
        same = self.dtype == dtype or self.X.items
        return self if same else self.computed.astype(dtype)

    @property
    def T(self) -> StoredOperator:
        """Itself."""
        return self


def _corners(rows: slice, cols: slice) -> tuple[int, int, int, int]:
    return rows.start, rows.stop, cols.start, cols.stop


class GivenOperator:
    """A Gram matrix (n, m) that a user computed, read like a kernel's operator.

    Parameters
    ----------
    K : array-like or sparse of shape (n, m)
        The matrix; float32 values keep float64 vectors exact.

    Examples
    --------
    >>> K = GivenOperator(np.array([[2.0, 1.0], [1.0, 3.0]]))
    >>> K @ np.ones(2), K.diag(), K.block([1], [0, 1])
    (array([3., 4.]), array([2., 3.]), array([[1., 3.]]))
    """

    __array_ufunc__ = None
    kernel = None

    def __init__(self, K: Any) -> None:
        real = (isinstance(K, np.ndarray) or sp.issparse(K)) and K.dtype in (np.float32, np.float64)
        self.K: Matrix = K if real else np.asarray(K, np.float64)
        if self.K.ndim != 2:
            raise ValueError(f"a Gram matrix must have two dimensions, got shape {self.K.shape}.")
        self.shape, self.dtype = self.K.shape, self.K.dtype
        self.symmetric = self.shape[0] == self.shape[1]
        self.X = Table(self.K)

    def block(self, rows: Rows = slice(None), cols: Rows = slice(None)) -> Array:
        """K[rows, cols], copied."""
        i, j = _many(rows), _many(cols)
        if sp.issparse(self.K):
            return np.asarray(self.K[i][:, j].toarray())
        if isinstance(i, slice):  # a view where both are slices
            return np.array(self.K[i, j], copy=True if isinstance(j, slice) else None)
        return np.asarray(self.K[i, j] if isinstance(j, slice) else self.K[np.ix_(i, j)])

    def diag(self) -> Array:
        return np.array(self.K.diagonal())

    def pullback(self, U: ArrayLike, V: ArrayLike) -> Array:
        """Given values have no parameters: (0,)."""
        return np.zeros(0)

    def restrict(self, rows: Rows, cols: Rows | None = None) -> GivenOperator:
        """Some rows, and these or other columns."""
        return GivenOperator(self.block(rows, rows if cols is None else cols))

    def astype(self, dtype: DTypeLike) -> GivenOperator:
        """Itself: what was given is as precise as it is."""
        return self

    @property
    def T(self) -> GivenOperator:
        return GivenOperator(self.K.T)

    def __matmul__(self, V: ArrayLike) -> Array:
        V = np.asarray(V)
        out = np.empty((self.shape[0], *V.shape[1:]), np.result_type(self.dtype, V.dtype))

        def add(rows: slice) -> None:
            out[rows] = self.K[rows] @ V

        parallel_map(add, tiles.cuts(self.shape[0], PIECE_ROWS))
        return out


class CentredOperator:
    """A given matrix (n, n) that is read by tiles in a precision of their own.

    It is less its row means where duals do not see them.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The matrix.
    dtype : dtype, default=float64
        Of the tiles, where their range allows.
    edge : ndarray of shape (n,), default=None
        The row means to subtract; None subtracts none.
    middle : float, default=0.0
        The mean of `edge`.

    Examples
    --------
    >>> K = CentredOperator(np.array([[12.0, 10.0], [10.0, 14.0]])).balanced()
    >>> K.block(), K.edge
    (array([[ 1.5, -1.5],
           [-1.5,  1.5]]), array([11., 12.]))
    """

    __array_ufunc__ = None
    gpu: str | None = None  # values that are there stay where they are

    def __init__(
        self,
        K: Array,
        dtype: DTypeLike = np.float64,
        edge: Array | None = None,
        middle: float = 0.0,
    ) -> None:
        self.given = GivenOperator(K)
        self.X, self.shape, self.symmetric = self.given.X, self.given.shape, True
        self.middle, self.edge = middle, np.zeros(len(K)) if edge is None else edge
        raw = tiled.checked(self.given.diag())
        self._diag = raw if edge is None else (raw - edge) - (edge - middle)
        self.scale = np.abs(self._diag)
        self.dtype = tiled.in_range(dtype, self._diag)

    def side(self, rows: Rows, *, left: bool) -> Array:
        """Positions."""
        return np.arange(self.shape[0])[rows]

    def fill(self, left: Array, right: Array, out: Array) -> None:
        K = self.given.block(left, right)
        out[:] = (
            (K - self.edge[left][:, None]) - (self.edge[right] - self.middle) if self.middle else K
        )

    def block(
        self, rows: Rows = slice(None), cols: Rows = slice(None), out: Array | None = None
    ) -> Array:
        return tiled.block(self, rows, cols, out)

    def diag(self) -> Array:
        return self._diag

    def __matmul__(self, V: ArrayLike) -> Array:
        return tiled.product(self, V)

    def pullback(self, U: ArrayLike, V: ArrayLike) -> Array:
        """Given values have no parameters: (0,)."""
        return self.given.pullback(U, V)

    def restrict(self, rows: Rows, cols: Rows | None = None) -> CentredOperator:
        """Some rows and their columns."""
        if cols is not None:
            raise ValueError(
                "a centred matrix is one of rows with themselves; take a block of other rows and columns."
            )
        i = self.side(rows, left=True)
        return CentredOperator(
            self.given.block(i, i), self.dtype, self.edge[i] if self.middle else None, self.middle
        )

    def astype(self, dtype: DTypeLike) -> CentredOperator:
        """The same with tiles of another precision, where their range allows."""
        return CentredOperator(self.K, dtype, self._means, self.middle)

    @property
    def K(self) -> Array:
        """The matrix as it was given."""
        return self.given.K

    @property
    def _means(self) -> Array | None:
        return self.edge if self.middle else None

    @cached_property
    def wide(self) -> CentredOperator:
        """The same in float64."""
        return self if self.dtype == np.float64 else self.astype(np.float64)

    def balanced(self) -> CentredOperator:
        """As duals that sum to zero see it: less its row means, where these are most of it."""
        means = np.concatenate(
            [
                self.given.block(s).mean(1, dtype=np.float64)
                for s in tiles.cuts(self.shape[0], MEAN_ROWS)
            ]
        )
        less = CentredOperator(self.K, self.dtype, means, float(means.mean()))
        return less if self._diag.mean() > MIN_SHARED_MEAN * abs(less._diag.mean()) else self
