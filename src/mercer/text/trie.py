"""All n-grams of some documents as a trie: symbols (words or characters), and paths that each go on
from another by one symbol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Bytes, Counts, Ints, check
from mercer.store import register
from mercer.text import trie_loops as loops
from mercer.text.tokens import WITHIN, WORDS, Tokens
from mercer.text.unicode import POINTS

MOST = 1 << 30  # symbols, and paths
SLACK = 4  # bytes behind names, so that loops may read four at a time


@register("text.Trie")
@dataclass(frozen=True, eq=False)
class Trie:
    """Symbol s is text[offsets[s] : offsets[s + 1]]; path i is that of number prefixes[i], or the
    symbol -1 - prefixes[i] where that is negative, with symbols[i] behind it.

    In a trie of `joined` both are in order: symbols by code points, paths by their length, then by
    their symbols. So two tries of the same n-grams are equal.
    """

    text: Array  # uint8, with four bytes more
    offsets: Array  # int64 (w + 1,)
    prefixes: Array  # int32 (m,)
    symbols: Array  # int32 (m,)

    must = dict(
        text=Bytes(None),
        offsets=Counts("w + 1"),
        prefixes=Ints("m", low=-MOST, below=MOST),
        symbols=Ints("m", below="w"),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        o, p = self.offsets, self.prefixes
        if not len(o) or o[0] != 0 or o[-1] + SLACK != len(self.text) or (o[1:] < o[:-1]).any():
            return "has symbols that are no pieces of its text, one behind the other"
        if (p >= np.arange(len(p))).any() or (len(p) and p.min() < 1 - len(o)):
            return "has paths that go on from later ones, or from symbols that are not there"
        return None

    def __reduce__(self) -> Any:
        return Trie, (self.text, self.offsets, self.prefixes, self.symbols)

    @property
    def n_symbols(self) -> int:
        return len(self.offsets) - 1

    def __len__(self) -> int:
        return self.n_symbols + len(self.prefixes)

    def columns(self, kept: Array) -> tuple[Array, int]:
        """The number of every n-gram that is kept, where 1, in the order of their code points, -1
        for others; and how many there are."""
        out, size = np.empty(len(self), np.int32), kept.astype(np.int32)
        loops.sizes(self.prefixes, size)
        return out, loops.preorder(self.prefixes, kept.astype(np.int32), out, size)

    def cut(self, kept: Array) -> tuple[Trie, Array]:
        """Without what no n-gram that is kept needs; and the places of what is left."""
        size = kept.astype(np.int32)
        loops.sizes(self.prefixes, size)
        w = self.n_symbols
        paths = np.flatnonzero(size[w:])
        size[self.symbols[paths]] = 1
        left = np.flatnonzero(size)
        to = np.cumsum(size > 0) - 1
        words = left[left < w]
        text, offsets = pieces(self.text, self.offsets[words], self.offsets[words + 1])
        p = self.prefixes[paths]
        prefixes = np.where(p < 0, -1 - to[-1 - p * (p < 0)], to[w + p * (p >= 0)] - len(words))
        return Trie(
            text, offsets, prefixes.astype(np.int32), to[self.symbols[paths]].astype(np.int32)
        ), left

    def names(self, between: str) -> list[str]:
        """The n-gram of every symbol and path."""
        data = self.text.tobytes()
        words = [data[a:b].decode() for a, b in pairwise(self.offsets.tolist())]
        out = list(words)
        w = len(words)
        for p, s in zip(self.prefixes.tolist(), self.symbols.tolist(), strict=True):
            out.append(f"{out[-1 - p] if p < 0 else out[w + p]}{between}{words[s]}")
        return out

    @cached_property
    def words(self) -> Array:
        """The table in which loops find symbols by their bytes."""
        table = np.full(1 << max(4, (2 * self.n_symbols).bit_length()), -1, np.int32)
        loops.tabled(self.text, self.offsets, table)
        return table

    @cached_property
    def points(self) -> Array:
        """The symbols of code points, where symbols are characters; -1 elsewhere."""
        out = np.full(POINTS, -1, np.int32)
        data = self.text.tobytes()
        for s, (a, b) in enumerate(pairwise(self.offsets.tolist())):
            if len(c := data[a:b].decode()) == 1:
                out[ord(c)] = s
        return out

    @cached_property
    def paths(self) -> Array:
        """The table in which loops find paths."""
        keys = self.prefixes.astype(np.int64) << 32 | self.symbols
        return loops.rebuilt(keys, len(keys), 1 << max(4, (2 * len(keys)).bit_length()))

    def numbered(self, t: Tokens, unit: str) -> tuple[Array, Array, Array]:
        """The symbols of documents, -1 for those that are not here, where their runs begin, and the
        runs of documents."""
        if unit == WORDS:
            symbols = np.empty(len(t.starts) - 1, np.int32)
            loops.look_up(t.text, t.starts, self.text, self.offsets, self.words, symbols)
            return symbols, t.docs, np.arange(t.n_rows + 1, dtype=np.int32)
        symbols, runs, pad = _room(t, unit)
        loops.points(t.text, t.starts, pad, self.points, self.n_symbols, symbols, runs)
        return symbols, runs, t.docs


def _room(t: Tokens, unit: str) -> tuple[Array, Array, int]:
    pad = int(unit == WITHIN)
    size = int(t.starts[-1]) + pad * len(t.starts)
    return np.empty(size, np.int32), np.empty(len(t.starts), np.int32), pad


@dataclass(frozen=True, eq=False)
class Growth:
    """A trie of some documents and what they have of it: of document i codes[indptr[i] :
    indptr[i + 1]], 2 s for a symbol and 2 i + 1 for a path, each once, with its count.

    `documents` (nodes,) counts the documents of every symbol and path.
    """

    trie: Trie
    documents: Array
    codes: Array
    counts: Array
    indptr: Array

    def nodes(self) -> Array:
        """The codes as places among symbols and the paths behind them."""
        return (self.codes >> 1) + self.trie.n_symbols * (self.codes & 1)


def grown(t: Tokens, unit: str, orders: tuple[int, int]) -> Growth:
    """The trie of the n-grams of some documents, and the codes of every document."""
    if unit == WORDS:
        symbols, firsts = (np.empty(len(t.starts) - 1, np.int32) for _ in range(2))
        w = loops.intern(t.text, t.starts, 1, firsts, symbols)
        runs, docs = t.docs, np.arange(t.n_rows + 1, dtype=np.int32)
        text, offsets = pieces(t.text, t.starts[firsts[:w]], t.starts[firsts[:w] + 1] - 1)
    else:
        symbols, runs, pad = _room(t, unit)
        numbers, docs = np.full(POINTS, -1, np.int32), t.docs
        w = loops.points(t.text, t.starts, pad, numbers, -1, symbols, runs)
        found = np.flatnonzero(numbers >= 0)
        text, offsets = packed([chr(c) for c in found[np.argsort(numbers[found])].tolist()])
    how = np.array([*orders, unit == WITHIN], np.int64)
    indptr, seen = np.empty(t.n_rows + 1, np.int64), np.tile(np.array([-1, 0], np.int32), w)
    keys, places, codes, counts = loops.grow(symbols, runs, docs, how, seen, indptr)
    prefixes, last = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
    documents = np.concatenate([seen[1::2], places[1::2]]).astype(np.int64)
    return Growth(Trie(text, offsets, prefixes, last), documents, codes, counts, indptr)


def packed(names: Sequence[str]) -> tuple[Array, Array]:
    """Names as text and offsets, with some bytes more behind."""
    data = [name.encode() for name in names]
    offsets = np.zeros(len(data) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, data), np.int64, len(data)), out=offsets[1:])
    return np.frombuffer(bytearray(b"".join([*data, bytes(SLACK)])), np.uint8), offsets


def pieces(text: Array, begins: Array, ends: Array) -> tuple[Array, Array]:
    """Pieces of a text side by side, with some bytes more behind, and their offsets."""
    offsets = np.zeros(len(begins) + 1, np.int64)
    np.cumsum(ends - begins, out=offsets[1:])
    places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], ends - begins)
    return np.concatenate([text[places], np.zeros(SLACK, np.uint8)]), offsets


def joined(tries: Sequence[Trie]) -> tuple[Trie, list[Array]]:
    """One trie in order of all n-grams of some, and for each of these where its symbols and paths
    are there."""
    text, offsets, ranks = _symbols(tries)
    room = sum(len(t.prefixes) for t in tries)
    keys, n = np.empty(room, np.int64), 0
    table = loops.rebuilt(keys, 0, 1 << max(4, (2 * room).bit_length()))
    nodes = [np.empty(len(t.prefixes), np.int64) for t in tries]
    for t, rank, to in zip(tries, ranks, nodes, strict=True):
        n = loops.absorb(t.prefixes, t.symbols, rank, keys, n, table, to)
    del table
    prefixes, symbols, place = _ordered(keys[:n])
    w = len(offsets) - 1
    return (
        Trie(text, offsets, prefixes, symbols),
        [np.concatenate([rank, w + place[to]]) for rank, to in zip(ranks, nodes, strict=True)],
    )


def _symbols(tries: Sequence[Trie]) -> tuple[Array, Array, list[Array]]:
    """All symbols in order, and the rank of every trie's."""
    texts = [t.text[:-SLACK] for t in tries]
    bases = np.cumsum([0, *map(len, texts)])
    text = np.concatenate([*texts, np.zeros(SLACK, np.uint8)])
    starts = np.concatenate([t.offsets[:-1] + base for t, base in zip(tries, bases, strict=False)])
    starts = np.append(starts, bases[-1]).astype(np.int32 if len(text) < 1 << 31 else np.int64)
    number, firsts = (np.empty(len(starts) - 1, np.int32) for _ in range(2))
    w = loops.intern(text, starts, 0, firsts, number)
    begins, ends = starts[firsts[:w]].astype(np.int64), starts[firsts[:w] + 1].astype(np.int64)
    order = in_order(text, begins, ends)
    rank = np.empty(w, np.int64)
    rank[order] = np.arange(w)
    splits = np.cumsum([t.n_symbols for t in tries])[:-1]
    return *pieces(text, begins[order], ends[order]), np.split(rank[number], splits)


def in_order(text: Array, begins: Array, ends: Array) -> Array:
    """The order of pieces of a text by their bytes, which is that of code points."""
    sizes = ends - begins
    head = np.zeros(len(begins), np.uint64)
    for k in range(8):
        byte = np.where(k < sizes, text[np.minimum(begins + k, len(text) - 1)], 0)
        head = head << np.uint64(8) | byte.astype(np.uint64)
    order = np.argsort(head, kind="stable")
    edges = np.flatnonzero(np.diff(head[order], prepend=head[:1], append=head[:1]) != 0)
    bounds = np.concatenate([[0], edges, [len(order)]])
    for a in np.flatnonzero(np.diff(bounds) > 1).tolist():  # pieces whose first eight bytes agree
        same = slice(int(bounds[a]), int(bounds[a + 1]))
        order[same] = sorted(
            order[same].tolist(), key=lambda i: text[begins[i] : ends[i]].tobytes()
        )
    return order


def _ordered(keys: Array) -> tuple[Array, Array, Array]:
    """Paths by length and symbols: their prefixes and symbols, and where each of the keys went."""
    prefix, symbol = keys >> 32, keys & 0xFFFFFFFF
    place = np.empty(len(keys), np.int64)
    out_p, out_s = (np.empty(len(keys), np.int32) for _ in range(2))
    level = np.flatnonzero(prefix < 0)
    above, done = -1 - prefix[level], 0  # ranks of symbols
    while len(level):
        order = np.argsort(above << 32 | symbol[level], kind="stable")
        level, above = level[order], above[order]
        here = slice(done, done + len(level))
        out_p[here] = above if done else -1 - above
        out_s[here] = symbol[level]
        place[level] = np.arange(done, here.stop)
        inside = np.zeros(len(keys), bool)
        inside[level] = True
        done = here.stop
        level = np.flatnonzero((prefix >= 0) & inside[np.maximum(prefix, 0)])
        above = place[prefix[level]]
    return out_p, out_s, place
