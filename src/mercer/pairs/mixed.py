"""The reading of second order at a point: d^2 k(x, z) / dx_k dz_k at z = x, the variance of the
slopes of a Gaussian process.

Both rows move along a direction v: x + s v and x + u v. Numbers are c + c_s s + c_u u + c_su s u +
c_r |s - u|: squares of s and of u do not matter, and |s - u|^2 is -2 s u beside them. A formula
whose c_r is not 0 has a kink where x meets itself, and slopes of infinite variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.ops.frozen import FrozenArray
from mercer.ops.special import Numbers
from mercer.pairs.inputs import Formula, FormulasOnly
from mercer.pairs.linear import full
from mercer.pairs.side import Bandwidth, per_column

Value = Any  # a number, or an array that broadcasts over (n, d)
KINK = 1e-9  # of c_r beside the other parts: rounding leaves less


@dataclass(frozen=True, eq=False)
class Jet:
    """c + s + u + su + kink, the parts of a number of second order.

    Parts broadcast over (n, d).

    >>> x = Jet(3.0, s=1.0) * Jet(3.0, u=1.0)  # x z at x = z = 3
    >>> (x * x).su  # of x^2 z^2: 4 x z
    36.0
    """

    c: Value
    s: Value = 0.0
    u: Value = 0.0
    su: Value = 0.0
    kink: Value = 0.0

    __array_ufunc__ = None

    def __add__(self, o: Any) -> Jet:
        o = jet(o)
        return Jet(self.c + o.c, self.s + o.s, self.u + o.u, self.su + o.su, self.kink + o.kink)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return self * -1.0

    def __sub__(self, o: Any) -> Jet:
        return self + -jet(o)

    def __rsub__(self, o: Any) -> Jet:
        return -self + o

    def __mul__(self, o: Any) -> Jet:
        o = jet(o)
        cross = self.s * o.u + self.u * o.s - 2 * self.kink * o.kink
        return Jet(
            self.c * o.c,
            self.c * o.s + self.s * o.c,
            self.c * o.u + self.u * o.c,
            self.c * o.su + self.su * o.c + cross,
            self.c * o.kink + self.kink * o.c,
        )

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Jet:
        return self * jet(o) ** -1

    def __rtruediv__(self, o: Any) -> Jet:
        return self**-1 * o

    def __pow__(self, n: Any) -> Jet:
        second = n * (n - 1) * self.c ** (n - 2) if n not in (0, 1) else 0.0
        return self.through(self.c**n, n * self.c ** (n - 1) if n else 0.0, second)

    def through(self, value: Value, first: Value, second: Value) -> Jet:
        """f of it, given the value and two derivatives of f at c."""
        curved = second * (self.s * self.u - self.kink * self.kink)
        parts = first * self.s, first * self.u, first * self.su + curved, first * self.kink
        return Jet(value, *parts)


def jet(a: Any) -> Jet:
    return a if isinstance(a, Jet) else Jet(a)


Lift = Callable[[Any], Any]


def _lifted(f: Lift, first: Lift, second: Lift) -> Lift:
    """f over jets and numbers, by its derivatives."""

    def on(a: Any) -> Any:
        return a.through(f(a.c), first(a.c), second(a.c)) if isinstance(a, Jet) else f(a)

    return on


def _rough(value: Value, a: Value) -> Jet:
    """A value with a kink, where a is not 0."""
    return Jet(value, kink=np.where(np.asarray(a) != 0, 1.0, 0.0))


class JetFunctions:
    """The functions of `Numbers` with two derivatives."""

    exp = staticmethod(_lifted(np.exp, np.exp, np.exp))
    log = staticmethod(_lifted(np.log, lambda x: 1 / x, lambda x: -1 / x**2))
    log1p = staticmethod(_lifted(np.log1p, lambda x: 1 / (1 + x), lambda x: -1 / (1 + x) ** 2))
    sin = staticmethod(_lifted(np.sin, np.cos, lambda x: -np.sin(x)))
    cos = staticmethod(_lifted(np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)))

    @staticmethod
    def sqrt(a: Any) -> Any:
        return np.sqrt(a) if not isinstance(a, Jet) else _root(a)

    @staticmethod
    def power(r: Any, q: Any) -> Any:
        """Of distances between a row and itself: r^q has a second derivative from q = 2 on."""
        r = jet(r)
        if q < 2 and q != 1:
            return _rough(np.power(r.c, q), r.kink)
        return r if q == 1 else r**q

    @staticmethod
    def sinc(a: Any) -> Any:
        return Jet(1.0, su=jet(a).kink ** 2 / 3)  # 1 - t^2/6

    @staticmethod
    def bessel(nu: float, r: Any) -> Any:
        """1 - t^2 / (4 (nu - 1)) near 0, where nu > 1."""
        t = jet(r)
        return Jet(1.0, su=t.kink**2 / (2 * (nu - 1))) if nu > 1 else _rough(1.0, t.kink)

    @staticmethod
    def ratio(a: Any, b: Any) -> Any:
        b = jet(b)
        safe = Jet(np.where(b.c != 0, b.c, 1), b.s, b.u, b.su, b.kink)
        out = a / safe
        defined = np.where(b.c != 0, 1.0, 0.0)
        return out * defined + _rough(0.0, 1 - defined)


def _root(a: Jet) -> Jet:
    c = np.where(a.c > 0, a.c, 1)
    smooth = Jet(c, a.s, a.u, a.su, a.kink).through(np.sqrt(c), 0.5 / np.sqrt(c), -0.25 * c**-1.5)
    positive = np.where(a.c > 0, 1.0, 0.0)
    return smooth * positive + _rough(0.0, 1 - positive)


class Moving(FormulasOnly):
    """A row with itself, (x + s v, x + u v), for each of D directions v: X (n, d), V (d, D)."""

    xp: Any = JetFunctions
    one: Any = 1.0

    def __init__(self, X: Array, V: Array, side: str = "both") -> None:
        self.X, self.V, self.side = X, V, side

    @property
    def width(self) -> int:
        return self.X.shape[1]

    @property
    def rows(self) -> Moving:
        return self._of("rows")

    @property
    def cols(self) -> Moving:
        return self._of("cols")

    def _of(self, side: str) -> Moving:
        return Moving(self.X, self.V, side) if self.side == "both" else self

    def _pair(self, x: Array, v: Array) -> tuple[Jet, Jet]:
        """What is moved of the left and of the right row; of one side both are that row."""
        left, right = Jet(x, s=v), Jet(x, u=v)
        return {"both": (left, right), "rows": (left, left), "cols": (right, right)}[self.side]

    @property
    def dot(self) -> Jet:
        return self.bilinear(np.eye(self.width))

    def bilinear(self, A: Array) -> Jet:
        c = np.einsum("ij,ij->i", self.X @ A, self.X)[:, None]
        s, u = self.X @ A.T @ self.V, self.X @ A @ self.V
        su = np.einsum("kd,kd->d", self.V, A @ self.V)
        zero = np.zeros_like(s)
        one_sided = {"rows": Jet(c, s=s + u), "cols": Jet(c, u=s + u)}
        return one_sided.get(self.side, Jet(c, s, u, su + zero))

    def _measured(self, kink: Value = 0.0, su: Value = 0.0) -> Jet:
        """A quantity of the difference (s - u) v alone."""
        zero = np.zeros((len(self.X), self.V.shape[1]))
        return Jet(zero, su=su + zero, kink=kink + zero) if self.side == "both" else Jet(zero)

    def sqdist(self, bandwidth: Bandwidth = 1.0) -> Jet:
        v = self.V / per_column(bandwidth, self.width)[:, None]
        return self._measured(su=-2 * (v**2).sum(0))

    def dist(self, bandwidth: Bandwidth = 1.0) -> Jet:
        v = self.V / per_column(bandwidth, self.width)[:, None]
        return self._measured(kink=np.sqrt((v**2).sum(0)))

    def absdist(self, bandwidth: Bandwidth = 1.0) -> Jet:
        v = self.V / per_column(bandwidth, self.width)[:, None]
        return self._measured(kink=np.abs(v).sum(0))

    def sinsq(self, period: Bandwidth, bandwidth: Bandwidth) -> Jet:
        rate = math.pi / per_column(period, self.width, "period")
        v = self.V * (rate / per_column(bandwidth, self.width))[:, None]
        return self._measured(su=-2 * (v**2).sum(0))

    @property
    def prod1p(self) -> Jet:
        out = Jet(np.ones((len(self.X), 1)))
        for x, v in zip(self.X.T, self.V, strict=True):
            left, right = self._pair(x[:, None], v)
            out = out * (1 + left * right)
        return out

    def elementary(self, order: int) -> Jet:
        e = [Jet(1.0), *[Jet(0.0)] * order]
        for x, v in zip(self.X.T, self.V, strict=True):
            left, right = self._pair(x[:, None], v)
            e = [e[0], *(e[t] + left * right * e[t - 1] for t in range(1, order + 1))]
        return e[order]

    @property
    def harmonic(self) -> Jet:
        """Of one side |x|_1; of both 2 x z / (x + z) bends by 1 / (2 x), without end at 0."""
        total, slope = self.X.sum(1)[:, None], self.V.sum(0)
        if self.side != "both":
            return Jet(total, s=slope) if self.side == "rows" else Jet(total, u=slope)
        bend = Numbers.ratio(np.full(self.X.shape, 0.5), self.X) @ self.V**2
        return Jet(total, slope / 2, slope / 2, bend, 1.0 * (self.X == 0) @ (self.V != 0))

    @property
    def chisq(self) -> Jet:
        """|x|_1 + |z|_1 less twice the harmonic means."""
        return self.rows.harmonic + self.cols.harmonic - 2 * self.harmonic

    @property
    def angle(self) -> Jet:
        """That between x + s v and x + u v: |s - u| |v across x| / |x|."""
        size = np.sqrt(np.square(self.X).sum(1))[:, None]
        along = Numbers.ratio(self.X, np.broadcast_to(size, self.X.shape)) @ self.V
        across = np.sqrt(np.maximum((self.V**2).sum(0) - along**2, 0))
        kink = np.where(size > 0, Numbers.ratio(across, np.broadcast_to(size, across.shape)), 1.0)
        return self._measured(kink=kink) + np.where(size > 0, 0.0, math.pi / 2)

    def arc(self, order: int) -> Jet:
        """The arc-cosine kernels to second order: angles enter by their third power."""
        if order == 0:
            return 1 - self.angle / math.pi
        return self.dot if order == 1 else self.rows.dot * self.cols.dot + 2 * self.dot * self.dot

    def pick(self, columns: Sequence[int | str]) -> Moving:
        at = [Table(self.X[:0]).position(c) for c in columns]
        return Moving(self.X[:, at], self.V[at], self.side)

    def map(self, S: FrozenArray) -> Moving:
        M = full(S)
        return Moving(self.X @ M.T, M @ self.V, self.side)


def slope_variances(on: Formula, rows: Table, name: str = "the kernel") -> Array:
    """d^2 k(x, z) / dx_k dz_k at z = x, (n, d), in float64; refused where it is not finite.

    >>> slope_variances(lambda p: p.xp.exp(-0.5 * p.sqdist(2.0)), Table(np.zeros((1, 2))))
    array([[0.25, 0.25]])
    """
    X = np.asarray(rows.data.toarray() if rows.sparse else rows.data, np.float64)
    found = jet(on(Moving(X, np.eye(X.shape[1]))))
    shape = X.shape
    su, kink = (np.broadcast_to(v, shape).astype(np.float64) for v in (found.su, found.kink))
    if (np.abs(kink) > KINK * (np.abs(su) + np.abs(found.c))).any():
        raise ValueError(
            f"slopes have no finite variance under {name}, which has a kink where rows meet; use a smoother "
            "kernel, such as Gaussian or Matern with nu > 1."
        )
    return su
