"""Many small problems of two classes each, solved one by one and judged all at once: what Python
takes for one of them is more than its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.inputs import Array
from mercer.models.svm.gram import padded
from mercer.models.svm.problem import CLOSED, EPS, TIMES, WHOLE, DualSolution, inside
from mercer.ops import smo
from mercer.ops.threads import parallel_map, single_blas

STEPS = 20_000  # at least, before a problem goes the way of a single one
SAMPLED = 16  # rows of a class whose sums are taken again in float64


@dataclass(frozen=True, eq=False)
class PairDuals:
    """The duals b of all problems, end to end, with K b - t, and a value a problem of all else; how
    one ended is "" where it did not."""

    b: Array
    G: Array
    steps: Array
    nu: Array
    value: Array
    gap: Array
    violation: Array
    ended: Array


@dataclass(frozen=True, eq=False)
class PairProblems:
    """Problems max(0, 1 - y f) with a bias, each of two classes a, b, of which a is positive: all
    rows are by class in K (n, n), those of a class at a place of `at`, and have the weights c."""

    K: Array
    at: Sequence[slice]
    pairs: Sequence[tuple[int, int]]
    c: Array
    tol: float

    # every dual of every problem, end to end
    @cached_property
    def _sizes(self) -> Array:
        """The rows of both classes of each problem, (k, 2)."""
        return np.array([s.stop - s.start for s in self.at])[np.array(self.pairs)]

    @cached_property
    def first(self) -> Array:
        """Where the duals of each problem begin."""
        sizes = self._sizes.sum(1)
        return np.cumsum(sizes) - sizes

    @cached_property
    def parts(self) -> list[slice]:
        """Where they are."""
        begin, size = self.first.tolist(), self._sizes.sum(1).tolist()
        return [slice(i, i + n) for i, n in zip(begin, size, strict=True)]

    @cached_property
    def rows(self) -> Array:
        """The row of each dual, among those by class."""
        start = np.array([s.start for s in self.at])[np.array(self.pairs)].ravel()
        size = self._sizes.ravel()
        return np.repeat(start - (np.cumsum(size) - size), size) + np.arange(size.sum())

    @cached_property
    def other(self) -> Array:
        """The class that it is against."""
        return np.repeat(np.array(self.pairs)[:, ::-1].ravel(), self._sizes.ravel())

    @cached_property
    def t(self) -> Array:
        return np.repeat(np.tile([1.0, -1.0], len(self.pairs)), self._sizes.ravel())

    @cached_property
    def bounds(self) -> tuple[Array, Array]:
        """lo and hi"""
        c = self.c[self.rows]
        return np.minimum(self.t, 0) * c, np.maximum(self.t, 0) * c

    def each(self, values: Array) -> Array:
        """One value a problem, for each of its duals."""
        return np.repeat(values, self._sizes.sum(1))

    # solving
    def solved(self) -> PairDuals:
        """Steps until slopes differ by tol, or by a tenth of it where that leaves a gap open."""
        b, G, every = np.zeros(len(self.t)), -self.t, range(len(self.pairs))
        steps = np.array(parallel_map(lambda k: self._descend(k, self.tol, b, G), every))
        found = self._judged(b, G, steps)
        left = np.flatnonzero(found.ended == "")
        if not len(left):
            return found
        sharper = parallel_map(lambda k: self._descend(k, self.tol / 10, b, G), left.tolist())
        steps[left] += np.array(sharper)
        return self._judged(b, G, steps)

    def _descend(self, k: int, slack: float, b: Array, G: Array) -> int:
        """Steps of a problem from where its duals are, until slopes differ by at most so much: how
        many."""
        s, (lo, hi) = self.parts[k], self.bounds
        a, z = self.pairs[k]
        K, n, shape = pair_block(self.K, self.at[a], self.at[z]), s.stop - s.start, (-1, smo.LANE)
        slopes = np.zeros(K.shape[1])
        slopes[:n] = G[s]
        lanes = K.reshape(n, *shape), slopes.reshape(shape)
        steps = smo.pairs(*lanes, b[s], lo[s], hi[s], 0.0, slack, max(10 * n, STEPS))
        G[s] = slopes[:n]
        return int(steps)

    def _judged(self, b: Array, G: Array, steps: Array) -> PairDuals:
        """What `problem.evaluate` says of each, without a better multiplier than the mean slope."""
        first, t, (lo, hi) = self.first, self.t, self.bounds
        smo.snap(b, lo, hi, np.empty(len(b)))
        low = np.minimum.reduceat(np.where(b >= hi, smo.MAX_GRADIENT, G), first)
        high = np.maximum.reduceat(np.where(b <= lo, -smo.MAX_GRADIENT, G), first)
        free = inside(b, lo, hi)
        count = np.add.reduceat(free, first, dtype=np.int64)
        mean = np.add.reduceat(np.where(free, G, 0.0), first) / np.maximum(count, 1)
        nu = np.where(count > 0, mean, middle(low, high))
        value = 0.5 * np.add.reduceat(b * (G - t), first)
        gap = np.add.reduceat(smo.shares(G - self.each(nu), b, lo, hi), first)
        violation = np.maximum(high - low, 0.0)
        closed = gap <= CLOSED * self.tol * np.abs(value)
        flat = (violation <= self.tol) & (gap <= self.tol * np.abs(value))
        ended = np.where(value == 0, "", np.where(closed, "gap", np.where(flat, "slopes", "")))
        return PairDuals(b, G, steps, nu, value, gap, violation, ended)

    # rounding
    def sample(self, found: PairDuals) -> Array:
        """Some rows of every class, of those inside their bounds in some problem where there are
        any: they feel rounding most."""
        free, rows = np.zeros(len(self.K), bool), []
        free[self.rows[inside(found.b, *self.bounds)]] = True
        for c in np.unique(np.array(self.pairs)):
            s = self.at[c]
            of = np.flatnonzero(free[s])
            of = of if len(of) else np.arange(s.stop - s.start)
            spread = np.linspace(0, len(of) - 1, min(len(of), SAMPLED)).astype(np.intp)
            rows.append(s.start + of[np.unique(spread)])
        return np.concatenate(rows)

    def certified(
        self, found: PairDuals, root: Array, some: Array, wide: Array
    ) -> list[DualSolution | None]:
        """The solutions, None where steps did not end; their gaps count rounding, as those of
        `problem.certified`: `wide` (s, n) has the rows `some` of K in float64, `root` the square
        roots of k(x, x)."""
        own = root[self.rows]
        error = TIMES * self._measured(found, root, some, wide)
        spread = own * self.each(error + EPS * np.add.reduceat(np.abs(found.b) * own, self.first))
        h = found.G - self.each(found.nu)
        ends = (smo.shares(h + side * spread, found.b, *self.bounds) for side in (-1.0, 1.0))
        gaps = np.maximum(np.add.reduceat(np.maximum(*ends), self.first), found.gap)
        return [self._solution(found, k, gap) for k, gap in enumerate(gaps.tolist())]

    def _solution(self, found: PairDuals, k: int, gap: float) -> DualSolution | None:
        if not (ended := str(found.ended[k])):
            return None
        s = self.parts[k]
        return DualSolution(
            found.b[s],
            -float(found.nu[k]),
            float(found.value[k]),
            gap,
            float(found.violation[k]),
            ended,
            1,
            int(found.steps[k]),
            s.stop - s.start,
            rounding=gap - float(found.gap[k]),
            way=WHOLE,
        )

    @single_blas()  # of short sums
    def _measured(self, found: PairDuals, root: Array, some: Array, wide: Array) -> Array:
        """How wrong the worst sum of some rows is, of each problem, relative to its root."""
        shape = len(self.K), len(self.at)
        duals, sums = np.zeros(shape), np.zeros(shape)  # of a row, against every other class
        duals[self.rows, self.other], sums[self.rows, self.other] = found.b, found.G + self.t
        of = np.searchsorted([s.stop for s in self.at], some, "right")
        again, every = np.zeros((len(some), shape[1])), np.arange(len(some))
        for c, s in enumerate(self.at):
            part = wide[:, s] @ duals[s]
            again[of == c] += part[of == c]
            again[:, c] += part[every, of]
        off = np.abs(sums[some] - again) / np.maximum(root[some], 1e-300)[:, None]
        worst = np.zeros((shape[1], shape[1]))
        np.maximum.at(worst, of, off)
        a, b = np.array(self.pairs).T
        return np.maximum(worst[a, b], worst[b, a])


def pair_block(K: Array, a: slice, b: slice) -> Array:
    """The values of the rows of two classes among all by class, their columns padded to lanes."""
    m, n = a.stop - a.start, a.stop - a.start + b.stop - b.start
    out = padded(n, K.dtype)
    out[:m, :m], out[:m, m:n], out[m:, :m], out[m:, m:n] = K[a, a], K[a, b], K[b, a], K[b, b]
    return out


def middle(low: Array, high: Array) -> Array:
    """The middle of what bounds allow, one end where there is no other, else zero."""
    ends = np.stack([low, high])
    there = np.abs(ends) < smo.MAX_GRADIENT / 2
    return np.asarray(np.where(there, ends, 0.0).sum(0) / np.maximum(there.sum(0), 1))
