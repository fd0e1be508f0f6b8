"""The reading by differences: k(x, x) + k(z, z) - 2 k(x, z) of the same formula, to relative
accuracy however near x and z are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops import distances
from mercer.ops.frozen import FrozenArray
from mercer.ops.special import Numbers
from mercer.ops.tiles import cuts
from mercer.pairs.items import OfItems
from mercer.pairs.linear import after, picked, through
from mercer.pairs.near_values import Near, Nears, apart, near, product, still
from mercer.pairs.side import per_column, square
from mercer.pairs.tile import Diagonal, Map, Tile


class NearPairs:
    """All pairs (x_i, z_j) of a tile of float64 rows, whose formulas end in Near."""

    xp: Any = Nears
    one: Any = 1.0

    def __init__(self, tile: Tile) -> None:
        self.tile = tile

    @property
    def width(self) -> int:
        return self.tile.width

    # quantities
    @property
    def dot(self) -> Near:
        return self._dot(np.eye(0))

    def bilinear(self, A: Array) -> Near:
        return self._dot(square(A, self.width, np.float64))

    def _dot(self, A: Array) -> Near:
        """x'z, under a metric where there is one."""
        X, Z = self._rows()
        x, z, e, s = distances.parted(X, Z, A)

        def unit() -> Array:
            """Of rows of norm one; zero rows stay."""
            U, V = (
                R / np.where(r > 0, np.sqrt(np.abs(r)), 1.0)[:, None] for R, r in ((X, x), (Z, z))
            )
            found: Array = distances.parted(U, V, A)[3]
            return found

        return Near(x[:, None], z, distances.under(X, A) @ Z.T, e, s, unit)

    def sqdist(self, bandwidth: Any = 1.0) -> Near:
        return apart(self._squares(bandwidth))

    def dist(self, bandwidth: Any = 1.0) -> Near:
        return apart(np.sqrt(self._squares(bandwidth)))

    def absdist(self, bandwidth: Any = 1.0) -> Near:
        return apart(self.tile.absdist(bandwidth))

    @property
    def chisq(self) -> Near:
        return apart(self._chisquare()[0])

    @property
    def harmonic(self) -> Near:
        """|x|_1 + |z|_1 - 2 sum_j 2 x_j z_j / (x_j + z_j) is the chi-squared distance."""
        (X, Z), (D, e) = self._rows(), self._chisquare()
        return Near(X.sum(1)[:, None], Z.sum(1), self.tile.harmonic, e, D)

    def _chisquare(self) -> tuple[Array, Array]:
        """sum_j g^2 / (x_j + z_j) and sum_j g of the differences g."""
        D, e = np.zeros((2, len(self.tile.X), len(self.tile.Z)))
        for x, z, gap in self._differences():
            D += gap * Numbers.ratio(gap, x + z)
            e += gap
        return D, e

    def sinsq(self, period: Any, bandwidth: Any) -> Near:
        X, Z, b, p = self.tile._dense(
            per_column(bandwidth, self.width), per_column(period, self.width, "period")
        )
        total = np.zeros((len(X), len(Z)))
        for x, z, width, length in zip(X.T, Z.T, b, p, strict=True):
            total += np.square(np.sin(np.pi * (x[:, None] - z) / length) / width)
        return apart(total)

    @property
    def prod1p(self) -> Near:
        return math.prod(
            (1.0 + c for c in self._columns()),
            start=near(np.ones((len(self.tile.X), len(self.tile.Z)))),
        )

    def elementary(self, order: int) -> Near:
        E = [
            near(np.full((len(self.tile.X), len(self.tile.Z)), float(r == 0)))
            for r in range(order + 1)
        ]
        for column in self._columns():
            E[1:] = [E[r] + column * E[r - 1] for r in range(1, order + 1)]
        return E[order]

    def _columns(self) -> list[Near]:
        """x_j z_j of every column that some row uses."""
        return [product(*sides) for sides in self._differences()]

    def _differences(self) -> Iterator[tuple[Array, Array, Array]]:
        """x_j, z_j and x_j - z_j of every column that some row uses."""
        X, Z = self.tile._dense()
        for x, z in zip(X.T, Z.T, strict=True):
            yield x[:, None], z, x[:, None] - z

    @property
    def angle(self) -> Near:
        """2 atan(|u - v| / |u + v|) of unit vectors, |u - v|^2 being 2 - 2 cosine; a right angle
        where a row is zero."""
        c = Nears.ratio(self.dot, None)
        x, z = self.tile.rows.angle, self.tile.cols.angle
        t = np.where(
            (c.a > 0) & (c.b > 0),
            2 * np.arctan2(np.sqrt(c.s), np.sqrt(np.maximum(4 - c.s, 0))),
            math.pi / 2,
        )
        return Near(x, z, t, x - z, x + z - 2 * t)

    @property
    def sizes(self) -> Near:
        """|x| |z|, by (|x| - |z|)^2."""
        p = self.dot
        x, z = (np.sqrt(np.maximum(v, 0)) for v in (p.a, p.b))
        return Near(p.a, p.b, x * z, p.e, np.square(Numbers.ratio(p.e, x + z)))

    def arc(self, order: int) -> Near:
        """The arc-cosine kernel, by what its function of the angle loses from angle zero on."""
        angle = self.angle
        if order == 0:
            return 1.0 - angle / math.pi
        t, size = angle.value, self.sizes
        if order == 1:
            rest = np.where(
                t < 0.1,
                t**3 * (1 / 3 - t**2 * (1 / 30 - t**2 * (1 / 840 - t**2 / 45360))),
                np.sin(t) - t * np.cos(t),
            )
            return size * still((2 * math.pi * np.sin(t / 2) ** 2 - rest) / math.pi)
        rest = np.where(
            t < 0.1,
            t**5 * (4 / 15 - t**2 * 16 / 315),
            2 * t + t * np.cos(2 * t) - 1.5 * np.sin(2 * t),
        )
        return size * size * (3.0 * still((2 * math.pi * np.sin(t) ** 2 + rest) / (3 * math.pi)))

    # other pairs
    @property
    def rows(self) -> Sided:
        return Sided(self.tile.rows, self, 0)

    @property
    def cols(self) -> Sided:
        return Sided(self.tile.cols, self, 1)

    def warp(self, f: Map) -> NearPairs:
        return NearPairs(self.tile.warp(f))

    def pick(self, columns: Sequence[int | str]) -> NearPairs:
        return NearPairs(self.tile.pick(columns))

    def map(self, matrix: FrozenArray) -> NearPairs:
        return NearMapped(self.tile, matrix)

    def call(self, f: Callable[[Any, Any], Any]) -> Near:
        """A user's own function: its values alone, so near pairs keep the digits that their
        difference leaves."""
        x, z = self.tile.rows.call(f), self.tile.cols.call(f)
        v = self.tile.call(f)
        return Near(x, z, v, x - z, x + z - 2 * v)

    def between(self, kernel: OfItems) -> Near:
        """A kernel of items, by its values."""
        x, z = self.tile.rows.between(kernel), self.tile.cols.between(kernel)
        v = self.tile.between(kernel)
        return Near(x, z, v, x - z, x + z - 2 * v)

    def over_bags(self, sets: Any) -> Near:
        """Sums over bags, by their values."""
        x, z = self.tile.rows.over_bags(sets), self.tile.cols.over_bags(sets)
        v = self.tile.over_bags(sets)
        return Near(x, z, v, x - z, x + z - 2 * v)

    # inside
    def _rows(self) -> tuple[Array, Array]:
        X, Z = self.tile.X, self.tile.Z
        return X.dense().astype(np.float64, copy=False), Z.dense().astype(np.float64, copy=False)

    def _squares(self, bandwidth: Any) -> Array:
        """By product, and by differences where that would cost digits."""
        X, Z, b = self.tile._dense(per_column(bandwidth, self.width))
        D, error = self.tile._squares(bandwidth)
        return (
            D
            if math.isinf(error)
            else distances.refine(D.copy(), X, Z, b, error / distances.NEAR_SHARE)
        )


class NearMapped(NearPairs):
    """The pairs (S x, S z): where rows are near, by S (x - z), as S x and S z share digits that
    their rounding would take."""

    def __init__(self, base: Tile, S: FrozenArray) -> None:
        super().__init__(base.map(S))
        self.base, self.S = base, S

    @cached_property
    def near(self) -> tuple[Array, Array, Array]:
        """Which pairs are near, against what S x is a sum of, and S (x - z) of these."""
        X, Z = (s.as_dense().data for s in (self.base.X, self.base.Z))
        centre = 0.0 if self.base.X.centre is None else self.base.X.centre
        sizes = FrozenArray(np.abs(self.S.values))
        x, z = (np.square(through(np.abs(R - centre), sizes)).sum(1) for R in (X, Z))
        D = self.tile.sqdist(1.0)
        rows, cols = np.nonzero(distances.NEAR_SHARE * (x[:, None] + z) >= D)
        step = max(1, distances.PIECE_NUMBERS // X.shape[1])
        parts = [through(X[rows[at]] - Z[cols[at]], self.S) for at in cuts(len(rows), step)]
        return rows, cols, np.concatenate([np.empty((0, self.width)), *parts])

    def _by_gaps(self, D: Array, of: Callable[[Array], Array]) -> Near:
        """Distances, those of near pairs from their differences."""
        rows, cols, gaps = self.near
        D = D.copy()
        D[rows, cols] = of(gaps)
        return apart(D)

    def _squares(self, bandwidth: Any) -> Array:
        b = per_column(bandwidth, self.width)
        D: Array = self._by_gaps(
            super()._squares(bandwidth), lambda g: np.square(g / b).sum(1)
        ).value
        return D

    def absdist(self, bandwidth: Any = 1.0) -> Near:
        b = per_column(bandwidth, self.width)
        return self._by_gaps(self.tile.absdist(bandwidth), lambda g: np.abs(g / b).sum(1))

    def sinsq(self, period: Any, bandwidth: Any) -> Near:
        b, p = per_column(bandwidth, self.width), per_column(period, self.width, "period")
        waves = super().sinsq(period, bandwidth).value
        return self._by_gaps(waves, lambda g: np.square(np.sin(np.pi * g / p) / b).sum(1))

    def _dot(self, A: Array) -> Near:
        found, (rows, cols, gaps) = super()._dot(A), self.near
        U, V = self._rows()
        GA = distances.under(gaps, A)
        e, s = np.array(found.e), np.array(found.s)
        e[rows, cols] = np.einsum("ij,ij->i", GA, U[rows] + V[cols])
        s[rows, cols] = np.einsum("ij,ij->i", GA, gaps)
        return Near(found.a, found.b, found.value, e, s, found.unit)

    def _differences(self) -> Iterator[tuple[Array, Array, Array]]:
        (X, Z), (rows, cols, gaps) = self._rows(), self.near
        for x, z, gap in zip(X.T, Z.T, gaps.T, strict=True):
            D = x[:, None] - z
            D[rows, cols] = gap
            yield x[:, None], z, D

    def _rows(self) -> tuple[Array, Array]:
        return NearPairs(self.tile.whole)._rows()

    def pick(self, columns: Sequence[int | str]) -> NearPairs:
        return NearMapped(self.base, picked(self.S, columns))

    def map(self, matrix: FrozenArray) -> NearPairs:
        return NearMapped(self.base, after(matrix, self.S))


class Sided:
    """One side of the pairs with itself: plain numbers for norms, and f(x) f(z) of a function of
    rows."""

    def __init__(self, side: Diagonal, pairs: NearPairs, which: int) -> None:
        self.side, self.pairs, self.which = side, pairs, which

    def __getattr__(self, name: str) -> Any:
        return getattr(self.side, name)

    def of(self, f: Map) -> Any:
        """f(x) f(z) as a kernel, where the formula first asks for it; the second time there is
        nothing left to multiply."""
        if self.which:
            return 1.0
        x, z = self.pairs.tile.rows.of(f), self.pairs.tile.cols.of(f)
        return product(x, z)


def squares(on: Callable[[Any], Any], tile: Tile) -> Array:
    """k(x, x) + k(z, z) - 2 k(x, z) of every pair of a tile, for the formula of a kernel.

    A formula that asks for what this reading has not is read by its values, with the digits that
    their difference leaves.
    """
    with np.errstate(all="ignore"):
        try:
            found = near(on(NearPairs(tile))).s
        except (TypeError, AttributeError):
            found = on(tile.rows) + on(tile.cols) - 2 * on(tile)
        return np.maximum(np.broadcast_to(found, (len(tile.X), len(tile.Z))), 0)
