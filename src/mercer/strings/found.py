"""FoundWindows: the windows of strings, and their words at chosen places as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.inputs import Array
from mercer.ops import windows as loops
from mercer.strings.sequences import Sequences

ALL_BITS = (1 << 64) - 1


@dataclass(frozen=True, eq=False)
class FoundWindows:
    """Where the windows of g letters of some strings start: those with a letter at every place."""

    strings: Sequences
    g: int
    starts: Array
    rows: Array

    @staticmethod
    def of(strings: Sequences, g: int) -> FoundWindows:
        n = loops.count_windows(strings.codes, strings.offsets, g)
        starts, rows = np.empty(n, np.int64), np.empty(n, np.int32)
        loops.find_windows(strings.codes, strings.offsets, g, starts, rows)
        return FoundWindows(strings, g, starts, rows)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def size(self) -> int:
        return max(self.strings.size, 1)

    @cached_property
    def loop(self) -> tuple[Array, Array, Array, Array]:
        """As loops take them."""
        length = chunk_length(self.size)
        out = np.empty((-(-self.g // length), len(self)), np.uint16)
        loops.chunks(self.strings.codes, self.starts, self.g, length, self.size, out)
        return out, self.rows, self.strings.codes, self.starts

    def shape(self, j: int, mask: int = ALL_BITS) -> tuple[int, int, int, bool, np.uint64]:
        """Of words of j letters."""
        hashed = not fits(self.size, j)
        cut = np.uint64(mask if hashed else ALL_BITS)
        return self.g, chunk_length(self.size), self.size, hashed, cut

    def words(self, at: Array) -> Array:
        """The word of every window at the places `at`, as a number below 2^64."""
        out = np.empty(len(self), np.uint64)
        loops.words(self.loop[0], at, self.shape(len(at)), out)
        return out

    def bits(self) -> tuple[Array, int]:
        """The letters of every window as bits, and how many a letter has."""
        bits = max(1, (self.size - 1).bit_length())
        out = np.empty((len(self), -(-self.g // (64 // bits))), np.uint64)
        loops.bit_words(self.strings.codes, self.starts, self.g, bits, out)
        return out, bits


def fits(size: int, length: int) -> bool:
    """Whether words of so many letters are numbers below 2^64."""
    return length * math.log2(max(size, 1)) < 63.99


def chunk_length(size: int) -> int:
    """Letters of which at most 1,024 words can be made."""
    return max(1, int(math.log(1024.5) / math.log(size))) if size > 1 else 10
