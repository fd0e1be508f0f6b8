"""Columns of sequences (DNA, RNA, proteins): how they are told from texts, and the words of their
letters as sparse rows: anywhere, with gaps, or at their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array
from mercer.invariants import Each, Text, Whole, check
from mercer.ops.windows import NONE
from mercer.store import register
from mercer.strings.alphabet import NAMED, Alphabet
from mercer.strings.sequences import Sequences
from mercer.tables.arrow import Column, pc

PROBED = 2_000  # cells that tell
NEARLY_ALL = 0.95  # of the letters that are known, which an alphabet must have
MOSTLY = 0.5  # of all letters
ANY = {"dna": "N-.", "rna": "N-.", "protein": "X-."}  # runs of these stand for what is not known
MIN_LETTERS = {"dna": 10, "rna": 10, "protein": 25}  # of a sequence, on average
AMBIGUOUS = {"dna": "RYSWKMBDHVN-.", "rna": "RYSWKMBDHVN-.", "protein": "XBZJUO*-."}
MIN_KINDS = 8  # letters that proteins have at least: fewer are another code
MAX_COLUMNS = 1 << 23
PART_LETTERS = 1 << 21  # that become rows at once


def alphabet_of(cells: Column) -> str | None:
    """The name of the alphabet that these texts are sequences of, or None.

    >>> from mercer.tables.arrow import pa
    >>> alphabet_of(pa.array(["ACGTTGCAACGTN", "ggatctacgatta"])), alphabet_of(pa.array(["a word", "cat"]))
    ('dna', None)
    """
    bare = _bare(cells)
    some = "".join(bare)
    length = len(some) / max(1, len(bare))
    if not some or not some.isascii() or not re.fullmatch(r"[A-Za-z*.-]+", some):
        return None
    count = np.bincount(np.frombuffer(some.upper().encode(), np.uint8), minlength=128)
    upper = sum(map(some.count, NAMED["protein"])) >= NEARLY_ALL * sum(
        map(str.isalpha, some.replace("X", ""))
    )
    for name, letters in NAMED.items():
        own, more, gaps = (
            count[[ord(c) for c in of]].sum() for of in (letters, AMBIGUOUS[name], ANY[name])
        )
        enough = own >= max(NEARLY_ALL * (len(some) - gaps), MOSTLY * len(some))
        enough = enough and own + more == len(some)
        kinds = np.count_nonzero(count) >= (MIN_KINDS if name == "protein" else 2)
        if enough and kinds and (upper or name != "protein") and length >= MIN_LETTERS[name]:
            return name
    return None


def _bare(cells: Column) -> list[str]:
    found = pc.utf8_trim_whitespace(cells.drop_null().slice(0, PROBED))
    return [str(c) for c in found.to_pylist()]


def common_length(cells: Column) -> int:
    """The length that nearly all sequences have, or 0.

    >>> from mercer.tables.arrow import pa
    >>> common_length(pa.array(["ACGT", "AAAA"])), common_length(pa.array(["ACGT", "A"]))
    (4, 0)
    """
    sizes = pc.utf8_length(cells).to_numpy(zero_copy_only=False)
    sizes = sizes[sizes > 0]
    most = int(np.bincount(sizes).argmax()) if len(sizes) else 0
    return most if len(sizes) and np.mean(sizes == most) >= NEARLY_ALL else 0


@register("tables.SequenceWords")
@dataclass(frozen=True, eq=False)
class SequenceWords:
    """Words of the letters of sequences as sparse rows (n, D) of length 1: how often each occurs.

    Every length of words is a block of its own, whose part of a row has length 1 before all are
    brought to that together: the features of a sum of normalised spectrum kernels.

    Parameters
    ----------
    alphabet : {"dna", "rna", "protein"}
        Other letters are in no word.
    lengths : tuple of int
        Of words.
    gaps : int
        Letters of a word that may be any: words of `lengths[0]` letters, with all choices of them.
    places : int
        0, or at how many places words count: a word at one is not that at another.
    first : int
        The first of these places; words before it are not counted.
    wide : int
        Places that are one: a word anywhere in a region of so many.
    both : bool
        Whether words of the reverse complement count too.

    Examples
    --------
    >>> f = SequenceWords("dna", (2,))
    >>> f.transform(["ACAC"]).toarray().nonzero()[1].tolist(), f.name(1), f.name(4)
    ([1, 4], 'AC', 'CA')
    """

    alphabet: str
    lengths: tuple[int, ...]
    gaps: int = 0
    places: int = 0
    both: bool = False
    first: int = 0
    wide: int = 1

    must = dict(
        alphabet=Text(*NAMED),
        lengths=Each(Whole(1, 64), least=1),
        gaps=Whole(0, 64),
        places=Whole(0, 1 << 20),
        first=Whole(0, 1 << 20),
        wide=Whole(1, 1 << 20),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        if self.gaps and (len(self.lengths) > 1 or self.gaps >= self.lengths[0]):
            return "has gaps in words of several lengths, or in all letters of a word"
        D = self.n_features_out_
        return None if D <= MAX_COLUMNS else f"has {D:,} columns, more than {MAX_COLUMNS:,}"

    @cached_property
    def letters(self) -> Alphabet:
        return Alphabet.named(self.alphabet, None, "skip", "both" if self.both else "one")

    @property
    def patterns(self) -> list[tuple[int, ...]]:
        """The places in a window whose letters count, block by block."""
        if not self.gaps:
            return [tuple(range(k)) for k in self.lengths]
        g = self.lengths[0]
        return list(combinations(range(g), g - self.gaps))

    @property
    def _regions(self) -> int:
        """Of places; 1 where words count anywhere."""
        return -(-self.places // self.wide) or 1

    def _width(self, pattern: tuple[int, ...]) -> int:
        return int(self.letters.size ** len(pattern)) * self._regions

    @property
    def n_features_out_(self) -> int:
        A, p = len(NAMED[self.alphabet]), self._regions
        if self.gaps:
            g = self.lengths[0]
            return comb(g, self.gaps) * A ** (g - self.gaps) * p
        return sum(A**k for k in self.lengths) * p

    def fit_transform(self, cells: Column | list[str]) -> sp.csr_matrix:
        """As `transform`: there is nothing to learn."""
        return self.transform(cells)

    def transform(self, cells: Column | list[str]) -> sp.csr_matrix:
        """Sparse rows (n, D) of float32."""
        items = cells if isinstance(cells, list) else cells.to_pylist()
        most = PART_LETTERS // len(self.patterns)
        parts = [self._rows(items[at]) for at in _parts(items, most)]
        return sp.vstack(parts, "csr") if len(parts) != 1 else parts[0]

    def _rows(self, items: list[str]) -> sp.csr_matrix:
        found = self.letters.encode(items)
        if self.both:
            found = found.beside(found.reversed(self.letters.complement))
        owner = np.repeat(np.arange(len(found)), found.lengths).astype(np.int32)
        sides = [(self._block(found, owner, p), self._width(p)) for p in self.patterns]
        if self.gaps:  # all choices of gaps are one block
            begins = np.cumsum([0, *(width for _, width in sides)])
            rows = np.concatenate([r for (r, _), _ in sides])
            columns = np.concatenate(
                [c + at for ((_, c), _), at in zip(sides, begins, strict=False)]
            )
            sides = [((rows, columns), int(begins[-1]))]
        blocks = [_length_one(_counted(r, c, len(items), width)) for (r, c), width in sides]
        return blocks[0] if len(blocks) == 1 else _length_one(sp.hstack(blocks, "csr"))

    def _block(self, s: Sequences, owner: Array, pattern: tuple[int, ...]) -> tuple[Array, Array]:
        """Rows and columns, within their block, of all windows with letters at the places of the
        pattern."""
        span = self.lengths[0] if self.gaps else len(pattern)
        n = max(0, len(s.codes) - span + 1)
        codes, ok = np.zeros(n, np.int64), owner[span - 1 : span - 1 + n] == owner[:n]
        for p in pattern:
            letters = s.codes[p : p + n]
            ok &= letters != NONE
            codes = codes * s.size + letters
        at = np.flatnonzero(ok)
        rows, columns = owner[at], codes[at]
        if self.places:
            place = at - s.offsets[rows] - self.first
            inside = (place >= 0) & (place < self.places)
            rows, columns = rows[inside], columns[inside]
            columns = columns + place[inside] // self.wide * s.size ** len(pattern)
        return rows, columns

    def name(self, column: int) -> str:
        """The word behind a column, with dots for its gaps, and its place from 1 on."""
        for pattern in self.patterns:
            width = self._width(pattern)
            if column < width:
                break
            column -= width
        place, code = divmod(column, self.letters.size ** len(pattern))
        word = ["."] * (self.lengths[0] if self.gaps else len(pattern))
        for p in reversed(pattern):
            code, letter = divmod(code, self.letters.size)
            word[p] = self.letters.letters[letter]
        shown = "".join(word).strip(".") if self.gaps else "".join(word)
        return f"{shown} at {self._place(place)}" if self.places else shown

    def _place(self, region: int) -> str:
        """Of a column, from 1 on."""
        begin = self.first + region * self.wide
        last = min(begin + self.wide, self.first + self.places)
        return str(last) if self.wide == 1 else f"{begin + 1} to {last}"


def _parts(items: list[str], most: int) -> Iterator[slice]:
    """Sequences in parts of about so many letters; one empty part where there is none."""
    ends = np.cumsum([len(item) for item in items])
    first = 0
    while first < len(items):
        base = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, base + most, side="right")))
        yield slice(first, last)
        first = last
    if not items:
        yield slice(0, 0)


def _counted(rows: Array, columns: Array, n: int, width: int) -> sp.csr_matrix:
    """How often each column comes in each row."""
    ones = np.ones(len(rows), np.float32)
    out = sp.csr_matrix((ones, (rows, columns.astype(np.int32))), shape=(n, width))
    out.sum_duplicates()
    return out


def _length_one(X: sp.csr_matrix) -> sp.csr_matrix:
    """Rows to length 1, in place; empty ones stay."""
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    sizes = np.sqrt(np.bincount(row, X.data.astype(np.float64) ** 2, minlength=X.shape[0]))
    X.data /= sizes[row].astype(X.dtype)
    return X
