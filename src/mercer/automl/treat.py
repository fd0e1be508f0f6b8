"""What is a choice about the columns of a table, judged by kernel ridge regression on rows left out;
and the means of the target at the levels of a category, filled in from all training rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from mercer.automl.budget import Clock
from mercer.automl.rows import BLOCK_ROWS, TableRows, hashes
from mercer.inputs import Array
from mercer.kernels import Gaussian, Kernel, Laplace
from mercer.kernels.defaults import spread
from mercer.ops.threads import single_blas
from mercer.ops.tiles import cuts
from mercer.tables import Columns
from mercer.tables.levels import N_FOLDS, LevelMeansEncoder, LevelSums, TargetScores
from mercer.tables.options import Splits, earlier_means, time_edges

MIN_ROWS = 60  # rows with fewer of which nothing is judged
ROWS_A_SECOND = 100  # rows that are judged for every second of the time given
MIN_SECONDS = 1.0  # with less time nothing is judged
WIDTHS = (0.35, 1.0)  # of the mean distance of two rows, and of the bandwidth of the data
PENALTIES = (1e-2, 1e-1, 1.0)
SAMPLE_ROWS = 10_000  # of the target, by which its ranks are told
OFFSET = 31  # of the hash that parts rows, which is no other


@dataclass(eq=False)
class KernelJudge:
    """The least mean squared error of kernel ridge regression on the rows that it was not fitted to,
    over some kernels and penalties: by the splits given, or each half left out once."""

    most: int  # rows
    seconds: float = field(default=0.0, init=False)  # spent

    @classmethod
    def within(cls, time: float) -> KernelJudge | None:
        """By the seconds given for all: fewer rows where they are few, and none for very few."""
        return None if time < MIN_SECONDS else cls(int(min(ROWS_A_SECOND * time, 1 << 20)))

    def __call__(self, X: Array, Y: Array, splits: Splits = ()) -> float:
        X, Y = X[: self.most], Y[: self.most]
        if len(X) < MIN_ROWS:
            return 0.0  # nothing is better than what the rules say
        watch, cut = Clock(0), _within(splits, len(X)) or _halves(len(X))
        with single_blas():
            losses = [
                np.sum([_losses(k, X[i], Y[i], X[j], Y[j]) for i, j in cut], axis=0)
                for k in _kernels(X)
            ]
        self.seconds += watch.spent
        return float(np.min(losses)) / sum(len(j) for _, j in cut)


def _halves(n: int) -> Splits:
    """Every other row, each half left out once."""
    even, odd = np.arange(0, n, 2), np.arange(1, n, 2)
    return [(even, odd), (odd, even)]


def _within(splits: Splits, n: int) -> Splits:
    """Of the first n rows, where both sides have some."""
    cut = [(i[i < n], j[j < n]) for i, j in splits]
    return [(i, j) for i, j in cut if len(i) and len(j)]


def _kernels(X: Array) -> list[Kernel]:
    """In the 1-norm, which most tables want, and a smooth one."""
    few = X[:400].astype(np.float64)
    apart = float(np.abs(few - np.roll(few, 1, axis=0)).sum(1).mean()) or 1.0
    wide = math.sqrt(spread(few) / 2) or 1.0
    return [*(Laplace(apart * f, norm=1) for f in WIDTHS), *(Gaussian(wide * f) for f in WIDTHS)]


def _losses(kernel: Kernel, X: Array, Y: Array, Z: Array, T: Array) -> Array:
    """For every penalty the sum of squared errors on the other half."""
    K, across, mean = np.asarray(kernel(X), np.float64), np.asarray(kernel(Z, X)), Y.mean(0)
    out = []
    for alpha in PENALTIES:
        try:
            factor = cho_factor(K + alpha * np.eye(len(K)), lower=True, check_finite=False)
        except LinAlgError:
            out.append(np.inf)
            continue
        errors = across @ cho_solve(factor, Y - mean, check_finite=False) + mean - T
        out.append(float(np.square(errors).sum()))
    return np.array(out)


def fill_level_means(columns: Columns, train: TableRows, held: TableRows) -> None:
    """In both sides of rows, in place, the means of the target where so far the positions of levels
    stand: of a training row those of the rows in other parts, of a held-out one those of all; and
    in the columns, for rows to come.

    A part is a fifth of the rows, by a hash, groups whole. So no row's own target is among its
    features, and none of the holdout is in any mean. Where rows have times, a part is a fifth of
    them in order of time, and has the means of the parts before it: none of its own time or later.
    """
    if not columns.level_means_:
        return
    few = train.sample(SAMPLE_ROWS)
    scores, edges = TargetScores.of(np.asarray(few.y), columns.target_.counts), _edges(train, few)
    for name, (first, encoder) in columns.level_means_.items():
        table = _fill(train, first, encoder, scores, edges)
        for s in cuts(len(held), BLOCK_ROWS):
            at = held.X[s, first].astype(np.int64)
            held.X[s, first : first + table.shape[1]] = table[at]
        columns.with_level_means(name, table)


def _edges(rows: TableRows, few: TableRows) -> Array:
    """Where blocks of time begin, by some of the rows; none where there are no times, or one."""
    if rows.time is None or few.time is None:
        return np.zeros(0)
    edges, last = time_edges(few.time), rows.time.max()
    return edges if len(edges) or last == rows.time.min() else np.array([last])


def _fill(
    rows: TableRows, first: int, encoder: LevelMeansEncoder, scores: TargetScores, edges: Array
) -> Array:
    """The means of all rows, standardised as those that training rows get."""
    c = len(encoder.outputs)
    own = 0 if len(edges) else encoder.values.n_features  # means of earlier rows give nothing away
    sums = LevelSums(encoder.n_levels, c, own)
    for s in cuts(len(rows), BLOCK_ROWS):
        weight = None if rows.weight is None else rows.weight[s]
        sums.add(*_placed(rows, s, first, edges), scores(rows.y[s]), weight)
    parts, whole = sums.means()
    parts = earlier_means(sums) if len(edges) else parts
    counts = sums.counts.sum(0)
    mean = counts @ whole / max(float(counts.sum()), 1e-300)
    std = np.sqrt(counts @ (whole - mean) ** 2 / max(float(counts.sum()), 1e-300))
    std = np.where(std > 0, std, 1.0)
    for s in cuts(len(rows), BLOCK_ROWS):
        level, part = _placed(rows, s, first, edges)
        rows.X[s, first : first + c] = (parts[part, level] - mean) / std
    return np.asarray((whole - mean) / std)


def _placed(rows: TableRows, s: slice, first: int, edges: Array) -> tuple[Array, Array]:
    """The levels and the parts of these rows."""
    level = rows.X[s, first].astype(np.int64)
    if rows.time is not None and len(edges):
        return level, np.searchsorted(edges, rows.time[s], side="right")
    key = rows.row_id if rows.group is None else rows.group
    part = (hashes(key[s], OFFSET) % np.uint64(N_FOLDS)).astype(np.int64)
    return level, part
