"""The dual problem of exact SVMs, and what its duals are worth."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Number, Text, Whole
from mercer.ops import smo
from mercer.store import register

CLOSED, NEAR = 0.01, 100.0  # the gap, of tol times the objective, that ends it, and from which the best multiplier is worth its sort
EPS = float(np.finfo(np.float64).eps)
FLATTEST, ROUNDING = 1e-6, 1e-14  # slopes are not made flatter than this part of tol, or of the largest slope
NOISE = 1e-15  # of a gap, relative to the sums that it is the difference of


@dataclass(frozen=True, eq=False)
class Box:
    """min_b b'(K + diag(ridge))b/2 - t'b + e |b|_1, lo <= b <= hi, lo <= 0 <= hi; with a bias, sum b = total.

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

    def scaled(self, s: float) -> Box:
        """The same problem with s times its C."""
        return replace(self, lo=self.lo * s, hi=self.hi * s, ridge=None if self.ridge is None else self.ridge / s)

    @property
    def C(self) -> float:
        """The largest weight of a loss."""
        bound = float(np.maximum(self.hi, -self.lo).max())
        return bound if self.ridge is None or not self.ridge.any() else 0.5 / float(self.ridge.min())

    def noise(self, nu: float) -> float:
        """What rounding makes of a gap of zero where all duals are zero."""
        wide = self.hi - self.lo
        return NOISE * float(np.where(np.isfinite(wide), wide, 0.0) @ (np.abs(self.t) + (self.e + abs(nu))))


@register("svm.Duals")
@dataclass(frozen=True, eq=False)
class Duals:
    """A solution: the duals, the intercept, the objective b'Kb/2 - t'b + e|b|, its gap, and what it took."""

    b: Array
    intercept: float
    objective: float
    gap: float
    violation: float
    ended: str  # by the "gap", by "slopes", by "rounding", which allows no less, or "" where rounds ran out
    rounds: int
    steps: int
    made: int  # kernel rows computed
    rounding: float = 0.0  # of kernel values and of their sums: what it may add to the gap, which has it
    least: float = 0.0  # the objective that a gap is at least relative to
    G: Array | None = None  # K b - t, until the gap is certified

    must = dict(
        b=Floats("n"), intercept=Number(finite=False), objective=Number(finite=False), gap=Number(finite=False),
        violation=Number(finite=False), ended=Text(), rounds=Whole(), steps=Whole(), made=Whole(), rounding=Number(finite=False),
        least=Number(finite=False), G=Floats("n", finite=False) | None,
    )  # fmt: skip

    @property
    def converged(self) -> bool:
        return self.ended != ""

    def times(self, s: float) -> Duals:
        """The same solution for weights in another unit, where they are all there is."""
        return replace(self, b=self.b * s, intercept=self.intercept * s, objective=self.objective * s**2, gap=self.gap * s**2,
                       rounding=self.rounding * s**2, least=self.least * s**2)  # fmt: skip

    @property
    def open(self) -> float:
        """The larger part of the relative gap: that of the duals, or what rounding adds to it."""
        return relative(max(self.gap - self.rounding, self.rounding), max(abs(self.objective), self.least))

    @property
    def relative(self) -> float:
        """The gap relative to the objective."""
        return relative(self.gap, max(abs(self.objective), self.least))


def relative(gap: float, objective: float) -> float:
    """A gap relative to an objective; zero where rounding left none, infinite where the objective is zero and the gap is not.

    >>> relative(0.1, -2.0), relative(0.1, 0.0), relative(0.0, 0.0)
    (0.05, inf, 0.0)
    """
    return 0.0 if gap <= 0 else gap / abs(objective) if objective else math.inf


def inside(b: Array, lo: Array, hi: Array) -> Array:
    """Which duals are neither zero nor at a bound."""
    return (b > lo) & (b < hi) & (b != 0)


def started(box: Box, start: Array | None) -> Array:
    """Duals to start from; no step mends a sum that is not the one asked for."""
    b = np.zeros(len(box.t)) if start is None else np.clip(start.astype(np.float64), box.lo, box.hi)
    if box.bias and abs(b.sum() - box.total) > 1e-9 * (np.abs(b).sum() + abs(box.total)):
        raise ValueError(f"start must lie within the bounds and sum to {box.total:.3g}, got {b.sum():.3g} within them; start from None.")
    return b


def found(
    box: Box, b: Array, G: Array, rise: Array, fall: Array, tol: float, slack: float, took: tuple[int, int, int], root: Array
) -> Duals:  # fmt: skip
    """What duals are worth: their violation, their gap and whether that is small enough.

    Slopes that differ by at most `slack` end it only where the gap is at most tol of the objective, or rounding allows no less:
    that of the sums K b, of terms of the size of `root`, the square roots of the diagonal.
    """
    low, high = float(rise.min()), float(fall.max())
    worst = high - low if box.bias else max(high, -low)
    nu = multiplier(rise, inside(b, box.lo, box.hi), low, high) if box.bias else 0.0
    value = 0.5 * float(b @ (G - box.t)) + box.e * float(np.abs(b).sum())
    gap, enough = float(smo.gap(G, b, box.lo, box.hi, box.e, box.ridge, nu)), CLOSED * tol * max(abs(value), box.least)
    begins = took[1] == 0  # duals that were given may all be inside their bounds, as those of an interior-point method
    soft = bool(np.any(box.ridge))
    if box.bias and enough < gap and (begins or (gap < NEAR * enough and not soft)):
        nu = soft_balance(G, b, box) if soft else balance(G, box, float(b.sum()))
        gap = float(smo.gap(G, b, box.lo, box.hi, box.e, box.ridge, nu))
    gap = 0.0 if value == 0 and gap <= box.noise(nu) else gap
    least = max(FLATTEST * tol * box.unit, ROUNDING * float(np.abs(G).max()))
    flat = worst <= slack and (gap <= tol * max(abs(value), box.least) or slack <= least)
    rounded = worst <= EPS * float(root.max() * (np.abs(b) @ root))
    ended = "gap" if gap <= enough else "slopes" if flat else "rounding" if rounded else ""
    return Duals(b, -nu, value, gap, max(worst, 0.0), ended, *took, least=box.least, G=G)


def balance(G: Array, box: Box, total: float) -> float:
    """The multiplier of the least gap, which is convex: its slope rises by -lo at G - e and by hi at G + e, from sum lo - sum b.

    >>> box = Box(np.array([1.0, -1.0]), np.array([0.0, -1.0]), np.array([1.0, 0.0]))
    >>> balance(np.array([1.0, 1.0]), box, 0.0)
    1.0
    """
    turns, rises = np.concatenate([G - box.e, G + box.e]), np.concatenate([-box.lo, box.hi])
    order = np.argsort(turns)
    slope = box.lo.sum() - total + np.cumsum(rises[order])
    return float(turns[order[min(int(np.searchsorted(slope, 0.0)), len(order) - 1)]])


def soft_balance(G: Array, b: Array, box: Box) -> float:
    """The same where there is a ridge, by bisection: the duals that are best for a multiplier fall as it rises, to the sum of b."""
    ridge = np.zeros(len(b)) if box.ridge is None else box.ridge
    h, total, ridge = G - ridge * b, float(b.sum()), np.maximum(ridge, 1e-300)
    low, high = float(h.min()) - box.e, float(h.max()) + box.e
    for _ in range(200):
        nu = (low + high) / 2
        if not low < nu < high:
            break
        rise, fall = np.maximum(nu - h - box.e, 0.0), np.maximum(h - nu - box.e, 0.0)
        above = float(np.where(box.hi > 0, rise, np.where(box.lo < 0, -fall, 0.0)) @ (1 / ridge)) > total
        low, high = (low, nu) if above else (nu, high)
    return (low + high) / 2


def multiplier(rise: Array, free: Array, low: float, high: float) -> float:
    """That of the sum of b, less the bias: the mean slope of duals inside their bounds, or the middle of what bounds allow."""
    if free.any():
        return float(rise[free].mean())
    ends = [v for v in (low, high) if abs(v) < smo.FAR / 2]
    return sum(ends) / len(ends) if ends else 0.0
