"""How often values occur and how many there are, in bounded memory: heavy hitters and distinct counts that merge."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.stats.sample import mix
from mercer.tables.arrow import Column, pa, pc

CAP = 4096  # values whose counts are held
LEAST = 2048  # least hashes held: the number of distinct values is then known to about 2 %
PIECE = 1 << 16  # bytes of strings that are hashed together
_BASE = 0x9E3779B97F4A7C15  # odd, hence invertible modulo 2^64
_INVERSE = pow(_BASE, -1, 2**64)


def hashes(values: Column) -> Array:
    """A 64-bit hash of every value of an array of numbers or strings (no nulls): equal values have equal hashes.

    A string of bytes b_1 ... b_n hashes to sum_i (b_i + 1) a^i modulo 2^64, mixed; all of them by one cumulative sum.
    """
    if not pa.types.is_string(values.type):
        return mix(values.to_numpy(zero_copy_only=False).astype(np.float64).view(np.uint64) + np.uint64(_BASE))
    _, where, data = values.buffers()
    offsets = np.frombuffer(where, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
    raw = np.frombuffer(data, np.uint8) if data is not None and len(values) else np.zeros(0, np.uint8)
    out = np.empty(len(values), np.uint64)
    for first, last in _pieces(offsets):
        out[first:last] = _of_piece(raw, offsets[first : last + 1])
    return out


def _pieces(offsets: Array) -> Iterator[tuple[int, int]]:
    """(first, last) of the strings that are hashed together: a few words a byte are held meanwhile."""
    first, n = 0, len(offsets) - 1
    while first < n:
        last = int(np.searchsorted(offsets, offsets[first] + PIECE, side="right")) - 1
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
    return _first_powers(base)[:n] if n <= PIECE + 1 else _run(base, n)


@cache
def _first_powers(base: int) -> Array:
    return _run(base, PIECE + 1)


def _run(base: int, n: int) -> Array:
    with np.errstate(over="ignore"):
        return np.cumprod(np.concatenate([np.ones(1, np.uint64), np.full(max(n - 1, 0), np.uint64(base))]), dtype=np.uint64)[:n]


@dataclass(eq=False)
class Counts:
    """Counts of the most frequent values. Exact while there are at most `cap`; beyond, each is low by at most `error`.

    Beyond the cap the largest count that does not fit is taken from all, as Misra and Gries do, so `error` is at most n / cap.

    >>> c = Counts(cap=2)
    >>> c.add(pa.array(["a", "b", "a", "a", "c"]))
    >>> c.values.to_pylist(), c.counts.tolist(), c.error
    (['a'], [2], 1)
    """

    cap: int = CAP
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
            values, counts = coded.dictionary, _sums(coded.indices.to_numpy(zero_copy_only=False), weight, len(coded.dictionary))
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
class Distinct:
    """The number of distinct values, from the least hashes: exact below `k`, known to about 1/sqrt(k) above."""

    k: int = LEAST
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
