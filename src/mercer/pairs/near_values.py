"""Values that know their differences: k(x, x), k(z, z) and k(x, z), and what is left of them when
x and z are near."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mercer.ops.special import Numbers, matern_deficit

PLAIN_SHARE = 0.125  # from this share of the terms on, their plain sum has all digits


class Near:
    """A function k of pairs: a = k(x, x), b = k(z, z) and v = k(x, z), with e = a - b and s = a + b
    - 2 v to relative accuracy.

    Sums, products, quotients and exponentials of such have e and s without any difference of near
    numbers; plain numbers are constants. Where s is not small against its terms, they have it to
    all digits. Products of rows know their `unit`: what s would be of rows of norm one.
    """

    __array_ufunc__ = None

    def __init__(
        self, a: Any, b: Any, v: Any, e: Any, s: Any, unit: Callable[[], Any] | None = None
    ) -> None:
        self.a, self.b, self.value, self.e, self.unit = a, b, v, e, unit
        plain = a + b - 2 * v
        size = np.abs(a) + np.abs(b) + 2 * np.abs(v)  # zero where a value was rounded to zero
        self.s = np.where((size > 0) & (np.abs(plain) >= PLAIN_SHARE * size), plain, s)

    @property
    def m(self) -> Any:
        return self.a + self.b

    def __add__(self, other: Any) -> Near:
        o = near(other)
        return Near(self.a + o.a, self.b + o.b, self.value + o.value, self.e + o.e, self.s + o.s)

    def __mul__(self, other: Any) -> Near:
        if not isinstance(other, Near):
            return Near(
                self.a * other,
                self.b * other,
                self.value * other,
                self.e * other,
                self.s * other,
                self.unit,
            )
        p, q = self, other
        e, s = (
            (p.m * q.e + q.m * p.e) / 2,
            (p.e * q.e + p.s * (q.m / 2 + q.value) + q.s * (p.m / 2 + p.value)) / 2,
        )
        return Near(p.a * q.a, p.b * q.b, p.value * q.value, e, s, _both(p.unit, q.unit))

    def __neg__(self) -> Near:
        return -1.0 * self

    def __sub__(self, other: Any) -> Near:
        return self + -near(other)

    def __rsub__(self, other: Any) -> Near:
        return near(other) + -self

    def __rtruediv__(self, other: Any) -> Near:
        """c / k: 1/a + 1/b - 2/v = (e^2 - m s) / (2 a b v)."""
        a, b, v, e = self.a, self.b, self.value, self.e
        return near(other) * Near(
            1 / a, 1 / b, 1 / v, -e / (a * b), (e**2 - self.m * self.s) / (2 * a * b * v)
        )

    def __truediv__(self, other: Any) -> Near:
        return self * (1 / other)

    def __pow__(self, n: Any) -> Near:
        if n != int(n):
            return Nears.exp(n * Nears.log(self))
        if n < 0:
            return 1.0 / self**-n
        if n == 0:
            return near(1.0)
        half = self ** (int(n) // 2) if n > 1 else self
        return half if n == 1 else half * half * self if n % 2 else half * half

    __rmul__, __radd__ = __mul__, __add__


def _both(p: Callable[[], Any] | None, q: Callable[[], Any] | None) -> Callable[[], Any] | None:
    """1 - u/2 of a product is the product of those."""
    if p is None or q is None:
        return None

    def unit() -> Any:
        u, w = p(), p() if p is q else q()
        return u + w - u * w / 2

    return unit


def near(value: Any) -> Near:
    """A constant, unless it is more."""
    return value if isinstance(value, Near) else Near(value, value, value, 0.0 * value, 0.0 * value)


def still(profile: Any) -> Near:
    """1 - profile, for a profile of distances that is 0 at x = z."""
    return Near(1.0, 1.0, 1 - profile, 0.0, 2 * profile)


class Nears(Numbers):
    """The functions of formulas, over Near."""

    @staticmethod
    def exp(a: Any) -> Any:  # type: ignore[override]
        """e^a + e^b - 2 e^k = 2 e^(m/2) (2 sinh^2(e/4) - expm1(-s/2))."""
        a = near(a)
        top = np.exp(a.m / 2)
        s = 2 * top * (2 * np.sinh(a.e / 4) ** 2 - np.expm1(-a.s / 2))
        return Near(np.exp(a.a), np.exp(a.b), np.exp(a.value), 2 * top * np.sinh(a.e / 2), s)

    @staticmethod
    def log1p(a: Any) -> Any:  # type: ignore[override]
        """As log of 1 + a, and with the digits of a where that is small."""
        k = near(a)
        found = Nears.log(k + 1.0)
        return Near(np.log1p(k.a), np.log1p(k.b), np.log1p(k.value), found.e, found.s)

    @staticmethod
    def log(a: Any) -> Any:  # type: ignore[override]
        """log(a b / k^2) = log1p((2 m s - s^2 - e^2) / (4 k^2))."""
        k = near(a)
        s = np.log1p((2 * k.m * k.s - k.s**2 - k.e**2) / (4 * k.value**2))
        return Near(np.log(k.a), np.log(k.b), np.log(k.value), np.log1p(k.e / k.b), s)

    @staticmethod
    def power(a: Any, q: float) -> Any:
        """Of a distance, which is zero at x = z; of others by logarithms."""
        k = near(a)
        if np.any(k.a) or np.any(k.b):
            return Nears.exp(q * Nears.log(k))
        return apart(np.power(k.value, q))

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
        """1 - p(t) exp(-t) = exp(-t) sum_j (1/j! - c_j) t^j, whose terms are none below zero, up to
        t = 1."""
        r = near(t).value
        c = [*coefficients, *[0.0] * (20 - len(coefficients))]
        left = [
            0.0,
            *(
                v if (v := 1 / math.factorial(j) - c[j]) > 1e-14 * c[j] else 0.0
                for j in range(1, 20)
            ),
        ]  # the first ones are 0
        few = np.exp(-r) * _polynomial(left, np.minimum(r, 1))
        return still(np.where(r < 1, few, 1 - _polynomial(coefficients, r) * np.exp(-r)))

    @staticmethod
    def sqrt(a: Any) -> Any:  # type: ignore[override]
        """Of one side alone, as it stands in a norm."""
        return np.sqrt(a)

    @staticmethod
    def ratio(a: Any, b: Any) -> Any:
        """k / sqrt(k(x, x) k(z, z)): 2 - 2 k / sqrt(a b) = (s - (sqrt a - sqrt b)^2) / sqrt(a b);
        nothing where a or b is 0."""
        a = near(a)
        x, z = (np.sqrt(np.maximum(v, 0)) for v in (a.a, a.b))
        gap, size = Numbers.ratio(a.e * np.ones_like(x + z), x + z), x * z
        cosine, share = (
            Numbers.ratio(v * np.ones_like(size), size) for v in (a.value, np.abs(a.s))
        )
        found = Numbers.ratio(np.maximum(a.s - gap**2, 0), size * np.ones_like(gap))
        if a.unit is None:  # norms that are unlike leave no more digits in s than in the cosine
            found = np.where(share <= 1, found, np.maximum(2 - 2 * cosine, 0))
        else:
            unit = a.unit()
            found = np.where(share**2 <= unit, found, unit)
        one, two = (x > 0) * 1.0, (z > 0) * 1.0
        return Near(one, two, cosine, one - two, np.where(size > 0, found, one + two))


def _polynomial(coefficients: Sequence[float], t: Any) -> Any:
    value: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        value = value * t + c
    return value


def apart(distance: Any) -> Near:
    """What is zero at x = z."""
    return Near(0.0, 0.0, distance, 0.0, -2 * distance)


def product(x: Any, z: Any, gap: Any = None) -> Near:
    """f(x) f(z) of numbers, and their difference where it has more digits than they."""
    gap = x - z if gap is None else gap
    return Near(x**2, z**2, x * z, gap * (x + z), np.square(gap))
