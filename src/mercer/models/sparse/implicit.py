"""Products of columns as a dictionary of which nothing is built: every look at all features is a
sweep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Is, check
from mercer.lifts.columnwise import inputs_of
from mercer.lifts.polynomial import Products, monomial
from mercer.models.sparse.dictionary import Found
from mercer.ops.monomials import ends, plan
from mercer.ops.sweeps import Sweep, built
from mercer.ops.words import NONE, letters
from mercer.store import register

MAX_WORK = 4e12  # multiplications of one sweep, about 20 seconds on two cores
SHOWN = 8  # names of columns in a plan
MAX_HALVES = 1 << 23  # words of half the degree, which are listed


def sweepable(phi: Any) -> bool:
    """Whether the features of a fitted map are plain products of columns, which need not be built.

    >>> from mercer.lifts import Monomials
    >>> X = [[1.0, 2.0]]
    >>> sweepable(Monomials(3).fit(X)), sweepable(Monomials(3, weights="kernel").fit(X))
    (True, False)
    """
    return (
        isinstance(phi, Products)
        and phi.weights_ is None
        and not phi.program_.ordered
        and not phi.constant_
    )


@register("sparse.ProductFeatures")
@dataclass(frozen=True, eq=False)
class ProductFeatures:
    """The products of a fitted map, a few at a time."""

    lift: Products

    must = dict(lift=Is("Products"))

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        return None if sweepable(self.lift) else "has a map of features that are no plain products"

    @property
    def width(self) -> int:
        return self.lift.n_features_out_

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(str(name) for name in inputs_of(self.lift))

    @property
    def used(self) -> Array:
        """The columns of the rows that the letters of words stand for."""
        return np.asarray(getattr(self.lift, "columns_", range(self.lift.n_features_in_)))

    @property
    def empty(self) -> bool:
        """Whether there is no product, and the one feature is 0."""
        return bool(getattr(self.lift, "empty_", False))

    @property
    def start(self) -> int:
        """Where feature 0 stands in the program."""
        return self.lift.program_.skip + self.lift.start_

    def transposed(self, rows: Table, which: Array | slice = slice(None)) -> Array:
        """(d, n) the columns of rows that are used, or some of them, in float64."""
        X = rows.data[:, self.used[which]]
        return np.ascontiguousarray((X.toarray() if rows.sparse else X).T, np.float64)

    def columns(self, rows: Table, ids: Array) -> Array:
        """(m, k) features of rows."""
        if self.empty:
            return np.zeros((len(rows), len(ids)))
        words = self.letters(ids)
        some = np.unique(words[words != NONE])
        XT = self.transposed(rows, some) if len(some) else np.ones((1, len(rows)))
        return built(XT, np.where(words == NONE, NONE, np.searchsorted(some, words))).T

    def letters(self, ids: Array) -> Array:
        """(k, degree) the letters of features, then `NONE`."""
        at = np.asarray(ids, np.int64)
        if len(at) and not 0 <= at.min() <= at.max() < self.width:
            raise IndexError(
                f"features are numbered from 0 to {self.width - 1}, but ids has {at.min()} to {at.max()}."
            )
        return letters(self.lift.program_, at + self.start)

    def names(self, ids: Array) -> list[str]:
        """The names of features, as the map has them."""
        if self.empty:
            return ["0"] * len(ids)
        inputs = self.inputs
        return [monomial([inputs[a] for a in word]) for word in self.words(ids)]

    def words(self, ids: Array) -> list[tuple[int, ...]]:
        """The columns whose product each of them is."""
        used = self.used.tolist()
        return [tuple(used[a] for a in word if a != NONE) for word in self.letters(ids).tolist()]


@dataclass(frozen=True, eq=False)
class Implicit:
    """The products of columns of rows of some weights, as `Dictionary` asks of them.

    >>> from mercer.lifts import Monomials
    >>> X = np.array([[0.0, 1.0], [1.0, 0.5], [1.0, -1.0]])
    >>> some = implicit(ProductFeatures(Monomials(2).fit(X)), Table(X), np.full(3, 1 / 3))
    >>> found = some.largest(np.array([1.0, 1.0, -2.0]), 2, 0.5)
    >>> some.p, some.width, some.names(found.ids), found.values, found.bound
    (6, 4, ['x1', 'x0*x1'], array([3.5, 2.5]), 1.0)
    """

    features: ProductFeatures
    sweep: Sweep

    @property
    def n(self) -> int:
        return len(self.sweep.w)

    @property
    def p(self) -> int:
        return self.features.width

    @cached_property
    def width(self) -> int:
        """The products that are no known constants or copies."""
        return 0 if self.features.empty else count(self.sweep.caps, self.sweep.degrees)

    @property
    def repeats(self) -> dict[str, str]:
        """What is known to repeat in these rows, for a reader."""
        caps, all_ = self.sweep.caps, self.features.lift.program_.caps
        names = [self.features.inputs[a] for a in self.features.used.tolist()]
        out = [names[a] for a in np.flatnonzero((caps == 0) & (all_ > 0))]
        low = [
            f"{names[a]} from {caps[a] + 1} on" for a in np.flatnonzero((caps < all_) & (caps > 0))
        ]
        told = {}
        if out:
            told["left out"] = f"{listed(out)}: constant, or copies of columns before"
        if low:
            told["powers"] = f"{listed(low)} repeat those below"
        return told

    def columns(self, ids: Array) -> Array:
        """(n, k) features, divided by their scales."""
        if self.features.empty:
            return np.zeros((self.n, len(ids)))
        return (built(self.sweep.XT, self.features.letters(ids)) / self.scales(ids)[:, None]).T

    def scales(self, ids: Array) -> Array:
        return self._told(ids)[0]

    def means(self, ids: Array) -> Array:
        scale, mean, _ = self._told(ids)
        return mean / scale

    def norms(self, ids: Array) -> Array:
        scale, _, deviation = self._told(ids)
        return deviation / scale

    def names(self, ids: Array) -> list[str]:
        return self.features.names(ids)

    def largest(self, r: Array, k: int, above: float) -> Found:
        """The k features of the largest |x_j'r| above a number, copies of one before left out, and
        a bound on all others."""
        w = self.sweep.w
        r = r - w * r.sum()  # as if the features were centred
        if self.features.empty:
            return Found(np.empty(0, np.int64), np.empty(0), above)
        at, values, bound = self.sweep.largest(r, k, max(0.0, above))
        return Found(at - self.features.start, values, bound)

    def _told(self, ids: Array) -> tuple[Array, Array, Array]:
        """Scales, means and deviations of features."""
        if self.features.empty:
            return np.ones(len(ids)), np.zeros(len(ids)), np.zeros(len(ids))
        s, m, d = self.sweep.sums(self.features.letters(ids), self.sweep.w)[:, 2:].T
        return np.where(np.isfinite(s), s, 1.0), m, d


def implicit(features: ProductFeatures, rows: Table, w: Array, unit: bool = False) -> Implicit:
    """The features in rows of weights w, which sum to 1; products of unit variance with `unit`."""
    phi, XT = features.lift, features.transposed(rows)
    program, closed = phi.program_, phi.start_ == 0
    low = 1 if closed else int(np.searchsorted(ends(program), features.start))
    degrees = range(low, program.degree + 1)
    caps = needed(XT, program.caps, program.degree) if closed else program.caps * XT.any(axis=1)
    fits(phi, count(caps, degrees), len(rows), count(caps, halves(program.degree)))
    return Implicit(features, Sweep(XT, w, program, caps, degrees, unit))


def needed(XT: Array, caps: Array, degree: int) -> Array:
    """The highest exponent of each column above which products repeat those below, in the rows at
    hand.

    x^2 is x of 0 and 1, x^3 is x where -1 comes as well; a constant of at most 1 and a column that
    was there before add nothing.

    >>> needed(np.array([[0.0, 1, 1], [1, -1, 0], [0, 1, 1], [2, 3, 4], [1, 1, 1]]), np.full(5, 3), 3)
    array([1, 2, 0, 3, 0])
    """
    sizes, out = np.abs(XT), np.array(caps)
    sign = np.asarray(np.isin(sizes, (0.0, 1.0)).all(axis=1))
    plain = np.asarray((XT >= 0).all(axis=1) | (XT <= 0).all(axis=1) | (sizes > 0).all(axis=1))
    out[sign] = np.minimum(out[sign], np.where(plain[sign], 1, 2))
    seen: set[bytes] = set()
    for a, x in enumerate(XT):
        repeats = sign[a] and (plain[a] or caps[a] > 1)  # its powers are among those allowed
        whole = x * np.sign(x[np.argmax(x != 0)]) + 0.0  # -0 is 0
        if ((x == x[0]) & (sizes[a] <= 1)).all() or whole.tobytes() in seen:
            out[a] = 0
        elif repeats or caps[a] >= degree:
            seen.add(whole.tobytes())
    return out


def count(caps: Array, degrees: range) -> int:
    """The number of products of these degrees.

    >>> count(np.full(200, 3), range(1, 4)), count(np.ones(100, int), range(4, 5))
    (1373700, 3921225)
    """
    top = degrees.stop - 1
    first = plan(len(caps), top, degree_per_column=np.minimum(caps, top).tolist()).first
    return int(first[top, -1] - first[degrees.start, 0]) if top else 0


def listed(names: list[str]) -> str:
    """The first of some names.

    >>> listed(list("abcdefghij"))
    'a, b, c, d, e, f, g, h, ...'
    """
    return ", ".join([*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])])


def halves(degree: int) -> range:
    half = degree - degree // 2
    return range(half, half + 1)


def fits(phi: Products, p: int, n: int, listed: int) -> None:
    """Refuse what no sweep gets through."""
    if p * n > MAX_WORK or listed > MAX_HALVES:
        raise ValueError(
            f"{phi!r} has {p:,} features, and each look at all of them in {n:,} rows takes {p * n:.1g} "
            "multiplications; lower the degree, or give fewer columns or rows."
        )
