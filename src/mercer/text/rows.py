"""Rows of counts: what lies in which column, part by part, in ascending order and none twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.text import hashing

ROOM = 1 << 18  # keys that are in memory at a time: a megabyte
Emit = Callable[[Array, Array, Array], int]  # keys and ends of rows, from a place on
WIDEST = (1 << 31) - 1  # columns


@dataclass(frozen=True, eq=False)
class Tally:
    """CSR rows of whole numbers: of row i are indices[indptr[i] : indptr[i + 1]]."""

    indices: Array
    values: Array
    indptr: Array

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def nonzero(self) -> Tally:
        """Without values that are 0."""
        if self.values.all():
            return self
        there = self.values != 0
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(there)])
        return Tally(self.indices[there], self.values[there], before[self.indptr])

    def __getitem__(self, rows: slice) -> Tally:
        ends = self.indptr[rows.start : rows.stop + 1]
        inside = slice(int(ends[0]), int(ends[-1]))
        return Tally(self.indices[inside], self.values[inside], ends - ends[0])


@dataclass(frozen=True, eq=False)
class Buckets:
    """Columns that keys lie in."""

    width: int
    keep: bool = False  # columns whose n-grams cancel each other, as 0


def tallied(emit: Emit, n_rows: int, to: Buckets, most: int) -> Tally:
    """Rows of the keys that `emit` gives, as many keys at a time as there is room for."""
    at, ends = np.zeros(3, np.int64), np.empty(n_rows, np.int64)
    keys, spare = (np.empty(ROOM + most, np.uint32) for _ in range(2))
    heads = np.empty(1024, np.uint32)
    how = np.array([(to.width - 1).bit_length(), to.keep], np.int64)
    found: list[Tally] = []
    row: _LongRow | None = None  # one that did not end with its keys
    while at[0] < n_rows:
        first = int(at[0])
        n = emit(at, keys, ends)
        size = int(ends[n - 1]) if n else 0
        out = Tally(np.empty(size, np.int32), np.empty(size, np.int32), np.empty(n + 1, np.int64))
        hashing.count(keys, ends[:n], how, spare, heads, *vars(out).values())
        open_ = bool(at[0] == first + n - 1)
        if row is not None:
            row.add(out[0:1])
            if n > 1 or not open_:
                found, row = [*found, row.tally()], None
            out = out[1:n]
        if open_ and out.n_rows:
            row = _LongRow(to.keep)
            row.add(out[out.n_rows - 1 : out.n_rows])
            out = out[0 : out.n_rows - 1]
        if out.n_rows:
            found.append(out[0 : out.n_rows])
    return joined(found)


class _LongRow:
    """A row that comes in pieces; they are added up whenever they hold as much as their sum."""

    def __init__(self, keep: bool) -> None:
        self.pieces: list[Tally] = []
        self.size, self.full, self.keep = 0, 4 * ROOM, keep

    def add(self, piece: Tally) -> None:
        self.pieces.append(Tally(piece.indices.copy(), piece.values.copy(), piece.indptr))
        self.size += len(piece.indices)
        if self.size > self.full:
            self.pieces = [self.tally()]
            self.size = len(self.pieces[0].indices)
            self.full = max(self.full, 2 * self.size)

    def tally(self) -> Tally:
        indices = np.concatenate([p.indices for p in self.pieces])
        values = np.concatenate([p.values for p in self.pieces], dtype=np.int64)
        order = np.argsort(indices, kind="stable")
        indices, values = indices[order], values[order]
        heads = np.flatnonzero(np.diff(indices, prepend=-1))
        indices = indices[heads]
        values = np.add.reduceat(values, heads) if len(heads) else values
        if not self.keep:
            indices, values = indices[values != 0], values[values != 0]
        return Tally(indices, values, np.array([0, len(indices)], np.int64))


def joined(found: list[Tally]) -> Tally:
    """Rows below one another."""
    if len(found) == 1:
        return found[0]
    sizes = [np.zeros(1, np.int64), *(np.diff(t.indptr) for t in found)]
    return Tally(
        np.concatenate([np.zeros(0, np.int32), *(t.indices for t in found)]),
        np.concatenate([np.zeros(0, np.int32), *(t.values for t in found)]),
        np.cumsum(np.concatenate(sizes)),
    )
