"""The reading by differences: k(x, x) + k(z, z) - 2 k(x, z) of the same formula, to relative accuracy however near x and z are."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops import distances
from mercer.ops.special import matern_deficit
from mercer.pairs.functions import Numbers
from mercer.pairs.side import per_column, square
from mercer.pairs.tile import Diagonal, Map, Tile

NEAR = 1e-6  # squared distances below this share of the squared norms are taken by differences
PIECE = 1 << 20  # numbers of differences at a time


class Near:
    """A function k of pairs, held by a = k(x, x) and b = k(z, z) through m = a + b and e = a - b, and by s = m - 2 k(x, z).

    Sums, products, quotients and exponentials of such have e and s without any difference of near numbers; plain numbers are
    constants.
    """

    __array_ufunc__ = None

    def __init__(self, m: Any, e: Any, s: Any) -> None:
        self.m, self.e, self.s = m, e, s

    @property
    def value(self) -> Any:
        """k(x, z)"""
        return (self.m - self.s) / 2

    @property
    def ends(self) -> tuple[Any, Any]:
        """k(x, x) and k(z, z)"""
        return (self.m + self.e) / 2, (self.m - self.e) / 2

    def __add__(self, other: Any) -> Near:
        o = near(other)
        return Near(self.m + o.m, self.e + o.e, self.s + o.s)

    def __mul__(self, other: Any) -> Near:
        if not isinstance(other, Near):
            return Near(self.m * other, self.e * other, self.s * other)
        a, b = self, other
        m = (a.m * b.m + a.e * b.e) / 2
        return Near(m, (a.m * b.e + b.m * a.e) / 2, (a.e * b.e + a.s * (b.m - b.s / 2) + b.s * (a.m - a.s / 2)) / 2)

    def __neg__(self) -> Near:
        return -1.0 * self

    def __sub__(self, other: Any) -> Near:
        return self + -near(other)

    def __rsub__(self, other: Any) -> Near:
        return near(other) + -self

    def __rtruediv__(self, other: Any) -> Near:
        """c / k: 1/a + 1/b - 2/k = (e^2 - m s) / (2 a b k)."""
        a, b = self.ends
        return near(other) * Near(self.m / (a * b), -self.e / (a * b), (self.e**2 - self.m * self.s) / (2 * a * b * self.value))

    def __truediv__(self, other: Any) -> Near:
        return self * (1 / other)

    def __pow__(self, n: Any) -> Near:
        if n != int(n):
            return Nears.exp(n * Nears.log(self))
        if n < 0:
            return 1.0 / self ** -n
        out, base, n = near(1.0), self, int(n)
        while n:
            out, base, n = out * base if n % 2 else out, base * base if n > 1 else base, n // 2
        return out

    __rmul__, __radd__ = __mul__, __add__


def near(value: Any) -> Near:
    """A constant, unless it is more."""
    return value if isinstance(value, Near) else Near(2.0 * value, 0.0 * value, 0.0 * value)


def still(profile: Any) -> Near:
    """1 - profile, for a profile of distances that is 0 at x = z."""
    return Near(2.0, 0.0, 2 * profile)


class Nears(Numbers):
    """The functions of formulas, over Near."""

    @staticmethod
    def exp(a: Any) -> Any:  # type: ignore[override]
        """e^a + e^b - 2 e^k = 2 e^(m/2) (2 sinh^2(e/4) - expm1(-s/2))."""
        a = near(a)
        top = np.exp(a.m / 2)
        return Near(2 * top * np.cosh(a.e / 2), 2 * top * np.sinh(a.e / 2), 2 * top * (2 * np.sinh(a.e / 4) ** 2 - np.expm1(-a.s / 2)))

    @staticmethod
    def log1p(a: Any) -> Any:  # type: ignore[override]
        """log(A B / K^2) = log1p((2 M s - s^2 - e^2) / (4 K^2)), of A = 1 + a and so on."""
        A = near(a) + 1.0
        x, z = A.ends
        return Near(np.log(x) + np.log(z), np.log1p(A.e / z), np.log1p((2 * A.m * A.s - A.s**2 - A.e**2) / (4 * A.value**2)))

    @staticmethod
    def log(a: Any) -> Any:  # type: ignore[override]
        return Nears.log1p(near(a) + -1.0)

    @staticmethod
    def sinc(a: Any) -> Any:
        """1 - sin(r) / r of a distance r."""
        r = near(a).value
        q = r * r
        few = q * (1 / 6 - q * (1 / 120 - q * (1 / 5040 - q * (1 / 362880 - q / 39916800))))
        return still(np.where(q < 0.25, few, 1 - np.sinc(r / np.pi)))

    @staticmethod
    def bessel(nu: float, r: Any) -> Any:
        return still(matern_deficit(nu, near(r).value))

    @staticmethod
    def decay(coefficients: Sequence[float], t: Any) -> Any:
        """1 - p(t) exp(-t) = exp(-t) sum_j (1/j! - c_j) t^j, whose terms are none below zero, up to t = 1."""
        r = near(t).value
        c = [*coefficients, *[0.0] * (20 - len(coefficients))]
        left = [0.0, *(v if (v := 1 / math.factorial(j) - c[j]) > 1e-14 * c[j] else 0.0 for j in range(1, 20))]  # the first ones are 0
        few = np.exp(-r) * _polynomial(left, np.minimum(r, 1))
        return still(np.where(r < 1, few, 1 - _polynomial(coefficients, r) * np.exp(-r)))

    @staticmethod
    def sqrt(a: Any) -> Any:  # type: ignore[override]
        """Of one side alone, as it stands in a norm."""
        return np.sqrt(a)

    @staticmethod
    def ratio(a: Any, b: Any) -> Any:
        """k / sqrt(k(x, x) k(z, z)): 2 - 2 k / sqrt(a b) = (s - (sqrt a - sqrt b)^2) / sqrt(a b); nothing where a or b is 0."""
        a = near(a)
        x, z = (np.sqrt(np.maximum(v, 0)) for v in a.ends)
        gap, size = Numbers.ratio(a.e * np.ones_like(x + z), x + z), x * z
        found = np.where(size > 0, Numbers.ratio(np.maximum(a.s - gap**2, 0), size), (x > 0) * 1.0 + (z > 0))
        return Near((x > 0) * 1.0 + (z > 0), (x > 0) * 1.0 - (z > 0), found)


def _polynomial(coefficients: Sequence[float], t: Any) -> Any:
    value: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * t + c
    return value


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
        """|x|^2 + |z|^2, |x|^2 - |z|^2 = (x - z)'(x + z) and |x - z|^2, under a metric where there is one."""
        X, Z = self._rows()
        x, z = (np.einsum("ij,ij->i", _times(R, A), R) for R in (X, Z))
        m, e = x[:, None] + z, x[:, None] - z
        centred = [R - (X.mean(0) + Z.mean(0)) / 2 for R in (X, Z)]
        u, v = (np.einsum("ij,ij->i", _times(R, A), R) for R in centred)
        s = np.maximum(u[:, None] + v - 2 * _times(centred[0], A) @ centred[1].T, 0)
        rows, cols = np.nonzero(s <= NEAR * np.maximum(m, u[:, None] + v))
        step = max(1, PIECE // max(1, X.shape[1]))
        for at in (slice(i, i + step) for i in range(0, len(rows), step)):
            D, S = X[rows[at]] - Z[cols[at]], X[rows[at]] + Z[cols[at]]
            DA = _times(D, A)
            s[rows[at], cols[at]], e[rows[at], cols[at]] = np.einsum("ij,ij->i", DA, D), np.einsum("ij,ij->i", DA, S)
        return Near(m, e, s)

    def sqdist(self, bandwidth: Any = 1.0) -> Near:
        return Near(0.0, 0.0, -2 * self._squares(bandwidth))

    def dist(self, bandwidth: Any = 1.0) -> Near:
        return Near(0.0, 0.0, -2 * np.sqrt(self._squares(bandwidth)))

    def absdist(self, bandwidth: Any = 1.0) -> Near:
        return Near(0.0, 0.0, -2 * self.tile.absdist(bandwidth))

    def sinsq(self, period: Any, bandwidth: Any) -> Near:
        X, Z, b, p = self.tile._dense(per_column(bandwidth, self.width), per_column(period, self.width, "period"))
        total = np.zeros((len(X), len(Z)))
        for x, z, width, length in zip(X.T, Z.T, b, p, strict=True):
            total += np.square(np.sin(np.pi * (x[:, None] - z) / length) / width)
        return Near(0.0, 0.0, -2 * total)

    @property
    def prod1p(self) -> Near:
        return math.prod((1.0 + c for c in self._columns()), start=near(np.ones((len(self.tile.X), len(self.tile.Z)))))

    def elementary(self, order: int) -> Near:
        E = [near(np.full((len(self.tile.X), len(self.tile.Z)), float(r == 0))) for r in range(order + 1)]
        for column in self._columns():
            E[1:] = [E[r] + column * E[r - 1] for r in range(1, order + 1)]
        return E[order]

    def _columns(self) -> list[Near]:
        """x_j z_j of every column that some row uses."""
        X, Z = self.tile._dense()
        sides = ((x[:, None], z) for x, z in zip(X.T, Z.T, strict=True))
        return [Near(x**2 + z**2, (x - z) * (x + z), np.square(x - z)) for x, z in sides]

    @property
    def angle(self) -> Near:
        """2 atan(|u - v| / |u + v|) of unit vectors, |u - v|^2 being 2 - 2 cosine; a right angle where a row is zero."""
        c = Nears.ratio(self.dot, None)
        x, z = self.tile.rows.angle, self.tile.cols.angle
        t = np.where(c.m == 2, 2 * np.arctan2(np.sqrt(c.s), np.sqrt(np.maximum(4 - c.s, 0))), math.pi / 2)
        return Near(x + z, x - z, x + z - 2 * t)

    @property
    def sizes(self) -> Near:
        """|x| |z|, by (|x| - |z|)^2."""
        p = self.dot
        x, z = (np.sqrt(np.maximum(v, 0)) for v in p.ends)
        return Near(p.m, p.e, np.square(Numbers.ratio(p.e, x + z)))

    def arc(self, order: int) -> Near:
        """The arc-cosine kernel, by what its function of the angle loses from angle zero on."""
        angle = self.angle
        if order == 0:
            return 1.0 - angle / math.pi
        t, size = angle.value, self.sizes
        if order == 1:
            rest = np.where(t < 0.1, t**3 * (1 / 3 - t**2 * (1 / 30 - t**2 * (1 / 840 - t**2 / 45360))), np.sin(t) - t * np.cos(t))
            return size * still((2 * math.pi * np.sin(t / 2) ** 2 - rest) / math.pi)
        rest = np.where(t < 0.1, t**5 * (4 / 15 - t**2 * 16 / 315), 2 * t + t * np.cos(2 * t) - 1.5 * np.sin(2 * t))
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

    def call(self, f: Callable[[Any, Any], Any]) -> Near:
        """A user's own function: its values alone, so near pairs keep the digits that their difference leaves."""
        x, z = self.tile.rows.call(f), self.tile.cols.call(f)
        return Near(x + z, x - z, x + z - 2 * self.tile.call(f))

    # inside
    def _rows(self) -> tuple[Array, Array]:
        X, Z = self.tile.X, self.tile.Z
        return X.dense().astype(np.float64, copy=False), Z.dense().astype(np.float64, copy=False)

    def _squares(self, bandwidth: Any) -> Array:
        """By product, and by differences where that would cost digits."""
        X, Z, b = self.tile._dense(per_column(bandwidth, self.width))
        D, error = self.tile._squares(bandwidth)
        return D if math.isinf(error) else distances.refine(D.copy(), X, Z, b, error / NEAR)


class Sided:
    """One side of the pairs with itself: plain numbers for norms, and f(x) f(z) of a function of rows."""

    def __init__(self, side: Diagonal, pairs: NearPairs, which: int) -> None:
        self.side, self.pairs, self.which = side, pairs, which

    def __getattr__(self, name: str) -> Any:
        return getattr(self.side, name)

    def of(self, f: Map) -> Any:
        """f(x) f(z) as a kernel, where the formula first asks for it; the second time there is nothing left to multiply."""
        if self.which:
            return 1.0
        x, z = self.pairs.tile.rows.of(f), self.pairs.tile.cols.of(f)
        return Near(x**2 + z**2, (x - z) * (x + z), np.square(x - z))


def _times(X: Array, A: Array) -> Array:
    return X @ A if A.size else X


def squares(on: Callable[[Any], Any], tile: Tile) -> Array:
    """k(x, x) + k(z, z) - 2 k(x, z) of every pair of a tile, for the formula of a kernel.

    A formula that asks for what this reading has not is read by its values, with the digits that their difference leaves.
    """
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        try:
            found = near(on(NearPairs(tile))).s
        except (TypeError, AttributeError):
            found = on(tile.rows) + on(tile.cols) - 2 * on(tile)
        return np.maximum(np.broadcast_to(found, (len(tile.X), len(tile.Z))), 0)
