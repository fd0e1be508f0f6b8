"""Folds for cross-validation: rows in blocks, and for each fold the blocks that train and the block that tests."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.product.rows import Rows, hashes

FOLDS = 5


@dataclass(frozen=True, eq=False)
class Folds:
    """The block of every row, and (training blocks, test block) for every fold."""

    block: Array
    plan: tuple[tuple[tuple[int, ...], int], ...]

    @property
    def n_blocks(self) -> int:
        return int(self.block.max()) + 1

    def split(self, fold: int) -> tuple[Array, Array]:
        """The positions of a fold's training and test rows."""
        train, test = self.plan[fold]
        return np.flatnonzero(np.isin(self.block, train)), np.flatnonzero(self.block == test)

    def tested(self) -> Array:
        """The positions of the rows that some fold tests, in order."""
        return np.flatnonzero(np.isin(self.block, [test for _, test in self.plan]))


def folds(rows: Rows, k: int = FOLDS, seed: int = 0) -> Folds:
    """By time: each block is predicted from those before it. Else blocks at random, groups whole, classes (integers) spread evenly.

    Rows of one time or one group, as a small sample may have, are split at random.

    >>> f = folds(Rows(np.zeros((6, 1)), np.zeros(6), np.arange(6), time=np.arange(6.0)), k=2)
    >>> f.block, f.plan
    (array([0, 0, 1, 1, 2, 2]), (((0,), 1), ((0, 1), 2)))
    """
    k = max(2, min(k, len(rows) // 2))
    if rows.time is not None and not _alike(rows.time):
        block = _by_time(rows.time, k + 1)
        last = int(block.max())
        return Folds(block, tuple((tuple(range(j)), j) for j in range(1, last + 1)))
    block = _at_random(rows, k, seed) if rows.unit is None or _alike(rows.unit) else _by_unit(rows.unit, rows.y, k, seed)
    present = int(block.max()) + 1
    return Folds(block, tuple((tuple(i for i in range(present) if i != j), j) for j in range(present)))


def _alike(values: Array) -> bool:
    return bool(np.all(values == values[:1]))


def _at_random(rows: Rows, k: int, seed: int) -> Array:
    key = hashes(rows.number, seed + 1)
    return _dealt(rows.y, key, k) if rows.y.dtype.kind in "iu" else _even(key, k)


def _dealt(y: Array, key: Array, k: int) -> Array:
    """Each class dealt out to the blocks in turn, in the order of a hash: none has more than one row above another."""
    block = np.empty(len(key), np.int64)
    block[np.lexsort((key, y))] = np.arange(len(key)) % k
    return block


def _even(key: Array, k: int) -> Array:
    """Blocks of equal size, in the order of a hash."""
    block = np.empty(len(key), np.int64)
    block[np.argsort(key, kind="stable")] = np.arange(len(key)) * k // len(key)
    return block


def _by_time(time: Array, blocks: int) -> Array:
    """Blocks of about equal size in the order of time; equal times stay together."""
    edges, first = np.unique(np.quantile(time, np.arange(1, blocks) / blocks, method="higher")), time.min()
    edges = edges[edges > first] if (edges > first).any() else time[time > first].min(keepdims=True)
    return np.unique(np.searchsorted(edges, time, side="right"), return_inverse=True)[1]


def _by_unit(unit: Array, y: Array, k: int, seed: int) -> Array:
    """Whole groups, the largest first, into the block that has the least of what they hold: rows of each class, or rows."""
    groups, where, counts = np.unique(unit, return_inverse=True, return_counts=True)
    held = _by_class(where, y, len(groups))  # (groups, classes), as shares of each class
    block, full = np.empty(len(groups), np.int64), np.zeros((min(k, len(groups)), held.shape[1]))
    for g in np.lexsort((hashes(groups, seed + 1), -counts)):
        block[g] = int(np.argmin(full @ held[g]))  # the least growth of the sum of squares
        full[block[g]] += held[g]
    return block[where]


def _by_class(group: Array, y: Array, n_groups: int) -> Array:
    """How much of each class every group holds; of numbers there is one class."""
    codes = np.unique(y, return_inverse=True)[1] if y.dtype.kind in "iu" else np.zeros(len(y), np.int64)
    out = np.zeros((n_groups, int(codes.max()) + 1))
    np.add.at(out, (group, codes), 1.0)
    return out / out.sum(0)
