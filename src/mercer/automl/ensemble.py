"""Means of two or three candidates, weighted by what they predict of rows that they were not fitted
to; only where that helps on rows that had no part in the weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mercer.automl.candidates import ModelCandidate, folds_of, score_of
from mercer.automl.choice import (
    best_candidate,
    choose_candidate,
    row_groups,
    row_losses,
    row_weights,
    stands_in,
    worse_by_rows,
)
from mercer.automl.metrics import difference_error
from mercer.automl.predictors import IdentityTarget
from mercer.automl.recipes import NAMES
from mercer.automl.search import SearchProblem
from mercer.inputs import Array

MAX_MEMBERS = 3
STEPS = 20  # a weight is a multiple of 1 / 20
MIN_WEIGHT = 0.1
ROUNDING = 1e-9
MIN_ROWS = 100  # rows with fewer of which weights are not known


def blended(weights: Sequence[float], parts: Sequence[Array]) -> Array:
    """The weighted mean of predictions."""
    out = weights[0] * parts[0]
    for w, part in zip(weights[1:], parts[1:], strict=True):
        out = out + w * part
    return np.asarray(out)


def best_weights(
    parts: Sequence[Array], y: Array, w: Array, most: int, first: int | None = None
) -> tuple[float, ...]:
    """The weights of the least squared error (of classes, of their indicators): from the best
    part on, or the `first`, as long as another helps, each time with the weight that helps most.

    >>> y = np.array([1.0, 2.0, 3.0])
    >>> best_weights([y + [1, -1, 1], y - [1, -1, 1]], y, np.ones(3), 2)
    (0.5, 0.5)
    """
    losses = [_loss(part, y, w) for part in parts]
    first = int(np.argmin(losses)) if first is None else first
    weights = np.eye(len(parts))[first]
    out, least = parts[first], losses[first]
    while np.sum(weights > 0) < most:
        options = [
            (_loss((1 - s) * out + s * part, y, w), s, k)
            for k, part in enumerate(parts)
            if weights[k] == 0
            for s in np.arange(1, STEPS) / STEPS
        ]
        loss, share, k = min(options, default=(np.inf, 0.0, 0))
        if not loss < least:
            break
        weights, out, least = (
            (1 - share) * weights + share * np.eye(len(parts))[k],
            (1 - share) * out + share * parts[k],
            loss,
        )
    weights = np.where(weights < MIN_WEIGHT - ROUNDING, 0.0, weights)
    return tuple((weights / weights.sum()).tolist())


def _loss(part: Array, y: Array, w: Array) -> float:
    """Squared error; of classes, of indicators."""
    if part.ndim == 1:
        return float(w @ np.square(part - y))
    right = part[np.arange(len(y)), y]
    return float(w @ (np.square(part).sum(1) - 2 * right))


def chosen_or_mean(
    p: SearchProblem, found: list[ModelCandidate], trees: ModelCandidate | None = None
) -> tuple[list[ModelCandidate], ModelCandidate]:
    """One of them, or a mean where that is better, and where the one is the best, or trees are
    better than it by more than a simple model may be behind; with all there are then."""
    chosen = choose_candidate(p, found)
    beaten = trees is not None and not stands_in(p, chosen, trees)
    if chosen is best_candidate(p, found) or beaten:
        mean = ensemble_candidate(p, found, chosen, trees)
        return ([*found, mean], mean) if mean is not None else (found, chosen)
    return found, chosen


def ensemble_candidate(
    p: SearchProblem,
    found: Sequence[ModelCandidate],
    best: ModelCandidate,
    trees: ModelCandidate | None = None,
) -> ModelCandidate | None:
    """The mean that is better than the best candidate on rows left out, or None; trees may be one
    of those that it is of, never all.

    Weights are learnt on all folds but one and judged on it; those of the mean itself on all.
    """
    able = [f for f in found if f.predicted is not None and f.kind != "constant"]
    where = folds_of(p).tested()
    if best not in able or len(where) < MIN_ROWS:
        return None
    able += [trees] if trees is not None else []
    y, w = p.rows.y[where], p.rows.weights()[where]
    parts = [f.predicted[where] for f in able if f.predicted is not None]
    if len(able) < 2 or not w.any() or not all(np.isfinite(part).all() for part in parts):
        return None
    rule = MeanRule(tuple(f.kind for f in able), able.index(best))
    out = np.full_like(np.asarray(best.predicted, np.float64), np.nan)
    out[where] = cross_weighted(rule, parts, y, w, folds_of(p).block[where])
    members = rule.members(rule(parts, y, w))
    if len(members) < 2:
        return None
    seconds = sum(f.seconds for f in able if f.kind in dict(members))
    made = ModelCandidate(
        "ensemble", None, 0, 0.0, IdentityTarget(), score_of(p, out), seconds, out, members=members
    )
    return made if _helps(p, made, best) else None


@dataclass(frozen=True)
class MeanRule:
    """How parts of these kinds are weighted: `best_weights`, and where that leaves trees alone, the
    weights of trees and of one of the others, with which the loss is least."""

    kinds: tuple[str, ...]
    best: int  # of those that are no trees; of equal ones it is taken

    def __call__(self, parts: Sequence[Array], y: Array, w: Array) -> tuple[float, ...]:
        weights = best_weights(parts, y, w, MAX_MEMBERS)
        if {kind for kind, _ in self.members(weights)} != {"trees"}:
            return weights
        others = [k for k, kind in enumerate(self.kinds) if kind != "trees"]
        others.sort(key=lambda k: k != self.best)
        pairs = [self._with_trees(k, parts, y, w) for k in others]
        return min(pairs, key=lambda pair: _loss(blended(pair, parts), y, w))

    def _with_trees(
        self, other: int, parts: Sequence[Array], y: Array, w: Array
    ) -> tuple[float, ...]:
        """The weights of one and trees."""
        two = [other, self.kinds.index("trees")]
        pair = best_weights([parts[k] for k in two], y, w, 2, first=0)
        found = dict(
            zip(two, (max(pair[0], MIN_WEIGHT), min(pair[1], 1 - MIN_WEIGHT)), strict=True)
        )
        return tuple(found.get(k, 0.0) for k in range(len(parts)))

    def members(self, weights: Sequence[float]) -> tuple[tuple[str, float], ...]:
        """Those with some weight."""
        return tuple((kind, v) for kind, v in zip(self.kinds, weights, strict=True) if v)


def cross_weighted(
    rule: MeanRule, parts: Sequence[Array], y: Array, w: Array, fold: Array
) -> Array:
    """Each fold's mean with the weights of the others."""
    out = np.empty_like(np.asarray(parts[0], np.float64))
    for k in np.unique(fold):
        mine, rest = fold == k, fold != k
        rest = rest if rest.any() else mine
        weights = rule([part[rest] for part in parts], y[rest], w[rest])
        out[mine] = blended(weights, [part[mine] for part in parts])
    return out


def _helps(p: SearchProblem, made: ModelCandidate, best: ModelCandidate) -> bool:
    """Better by more than a standard error of the difference, or better and, row by row, surely
    so; both on the folds of the mean, as the score of the best may be one over repeats."""
    rival = score_of(p, best.predicted)
    gap = p.metric.gain(made.score.value) - p.metric.gain(rival.value)
    where = folds_of(p).tested()
    groups = None if p.rows.group is None else p.rows.group[where]
    if not np.isfinite(gap) or gap <= 0:
        return False
    if gap > difference_error(made.score, rival, groups):
        return True
    mine, other = row_losses(p, made), row_losses(p, best)
    if mine is None or other is None:
        return False
    return worse_by_rows(other, mine, row_groups(p), row_weights(p))


def described(members: Sequence[tuple[str, float]]) -> str:
    """In words.

    >>> described((("machine", 0.6), ("linear", 0.4)))
    'the mean of kernel machine (0.60) and linear (0.40), weighted by held-out predictions'
    """
    parts = [f"{NAMES[kind].lower()} ({weight:.2f})" for kind, weight in members]
    joined = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"the mean of {joined}, weighted by held-out predictions"
