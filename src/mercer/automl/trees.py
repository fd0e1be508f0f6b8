"""Gradient-boosted trees as scikit-learn grows them by default, given categories as codes: the
rival that a table deserves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from mercer.automl.budget import Clock
from mercer.automl.predictors import all_classes, in_blocks
from mercer.automl.rows import TableRows
from mercer.inputs import Array
from mercer.ops.tiles import cuts

PROBE_ROWS = 5_000
MIN_ROWS = 20_000
PROBE_SHARE = 0.2  # of the seconds, that the first look takes at most
MAX_CODES = 255
N_ROUNDS = 100  # scikit-learn's default
SECONDS_A_TREE = 1e-3  # 0.4 ms were measured for trees of 300 rows, and larger ones take more
FIRST_ROUNDS = 3  # rounds that are timed
LEARNING_RATE = 0.1  # scikit-learn's default
# rounds with which larger steps come to about what all rounds would; with time for fewer, steps
# stay as they are and it is said that rounds lack
MIN_ROUNDS = 34
SAFE_SHARE = 0.8  # of the rounds that the first ones promise: later trees are larger
# of the leaves where there are more than two classes: without it, leaves of a rare class run away
# (4,000 rows of covtype: accuracy 0.54 with 0, 0.76 with 1)
MULTICLASS_PENALTY = 1.0
MIN_SECONDS = 1.0  # what trees always get
SINGLE_THREAD_CELLS = (
    4_000_000  # cells, below which threads wait for each other longer than they work
)


@dataclass(frozen=True, eq=False)
class TreeColumns:
    """Treated columns for trees: the indicators of one category joined to one column of codes, all
    else as it is."""

    single: tuple[int, ...]
    blocks: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, origin: Sequence[int], kinds: Sequence[str], X: Array) -> TreeColumns:
        """A block is what the indicators of a category look like: several columns of two values
        each."""
        single: list[int] = []
        blocks: list[tuple[int, ...]] = []
        for j in range(len(kinds)):
            mine = [i for i, o in enumerate(origin) if o == j]
            hot = [i for i in mine if len(np.unique(X[:5000, i])) <= 2]
            joined = 2 < len(hot) <= MAX_CODES
            blocks += [tuple(hot)] * joined
            single += [i for i in mine if not (joined and i in hot)]
        return cls(tuple(single), tuple(blocks))

    @property
    def categorical(self) -> Array:
        return np.arange(len(self.single) + len(self.blocks)) >= len(self.single)

    def __call__(self, X: Array) -> Array:
        out = np.empty((len(X), len(self.single) + len(self.blocks)), np.float32)
        for s in cuts(len(X), 1 << 14):
            out[s, : len(self.single)] = X[s][:, list(self.single)]
            for j, block in enumerate(self.blocks):
                out[s, len(self.single) + j] = X[s][:, list(block)].argmax(1)
        return out


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A fitted ensemble; like the other predictors, numbers or probabilities."""

    estimator: Any
    design: TreeColumns
    n_classes: int
    rounds: int = N_ROUNDS  # fewer where time was up before trees were done
    low: float = -np.inf  # of numbers: 0 where none was negative, as for all others
    rate: float = LEARNING_RATE

    @property
    def starved(self) -> bool:
        """Whether fewer rounds than larger steps make up for."""
        return self.rounds < round(LEARNING_RATE / self.rate * N_ROUNDS)

    @property
    def settings(self) -> str:
        """In words."""
        more = f", leaves penalised by {MULTICLASS_PENALTY:g}" if self.n_classes > 2 else ""
        if self.rate == LEARNING_RATE:
            return f"default settings{more}"
        return f"{self.rounds} rounds at a learning rate of {self.rate:.2g}, as time allowed{more}"

    def __call__(self, X: Array) -> Array:
        with few_threads(len(X) * X.shape[1]):
            if not self.n_classes:
                return np.maximum(
                    in_blocks(lambda rows: self.estimator.predict(self.design(rows)), X), self.low
                )
            P = in_blocks(lambda rows: self.estimator.predict_proba(self.design(rows)), X)
        return all_classes(self.estimator, P, self.n_classes)


def few_threads(cells: int) -> AbstractContextManager[object]:
    """One thread where there is little to do."""
    return threadpool_limits(1 if cells < SINGLE_THREAD_CELLS else None, user_api="openmp")


def least_seconds(n_classes: int) -> float:
    """What one tree a class and round takes, however few the rows.

    >>> least_seconds(2) < 1 < 10 < least_seconds(150)
    True
    """
    return 0.0 if n_classes <= 2 else SECONDS_A_TREE * N_ROUNDS * n_classes


def grow_trees(
    rows: TableRows, design: TreeColumns, n_classes: int, seed: int, clock: Clock, seconds: float
) -> tuple[BoostedTrees, int]:
    """The ensemble of all rows, or of as many as the seconds allow, and how many those are; where
    even so time is up, fewer rounds."""
    n = len(rows)
    if n > MIN_ROWS:
        probe = Clock(0)
        _, rounds, _ = _boost(
            rows.sample(PROBE_ROWS, seed), design, n_classes, seed, PROBE_SHARE * seconds
        )
        n = max(
            MIN_ROWS, min(n, int(PROBE_ROWS * seconds * rounds / N_ROUNDS / max(probe.spent, 1e-3)))
        )
    used = rows.sample(n, seed)
    clock.say(f"growing trees on {len(used):,} rows, for comparison")
    model, rounds, rate = _boost(used, design, n_classes, seed, max(seconds, MIN_SECONDS))
    low = 0.0 if not n_classes and used.y.min() >= 0 else -np.inf
    return BoostedTrees(model, design, n_classes, rounds, low, rate), len(used)


def _boost(
    rows: TableRows, design: TreeColumns, n_classes: int, seed: int, seconds: float
) -> tuple[Any, int, float]:
    """Some rounds first, which tell how many more there is time for: where those are fewer than
    all, larger steps make up for it. The ensemble, the rounds asked for in the end, and the rate.
    """
    kind = HistGradientBoostingClassifier if n_classes else HistGradientBoostingRegressor
    categorical, y = design.categorical, rows.y
    if n_classes and np.bincount(y).max() == len(y):
        raise ValueError("trees need rows of two classes.")
    settings: dict[str, Any] = {
        "categorical_features": categorical if categorical.any() else None,
        "random_state": seed,
        "warm_start": True,
        "l2_regularization": MULTICLASS_PENALTY if n_classes > 2 else 0.0,
    }
    model, rate, wanted = kind(max_iter=FIRST_ROUNDS, **settings), LEARNING_RATE, N_ROUNDS
    X, whole, rounds, added = design(rows.X), Clock(seconds), 0, FIRST_ROUNDS
    with few_threads(len(rows) * len(categorical)):
        while added > 0:
            watch, rounds = Clock(0), rounds + added
            model.set_params(max_iter=rounds).fit(X, y, sample_weight=rows.weight)
            able = whole.left() * added / max(watch.spent, 1e-6)
            if wanted == N_ROUNDS and rounds == FIRST_ROUNDS and MIN_ROUNDS < able < N_ROUNDS:
                wanted = max(MIN_ROUNDS, int(SAFE_SHARE * able))
                rate, added, rounds = LEARNING_RATE * N_ROUNDS / wanted, FIRST_ROUNDS, 0
                model = kind(max_iter=added, learning_rate=rate, **settings)
            else:
                added = int(min(wanted - rounds, 3 * rounds, able))
    return model, rounds, rate
