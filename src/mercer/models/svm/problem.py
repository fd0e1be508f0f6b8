"""The dual problem of exact SVMs, and what its duals are worth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Number, Text, Whole
from mercer.operators import TiledOperator
from mercer.operators.exact import exact
from mercer.ops import smo
from mercer.ops.threads import single_blas
from mercer.store import register

CLOSED, NEAR = (
    0.01,
    100.0,
    # the gap, of tol times the objective, that ends it, and from which the best multiplier is worth its
    # sort
)
EPS = float(np.finfo(np.float64).eps)
FLATTEST, ROUNDING = (
    1e-6,
    1e-14,
)  # slopes are not made flatter than this part of tol, or of the largest slope
# all values once; rows as they are asked for, where few are expected; rows as far as there is room;
# none of them, but products on a GPU
WAYS = WHOLE, FEW_ROWS, BLOCKS, ON_GPU = "whole matrix", "few rows", "blocks", "products on the GPU"
NOISE = 1e-15  # of a gap, relative to the sums that it is the difference of


@dataclass(frozen=True, eq=False)
class DualProblem:
    """min_b b'(K + diag(ridge))b/2 - t'b + e |b|_1, lo <= b <= hi, lo <= 0 <= hi; with a bias, sum
    b = total.

    `unit` is that of slopes: tol counts in it.
    """

    t: Array
    lo: Array
    hi: Array
    e: float = 0.0
    ridge: Array | None = None
    bias: bool = True
    unit: float = 1.0
    total: float = 0.0
    least: float = 0.0  # an objective below it counts as zero: what a gap is then relative to

    def scaled(self, s: float) -> DualProblem:
        """The same problem with s times its C."""
        return replace(
            self,
            lo=self.lo * s,
            hi=self.hi * s,
            ridge=None if self.ridge is None else self.ridge / s,
        )

    def part(self, some: Array) -> DualProblem:
        """That of some duals."""
        ridge = None if self.ridge is None else self.ridge[some]
        return replace(self, t=self.t[some], lo=self.lo[some], hi=self.hi[some], ridge=ridge)

    @property
    def C(self) -> float:
        """The largest weight of a loss."""
        bound = float(np.maximum(self.hi, -self.lo).max())
        return (
            bound if self.ridge is None or not self.ridge.any() else 0.5 / float(self.ridge.min())
        )

    def noise(self, nu: float) -> float:
        """What rounding makes of a gap of zero where all duals are zero."""
        wide = self.hi - self.lo
        return NOISE * float(
            np.where(np.isfinite(wide), wide, 0.0) @ (np.abs(self.t) + (self.e + abs(nu)))
        )


@register("svm.DualSolution")
@dataclass(frozen=True, eq=False)
class DualSolution:
    """A solution: the duals, the intercept, the objective b'Kb/2 - t'b + e|b|, its gap, and what it
    took."""

    b: Array
    intercept: float
    objective: float
    gap: float
    violation: float
    # by the "gap", by "slopes", by "rounding", which allows no less, or "" where rounds ran out
    ended: str
    rounds: int
    steps: int
    made: int  # kernel rows computed
    rounding: float = (
        0.0  # of kernel values and of their sums: what it may add to the gap, which has it
    )
    least: float = 0.0  # the objective that a gap is at least relative to
    G: Array | None = None  # K b - t, until the gap is certified
    way: str = ""  # how kernel values came: one of WAYS, or "" in files of before

    must = dict(
        b=Floats("n"),
        intercept=Number(finite=False),
        objective=Number(finite=False),
        gap=Number(finite=False),
        violation=Number(finite=False),
        ended=Text(),
        rounds=Whole(),
        steps=Whole(),
        made=Whole(),
        rounding=Number(finite=False),
        least=Number(finite=False),
        G=Floats("n", finite=False) | None,
        way=Text(),
    )

    @property
    def converged(self) -> bool:
        return self.ended != ""

    def times(self, s: float) -> DualSolution:
        """The same solution for weights in another unit, where they are all there is."""
        return replace(
            self,
            b=self.b * s,
            intercept=self.intercept * s,
            objective=self.objective * s**2,
            gap=self.gap * s**2,
            rounding=self.rounding * s**2,
            least=self.least * s**2,
        )

    @property
    def open(self) -> float:
        """The larger part of the relative gap: that of the duals, or what rounding adds to it."""
        return relative(
            max(self.gap - self.rounding, self.rounding), max(abs(self.objective), self.least)
        )

    @property
    def relative(self) -> float:
        """The gap relative to the objective."""
        return relative(self.gap, max(abs(self.objective), self.least))


def relative(gap: float, objective: float) -> float:
    """A gap relative to an objective; zero where rounding left none, infinite where the objective
    is zero and the gap is not.

    >>> relative(0.1, -2.0), relative(0.1, 0.0), relative(0.0, 0.0)
    (0.05, inf, 0.0)
    """
    return 0.0 if gap <= 0 else gap / abs(objective) if objective else math.inf


def inside(b: Array, lo: Array, hi: Array) -> Array:
    """Which duals are neither zero nor at a bound."""
    return (b > lo) & (b < hi) & (b != 0)


def feasible_start(problem: DualProblem, start: Array | None) -> Array:
    """Duals to start from; no step mends a sum that is not the one asked for."""
    b = (
        np.zeros(len(problem.t))
        if start is None
        else np.clip(start.astype(np.float64), problem.lo, problem.hi)
    )
    if problem.bias and abs(b.sum() - problem.total) > 1e-9 * (
        np.abs(b).sum() + abs(problem.total)
    ):
        asked = (
            f"lie within the bounds and sum to {problem.total:.3g}, got {b.sum():.3g} within them"
        )
        raise ValueError(f"start must {asked}; start from None.")
    return b


def evaluate(
    problem: DualProblem,
    b: Array,
    G: Array,
    up: Array,
    down: Array,
    *,
    tol: float,
    slack: float,
    work: tuple[int, int, int],
    root: Array,
) -> DualSolution:
    """What duals are worth: their violation, their gap and whether that is small enough.

    Slopes that differ by at most `slack` end it only where the gap is at most tol of the objective,
    or rounding allows no less: that of the sums K b, of terms of the size of `root`, the square
    roots of the diagonal.
    """
    low, high = float(up.min()), float(down.max())
    worst = high - low if problem.bias else max(high, -low)
    nu = multiplier(up, inside(b, problem.lo, problem.hi), low, high) if problem.bias else 0.0
    value = 0.5 * float(b @ (G - problem.t)) + problem.e * float(np.abs(b).sum())
    ridge = np.zeros(len(b)) if problem.ridge is None else problem.ridge
    gap = smo.gap(G, b, problem.lo, problem.hi, problem.e, ridge, nu)
    enough = CLOSED * tol * max(abs(value), problem.least)
    begins = (
        work[1] == 0
    )  # duals that were given may all be inside their bounds, as those of an interior-point method
    soft = bool(np.any(ridge))
    if problem.bias and enough < gap and (begins or (gap < NEAR * enough and not soft)):
        nu = soft_balance(G, b, problem) if soft else balance(G, problem, float(b.sum()))
        gap = smo.gap(G, b, problem.lo, problem.hi, problem.e, ridge, nu)
    gap = 0.0 if value == 0 and gap <= problem.noise(nu) else gap
    least = max(FLATTEST * tol * problem.unit, ROUNDING * float(np.abs(G).max()))
    flat = worst <= slack and (gap <= tol * max(abs(value), problem.least) or slack <= least)
    rounded = worst <= EPS * float(root.max() * (np.abs(b) @ root))
    ended = "gap" if gap <= enough else "slopes" if flat else "rounding" if rounded else ""
    return DualSolution(b, -nu, value, gap, max(worst, 0.0), ended, *work, least=problem.least, G=G)


def balance(G: Array, problem: DualProblem, total: float) -> float:
    """The multiplier of the least gap, which is convex: its slope rises by -lo at G - e and by hi
    at G + e, from sum lo - sum b.

    >>> problem = DualProblem(np.array([1.0, -1.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0]))
    >>> balance(np.array([1.0, 1.0]), problem, 0.0)
    1.0
    """
    turns, rises = (
        np.concatenate([G - problem.e, G + problem.e]),
        np.concatenate([-problem.lo, problem.hi]),
    )
    order = np.argsort(turns)
    slope = problem.lo.sum() - total + np.cumsum(rises[order])
    return float(turns[order[min(int(np.searchsorted(slope, 0.0)), len(order) - 1)]])


def soft_balance(G: Array, b: Array, problem: DualProblem) -> float:
    """The same where there is a ridge, by bisection: the duals that are best for a multiplier fall
    as it rises, to the sum of b."""
    ridge = np.zeros(len(b)) if problem.ridge is None else problem.ridge
    h, total, ridge = G - ridge * b, float(b.sum()), np.maximum(ridge, 1e-300)
    low, high = float(h.min()) - problem.e, float(h.max()) + problem.e
    for _ in range(200):
        nu = (low + high) / 2
        if not low < nu < high:
            break
        rise, fall = np.maximum(nu - h - problem.e, 0.0), np.maximum(h - nu - problem.e, 0.0)
        above = (
            float(
                np.where(problem.hi > 0, rise, np.where(problem.lo < 0, -fall, 0.0)) @ (1 / ridge)
            )
            > total
        )
        low, high = (low, nu) if above else (nu, high)
    return (low + high) / 2


def multiplier(up: Array, free: Array, low: float, high: float) -> float:
    """That of the sum of b, less the bias: the mean slope of duals inside their bounds, or the
    middle of what bounds allow."""
    if free.any():
        return float(up[free].mean())
    ends = [v for v in (low, high) if abs(v) < smo.MAX_GRADIENT / 2]
    return sum(ends) / len(ends) if ends else 0.0


SAMPLED, TIMES = (
    32,
    2.0,
)  # rows whose sums are taken again, and the error of the others, in that of the worst of these


@single_blas()  # of short sums
def certified(
    op: TiledOperator, problem: DualProblem, found: DualSolution, index: Array | None = None
) -> DualSolution:
    """The gap with its rounding: sums K b of some rows are taken again in float64, and all may be
    as wrong as the worst of them.

    The rounding of float64 itself is counted in the size of the terms of a sum. Duals clearly at a
    bound do not feel it.
    """
    b, G, ridge = (
        found.b,
        found.G,
        np.zeros(len(found.b)) if problem.ridge is None else problem.ridge,
    )
    support = np.flatnonzero(b)
    if G is None or not len(support):
        return replace(found, G=None)
    at = np.arange(op.shape[0]) if index is None else index
    root = np.sqrt(np.abs(op.scale[at]))
    some = _some(inside(b, problem.lo, problem.hi))
    K = exact(op, at[some], at[support])
    again = K @ b[support] + ridge[some] * b[some] - problem.t[some]
    measured = float(np.max(np.abs(G[some] - again) / np.maximum(root[some], 1e-300)))
    error = root * (TIMES * measured + EPS * float(np.abs(b) @ root))
    gap = float(
        smo.gap_within(G, b, problem.lo, problem.hi, problem.e, ridge, -found.intercept, error)
    )
    return replace(found, gap=max(gap, found.gap), rounding=max(gap - found.gap, 0.0), G=None)


def _some(free: Array) -> Array | slice:
    """Some of those inside their bounds, which feel rounding most; of all where there are none."""
    of = np.flatnonzero(free) if free.any() else np.arange(len(free))
    return of[np.unique(np.linspace(0, len(of) - 1, min(len(of), SAMPLED)).astype(np.intp))]
