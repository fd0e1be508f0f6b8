"""Which n-grams are counted, and in hashed columns how often."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Counts, Is, Text, Whole, check
from mercer.store import register
from mercer.text import hashing
from mercer.text.documents import Part
from mercer.text.rows import WIDEST, Buckets, Tally, tallied
from mercer.text.tokens import CHARS, WITHIN, WORDS, Tokens, tokens

LONGEST = 1 << 16  # symbols of an n-gram


@register("text.Grams")
@dataclass(frozen=True, eq=False)
class Grams:
    """The n-grams of documents: of `least` to `most` words, characters, or characters within
    words."""

    unit: str
    least: int
    most: int
    lowercase: bool = True

    must = dict(unit=Text(WORDS, CHARS, WITHIN), least=Whole(1, LONGEST), most=Whole(1, LONGEST))

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        return "has least > most" if self.least > self.most else None

    @property
    def orders(self) -> tuple[int, int]:
        return self.least, self.most

    @property
    def between(self) -> str:
        """What stands between the symbols of an n-gram."""
        return " " if self.unit == WORDS else ""

    def same(self, other: Grams) -> bool:
        return vars(self) == vars(other)

    def tokens(self, part: Part) -> Tokens:
        return tokens(part, self.unit, self.lowercase)


@register("text.HashedColumns")
@dataclass(frozen=True, eq=False)
class HashedColumns:
    """Columns by MurmurHash3 of an n-gram's UTF-8, as scikit-learn's; `documents` (classes, width)
    counts those that have a column, where that is asked for."""

    grams: Grams
    width: int
    documents: Array | None = None

    must = dict(
        grams=Is("Grams"), width=Whole(1, WIDEST + 1), documents=Counts(None, "width") | None
    )

    def __post_init__(self) -> None:
        check(self)

    def tally(self, part: Part, signed: bool, keep: bool = False) -> Tally:
        """The counts of the n-grams of some documents; with `keep` also the columns in which they
        cancel each other."""
        t = self.grams.tokens(part)
        emit: Any = hashing.word_keys if self.grams.unit == WORDS else hashing.char_keys
        how = np.array(
            [*self.grams.orders, self.width, signed, self.grams.unit == WITHIN], np.int64
        )
        given = partial(emit, t.text, t.starts, t.docs, how)
        return tallied(given, t.n_rows, Buckets(self.width, keep), self.grams.most)

    def ready(self) -> None:
        """There is nothing to make before there are threads."""

    def counted(self, documents: Array) -> HashedColumns:
        """With documents (classes, width) more than before."""
        return replace(
            self, documents=documents if self.documents is None else self.documents + documents
        )

    def by_column(self) -> Array | None:
        """The documents (classes, width) of columns, where they were counted."""
        return self.documents

    def names(self) -> list[str]:
        """A name for every column: its n-grams may be many."""
        return [f"{self.grams.unit}{i}" for i in range(self.width)]
