"""Layouts: the features of a kernel of strings by number: which of them a string has, with what
weight, and what each is called."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import cholesky_banded

from mercer.inputs import Array
from mercer.ops import windows as loops
from mercer.strings.alphabet import Alphabet
from mercer.strings.found import FoundWindows
from mercer.strings.profile import Profile
from mercer.strings.sequences import Sequences

OTHER = "?"  # stands for the letter that all unknown ones are


@dataclass(frozen=True, eq=False)
class Emitted:
    """Weights of features of strings: string rows[t] has values[t] of feature ids[t], perhaps in
    several parts."""

    rows: Array
    ids: Array
    values: Array

    @staticmethod
    def joined(parts: list[Emitted]) -> Emitted:
        rows, ids, values = (
            np.concatenate([getattr(p, name) for p in parts] or [np.empty(0, dtype)])
            for name, dtype in (("rows", np.int64), ("ids", np.int64), ("values", np.float64))
        )
        return Emitted(rows, ids, values)


class Layout(Protocol):
    """The features of a kernel of strings."""

    @property
    def width(self) -> int:
        """How many there are."""

    def emit(self, x: Sequences) -> Emitted:
        """Those that strings have."""

    def name(self, feature: int) -> str:
        """What one is called."""


def spelled(word: int, length: int, letters: Alphabet) -> str:
    """A word of its number.

    >>> spelled(6, 2, Alphabet("ACGT"))
    'CG'
    """
    size, out = max(letters.size, 1), ""
    for _ in range(length):
        word, digit = divmod(word, size)
        out = (letters.letters + OTHER)[digit] + out
    return out


@dataclass(frozen=True)
class GappedLayout:
    """How often words of j letters lie at each choice of j of g places of a window."""

    letters: Alphabet
    g: int
    j: int

    @cached_property
    def places(self) -> Array:
        return Profile((0,) * (self.g + 1)).places(self.j)

    @property
    def words(self) -> int:
        return max(self.letters.size, 1) ** self.j

    @property
    def width(self) -> int:
        return math.comb(self.g, self.j) * self.words

    def emit(self, x: Sequences) -> Emitted:
        found = FoundWindows.of(x, self.g)
        ids = [
            found.words(at).astype(np.int64) + s * self.words for s, at in enumerate(self.places)
        ]
        n = len(found) * len(ids)
        return Emitted(
            np.tile(found.rows.astype(np.int64), len(ids)), np.concatenate(ids), np.ones(n)
        )

    def name(self, feature: int) -> str:
        s, word = divmod(feature, self.words)
        out = ["."] * self.g
        for p, letter in zip(self.places[s], spelled(word, self.j, self.letters), strict=True):
            out[p] = letter
        return "".join(out)


@dataclass(frozen=True)
class NearLayout:
    """How many windows are within m letters of each word of k letters."""

    letters: Alphabet
    k: int
    m: int

    @property
    def width(self) -> int:
        return max(self.letters.size, 1) ** self.k

    def emit(self, x: Sequences) -> Emitted:
        found = FoundWindows.of(x, self.k)
        first = np.empty(len(found) + 1, np.int64)
        of = (found.strings.codes, found.starts, self.k, self.m, found.size)
        ids = np.empty(loops.neighbours(*of, np.empty(0, np.int64), first), np.int64)
        loops.neighbours(*of, ids, first)
        return Emitted(
            np.repeat(found.rows.astype(np.int64), np.diff(first)), ids, np.ones(len(ids))
        )

    def name(self, feature: int) -> str:
        return spelled(feature, self.k, self.letters)


@dataclass(frozen=True)
class PlacedLayout:
    """Words of 1, ..., d letters at each place of strings of one length; where words may be shifted,
    at the places of a root of the weights between places."""

    letters: Alphabet
    weights: tuple[float, ...]  # of words of 1, ..., d letters
    shifts: tuple[float, ...]  # of places 0, 1, ... apart
    length: int

    def _starts(self) -> list[int]:
        size, starts = max(self.letters.size, 1), [0]
        for n in range(1, len(self.weights) + 1):
            starts.append(starts[-1] + max(self.length - n + 1, 0) * size**n)
        return starts

    @property
    def width(self) -> int:
        return self._starts()[-1]

    def emit(self, x: Sequences) -> Emitted:
        parts, starts = [], self._starts()
        for n, weight in enumerate(self.weights, 1):
            found = FoundWindows.of(x, n)
            at = found.starts - x.offsets[found.rows]
            words = max(self.letters.size, 1) ** n
            ids = starts[n - 1] + at * words + found.words(np.arange(n)).astype(np.int64)
            rows, root = found.rows.astype(np.int64), self._root(n)
            for s in range(min(len(root), max(self.length - n + 1, 0))):
                far = at >= s
                value = math.sqrt(weight) * root[s, at[far] - s]
                parts.append(Emitted(rows[far], ids[far] - s * words, value))
        return Emitted.joined(parts)

    def _root(self, n: int) -> Array:
        """L of L L' = the weights between places, as bands: [s, i] is L[i + s, i]."""
        places = max(self.length - n + 1, 1)
        bands = np.repeat(np.array(self.shifts[: max(places, 1)])[:, None], places, axis=1)
        return np.asarray(cholesky_banded(bands, lower=True))

    def name(self, feature: int) -> str:
        starts = self._starts()
        n = next(i for i, start in enumerate(starts) if feature < start)
        place, word = divmod(feature - starts[n - 1], max(self.letters.size, 1) ** n)
        return f"{spelled(word, n, self.letters)} at {place}"
