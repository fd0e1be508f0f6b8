"""Few rows with themselves, every pair once: vectors in the order of LAPACK's packed lower
triangles, and squares of differences that are kept while bandwidths move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtpttr, dtrttp

from mercer.inputs import Array, Table
from mercer.ops.absolute import MAX_SQUARE
from mercer.ops.special import Numbers
from mercer.pairs.side import Bandwidth, Side, centre_of, per_column
from mercer.pairs.tile import Tile

KEPT = 1 << 18  # numbers, differences of all pairs in every column: up to so many stay near


class Packed:
    """The pairs (x_i, x_k), k <= i, of dense rows in float64: column by column, the diagonal
    first, (n (n + 1) / 2,) each.

    It offers what stationary formulas ask of a `Tile`, to the same digits.

    >>> Packed(Table(np.array([[0.0], [1.0], [3.0]]))).sqdist(1.0)
    array([0., 1., 9., 0., 4., 0.])
    """

    xp: Any = Numbers
    one: Any = 1.0

    def __init__(self, rows: Table) -> None:
        self.rows_of, self.n, self.width = rows, len(rows), rows.width
        self.size = self.n * (self.n + 1) // 2
        self._kept: dict[Any, Array] = {}
        self._picked: dict[Any, Packed] = {}

    @cached_property
    def diagonal(self) -> Array:
        """Where each row meets itself."""
        return np.append(0, np.cumsum(np.arange(self.n, 1, -1)))

    @cached_property
    def apart(self) -> Array:
        """(x_ij - x_kj)^2, (d, size)"""
        X = np.ascontiguousarray(self.rows_of.data.T)
        out, square = np.empty((self.width, self.size)), np.empty((self.n, self.n))
        with np.errstate(over="ignore"):
            for x, to in zip(X, out, strict=True):
                np.subtract.outer(x, x, out=square)
                to[:] = packed(np.square(square, out=square).T)
            return np.minimum(out, MAX_SQUARE[X.dtype], out=out)

    @cached_property
    def _near(self) -> bool:
        return self.width * self.size <= KEPT

    @cached_property
    def _side(self) -> Side:
        return Side(self.rows_of, centre_of(self.rows_of, self.rows_of))

    # quantities
    def sqdist(self, bandwidth: Any = 1.0) -> Array:
        """sum_j ((x_j - z_j) / b_j)^2"""
        return self._once(("sqdist", bandwidth), lambda: self._sqdist(bandwidth))

    def dist(self, bandwidth: Any = 1.0) -> Array:
        """The square root of `sqdist`."""
        return self._once(("dist", bandwidth), lambda: self._dist(bandwidth))

    def pick(self, columns: Sequence[int | str]) -> Packed:
        """The same pairs seen in some columns."""
        key = tuple(columns)
        if key not in self._picked:
            self._picked[key] = Packed(self.rows_of.pick(columns))
        return self._picked[key]

    def column_squares(
        self, b: tuple[float, ...], A: Array, of_tile: Callable[[Tile, Any, Array], Array]
    ) -> Array:
        """sum over pairs of A ((x_j - z_j) / b_j)^2 for every column j."""
        if self._near:
            return np.asarray(self.apart @ A) / np.square(b)
        return of_tile(self._tile(), b, unpacked(A, self.n).T)

    def forget(self) -> None:
        """What is known of single bandwidths."""
        self._kept.clear()
        for part in self._picked.values():
            part.forget()

    # inside
    def _once(self, key: Any, made: Any) -> Array:
        if key not in self._kept:
            self._kept[key] = made()
        return self._kept[key]

    @cached_property
    def _plain(self) -> Array:
        """|x_i - x_k|^2, (size,), by differences."""
        return packed(self._tile()._by_differences(1.0).T)

    def _sqdist(self, b: Bandwidth) -> Array:
        if not isinstance(b, tuple):
            return self._plain * (1 / b) ** 2
        w = 1 / per_column(b, self.width) ** 2
        if not self._near:
            return packed(self._tile().sqdist(b).T)
        return np.asarray(w @ self.apart if self.width > 1 else w * self.apart[0])

    def _dist(self, b: Bandwidth) -> Array:
        if self._near or not isinstance(b, tuple):
            return np.sqrt(self.sqdist(b))
        return packed(self._tile().dist(b).T)

    def _tile(self) -> Tile:
        s = self._side
        s._scaled.clear()
        s._operands.clear()
        return Tile(s, s, 0)


def packed(A: Array) -> Array:
    """The lower triangle of a square matrix, in LAPACK's order, by columns."""
    return np.asarray(dtrttp(A, uplo="L")[0])


def unpacked(a: Array, n: int) -> Array:
    """The lower triangle of an (n, n) matrix in LAPACK's order; what is above it is zero."""
    return np.asarray(dtpttr(n, a, uplo="L")[0])
