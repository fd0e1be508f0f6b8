"""What one pass learns of a column, and a sample of whole rows: all that the treatment of a table is decided from."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.stats.sample import Sample
from mercer.tables.arrow import Batch, Column, flat, pa, pc
from mercer.tables.counts import Counts, Distinct
from mercer.tables.values import counts, is_text, null, numbers, padded, text, unit_of

SAMPLE = 10_000  # rows of the sample, fewer in wide tables
CELLS = 4_000_000  # and at most so many cells
PROBE = 1000
CODED = 0.01
CUT = 256  # characters of a text by which it is told from others
HELD = 4096  # characters of a text that the sample holds


def short(column: Column, size: int = CUT) -> Column:
    """Texts cut at 256 characters, so that what is held stays bounded."""
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    return pc.utf8_slice_codeunits(column, 0, size) if longest > size else column


@dataclass(eq=False)
class Sketch:
    """Counts, distinct values, range and order of one column, batch by batch.

    A text column whose first filled cells are mostly numbers is followed as numbers, with the texts among them counted.
    """

    label: bool = False  # of a target, where words such as "none" may be classes
    kind: Any = field(default_factory=pa.null)  # the pyarrow type
    n: int = 0
    n_missing: int = 0
    n_texts: int = 0  # filled cells that are not numbers, of a column followed as numbers
    n_padded: int = 0  # numbers among them that are written with needless zeros before, as codes are
    unit: str = ""  # behind the numbers of a text column
    numeric: bool | None = None
    whole: bool = True
    rising: bool = True
    low: float = np.inf
    high: float = -np.inf
    last: float = -np.inf
    counts: Counts | None = field(default_factory=Counts)
    texts: Counts = field(default_factory=lambda: Counts(64))
    distinct: Distinct = field(default_factory=Distinct)

    def add(self, column: Any) -> None:
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
            self.numeric = _mostly_numbers(found)
            if self.numeric is False and is_text(found.type) and (unit := unit_of(found.slice(0, 2 * PROBE))):
                self.unit, self.numeric = unit, True
        return bool(self.numeric)

    def _add_numbers(self, found: Column) -> None:
        values, odd = numbers(found, self.unit)
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
        self.rising = self.rising and len(kept) == len(values) and kept[0] > self.last and bool(np.all(kept[1:] > kept[:-1]))
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


def _mostly_numbers(found: Column) -> bool | None:
    """Whether the first filled cells are mostly numbers; None where there are none yet. Typed columns say it themselves."""
    if not is_text(found.type):
        return counts(found.type) and not pa.types.is_boolean(found.type)
    filled = text(found.slice(0, 2 * PROBE)).drop_null()
    filled = filled if len(filled) else text(found).drop_null()
    return bool(numbers(filled.slice(0, PROBE))[1].mean() < 0.5) if len(filled) else None


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
        new = Sample.of(np.arange(batch.num_rows), k, keys=np.arange(self.n, self.n + batch.num_rows), seed=self.seed)
        self.n += batch.num_rows
        held = self.rows.num_rows if self.rows is not None else 0
        both = new if self.keys is None else Sample(k, self.keys.keys, np.arange(held)) + Sample(k, new.keys, new.rows + held)
        self._take(batch, both, held)

    def _take(self, batch: Batch, both: Sample, held: int) -> None:
        """Keep the chosen rows of what is held and of the batch, in the order of their keys."""
        old = both.rows < held
        if not old.all():
            parts = [] if self.rows is None else [self.rows.take(pa.array(both.rows[old]))]
            parts.append(pa.Table.from_batches([_shortened(batch.take(pa.array(both.rows[~old] - held)))]))
            order = np.argsort(np.argsort(~old, kind="stable"))  # where each chosen row lies in the parts
            self.rows = pa.concat_tables(parts, promote_options="permissive").take(pa.array(order)).combine_chunks()
        self.keys = both

    def column(self, name: str) -> Column:
        return flat(self.rows.column(name))


def _shortened(batch: Batch) -> Batch:
    arrays = [short(flat(c).cast(pa.string()), HELD) if is_text(flat(c).type) else flat(c) for c in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def missing_rows(column: Any) -> Array:
    """Where a target has no value, by its type or by a word for missing."""
    found = flat(column)
    if pa.types.is_floating(found.type):
        return ~np.isfinite(found.to_numpy(zero_copy_only=False).astype(np.float64))
    return null(text(found, label=True)) if is_text(found.type) else null(found)
