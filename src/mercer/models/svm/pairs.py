"""Many small problems of two classes each, solved one by one and judged all at once: what Python
takes for one of them is more than its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.inputs import Array
from mercer.models.svm.gram import padded
from mercer.models.svm.problem import (
    CLOSED,
    EPS,
    TIMES,
    WHOLE,
    DualProblem,
    DualSolution,
    inside,
)
from mercer.ops import smo
from mercer.ops.threads import parallel_map

STEPS = 20_000  # at least, before a problem goes the way of a single one
SAMPLED = 16  # rows of a class whose sums are taken again in float64

Ends = tuple[slice, slice]  # where the rows of the two classes of a pair are, among all by class


@dataclass(frozen=True, eq=False)
class PairProblems:
    """Problems max(0, 1 - y f) with a bias, end to end: of every two classes, whose rows lie at
    `ends` in K (n, n), which has them by class."""

    K: Array
    ends: Sequence[Ends]
    problems: Sequence[DualProblem]
    tol: float

    @property
    def first(self) -> Array:
        """Where the duals of each problem begin."""
        return np.cumsum([0, *(len(p.t) for p in self.problems[:-1])])

    def only(self, keep: Sequence[int]) -> PairProblems:
        """Some of them."""
        ends = [self.ends[k] for k in keep]
        return replace(self, ends=ends, problems=[self.problems[k] for k in keep])

    def solved(self) -> list[DualSolution]:
        """Steps until slopes differ by tol, or by a tenth of it where that leaves a gap open."""
        found = self.judged(parallel_map(lambda k: self.descend(k, self.tol), self._every()))
        left = [k for k, f in enumerate(found) if not f.converged]
        if not left:
            return found
        some = self.only(left)
        sharper = parallel_map(lambda k: some.descend(k, self.tol / 10), some._every())
        for k, f in zip(left, some.judged(sharper), strict=True):
            found[k] = f
        return found

    def _every(self) -> range:
        return range(len(self.problems))

    def descend(self, k: int, slack: float) -> tuple[Array, Array, int]:
        """Steps from zero until slopes differ by at most so much: the duals, K b - t, and how many."""
        p, K = self.problems[k], pair_block(self.K, *self.ends[k])
        n = len(p.t)
        b, G, shape = np.zeros(n), np.zeros(K.shape[1]), (-1, smo.LANE)
        G[:n] = -p.t
        lanes = K.reshape(n, *shape), G.reshape(shape)
        steps = smo.pairs(*lanes, b, p.lo, p.hi, 0.0, slack, max(10 * n, STEPS))
        return b, G[:n], int(steps)

    def judged(self, found: Sequence[tuple[Array, Array, int]]) -> list[DualSolution]:
        """What `problem.evaluate` says of each, without a better multiplier than the mean slope;
        those that did not end have no name of an end."""
        first = self.first
        b, G = (np.concatenate([f[i] for f in found]) for i in (0, 1))
        t, lo, hi = (
            np.concatenate([getattr(p, v) for p in self.problems]) for v in ("t", "lo", "hi")
        )
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
        return [
            DualSolution(
                b[s],
                -float(nu[k]),
                float(value[k]),
                float(gap[k]),
                float(violation[k]),
                str(ended[k]),
                1,
                found[k][2],
                len(found[k][0]),
                G=G[s],
                way=WHOLE,
            )
            for k, s in enumerate(self._places(first, len(b)))
        ]

    def certified(
        self, found: Sequence[DualSolution], root: Array, some: Array, wide: Array
    ) -> list[DualSolution]:
        """Those gaps with their rounding, as `problem.certified`: `wide` (s, n) has the rows `some`
        of K in float64, `root` the square roots of k(x, x)."""
        b, G = (np.concatenate([getattr(f, v) for f in found]) for v in ("b", "G"))
        lo, hi = (np.concatenate([getattr(p, v) for p in self.problems]) for v in ("lo", "hi"))
        roots = [np.concatenate([root[s] for s in ends]) for ends in self.ends]
        error = [
            TIMES * self._measured(k, f, root, some, wide) + EPS * float(np.abs(f.b) @ roots[k])
            for k, f in enumerate(found)
        ]
        spread = np.concatenate(roots) * self.each(np.array(error))
        h = G + self.each(np.array([f.intercept for f in found]))
        ends = (smo.shares(h + side * spread, b, lo, hi) for side in (-1.0, 1.0))
        gaps = np.add.reduceat(np.maximum(*ends), self.first)
        return [
            replace(f, gap=max(gap, f.gap), rounding=max(gap - f.gap, 0.0), G=None)
            for f, gap in zip(found, gaps.tolist(), strict=True)
        ]

    def _measured(
        self, k: int, found: DualSolution, root: Array, some: Array, wide: Array
    ) -> float:
        """How wrong the worst sum of the rows of some is, relative to its root."""
        (a, b), G = self.ends[k], found.G
        assert G is not None
        m, worst = a.stop - a.start, 0.0
        for ends, begin in ((a, 0), (b, m)):
            these = slice(*np.searchsorted(some, (ends.start, ends.stop)).tolist())
            at = some[these] - ends.start + begin
            again = wide[these, a] @ found.b[:m] + wide[these, b] @ found.b[m:]
            again -= self.problems[k].t[at]
            off = np.abs(G[at] - again) / np.maximum(root[some[these]], 1e-300)
            worst = max(worst, float(off.max()))
        return worst

    def each(self, values: Array) -> Array:
        """One value a problem, for each of its duals."""
        return np.repeat(values, [len(p.t) for p in self.problems])

    @staticmethod
    def _places(first: Array, n: int) -> list[slice]:
        return [slice(i, j) for i, j in zip(first.tolist(), [*first[1:].tolist(), n], strict=True)]


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


def sample(
    found: Sequence[DualSolution], ends: Sequence[Ends], problems: Sequence[DualProblem], n: int
) -> Array:
    """Some rows of every class, of those inside their bounds in some pair where there are any: they
    feel rounding most."""
    free = np.zeros(n, bool)
    for f, (a, b), p in zip(found, ends, problems, strict=True):
        mine = inside(f.b, p.lo, p.hi)
        free[a] |= mine[: a.stop - a.start]
        free[b] |= mine[a.stop - a.start :]
    rows = []
    for s in sorted({(e.start, e.stop) for pair in ends for e in pair}):
        of = np.flatnonzero(free[slice(*s)])
        of = of if len(of) else np.arange(s[1] - s[0])
        spread = np.linspace(0, len(of) - 1, min(len(of), SAMPLED)).astype(np.intp)
        rows.append(s[0] + of[np.unique(spread)])
    return np.concatenate(rows)
