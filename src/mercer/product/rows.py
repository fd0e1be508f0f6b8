"""Rows as the learners see them: numbers in one array, in memory or on disk, with what else is known of each row."""
from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.stats.sample import mix


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
        return self.take(np.sort(np.argsort(hashes(self.number, seed), kind="stable")[:n]))


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
