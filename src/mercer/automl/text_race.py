"""The race of kinds of n-grams on training rows that are left out, and the scores of the winner,
each row's by a model that was not fitted to its part of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from mercer.automl.budget import Clock
from mercer.automl.rows import hashes, least_hashed
from mercer.automl.sequence_kinds import sequence_kinds
from mercer.automl.sequence_places import telling_place
from mercer.automl.text_kinds import (
    LinearPath,
    TextKind,
    held_out_score,
    n_bits,
    text_kinds,
    vectorised,
)
from mercer.automl.text_names import Strong, strong_columns
from mercer.inputs import Array
from mercer.ops.threads import parallel_map
from mercer.tables.arrow import Column, pa, pc
from mercer.tables.levels import N_FOLDS
from mercer.tables.options import time_edges
from mercer.tables.sequences import SequenceWords
from mercer.tables.texts import TextScores

PENALTIES = (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
START = 4  # of them
CLEAR = 5e-4  # of the score: a gain below it is chance
RACED_PARTS = 2  # that are left out, each in turn
RACE_SHARE = 0.35  # of the time
BYTES_A_SECOND = 1e5  # of the time: documents that are raced, at most these bytes
RACED_BYTES = 4e6
MORE = 4.0  # times as many for the two best, where they are as close
CLOSE = 0.02
# where they do not meet: words by ratios gain more by documents than tf-idf does (reviews of films,
# areas under the curve of 3,000: 0.943 both; of 12,000: 0.964 and 0.961)
EVEN = 0.003
MANY_MORE = 3.0  # times the documents that were raced
FIT_FACTOR = (
    4.0  # seconds of the fits of all parts, by those of the parts that are raced, with more rounds
)
MIN_RACED = 2_000  # documents
MEMORY_SHARE = 0.5
OFFSET = 47  # of the hash that parts documents, which is no other
MAX_COMPONENT = (
    0.5  # of the rows: more that hang together by groups and documents are parted by groups
)


@dataclass(frozen=True, eq=False)
class TextTask:
    """What documents are to tell: Y (n, c), +-1 for classes or numbers, weights, and the part of
    every row; parts that are `ordered` by time are predicted from those before them."""

    Y: Array
    part: Array
    classes: bool
    weight: Array | None = None
    ordered: bool = False

    def take(self, i: Array) -> TextTask:
        weight = None if self.weight is None else self.weight[i]
        return replace(self, Y=self.Y[i], part=self.part[i], weight=weight)

    def split(self, k: int) -> tuple[Array, Array]:
        """The rows to fit and the rows of part k."""
        before = self.part < k if self.ordered else self.part != k
        return np.flatnonzero(before), np.flatnonzero(self.part == k)

    def splits(self, some: Array | None = None) -> list[tuple[Array, Array]]:
        """Of all parts that have both; with `some` only these rows are to be fitted."""
        every = [self.split(k) for k in range(int(self.part.max()) + 1)]
        if some is not None:
            every = [(np.intersect1d(i, some, assume_unique=True), j) for i, j in every]
        return [(i, j) for i, j in every if len(i) and len(j)]


def parts_of(
    key: Array, y: Array, group: Array | None = None, time: Array | None = None
) -> tuple[Array, bool]:
    """The part of every row, and whether parts are in order of time. Else equal documents (`key` is
    their hash) and groups are in one part, and classes, the whole numbers y, are dealt evenly.

    >>> parts_of(np.arange(6), np.zeros(6), time=np.array([1.0, 1, 2, 3, 4, 5]))
    (array([0, 0, 1, 2, 3, 3]), True)
    """
    if time is not None and len(edges := time_edges(time)):
        return np.searchsorted(edges, time, side="right"), True
    unit = np.unique(key, return_inverse=True)[1] if group is None else _joined(key, group)
    _, first, at = np.unique(unit, return_index=True, return_inverse=True)
    code = y[first] if y.dtype.kind in "iu" else np.zeros(len(first), np.int64)
    part = np.empty(len(first), np.int64)
    part[np.lexsort((hashes(first, OFFSET), code))] = np.arange(len(first)) % N_FOLDS
    return part[at], False


def _joined(key: Array, group: Array) -> Array:
    """A number for all rows that hang together by documents or groups; by groups alone where most
    would."""
    k, g = (np.unique(v, return_inverse=True)[1] for v in (key, group))
    n = int(k.max()) + 1
    edges = sp.coo_array((np.ones(len(k)), (k, n + g)), shape=(n + int(g.max()) + 1,) * 2)
    found = connected_components(edges, directed=False)[1][n + g]
    return found if np.bincount(found).max() <= MAX_COMPONENT * len(found) else g


@dataclass(frozen=True)
class Tried:
    """A kind with the best of its penalties: how well it did on rows left out, and what the fits of
    all parts would take, by byte of documents."""

    kind: TextKind
    at: int  # among the penalties
    score: float
    seconds_a_byte: float


@dataclass(eq=False)
class TextRace:
    """What was tried on some documents, what of it on more of them, and what was not."""

    tried: list[Tried] = field(default_factory=list)
    final: list[Tried] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    few: bool = False  # whether there are many more documents than were raced

    @property
    def winner(self) -> Tried:
        """The best; of those that are even on few documents the one that gains most by more."""
        best = max(self.final or self.tried, key=lambda t: t.score)
        even = [t for t in self.tried if t.kind.ratio and t.score > best.score - EVEN]
        return even[0] if even and self.few and not self.final else best


@dataclass(frozen=True)
class TextBudget:
    """What a column of texts may take: seconds, memory, and coefficients with as many other
    columns; `two` says that there are two classes."""

    seconds: float
    memory: float
    two: bool
    n_columns: int = 1


def run_race(cells: Column, task: TextTask, may: TextBudget) -> TextRace:
    """Each kind on some of the documents, with the penalty that is best for it; as many as there is
    time and memory for, the first in any case. The two best meet again on more documents where
    there are some, and they are close."""
    clock, later, n_bytes = Clock(RACE_SHARE * may.seconds), Clock(may.seconds), float(cells.nbytes)
    bits = n_bits(n_bytes, task.Y.shape[1] * may.n_columns, may.memory)
    race, rate = (
        TextRace(),
        np.inf,
    )  # seconds of a kind by what it takes of memory: the least so far
    few, mine = _some(cells, task, min(BYTES_A_SECOND * may.seconds, RACED_BYTES))
    telling = partial(telling_place, few, mine.Y, mine.weight)
    kinds = sequence_kinds(cells, task.Y.shape[1] * may.n_columns, telling)
    for kind in kinds or text_kinds(n_bytes, len(cells), bits, may.two):
        if kind.bytes_a_byte * n_bytes > MEMORY_SHARE * may.memory and race.tried:
            race.skipped.append((kind.name, "memory"))
        elif race.tried and clock.left() < rate * kind.bytes_a_byte:
            race.skipped.append((kind.name, "time"))
        else:
            watch = Clock(0)
            race.tried.append(_run(kind, few, mine, clock))
            rate = min(rate, watch.spent / kind.bytes_a_byte)
    race.few = len(cells) > MANY_MORE * len(few)
    best = sorted(race.tried, key=lambda t: -t.score)[:2]
    close = len(best) == 2 and best[0].score - best[1].score < CLOSE
    more, whole = _some(cells, task, min(MORE * BYTES_A_SECOND * may.seconds, MORE * RACED_BYTES))
    cost = sum(t.seconds_a_byte for t in best) * more.nbytes / 2
    if close and len(more) > 1.5 * len(few) and cost < later.left() / 2:
        race.final = [_run(t.kind, more, whole, later, t.at) for t in best]
    return race


def _some(cells: Column, task: TextTask, most: float) -> tuple[Column, TextTask]:
    """Documents in so many bytes, by a hash of their places."""
    order = np.argsort(hashes(np.arange(len(cells)), OFFSET), kind="stable")
    sizes = pc.binary_length(cells).to_numpy().astype(np.float64)
    count = int(np.searchsorted(np.cumsum(sizes[order]), most, side="right"))
    some = np.sort(order[: max(count, MIN_RACED)])
    return cells.take(pa.array(some)), task.take(some)


def _run(kind: TextKind, cells: Column, task: TextTask, clock: Clock, start: int = START) -> Tried:
    """One kind, from a penalty on to the better side."""
    watch = Clock(0)
    X = vectorised(kind, cells).X
    vectors, splits = watch.spent, task.splits()[-RACED_PARTS:]
    trials = parallel_map(lambda split: _Trial(X, task, kind, split), splits)

    def score(at: int) -> float:
        found = parallel_map(lambda t: t.score(PENALTIES[at]), trials)
        return float(np.mean(found)) if found else 0.0  # all rows hang together: none is left out

    best, found = start, score(start)
    seconds = vectors + FIT_FACTOR * (watch.spent - vectors)
    for step in (1, -1):
        while 0 <= best + step < len(PENALTIES) and clock.left() > 0:
            if (next_ := score(best + step)) <= found + CLEAR:
                break
            best, found = best + step, next_
        if best != start:
            break
    return Tried(kind, best, found, seconds / max(cells.nbytes, 1))


class _Trial:
    """A path of penalties on some rows, judged on others."""

    def __init__(
        self, X: sp.csr_matrix, task: TextTask, kind: TextKind, split: tuple[Array, Array]
    ) -> None:
        i, j = split
        self.path, self.X, self.Y, self.classes = (
            _path(X, task, i, kind),
            X[j],
            task.Y[j],
            task.classes,
        )

    def score(self, penalty: float) -> float:
        return held_out_score(self.path.at(penalty)(self.X), self.Y, self.classes)


def _path(X: sp.csr_matrix, task: TextTask, i: Array, kind: TextKind) -> LinearPath:
    weight = None if task.weight is None else task.weight[i]
    return LinearPath(X[i], task.Y[i], weight, kind.ratio, task.classes)


def affordable(race: TextRace, cells: Column, seconds: float) -> int:
    """How many of the documents the models of all parts may be fitted to."""
    need = race.winner.seconds_a_byte * cells.nbytes
    share = min(1.0, max(seconds, 0.0) / need) if need > 0 else 1.0
    return max(min(MIN_RACED, len(cells)), int(share * len(cells)))


@dataclass(frozen=True, eq=False)
class TextFit:
    """Scores of documents (n, c), the model for new ones, the race, and how well the scores of rows
    do that the models were not fitted to."""

    scores: Array
    model: TextScores
    race: TextRace
    quality: float
    n_fitted: int
    classes: bool
    strong: tuple[Strong, ...]  # columns


def fit_text(cells: Column, task: TextTask, may: TextBudget) -> TextFit:
    """The race, then models of the winner, of as many documents as there is time for."""
    clock = Clock(may.seconds)
    race = run_race(cells, task, may)
    n = affordable(race, cells, clock.left())
    return cross_fitted_scores(cells, task, race, least_hashed(np.arange(len(cells)), n, OFFSET))


def cross_fitted_scores(
    cells: Column, task: TextTask, race: TextRace, some: Array | None = None
) -> TextFit:
    """The scores of every row (n, c) by models that were not fitted to its part, those of the model
    of all parts for new ones, and how well the former do; mean 0 and deviation 1.

    Where only `some` rows are fitted to, the others have scores of the same models: a copy of one
    of them may have been fitted to, and is in its part. Each part's scores are to mean 0: the
    intercept of a model is the higher, the fewer rows of a class the part has that was left out.
    In order of time they stay as they are, and rows of the first part, of which nothing was
    before, have the mean.
    """
    kind, penalty = race.winner.kind, PENALTIES[race.winner.at]
    rows, splits = vectorised(kind, cells), task.splits(some)
    X = rows.X
    every = [*(i for i, _ in splits), np.arange(len(cells)) if some is None else some]
    fitted = parallel_map(lambda i: _path(X, task, i, kind).at(penalty), every)
    out = np.full(task.Y.shape, np.nan)
    for (_, j), linear in zip(splits, fitted, strict=False):
        out[j] = linear(X[j])
    known = np.flatnonzero(~np.isnan(out[:, 0]))
    quality = (
        held_out_score(out[known], task.Y[known], task.classes) if len(known) else race.winner.score
    )
    raw = out if len(known) else fitted[-1](X)
    mean, std = np.nanmean(raw, axis=0), np.nanstd(raw, axis=0)
    std = np.where(std > 1e-12, std, 1.0)
    for _, j in splits if not task.ordered else []:
        out[j] -= out[j].mean(0) - mean
    scores, whole = np.nan_to_num((out - mean) / std), fitted[-1].standardised(mean, std)
    # words say more to a reader than letters
    first = rows.columns < rows.lifts[0].n_features_out_
    told = first | isinstance(rows.lifts[0], SequenceWords)
    strong = strong_columns(whole.rows(X), whole.coef * told[:, None], rows.columns)
    model = TextScores(rows.lifts, rows.spread(whole))
    return TextFit(scores, model, race, quality, len(every[-1]), task.classes, tuple(strong))
