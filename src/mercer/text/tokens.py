"""Documents as words or characters in lower case: what n-grams are made of, the same as
scikit-learn's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from mercer.inputs import Array
from mercer.text import normal, unicode
from mercer.text.documents import Part

SLACK = 8  # bytes behind the text, so that loops may read four at a time
WORDS, CHARS, WITHIN = "words", "chars", "within_words"


@dataclass(frozen=True, eq=False)
class Tokens:
    """Normal text: run j is text[starts[j] : starts[j + 1]], of document i are runs docs[i] to
    docs[i + 1].

    Words and runs within words end with a blank, and one stands before the first; a document of
    `chars` is one run.
    """

    text: Array
    starts: Array
    docs: Array

    @property
    def n_rows(self) -> int:
        return len(self.docs) - 1


def tokens(part: Part, unit: str, lowercase: bool) -> Tokens:
    """The words (two characters or more of `\\w`), the characters, or the runs without white space
    of some documents.

    >>> t = tokens(Part(0, ["The  cat", "İs"]), "words", True)
    >>> bytes(t.text[1 : t.starts[-1]]), t.docs.tolist()
    (b'the cat ', [0, 2, 2])
    """
    text, offsets = part.utf8()
    span = text[offsets[0] : offsets[-1]]
    plain = not len(span) or int(span.max()) < unicode.ASCII
    kind = np.zeros(len(offsets) - 1, np.uint8)
    table = (unicode.ascii_table if plain else unicode.table)(lowercase)
    if not plain:
        normal.kinds(text, offsets, table, kind)
        if kind.max() >= normal.ODD:
            text, offsets = _lowered(part, text, offsets, kind)
    size = int(offsets[-1] - offsets[0])
    room = (1 if plain else 2) * size + len(kind) + 2
    out = np.empty(room + SLACK, np.uint8)
    if unit == CHARS:
        starts = np.empty(len(offsets), np.int32)
        normal.squeezed(text, offsets, table, out, starts)
        return _ended(out, starts, np.arange(len(offsets), dtype=np.int32))
    how = _which(unit, lowercase)
    docs = np.empty(len(offsets), np.int32)
    starts = np.empty((size + len(kind)) // (1 + int(how[2])) + 2, np.int32)
    if plain:
        normal.plain_runs(text, offsets, how, out, starts, docs)
    else:
        normal.runs(text, offsets, kind, table, how, out, starts, docs)
    return _ended(out, starts[: docs[-1] + 1], docs)


@cache
def _which(unit: str, lowercase: bool) -> Array:
    """What the loop is told of the characters that belong together."""
    mask, value, least = (unicode.WORD, unicode.WORD, 2) if unit == WORDS else (unicode.SPACE, 0, 1)
    table = unicode.ascii_table(lowercase)
    fold = np.full(256, -1, np.int32)
    fold[: len(table)] = np.where(table & mask == value, table & unicode.POINT, -1)
    return np.concatenate([np.array([mask, value, least], np.int32), fold])


def _ended(out: Array, starts: Array, docs: Array) -> Tokens:
    out[starts[-1] : starts[-1] + SLACK] = 0
    return Tokens(out, starts, docs)


def _lowered(part: Part, text: Array, offsets: Array, kind: Array) -> tuple[Array, Array]:
    """The documents with those in lower case, by Python, of which no table tells it; kinds become
    those of the result."""
    broken = np.flatnonzero(kind == normal.BROKEN)
    if len(broken):
        raise ValueError(part.refused(int(broken[0])))
    found = [
        text[a:b].tobytes()
        for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]
    for i in np.flatnonzero(kind == normal.ODD).tolist():
        found[i] = found[i].decode().lower().encode()
        kind[i] = normal.WIDE
    places = np.zeros(len(offsets), np.int64)
    np.cumsum(np.fromiter(map(len, found), np.int64, len(found)), out=places[1:])
    return np.frombuffer(b"".join(found), np.uint8), places
