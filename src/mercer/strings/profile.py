"""Profile: the weight of a pair of windows by how many letters they differ in, and the same as
counts of places where they agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import comb

import numpy as np

from mercer.inputs import Array

MOST_WORDS = 1 << 500  # sums over many pairs of windows, and their squares, stay floats


@dataclass(frozen=True)
class Profile:
    """weights[h] of two windows of g letters that differ in h of them, h = 0, ..., g.

    Examples
    --------
    >>> Profile.mismatch(3, 1, letters=4).weights
    (10, 4, 2, 0)
    >>> Profile.mismatch(3, 1, letters=4).agreeing  # C(3 - h, j) times these, over j
    {1: 2, 3: 4}
    """

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        _check(self.g, max(self.weights))

    @property
    def g(self) -> int:
        return len(self.weights) - 1

    @staticmethod
    def spectrum(k: int) -> Profile:
        """[h = 0]"""
        return Profile((1, *(0,) * k))

    @staticmethod
    def gapped(g: int, m: int) -> Profile:
        """C(g - h, g - m)"""
        return Profile(tuple(comb(g - h, g - m) for h in range(g + 1)))

    @staticmethod
    @lru_cache(maxsize=64)
    def mismatch(k: int, m: int, letters: int) -> Profile:
        """How many words differ in at most m letters from both."""
        size = max(letters, 1)
        _check(k, _near_both(k, m, 0, size))  # before all that is as large
        return Profile(tuple(_near_both(k, m, h, size) for h in range(k + 1)))

    @cached_property
    def agreeing(self) -> dict[int, int]:
        """a_j with weights[h] = sum_j a_j C(g - h, j): j places can be chosen so where both
        agree."""
        found: dict[int, int] = {}
        for j in range(self.g + 1):  # of windows that agree in j letters
            told = sum(a * comb(j, i) for i, a in found.items())
            if rest := self.weights[self.g - j] - told:
                found[j] = rest
        return found

    def places(self, j: int) -> Array:
        """All choices of j of the g places, a row each."""
        chosen = list(combinations(range(self.g), j))
        return np.array(chosen, np.int64).reshape(len(chosen), j)


def _check(g: int, words: int) -> None:
    if words >= MOST_WORDS:
        raise ValueError(
            f"windows of {g} letters share more words than floats can count; take fewer letters, or a smaller m."
        )


def _near_both(k: int, m: int, h: int, letters: int) -> int:
    """Words within m of both of two words of k letters that differ in h.

    Of the h places, a are as in the first, b as in the second, the others as in neither; t of the
    other places differ from both.
    """
    total, least = 0, max(h - m, 0)  # as a word that is within m of one has to be
    for a in range(least, h + 1):
        for b in range(least, h - a + 1):
            neither = comb(h, a) * comb(h - a, b) * max(letters - 2, 0) ** (h - a - b)
            most = min(m - (h - a), m - (h - b), k - h)
            total += neither * sum(
                comb(k - h, t) * (letters - 1) ** t for t in range(max(most, -1) + 1)
            )
    return total
