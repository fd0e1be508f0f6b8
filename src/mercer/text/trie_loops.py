"""The compiled loops of vocabularies: words and characters as numbers, n-grams as paths of a trie."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

_1, _3, _4, _8, _32 = (np.uint64(v) for v in (1, 3, 4, 8, 32))
_PRIME = np.uint64(0x9E3779B97F4A7C15)


@njit
def intern(
    text: Array,
    starts: Array,
    trailing: Any,
    at: Array,
    table: Array,
    hashes: Array,
    firsts: Array,
    symbols: Array,
) -> None:
    """Number words in the order in which they first come: symbols[j] is that of word j, firsts[s]
    the first word of that number.

    Word j is text[starts[j] : starts[j + 1] - trailing], and there are four bytes more behind the
    last. It begins at word at[0], with at[1] numbers, and stops where the table, of -1s and a power
    of two long, is half full.
    """
    n, size = at[1], len(table)
    for j in range(at[0], len(symbols)):
        if 2 * n >= size:
            break
        begin, end = np.uint64(starts[j]), np.uint64(starts[j + 1] - trailing)
        h = _hash(text, begin, end)
        slot = h & np.uint64(size - 1)
        s = table[slot]
        while s >= 0 and not (
            hashes[s] == h and _same(text, begin, end, starts, firsts[s], trailing)
        ):
            slot = (slot + _1) & np.uint64(size - 1)
            s = table[slot]
        if s < 0:
            s = n
            table[slot], firsts[n], hashes[n] = n, j, h
            n += 1
        symbols[j] = s
        at[0] = j + 1
    at[1] = n


@njit
def reslot(hashes: Array, n: Any, table: Array) -> None:
    """Put n numbers into a table of -1s, by the hashes of their words."""
    mask = np.uint64(len(table) - 1)
    for s in range(n):
        slot = hashes[s] & mask
        while table[slot] >= 0:
            slot = (slot + _1) & mask
        table[slot] = s


@njit
def _hash(text: Array, p: Any, end: Any) -> Any:
    h = end - p
    while p < end:
        k = (
            np.uint64(text[p])
            | np.uint64(text[p + _1]) << _8
            | np.uint64(text[p + np.uint64(2)]) << np.uint64(16)
            | np.uint64(text[p + _3]) << np.uint64(24)
        )
        if end - p < _4:
            k &= (_1 << (_8 * (end - p))) - _1
        h = (h ^ k) * _PRIME
        h ^= h >> _32
        p += _4
    return h


@njit
def _same(text: Array, begin: Any, end: Any, starts: Array, other: Any, trailing: Any) -> Any:
    a = np.uint64(starts[other])
    if np.uint64(starts[other + 1] - trailing) - a != end - begin:
        return False
    t = np.uint64(0)
    while begin + t < end and text[a + t] == text[begin + t]:
        t += _1
    return begin + t == end


@njit
def look_up(
    text: Array, starts: Array, names: Array, offsets: Array, table: Array, symbols: Array
) -> None:
    """The numbers of words, each with a blank behind it, among names; -1 for those not there.

    The table is that of `tabled`: at the hash of a name, or behind, its number.
    """
    mask = np.uint64(len(table) - 1)
    for j in range(len(symbols)):
        begin, end = np.uint64(starts[j]), np.uint64(starts[j + 1] - 1)
        slot = _hash(text, begin, end) & mask
        s = table[slot]
        while s >= 0 and not _equal(text, begin, end, names, offsets[s], offsets[s + 1]):
            slot = (slot + _1) & mask
            s = table[slot]
        symbols[j] = s


@njit
def _equal(text: Array, begin: Any, end: Any, names: Array, a: Any, b: Any) -> Any:
    if np.uint64(b - a) != end - begin:
        return False
    t = np.uint64(0)
    while begin + t < end and names[np.uint64(a) + t] == text[begin + t]:
        t += _1
    return begin + t == end


@njit
def tabled(names: Array, offsets: Array, table: Array) -> None:
    """Put names, with four bytes more behind the last, into a table of -1s, a power of two longer
    than their number."""
    mask = np.uint64(len(table) - 1)
    for s in range(len(offsets) - 1):
        slot = _hash(names, np.uint64(offsets[s]), np.uint64(offsets[s + 1])) & mask
        while table[slot] >= 0:
            slot = (slot + _1) & mask
        table[slot] = s


@njit
def points(
    text: Array, starts: Array, pad: Any, numbers: Array, known: Any, symbols: Array, runs: Array
) -> Any:
    """The characters of runs as numbers, `numbers` those of code points, -1 where they have none.

    Where `known` is negative those that have none are given the next one. Run j is
    text[starts[j] - pad : starts[j + 1]], and its characters symbols[runs[j] : runs[j + 1]]. Returns
    how many numbers there are.
    """
    n = max(known, 0)
    m, runs[0] = 0, 0
    for j in range(len(starts) - 1):
        p = starts[j] - pad
        while p < starts[j + 1]:
            c = np.int64(text[p])
            size = 1 if c < 0x80 else 2 if c < 0xE0 else 3 if c < 0xF0 else 4
            point = c if size == 1 else c & (0x7F >> size)
            for t in range(1, size):
                point = point << 6 | np.int64(text[p + t] & 0x3F)
            if known < 0 and numbers[point] < 0:
                numbers[point] = n
                n += 1
            symbols[m] = numbers[point]
            m += 1
            p += size
        runs[j + 1] = m
    return n


@njit
def slot_of(table: Array, key: Any) -> Any:
    """Where a key is in a table of keys and numbers, or the first free place for it."""
    mask = np.uint64(len(table) // 2 - 1)
    h = np.uint64(key) * _PRIME
    slot = (h ^ (h >> _32)) & mask
    while table[slot + slot] != key and table[slot + slot + _1] >= 0:
        slot = (slot + _1) & mask
    return slot + slot


@njit
def refill(keys: Array, first: Any, table: Array) -> None:
    """Put keys, numbered from `first` on, into a table of -1s."""
    for i in range(len(keys)):
        slot = slot_of(table, keys[i])
        table[slot], table[slot + _1] = keys[i], first + i


@njit
def grow(
    symbols: Array,
    runs: Array,
    docs: Array,
    how: Array,
    table: Array,
    nodes: Array,
    rows: Array,
    indptr: Array,
) -> Any:
    """The trie of all n-grams of runs, of how[0] to how[1] symbols, and those of every document.

    Nodes are symbols, then paths in the order in which they first come; of each nodes has the key
    (the node of all but its last symbol, times 2^32, plus that symbol), where it is in rows, and
    the number of its documents. rows has nodes and counts, each node once a document. Where how[2],
    a run of fewer than how[0] symbols counts as a whole. how[3:8] are document, run, symbol, nodes
    and entries of rows, to begin with; it stops, with False, where there is no more room.
    """
    least, most, r, j, n, m = how[0], how[1], how[4], how[5], how[6], how[7]
    for i in range(how[3], len(docs) - 1):
        row = indptr[i]
        while r < docs[i + 1]:
            first, stop = runs[r], runs[r + 1]
            j = max(j, first)
            while j < stop:
                if (
                    2 * (m + most) > len(rows)
                    or 3 * (n + most) > len(nodes)
                    or 4 * (n + most) > len(table)
                ):
                    how[3], how[4], how[5], how[6], how[7] = i, r, j, n, m
                    return False
                whole = how[2] and stop - first < least and j == first
                node, e = np.int64(symbols[j]), j + 1
                while True:
                    if e - j >= least or (whole and e == stop):
                        at = nodes[3 * node + 1]
                        if at < row:
                            at = m
                            nodes[3 * node + 1] = m
                            nodes[3 * node + 2] += 1
                            rows[2 * m] = node
                            rows[2 * m + 1] = 0
                            m += 1
                        rows[2 * at + 1] += 1
                    if e == stop or e == j + most:
                        break
                    key = node << 32 | np.int64(symbols[e])
                    slot = slot_of(table, key)
                    node = table[slot + _1]
                    if node < 0:
                        node = n
                        table[slot], table[slot + _1] = key, n
                        nodes[3 * n], nodes[3 * n + 1], nodes[3 * n + 2] = key, -1, 0
                        n += 1
                    e += 1
                j += 1
            r += 1
        indptr[i + 1] = m
    how[6], how[7] = n, m
    return True


@njit
def share(prefixes: Array, rank: Array, shares: Any, to: Array) -> None:
    """Share paths out by the symbols that they begin with: to[i] is -1 - the share of path i."""
    for i in range(len(prefixes)):
        p = prefixes[i]
        to[i] = -1 - rank[-1 - p] % shares if p < 0 else to[p]


@njit
def absorb(
    prefixes: Array,
    symbols: Array,
    rank: Array,
    mine: Any,
    keys: Array,
    n: Any,
    table: Array,
    to: Array,
) -> Any:
    """Put those paths of another trie, whose symbols have these ranks, among n keys for which to[i]
    is `mine`; to[i] becomes the number of path i. There is room. Returns the number of keys."""
    for i in range(len(prefixes)):
        if to[i] == mine:
            p = prefixes[i]
            prefix = np.int64(-1 - rank[-1 - p]) if p < 0 else np.int64(to[p])
            key = prefix << 32 | np.int64(rank[symbols[i]])
            slot = slot_of(table, key)
            node = table[slot + _1]
            if node < 0:
                node = n
                table[slot], table[slot + _1] = key, n
                keys[n] = key
                n += 1
            to[i] = node
    return n


@njit
def row_keys(
    rows: Array, indptr: Array, columns: Array, at: Array, keys: Array, ends: Array
) -> Any:
    """The keys of rows of nodes, each as often as it counts, for `hashing.count`; columns of nodes
    are negative where they have none."""
    m, room, part = 0, len(keys), 0
    row, j, k = at[0], at[1], at[2]
    while row < len(indptr) - 1 and m < room:
        while j < indptr[row + 1] and m < room:
            column, times = columns[rows[2 * j]], rows[2 * j + 1]
            while column >= 0 and k < times and m < room:
                keys[m] = column << 1
                m += 1
                k += 1
            if column >= 0 and k < times:
                break
            j += 1
            k = 0
        ends[row - at[0]] = m
        if j < indptr[row + 1]:
            part = 1
            break
        row += 1
    size = row - at[0] + part
    at[0], at[1], at[2] = row, j, k
    return size


@njit
def find_keys(
    symbols: Array, runs: Array, docs: Array, how: Array, table: Array, columns: Array, at: Array, keys: Array, ends: Array
) -> Any:  # fmt: skip
    """The keys of all n-grams of documents that a trie has, as `word_keys` gives those of hashed
    ones; at[1] is a run and at[2] a symbol. columns[how[3] + i] is the column of path i."""
    least, most, split = how[0], how[1], how[3]
    m, room, part = 0, len(keys) - most, 0
    row, r, j = at[0], at[1], at[2]
    while row < len(docs) - 1 and m <= room:
        while r < docs[row + 1] and m <= room:
            stop = runs[r + 1]
            short = how[2] and stop - runs[r] < least
            j = max(j, runs[r])
            while j < stop and m <= room:
                s = symbols[j]
                whole = short and j == runs[r]
                if s >= 0 and (least == 1 or (whole and stop == j + 1)) and columns[s] >= 0:
                    keys[m] = columns[s] << 1
                    m += 1
                prefix, e = np.int64(-1 - s), j + 1
                while s >= 0 and e < min(j + most, stop) and symbols[e] >= 0:
                    node = table[slot_of(table, prefix << 32 | np.int64(symbols[e])) + _1]
                    if node < 0:
                        break
                    e += 1
                    if (e - j >= least or (whole and e == stop)) and columns[split + node] >= 0:
                        keys[m] = columns[split + node] << 1
                        m += 1
                    prefix = node
                j += 1
            if j < stop:
                break
            r += 1
        ends[row - at[0]] = m
        if r < docs[row + 1]:
            part = 1
            break
        row += 1
    rows = row - at[0] + part
    at[0], at[1], at[2] = row, r, j
    return rows
