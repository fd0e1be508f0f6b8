"""Splits: the holdout, which no treatment, choice or fit sees, and the folds of
cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.automl.frames import Table
from mercer.automl.rows import (
    BLOCK_ROWS,
    GrowingArray,
    TableRows,
    float_from_bits,
    hashes,
    nth_hash,
    nth_smallest,
    sortable_bits,
    uniform,
)
from mercer.inputs import Array
from mercer.ops.tiles import cuts
from mercer.tables import DataError
from mercer.tables.arrow import Batch, Column
from mercer.tables.sketch import hashes as hashes_of_text
from mercer.tables.sketch import missing_rows
from mercer.tables.values import text

Mask = Callable[[Batch, int], Array]
MAX_STRATIFIED_ROWS = (
    10_000  # rows, up to which a share is counted out; beyond, chance is near enough
)
# rows for each value of the target, from which on values are classes as far as a split is concerned
ROWS_A_CLASS = 5
N_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Holdout:
    """mask(batch, number of its first row) tells which rows are held out; `rule` says it in
    words."""

    rule: str
    mask: Mask
    test: Table | None = None


def by_file(test: Table) -> Holdout:
    """The rows of a second file."""
    names = ", ".join(path.name for path in test.paths) or "the test table"
    return Holdout(
        f"the rows of {names}", lambda batch, first: np.zeros(batch.num_rows, bool), test
    )


def at_random(share: float, seed: int) -> Holdout:
    """A share of the rows, by a hash of each row's number."""
    rule = f"a random {_share(share)} of the rows, by seed {seed}"
    return Holdout(rule, lambda batch, first: uniform(_numbers(batch, first), seed) < share)


def stratified(source: Table, column: str, share: float, seed: int) -> Holdout:
    """Of a small table exactly that share of the rows with a target, and of every class; `source`
    has the target only."""
    cells: list[Column] = []
    for batch in source.batches():
        cells.append(batch.column(column))
        if sum(map(len, cells)) > MAX_STRATIFIED_ROWS:
            return at_random(share, seed)
    known = np.flatnonzero(np.concatenate([~missing_rows(c) for c in cells]))
    labels = np.concatenate(
        [np.asarray(text(c, label=True).fill_null("").to_pylist(), dtype=str) for c in cells]
    )[known]
    held = known[stratified_share(labels, hashes(known, seed), share)]
    return Holdout(
        f"a random {_share(share)} of the rows, by seed {seed}",
        lambda batch, first: np.isin(_numbers(batch, first), held),
    )


def stratified_share(labels: Array, key: Array, share: float) -> Array:
    """Positions of a share of the rows, evenly from every class where there are classes; a class of
    one row is left to learn from.

    >>> found = stratified_share(np.repeat(["a", "b"], [40, 10]), hashes(np.arange(50)), 0.2)
    >>> len(found), int(np.sum(found >= 40))
    (10, 2)
    """
    _, code, counts = np.unique(labels, return_inverse=True, return_counts=True)
    code = code if len(counts) * ROWS_A_CLASS <= len(labels) else np.zeros(len(labels), np.int64)
    often = np.bincount(code)[code] > 1
    order = np.lexsort((key, code))
    order = order[often[order]]
    steps = np.floor(np.arange(len(order) + 1) * share + 0.5)
    return np.asarray(order[np.diff(steps) > 0])


def _numbers(batch: Batch, first: int) -> Array:
    return np.arange(first, first + batch.num_rows)


def by_group(source: Table, column: str, share: float, seed: int) -> Holdout:
    """A share of the groups, those of least hash; rows without a group are one group."""
    distinct = np.zeros(0, np.uint64)
    for batch in source.batches():
        distinct = np.union1d(distinct, group_hashes(batch, column))
    if len(distinct) < 2:
        raise DataError(
            f'the group "{column}" has {len(distinct)} group; give a column with at least two.'
        )
    count = min(len(distinct) - 1, max(1, round(share * len(distinct))))
    last = nth_hash(distinct.view(np.int64), count, seed)
    rule = f'{count:,} of {len(distinct):,} groups of "{column}", each whole, by seed {seed}'
    return Holdout(
        rule, lambda batch, first: hashes(group_hashes(batch, column).view(np.int64), seed) <= last
    )


def group_hashes(batch: Batch, column: str) -> Array:
    """A number for the group of every row, the same for equal ones."""
    return hashes_of_text(text(batch.column(column)).fill_null(""))


def by_time(
    source: Table, column: str, share: float, values: Callable[[Batch], Array], most: float = 1e9
) -> Holdout:
    """The last share of the rows; equal times stay together. `values` gives the times of a batch as
    numbers; beyond `most` bytes they wait on disk.
    """
    times = GrowingArray(1, most, np.float64)
    for batch in source.batches():
        found = values(batch)
        times.add(found[np.isfinite(found)])
    known = times.vector()
    if not len(known):
        raise DataError(
            f'the time column "{column}" has no dates or numbers; give a column that orders the rows.'
        )
    low, high = float(known.min()), float(known.max())
    if low == high:
        raise DataError(
            f'the time column "{column}" has the same value in every row; give a column that orders the rows.'
        )
    cut = float_from_bits(
        nth_smallest(
            lambda: (sortable_bits(known[s]) for s in cuts(len(known), BLOCK_ROWS)),
            math.floor((1 - share) * (len(known) - 1)),
        )
    )
    cut = float(np.nextafter(high, -np.inf)) if cut == high else cut
    rule = f'the last {_share(share)} of the rows by "{column}"'
    return Holdout(rule, lambda batch, first: values(batch) > cut)


def _share(share: float) -> str:
    """The share in words.

    >>> _share(0.2), _share(0.15)
    ('fifth', '15 %')
    """
    named = {1 / 2: "half", 1 / 3: "third", 1 / 4: "quarter", 1 / 5: "fifth", 1 / 10: "tenth"}
    return next(
        (word for value, word in named.items() if abs(value - share) < 1e-6), f"{100 * share:g} %"
    )


@dataclass(frozen=True, eq=False)
class FoldPlan:
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


def make_folds(rows: TableRows, k: int = N_FOLDS, seed: int = 0) -> FoldPlan:
    """By time: each block is predicted from those before it. Else blocks at random, groups whole,
    classes (integers) spread evenly.

    Rows of one time or one group, as a small sample may have, are split at random.

    >>> f = make_folds(TableRows(np.zeros((6, 1)), np.zeros(6), np.arange(6), time=np.arange(6.0)), k=2)
    >>> f.block, f.plan
    (array([0, 0, 1, 1, 2, 2]), (((0,), 1), ((0, 1), 2)))
    """
    k = max(2, min(k, len(rows) // 2))
    if rows.time is not None and not _alike(rows.time):
        block = _by_time(rows.time, k + 1)
        last = int(block.max())
        return FoldPlan(block, tuple((tuple(range(j)), j) for j in range(1, last + 1)))
    block = (
        _at_random(rows, k, seed)
        if rows.group is None or _alike(rows.group)
        else _by_group(rows.group, rows.y, k, seed)
    )
    present = int(block.max()) + 1
    return FoldPlan(
        block, tuple((tuple(i for i in range(present) if i != j), j) for j in range(present))
    )


def _alike(values: Array) -> bool:
    return bool(np.all(values == values[:1]))


def _at_random(rows: TableRows, k: int, seed: int) -> Array:
    key = hashes(rows.row_id, seed + 1)
    return _dealt(rows.y, key, k) if rows.y.dtype.kind in "iu" else _even(key, k)


def _dealt(y: Array, key: Array, k: int) -> Array:
    """Each class dealt out to the blocks in turn, in the order of a hash: none has more than one
    row above another."""
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
    edges, first = (
        np.unique(np.quantile(time, np.arange(1, blocks) / blocks, method="higher")),
        time.min(),
    )
    edges = edges[edges > first] if (edges > first).any() else time[time > first].min(keepdims=True)
    return np.unique(np.searchsorted(edges, time, side="right"), return_inverse=True)[1]


def _by_group(group: Array, y: Array, k: int, seed: int) -> Array:
    """Whole groups, the largest first, into the block that has the least of what they hold: rows of
    each class, or rows."""
    groups, where, counts = np.unique(group, return_inverse=True, return_counts=True)
    held = _by_class(where, y, len(groups))  # (groups, classes), as shares of each class
    block, full = np.empty(len(groups), np.int64), np.zeros((min(k, len(groups)), held.shape[1]))
    for g in np.lexsort((hashes(groups, seed + 1), -counts)):
        block[g] = int(np.argmin(full @ held[g]))  # the least growth of the sum of squares
        full[block[g]] += held[g]
    return block[where]


def _by_class(group: Array, y: Array, n_groups: int) -> Array:
    """How much of each class every group holds; of numbers there is one class."""
    codes = (
        np.unique(y, return_inverse=True)[1] if y.dtype.kind in "iu" else np.zeros(len(y), np.int64)
    )
    out = np.zeros((n_groups, int(codes.max()) + 1))
    np.add.at(out, (group, codes), 1.0)
    return out / out.sum(0)
