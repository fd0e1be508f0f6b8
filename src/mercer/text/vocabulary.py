"""Vocabularies: n-grams that have columns of their own, learnt from documents or given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Counts, Ints, Is, Whole, check
from mercer.store import register
from mercer.text import trie_loops as loops
from mercer.text.documents import Part
from mercer.text.grams import Grams
from mercer.text.rows import WIDEST, Buckets, Tally, tallied
from mercer.text.tokens import WITHIN, WORDS
from mercer.text.trie import Growth, Trie, joined, packed


@register("text.Vocabulary")
@dataclass(frozen=True, eq=False)
class Vocabulary:
    """A trie of n-grams, and the column of each, -1 for one that has none: a beginning of another,
    or one too rare or too common.

    `documents` (classes, nodes) and `totals` (nodes) count the documents that have an n-gram and
    how often it comes, where that is asked for. `whole` says whether all n-grams that came are
    still here.
    """

    grams: Grams
    trie: Trie
    columns: Array  # int32 (nodes,)
    width: int
    documents: Array | None = None
    totals: Array | None = None
    whole: bool = True

    must = dict(
        grams=Is("Grams"),
        trie=Is("Trie"),
        columns=Ints("nodes", low=-1, below="width"),
        width=Whole(0, WIDEST + 1),
        documents=Counts(None, "nodes") | None,
        totals=Counts("nodes") | None,
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        if len(self.columns) != len(self.trie):
            return f"has {len(self.columns)} columns for {len(self.trie)} n-grams"
        taken = self.columns[self.columns >= 0]
        whole = len(taken) == self.width and (np.bincount(taken, minlength=self.width) == 1).all()
        return None if whole else "has columns without an n-gram, or with two"

    def tally(self, part: Part, signed: bool = False, keep: bool = False) -> Tally:
        """The counts of the n-grams of some documents."""
        g = self.grams
        given = self.trie.numbered(g.tokens(part), g.unit)
        how = np.array([*g.orders, g.unit == WITHIN, self.trie.n_symbols], np.int64)
        emit = partial(loops.find_keys, *given, how, self.trie.paths, self.columns)
        return tallied(emit, len(given[2]) - 1, Buckets(self.width), g.most)

    def must_have_columns(self) -> None:
        """Refuse a vocabulary that no n-gram was selected for."""
        if not self.width:
            came = 0 if self.documents is None else int(self.documents.any(0).sum())
            raise ValueError(
                f"no n-gram is left to be a column, of {came} that came; "
                "give documents with words, a lower min_df or a higher max_df."
            )

    def pruned(self) -> Vocabulary:
        """Without the n-grams that have no column, unless others begin with them: what can be
        learnt no more."""
        trie, left = self.trie.cut(self.columns >= 0)
        documents = None if self.documents is None else self.documents[:, left]
        totals = None if self.totals is None else self.totals[left]
        return Vocabulary(
            self.grams, trie, self.columns[left], self.width, documents, totals, False
        )

    def ready(self) -> None:
        """Make the tables that loops need, before there are threads."""
        self.must_have_columns()
        _ = self.trie.paths, self.trie.words if self.grams.unit == WORDS else self.trie.points

    def by_column(self) -> Array | None:
        """The documents (classes, width) of columns, where they were counted."""
        if self.documents is None:
            return None
        out = np.zeros((len(self.documents), self.width), np.int64)
        out[:, self.columns[self.columns >= 0]] = self.documents[:, self.columns >= 0]
        return out

    def names(self) -> list[str]:
        """The n-grams of columns, in order."""
        out = [""] * self.width
        columns = self.columns.tolist()
        for column, name in zip(columns, self.trie.names(self.grams.between), strict=True):
            if column >= 0:
                out[column] = name
        return out

    def name_of(self, column: int) -> list[tuple[str, int, int]]:
        """The n-gram of a column, the documents that had it, and 1."""
        at = int(np.flatnonzero(self.columns == column)[0])
        path: list[int] = []
        while at >= (w := self.trie.n_symbols):
            p = int(self.trie.prefixes[at - w])
            path.append(int(self.trie.symbols[at - w]))
            at = -1 - p if p < 0 else w + p
        name = self.grams.between.join(self.trie.symbol(s) for s in [at, *reversed(path)])
        seen = 0 if self.documents is None else int(self.documents[:, self.columns == column].sum())
        return [(name, seen, 1)]

    def counted(self, documents: Array) -> Vocabulary:
        """With documents (classes, width) counted by columns, more than before."""
        new = np.zeros((len(documents), len(self.trie)), np.int64)
        new[:, self.columns >= 0] = documents[:, self.columns[self.columns >= 0]]
        return replace(self, documents=new if self.documents is None else self.documents + new)


@dataclass(frozen=True, eq=False)
class Pruning:
    """Which n-grams of a vocabulary get columns: those in `min_df` to `max_df` documents (numbers,
    or shares where they are floats), of these the `max_features` most frequent."""

    min_df: float = 1
    max_df: float = 1.0
    max_features: int | None = None
    floats: bool = (
        False  # whether the most frequent are found as floats, as scikit-learn's tf-idf does
    )

    @property
    def prunes(self) -> bool:
        """Whether n-grams may be left out."""
        all_high = not isinstance(self.max_df, Integral) and self.max_df == 1.0
        all_low = self.min_df <= (1 if isinstance(self.min_df, Integral) else 0.0)
        return self.max_features is not None or not (all_low and all_high)

    def kept(self, trie: Trie, documents: Array, totals: Array | None, n: int) -> Array:
        """1 for every n-gram that gets a column, 0 for others; n is the number of documents."""
        out = documents > 0  # what is a beginning only has none
        if not self.prunes:
            return out
        low, high = (v if isinstance(v, Integral) else v * n for v in (self.min_df, self.max_df))
        out &= (documents <= high) & (documents >= low)
        if totals is not None and self.max_features is not None and out.sum() > self.max_features:
            columns, width = trie.columns(out)
            at = np.empty(width, np.int64)
            at[columns[out]] = np.flatnonzero(out)
            # Ties are broken as NumPy does, so that the same stay as in scikit-learn.
            often = totals[at].astype(np.float64 if self.floats else np.int64)
            most = (-often).argsort()[: self.max_features]
            out = np.zeros_like(out)
            out[at[most]] = True
        return out


@dataclass(frozen=True, eq=False)
class Learnt:
    """A trie, not yet in order, with the documents (classes, nodes) of its n-grams, and how often
    each comes where that is needed."""

    trie: Trie
    documents: Array
    totals: Array | None = None


def count(g: Growth, classes: Array | None, totals: str) -> Learnt:
    """What some documents teach: of classes 0 and 1 where these are given; `totals` are "none",
    "counts", or "presence"."""
    documents, nodes = g.documents[None], g.rows[::2]
    if classes is not None:
        ones = np.repeat(classes, np.diff(g.indptr)[: len(classes)]) == 1
        second = np.bincount(nodes[: len(ones)][ones], minlength=len(g.trie))
        documents = np.stack([g.documents - second, second])
    sums = None
    if totals == "presence":
        sums = g.documents
    elif totals == "counts":
        sums = np.bincount(nodes, g.rows[1::2], minlength=len(g.trie)).astype(np.int64)
    return Learnt(g.trie, documents, sums)


def together(parts: Sequence[Learnt]) -> tuple[Learnt, list[Array]]:
    """All of them as one, in order, and where the nodes of each are there."""
    trie, to = joined([p.trie for p in parts])
    documents = np.zeros((len(parts[0].documents), len(trie)), np.int64)
    totals = None if parts[0].totals is None else np.zeros(len(trie), np.int64)
    for p, places in zip(parts, to, strict=True):
        documents[:, places] += p.documents
        if totals is not None and p.totals is not None:
            totals[places] += p.totals
    return Learnt(trie, documents, totals), to


def chosen(grams: Grams, found: Learnt, selection: Pruning, n: int) -> Vocabulary:
    """The vocabulary of what n documents taught, with columns for the n-grams that are selected:
    none where none are."""
    kept = selection.kept(found.trie, found.documents.sum(0), found.totals, n)
    columns, width = found.trie.columns(kept)
    return Vocabulary(grams, found.trie, columns, width, found.documents, found.totals)


def placed(g: Growth, columns: Array, width: int, most: int) -> Tally:
    """The rows of documents whose n-grams have these columns (nodes,), -1 for none."""
    emit = partial(loops.row_keys, g.rows, g.indptr, columns)
    return tallied(emit, len(g.indptr) - 1, Buckets(width), most)


def given(grams: Grams, vocabulary: Mapping[str, int] | Iterable[str]) -> Vocabulary:
    """The vocabulary of n-grams with columns, or of n-grams whose columns are in their order; a set
    is put in order first.

    >>> given(Grams("words", 1, 2), ["new york", "york"]).names()
    ['new york', 'york']
    """
    names, columns = _listed(vocabulary)
    split = [name.split(" ") if grams.unit == WORDS else list(name) for name in names]
    words = sorted({word for path in split for word in path})
    rank = {word: i for i, word in enumerate(words)}
    nodes: dict[tuple[int, int], int] = {}
    ends = [_walk([rank[word] for word in path], nodes) for path in split]
    keys = np.array(list(nodes), np.int32).reshape(-1, 2)
    trie = Trie(*packed(words), keys[:, 0].copy(), keys[:, 1].copy())
    out = np.full(len(trie), -1, np.int32)
    out[[-1 - e if e < 0 else len(words) + e for e in ends]] = columns
    return Vocabulary(grams, trie, out, len(names))


def _walk(path: Sequence[int], nodes: dict[tuple[int, int], int]) -> int:
    """The number of a path of symbols, which may be new, as prefixes have it."""
    at = -1 - path[0]
    for symbol in path[1:]:
        at = nodes.setdefault((at, symbol), len(nodes))
    return at


def _listed(vocabulary: Any) -> tuple[list[str], Array]:
    names = sorted(vocabulary) if isinstance(vocabulary, set | frozenset) else list(vocabulary)
    bad = next((name for name in names if not isinstance(name, str) or not name), None)
    if bad is not None:
        raise ValueError(f"vocabulary must hold n-grams, but has {bad!r:.40}; give strings.")
    half = next((name for name in names if _surrogate(name)), None)
    if half is not None:
        raise ValueError(f"vocabulary has {half!r:.40}, which no UTF-8 can hold; leave it out.")
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"vocabulary must hold n-grams, each once, but has {len(names)}, {len(set(names))} distinct; give every one once."
        )
    columns = np.arange(len(names))
    if isinstance(vocabulary, Mapping):
        columns = np.array([vocabulary[name] for name in names])
        if columns.dtype.kind not in "iu" or (np.sort(columns) != np.arange(len(names))).any():
            raise ValueError(
                f"vocabulary must give its {len(names)} n-grams the columns 0 to {len(names) - 1}, each once; number them so."
            )
    return names, columns.astype(np.int32)


def _surrogate(name: str) -> bool:
    return not name.isascii() and any("\ud800" <= c <= "\udfff" for c in name)
