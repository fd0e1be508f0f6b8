"""Files as partitions: row groups of parquet files, or whole files; a sample of their rows by
priorities; and their rows, treated where they are summed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from mercer.automl.frames import enumerate_batches
from mercer.automl.predictors import TargetTransform
from mercer.engines.lazy import LazyColumns
from mercer.engines.partitions import Partitions, Place
from mercer.engines.sample import SLACK, priorities
from mercer.engines.scheduler import compute
from mercer.engines.tree import fold
from mercer.inputs import Array
from mercer.inputs import Table as Checked
from mercer.tables import Columns, DataError, Source
from mercer.tables.arrow import ArrowTable, Batch, pa
from mercer.tables.read.formats import parquet_groups

PART_ROWS = 1 << 18  # of parquet row groups that are one partition, at most
FEW_ROWS, MANY_PARTS = 1 << 14, 64  # of so few, or of a part in so many of all rows
# a row group of more rows is cut in up to CUTS ranges where groups are fewer than FEW_PARTS: each range
# reads those before it too
CUTS, FEW_PARTS = 4, 8
PIECE_BYTES = 1 << 22  # of rows in memory that are one partition


@dataclass(frozen=True, eq=False)
class TablePart:
    """Rows of one file, read batch by batch where they are summed."""

    source: Source
    start: int = 0  # the number of its first row
    within: tuple[int, int] | None = None  # the rows of the source that are meant; None: all

    def __call__(self) -> list[Any]:
        return [self, None, None]

    def __len__(self) -> int:
        if self.within is not None:
            return self.within[1] - self.within[0]
        return sum(batch.num_rows for batch in self.source.batches())

    def pieces(self) -> Iterator[tuple[tuple[Batch, int], int]]:
        """Batches with the number of their first row."""
        low, high = self.within or (0, sys.maxsize)
        for batch, first in enumerate_batches(self.source):
            if first >= high:
                return
            skipped = max(low - first, 0)
            if (n := min(high - first, batch.num_rows) - skipped) > 0:
                yield (batch.slice(skipped, n), self.start + first + skipped - low), n


@dataclass(frozen=True, eq=False)
class TreatedRows:
    """Rows in memory as the model takes them: X (n, p), y (n,), weight (n,) or None."""

    X: Array
    y: Array
    weight: Array | None = None

    def __call__(self) -> list[Any]:
        return [self, None, None]

    def __len__(self) -> int:
        return len(self.y)

    def cut(self) -> list[TreatedRows]:
        """In pieces that travel with their tasks."""
        step = max(1, PIECE_BYTES // (4 * max(self.X.shape[1], 1)))
        return [self._slice(slice(i, i + step)) for i in range(0, len(self), step)]

    def _slice(self, s: slice) -> TreatedRows:
        return TreatedRows(self.X[s], self.y[s], None if self.weight is None else self.weight[s])


@dataclass(frozen=True, eq=False)
class TablePartitions(Partitions):
    """Parts of files, with names that stay the same while the files do."""

    names: tuple[tuple[str, ...], ...] = ()

    @property
    def keys(self) -> list[tuple[str, ...]]:
        return list(self.names)

    @classmethod
    def of_source(cls, source: Source) -> TablePartitions:
        """Every row group or file; rows are counted where no metadata tell."""
        groups = [
            list(parquet_groups(part.path)) if part.kind == "parquet" else None
            for part in source.parts
        ]
        rows = sum(sum(n) for n in groups if n is not None)
        most = min(PART_ROWS, max(FEW_ROWS, rows // MANY_PARTS))
        whole = sum(1 if n is None else len(n) for n in groups)
        cuts = min(CUTS, -(-FEW_PARTS // max(whole, 1)))
        each = zip(source.parts, groups, strict=True)
        found = [one for part, n in each for one in _parts(source, part, n, most, cuts)]
        asked = [i for i, (_, n) in enumerate(found) if n is None]
        counts = dict(zip(asked, counted([found[i][0] for i in asked]), strict=True))
        sizes = [counts[i] if n is None else n for i, (_, n) in enumerate(found)]
        ends = list(accumulate(sizes))
        if not ends or not ends[-1]:
            raise DataError(
                "the files have columns but no rows; check that they are the right ones."
            )
        parts = [
            replace(part, start=stop - n)
            for (part, _), n, stop in zip(found, sizes, ends, strict=True)
        ]
        places = [
            Place(i, len(parts), stop - n, stop, part.source.parts[0].path.name)
            for i, (part, n, stop) in enumerate(zip(parts, sizes, ends, strict=True))
        ]
        columns = LazyColumns(len(source.schema), None, np.dtype(np.float32))
        blocks: Any = parts
        return cls(columns, [()] * len(parts), places, blocks, names=tuple(map(_name, parts)))

    def beside(self, rows: TreatedRows, name: str) -> TablePartitions:
        """With treated rows before them."""
        cut, ends = rows.cut(), 0
        places = []
        for i, one in enumerate(cut):
            places.append(Place(i, len(cut), ends, ends + len(one), "the sample"))
            ends += len(one)
        blocks: Any = [*cut, *(self.graphs or ())]
        return replace(
            self,
            columns=replace(self.columns, width=rows.X.shape[1]),
            parts=[()] * len(blocks),
            places=[*places, *self.places],
            graphs=blocks,
            names=(*((name, str(i)) for i in range(len(cut))), *self.names),
        )


def _parts(
    source: Source, part: Any, groups: list[int] | None, most: int, cuts: int
) -> Iterator[tuple[TablePart, int | None]]:
    """Of one file, with their rows where they are known: groups of up to `most` together, or a
    single one, in up to so many cuts."""

    def of(held: tuple[int, ...] | None) -> TablePart:
        return TablePart(replace(source, parts=(replace(part, groups=held),), may_be_empty=True))

    if groups is None:
        yield of(None), None
        return
    held: list[int] = []
    n = 0
    for i, rows in enumerate(groups):
        if held and n + rows > most:
            yield from _ranges(of(tuple(held)), n, most, cuts)
            held, n = [], 0
        held.append(i)
        n += rows
    yield from _ranges(of(tuple(held)), n, most, cuts)


def _ranges(part: TablePart, n: int, most: int, cuts: int) -> Iterator[tuple[TablePart, int]]:
    """The part, or ranges of its rows where they are more than `most`."""
    count = min(cuts, -(-n // most))
    if count <= 1:
        yield part, n
        return
    ends = [n * i // count for i in range(count + 1)]
    for within in pairwise(ends):
        yield replace(part, within=within), within[1] - within[0]


def _name(part: TablePart) -> tuple[str, ...]:
    (file,) = part.source.parts
    stamp = file.stamp
    rows = str((file.groups, part.within, part.source.rows, part.source.most))
    return (str(file.path), str(stamp.size), str(stamp.time), stamp.head.hex(), rows)


def counted(parts: Sequence[TablePart]) -> list[int]:
    """The rows of files that do not tell."""
    from dask import delayed

    return compute([delayed(len, pure=False)(delayed(p, traverse=False)) for p in parts])


# a sample
@dataclass(frozen=True, eq=False)
class SampledTable:
    """Rows as they are written, with their numbers among all."""

    number: Array
    table: ArrowTable

    def __add__(self, o: SampledTable) -> SampledTable:
        table = pa.concat_tables([self.table, o.table])
        return SampledTable(np.concatenate([self.number, o.number]), table)


@dataclass(frozen=True, eq=False)
class TableSampler:
    """The rows of a batch whose priority is no more than `most`."""

    seed: int
    most: int
    kind = None  # not kept: what is chosen by it is
    identity = ""

    def __call__(self, X: tuple[Batch, int], y: Any, weight: Any, place: Place) -> SampledTable:
        batch, first = X
        number = np.arange(first, first + batch.num_rows)
        on = priorities(number, self.seed) <= np.uint64(self.most)
        return SampledTable(number[on], pa.Table.from_batches([batch.filter(pa.array(on))]))


def sampled_table(data: TablePartitions, k: int, seed: int) -> tuple[SampledTable, int]:
    """The k rows of least priority, in their order, and the largest of these priorities."""
    share = min(1.0, (k + SLACK * k**0.5) / data.rows)
    most = (1 << 64) - 1 if share >= 1 else int(share * (1 << 64))
    found: SampledTable = fold(data, TableSampler(seed, most))
    key = priorities(found.number, seed)
    at = np.sort(np.argsort(key, kind="stable")[:k])
    return SampledTable(found.number[at], found.table.take(pa.array(at))), int(key[at].max())


# rows that are summed
@dataclass(frozen=True, eq=False)
class UnsummedRows:
    """Rows of files that are not summed: those of the sample, which are summed apart, and what its
    holdout keeps together: whole groups, and all from a time on."""

    seed: int
    last: int  # the largest priority in the sample
    groups: Array | None = None
    since: float = np.inf

    def __call__(self, number: Array, group: Array | None, time: Array | None) -> Array:
        """Which rows stay."""
        on = priorities(number, self.seed) > np.uint64(self.last)
        if self.groups is not None and group is not None:
            on &= ~np.isin(group.view(np.int64), self.groups)
        return on if time is None else on & ~(time >= self.since)


@dataclass(frozen=True, eq=False)
class TableReader:
    """Treated rows, the transformed target or class codes, and weights; rows of weight 0, and of a
    class that the sample lacks, are as absent."""

    columns: Columns
    left_out: UnsummedRows
    identity: str
    target: TargetTransform | None = None  # of numbers
    least: float = -np.inf  # the least target that its logarithm takes
    classes: Array | None = None  # codes in order

    def __call__(self, X: Any, y: Any, weight: Any) -> tuple[Checked, Array | None, Array | None]:
        rows = X if isinstance(X, TreatedRows) else self.treated(*X)
        w = rows.weight
        on = np.ones(len(rows), bool) if w is None else w > 0
        if self.classes is not None:
            on = on & np.isin(rows.y, self.classes)
        found = rows.y[on]
        w = None if w is None else w[on]
        if self.classes is not None:
            return Checked(rows.X[on]), np.searchsorted(self.classes, found), w
        assert self.target is not None
        return Checked(rows.X[on]), self.target.to(np.maximum(found, self.least))[:, None], w

    def treated(self, batch: Batch, first: int) -> TreatedRows:
        """What stays of a batch."""
        rows = self.columns.transform(batch)
        assert rows.y is not None
        on = self.left_out(first + rows.index, rows.group, rows.time)
        return TreatedRows(rows.X[on], rows.y[on], None if rows.weight is None else rows.weight[on])
