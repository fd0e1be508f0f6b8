"""Rows of a kernel matrix for dual solvers, of a kernel or given: sides and values of tiles, and small blocks."""
from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel
from mercer.operators.tiles import SHARED, AboutTiles, tiles_about, tiles_of
from mercer.ops import smo
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

PIECE, WIDTH = 1024, 256  # rows and columns of a tile: BLAS is twice as fast on short rows as on long ones
LARGEST = 1e15  # of kernel values that float32 can hold with room for sums
ASYMMETRY, INDEFINITE = 1e-5, 1e-5  # of a given matrix, relative to its largest entry: more is no rounding, even of float32
SOME = 256  # rows whose eigenvalues are looked at
TOO_LARGE = {4: 1e30, 8: 1e100}  # of kernel values of rows of this precision


class KernelRows:
    """K = k(X, X), never formed beyond a block.

    >>> from mercer.kernels import Linear
    >>> rows = KernelRows(Linear(), Table(np.array([[1.0], [2.0]])))
    >>> rows.block(np.array([1]), np.array([0, 1])), rows.diag
    (array([[2., 4.]]), array([1., 4.]))
    """

    def __init__(self, kernel: Kernel, X: Table, dtype: Any = np.float64) -> None:
        self.kernel, self.X, self.n = kernel, X, len(X)
        with np.errstate(over="ignore"):
            self.diag = checked(kernel.diag(X))
        self.scale, self.edge = self.diag, np.zeros(self.n)
        self.stored(dtype)

    def balanced(self) -> KernelRows:
        """The same rows for duals that sum to zero: about their mean, where they share most of k(x, x).

        `edge` is what K has more, by column (what it has more by row, those duals do not see); rounding is relative to `scale`.
        """
        tiles = tiles_about(self.kernel, self.X, self.dtype)
        return self if tiles is None else AboutRows(self.kernel, self.X, self.dtype, tiles)

    def intercept(self, b: Array, found: float, index: Any = slice(None)) -> float:
        """That of sum_j b_j k(x, x_j) from the one that was found with these rows."""
        return found - float(b @ self.edge[index])

    @cached_property
    def wide(self) -> KernelRows:
        """The same in float64, whatever the rows are."""
        return self if self._wide else KernelRows(self.kernel, self.X.astype(np.float64))

    @property
    def _wide(self) -> bool:
        return self.dtype == np.float64 and (self.X.items or self.X.dtype == np.float64)

    def stored(self, dtype: Any) -> KernelRows:
        """With values of this precision, where their range allows."""
        self.dtype = np.dtype(dtype if np.abs(self.diag).max() < LARGEST else np.float64)
        self._tiles = tiles_of(self.kernel, self.X, self.X, self.dtype)
        return self

    def side(self, index: Any, *, left: bool) -> Any:
        """Rows or columns of tiles, made ready."""
        return self._tiles.side(self.X[index], left=left)

    def fill(self, left: Any, right: Any, out: Array) -> None:
        """out = K of these rows and columns."""
        self._tiles.fill(left, right, out)

    def block(self, rows: Array, cols: Array, out: Array | None = None) -> Array:
        """K[rows, cols], by columns of tiles in threads."""
        out = np.empty((len(rows), len(cols)), self.dtype) if out is None else out
        left = [(s, self.side(rows[s], left=True)) for s in cuts(len(rows), PIECE)]

        def work(c: slice) -> None:
            right, tile = self.side(cols[c], left=False), np.empty((min(PIECE, len(rows)), c.stop - c.start), self.dtype)
            for s, side in left:
                self.fill(side, right, tile[: s.stop - s.start])
                out[s, c] = tile[: s.stop - s.start]

        parallel_map(work, cuts(len(cols), WIDTH))
        self.exact(out, rows, cols)
        return out

    def strip(self, rows: Array, cols: Array) -> Array:
        """K[rows, cols] of few rows, as one tile."""
        out = np.empty((len(rows), len(cols)), self.dtype)
        self.fill(self.side(rows, left=True), self.side(cols, left=False), out)
        self.exact(out, rows, cols)
        return out

    def square(self) -> Array:
        """All of K, its columns padded to lanes: for few rows."""
        every, out = np.arange(self.n), room(self.n, self.dtype)
        self.block(every, every, out[:, : self.n])
        return out

    def pick(self, index: Array) -> KernelRows:
        """Some rows."""
        return KernelRows(self.kernel, self.X[index], self.dtype)

    def exact(self, K: Array, rows: Array, cols: Array) -> None:
        """The diagonal of the kernel where a row meets itself."""
        _, i, j = np.intersect1d(rows, cols, assume_unique=True, return_indices=True)
        K[i, j] = self.diag[rows[i]]


class AboutRows(KernelRows):
    """The same about a point."""

    def __init__(self, kernel: Kernel, X: Table, dtype: Any, tiles: AboutTiles) -> None:
        self.kernel, self.X, self.n, self.tiles = kernel, X, len(X), tiles
        raw = checked(kernel.diag(X))
        self.diag, self.edge = np.maximum(tiles.diag(X), 0.0), tiles.edge(X)
        self.scale = raw if tiles.rounded(X) else self.diag
        self.stored(dtype)

    def stored(self, dtype: Any) -> KernelRows:
        self.dtype = np.dtype(dtype if np.abs(self.diag).max() < LARGEST else np.float64)
        self._tiles = type(self.tiles)(self.kernel, self.tiles.p, self.dtype)
        return self

    @cached_property
    def wide(self) -> KernelRows:
        return self if self.dtype == np.float64 else AboutRows(self.kernel, self.X, np.float64, self.tiles)

    def pick(self, index: Array) -> KernelRows:
        return AboutRows(self.kernel, self.X[index], self.dtype, self.tiles)


class GivenRows(KernelRows):
    """A Gram matrix (n, n) that was given; less these row means, where they are."""

    def __init__(self, K: Array, dtype: Any = np.float64, edge: Array | None = None, middle: float = 0.0) -> None:
        self.X, self.n, self.K, self.middle = Table(K), len(K), K, middle
        self.edge = np.zeros(self.n) if edge is None else edge
        raw = checked(K.diagonal())
        self.diag = raw if edge is None else (raw - edge) - (edge - middle)
        self.scale = np.abs(self.diag)
        self.stored(dtype)

    @cached_property
    def wide(self) -> KernelRows:
        if self.dtype == np.float64:
            return self
        return GivenRows(self.K, np.float64, self.edge if self.middle else None, self.middle)

    def balanced(self) -> GivenRows:
        means = np.concatenate([self.K[s].mean(1, dtype=np.float64) for s in cuts(self.n, PIECE)])
        less = GivenRows(self.K, self.dtype, means, float(means.mean()))
        return less if self.diag.mean() > SHARED * abs(less.diag.mean()) else self

    def stored(self, dtype: Any) -> GivenRows:
        self.dtype = np.dtype(dtype if np.abs(self.diag).max() < LARGEST else np.float64)
        return self

    def pick(self, index: Array) -> GivenRows:
        return GivenRows(self.K[index[:, None], index], self.dtype, self.edge[index] if self.middle else None, self.middle)

    def side(self, index: Any, *, left: bool) -> Any:
        return np.arange(self.n)[index]

    def fill(self, left: Any, right: Any, out: Array) -> None:
        K = self.K[left[:, None], right]
        out[:] = (K - self.edge[left][:, None]) - (self.edge[right] - self.middle) if self.middle else K


def certain(K: Array, bias: bool) -> bool:
    """Whether a given matrix, which must be symmetric, shows no negative eigenvalue among some of its rows.

    With a bias the sum of duals is fixed, and only vectors that sum to zero count.

    >>> certain(np.eye(3), False), certain(np.eye(3) - 1, False), certain(np.eye(3) - 1, True)
    (True, False, True)
    """
    size = float(np.abs(K).max(initial=0))
    for s in cuts(len(K), PIECE):
        if np.abs(K[s] - K[:, s].T).max(initial=0) > ASYMMETRY * size:
            raise ValueError("X must be symmetric with kernel='precomputed', and it is not; give (X + X.T) / 2 if that is meant.")
    some = np.linspace(0, len(K) - 1, min(len(K), SOME)).astype(np.intp)
    part = K[some[:, None], some].astype(np.float64)
    part = part - part.mean(0) - part.mean(1)[:, None] + part.mean() if bias else part
    values = np.linalg.eigvalsh(part)
    return bool(values[0] >= -INDEFINITE * max(size, values[-1]))


def room(n: int, dtype: Any) -> Array:
    """For n rows and columns, filled up by zeros to whole lanes."""
    out = np.empty((n, smo.lanes(n) * smo.LANE), dtype)
    out[:, n:] = 0
    return out


def checked(diagonal: Array) -> Array:
    """k(x, x) in float64, which bounds all values of a kernel."""
    most = TOO_LARGE[diagonal.dtype.itemsize]
    diagonal = diagonal.astype(np.float64)
    if not (np.abs(diagonal) < most).all():
        raise ValueError("the kernel of some row of X with itself is too large; scale the columns of X first.")
    return diagonal
