"""What one pass learns of a column, and a sample of whole rows: all that the treatment of a table
is decided from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.stats.sample import Sample, mix
from mercer.tables.arrow import Batch, Column, Kind, flat, pa, pc
from mercer.tables.values import counts, is_text, null, numbers, padded, text, unit_of
from mercer.tables.written import LOOKED, PLAIN, written_of

MAX_VALUES = 4096  # values whose counts are held
N_HASHES = 2048  # least hashes held: the number of distinct values is then known to about 2 %
BLOCK_BYTES = 1 << 16  # bytes of strings that are hashed together
_BASE = 0x9E3779B97F4A7C15  # odd, hence invertible modulo 2^64
_INVERSE = pow(_BASE, -1, 2**64)
SAMPLE = 10_000  # rows of the sample, fewer in wide tables
CELLS = 4_000_000  # and at most so many cells
PROBE = 1000
CODED = 0.01
CUT = 256  # characters of a text by which it is told from others
HELD = 4096  # characters of a text that the sample holds


def hashes(values: Column) -> Array:
    """A 64-bit hash of every value of an array of numbers or strings (no nulls): equal values have
    equal hashes.

    A string of bytes b_1 ... b_n hashes to sum_i (b_i + 1) a^i modulo 2^64, mixed; all of them by
    one cumulative sum.
    """
    if not pa.types.is_string(values.type):
        return mix(
            values.to_numpy(zero_copy_only=False).astype(np.float64).view(np.uint64)
            + np.uint64(_BASE)
        )
    _, where, data = values.buffers()
    offsets = np.frombuffer(where, np.int32)[
        values.offset : values.offset + len(values) + 1
    ].astype(np.int64)
    raw = (
        np.frombuffer(data, np.uint8) if data is not None and len(values) else np.zeros(0, np.uint8)
    )
    out = np.empty(len(values), np.uint64)
    for first, last in _pieces(offsets):
        out[first:last] = _of_piece(raw, offsets[first : last + 1])
    return out


def _pieces(offsets: Array) -> Iterator[tuple[int, int]]:
    """(first, last) of the strings that are hashed together: a few words a byte are held
    meanwhile."""
    first, n = 0, len(offsets) - 1
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + BLOCK_BYTES, side="right")) - 1
        last = min(max(last, first + 1), n)
        yield first, last
        first = last


def _of_piece(raw: Array, offsets: Array) -> Array:
    start, size = int(offsets[0]), int(offsets[-1] - offsets[0])
    with np.errstate(over="ignore"):
        terms = (raw[start : start + size] + np.uint64(1)) * _powers(_BASE, size)
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
        ends, begins = offsets[1:] - start, offsets[:-1] - start
        return mix((sums[ends] - sums[begins]) * _powers(_INVERSE, size + 1)[begins])


def _powers(base: int, n: int) -> Array:
    """base^0 ... base^(n - 1) modulo 2^64; those of a piece are computed once."""
    return _first_powers(base)[:n] if n <= BLOCK_BYTES + 1 else _run(base, n)


@cache
def _first_powers(base: int) -> Array:
    return _run(base, BLOCK_BYTES + 1)


def _run(base: int, n: int) -> Array:
    with np.errstate(over="ignore"):
        return np.cumprod(
            np.concatenate([np.ones(1, np.uint64), np.full(max(n - 1, 0), np.uint64(base))]),
            dtype=np.uint64,
        )[:n]


@dataclass(eq=False)
class HeavyHitters:
    """Counts of the most frequent values. Exact while there are at most `cap`; beyond, each is low
    by at most `error`.

    Beyond the cap the largest count that does not fit is taken from all, as Misra and Gries do, so
    `error` is at most n / cap.

    >>> c = HeavyHitters(cap=2)
    >>> c.add(pa.array(["a", "b", "a", "a", "c"]))
    >>> c.values.to_pylist(), c.counts.tolist(), c.error
    (['a'], [2], 1)
    """

    cap: int = MAX_VALUES
    values: Any = None
    counts: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    error: int = 0

    @property
    def exact(self) -> bool:
        return self.error == 0

    def __len__(self) -> int:
        return 0 if self.values is None else len(self.values)

    def add(self, column: Column) -> None:
        """Take in an array without nulls."""
        found = pc.value_counts(column)
        self._merge(found.field("values"), found.field("counts").to_numpy(zero_copy_only=False))

    def _merge(self, values: Column, counts: Array) -> None:
        if len(self):
            both = pa.concat_arrays([self.values, values.cast(self.values.type)])
            coded = pc.dictionary_encode(both)
            weight = np.concatenate([self.counts, counts])
            values, counts = (
                coded.dictionary,
                _sums(coded.indices.to_numpy(zero_copy_only=False), weight, len(coded.dictionary)),
            )
        order = np.argsort(-counts, kind="stable")
        if len(order) > self.cap:
            cut = int(counts[order[self.cap]])
            order = order[counts[order] > cut]
            counts, self.error = counts - cut, self.error + cut
        self.values, self.counts = values.take(pa.array(order)), counts[order]


def _sums(groups: Array, weight: Array, n: int) -> Array:
    out = np.zeros(n, np.int64)
    np.add.at(out, groups, weight)
    return out


@dataclass(eq=False)
class DistinctCount:
    """The number of distinct values, from the least hashes: exact below `k`, known to about
    1/sqrt(k) above."""

    k: int = N_HASHES
    least: Array = field(default_factory=lambda: np.zeros(0, np.uint64))

    def add(self, column: Column) -> None:
        """Take in an array without nulls."""
        new = hashes(column)
        if len(self.least) == self.k:
            new = new[new < self.least[-1]]
        self.least = np.unique(np.concatenate([self.least, new]))[: self.k]

    def count(self) -> int:
        if len(self.least) < self.k:
            return len(self.least)
        return round((self.k - 1) / (float(self.least[-1]) / 2.0**64))


def short(column: Column, size: int = CUT) -> Column:
    """Texts cut at 256 characters, so that what is held stays bounded."""
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    return pc.utf8_slice_codeunits(column, 0, size) if longest > size else column


@dataclass(eq=False)
class ColumnSketch:
    """Counts, distinct values, range and order of one column, batch by batch.

    A text column whose first filled cells are mostly numbers is followed as numbers, with the texts
    among them counted.
    """

    label: bool = False  # of a target, where words such as "none" may be classes
    kind: Kind = field(default_factory=pa.null)  # the pyarrow type
    n: int = 0
    n_missing: int = 0
    n_texts: int = 0  # filled cells that are not numbers, of a column followed as numbers
    n_padded: int = (
        0  # numbers among them that are written with needless zeros before, as codes are
    )
    unit: str = ""  # behind the numbers of a text column
    written: str = PLAIN  # its decimal mark, and what groups thousands
    points: str = ""  # "shown" or "given" where the file has decimal points
    numeric: bool | None = None
    whole: bool = True
    rising: bool = True
    low: float = np.inf
    high: float = -np.inf
    last: float = -np.inf
    counts: HeavyHitters | None = field(default_factory=HeavyHitters)
    texts: HeavyHitters = field(default_factory=lambda: HeavyHitters(64))
    distinct: DistinctCount = field(default_factory=DistinctCount)

    def add(self, column: Column) -> None:
        """Take in a batch of the column."""
        found = flat(column)
        self.kind = found.type if pa.types.is_null(self.kind) else self.kind
        self.n += len(found)
        if pa.types.is_nested(found.type) or pa.types.is_null(found.type):
            self.n_missing += found.null_count
        elif self._follows_numbers(found):
            self._add_numbers(found)
        else:
            self._add_texts(found)

    def _follows_numbers(self, found: Column) -> bool:
        if self.numeric is None:
            if is_text(found.type):
                self.written = written_of(_first(found), self.points)
            self.numeric = _mostly_numbers(found, self.written)
            if (
                self.numeric is False
                and is_text(found.type)
                and (unit := unit_of(found.slice(0, 2 * PROBE)))
            ):
                self.unit, self.numeric = unit, True
        return bool(self.numeric)

    def _add_numbers(self, found: Column) -> None:
        values, odd = numbers(found, self.unit, self.written)
        self.n_padded += padded(found) if is_text(found.type) else 0
        kept = values[~np.isnan(values)]
        self.n_missing += len(values) - len(kept) - int(odd.sum())
        if odd.any():
            self.n_texts += int(odd.sum())
            self.texts.add(short(text(found.filter(pa.array(odd)))))
        if len(kept):
            self._add_range(values, kept)
            self._add_values(pa.array(kept))

    def _add_range(self, values: Array, kept: Array) -> None:
        self.whole = self.whole and bool(np.all(kept == np.floor(kept)))
        self.low, self.high = min(self.low, float(kept.min())), max(self.high, float(kept.max()))
        self.rising = (
            self.rising
            and len(kept) == len(values)
            and kept[0] > self.last
            and bool(np.all(kept[1:] > kept[:-1]))
        )
        self.last = float(kept[-1])

    def _add_texts(self, found: Column) -> None:
        cells = text(found, label=self.label)
        filled = short(cells.drop_null())
        self.n_missing += len(cells) - len(filled)
        if len(filled):
            self._add_values(filled)

    def _add_values(self, filled: Column) -> None:
        if self.counts is not None:
            self.counts.add(filled)
            if self.numeric and not self.counts.exact:
                self.counts = None  # numbers with so many values are no categories
        self.distinct.add(filled)

    @property
    def coded(self) -> bool:
        """Whether the numbers are codes: a hundredth of them begin with a needless 0."""
        return self.n_padded > 0 and self.n_padded >= CODED * self.n_filled

    @property
    def n_filled(self) -> int:
        return self.n - self.n_missing

    @property
    def n_distinct(self) -> int:
        if self.counts is not None and self.counts.exact:
            return len(self.counts)
        return min(self.distinct.count(), self.n_filled)


def _mostly_numbers(found: Column, written: str) -> bool | None:
    """Whether the first filled cells are mostly numbers; None where there are none yet. Typed
    columns say it themselves."""
    if not is_text(found.type):
        return counts(found.type) and not pa.types.is_boolean(found.type)
    filled = _first(found).slice(0, PROBE)
    return bool(numbers(filled, written=written)[1].mean() < 0.5) if len(filled) else None


def _first(found: Column) -> Column:
    """The first filled cells of a text column."""
    filled = text(found.slice(0, LOOKED)).drop_null()
    return filled if len(filled) else text(found).drop_null()


@dataclass(eq=False)
class RowSample:
    """A uniform sample of whole rows: the least hashes of their numbers, whatever the batches."""

    seed: int = 0
    rows: Any = None  # a pyarrow.Table
    keys: Sample | None = None
    n: int = 0
    cells: int = CELLS  # at most, but for a thousand rows

    def add(self, batch: Batch) -> None:
        """Take in a batch."""
        k = max(min(SAMPLE, self.cells // max(batch.num_columns, 1)), 1000)
        new = Sample.of(
            np.arange(batch.num_rows),
            k,
            keys=np.arange(self.n, self.n + batch.num_rows),
            seed=self.seed,
        )
        self.n += batch.num_rows
        held = self.rows.num_rows if self.rows is not None else 0
        both = (
            new
            if self.keys is None
            else Sample(k, self.keys.keys, np.arange(held)) + Sample(k, new.keys, new.rows + held)
        )
        self._take(batch, both, held)

    def _take(self, batch: Batch, both: Sample, held: int) -> None:
        """Keep the chosen rows of what is held and of the batch, in the order of their keys."""
        old = both.rows < held
        if not old.all():
            parts = [] if self.rows is None else [self.rows.take(pa.array(both.rows[old]))]
            parts.append(
                pa.Table.from_batches([_shortened(batch.take(pa.array(both.rows[~old] - held)))])
            )
            order = np.argsort(
                np.argsort(~old, kind="stable")
            )  # where each chosen row lies in the parts
            self.rows = (
                pa.concat_tables(parts, promote_options="permissive")
                .take(pa.array(order))
                .combine_chunks()
            )
        self.keys = both

    def column(self, name: str) -> Column:
        return flat(self.rows.column(name))


def _shortened(batch: Batch) -> Batch:
    arrays = [
        short(flat(c).cast(pa.string()), HELD) if is_text(flat(c).type) else flat(c)
        for c in batch.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def missing_rows(column: Column) -> Array:
    """Where a target has no value, by its type or by a word for missing."""
    found = flat(column)
    if pa.types.is_floating(found.type):
        return ~np.isfinite(found.to_numpy(zero_copy_only=False).astype(np.float64))
    return null(text(found, label=True)) if is_text(found.type) else null(found)
