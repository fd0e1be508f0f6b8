"""The documents of a table: which columns hold some, those of training rows within a limit of
bytes, and splits that keep equal ones together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.automl.frames import Table, only
from mercer.automl.rows import TableRows, hashes, uniform
from mercer.automl.splits import Holdout
from mercer.inputs import Array
from mercer.stats.sample import mix
from mercer.tables.arrow import Batch, Column, flat, pa, pc
from mercer.tables.categories import is_long
from mercer.tables.errors import quoted
from mercer.tables.sequences import alphabet_of
from mercer.tables.sketch import hashes as hashes_of_text
from mercer.tables.texts import documents
from mercer.tables.treatment import MAX_CATEGORIES
from mercer.tables.values import is_text, text

PROBE_ROWS = 2_000  # rows that tell which columns hold documents
MIN_DISTINCT = 0.1  # of the cells
BYTES_A_ROW = 64  # that the sides of equal documents take, row by row
OFFSET = 17  # of the hash that samples rows, which is no other


class DocumentSample:
    """Documents of training rows, batch by batch: all of them, or beyond `most` bytes those of
    least hashes, so that equal ones are all here or none is.

    >>> sample = DocumentSample(("t",), 1e6)
    >>> sample.add(pa.record_batch({"t": ["a b", None]}), np.arange(2), np.array([4, 9]))
    >>> sample.row_id.tolist(), sample.column("t").to_pylist()
    ([4, 9], ['a b', ''])
    """

    def __init__(self, names: Sequence[str], most: float) -> None:
        self.names, self.most = tuple(names), most
        self.last = np.uint64(2**64 - 1)
        self.parts: list[Documents] = []

    def add(self, batch: Batch, index: Array, row_id: Array) -> None:
        """Take in some of the rows of a batch, with their numbers."""
        found = batch.select(list(self.names)).take(pa.array(index))
        rank = hashes(document_hashes(found, self.names, row_id), OFFSET)
        mine = np.flatnonzero(rank <= self.last)
        some, ids = found.take(pa.array(mine)), row_id[mine]
        self.parts.append(
            Documents(
                ids,
                rank[mine],
                {n: documents(some.column(n)).cast(pa.large_string()) for n in self.names},
                {n: document_hashes(some, (n,), ids) for n in self.names},
            )
        )
        while self.n_bytes > self.most and self.last > 1:
            self.last = self.last >> np.uint64(1)
            self.parts = [p.take(np.flatnonzero(p.rank <= self.last)) for p in self.parts]

    @property
    def n_bytes(self) -> int:
        return sum(c.nbytes for p in self.parts for c in p.cells.values())

    @property
    def row_id(self) -> Array:
        """The numbers of the rows that are here, in order."""
        return np.concatenate([np.zeros(0, np.int64), *(p.row_id for p in self.parts)])

    def column(self, name: str) -> Column:
        """The documents of one column, chunk by chunk."""
        return pa.chunked_array([p.cells[name] for p in self.parts], pa.large_string())

    def keys(self, name: str) -> Array:
        """A hash of each of them, for those without a word one of the row."""
        return np.concatenate([np.zeros(0, np.uint64), *(p.keys[name] for p in self.parts)])


@dataclass(frozen=True, eq=False)
class Documents:
    """Of some rows: their numbers, the hashes of all their documents together, and by column the
    texts and their hashes."""

    row_id: Array
    rank: Array
    cells: dict[str, Column]
    keys: dict[str, Array]

    def take(self, i: Array) -> Documents:
        cells = {name: c.take(pa.array(i)) for name, c in self.cells.items()}
        keys = {name: k[i] for name, k in self.keys.items()}
        return Documents(self.row_id[i], self.rank[i], cells, keys)


def document_columns(source: Table, others: Sequence[str | None]) -> tuple[str, ...]:
    """The columns whose first cells are documents, mostly different and long, without these
    others."""
    batch = next(replace(source, most=0).batches(PROBE_ROWS), None)
    names = () if batch is None else [n for n in batch.schema.names if n not in others]
    return tuple(n for n in names if batch is not None and _are_documents(batch.column(n)))


def _are_documents(column: Column) -> bool:
    found = flat(column)
    if not is_text(found.type):
        return False
    cells = text(found).drop_null()
    few = max(MIN_DISTINCT * len(cells), MAX_CATEGORIES)
    several = len(cells) > few and len(pc.unique(cells)) > few
    return several and (is_long(cells) or alphabet_of(cells) is not None)


def document_hashes(batch: Batch, names: Sequence[str], number: Array) -> Array:
    """A hash of the documents of every row in these columns; rows without any have one of their
    own, by their numbers."""
    out, filled = np.zeros(batch.num_rows, np.uint64), np.zeros(batch.num_rows, bool)
    for name in names:
        cells = documents(batch.column(name))
        with np.errstate(over="ignore"):
            out = mix(out * np.uint64(31) + hashes_of_text(cells))
        filled |= pc.not_equal(cells, "").to_numpy(zero_copy_only=False)
    return np.where(filled, out, hashes(number, OFFSET))


def together(
    apart: Holdout, source: Table, names: Sequence[str], share: float, seed: int, most: float
) -> Holdout:
    """The same holdout with equal documents on one side, that of the first of them; in tables of so
    many rows that their hashes would take more than `most` bytes, by the hash of the document."""
    found: list[Array] = []
    held: list[Array] = []
    first = 0
    for batch in only(source, names).batches():
        number = np.arange(first, first + batch.num_rows)
        found.append(document_hashes(batch, names, number))
        held.append(apart.mask(batch, first))
        first += batch.num_rows
        if first * BYTES_A_ROW > most:
            return _by_document(apart, names, share, seed)
    _, at, inverse = np.unique(np.concatenate(found), return_index=True, return_inverse=True)
    if len(at) == first:
        return apart
    side = np.concatenate(held)[at][inverse]
    return replace(
        apart,
        rule=_rule(apart, names),
        mask=lambda batch, begin: side[begin : begin + batch.num_rows],
    )


def _by_document(apart: Holdout, names: Sequence[str], share: float, seed: int) -> Holdout:
    def mask(batch: Batch, first: int) -> Array:
        number = np.arange(first, first + batch.num_rows)
        return uniform(document_hashes(batch, names, number).view(np.int64), seed) < share

    return replace(apart, rule=_rule(apart, names), mask=mask)


def _rule(apart: Holdout, names: Sequence[str]) -> str:
    return f"{apart.rule}; equal texts of {quoted(list(names))} are on one side"


def grouped_by_document(train: TableRows, held: TableRows) -> tuple[TableRows, TableRows]:
    """Rows whose groups are the hashes of their documents: without them where no document comes
    twice, or only one does."""
    assert train.group is not None
    assert held.group is not None
    distinct = np.unique(train.group)
    repeats = len(distinct) < len(train) or np.isin(held.group, distinct).any()
    if repeats and len(distinct) > 1:
        return train, held
    return replace(train, group=None), replace(held, group=None)
