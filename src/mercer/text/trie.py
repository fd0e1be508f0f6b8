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
from mercer.ops.threads import parallel_map
from mercer.store import register
from mercer.text import trie_loops as loops
from mercer.text import trie_walks as walks
from mercer.text.tokens import WITHIN, WORDS, Tokens
from mercer.text.unicode import POINTS

MOST = 1 << 30  # symbols, and paths
SMALL = 1 << 10  # room to begin with
SHARES = 16  # of paths, each with a table that a cache holds
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

    def symbol(self, s: int) -> str:
        """What a symbol is."""
        return bytes(self.text[self.offsets[s] : self.offsets[s + 1]]).decode()

    def columns(self, kept: Array) -> tuple[Array, int]:
        """The number of every n-gram that is kept, where 1, in the order of their code points, -1
        for others; and how many there are."""
        out, size = np.empty(len(self), np.int32), kept.astype(np.int32)
        walks.sizes(self.prefixes, size)
        return out, walks.preorder(self.prefixes, kept.astype(np.int32), out, size)

    def cut(self, kept: Array) -> tuple[Trie, Array]:
        """Without what no n-gram that is kept needs; and the places of what is left."""
        size = kept.astype(np.int32)
        walks.sizes(self.prefixes, size)
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

    def spelled(self, between: str) -> tuple[Array, Array]:
        """The n-grams of all symbols and paths side by side, and where each begins and the last
        ends; `between` is a blank or nothing."""
        size = np.empty(len(self), np.int64)
        given = self.prefixes, self.symbols
        walks.lengths(*given, self.offsets, len(between), size)
        ends = np.cumsum(size)
        text = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        walks.spell(*given, self.text, self.offsets, ends, text)
        return text, np.concatenate([np.zeros(1, np.int64), ends])

    def names(self, between: str) -> list[str]:
        """The n-gram of every symbol and path."""
        text, offsets = self.spelled(between)
        data = text.tobytes()
        return [data[a:b].decode() for a, b in pairwise(offsets.tolist())]

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
        table = room_for(len(keys))
        loops.refill(keys, 0, table)
        return table

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


def room_for(n: int) -> Array:
    """An empty table for n keys."""
    return np.full(2 << max(SMALL.bit_length(), (2 * n).bit_length()), -1, np.int64)


@dataclass(frozen=True, eq=False)
class Growth:
    """A trie of some documents and what they have of it: of document i rows[2 * indptr[i] : 2 *
    indptr[i + 1]], nodes (symbols and the paths behind them), each once, and their counts by turns.

    `documents` (nodes,) counts the documents of every node.
    """

    trie: Trie
    documents: Array
    rows: Array
    indptr: Array


def grown(t: Tokens, unit: str, orders: tuple[int, int]) -> Growth:
    """The trie of the n-grams of some documents, and the nodes of every document."""
    if unit == WORDS:
        symbols, firsts = numbered(t.text, t.starts, 1)
        runs, docs, w = t.docs, np.arange(t.n_rows + 1, dtype=np.int32), len(firsts)
        text, offsets = pieces(t.text, t.starts[firsts], t.starts[firsts + 1] - 1)
    else:
        symbols, runs, pad = _room(t, unit)
        numbers, docs = np.full(POINTS, -1, np.int32), t.docs
        w = loops.points(t.text, t.starts, pad, numbers, -1, symbols, runs)
        found = np.flatnonzero(numbers >= 0)
        text, offsets = packed([chr(c) for c in found[np.argsort(numbers[found])].tolist()])
    nodes, rows, indptr = _grown(symbols, runs, docs, (*orders, unit == WITHIN), w)
    above, last = nodes[w:, 0] >> 32, nodes[w:, 0] & 0xFFFFFFFF
    prefixes = np.where(above < w, -1 - above, above - w).astype(np.int32)
    trie = Trie(text, offsets, prefixes, last.astype(np.int32))
    return Growth(trie, nodes[:, 2].copy(), rows, indptr)


def _grown(
    symbols: Array, runs: Array, docs: Array, how: tuple[int, ...], w: int
) -> tuple[Array, Array, Array]:
    """Nodes (nodes, 3), rows and indptr of `loops.grow`, with more room whenever it is full."""
    most = how[1]
    state = np.array([*how, 0, 0, 0, w, 0], np.int64)
    nodes = np.tile(np.array([-1, -1, 0], np.int64), w + most + SMALL)
    rows, table = np.empty(2 * (most + SMALL), np.int32), room_for(w + most + SMALL)
    indptr = np.zeros(len(docs), np.int64)
    while not loops.grow(symbols, runs, docs, state, table, nodes, rows, indptr):
        n, m = state[6], state[7]
        if 2 * (m + most) > len(rows):
            rows = _wider(rows)
        if 3 * (n + most) > len(nodes):
            nodes = _wider(nodes)
        if 4 * (n + most) > len(table):
            table = room_for(2 * int(n + most))
            loops.refill(nodes[3 * w : 3 * n : 3].copy(), w, table)
    return nodes[: 3 * state[6]].reshape(-1, 3), rows[: 2 * state[7]], indptr


def _wider(a: Array) -> Array:
    out = np.empty(2 * len(a), a.dtype)
    out[: len(a)] = a
    return out


def numbered(text: Array, starts: Array, trailing: int) -> tuple[Array, Array]:
    """The numbers of words, in the order in which they first come, and the first word of each."""
    symbols, firsts = (np.empty(len(starts) - 1, np.int32) for _ in range(2))
    hashes, at = np.empty(len(firsts), np.uint64), np.zeros(2, np.int64)
    table = np.full(2 * SMALL, -1, np.int32)
    while at[0] < len(symbols):
        loops.intern(text, starts, trailing, at, table, hashes, firsts, symbols)
        if 2 * at[1] >= len(table):
            table = np.full(4 * len(table), -1, np.int32)
            loops.reslot(hashes, int(at[1]), table)
    return symbols, firsts[: at[1]]


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
    keys, nodes = _paths(tries, ranks)
    w = len(offsets) - 1
    prefixes, symbols, place = _ordered(keys, w)
    return (
        Trie(text, offsets, prefixes, symbols),
        [np.concatenate([rank, w + place[to]]) for rank, to in zip(ranks, nodes, strict=True)],
    )


def _paths(tries: Sequence[Trie], ranks: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The keys of all paths, each once, and for every trie which of them its paths are."""
    nodes = [np.empty(len(t.prefixes), np.int32) for t in tries]
    for t, rank, to in zip(tries, ranks, nodes, strict=True):
        loops.share(t.prefixes, rank, SHARES, to)
    shares = [-1 - to for to in nodes]
    sizes = np.sum([np.bincount(share, minlength=SHARES) for share in shares], axis=0)

    def absorb(share: int) -> Array:
        keys, n, table = np.empty(sizes[share], np.int64), 0, room_for(int(sizes[share]))
        for t, rank, to in zip(tries, ranks, nodes, strict=True):
            n = loops.absorb(t.prefixes, t.symbols, rank, -1 - share, keys, n, table, to)
        return keys[:n]

    found = parallel_map(absorb, range(SHARES))
    bases = np.cumsum([0, *map(len, found)])
    for to, share in zip(nodes, shares, strict=True):
        to += bases[share].astype(np.int32)
    moved = [k + (k >= 0) * (base << 32) for k, base in zip(found, bases.tolist(), strict=False)]
    return np.concatenate(moved), nodes


def _symbols(tries: Sequence[Trie]) -> tuple[Array, Array, list[Array]]:
    """All symbols in order, and the rank of every trie's."""
    texts = [t.text[:-SLACK] for t in tries]
    bases = np.cumsum([0, *map(len, texts)])
    text = np.concatenate([*texts, np.zeros(SLACK, np.uint8)])
    starts = np.concatenate([t.offsets[:-1] + base for t, base in zip(tries, bases, strict=False)])
    starts = np.append(starts, bases[-1]).astype(np.int32 if len(text) < 1 << 31 else np.int64)
    number, firsts = numbered(text, starts, 0)
    begins, ends = starts[firsts].astype(np.int64), starts[firsts + 1].astype(np.int64)
    order = in_order(text, begins, ends)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
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


def _ordered(keys: Array, w: int) -> tuple[Array, Array, Array]:
    """Paths over w symbols by length and symbols: their prefixes and symbols, and where each of the
    keys went."""
    prefix, symbol = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
    place = np.full(len(keys), -1, np.int32)
    out_p, out_s = (np.empty(len(keys), np.int32) for _ in range(2))
    above = -1 - prefix  # ranks of symbols, of paths of two
    level, size, base, done = np.flatnonzero(prefix < 0).astype(np.int32), w, 0, 0
    while len(level):
        order = _sorted(symbol, w, level)
        level = _sorted(above, size, order)
        here = slice(done, done + len(level))
        out_p[here] = above[level] + base if done else prefix[level]
        out_s[here] = symbol[level]
        inside = np.full(len(keys), -1, np.int32)
        inside[level] = np.arange(len(level), dtype=np.int32)
        above = np.where(prefix >= 0, inside[np.maximum(prefix, 0)], -1)
        place[level] = inside[level] + done
        size, base, done = len(level), done, here.stop
        level = np.flatnonzero(above >= 0).astype(np.int32) if done < len(keys) else level[:0]
    return out_p, out_s, place.astype(np.int64)


def _sorted(keys: Array, size: int, order: Array) -> Array:
    """The places in `order` by their keys below `size`, equal ones as they come."""
    out = np.empty_like(order)
    walks.sort_by(keys, order, np.zeros(size + 1, np.int64), out)
    return out
