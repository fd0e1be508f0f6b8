"""The dual problem of exact SVMs, what its duals are worth, and its solution where all of it is one block."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.inputs import Array
from mercer.ops import smo
from mercer.ops.threads import single_blas

STEPS = 20_000  # between two looks at the gap, at least
CLOSED, NEAR = 0.01, 100.0  # the gap, of tol times the objective, that ends it, and from which the best multiplier is worth its sort


@dataclass(frozen=True, eq=False)
class Box:
    """min_b b'(K + diag(ridge))b/2 - t'b + e |b|_1, lo <= b <= hi, lo <= 0 <= hi; with a bias, the sum of b stays what it is."""

    t: Array
    lo: Array
    hi: Array
    e: float = 0.0
    ridge: Array | None = None
    bias: bool = True


@dataclass(frozen=True, eq=False)
class Duals:
    """A solution: the duals, the intercept, the objective b'Kb/2 - t'b + e|b|, its gap, and what it took."""

    b: Array
    intercept: float
    objective: float
    gap: float
    violation: float
    converged: bool
    rounds: int
    steps: int
    made: int  # kernel rows computed

    @property
    def relative(self) -> float:
        """The gap relative to the objective."""
        return relative(self.gap, self.objective)


def relative(gap: float, objective: float) -> float:
    """A gap relative to an objective; zero where rounding left none."""
    return gap / abs(objective) if gap > 0 and objective else max(gap, 0.0)


def inside(b: Array, lo: Array, hi: Array) -> Array:
    """Which duals are neither zero nor at a bound."""
    return (b > lo) & (b < hi) & (b != 0)


def found(box: Box, b: Array, G: Array, rise: Array, fall: Array, tol: float, took: tuple[int, int, int]) -> Duals:
    """What duals are worth: their violation, their gap and whether that is small enough."""
    low, high = float(rise.min()), float(fall.max())
    worst = high - low if box.bias else max(high, -low)
    nu = multiplier(rise, inside(b, box.lo, box.hi), low, high) if box.bias else 0.0
    value = 0.5 * float(b @ (G - box.t)) + box.e * float(np.abs(b).sum())
    gap, enough = float(smo.gap(G, b, box.lo, box.hi, box.e, box.ridge, nu)), CLOSED * tol * abs(value)
    if box.bias and enough < gap < NEAR * enough and not np.any(box.ridge):
        nu = balance(G, box, float(b.sum()))
        gap = float(smo.gap(G, b, box.lo, box.hi, box.e, box.ridge, nu))
    return Duals(b, -nu, value, gap, max(worst, 0.0), worst <= tol or gap <= enough, *took)


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


def multiplier(rise: Array, free: Array, low: float, high: float) -> float:
    """That of the sum of b, less the bias: the mean slope of duals inside their bounds, or the middle of what bounds allow."""
    if free.any():
        return float(rise[free].mean())
    ends = [v for v in (low, high) if abs(v) < smo.FAR / 2]
    return sum(ends) / len(ends) if ends else 0.0


@single_blas()
def whole(K: Array, box: Box, tol: float, most: int, start: Array | None = None) -> Duals:
    """The duals of few rows as one block: K (n, n) with its columns padded to lanes, which gets the ridge."""
    n, shape, every = len(K), (-1, smo.LANE), np.arange(len(K))
    b, G = np.zeros(n) if start is None else start.astype(np.float64), np.zeros(K.shape[1])
    ridge = np.zeros(n) if box.ridge is None else box.ridge
    K[every, every] += ridge.astype(K.dtype)
    G[:n] = -box.t if start is None else K[:, :n].astype(np.float64) @ b - box.t
    box, steps, rise, fall = replace(box, ridge=ridge), 0, np.empty(n), np.empty(n)
    for r in range(most + 1):
        smo.gates(b, box.lo, box.hi, box.e, rise, fall)
        result = found(box, b, G[:n], rise + G[:n], fall + G[:n], tol, (r, steps, n))
        if result.converged or r == most:
            break
        go = smo.pairs if box.bias else smo.singles
        steps += go(K.reshape(n, *shape), G.reshape(shape), b, box.lo, box.hi, box.e, tol, max(10 * n, STEPS))
    return result
