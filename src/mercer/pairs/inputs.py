"""The reading by inputs: the derivatives of a kernel by its left row, from the same formula.

A slot is a pairwise quantity. What the formula has of it, its tangent T (n, m), is carried to the
columns of the left row together with weights A (m, t) of the right ones, by matrix products where
that is possible: no (n, m, d) array is formed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.ops import slopes
from mercer.ops.chisquare import chisquare_slopes
from mercer.ops.frozen import FrozenArray
from mercer.ops.slopes import product
from mercer.ops.special import Numbers
from mercer.ops.tiles import cuts
from mercer.pairs.dual import Dual, DualFunctions, dual
from mercer.pairs.pulls import (
    Back,
    Pull,
    carried,
    into,
    roots,
    signs,
    squares,
    through,
    without_each,
)
from mercer.pairs.side import Bandwidth, Side, centre_of, per_column, square
from mercer.pairs.tile import Diagonal, Tile

NO_COLUMNS = (
    "items have no derivative by the inputs, as they have no columns; give rows of numbers."
)
Formula = Callable[[Any], Any]  # `on` of a kernel
ALONE = 16  # right rows whose slopes are taken apart by one tile


@dataclass(frozen=True, eq=False)
class Slope:
    """A pairwise quantity that depends on the left row."""

    pull: Pull


def input_gradients(on: Formula, tile: Tile, A: Array, near: float = 0.0) -> Array:
    """sum_j A_jt d k(x_i, z_j) / d x_ik, (n, t, d), of a tile of dense rows.

    Distances below `near` bandwidths count as `near` where slopes divide by them or by their
    powers; in the 1-norm slopes shrink with them, as signs of differences do not.
    """
    value, shape = dual(on(InputPairs(tile, near))), (len(tile.X), len(tile.Z))
    out = np.zeros((shape[0], A.shape[1], tile.width), np.result_type(tile.dtype, A.dtype))
    for slot, tangent in value.d.items():
        out += slot.pull(np.broadcast_to(np.asarray(tangent, tile.dtype), shape), A)
    return out


def pair_gradients(on: Formula, X: Table, Z: Table) -> Array:
    """d k(x_i, z_j) / d x_ik, (n, m, d), of few rows."""
    if X.items or Z.items:
        raise ValueError(NO_COLUMNS)
    out, centre, x = np.empty((len(X), len(Z), X.width), X.dtype), centre_of(X, Z), dense_block(X)
    for cols in cuts(len(Z), ALONE):
        one_each = np.eye(cols.stop - cols.start, dtype=X.dtype)
        tile = Tile(Side(x, centre), Side(dense_block(Z[cols]), centre), _offset(X, Z, cols))
        out[:, cols] = input_gradients(on, tile, one_each)
    return out


def _offset(X: Table, Z: Table, cols: slice) -> int | None:
    return -cols.start if X is Z else None


class InputFunctions(DualFunctions):
    """The functions of dual numbers, with powers of distances."""

    def __init__(self, near: float = 0.0) -> None:
        self.near = near

    def power(self, r: Any, q: float) -> Any:  # type: ignore[override]
        """r^q of r >= 0; its slope is taken as 0 at r = 0."""
        r = dual(r)
        value = np.power(r.v, q)
        if not self.near:
            return r._through(value, q * Numbers.ratio(value, r.v))
        far = np.where(r.v > 0, q * np.power(np.maximum(r.v, self.near), q - 1), 0)
        return r._through(value, far.astype(np.asarray(value).dtype))


class FormulasOnly:
    """Pairs that are asked for derivatives: what runs Python code is refused in a sentence."""

    def of(self, f: Any) -> Any:
        return _none(f"weighted({_name(f)})")

    def warp(self, f: Any) -> Any:
        return _none(f"warped({_name(f)})")

    def call(self, f: Any) -> Any:
        return _none(f"Callable({_name(f)})")


class SharedSlots(FormulasOnly):
    """Pairs whose equal quantities share a slot: each is made once."""

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}

    def _part(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._parts:
            self._parts[key] = make()
        return self._parts[key]


class InputPairs(SharedSlots):
    """A tile of dense rows whose quantities are dual numbers over the left rows."""

    one: Any = 1.0

    def __init__(self, tile: Tile, near: float = 0.0, back: Back | None = None) -> None:
        self.tile, self.near, self.back = tile, near, back or (lambda G: G)
        self.xp: Any = InputFunctions(near)
        super().__init__()

    @property
    def width(self) -> int:
        return self.tile.width

    # quantities
    @property
    def dot(self) -> Dual:
        return self._quantity("dot", self.tile.dot, lambda T, A: carried(T, A, self._Z))

    def bilinear(self, M: Array) -> Dual:
        Z = self._Z @ square(M, self.width, self.tile.dtype).T
        return Dual(self.tile.bilinear(M), {self._slope(lambda T, A: carried(T, A, Z)): 1.0})

    def sqdist(self, bandwidth: Bandwidth = 1.0) -> Dual:
        return self._quantity(
            ("sqdist", bandwidth),
            self.tile.sqdist(bandwidth),
            lambda T, A: squares(self.tile, bandwidth, T, A),
        )

    def dist(self, bandwidth: Bandwidth = 1.0) -> Dual:
        return self._quantity(
            ("dist", bandwidth),
            self.tile.dist(bandwidth),
            lambda T, A: roots(self.tile, bandwidth, T, A, self.near),
        )

    def absdist(self, bandwidth: Bandwidth = 1.0) -> Dual:
        b, r = per_column(bandwidth, self.width), self.tile.absdist(bandwidth)

        def pull(T: Array, A: Array) -> Array:
            if self.near:  # signs do not shrink as differences do
                T = T * np.minimum(r / self.near, 1).astype(T.dtype)
            return signs(T, A, *self._apart) / b

        return self._quantity(("absdist", bandwidth), r, pull)

    def sinsq(self, period: Bandwidth, bandwidth: Bandwidth) -> Dual:
        p, b = per_column(period, self.width, "period"), per_column(bandwidth, self.width)

        def pull(T: Array, A: Array) -> Array:
            x, z = ((R.astype(np.float64) * (2 * np.pi / p)) for R in self._apart)
            sines, cosines = (carried(T, A, f(z).astype(T.dtype)) for f in (np.sin, np.cos))
            G = np.sin(x)[:, None] * cosines - np.cos(x)[:, None] * sines
            return G * (np.pi / (p * b**2))

        return self._quantity(
            ("sinsq", period, bandwidth), self.tile.sinsq(period, bandwidth), pull
        )

    @property
    def prod1p(self) -> Dual:
        return self._quantity(
            "prod1p",
            self.tile.prod1p,
            lambda T, A: slopes.prod1p_slopes(T, A, self._X, self._Z),
        )

    def elementary(self, order: int) -> Dual:
        return self._quantity(
            ("elementary", order),
            self.tile.elementary(order),
            lambda T, A: slopes.elementary_slopes(T, A, self._X, self._Z, order),
        )

    @property
    def chisq(self) -> Dual:
        return self._chisquare("chisq", self.tile.chisq, distance=True)

    @property
    def harmonic(self) -> Dual:
        return self._chisquare("harmonic", self.tile.harmonic, distance=False)

    def _chisquare(self, key: str, value: Array, *, distance: bool) -> Dual:
        """Where both rows have 0 its slope is that to the right, as there is no other."""
        return self._quantity(
            key, value, lambda T, A: chisquare_slopes(T, A, self._X, self._Z, distance=distance)
        )

    @property
    def angle(self) -> Dual:
        """Its slope is -(z / (|x| |z|) - cos x / |x|^2) / sin; 0 where that is not defined."""

        def pull(T: Array, A: Array) -> Array:
            x, z = self._norms
            V = Numbers.ratio(T, np.sin(self.tile.angle))
            by_x = product(V * np.cos(self.tile.angle), A)[..., None] * self._unit[:, None]
            by_z = carried(Numbers.ratio(V, np.broadcast_to(z, V.shape)), A, self._Z)
            return Numbers.ratio(by_x - by_z, np.broadcast_to(x[:, None, None], by_z.shape))

        return self._quantity("angle", self.tile.angle, pull)

    def arc(self, order: int) -> Dual:
        """The arc-cosine kernels, whose slopes are c x + c' z of factors that vanish nowhere by
        cancellation."""
        if order == 0:
            return 1 - self.angle / math.pi
        t, dot = self.tile.angle, self.tile.dot
        (x, z), sin, cos = self._norms, np.sin(t), np.cos(t)
        size = x[:, None] * z
        if order == 1:
            value = (size * sin + (math.pi - t) * dot) / math.pi
            of_x, of_z, X = z * sin / math.pi, (math.pi - t) / math.pi, self._unit
        else:
            value = (3 * size * sin * dot + (math.pi - t) * (size**2 + 2 * dot**2)) / math.pi
            of_x, X = 2 * z**2 * (sin * cos + math.pi - t) / math.pi, self._X
            of_z = 4 * (size * sin + (math.pi - t) * dot) / math.pi

        def pull(T: Array, A: Array) -> Array:
            return product(T * of_x, A)[..., None] * X[:, None] + carried(T * of_z, A, self._Z)

        return self._quantity(("arc", order), value.astype(self.tile.dtype), pull)

    # other pairs
    @property
    def rows(self) -> InputRows:
        return self._part("rows", lambda: InputRows(self.tile.rows, self.back))

    @property
    def cols(self) -> Diagonal:
        return self.tile.cols

    def pick(self, columns: Sequence[int | str]) -> InputPairs:
        index = [self.tile.X.rows.position(c) for c in columns]
        return self._part(
            ("pick", tuple(columns)),
            lambda: InputPairs(
                self.tile.pick(columns), self.near, into(index, self.width, self.back)
            ),
        )

    def map(self, S: FrozenArray) -> InputPairs:
        """The pairs (Sx, Sz): slopes by x are those by Sx times S."""
        return self._part(
            ("map", S), lambda: InputPairs(self.tile.map(S), self.near, through(S, self.back))
        )

    # inside
    @property
    def _X(self) -> Array:
        return np.asarray(self.tile.whole.X.data, self.tile.dtype)

    @property
    def _Z(self) -> Array:
        return np.asarray(self.tile.whole.Z.data, self.tile.dtype)

    @property
    def _apart(self) -> tuple[Array, Array]:
        """The rows as differences see them: mapped ones about their centre."""
        return self.tile.X.data, self.tile.Z.data

    @property
    def _norms(self) -> tuple[Array, Array]:
        x, z = (np.sqrt(s.norms) for s in (self.tile.whole.X, self.tile.whole.Z))
        return x, z

    @property
    def _unit(self) -> Array:
        """x / |x|, and 0 of zero."""
        x = self._norms[0][:, None]
        return np.asarray(self._X / np.where(x > 0, x, 1))

    def _slope(self, pull: Pull) -> Slope:
        return Slope(lambda T, A: self.back(pull(T, A)))

    def _quantity(self, key: Any, value: Array, pull: Pull) -> Dual:
        return Dual(value, {self._part(key, lambda: self._slope(pull)): 1.0})


class InputRows(SharedSlots):
    """Each left row with itself, as a column of the tile."""

    xp: Any = InputFunctions()
    one: Any = 1.0

    def __init__(self, base: Diagonal, back: Back) -> None:
        self.base, self.back = base, back
        super().__init__()

    def __getattr__(self, name: str) -> Any:  # distances to itself, angles: they do not move
        return getattr(self.base, name)

    @property
    def rows(self) -> InputRows:
        return self

    cols = rows

    @property
    def dot(self) -> Dual:
        return self._quantity("dot", self.base.dot, lambda X: 2 * X)

    def bilinear(self, M: Array) -> Dual:
        return self._quantity(("bilinear", id(M)), self.base.bilinear(M), lambda X: X @ (M + M.T))

    @property
    def prod1p(self) -> Dual:
        value = self.base.prod1p
        return self._quantity("prod1p", value, lambda X: 2 * X / (1 + X**2) * value)

    @property
    def harmonic(self) -> Dual:
        return self._quantity("harmonic", self.base.harmonic, np.ones_like)

    def elementary(self, order: int) -> Dual:
        return self._quantity(
            ("elementary", order),
            self.base.elementary(order),
            lambda X: 2 * X * without_each(X**2, order - 1),
        )

    def pick(self, columns: Sequence[int | str]) -> InputRows:
        index = [self.base.X.rows.position(c) for c in columns]
        back = into(index, self.base.width, self.back)
        return self._part(
            ("pick", tuple(columns)), lambda: InputRows(self.base.pick(columns), back)
        )

    def map(self, S: FrozenArray) -> InputRows:
        return self._part(("map", S), lambda: InputRows(self.base.map(S), through(S, self.back)))

    def _quantity(self, key: Any, value: Array, slope: Callable[[Array], Array]) -> Dual:
        def pull(T: Array, A: Array) -> Array:
            D = slope(np.asarray(self.base.X.data, np.float64)).astype(T.dtype)
            return self.back(product(T, A)[..., None] * D[:, None])

        return Dual(value, {self._part(key, lambda: Slope(pull)): 1.0})


def _name(f: Any) -> str:
    return getattr(f, "__name__", None) or type(f).__name__


def _none(what: str) -> Any:
    raise ValueError(
        f"{what} has no derivative by the inputs, as it runs Python code; use a kernel whose maps have formulas."
    )


def dense_block(rows: Table) -> Table:
    """Sparse rows as dense ones: a block of them at a time, as slopes are dense."""
    return Table(rows.data.toarray(), rows.columns) if rows.sparse else rows
