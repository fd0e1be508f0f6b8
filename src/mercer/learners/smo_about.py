"""Kernel values about a point, for duals that sum to zero: what all rows share drops out of their sums, and its digits with it."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Gaussian, Kernel
from mercer.pairs import Side, Tile
from mercer.pairs.about import Spread, about

SHARED = 4.0  # of the mean of k(x, x), relative to that about a point: from here on the digits are worth the tiles
FAST = 1e4  # the same where the tiles that are given up are the fast ones of Gaussians


class AboutTiles:
    """k(x, z) - k(x, p) - k(p, z) + k(p, p) from the kernel's formula, without cancellation."""

    def __init__(self, kernel: Kernel, p: Array, dtype: Any) -> None:
        self.kernel, self.p, self.dtype = kernel, p, np.dtype(dtype)

    def of(self, X: Array, Z: Array, *, paired: bool = False) -> Spread:
        return about(self.kernel.on, X.astype(np.float64, copy=False), Z.astype(np.float64, copy=False), self.p, paired=paired)

    def side(self, rows: Table, *, left: bool) -> Any:
        return rows.data

    def fill(self, left: Any, right: Any, out: Array) -> None:
        out[:] = self.of(left, right).core

    def diag(self, X: Table) -> Array:
        return np.broadcast_to(self.of(X.data, X.data, paired=True).core, len(X)).astype(np.float64)

    def rounded(self, X: Table) -> bool:
        """Whether some of it is a difference of kernel values, and has their rounding."""
        return self.of(X.data, X.data, paired=True).rounded

    def edge(self, X: Table) -> Array:
        """k(x, p) - k(p, p)"""
        return np.broadcast_to(self.of(X.data, X.data, paired=True).left, len(X)).astype(np.float64)


class DifferenceTiles(AboutTiles):
    """The same by differences of kernel values, where the formula asks for more than is known about a point."""

    def rounded(self, X: Table) -> bool:
        return True

    def _values(self, X: Array, Z: Array) -> Array:
        X, Z = (A.astype(np.float64, copy=False) for A in (X, Z))
        K = self.kernel.on(Tile(Side(Table(X), self.p), Side(Table(Z), self.p)))
        return np.broadcast_to(K, (len(X), len(Z)))

    def side(self, rows: Table, *, left: bool) -> Any:
        edge = self.edge(rows)
        return rows.data, edge[:, None] + float(self._values(self.p[None], self.p[None])[0, 0]) if left else edge

    def fill(self, left: Any, right: Any, out: Array) -> None:
        out[:] = (self._values(left[0], right[0]) - left[1]) - right[1]

    def edge(self, X: Table) -> Array:
        p = self.p[None]
        return np.asarray(self._values(X.data, p)[:, 0] - self._values(p, p)[0, 0])

    def diag(self, X: Table) -> Array:
        p = self.p[None]
        return np.asarray((self.kernel.diag(X.astype(np.float64)) - self._values(p, p)[0, 0]) - 2 * self.edge(X))


def tiles_about(kernel: Any, X: Table, dtype: Any) -> AboutTiles | None:
    """The tiles about the mean of dense rows, where most of k(x, x) is shared by all of them; else None."""
    if not isinstance(kernel, Kernel) or X.items or X.sparse or not len(X):
        return None
    with np.errstate(all="ignore"):
        p = X.data.mean(0, dtype=np.float64)
        tiles = _readable(kernel, p, X, dtype)
        own, raw = float(np.mean(tiles.diag(X))), float(np.mean(kernel.diag(X.astype(np.float64))))
    shares = np.isfinite(own) and raw > (FAST if isinstance(kernel, Gaussian) else SHARED) * max(own, 0.0)
    return tiles if shares else None


def _readable(kernel: Kernel, p: Array, X: Table, dtype: Any) -> AboutTiles:
    tiles = AboutTiles(kernel, p, dtype)
    try:
        tiles.of(X.data[:1], X.data[:1])
    except (AttributeError, TypeError):  # of a formula that asks for what this reading does not know
        return DifferenceTiles(kernel, p, dtype)
    return tiles
