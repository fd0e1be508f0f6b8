"""The reading about a point p: k(x, z) - k(x, p) - k(p, z) + k(p, p) from the same formula, without
the digits that its terms share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.distances import refine
from mercer.ops.frozen import FrozenArray
from mercer.pairs.linear import through
from mercer.pairs.side import per_column, square

MAX_ERROR = 1e-14  # error of squared distances, in bandwidths
Value = Any  # a number, or an array that broadcasts over the tile


@dataclass(frozen=True, eq=False)
class Spread:
    """A quantity of pairs as core(x, z) + left(x) + right(z) + base, where core vanishes wherever
    one of the two is p.

    Rounding of the core is relative to its own size, unless it is `rounded`: then to that of the
    values.

    >>> q = Spread(6.0, 2.0, 3.0, 1.0)  # x'z at x = 3, z = 4 about p = 1
    >>> (q * q).core, 12.0**2 - 3.0**2 - 4.0**2 + 1
    (120.0, 120.0)
    """

    core: Value
    left: Value = 0.0
    right: Value = 0.0
    base: Value = 0.0
    whole: Value | None = None  # their sum, where it is known to more digits than its terms
    rounded: bool = False  # whether the core is a difference of values, with their rounding

    __array_ufunc__ = None

    @property
    def all(self) -> Value:
        return self.core + self.edges if self.whole is None else self.whole

    @property
    def edges(self) -> Value:
        return self.left + self.right + self.base

    def __add__(self, o: Any) -> Spread:
        o = spread(o)
        whole = None if self.whole is None and o.whole is None else self.all + o.all
        edges = self.left + o.left, self.right + o.right, self.base + o.base
        return Spread(self.core + o.core, *edges, whole, self.rounded or o.rounded)

    __radd__ = __add__

    def __neg__(self) -> Spread:
        return self * -1.0

    def __sub__(self, o: Any) -> Spread:
        return self + -1.0 * spread(o)

    def __rsub__(self, o: Any) -> Spread:
        return -self + o

    def __mul__(self, o: Any) -> Spread:
        if not isinstance(o, Spread):
            whole = None if self.whole is None else self.whole * o
            return Spread(
                self.core * o, self.left * o, self.right * o, self.base * o, whole, self.rounded
            )
        core = self.core * o.all + self.edges * o.core + (self.left * o.right + self.right * o.left)
        left, right = (
            (a + self.base) * b + a * o.base
            for a, b in ((self.left, o.left), (self.right, o.right))
        )
        return Spread(core, left, right, self.base * o.base, None, self.rounded or o.rounded)

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Spread:
        return self * (o.inverse() if isinstance(o, Spread) else 1 / o)

    def __rtruediv__(self, o: Any) -> Spread:
        return self.inverse() * o

    def __pow__(self, n: Any) -> Spread:
        if float(n).is_integer() and -64 <= n < 0:
            return self.inverse() ** -n
        if not float(n).is_integer() or abs(n) > 64:
            return self._of(lambda v: v**n)
        out = Spread(0.0, base=1.0)
        for _ in range(int(n)):
            out = out * self
        return out

    def exp(self) -> Spread:
        """exp(core + left + right + base), each part by expm1."""
        scale, x, z = np.exp(self.base), np.expm1(self.left), np.expm1(self.right)
        edge, whole = scale * (1 + x) * (1 + z), np.exp(self.all)
        near = edge * np.expm1(
            np.minimum(self.core, 1)
        )  # where rows are far from p, exp(core) is beyond all numbers
        core = np.where(self.core > 1, whole - edge, near) + scale * x * z
        return Spread(core, scale * x, scale * z, scale, whole, self.rounded)

    def inverse(self) -> Spread:
        """1/v, whose core is l r (X + Z) / (W X Z base) - core / (W v) of X = l + base, Z = r +
        base and W = X + r."""
        left, right, base = self.left, self.right, self.base
        if not (np.all(base > 0) and np.all(left >= 0) and np.all(right >= 0)):
            return self._of(lambda v: 1 / v)
        x, z = left + base, right + base
        core = (
            left / x * (right / z) * ((x + z) / (x + right) / base)
            - self.core / (x + right) / self.all
        )
        return Spread(
            core, -left / x / base, -right / z / base, 1 / base, 1 / self.all, self.rounded
        )

    def log(self) -> Spread:
        """log v, whose core is log1p((core base - l r) / ((l + base) (r + base)))."""
        left, right, base = self.left, self.right, self.base
        if not (np.all(base > 0) and np.all(left > -base) and np.all(right > -base)):
            return self._of(np.log)
        x, z, whole = left + base, right + base, np.log(self.all)
        share = np.asarray(self.core / x * (base / z) - left / x * (right / z))
        core = np.where(
            share > -0.5,
            np.log1p(np.maximum(share, -0.5)),
            whole + np.log(base) - np.log(x) - np.log(z),
        )
        return Spread(
            core, np.log1p(left / base), np.log1p(right / base), np.log(base), whole, self.rounded
        )

    def _of(self, f: Callable[[Value], Value]) -> Spread:
        """Any other function, by differences of its values."""
        both, x, z, base = (
            f(self.all),
            f(self.left + self.base),
            f(self.right + self.base),
            f(self.base),
        )
        return Spread((both - x) - (z - base), x - base, z - base, base, both, rounded=True)


def spread(v: Any) -> Spread:
    return v if isinstance(v, Spread) else Spread(0.0, base=v)


class Functions:
    """exp and logarithms by their parts; other functions by differences."""

    @staticmethod
    def exp(v: Any) -> Spread:
        return spread(v).exp()

    @staticmethod
    def log1p(v: Any) -> Spread:
        return (spread(v) + 1.0).log()

    @staticmethod
    def log(v: Any) -> Spread:
        return spread(v).log()

    @staticmethod
    def sqrt(v: Any) -> Spread:
        return spread(v)._of(np.sqrt)

    @staticmethod
    def power(v: Any, q: float) -> Spread:
        return spread(v)._of(lambda r: np.power(np.maximum(r, 0), q))


class About:
    """All pairs of two sets of dense rows in float64, about p; or each row with itself. Formulas
    that ask for more raise AttributeError."""

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
        return Spread(
            self._times(X, Z),
            self._edge(self.X @ q, left=True),
            self._edge(self.Z @ q, left=False),
            float(p @ q),
        )

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
        dot = self._times(X, Z)
        if self.paired:
            whole: Array = np.einsum("ij,ij->i", X - Z, X - Z)
        else:  # what is far from p and near to each other has its distance by differences
            whole = np.maximum(x[:, None] + z - 2 * dot, 0)
            error = np.finfo(np.float64).eps * (x.max(initial=0) + z.max(initial=0))
            if error > MAX_ERROR:
                whole = refine(whole, self.X, self.Z, b, error / MAX_ERROR)
        return Spread(-2 * dot, self._edge(x, left=True), self._edge(z, left=False), 0.0, whole)

    def pick(self, columns: Sequence[int | str]) -> About:
        some = [int(c) for c in columns]
        return About._of(self.X[:, some], self.Z[:, some], self.p[some], self.paired)

    def map(self, matrix: FrozenArray) -> About:
        X, Z, p = (through(A, matrix) for A in (self.X, self.Z, self.p[None]))
        return About._of(X, Z, p[0], self.paired)

    @classmethod
    def _of(cls, X: Array, Z: Array, p: Array, paired: bool) -> About:
        """Of rows less p already."""
        pairs = object.__new__(cls)
        pairs.X, pairs.Z, pairs.p, pairs.paired = X, Z, p, paired
        return pairs


def about(
    formula: Callable[[Any], Any], X: Array, Z: Array, p: Array, *, paired: bool = False
) -> Spread:
    """A kernel's formula about p, of all pairs or of each row with itself.

    >>> from mercer.kernels import Polynomial
    >>> X = np.array([[1e6], [1e6 + 1]])
    >>> about(Polynomial(1).on, X, X, X[0]).core
    array([[0., 0.],
           [0., 1.]])
    """
    return spread(formula(About(X, Z, p, paired=paired)))
