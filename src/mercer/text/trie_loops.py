"""The compiled loops of vocabularies: words and characters as numbers, n-grams as paths of a trie."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

_1, _3, _4, _8, _32 = (np.uint64(v) for v in (1, 3, 4, 8, 32))
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.int64(0xFFFFFFFF)
SMALL = 1 << 10  # entries of a table to begin with, a power of two


@njit
def intern(text: Array, starts: Array, trailing: int, firsts: Array, symbols: Array) -> int:
    """Number words in the order in which they first come: symbols[j] is that of word j, firsts[s]
    the first word of that number.

    Word j is text[starts[j] : starts[j + 1] - trailing], and there are four bytes more behind the
    last. Returns how many there are.
    """
    n, size = 0, SMALL
    table, hashes = np.full(size, -1, np.int32), np.empty(len(symbols), np.uint64)
    for j in range(len(symbols)):
        if 2 * n >= size:
            size *= 2
            table = np.full(size, -1, np.int32)
            for s in range(n):
                slot = hashes[s] & np.uint64(size - 1)
                while table[slot] >= 0:
                    slot = (slot + _1) & np.uint64(size - 1)
                table[slot] = s
        begin, end = np.uint64(starts[j]), np.uint64(starts[j + 1] - trailing)
        h = _hash(text, begin, end)
        slot = h & np.uint64(size - 1)
        while True:
            s = table[slot]
            if s < 0:
                table[slot] = s = n
                firsts[n], hashes[n] = j, h
                n += 1
                break
            if hashes[s] == h and _same(text, begin, end, starts, firsts[s], trailing):
                break
            slot = (slot + _1) & np.uint64(size - 1)
        symbols[j] = s
    return n


@njit
def _hash(text: Array, p: int, end: int) -> int:
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
def _same(text: Array, begin: int, end: int, starts: Array, other: int, trailing: int) -> bool:
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
def _equal(text: Array, begin: int, end: int, names: Array, a: int, b: int) -> bool:
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
    text: Array, starts: Array, pad: int, numbers: Array, known: int, symbols: Array, runs: Array
) -> int:
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
def slot_of(table: Array, key: int) -> int:
    """Where a key is in a table of keys and numbers, or the first free place for it."""
    mask = np.uint64(len(table) // 2 - 1)
    h = np.uint64(key) * _PRIME
    slot = (h ^ (h >> _32)) & mask
    while table[slot + slot] != key and table[slot + slot + _1] >= 0:
        slot = (slot + _1) & mask
    return slot + slot


@njit
def rebuilt(keys: Array, n: int, size: int) -> Array:
    """A table of `size` entries with the first n keys."""
    table = np.full(2 * size, -1, np.int64)
    for i in range(n):
        slot = slot_of(table, keys[i])
        table[slot], table[slot + _1] = keys[i], i
    return table


@njit
def wider(a: Array) -> Array:
    out = np.empty(2 * len(a), a.dtype)
    out[: len(a)] = a
    return out


@njit
def grow(
    symbols: Array, runs: Array, docs: Array, how: Array, seen: Array, indptr: Array
) -> tuple[Array, Array, Array, Array]:
    """The trie of all n-grams of runs, of how[0] to how[1] symbols, and those of every document.

    The key of a path is that of the path without its last symbol (the number i of a path, or -1 - s
    for a symbol alone), times 2^32, plus the last symbol. Documents have codes, each once: 2 s for
    a symbol and 2 i + 1 for a path, with counts. Where how[2], a run of fewer than how[0] symbols
    counts as a whole. `seen` holds -1 and 0 for every symbol; the 0 becomes the number of its
    documents. Returns keys, those numbers of paths behind what is of no use then, codes, counts.
    """
    least, most = how[0], how[1]
    n, keys, places = 0, np.empty(SMALL, np.int64), np.empty(2 * SMALL, np.int32)
    table = rebuilt(keys, 0, 2 * SMALL)
    m, codes, counts = 0, np.empty(SMALL, np.int32), np.empty(SMALL, np.int32)
    indptr[0] = 0
    for i in range(len(docs) - 1):
        row = m
        for r in range(docs[i], docs[i + 1]):
            stop = runs[r + 1]
            short = how[2] and stop - runs[r] < least
            for j in range(runs[r], stop):
                while m + most > len(codes):
                    codes, counts = wider(codes), wider(counts)
                while n + most > len(keys):
                    keys, places = wider(keys), wider(places)
                    table = rebuilt(keys, n, 2 * len(keys))
                whole = short and j == runs[r]
                s = symbols[j]
                if least == 1 or (whole and stop == j + 1):
                    at = np.int64(seen[2 * s])
                    if at < row:
                        at = m
                        seen[2 * s], seen[2 * s + 1] = m, seen[2 * s + 1] + 1
                        codes[m], counts[m] = 2 * s, 0
                        m += 1
                    counts[at] += 1
                prefix = np.int64(-1 - s)
                for e in range(j + 1, min(j + most, stop)):
                    key = prefix << 32 | np.int64(symbols[e])
                    slot = slot_of(table, key)
                    node = table[slot + _1]
                    if node < 0:
                        node = n
                        table[slot], table[slot + _1] = key, n
                        keys[n], places[2 * n], places[2 * n + 1] = key, -1, 0
                        n += 1
                    if e - j + 1 >= least or (whole and e == stop - 1):
                        at = np.int64(places[2 * node])
                        if at < row:
                            at = m
                            places[2 * node], places[2 * node + 1] = m, places[2 * node + 1] + 1
                            codes[m], counts[m] = 2 * node + 1, 0
                            m += 1
                        counts[at] += 1
                    prefix = node
        indptr[i + 1] = m
    return keys[:n], places[: 2 * n], codes[:m], counts[:m]


@njit
def absorb(prefixes: Array, symbols: Array, rank: Array, keys: Array, n: int, table: Array, to: Array) -> int:  # fmt: skip
    """Put the paths of another trie, whose symbols have these ranks, among n keys; to[i] is the
    number of its path i. There is room. Returns the number of keys."""
    for i in range(len(prefixes)):
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
def code_keys(
    codes: Array, counts: Array, indptr: Array, columns: Array, split: int, at: Array, keys: Array, ends: Array
) -> int:  # fmt: skip
    """The keys of codes, each as often as it counts, for `hashing.count`; columns[split + i] is the
    column of path i, columns[s] that of symbol s, negative where it has none."""
    m, room, part = 0, len(keys), 0
    row, j, k = at[0], at[1], at[2]
    while row < len(indptr) - 1 and m < room:
        while j < indptr[row + 1] and m < room:
            code = codes[j]
            column = columns[split + (code >> 1)] if code & 1 else columns[code >> 1]
            while column >= 0 and k < counts[j] and m < room:
                keys[m] = column << 1
                m, k = m + 1, k + 1
            if column >= 0 and k < counts[j]:
                break
            j, k = j + 1, 0
        ends[row - at[0]] = m
        if j < indptr[row + 1]:
            part = 1
            break
        row += 1
    rows = row - at[0] + part
    at[0], at[1], at[2] = row, j, k
    return rows


@njit
def find_keys(
    symbols: Array, runs: Array, docs: Array, how: Array, table: Array, columns: Array, at: Array, keys: Array, ends: Array
) -> int:  # fmt: skip
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


@njit
def sizes(prefixes: Array, size: Array) -> None:
    """Of w symbols and the paths behind them: add to each what all paths have that go on from it."""
    w = len(size) - len(prefixes)
    for i in range(len(prefixes) - 1, -1, -1):
        p = prefixes[i]
        size[-1 - p if p < 0 else w + p] += size[w + i]


@njit
def preorder(prefixes: Array, kept: Array, columns: Array, size: Array) -> int:
    """Number what is kept of a trie so that every path comes before those that go on from it, and
    these in the order of their last symbols; -1 for what is not kept. Returns how many there are.

    Of w symbols and the paths behind them `kept` says 0 or 1; `size` has their `sizes`.
    """
    w, total = len(kept) - len(prefixes), 0
    for s in range(w):
        columns[s], total = total, total + size[s]
        size[s] = columns[s] + kept[s]  # from here on: the next number below it
    for i in range(len(prefixes)):
        p = prefixes[i]
        above = -1 - p if p < 0 else w + p
        columns[w + i], size[above] = size[above], size[above] + size[w + i]
        size[w + i] = columns[w + i] + kept[w + i]
    for i in range(len(kept)):
        if not kept[i]:
            columns[i] = -1
    return total
