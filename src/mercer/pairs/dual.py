"""The reading by dual numbers: the derivatives of a kernel by its parameters, from the same
formula.

Tangents are kept a slot each and only where they are not zero. A slot is a parameter, or a pairwise
quantity that depends on parameters (a distance by its bandwidths): the chain rule from there to one
bandwidth a column is a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, cast

import numpy as np

from mercer.inputs import Array
from mercer.ops.distances import precise_enough
from mercer.ops.frozen import FrozenArray
from mercer.ops.special import Numbers, bessel
from mercer.pairs.packed import Packed
from mercer.pairs.side import per_column
from mercer.pairs.tile import Diagonal, Map, Tile

Slot = Any  # the index of a parameter, or a Quantity
Tangents = dict[Slot, Any]


class Dual:
    """A value and its tangents, one a slot."""

    __array_ufunc__ = None
    __slots__ = ("d", "v")

    def __init__(self, v: Any, d: Mapping[Slot, Any] | None = None) -> None:
        self.v, self.d = v, dict(d or {})

    def __add__(self, o: Any) -> Dual:
        o = dual(o)
        return Dual(self.v + o.v, _merge(self.d, o.d))

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return self._through(-self.v, -1.0)

    def __sub__(self, o: Any) -> Dual:
        return self + -dual(o)

    def __rsub__(self, o: Any) -> Dual:
        return -self + o

    def __mul__(self, o: Any) -> Dual:
        o = dual(o)
        return Dual(self.v * o.v, _merge(_times(self.d, o.v), _times(o.d, self.v)))

    __rmul__ = __mul__

    def __truediv__(self, o: Any) -> Dual:
        o = dual(o)
        return Dual(self.v / o.v, _merge(_times(self.d, 1 / o.v), _times(o.d, -self.v / o.v**2)))

    def __rtruediv__(self, o: Any) -> Dual:
        return dual(o) / self

    def __pow__(self, n: Any) -> Dual:
        if isinstance(n, Dual):
            return cast(Dual, DualFunctions.exp(n * DualFunctions.log(self)))
        return self._through(self.v**n, n * self.v ** (n - 1) if n else 0.0)

    def _through(self, value: Any, slope: Any) -> Dual:
        """f(self), given its value and its slope there."""
        return Dual(value, _times(self.d, slope))


def dual(x: Any) -> Dual:
    return x if isinstance(x, Dual) else Dual(x)


def plain(x: Any) -> Any:
    """The value without its tangents."""
    return tuple(map(plain, x)) if isinstance(x, tuple) else x.v if isinstance(x, Dual) else x


def _times(d: Tangents, by: Any) -> Tangents:
    return {slot: t * by for slot, t in d.items()}


def _merged(some: Iterable[Tangents]) -> Tangents:
    return reduce(_merge, some, {})


def _merge(a: Tangents, b: Tangents) -> Tangents:
    return {**a, **{slot: a[slot] + t if slot in a else t for slot, t in b.items()}}


def _lifted(f: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """f over duals and numbers; `slope(x, f(x))` is its derivative."""

    def on(a: Any) -> Any:
        if not isinstance(a, Dual):
            return f(a)
        value = f(a.v)
        return a._through(value, slope(a.v, value)) if a.d else Dual(value)

    return on


class DualFunctions:
    """The functions of `Numbers` with their slopes; where a slope is infinite (a root at zero) it
    is taken as 0."""

    exp = staticmethod(_lifted(np.exp, lambda x, y: y))
    log = staticmethod(_lifted(np.log, lambda x, y: 1 / x))
    log1p = staticmethod(_lifted(np.log1p, lambda x, y: 1 / (1 + x)))
    sin = staticmethod(_lifted(np.sin, lambda x, y: np.cos(x)))
    cos = staticmethod(_lifted(np.cos, lambda x, y: -np.sin(x)))
    sqrt = staticmethod(_lifted(np.sqrt, lambda x, y: Numbers.ratio(np.asarray(0.5), y)))
    sinc = staticmethod(_lifted(Numbers.sinc, lambda x, y: Numbers.ratio(np.cos(x) - y, x)))

    @staticmethod
    def decay(coefficients: Sequence[float], t: Any) -> Any:
        """p(t) exp(-t) for a polynomial p, and its slope (p' - p)(t) exp(-t)."""
        c = [*coefficients, 0.0]
        slope = [(i + 1) * c[i + 1] - c[i] for i in range(len(coefficients))]
        e = np.exp(-plain(t))
        return _lifted(
            lambda x: _polynomial(coefficients, x) * e, lambda x, y: _polynomial(slope, x) * e
        )(t)

    @staticmethod
    def power(r: Any, q: float) -> Any:
        return _lifted(
            lambda x: np.power(x, q), lambda x, y: q * Numbers.ratio(y, np.asarray(x, y.dtype))
        )(r)

    @staticmethod
    def bessel(nu: float, r: Any) -> Any:
        return _lifted(lambda x: bessel(nu, x), lambda x, y: -bessel(nu, x, shift=1))(r)

    @staticmethod
    def ratio(a: Any, b: Any) -> Any:
        a, b = dual(a), dual(b)
        inverse = Numbers.ratio(np.ones_like(b.v), b.v)
        return Dual(
            Numbers.ratio(a.v, b.v), _merge(_times(a.d, inverse), _times(b.d, -a.v * inverse**2))
        )


def _polynomial(coefficients: Sequence[float], x: Any) -> Any:
    """sum_i c_i x^i"""
    value: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        value = value * x + c if c else value * x
    return value


@dataclass(frozen=True, eq=False)
class Quantity:
    """A pairwise quantity of a tile that depends on parameters: `pull` carries weights on its pairs
    to them."""

    pull: Callable[[Array], list[tuple[Any, float]]]


class DualPairs:
    """A tile or diagonal whose parametric quantities are dual numbers."""

    xp: Any = DualFunctions

    def __init__(self, base: Tile | Diagonal | Packed) -> None:
        self.base: Any = base
        self._parts: dict[Any, Any] = {}

    def __getattr__(
        self, name: str
    ) -> Any:  # dot, prod1p, angle, of, call, ...: quantities without parameters
        return getattr(self.base, name)

    @property
    def rows(self) -> DualPairs:
        return DualPairs(self.base.rows)

    @property
    def cols(self) -> DualPairs:
        return DualPairs(self.base.cols)

    def warp(self, f: Map) -> DualPairs:
        return self._part(self.base.warp(f))

    def pick(self, columns: Any) -> DualPairs:
        return self._part(self.base.pick(columns))

    def map(self, matrix: FrozenArray) -> DualPairs:
        return self._part(self.base.map(matrix))

    def sqdist(self, bandwidth: Any = 1.0) -> Any:
        return self._quantity(
            "sqdist", (bandwidth,), lambda t, b: lambda A: _by_squares(t, b, A, -2.0)
        )

    def dist(self, bandwidth: Any = 1.0) -> Any:
        return self._quantity("dist", (bandwidth,), lambda t, b: lambda A: _by_dist(t, b, A))

    def absdist(self, bandwidth: Any = 1.0) -> Any:
        return self._quantity("absdist", (bandwidth,), lambda t, b: lambda A: _by_absdist(t, b, A))

    def sinsq(self, period: Any, bandwidth: Any) -> Any:
        return self._quantity(
            "sinsq", (period, bandwidth), lambda t, p, b: lambda A: _by_sinsq(t, p, b, A)
        )

    def between(self, kernel: Any) -> Any:
        """A kernel of items: its values, and its slopes by the parameters that are duals here."""
        params = {f.name: getattr(kernel, f.name) for f in fields(kernel)}
        moving = {name: p for name, p in params.items() if isinstance(p, Dual)}
        still = kernel if not moving else type(kernel)(**{n: plain(p) for n, p in params.items()})
        value = self.base.between(still)
        if not moving:
            return value
        slopes = self.base.slopes_between(still)
        return Dual(value, _merged(_times(p.d, slopes[n]) for n, p in moving.items()))

    def over_bags(self, sets: Any) -> Dual:
        """Sums over bags; weights of pairs of bags are carried to those of their members."""
        base = self.base
        own = base if isinstance(base, Diagonal) else None
        parts = [base.overlap(sets)] if isinstance(base, Tile) else base.overlaps(sets)

        def on(tile: Tile) -> Any:
            return sets.kernel.on(DualPairs(tile))

        def pull(A: Array) -> list[tuple[Any, float]]:
            weights = [A] if own is None else own.collected(A)[:, None, None]
            each = zip(parts, weights, strict=True)
            tiles = ((tile, o.spread(w, r, c)) for o, w in each for r, c, tile in o)
            return [found for tile, G in tiles for found in pulled(on(tile), G)]

        sums = [o.summed(lambda tile: plain(on(tile))) for o in parts]
        return Dual(sums[0] if own is None else own._shaped(sums), {Quantity(pull): 1.0})

    def _part(self, base: Any) -> DualPairs:
        # One DualPairs a part, so that equal quantities of it share a slot.
        return self._parts.setdefault(id(base), DualPairs(base))

    def _quantity(self, name: str, params: tuple[Any, ...], pull: Callable[..., Any]) -> Any:
        value = getattr(self.base, name)(*plain(params))
        if isinstance(self.base, Diagonal) or plain(params) == params:
            return value  # a point's distance to itself does not move with the bandwidth
        slot = self._parts.setdefault((name, params), Quantity(pull(self.base, *params)))
        return Dual(value, {slot: 1.0})


def _spread(param: Any, per_col: Array) -> list[tuple[Any, float]]:
    """Hand derivatives by each column's value to the parameters: to each its own, or their sum to
    the shared one."""
    if isinstance(param, tuple):
        return [
            (s, float(g) * t)
            for p, g in zip(param, per_col, strict=True)
            if isinstance(p, Dual)
            for s, t in p.d.items()
        ]
    return (
        [(s, float(per_col.sum()) * t) for s, t in param.d.items()]
        if isinstance(param, Dual)
        else []
    )


def _column_squares(t: Tile | Packed, b: Any, A: Array) -> Array:
    """S_j = sum_ik A_ik ((x_ij - z_kj) / b_j)^2 for every column, by one matrix product."""
    if hasattr(t, "column_squares"):  # pairs that are kept know them
        return np.asarray(t.column_squares(b, A, _column_squares))
    A = A.astype(np.float64, copy=False)
    if not precise_enough(t.X.scaled(b)[1], t.Z.scaled(b)[1], np.dtype(np.float64), 1e-9):
        return _per_column(t, lambda D, j: np.sum(A * (D / b[j]) ** 2))
    X, Z = (s._over(b, np.float64) for s in (t.X, t.Z))
    X, Z = (S.toarray() if t.X.rows.sparse else S for S in (X, Z))
    S: Array = A.sum(1) @ X**2 + A.sum(0) @ Z**2 - 2 * np.einsum("ij,ij->j", X, A @ Z)
    return S


def _by_squares(
    t: Tile | Packed, bandwidth: Any, A: Array, factor: float
) -> list[tuple[Any, float]]:
    b = plain(bandwidth)
    if isinstance(b, tuple):
        return _spread(bandwidth, factor / np.asarray(b) * _column_squares(t, b, A))
    return _spread(bandwidth, np.atleast_1d(factor / b * _total(A, t.sqdist(b))))


def _total(A: Array, B: Any) -> float:
    """sum_ik A_ik B_ik, added up in float64; of plain vectors by BLAS."""
    if A.ndim == np.ndim(B) == 1 and A.dtype == B.dtype == np.float64:
        return float(A @ B)
    return float(np.sum(A * B, dtype=np.float64))


def _by_dist(t: Tile | Packed, bandwidth: Any, A: Array) -> list[tuple[Any, float]]:
    r, b = t.dist(plain(bandwidth)), plain(bandwidth)
    if not isinstance(b, tuple):  # r^2 / r, and 0 at 0, where there is no slope
        return _spread(bandwidth, np.atleast_1d(-1 / b * _total(A, r)))
    return _by_squares(t, bandwidth, Numbers.ratio(A, r), -1.0)


def _per_column(t: Tile, f: Callable[[Array, int], Any]) -> Array:
    """f(x_j - z_j, j) of every column that some row uses, in float64; 0 of the others."""
    X, Z, columns = t._dense(np.arange(t.width))
    out = np.zeros(t.width)
    for c, j in enumerate(columns):
        out[j] = f(X[:, c, None].astype(np.float64) - Z[:, c], j)
    return out


def _by_absdist(t: Tile, bandwidth: Any, A: Array) -> list[tuple[Any, float]]:
    b = per_column(plain(bandwidth), t.width)
    S = _per_column(t, lambda D, j: np.sum(A * np.abs(D)))
    return _spread(bandwidth, -S / b**2)


def _by_sinsq(t: Tile, period: Any, bandwidth: Any, A: Array) -> list[tuple[Any, float]]:
    p, b = per_column(plain(period), t.width), per_column(plain(bandwidth), t.width)
    by_b = _per_column(t, lambda D, j: np.sum(A * np.sin(np.pi * D / p[j]) ** 2)) * -2 / b**3
    by_p = (
        _per_column(t, lambda D, j: np.sum(A * D * np.sin(2 * np.pi * D / p[j])))
        * -np.pi
        / (p * b) ** 2
    )
    return _spread(period, by_p) + _spread(bandwidth, by_b)


def contract(value: Any, G: Array, n_params: int) -> Array:
    """d sum(G * value) / d parameters, from the tangents of a dual tile."""
    out = np.zeros(n_params)
    for index, g in pulled(value, G):
        out[index] += g
    return out


def pulled(value: Any, G: Array) -> list[tuple[Any, float]]:
    """What weights on the pairs of a dual tile are to the parameters, one by one."""
    out: list[tuple[Any, float]] = []
    for slot, tangent in dual(value).d.items():
        if isinstance(slot, Quantity):
            A = G * tangent
            out += slot.pull(A if A.shape == G.shape else np.broadcast_to(A, G.shape))
        else:
            out.append((slot, _total(G, tangent)))
    return out
