"""Rows as the learners see them: numbers in one array, in memory or on disk, with what else is known of each row."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.tiles import cuts
from mercer.product.order import nth_key
from mercer.stats.sample import mix

STEP = 1 << 18  # rows whose hashes are looked at together


@dataclass(frozen=True, eq=False)
class Rows:
    """X (n, p) in float32, y (n,) numbers or class codes, and one value a row of what else there is.

    `number` is the position in the file (from 0), `unit` numbers the group, `time` orders the rows, `odd` tells rows with odd cells.
    """

    X: Array
    y: Array
    number: Array
    weight: Array | None = None
    unit: Array | None = None
    time: Array | None = None
    odd: Array | None = None

    def __len__(self) -> int:
        return len(self.y)

    def take(self, i: Array | slice) -> Rows:
        """Those rows."""
        found: Any = {f.name: None if (v := getattr(self, f.name)) is None else v[i] for f in fields(self)}
        return Rows(**found)

    def weights(self) -> Array:
        return np.ones(len(self)) if self.weight is None else self.weight

    def weighty(self) -> Rows:
        """Without the rows of weight 0, unless all are."""
        some = self.weights() > 0
        return self if some.all() or not some.any() else self.take(some)

    def sample(self, n: int, seed: int = 0) -> Rows:
        """n of the rows, those whose numbers have the least hashes: a larger sample holds the smaller one."""
        if n >= len(self):
            return self
        return self.take(least(self.number, n, seed))

    def thinned(self, n: int, seed: int, step: int, without: int = 0) -> Iterator[Rows]:
        """The sample of n rows, at most `step` at a time; without that of so many, which is part of it."""
        last, first = (highest(self.number, size, seed) for size in (n, without))
        for s in cuts(len(self), min(STEP, step * max(1, len(self) // (2 * max(n, 1))))):
            h = hashes(self.number[s], seed)
            mine = ((h <= last) & (h > first)) if without else h <= last
            if mine.any():
                yield self.take(s.start + np.flatnonzero(mine))

    @property
    def vectors(self) -> int:
        """How many values of 8 bytes a row has beside X."""
        return sum(getattr(self, f.name) is not None for f in fields(self)) - 1


def least(number: Array, n: int, seed: int = 0) -> Array:
    """The positions, in order, of the n numbers of least hash.

    >>> least(np.arange(10), 3), least(np.arange(10), 4)
    (array([0, 6, 9]), array([0, 6, 7, 9]))
    """
    if len(number) <= STEP:
        return np.sort(np.argsort(hashes(number, seed), kind="stable")[:n])
    last = highest(number, n, seed)
    return np.concatenate([s.start + np.flatnonzero(hashes(number[s], seed) <= last) for s in cuts(len(number), STEP)])[:n]


def highest(number: Array, n: int, seed: int = 0) -> np.uint64:
    """The n-th of the hashes in order; 0 where n is."""
    if n < 1:
        return np.uint64(0)
    return nth_key(lambda: (hashes(number[s], seed) for s in cuts(len(number), STEP)), min(n, len(number)) - 1)


def hashes(values: Any, seed: int = 0) -> Array:
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
    words = [int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little") for text in distinct]
    return np.asarray(words, np.uint64)[where]


def uniform(values: Any, seed: int = 0) -> Array:
    """The same hash as a number in [0, 1)."""
    return (hashes(values, seed) >> np.uint64(11)).astype(np.float64) * 2.0**-53
