"""Which candidate is chosen: the best by the metric, a tie decided by the smooth loss of all but the
extreme rows; a simpler one in its place only where nothing speaks against it.

Scores of a few thousand rows often rest on a few extreme ones, which make the error of a difference
wide: a linear model of prices was kept within such an error though it was worse on nearly every
row, and on other rows of the table a single one of them cost it 0.13 of R². So differences are also
judged row by row, by ranks, which no extreme row can rule, and by the worst errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.automl.candidates import ModelCandidate, folds_of
from mercer.automl.metrics import Metric, Score, difference_error
from mercer.automl.recipes import KINDS
from mercer.automl.search import SearchProblem
from mercer.inputs import Array

READABLE = ("constant", "linear", "sparse")
CHEAPER = 10.0  # times as fast as the best, which makes up for a difference within its error
TIE = 1.0  # standard errors of a difference, within which the smooth loss decides
SURE = 2.0  # standard errors of the signed ranks
NEGLIGIBLE = 0.01  # of the loss: less is no difference to speak of
TRIMMED = 0.01  # share of the rows, at either end, that the typical difference leaves out
WORST_SHARE = 0.01  # of the rows, and at least so many, whose errors are the worst
MIN_WORST = 5
WORSE = 1.5  # times the worst losses of the best, from which on they are worse
LEAST_PROBABILITY = 1e-3  # of the right class in a loss of rows


def choose_candidate(p: SearchProblem, found: Sequence[ModelCandidate]) -> ModelCandidate:
    """The best; or the simplest of those that are readable or ten times as fast, within one
    standard error of it, not worse row by row, and whose worst errors are no worse."""
    best = best_candidate(p, found)
    near = [
        f for f in found if KINDS.index(f.kind) < KINDS.index(best.kind) and stands_in(p, f, best)
    ]
    return min(near, key=lambda f: KINDS.index(f.kind)) if near else best


def best_candidate(p: SearchProblem, found: Sequence[ModelCandidate]) -> ModelCandidate:
    """By the metric; of those within a standard error of the first, the one of the least log loss or
    squared error, without the hundredth of the rows on which any of them has the largest."""
    first = _first(p, found)
    tied = [f for f in found if _gap(p, f, first) <= TIE * _error(p, f, first)]
    common = min(map(n_repeats, tied))
    losses = [loss for f in tied if (loss := row_losses(p, f, common)) is not None]
    if len(tied) < 2 or len(losses) < len(tied) or not np.isfinite(losses).all():
        return first
    worst, w = np.max(losses, axis=0), row_weights(p)
    kept = np.argsort(worst, kind="stable")
    kept = kept[_inner(w[kept], 0.0, TRIMMED)]
    return tied[int(np.argmin([np.average(loss[kept], weights=w[kept]) for loss in losses]))]


def _first(p: SearchProblem, found: Sequence[ModelCandidate]) -> ModelCandidate:
    """The best by the metric: of those on the most repeats of the folds, or one on fewer that is
    better on these."""
    order = sorted(found, key=lambda f: (n_repeats(f), _gain(p, f.score)), reverse=True)
    first = order[0]
    for f in order[1:]:
        first = f if _gap(p, f, first) < 0 else first
    return first


def n_repeats(f: ModelCandidate) -> int:
    """On how many cuts into folds it was compared."""
    return max(len(f.repeats), 1)


def paired_scores(a: ModelCandidate, b: ModelCandidate) -> tuple[Score, Score]:
    """Of two, over the repeats of the folds that both have: what is between other repeats is not
    between them."""
    common = min(n_repeats(a), n_repeats(b))
    one, two = (
        f.score if n_repeats(f) == common else mean_score([s for s, _ in f.repeats[:common]])
        for f in (a, b)
    )
    return one, two


def stands_in(p: SearchProblem, f: ModelCandidate, best: ModelCandidate) -> bool:
    """Whether a simpler one may take the place of the best."""
    if f.kind not in READABLE and f.seconds * CHEAPER > best.seconds:
        return False
    if not within_error(p, f, best):
        return False
    common = min(n_repeats(f), n_repeats(best))
    mine, other = row_losses(p, f, common), row_losses(p, best, common)
    if mine is None or other is None:
        return True
    w = row_weights(p)
    worse = worse_by_rows(mine, other, row_groups(p), w)
    return not worse and not worse_at_worst(mine, other, w)


def within_error(p: SearchProblem, f: ModelCandidate, best: ModelCandidate) -> bool:
    """Whether one is behind another by no more than a standard error of the difference."""
    return bool(_gap(p, f, best) <= _error(p, f, best))


def worse_by_rows(
    mine: Array, best: Array, groups: Array | None = None, weights: Array | None = None
) -> bool:
    """Whether losses of rows are larger than those of the best by signed ranks (Wilcoxon, 1945),
    and by more than a hundredth without the extreme rows. A row counts by its weight, and so does
    the part of the rows that its rank is above; a group by the mean weight of its rows.

    >>> rng = np.random.default_rng(0)
    >>> best = rng.exponential(size=500)
    >>> worse_by_rows(1.1 * best, best), worse_by_rows(best[::-1], best)
    (True, False)
    """
    d, w = mine - best, np.ones(len(mine)) if weights is None else weights
    usual = _trimmed_mean(best, w, 0.0, TRIMMED)
    if groups is not None:
        at = np.unique(groups, return_inverse=True)[1]
        total = np.bincount(at, w)
        d, w = np.bincount(at, w * d) / np.maximum(total, 1e-300), total / np.bincount(at)
    signed = w * np.sign(d) * _ranks(np.abs(d), w)
    size = float(np.sqrt(np.square(signed).sum()))
    typical = _trimmed_mean(d, w, TRIMMED, TRIMMED)
    return bool(size > 0 and signed.sum() / size > SURE and typical > NEGLIGIBLE * usual)


def worse_at_worst(mine: Array, best: Array, weights: Array | None = None) -> bool:
    """Whether the largest losses, on average, are larger than those of the best: those of a
    hundredth of the weight.

    >>> worse_at_worst(np.array([1.0] * 99 + [50.0]), np.ones(100))
    True
    """
    w = np.ones(len(mine)) if weights is None else weights
    k = min(len(mine), max(MIN_WORST, int(WORST_SHARE * len(mine))))
    ends = [_worst_mean(v, w, k / len(mine)) for v in (mine, best)]
    return bool(ends[0] > WORSE * ends[1])


def _ranks(size: Array, w: Array) -> Array:
    """Ranks from 1 on, in rows of mean weight: the weight of what is smaller, and half of that of
    what is as large.

    >>> _ranks(np.array([3.0, 1.0, 3.0]), np.ones(3)), _ranks(np.array([3.0, 1.0]), np.array([1.0, 3.0]))
    (array([2.5, 1. , 2.5]), array([2.25, 1.25]))
    """
    v = w / w.mean()
    at = np.unique(size, return_inverse=True)[1]
    each = np.bincount(at, v)
    return np.asarray((np.cumsum(each) - each / 2 + 0.5)[at])


def _trimmed_mean(values: Array, w: Array, low: float, high: float) -> float:
    """Without those shares of the weight at the ends."""
    order = np.argsort(values, kind="stable")
    kept = order[_inner(w[order], low, high)]
    return float(np.average(values[kept], weights=w[kept]))


def _inner(w: Array, low: float, high: float) -> Array:
    """Which of rows in order, with these weights, are not wholly within such shares at the ends.

    >>> _inner(np.array([1.0, 1.0, 1.0, 1.0, 4.0]), 0.25, 0.25)
    array([False, False,  True,  True,  True])
    """
    total = w.sum()
    return np.asarray((np.cumsum(w) > low * total) & (np.cumsum(w[::-1])[::-1] > high * total))


def _worst_mean(loss: Array, w: Array, share: float) -> float:
    """The mean of the largest losses that have such a share of the weight; the last of them counts
    in part."""
    order = np.argsort(-loss, kind="stable")
    upto = np.minimum(np.cumsum(w[order]), share * w.sum())
    return float(np.average(loss[order], weights=np.diff(upto, prepend=0.0)))


def row_losses(p: SearchProblem, f: ModelCandidate, repeats: int = 1) -> Array | None:
    """Of every tested row with weight: squared or absolute error as the metric has it, of classes
    -log p of the right one; None where its predictions were not kept. Over several repeats of the
    folds the mean: they are of the same rows, and no more rows."""
    told = [out for _, out in f.repeats[:repeats]] or [f.predicted]
    kept, where = [out for out in told if out is not None], _where(p)
    if len(kept) < len(told):
        return None
    return np.asarray(
        np.mean([losses_of(p.metric, p.rows.y[where], out[where]) for out in kept], axis=0)
    )


def losses_of(metric: Metric, y: Array, out: Array) -> Array:
    """Of every row, of numbers or of probabilities (n, K)."""
    if out.ndim == 1:
        return np.abs(y - out) if metric.name == "mae" else np.square(y - out)
    return -np.log(np.maximum(out[np.arange(len(y)), y], LEAST_PROBABILITY))


def _where(p: SearchProblem) -> Array:
    """Rows that are tested and count."""
    where = folds_of(p).tested()
    some = where[p.rows.weights()[where] > 0]
    return some if len(some) else where


def row_weights(p: SearchProblem) -> Array:
    """Of the rows of `row_losses`."""
    w = p.rows.weights()[_where(p)]
    return w if w.any() else np.ones(len(w))


def row_groups(p: SearchProblem) -> Array | None:
    """Of the same rows."""
    return None if p.rows.group is None else p.rows.group[_where(p)]


def _gain(p: SearchProblem, score: Score) -> float:
    return p.metric.gain(score.value) if np.isfinite(score.value) else -np.inf


def _gap(p: SearchProblem, f: ModelCandidate, best: ModelCandidate) -> float:
    mine, other = (_gain(p, score) for score in paired_scores(f, best))
    gap = other - mine
    return gap if np.isfinite(gap) or mine > other else np.inf


def _error(p: SearchProblem, f: ModelCandidate, best: ModelCandidate) -> float:
    if f is best:
        return 0.0
    groups = None if p.rows.group is None else p.rows.group[folds_of(p).tested()]
    return difference_error(*paired_scores(f, best), groups)


def mean_score(scores: Sequence[Score]) -> Score:
    """Of repeated folds of the same rows."""
    first = scores[0]
    return Score(
        float(np.mean([s.value for s in scores])),
        np.mean([s.influence for s in scores], axis=0),
        first.proportion,
        first.count,
        first.low,
        first.high,
    )
