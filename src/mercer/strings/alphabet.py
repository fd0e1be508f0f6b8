"""Alphabet: which letters a string may have, how case, unknown letters and strands are taken; and
letters as codes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.windows import NONE
from mercer.strings.sequences import Sequences, code_points

NAMED = {"dna": "ACGT", "rna": "ACGU", "protein": "ACDEFGHIKLMNPQRSTVWY"}
MOST_LETTERS = NONE - 1  # of codes of two bytes, the last of which is no letter
PAIRED = ("AT", "CG", "AU", "RY", "KM", "BV", "DH")  # bases and ambiguity codes that pair
_CHOICES = {
    "case": (None, "fold", "keep"),
    "unknown": ("skip", "letter", "raise"),
    "strands": ("one", "both"),
}


@dataclass(frozen=True)
class Alphabet:
    """Letters in the order of their codes, and the rules for what comes.

    Parameters
    ----------
    letters : str
        Each once.
    fold : bool, default=False
        Whether lower-case letters count as upper-case ones.
    unknown : {"skip", "letter", "raise"}, default="skip"
        Letters that are not among them match nothing, are all one letter more, or are refused.
    both : bool, default=False
        Whether a string counts together with its reverse complement.

    Examples
    --------
    >>> dna = Alphabet.named("dna")
    >>> dna.encode(["acgN"]).codes, dna.size
    (array([    0,     1,     2, 65535], dtype=uint16), 4)
    """

    letters: str
    fold: bool = False
    unknown: str = "skip"
    both: bool = False

    @staticmethod
    def named(
        name: str, case: str | None = None, unknown: str = "skip", strands: str = "one"
    ) -> Alphabet:
        """Of a name ("dna", "rna", "protein"), which folds case unless told to keep it, or of
        letters."""
        fold = case == "fold" or (case is None and name in NAMED)
        letters = NAMED.get(name, _upper(name) if fold else name)
        return _known(letters, fold, unknown, strands == "both")

    @property
    def size(self) -> int:
        """How many letters there are, with the one that all unknown ones are."""
        return len(self.letters) + (self.unknown == "letter")

    def encode(self, items: list[Any]) -> Sequences:
        """Strings as codes below `size`; 65535 is no letter."""
        points, offsets = code_points(items)
        wide = points.dtype != np.uint8
        codes = self._codes_of(points) if wide else self._table[points]
        if self.unknown == "raise" and (codes == NONE).any():
            self._refuse(items, offsets, int(np.argmax(codes == NONE)))
        return Sequences(codes, offsets, self.size)

    @cached_property
    def _table(self) -> Array:
        """The code of every byte."""
        return self._codes_of(np.arange(256))

    def _codes_of(self, points: Array) -> Array:
        known = np.array([ord(c) for c in self.letters], np.int64)
        if self.fold:
            points = np.where((points >= 97) & (points <= 122), points - np.uint8(32), points)
        out = np.full(len(points), len(known) if self.unknown == "letter" else NONE, np.uint16)
        if len(known):
            order = np.argsort(known)
            at = np.minimum(np.searchsorted(known[order], points), len(known) - 1)
            found = known[order][at] == points
            out[found] = order[at[found]]
        return out

    @cached_property
    def complement(self) -> Array:
        """The code of every letter's partner; of an unknown one itself."""
        partner = {a: b for pair in PAIRED for a, b in (tuple(pair), tuple(pair[::-1]))}
        if "U" not in _upper(self.letters):
            partner["A"] = "T"
        out = np.arange(NONE + 1, dtype=np.uint16)
        for i, letter in enumerate(self.letters):
            other = partner.get(letter.upper(), letter)
            other = other if letter.isupper() else other.lower()
            if other not in self.letters:
                raise ValueError(
                    f"strands='both' needs the partner {other!r} of {letter!r} in the alphabet {self.letters!r}; "
                    "give alphabet='dna'."
                )
            out[i] = self.letters.index(other)
        for i in np.flatnonzero(out[out] != np.arange(NONE + 1)).tolist():
            raise ValueError(
                f"strands='both' needs letters in pairs, but the alphabet {self.letters!r} has {self.letters[i]!r} beside "
                f"{self.letters[out[out[i]]]!r}; give alphabet='dna' or 'rna'."
            )
        return out

    def _refuse(self, items: list[Any], offsets: Array, at: int) -> None:
        row = int(np.searchsorted(offsets, at, side="right")) - 1
        place = at - int(offsets[row])
        letter = items[row][place : place + 1]
        raise ValueError(
            f"X has the letter {letter!r} at place {place} of row {row}, which is not in the alphabet {self.letters!r}; "
            "give unknown='skip' or 'letter', or an alphabet that has it."
        )


@lru_cache(maxsize=256)
def _known(letters: str, fold: bool, unknown: str, both: bool) -> Alphabet:
    return Alphabet(letters, fold, unknown, both)


def learn(lists: Iterable[list[Any]], *, fold: bool) -> str:
    """The letters that occur, in order.

    >>> learn([["banana"], [b"Band"]], fold=True)
    'ABDN'
    """
    found: set[int] = set()
    for items in lists:
        points, _ = code_points(items)
        seen = np.bincount(points).nonzero()[0] if points.dtype == np.uint8 else np.unique(points)
        found.update(seen.tolist())
    letters = "".join(map(chr, sorted(found)))
    return "".join(sorted(set(_upper(letters)))) if fold else letters


def _upper(letters: str) -> str:
    """ASCII letters alone: others may become two."""
    return "".join(c.upper() if c.isascii() else c for c in letters)


def check_settings(alphabet: Any, **settings: Any) -> None:
    """Refuse what is no alphabet, or no rule."""
    for name, value in settings.items():
        if value not in _CHOICES[name]:
            allowed = ", ".join(map(repr, _CHOICES[name]))
            raise ValueError(f"{name} must be one of {allowed}, got {value!r}.")
    if alphabet is None:
        return
    if not isinstance(alphabet, str):
        raise ValueError(
            f"alphabet must be None, 'dna', 'rna', 'protein' or text of its letters, got {alphabet!r:.60}."
        )
    if alphabet not in NAMED and alphabet.lower() in NAMED:
        raise ValueError(
            f"alphabet={alphabet!r} would be the letters {', '.join(alphabet)}; give {alphabet.lower()!r} for that alphabet, "
            f"or {''.join(sorted(alphabet))!r} for these letters."
        )
    found = Alphabet.named(alphabet, **settings)
    if len(set(found.letters)) < len(found.letters):
        twice = next(c for c in found.letters if found.letters.count(c) > 1)
        raise ValueError(f"alphabet has the letter {twice!r} twice; give every letter once.")
    check_size(found.letters, found.unknown)
    if found.both:
        found.complement  # noqa: B018  asks for every partner


def check_size(letters: str, unknown: str) -> None:
    most = MOST_LETTERS - (unknown == "letter")
    if len(letters) > most:
        raise ValueError(
            f"alphabet has {len(letters):,} letters, and at most {most:,} are taken; use mercer.NGrams for such texts."
        )
