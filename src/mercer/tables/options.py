"""What is a choice about columns, settled by validation on training rows: numbers by their size or
their ranks, whole numbers as numbers or codes, many levels with the mean of the target or without.

One choice holds for all columns of its kind: it is judged on some hundreds of rows, which would not
tell a choice for every column from chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from mercer.inputs import Array
from mercer.tables.encoders import CategoryEncoder, Encoder, NumberEncoder
from mercer.tables.levels import (
    MAX_MEANS,
    N_FOLDS,
    CodedNumberEncoder,
    LevelMeansEncoder,
    LevelSums,
    TargetScores,
    cross_fitted,
)
from mercer.tables.scale import RankNormalizer
from mercer.tables.sketch import RowSample
from mercer.tables.target import Target
from mercer.tables.treatment import Choice

Splits = Sequence[tuple[Array, Array]]  # positions of rows to fit and of rows left out
Choices = dict[str, Choice]

JUDGED_ROWS = 1_600
CLEAR = 0.01  # of the loss: less is chance
MAX_JUDGED_FEATURES = 2_000  # columns beyond which nothing is judged
MANY_LEVELS = 12  # levels from which on the mean of the target at each is tried
JUDGED_CLASSES = 12  # whose indicators are scores


class Judge(Protocol):
    """The loss on rows left out, of features and of scores; of these splits where they are given,
    which is where rows have groups or times."""

    def __call__(self, X: Array, Y: Array, splits: Splits = ..., /) -> float: ...


def settle(
    found: Choices,
    sample: RowSample,
    target: Target,
    judge: Judge | None,
    group: Array | None = None,
    time: Array | None = None,
) -> Choices:
    """Each kind of choice in turn, with what won before it: the first option, unless the best of
    the others has a loss that is clearly less. Rows of a group are left out together, and those of
    a later time by what is known before."""
    if judge is None or not _judgeable(found):
        return found
    judged = _Judged(sample, target, judge, group, time)
    best, least = found, np.nan
    for options in (_as_numbers, _by_ranks, _with_means):
        able = options(best, sample, target)
        known = np.isfinite(least)
        losses = [least if known and o is best else judged.loss(o) for o in able]
        if able:
            at = int(np.argmin(losses))
            at = at if losses[at] < (1 - CLEAR) * losses[0] else 0
            best, least = able[at], losses[at]
    return best


def _judgeable(found: Choices) -> bool:
    """Whether features are not too many."""
    sizes = [len(c.encoder.names(n)) for n, c in found.items() if c.encoder is not None]
    return 0 < sum(sizes) <= MAX_JUDGED_FEATURES


class _Judged:
    """The rows on which options are judged."""

    def __init__(
        self,
        sample: RowSample,
        target: Target,
        judge: Judge,
        group: Array | None,
        time: Array | None,
    ) -> None:
        y = target.read(sample.column(target.name))
        known = np.flatnonzero(~np.isnan(y) & (y >= 0 if target.classes else np.isfinite(y)))
        self.rows, self.judge, self.sample = known[:JUDGED_ROWS], judge, sample
        self.y = y[self.rows].astype(np.int64) if target.classes else y[self.rows]
        few, many = (TargetScores.of(self.y, target.counts, k) for k in (MAX_MEANS, JUDGED_CLASSES))
        self.few, self.scores = few(self.y), many(self.y)
        group, time = (None if v is None else v[self.rows] for v in (group, time))
        self.part, self.splits, self.ordered = _parted(len(self.rows), group, time)

    def loss(self, choices: Choices) -> float:
        parts = [
            self._features(name, choice.encoder)
            for name, choice in choices.items()
            if choice.encoder is not None
        ]
        X = np.hstack(parts).astype(np.float32)
        return self.judge(X, self.scores, *([self.splits] if self.splits else []))

    def _features(self, name: str, encoder: Encoder) -> Array:
        values = encoder.read(self.sample.column(name))[0][self.rows]
        out = encoder.features(values)
        if isinstance(encoder, LevelMeansEncoder):
            means = self._means(encoder, encoder.positions(values))
            out[:, -means.shape[1] :] = (means - means.mean(0)) / (means.std(0) + 1e-9)
        return out

    def _means(self, encoder: LevelMeansEncoder, level: Array) -> Array:
        n_levels, own = encoder.n_levels, encoder.values.n_features
        if not self.ordered:
            return cross_fitted(level, self.part, self.few, n_levels, own)
        sums = LevelSums(n_levels, self.few.shape[1])
        sums.add(level, self.part, self.few)
        return np.asarray(earlier_means(sums)[self.part, level])


def _parted(n: int, group: Array | None, time: Array | None) -> tuple[Array, Splits, bool]:
    """The part of every row for means of levels, the splits by which options are judged, and whether
    parts are in order of time; no splits where any will do."""
    if time is not None:
        time = np.where(np.isnan(time), np.fmin.reduce(time, initial=0.0), time)
        edges, middle = time_edges(time), time_edges(time, 2)
        if len(edges) and len(middle):
            late = time >= middle[0]
            return (
                np.searchsorted(edges, time, side="right"),
                [(np.flatnonzero(~late), np.flatnonzero(late))],
                True,
            )
    if group is not None and len(np.unique(group)) > 1:
        at = np.unique(group, return_inverse=True)[1]
        one, other = (np.flatnonzero(at % 2 == k) for k in (0, 1))
        return at % N_FOLDS, [(one, other), (other, one)], False
    return np.arange(n) % N_FOLDS, [], False


def time_edges(time: Array, blocks: int = N_FOLDS) -> Array:
    """The times with which blocks of about equal size begin, but the first; none where all rows are
    of one time. Equal times are of one block.

    >>> time_edges(np.arange(10.0)), time_edges(np.array([3.0, 3, 3, 3, 8])), time_edges(np.ones(4))
    (array([2., 4., 6., 8.]), array([8.]), array([], dtype=float64))
    """
    if not len(time) or time.min() == time.max():
        return np.zeros(0)
    ranks = len(time) * np.arange(1, blocks) // blocks
    edges = np.unique(np.sort(time)[ranks])
    edges = edges[edges > time.min()]
    return edges if len(edges) else np.array([time[time > time.min()].min()])


def earlier_means(sums: LevelSums) -> Array:
    """For each part the means of the levels in the parts before it, (parts, levels, c); for the
    first, of which nothing was before, the mean over all rows.

    >>> sums = LevelSums(1, 1)
    >>> sums.add(np.zeros(3, int), np.arange(3), np.array([[0.0], [1.0], [5.0]]))
    >>> earlier_means(sums)[:4, 0, 0].round(2)
    array([2. , 0. , 0.5, 2. ])
    """
    whole, n = sums.means()[1], sums.counts.sum(0)
    out = []
    for k in range(len(sums.counts)):
        past = LevelSums(sums.n_levels, sums.n_outputs)
        past.sums[:k], past.counts[:k] = sums.sums[:k], sums.counts[:k]
        known = past.counts.any()
        mean = n @ whole / max(float(n.sum()), 1e-300)
        out.append(past.means()[1] if known else np.broadcast_to(mean, whole.shape))
    return np.stack(out)


def _as_numbers(found: Choices, sample: RowSample, target: Target) -> list[Choices]:
    """Whole numbers that act as codes: as both, which lacks nothing, as codes and as numbers."""
    coded = {name: c for name, c in found.items() if c.number is not None}
    if not coded:
        return []
    plain = {name: c.number for name, c in coded.items() if c.number is not None}
    both = {name: _both(c) for name, c in coded.items()}
    return [_replaced(found, both), found, _replaced(found, plain)]


def _both(choice: Choice) -> Choice:
    assert choice.number is not None
    number, codes = choice.number.encoder, choice.encoder
    assert isinstance(number, NumberEncoder)
    assert isinstance(codes, CategoryEncoder)
    k = codes.n_features
    action = f"{choice.number.action[:-1]}; and {k} of its values have a feature each."
    return replace(choice.number, action=action, encoder=CodedNumberEncoder(number, codes))


def _by_ranks(found: Choices, sample: RowSample, target: Target) -> list[Choices]:
    """Numbers by their size, and by their ranks."""
    ranked = {
        name: made
        for name, c in found.items()
        if c.encoder is not None and (made := _ranked(c, c.encoder, name, sample)) is not None
    }
    return [found, _replaced(found, ranked)] if ranked else []


def _ranked(choice: Choice, encoder: Encoder, name: str, sample: RowSample) -> Choice | None:
    number = encoder.number if isinstance(encoder, CodedNumberEncoder) else encoder
    if not isinstance(number, NumberEncoder):
        return None
    values = number.read(sample.column(name))[0][:, 0]
    values = values[~np.isnan(values)]
    if len(values) < 2 or values.min() == values.max():
        return None
    made = replace(number, scale=RankNormalizer.of(values))
    words = choice.action.replace(" after a signed log, since its tails are heavy", "").replace(
        "Standardised number", "Number by its rank, to a normal law", 1
    )
    both = (
        CodedNumberEncoder(made, encoder.codes) if isinstance(encoder, CodedNumberEncoder) else made
    )
    details = choice.details.split("; log(")[0]
    return replace(choice, action=words, details=details, encoder=both)


def _with_means(found: Choices, sample: RowSample, target: Target) -> list[Choices]:
    """Categories of many levels without the mean of the target at each, and with it."""
    codes = TargetScores.of(np.zeros(1), target.counts).codes
    outputs = tuple(target.classes[c] for c in codes) or ("target",)
    able = {
        name: _meant(c, c.encoder, outputs)
        for name, c in found.items()
        if isinstance(c.encoder, CategoryEncoder) and len(c.encoder.levels) >= MANY_LEVELS
    }
    return [found, _replaced(found, able)] if able else []


def _meant(choice: Choice, encoder: CategoryEncoder, outputs: tuple[str, ...]) -> Choice:
    what = "the target" if outputs == ("target",) else "the classes"
    action = f"{choice.action[:-1]}; the mean of {what} at each value counts too, while learning that of other rows."
    return replace(choice, action=action, encoder=LevelMeansEncoder(encoder, outputs))


def _replaced(found: Choices, others: Mapping[str, Choice]) -> Choices:
    return {name: others.get(name, choice) for name, choice in found.items()}
