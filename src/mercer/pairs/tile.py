"""The reading by numbers: all pairs of two sets of rows, or each row with itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.ops import chisquare, distances
from mercer.ops.frozen import FrozenArray
from mercer.ops.special import Numbers
from mercer.ops.tiles import cuts
from mercer.pairs.bags import Overlap
from mercer.pairs.items import OfItems
from mercer.pairs.linear import after, mapped, mapped_rows, picked
from mercer.pairs.side import (
    Bandwidth,
    Side,
    centre_of,
    circle,
    elementary,
    nonzero_columns,
    per_column,
    product,
    refine_sparse,
    square,
    square_norms,
)

Map = Callable[[Any], Any]


class Tile:
    """All pairs (x_i, z_j): every quantity is an (n, m) array, computed on demand and once.

    `diagonal` says which pairs are a row with itself, as an offset: x_i is z_(i + diagonal). The
    sides of a mapped tile are S (x - centre), as distances need no more, and `origin` says of what:
    another tile, and S.

    Examples
    --------
    A formula is given one, and asks it for what it needs:

    >>> from mercer import Kernel
    >>> class Bump(Kernel):
    ...     def on(self, p):
    ...         return 1 / (1 + p.sqdist()) ** 2
    >>> Bump()([[0.0], [1.0]])
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """

    xp: Any = Numbers
    one: Any = 1.0

    def __init__(
        self,
        X: Side,
        Z: Side,
        diagonal: int | None = None,
        origin: tuple[Any, FrozenArray] | None = None,
    ) -> None:
        if X.rows.width != Z.rows.width:  # the loops below look at no bounds
            raise ValueError(
                f"X has {X.rows.width} columns, and Z {Z.rows.width}; give the same columns on both sides."
            )
        if X.rows.sparse != Z.rows.sparse:  # a few rows at a time, about one centre
            X, Z = X.as_dense(), Z.as_dense()
        self.X, self.Z, self.diagonal, self.origin = X, Z, diagonal, origin
        self.dtype = np.result_type(X.rows.dtype, Z.rows.dtype)
        self._squared: dict[Any, tuple[Array, float]] = {}
        self._parts: dict[Any, Any] = {}

    @property
    def width(self) -> int:
        return self.X.rows.width

    # quantities
    @cached_property
    def dot(self) -> Array:
        """x'z"""
        return product(self.whole.X.data, self.whole.Z.data)

    def bilinear(self, A: Array) -> Array:
        """x'Az"""
        return product(self.whole.X.data @ square(A, self.width, self.dtype), self.whole.Z.data)

    def sqdist(self, bandwidth: Any = 1.0) -> Any:
        """sum_j ((x_j - z_j) / b_j)^2, for formulas that are smooth in it."""
        return self._squares(bandwidth)[0]

    def dist(self, bandwidth: Any = 1.0) -> Any:
        """The square root of `sqdist`; near pairs are taken by differences, as the root magnifies
        their rounding."""
        key = "dist", bandwidth
        if key not in self._parts:
            self._parts[key] = np.sqrt(self._near(bandwidth))
        return self._parts[key]

    def absdist(self, bandwidth: Any = 1.0) -> Any:
        """sum_j |x_j - z_j| / b_j"""
        X, Z, b = self._dense(per_column(bandwidth, self.width))
        return distances.absdist(X, Z, b)

    def sinsq(self, period: Any, bandwidth: Any) -> Any:
        """sum_j sin^2(pi (x_j - z_j) / period_j) / b_j^2, as a squared distance on circles."""
        X, Z, b, p = self._dense(
            per_column(bandwidth, self.width), per_column(period, self.width, "period")
        )
        x, z = (Side(Table(circle(A, p))) for A in (X, Z))
        return type(self)(x, z, self.diagonal).sqdist((*b.tolist(), *b.tolist())) / 4

    @cached_property
    def prod1p(self) -> Array:
        """prod_j (1 + x_j z_j)"""
        return distances.prod1p(*self._shared())

    def elementary(self, order: int) -> Array:
        """The elementary symmetric polynomial of that order of x_1 z_1, ..., x_d z_d."""
        return distances.elementary(*self._shared(), order)

    @cached_property
    def chisq(self) -> Array:
        """sum_j (x_j - z_j)^2 / (x_j + z_j) of rows >= 0, where 0/0 is 0"""
        whole = self.whole
        D = chisquare.chisq(*Tile(whole.X.nonnegative, whole.Z.nonnegative)._dense())
        return self._fill_diagonal(D, 0)

    @cached_property
    def harmonic(self) -> Array:
        """sum_j 2 x_j z_j / (x_j + z_j) of rows >= 0, where 0/0 is 0"""
        whole = self.whole
        return chisquare.harmonic(*Tile(whole.X.nonnegative, whole.Z.nonnegative)._shared())

    @cached_property
    def angle(self) -> Array:
        """The angle between x and z; a right angle where one of them is zero."""
        sides = self.whole.X, self.whole.Z
        x, z = (np.sqrt(square_norms(s.data)) for s in sides)
        scale = np.outer(x, z)
        cosine = Numbers.ratio(product(*(s.data.astype(np.float64) for s in sides)), scale)
        angle = np.arccos(np.clip(cosine, -1, 1))
        self._fill_diagonal(angle, np.where(x > 0, 0, math.pi / 2))
        return angle.astype(self.dtype)

    # other pairs
    @cached_property
    def rows(self) -> Diagonal:
        """Each x with itself, as a column of the tile."""
        return Diagonal(self.whole.X, (-1, 1))

    @cached_property
    def cols(self) -> Diagonal:
        """Each z with itself, as a row of the tile."""
        return Diagonal(self.whole.Z, (1, -1))

    @cached_property
    def whole(self) -> Tile:
        """The tile whose sides are the rows themselves: of a mapped one those with their
        centre."""
        if self.origin is None:
            return self
        base, S = self.origin
        return base._part(("whole", S), lambda rows: mapped_rows(rows, S))

    def warp(self, f: Map) -> Tile:
        """The pairs (f(x), f(z))."""
        return self.whole._part(("warp", f), lambda rows: mapped(rows, f))

    def map(self, matrix: FrozenArray) -> Tile:
        """The pairs (S x, S z)."""
        if self.origin is not None:
            return self.origin[0].map(after(matrix, self.origin[1]))
        centre = self.X.centre
        return self._part(
            ("map", matrix), lambda rows: mapped_rows(rows, matrix, centre), origin=(self, matrix)
        )

    def pick(self, columns: Sequence[int | str]) -> Tile:
        """The same pairs seen in some columns."""
        if self.origin is not None:
            return self.origin[0].map(picked(self.origin[1], columns))
        return self._part(("pick", tuple(columns)), lambda rows: rows.pick(columns))

    def call(self, f: Callable[[Any, Any], Any]) -> Array:
        """f(X, Z) of a user's own function."""
        out = np.asarray(f(self.whole.X.data, self.whole.Z.data))
        if out.shape != (len(self.X), len(self.Z)):
            raise ValueError(
                f"Callable's f must return an array of shape {(len(self.X), len(self.Z))}; it returned {out.shape}."
            )
        return out.astype(self.dtype, copy=False)

    def between(self, kernel: OfItems) -> Array:
        """The values of a kernel of items."""
        return kernel.values(self.X.read(kernel), self.Z.read(kernel))

    def slopes_between(self, kernel: OfItems) -> Mapping[str, Array]:
        return kernel.slopes(self.X.read(kernel), self.Z.read(kernel))

    def over_bags(self, sets: Any) -> Array:
        """The sums over bags of a kernel of their members."""
        return self.overlap(sets).summed(sets.kernel.on)

    def overlap(self, sets: Any) -> Overlap:
        return Overlap(Tile, self.X.read(sets), self.Z.read(sets), self.diagonal)

    # inside
    def _part(self, key: Any, made: Callable[[Table], Table], origin: Any = None) -> Tile:
        if key not in self._parts:
            X, Z = self.X.part(key, made), self.Z.part(key, made)
            centre = centre_of(X, Z)
            self._parts[key] = type(self)(Side(X, centre), Side(Z, centre), self.diagonal, origin)
        return self._parts[key]

    def _squares(self, b: Bandwidth) -> tuple[Array, float]:
        """Squared distances, and a bound of their rounding error; infinite where they were taken by
        differences, whose error is relative."""
        if b not in self._squared:
            self._squared[b] = self._rescaled(b) or self._measured(b)
        return self._squared[b]

    def _rescaled(self, b: Bandwidth) -> tuple[Array, float] | None:
        """From another scalar bandwidth, where that keeps enough digits."""
        for a, (D, error) in self._squared.items():
            if isinstance(a, float) and isinstance(b, float):
                c = (a / b) ** 2
                if error * c <= distances.TOLERANCE[self.dtype]:
                    return D * c, error * c
        return None

    def _measured(self, b: Bandwidth) -> tuple[Array, float]:
        x, z = self.X.scaled(b)[1], self.Z.scaled(b)[1]
        for dtype in (self.dtype, np.dtype(np.float64)):
            if distances.precise_enough(x, z, dtype, distances.TOLERANCE[self.dtype]):
                D, error = (
                    self._by_product(b, dtype),
                    float(np.finfo(dtype).eps / 2 * (x.max() + z.max())),
                )
                break
        else:
            D, error = self._by_differences(b), math.inf
        return self._fill_diagonal(D, 0), error

    def _by_product(self, b: Bandwidth, dtype: np.dtype[Any]) -> Array:
        if self.X.rows.sparse or self.Z.rows.sparse:
            # in float64: sums go term by term, which takes no longer
            A, B = (s._over(b, np.float64) for s in (self.X, self.Z))
            return np.abs(square_norms(A)[:, None] + square_norms(B) - 2 * product(A, B)).astype(
                self.dtype
            )
        if self.width >= distances.WIDE_COLUMNS and dtype == self.X.data.dtype == self.Z.data.dtype:
            (A, x), (B, z) = self.X.scaled(b), self.Z.scaled(b)
            return distances.by_norms(A, B, x, z)
        D = distances.by_product(
            self.X.operand(b, dtype, left=True), self.Z.operand(b, dtype, left=False)
        )
        return D.astype(self.dtype, copy=False)

    def _by_differences(self, b: Bandwidth) -> Array:
        return distances.by_differences(*self._dense(per_column(b, self.width)))

    def _near(self, b: Bandwidth) -> Array:
        """Squared distances whose root r, and its root, have the tolerance's digits: an error e
        moves sqrt(r) by e / (4 r^(3/2))."""
        D, error = self._squares(b)
        if math.isinf(error):
            return D
        below = (error / distances.TOLERANCE[self.dtype] / 4) ** (4 / 3)
        refined = refine_sparse if self.X.rows.sparse else distances.refine
        return refined(D, self.X.data, self.Z.data, per_column(b, self.width), below)

    def _fill_diagonal(self, D: Array, value: Any) -> Array:
        if self.diagonal is not None:
            i = np.arange(max(0, -self.diagonal), min(len(self.X), len(self.Z) - self.diagonal))
            D[i, i + self.diagonal] = value if np.ndim(value) == 0 else value[i]
        return D

    def _dense(self, *per_col: Array) -> tuple[Array, ...]:
        """Dense rows and values a column; of sparse ones only the columns that some row uses, as
        others do not differ."""
        if not self.X.rows.sparse:
            return self.X.data, self.Z.data, *per_col
        columns = np.union1d(nonzero_columns(self.X.data), nonzero_columns(self.Z.data))
        return self.X.dense(columns), self.Z.dense(columns), *(v[columns] for v in per_col)

    def _shared(self) -> tuple[Array, Array]:
        """Dense rows; of sparse ones only the columns that both sides use, as others add
        nothing."""
        columns, X, Z = None, self.whole.X, self.whole.Z
        if X.rows.sparse:
            columns = np.intersect1d(nonzero_columns(X.data), nonzero_columns(Z.data))
        return X.dense(columns), Z.dense(columns)


class Diagonal:
    """The pairs (x_i, x_i): every quantity is a vector, shaped as the tile around it needs."""

    xp: Any = Numbers
    one: Any = 1.0

    def __init__(self, X: Side, shape: tuple[int, ...] = (-1,)) -> None:
        self.X, self.shape, self.dtype = X, shape, X.rows.dtype

    @property
    def width(self) -> int:
        return self.X.rows.width

    @property
    def rows(self) -> Diagonal:
        return self

    cols = rows

    def _shaped(self, v: Any) -> Array:
        return np.reshape(v, self.shape)

    @property
    def dot(self) -> Array:
        return self._shaped(self.X.norms)

    def bilinear(self, A: Array) -> Array:
        XA = self.X.data @ square(A, self.width, self.dtype)
        return self._shaped(np.einsum("ij,ij->i", XA, self.X.dense()))

    def sqdist(self, bandwidth: Any = 1.0) -> Any:
        per_column(bandwidth, self.width)
        return self._shaped(np.zeros(len(self.X), self.dtype))

    dist = absdist = sqdist

    def sinsq(self, period: Any, bandwidth: Any) -> Any:
        per_column(period, self.width, "period")
        return self.sqdist(bandwidth)

    @property
    def prod1p(self) -> Array:
        return self._by_pieces(lambda A: np.prod(1 + np.square(A), axis=1))

    def elementary(self, order: int) -> Array:
        return self._by_pieces(lambda A: elementary(np.square(A), order))

    @property
    def chisq(self) -> Array:
        return self._shaped(np.zeros(len(self.X.nonnegative), self.dtype))

    @property
    def harmonic(self) -> Array:
        """|x|_1"""
        total = np.asarray(self.X.nonnegative.data.sum(axis=1, dtype=np.float64))
        return self._shaped(total.astype(self.dtype))

    @property
    def angle(self) -> Array:
        return self._shaped(np.where(self.X.norms > 0, 0, math.pi / 2).astype(self.dtype))

    def warp(self, f: Map, key: Any = None) -> Diagonal:
        return Diagonal(Side(mapped(self.X.rows, f)), self.shape)

    def map(self, matrix: FrozenArray) -> Diagonal:
        return Diagonal(Side(mapped_rows(self.X.rows, matrix)), self.shape)

    def pick(self, columns: Sequence[int | str]) -> Diagonal:
        return Diagonal(Side(self.X.rows.pick(columns)), self.shape)

    def collected(self, A: Array) -> Array:
        """Weights of all pairs of the tile around it, added up for each x."""
        return A if len(self.shape) == 1 else A.sum(axis=self.shape.index(1))

    def of(self, f: Map) -> Array:
        """f(x) of every row, one number each."""
        out = np.asarray(f(self.X.data))
        if out.size != len(self.X):
            raise ValueError(
                f"weighted's f must return one number a row; it returned shape {out.shape} for {len(self.X)} rows."
            )
        return self._shaped(out.astype(self.dtype))

    def call(self, f: Callable[[Any, Any], Any]) -> Array:
        rows = self.X.rows
        return self._shaped(
            [np.asarray(f(rows[[i]].data, rows[[i]].data)).item() for i in range(len(self.X))]
        ).astype(self.dtype)

    def between(self, kernel: OfItems) -> Array:
        return self._shaped(kernel.own(self.X.read(kernel)))

    def slopes_between(self, kernel: OfItems) -> Mapping[str, Array]:
        return {n: self._shaped(v) for n, v in kernel.own_slopes(self.X.read(kernel)).items()}

    def over_bags(self, sets: Any) -> Array:
        return self._shaped([o.summed(sets.kernel.on)[0, 0] for o in self.overlaps(sets)])

    def overlaps(self, sets: Any) -> list[Overlap]:
        """Each bag with itself."""
        bags = self.X.read(sets)
        return [Overlap(Tile, b, b, 0) for b in map(bags.bag, range(len(bags)))]

    def _by_pieces(self, f: Callable[[Array], Array]) -> Array:
        """f of dense rows, a few at a time, in the columns that they use."""
        parts = [Side(self.X.rows[s]) for s in cuts(len(self.X), 256)]
        return self._shaped(
            np.concatenate(
                [f(p.dense(nonzero_columns(p.data) if p.rows.sparse else None)) for p in parts]
            )
        )
