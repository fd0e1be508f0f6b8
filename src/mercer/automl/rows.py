"""Rows as the learners see them: numbers in one array, in memory or on disk, with what else is
known of each row."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike

from mercer.inputs import Array
from mercer.ops.tiles import cuts
from mercer.stats.sample import mix

BLOCK_ROWS = 1 << 18  # rows whose hashes are looked at together
RADIX_BITS = 16
FEW_KEYS = 1 << 16


@dataclass(frozen=True, eq=False)
class TableRows:
    """X (n, p) in float32, y (n,) numbers or class codes, and one value a row of what else there
    is.

    `row_id` is the position in the file (from 0), `group` numbers the group, `time` orders the
    rows, `odd` tells rows with odd cells.
    """

    X: Array
    y: Array
    row_id: Array
    weight: Array | None = None
    group: Array | None = None
    time: Array | None = None
    odd: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, i: Array | slice) -> TableRows:
        """Those rows."""
        found: Any = {
            f.name: None if (v := getattr(self, f.name)) is None else v[i] for f in fields(self)
        }
        return TableRows(**found)

    def weights(self) -> Array:
        return np.ones(len(self)) if self.weight is None else self.weight

    def with_positive_weight(self) -> TableRows:
        """Without the rows of weight 0, unless all are."""
        some = self.weights() > 0
        return self if some.all() or not some.any() else self.take(some)

    def sample(self, n: int, seed: int = 0) -> TableRows:
        """n of the rows, those whose numbers have the least hashes: a larger sample holds the
        smaller one."""
        if n >= len(self):
            return self
        return self.take(least_hashed(self.row_id, n, seed))

    def sampled_batches(
        self, n: int, seed: int, step: int, without: int = 0
    ) -> Iterator[TableRows]:
        """The sample of n rows, at most `step` at a time; without that of so many, which is part of
        it."""
        last, first = (nth_hash(self.row_id, size, seed) for size in (n, without))
        for s in cuts(len(self), min(BLOCK_ROWS, step * max(1, len(self) // (2 * max(n, 1))))):
            h = hashes(self.row_id[s], seed)
            mine = ((h <= last) & (h > first)) if without else h <= last
            if mine.any():
                yield self.take(s.start + np.flatnonzero(mine))

    @property
    def vectors(self) -> int:
        """How many values of 8 bytes a row has beside X."""
        return sum(getattr(self, f.name) is not None for f in fields(self)) - 1


def least_hashed(row_id: Array, n: int, seed: int = 0) -> Array:
    """The positions, in order, of the n numbers of least hash.

    >>> least_hashed(np.arange(10), 3), least_hashed(np.arange(10), 4)
    (array([0, 6, 9]), array([0, 6, 7, 9]))
    """
    if len(row_id) <= BLOCK_ROWS:
        return np.sort(np.argsort(hashes(row_id, seed), kind="stable")[:n])
    last = nth_hash(row_id, n, seed)
    return np.concatenate(
        [
            s.start + np.flatnonzero(hashes(row_id[s], seed) <= last)
            for s in cuts(len(row_id), BLOCK_ROWS)
        ]
    )[:n]


def nth_hash(row_id: Array, n: int, seed: int = 0) -> np.uint64:
    """The n-th of the hashes in order; 0 where n is."""
    if n < 1:
        return np.uint64(0)
    return nth_smallest(
        lambda: (hashes(row_id[s], seed) for s in cuts(len(row_id), BLOCK_ROWS)),
        min(n, len(row_id)) - 1,
    )


def hashes(values: Array, seed: int = 0) -> Array:
    """A 64-bit hash of every number or text, which depends on the seed only.

    >>> hashes(np.arange(2)).dtype, bool(hashes(["a"])[0] == hashes(["a"])[0])
    (dtype('uint64'), True)
    """
    v = np.asarray(values)
    words = v.astype(np.int64).view(np.uint64) if v.dtype.kind in "iub" else _words(v)
    with np.errstate(over="ignore"):
        return mix(mix(words + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)))


def _words(values: Array) -> Array:
    """64 bits of the text of every value; each distinct one is hashed once."""
    from hashlib import blake2b

    distinct, where = np.unique(values.astype(str), return_inverse=True)
    words = [
        int.from_bytes(
            blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little"
        )
        for text in distinct
    ]
    return np.asarray(words, np.uint64)[where]


def uniform(values: Array, seed: int = 0) -> Array:
    """The same hash as a number in [0, 1)."""
    return (hashes(values, seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def nth_smallest(parts: Callable[[], Iterable[Array]], n: int) -> np.uint64:
    """The n-th, from 0, of the unsigned numbers in the parts, which are gone over for every 16 bits
    until few are left.

    >>> nth_smallest(lambda: [np.array([7, 1], np.uint64), np.array([5], np.uint64)], 1)
    np.uint64(5)
    """
    known, left, ranks = 0, 64, n
    while left:
        left -= RADIX_BITS
        counts = sum(
            (np.bincount(_next(k, known, left), minlength=1 << RADIX_BITS) for k in parts()),
            np.zeros(1 << RADIX_BITS, np.int64),
        )
        upto = np.cumsum(counts)
        there = int(np.searchsorted(upto, ranks, side="right"))
        ranks, known = ranks - int(upto[there] - counts[there]), known << RADIX_BITS | there
        if counts[there] <= FEW_KEYS:
            near = np.concatenate([k[k >> np.uint64(left) == known] for k in parts()])
            return np.uint64(np.sort(near)[ranks])
    return np.uint64(known)


def _next(keys: Array, known: int, left: int) -> Array:
    """The next bits of those that begin as known."""
    shift = np.uint64(left)
    mine = keys if left + RADIX_BITS == 64 else keys[keys >> np.uint64(left + RADIX_BITS) == known]
    return (mine >> shift & np.uint64((1 << RADIX_BITS) - 1)).astype(np.int64)


def sortable_bits(values: Array) -> Array:
    """Unsigned numbers in the order of finite floats."""
    bits = np.asarray(values, np.float64).view(np.uint64)
    sign = bits >> np.uint64(63) == 1
    return np.where(sign, ~bits, bits | np.uint64(1 << 63))


def float_from_bits(key: np.uint64) -> float:
    """The float of that key.

    >>> [float_from_bits(k) for k in sortable_bits(np.array([-2.5, 0.0, 3.0]))]
    [-2.5, 0.0, 3.0]
    """
    bits = key & np.uint64((1 << 63) - 1) if key >> np.uint64(63) else ~key
    return float(np.array([bits], np.uint64).view(np.float64)[0])


class GrowingArray:
    """Rows (n, p), float32 unless told; beyond `most` bytes they go to an unnamed file, which
    vanishes with the array.

    >>> s = GrowingArray(2, most=0)
    >>> s.add(np.ones((3, 2), np.float32)).add(np.zeros((1, 2), np.float32)).array().shape
    (4, 2)
    """

    def __init__(self, width: int, most: float, dtype: DTypeLike = np.float32) -> None:
        self.width, self.most, self.dtype, self.n = width, most, np.dtype(dtype), 0
        self.held: list[Array] = []
        self.file: IO[bytes] | None = None

    @property
    def n_bytes(self) -> float:
        """In memory."""
        return 0.0 if self.file is not None else float(self.dtype.itemsize) * self.n * self.width

    def add(self, X: Array) -> GrowingArray:
        """Append rows."""
        rows = np.ascontiguousarray(X, self.dtype)
        self.n += len(rows)
        if self.file is not None:
            self._write(rows)
        else:
            self.held.append(rows)
            if self.n_bytes > self.most:
                self.spill()
        return self

    def spill(self) -> None:
        """From now on, on disk."""
        if self.file is not None:
            return
        self.file = tempfile.TemporaryFile(prefix="mercer-")  # noqa: SIM115  the array keeps it open
        for rows in self.held:
            self._write(rows)
        self.held.clear()

    def _write(self, rows: Array) -> None:
        assert self.file is not None
        try:
            rows.tofile(self.file)
        except OSError as error:
            text = f"the treated rows do not fit on the disk that holds {tempfile.gettempdir()}; free some space"
            raise OSError(error.errno or errno.ENOSPC, text) from error

    def array(self) -> Array:
        """All rows, once; of a file, a map of it, which lives as long as it is used."""
        if self.file is None:
            return self._joined()
        shape: Any = (self.n, self.width)
        with self.file as file:
            file.flush()
            return (
                np.memmap(file, self.dtype, "r+", shape=shape)
                if self.n and self.width
                else np.zeros(shape, self.dtype)
            )

    def vector(self) -> Array:
        """The same of rows of one value, (n,)."""
        return self.array().reshape(-1)

    def _joined(self) -> Array:
        """The batches in one array; each is let go as soon as it is there."""
        out, at = np.empty((self.n, self.width), self.dtype), 0
        self.held.reverse()
        while self.held:
            rows = self.held.pop()
            rows = rows.reshape(len(rows), self.width)
            out[at : at + len(rows)] = rows
            at += len(rows)
        return out
