"""The reading about a point p: k(x, z) - k(x, p) - k(p, z) + k(p, p) from the same formula, without the digits that its terms share."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.pairs.side import per_column, square

Value = Any  # a number, or an array that broadcasts over the tile


@dataclass(frozen=True, eq=False)
class Spread:
    """A quantity of pairs as core(x, z) + left(x) + right(z) + base, where core vanishes wherever one of the two is p.

    >>> q = Spread(6.0, 2.0, 3.0, 1.0)  # x'z at x = 3, z = 4 about p = 1
    >>> (q * q).core, 12.0**2 - 3.0**2 - 4.0**2 + 1
    (120.0, 120.0)
    """

    core: Value
    left: Value = 0.0
    right: Value = 0.0
    base: Value = 0.0

    __array_ufunc__ = None

    @property
    def all(self) -> Value:
        return self.core + self.edges

    @property
    def edges(self) -> Value:
        return self.left + self.right + self.base

    def __add__(self, o: Any) -> Spread:
        o = spread(o)
        return Spread(self.core + o.core, self.left + o.left, self.right + o.right, self.base + o.base)

    __radd__ = __add__

    def __neg__(self) -> Spread:
        return self * -1.0

    def __sub__(self, o: Any) -> Spread:
        return self + -1.0 * spread(o)

    def __rsub__(self, o: Any) -> Spread:
        return -self + o

    def __mul__(self, o: Any) -> Spread:
        if not isinstance(o, Spread):
            return Spread(self.core * o, self.left * o, self.right * o, self.base * o)
        core = self.core * o.all + self.edges * o.core + (self.left * o.right + self.right * o.left)
        left, right = ((a + self.base) * b + a * o.base for a, b in ((self.left, o.left), (self.right, o.right)))
        return Spread(core, left, right, self.base * o.base)

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Spread:
        return self * (spread(o)._of(lambda v: 1 / v) if isinstance(o, Spread) else 1 / o)

    def __rtruediv__(self, o: Any) -> Spread:
        return self._of(lambda v: o / v)

    def __pow__(self, n: Any) -> Spread:
        if not float(n).is_integer() or n < 0 or n > 64:
            return self._of(lambda v: v**n)
        out = Spread(0.0, base=1.0)
        for _ in range(int(n)):
            out = out * self
        return out

    def exp(self) -> Spread:
        """exp(core + left + right + base), each part by expm1."""
        scale, x, z = np.exp(self.base), np.expm1(self.left), np.expm1(self.right)
        core = scale * ((1 + x) * (1 + z) * np.expm1(self.core) + x * z)
        return Spread(core, scale * x, scale * z, scale)

    def _of(self, f: Callable[[Value], Value]) -> Spread:
        """Any other function, by differences of its values."""
        both, x, z, base = f(self.all), f(self.left + self.base), f(self.right + self.base), f(self.base)
        return Spread((both - x) - (z - base), x - base, z - base, base)


def spread(v: Any) -> Spread:
    return v if isinstance(v, Spread) else Spread(0.0, base=v)


class Functions:
    """exp by its parts; other functions by differences."""

    @staticmethod
    def exp(v: Any) -> Spread:
        return spread(v).exp()

    @staticmethod
    def log1p(v: Any) -> Spread:
        return spread(v)._of(np.log1p)

    @staticmethod
    def sqrt(v: Any) -> Spread:
        return spread(v)._of(np.sqrt)


class About:
    """All pairs of two sets of dense rows in float64, about p; or each row with itself. Formulas that ask for more raise AttributeError."""

    xp: Any = Functions
    one: Any = 1.0

    def __init__(self, X: Array, Z: Array, p: Array, *, paired: bool = False) -> None:
        self.X, self.Z, self.p, self.paired = X - p, Z - p, p, paired

    @property
    def width(self) -> int:
        return len(self.p)

    def _times(self, A: Array, B: Array) -> Array:
        return np.einsum("ij,ij->i", A, B) if self.paired else A @ B.T

    def _edge(self, v: Array, *, left: bool) -> Array:
        return v if self.paired or not left else v[:, None]

    def _product(self, X: Array, Z: Array, p: Array, q: Array) -> Spread:
        """x'z of rows whose products with p are those with q."""
        return Spread(self._times(X, Z), self._edge(self.X @ q, left=True), self._edge(self.Z @ q, left=False), float(p @ q))

    @property
    def dot(self) -> Spread:
        return self._product(self.X, self.Z, self.p, self.p)

    def bilinear(self, A: Array) -> Spread:
        A = square(A, self.width, np.float64)
        return self._product(self.X @ A, self.Z, self.p, A @ self.p)

    def sqdist(self, bandwidth: Any = 1.0) -> Spread:
        b = per_column(bandwidth, self.width)
        X, Z = self.X / b, self.Z / b
        x, z = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
        return Spread(-2 * self._times(X, Z), self._edge(x, left=True), self._edge(z, left=False), 0.0)

    def pick(self, columns: Sequence[int | str]) -> About:
        some = [int(c) for c in columns]
        return About(self.X[:, some] + self.p[some], self.Z[:, some] + self.p[some], self.p[some], paired=self.paired)


def about(formula: Callable[[Any], Any], X: Array, Z: Array, p: Array, *, paired: bool = False) -> Spread:
    """A kernel's formula about p, of all pairs or of each row with itself.

    >>> from mercer.kernels import Polynomial
    >>> X = np.array([[1e6], [1e6 + 1]])
    >>> about(Polynomial(1).on, X, X, X[0]).core
    array([[0., 0.],
           [0., 1.]])
    """
    return spread(formula(About(X, Z, p, paired=paired)))
