"""Rows unlike any row of training: far from all of a sample of them, or beyond its range in some column, or with odd cells."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Number
from mercer.ops.tiles import cuts
from mercer.product.rows import Rows
from mercer.store import register

KEPT, OTHERS = 500, 2_000  # rows that are kept, and others that tell how far from them a row usually is
VALUES, FEWEST = 1 << 20, 50  # that the kept rows have at most; rows that are kept however many columns there are
USUAL = 0.995  # share of training-like rows within either limit
LEAST = 0.1  # standard deviations: nearer than this is no distance
DOUBT = 30  # rows: with so many the limits are twice what the rows say, with many more hardly more
ODD = 2.0  # how unusual a row with an odd cell is
WIDEST = 10.0  # times as wide as others an interval gets
STEP = 1 << 12


@register("automl.Unusual")
@dataclass(frozen=True, eq=False)
class Unusual:
    """`rows` (m, p) of training with their range from `low` to `high`; `far` is how far from all of them, and `out` how far beyond
    their range in a column, one row in two hundred of training is.

    Both limits are measured on other rows of training, or with each row left out where there are few: about one in a hundred
    rows from the same source is unusual. Distances are those of the treated columns, which have deviation 1.
    """

    rows: Array
    low: Array
    high: Array
    far: float
    out: float

    must = dict(
        rows=Floats("m", "p"), low=Floats("p", finite=False), high=Floats("p", finite=False), far=Number(0), out=Number(0),
    )  # fmt: skip

    def __post_init__(self) -> None:
        shapes = self.rows.ndim == 2 and len(self.rows) > 0 and self.low.shape == self.high.shape == self.rows.shape[1:]
        if not (shapes and self.far > 0 and self.out > 0):
            raise ValueError("Unusual needs rows (m, p), their range (p,) and limits > 0.")

    def __call__(self, X: Array, odd: Array | None = None) -> Array:
        """How unusual each row is: its distance or excess in units of the limit; a row above 1 is unlike any row of training."""
        found = np.concatenate([np.zeros(0), *(self._ratio(np.asarray(X[s], np.float32)) for s in cuts(len(X), STEP))])
        return found if odd is None else np.where(odd, np.maximum(found, ODD), found)

    def _ratio(self, X: Array) -> Array:
        return np.maximum(_excess(X, self.low, self.high) / self.out, _nearest(X, self.rows) / self.far)


def widening(ratio: Array) -> Array:
    """The factor on the width of an interval: 1 for usual rows, and 1 + ratio, up to 10, for unusual ones.

    >>> widening(np.array([0.5, 1.5, 100.0]))
    array([ 1. ,  2.5, 10. ])
    """
    return np.where(ratio > 1, np.minimum(1 + ratio, WIDEST), 1.0)


def unusual(train: Rows, seed: int = 0, ranged: Array | None = None) -> Unusual:
    """From the training rows; `ranged` tells the columns whose range counts, all where it is None."""
    m = max(FEWEST, min(KEPT, VALUES // max(train.X.shape[1], 1)))
    kept, more = train.sample(m, seed), train.sample(m + OTHERS, seed)
    others = np.array(more.X[~np.isin(more.number, kept.number)], np.float32)
    rows = np.array(kept.X, np.float32)
    counts = np.ones(rows.shape[1], bool) if ranged is None else ranged
    low, high = np.where(counts, rows.min(0), -np.inf).astype(np.float32), np.where(counts, rows.max(0), np.inf).astype(np.float32)
    if len(others) >= len(rows):
        far, out = np.concatenate([_nearest(others[s], rows) for s in cuts(len(others), STEP)]), _excess(others, low, high)
    else:
        far, out = _nearest(rows, rows, itself=True), _excess_of_each(rows[:, counts])
    return Unusual(rows, low, high, _limit(far), _limit(out))


def _limit(found: Array) -> float:
    """What all but one in two hundred are within: more where few rows tell, and at least so much that rounding is not far."""
    rank = min(len(found), int(np.ceil((len(found) + 1) * USUAL)))
    return max(LEAST, float(np.sort(found)[rank - 1]) * (1 + DOUBT / len(found)))


def _excess(X: Array, low: Array, high: Array) -> Array:
    """How far beyond the range the column is that is furthest beyond it; (n,)."""
    return np.maximum(np.maximum(X - high, low - X), 0).max(1, initial=0).astype(np.float64)


def _excess_of_each(X: Array) -> Array:
    """Of each row beyond the range of the others: where it alone is at an end, the gap to the next."""
    if len(X) < 2:
        return np.zeros(len(X))
    ordered = np.sort(X, axis=0)
    above = np.where(ordered[-1] == X, ordered[-1] - ordered[-2], 0)
    below = np.where(ordered[0] == X, ordered[1] - ordered[0], 0)
    return np.maximum(above, below).max(1, initial=0).astype(np.float64)


def _nearest(X: Array, Z: Array, itself: bool = False) -> Array:
    """The distance of each row of X from the nearest of Z, or, where they are the same rows, from the nearest other; (n,).

    About the mean of Z, where float32 keeps its digits.
    """
    centre = Z.mean(0)
    A, B = X - centre, Z - centre
    D = A @ (-2 * B.T)  # (n, m)
    D += np.square(B).sum(1)
    if itself:
        np.fill_diagonal(D, np.inf)
    squares = D.min(1) + np.square(A).sum(1)
    return np.sqrt(np.where(np.isfinite(squares), np.maximum(squares, 0), 0).astype(np.float64))
