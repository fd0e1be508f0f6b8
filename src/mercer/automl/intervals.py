"""Split conformal intervals from the residuals of the holdout; and rows unlike any of training,
whose intervals are wider."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.automl.predictors import LogTarget, TargetTransform
from mercer.automl.rows import TableRows, hashes
from mercer.inputs import Array
from mercer.invariants import Floats, Number, Whole
from mercer.models.intervals import conformal_quantile
from mercer.ops.tiles import cuts
from mercer.store import register

COVERAGE = 0.9
KEPT_RESIDUALS = 4_096  # residuals that a model carries
# rows that are kept, and others that tell how far from them a row usually is
KEPT_ROWS = 500
OTHER_ROWS = 2_000
MAX_KEPT_VALUES = 1 << 20  # that the kept rows have at most
MIN_KEPT_ROWS = 50  # rows that are kept however many columns there are
USUAL_SHARE = 0.995  # share of training-like rows within either limit
MIN_DISTANCE = 0.1  # standard deviations: nearer than this is no distance
DOUBT_ROWS = (
    30  # rows: with so many the limits are twice what the rows say, with many more hardly more
)
ODD_RATIO = 2.0  # how unusual a row with an odd cell is
MAX_WIDENING = 10.0  # times as wide as others an interval gets
BLOCK_ROWS = 1 << 12


@register("automl.Margin")
@dataclass(frozen=True, eq=False)
class Margin:
    """f - width to f + width; with `shift` not None, factors of exp(width) on f + shift instead.

    `scores` are the residuals that it rests on, in order (of very many, some), from which it
    answers for other coverages, and `low` is what no target is below.
    """

    width: float
    coverage: float = COVERAGE
    shift: float | None = None
    scores: Array | None = None
    n: int = 0  # residuals there were
    low: float = -np.inf

    must = dict(
        width=Number(0, finite=False),
        coverage=Number(0),
        shift=Number() | None,
        scores=Floats(None, finite=False) | None,
        n=Whole(),
        low=Number(finite=False),
    )

    def __post_init__(self) -> None:
        if self.scores is not None and self.scores.shape != _ranks(self.n).shape:
            raise ValueError(
                f"Margin needs as many scores as {self.n:,} residuals leave, got an array of shape {self.scores.shape}."
            )

    def __call__(self, f: Array, wider: Array | float = 1.0) -> tuple[Array, Array]:
        """Lower and upper ends about f; `wider` is a factor on the width of each."""
        width = self.width * wider
        if self.shift is None:
            return np.maximum(f - width, self.low), f + width
        base = np.maximum(f + self.shift, 0)
        with np.errstate(
            over="ignore", invalid="ignore"
        ):  # 0 times a factor that overflows is 0, unless the width is infinite
            top = np.where(np.isinf(width), np.inf, np.where(base > 0, base * np.exp(width), 0.0))
        return np.maximum(base * np.exp(-width) - self.shift, self.low), top - self.shift

    def at(self, coverage: float) -> Margin:
        """The margin for another coverage; where residuals were left out, the next larger that was
        kept."""
        if not (isinstance(coverage, int | float) and 0 < coverage < 1):
            raise ValueError(f"coverage must be a share between 0 and 1, got {coverage!r}.")
        if coverage == self.coverage or self.scores is None:
            return self
        rank = math.ceil((self.n + 1) * coverage - 1e-9)
        kept = np.searchsorted(_ranks(self.n), rank)
        width = float(self.scores[kept]) if rank <= self.n else np.inf
        return replace(self, width=width, coverage=coverage)


def _ranks(n: int) -> Array:
    """Of n residuals, the ranks (from 1) of those that are kept: all of few, of many evenly spread
    ones and the largest."""
    if n <= KEPT_RESIDUALS:
        return np.arange(1, n + 1)
    half = KEPT_RESIDUALS // 2
    return np.unique(
        np.concatenate(
            [np.linspace(1, n, half).round().astype(np.int64), np.arange(n - half + 1, n + 1)]
        )
    )


def margin(
    y: Array,
    f: Array,
    target: TargetTransform | None = None,
    coverage: float = COVERAGE,
    low: float = -np.inf,
) -> Margin:
    """The margin that these rows ask for: the ceil((n + 1) coverage)-th smallest residual.

    >>> found = margin(np.arange(19.0), np.zeros(19))
    >>> found.width, found.at(0.5).width
    (17.0, 9.0)
    """
    shift = target.shift if isinstance(target, LogTarget) else None
    found = np.sort(_residuals(y, f, shift))
    return Margin(
        float(conformal_quantile(found, coverage)),
        coverage,
        shift,
        found[_ranks(len(found)) - 1],
        len(found),
        low,
    )


def _residuals(y: Array, f: Array, shift: float | None) -> Array:
    """Absolute differences, of a logarithm those of logarithms; of the holdout, which may have
    targets without a logarithm."""
    if shift is None:
        return np.abs(y - f)
    tiny, base = np.finfo(float).tiny, y + shift
    return np.where(
        base > 0, np.abs(np.log(np.maximum(base, tiny) / np.maximum(f + shift, tiny))), np.inf
    )


def measured_coverage(
    rows: TableRows,
    f: Array,
    target: TargetTransform | None = None,
    coverage: float = COVERAGE,
    seed: int = 0,
    low: float = -np.inf,
    wider: Array | float = 1.0,
) -> float:
    """The share covered where each half of the rows is judged by the margin of the other, widened
    and cut off as predictions are; groups stay whole.
    """
    factor = np.broadcast_to(wider, f.shape)
    key = rows.row_id if rows.group is None else rows.group
    half = hashes(key, seed + 7) % np.uint64(2) == 0
    covered = np.zeros(len(rows), bool)
    for other in (half, ~half):
        if other.any():
            bottom, top = margin(rows.y[other], f[other], target, coverage, low)(
                f[~other], factor[~other]
            )
            covered[~other] = (bottom <= rows.y[~other]) & (rows.y[~other] <= top)
    return float(covered.mean())


def interval_summary(
    rows: TableRows,
    f: Array,
    found: Margin,
    target: TargetTransform | None,
    seed: int = 0,
    wider: Array | float = 1.0,
) -> dict[str, Any]:
    """The interval, as the result shows it."""
    low, high = found(f, wider)
    return {
        "coverage_asked": found.coverage,
        "coverage_measured": measured_coverage(
            rows, f, target, found.coverage, seed, found.low, wider
        ),
        "median_width": float(np.median(high - low)) if np.isfinite(found.width) else None,
        "guarantee": guarantee(rows, found.coverage),
    }


def guarantee(rows: TableRows, coverage: float) -> str:
    """What may be relied on, and what may not."""
    share = f"at least {100 * coverage:g} % of new rows from the same source"
    sure = f"{share} are covered on average (split conformal on the holdout's residuals)"
    if rows.time is not None:
        return f"{sure}, as long as the future is like the last rows"
    return (
        f"{sure}; rows of one group are alike, so for new groups this is approximate"
        if rows.group is not None
        else sure
    )


@register("automl.NoveltyDetector")
@dataclass(frozen=True, eq=False)
class NoveltyDetector:
    """`rows` (m, p) of training with their range from `low` to `high`; `far` is how far from all of
    them, and `out` how far beyond their range in a column, one row in two hundred of training is.

    Both limits are measured on other rows of training, or with each row left out where there are
    few: about one in a hundred rows from the same source is unusual. Distances are those of the
    treated columns, which have deviation 1.
    """

    rows: Array
    low: Array
    high: Array
    far: float
    out: float

    must = dict(
        rows=Floats("m", "p"),
        low=Floats("p", finite=False),
        high=Floats("p", finite=False),
        far=Number(0),
        out=Number(0),
    )

    def __post_init__(self) -> None:
        shapes = (
            self.rows.ndim == 2
            and len(self.rows) > 0
            and self.low.shape == self.high.shape == self.rows.shape[1:]
        )
        if not (shapes and self.far > 0 and self.out > 0):
            raise ValueError("Unusual needs rows (m, p), their range (p,) and limits > 0.")

    def __call__(self, X: Array, odd: Array | None = None) -> Array:
        """How unusual each row is: its distance or excess in units of the limit; a row above 1 is
        unlike any row of training."""
        found = np.concatenate(
            [
                np.zeros(0),
                *(self._ratio(np.asarray(X[s], np.float32)) for s in cuts(len(X), BLOCK_ROWS)),
            ]
        )
        return found if odd is None else np.where(odd, np.maximum(found, ODD_RATIO), found)

    def _ratio(self, X: Array) -> Array:
        return np.maximum(
            _excess(X, self.low, self.high) / self.out, _nearest(X, self.rows) / self.far
        )


def widening(ratio: Array) -> Array:
    """The factor on the width of an interval: 1 for usual rows, and 1 + ratio, up to 10, for
    unusual ones.

    >>> widening(np.array([0.5, 1.5, 100.0]))
    array([ 1. ,  2.5, 10. ])
    """
    return np.where(ratio > 1, np.minimum(1 + ratio, MAX_WIDENING), 1.0)


def fit_novelty(train: TableRows, seed: int = 0, ranged: Array | None = None) -> NoveltyDetector:
    """From the training rows; `ranged` tells the columns whose range counts, all where it is
    None."""
    m = max(MIN_KEPT_ROWS, min(KEPT_ROWS, MAX_KEPT_VALUES // max(train.X.shape[1], 1)))
    kept, more = train.sample(m, seed), train.sample(m + OTHER_ROWS, seed)
    others = np.array(more.X[~np.isin(more.row_id, kept.row_id)], np.float32)
    rows = np.array(kept.X, np.float32)
    counts = np.ones(rows.shape[1], bool) if ranged is None else ranged
    low, high = (
        np.where(counts, rows.min(0), -np.inf).astype(np.float32),
        np.where(counts, rows.max(0), np.inf).astype(np.float32),
    )
    if len(others) >= len(rows):
        far, out = (
            np.concatenate([_nearest(others[s], rows) for s in cuts(len(others), BLOCK_ROWS)]),
            _excess(others, low, high),
        )
    else:
        far, out = _nearest(rows, rows, itself=True), _excess_of_each(rows[:, counts])
    return NoveltyDetector(rows, low, high, _limit(far), _limit(out))


def _limit(found: Array) -> float:
    """What all but one in two hundred are within: more where few rows tell, and at least so much
    that rounding is not far."""
    rank = min(len(found), int(np.ceil((len(found) + 1) * USUAL_SHARE)))
    return max(MIN_DISTANCE, float(np.sort(found)[rank - 1]) * (1 + DOUBT_ROWS / len(found)))


def _excess(X: Array, low: Array, high: Array) -> Array:
    """How far beyond the range the column is that is furthest beyond it; (n,)."""
    return np.maximum(np.maximum(X - high, low - X), 0).max(1, initial=0).astype(np.float64)


def _excess_of_each(X: Array) -> Array:
    """Of each row beyond the range of the others: where it alone is at an end, the gap to the
    next."""
    if len(X) < 2:
        return np.zeros(len(X))
    ordered = np.sort(X, axis=0)
    above = np.where(ordered[-1] == X, ordered[-1] - ordered[-2], 0)
    below = np.where(ordered[0] == X, ordered[1] - ordered[0], 0)
    return np.maximum(above, below).max(1, initial=0).astype(np.float64)


def _nearest(X: Array, Z: Array, itself: bool = False) -> Array:
    """The distance of each row of X from the nearest of Z, or, where they are the same rows, from
    the nearest other; (n,).

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
