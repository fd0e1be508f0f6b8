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

MIN_ROWS = 60  # rows with fewer of which nothing is judged
ROWS_A_SECOND = 100  # rows that are judged for every second of the time given
MIN_SECONDS = 1.0  # with less time nothing is judged
WIDTHS = (0.35, 1.0)  # of the mean distance of two rows, and of the bandwidth of the data
PENALTIES = (1e-2, 1e-1, 1.0)
SAMPLE_ROWS = 10_000  # of the target, by which its ranks are told
OFFSET = 31  # of the hash that parts rows, which is no other


@dataclass(eq=False)
class KernelJudge:
    """The least mean squared error of kernel ridge regression on the half that it was not fitted to,
    over some kernels and penalties; each half is left out once."""

    most: int  # rows
    seconds: float = field(default=0.0, init=False)  # spent

    @classmethod
    def within(cls, time: float) -> KernelJudge | None:
        """By the seconds given for all: fewer rows where they are few, and none for very few."""
        return None if time < MIN_SECONDS else cls(int(min(ROWS_A_SECOND * time, 1 << 20)))

    def __call__(self, X: Array, Y: Array) -> float:
        X, Y = X[: self.most], Y[: self.most]
        if len(X) < MIN_ROWS:
            return 0.0  # nothing is better than what the rules say
        watch, half = Clock(0), np.arange(len(X)) % 2 == 0
        with single_blas():
            losses = [
                _losses(k, X[half], Y[half], X[~half], Y[~half])
                + _losses(k, X[~half], Y[~half], X[half], Y[half])
                for k in _kernels(X)
            ]
        self.seconds += watch.spent
        return float(np.min(losses)) / len(X)


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
    features, and none of the holdout is in any mean.
    """
    if not columns.level_means_:
        return
    y = train.y if len(train) <= SAMPLE_ROWS else train.sample(SAMPLE_ROWS).y
    scores = TargetScores.of(np.asarray(y), columns.target_.counts)
    for name, (first, encoder) in columns.level_means_.items():
        table = _fill(train, first, encoder, scores)
        for s in cuts(len(held), BLOCK_ROWS):
            at = held.X[s, first].astype(np.int64)
            held.X[s, first : first + table.shape[1]] = table[at]
        columns.with_level_means(name, table)


def _fill(rows: TableRows, first: int, encoder: LevelMeansEncoder, scores: TargetScores) -> Array:
    """The means of all rows, standardised as those that training rows get."""
    c = len(encoder.outputs)
    sums = LevelSums(encoder.n_levels, c)
    for s in cuts(len(rows), BLOCK_ROWS):
        weight = None if rows.weight is None else rows.weight[s]
        sums.add(*_placed(rows, s, first), scores(rows.y[s]), weight)
    parts, whole = sums.means()
    counts = sums.counts.sum(0)
    mean = counts @ whole / max(float(counts.sum()), 1e-300)
    std = np.sqrt(counts @ (whole - mean) ** 2 / max(float(counts.sum()), 1e-300))
    std = np.where(std > 0, std, 1.0)
    for s in cuts(len(rows), BLOCK_ROWS):
        level, part = _placed(rows, s, first)
        rows.X[s, first : first + c] = (parts[part, level] - mean) / std
    return np.asarray((whole - mean) / std)


def _placed(rows: TableRows, s: slice, first: int) -> tuple[Array, Array]:
    """The levels and the parts of these rows."""
    key = rows.row_id if rows.group is None else rows.group
    part = (hashes(key[s], OFFSET) % np.uint64(N_FOLDS)).astype(np.int64)
    return rows.X[s, first].astype(np.int64), part
