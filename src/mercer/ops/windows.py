"""Loops over the windows of strings: where they are, counts of their words, and sums over pairs of
windows that agree at some places."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

NONE = 65535  # the code of what is no letter
STEP = np.uint64(0x9E3779B97F4A7C15)
# of windows: their chunks, their strings (int32), codes (uint16) and where they start (int64)
Windows = Any
# of words: letters of a window, letters of a chunk, letters of the alphabet, whether they are hashed, and
# the bits that are kept of hashes
Shape = Any


@njit
def count_windows(codes: Array, offsets: Array, g: int) -> int:
    """How many windows of g letters there are."""
    total = 0
    for i in range(len(offsets) - 1):
        run = 0
        for t in range(offsets[i], offsets[i + 1]):
            run = 0 if codes[t] == NONE else run + 1
            total += run >= g
    return total


@njit
def find_windows(codes: Array, offsets: Array, g: int, starts: Array, rows: Array) -> None:
    """Where windows start, and in which string, in their order."""
    n = 0
    for i in range(len(offsets) - 1):
        run = 0
        for t in range(offsets[i], offsets[i + 1]):
            run = 0 if codes[t] == NONE else run + 1
            if run >= g:
                starts[n], rows[n] = t + 1 - g, i
                n += 1


@njit
def chunks(codes: Array, starts: Array, g: int, length: int, size: int, out: Array) -> None:
    """The letters of every window, `length` at a time, as numbers in base `size`: shape (chunks,
    windows)."""
    for c in range(len(out)):
        for n in range(len(starts)):
            value = 0
            for p in range(c * length, min((c + 1) * length, g)):
                value = value * size + codes[starts[n] + p]
            out[c, n] = value


@njit
def shares(at: Array, g: int, length: int, size: int, hashed: bool, out: Array) -> None:
    """out[c, v], what chunk c adds to the word at the places `at` where its letters are v: words are
    numbers in base `size`, or sums of hashes of their letters."""
    share = np.zeros((g, size), np.uint64)
    for q in range(len(at)):
        place = np.uint64(1)
        for _ in range(len(at) - 1 - q):
            place *= np.uint64(size)
        for d in range(size):
            share[at[q], d] = np.uint64(d) * place
            if hashed:
                h = np.uint64(q * 65536 + d + 1) * STEP
                h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                share[at[q], d] = h ^ (h >> np.uint64(31))
    for c in range(len(out)):
        out[c, 0] = 0
        filled = 1
        for p in range(c * length, min((c + 1) * length, g)):
            for v in range(filled - 1, -1, -1):
                for d in range(size - 1, -1, -1):
                    out[c, v * size + d] = out[c, v] + share[p, d]
            filled *= size


@njit
def word_of(values: Array, w: int, table: Array) -> Any:
    """The word of a window, of what its chunks add."""
    word = table[0, values[0, w]]
    for c in range(1, len(values)):
        word += table[c, values[c, w]]
    return word


@njit
def _add_shares(values: Array, table: Array, out: Array) -> None:
    """The words of all windows, a chunk after another, which is faster than window by window."""
    small = np.empty(table.shape[1], np.int32)
    out[:] = 0
    for c in range(len(values)):
        for v in range(len(small)):
            small[v] = np.int32(table[c, v])
        here = values[c]
        for w in range(len(out)):
            out[w] += small[here[w]]


@njit
def words(values: Array, at: Array, shape: Shape, out: Array) -> None:
    """The word of every window at the places `at`."""
    g, length, size, hashed, cut = shape
    table = np.empty((len(values), size**length), np.uint64)
    shares(at, g, length, size, hashed, table)
    for w in range(values.shape[1]):
        out[w] = word_of(values, w, table) & cut


@njit
def count_words(found: Array, rows: Array, out: Array) -> None:
    """out[row, word] += 1 of every window."""
    for w in range(len(found)):
        out[rows[w], found[w]] += 1


@njit
def _agree(a: Array, s: int, b: Array, t: int, at: Array) -> bool:
    same = True
    for p in at:
        same &= a[s + p] == b[t + p]
    return same


@njit
def _bits_of(n: int) -> int:
    bits = 4
    while (1 << bits) < n:
        bits += 1
    return bits


@njit
def add_common_few(x: Windows, z: Windows, ats: Array, shape: Shape, out: Array) -> None:
    """out[i, j] += how many windows of string i and of string j agree at the places of each row of
    `ats`, for few words: the windows of z are laid into a bucket a word."""
    values_x, rows_x, _, _ = x
    values_z, rows_z, _, _ = z
    g, length, size, hashed, _ = shape
    n, room = len(rows_z), size ** ats.shape[1]
    begin, end = np.empty(room + 1, np.int32), np.empty(room, np.int32)
    word_x, word_z = np.empty(len(rows_x), np.int32), np.empty(n, np.int32)
    row, times = np.empty(n, np.int32), np.empty(n, np.float32)
    table = np.empty((len(values_z), size**length), np.uint64)
    for s in range(len(ats)):
        shares(ats[s], g, length, size, hashed, table)
        _add_shares(values_x, table, word_x)
        _add_shares(values_z, table, word_z)
        begin[:] = 0
        for w in range(n):
            begin[word_z[w] + 1] += 1
        for b in range(room):
            begin[b + 1] += begin[b]
            end[b] = begin[b]
        for w in range(n):
            b = word_z[w]
            e = end[b]
            if e > begin[b] and row[e - 1] == rows_z[w]:
                times[e - 1] += 1
            else:
                row[e], times[e] = rows_z[w], 1
                end[b] = e + 1
        for w in range(len(rows_x)):
            b, here = word_x[w], out[rows_x[w]]
            for e in range(begin[b], end[b]):
                here[row[e]] += times[e]


@njit
def add_common_many(x: Windows, z: Windows, ats: Array, shape: Shape, out: Array) -> None:
    """The same for many words, which share buckets by their hashes; words that do not fit 64 bits are
    hashes themselves, and compared letter by letter."""
    values_x, rows_x, codes_x, starts_x = x
    values_z, rows_z, codes_z, starts_z = z
    g, length, size, hashed, cut = shape
    n = len(rows_z)
    bits = _bits_of(n)
    shift, room = np.uint64(64 - bits), 1 << bits
    begin, end = np.empty(room + 1, np.int64), np.empty(room, np.int64)
    bucket, keys = np.empty(n, np.int64), np.empty(n, np.uint64)
    word, window, times = np.empty(n, np.uint64), np.empty(n, np.int64), np.empty(n, np.float64)
    table = np.empty((len(values_z), size**length), np.uint64)
    for s in range(len(ats)):
        at = ats[s]
        shares(at, g, length, size, hashed, table)
        begin[:] = 0
        for w in range(n):
            keys[w] = word_of(values_z, w, table) & cut
            bucket[w] = np.int64((keys[w] * STEP) >> shift)
            begin[bucket[w] + 1] += 1
        for b in range(room):
            begin[b + 1] += begin[b]
            end[b] = begin[b]
        for w in range(n):
            b = bucket[w]
            e = end[b] - 1
            same = e >= begin[b] and word[e] == keys[w] and rows_z[window[e]] == rows_z[w]
            if same and hashed:
                same = _agree(codes_z, starts_z[window[e]], codes_z, starts_z[w], at)
            if same:
                times[e] += 1.0
            else:
                e = end[b]
                word[e], window[e], times[e] = keys[w], w, 1.0
                end[b] = e + 1
        for w in range(len(rows_x)):
            key = word_of(values_x, w, table) & cut
            here = np.int64((key * STEP) >> shift)
            for e in range(begin[here], end[here]):
                same = word[e] == key
                if same and hashed:
                    same = _agree(codes_x, starts_x[w], codes_z, starts_z[window[e]], at)
                if same:
                    out[rows_x[w], rows_z[window[e]]] += times[e]


@njit
def add_own(x: Windows, ats: Array, shape: Shape, out: Array) -> None:
    """out[i] += how many pairs of windows of string i agree at the places of each row of `ats`."""
    values, rows, codes, starts = x
    g, length, size, hashed, cut = shape
    n, table = len(rows), np.empty((len(values), size**length), np.uint64)
    most, first = 0, 0
    for w in range(n):
        first = w if rows[w] != rows[first] else first
        most = max(most, w - first + 1)
    bits = _bits_of(2 * most)
    room, shift = 1 << bits, np.uint64(64 - bits)
    held, stamp = np.zeros(room, np.int64), np.full(room, -1)
    times, keys = np.zeros(room, np.int64), np.zeros(room, np.uint64)
    for s in range(len(ats)):
        at = ats[s]
        shares(at, g, length, size, hashed, table)
        for w in range(n):
            key, now = word_of(values, w, table) & cut, s * np.int64(len(out)) + rows[w]
            b = np.int64((key * STEP) >> shift)
            while stamp[b] == now:
                same = keys[b] == key
                if same and hashed:
                    same = _agree(codes, starts[w], codes, starts[held[b]], at)
                if same:
                    break
                b = (b + 1) & (room - 1)
            if stamp[b] != now:
                stamp[b], held[b], keys[b], times[b] = now, w, key, 0
            out[rows[w]] += 2 * times[b] + 1
            times[b] += 1


@njit
def bit_words(codes: Array, starts: Array, g: int, bits: int, out: Array) -> None:
    """The letters of every window, in so many bits each: shape (windows, words of 64 bits)."""
    per = 64 // bits
    for n in range(len(starts)):
        for c in range(out.shape[1]):
            word = np.uint64(0)
            for p in range(c * per, min((c + 1) * per, g)):
                word = (word << np.uint64(bits)) | np.uint64(codes[starts[n] + p])
            out[n, c] = word


@njit
def _differ(x: Array, a: int, z: Array, b: int, bits: int, low: Any) -> int:
    """In how many letters two windows differ."""
    total = np.uint64(0)
    for c in range(x.shape[1]):
        d = x[a, c] ^ z[b, c]
        e = d
        for s in range(1, bits):
            e |= d >> np.uint64(s)
        e &= low
        e -= (e >> np.uint64(1)) & np.uint64(0x5555555555555555)
        e = (e & np.uint64(0x3333333333333333)) + (
            (e >> np.uint64(2)) & np.uint64(0x3333333333333333)
        )
        e = (e + (e >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        total += (e * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return int(total)


@njit
def add_pairs(
    x: Array, rows_x: Array, z: Array, rows_z: Array, bits: int, weights: Array, out: Array
) -> None:
    """out[i, j] += weights[letters that differ] of all pairs of windows, as `bit_words` gives them."""
    low = np.uint64(0)
    for p in range(0, 64 - bits + 1, bits):
        low |= np.uint64(1) << np.uint64(p)
    for a in range(len(x)):
        here = out[rows_x[a]]
        for b in range(len(z)):
            here[rows_z[b]] += weights[_differ(x, a, z, b, bits, low)]


@njit
def add_own_pairs(x: Array, rows: Array, bits: int, weights: Array, out: Array) -> None:
    """out[i] += weights[letters that differ] of all pairs of windows of string i."""
    low = np.uint64(0)
    for p in range(0, 64 - bits + 1, bits):
        low |= np.uint64(1) << np.uint64(p)
    for a in range(len(x)):
        total, b = weights[0], a + 1
        while b < len(x) and rows[b] == rows[a]:
            total += 2 * weights[_differ(x, a, x, b, bits, low)]
            b += 1
        out[rows[a]] += total


@njit
def neighbours(
    codes: Array, starts: Array, g: int, m: int, size: int, out: Array, first: Array
) -> int:
    """The words that differ from each window in at most m letters, as numbers: those of window w
    begin at out[first[w]]; out may be empty, to count.
    """
    total = 0
    power = np.empty(g, np.int64)
    power[g - 1] = 1
    for p in range(g - 2, -1, -1):
        power[p] = power[p + 1] * size
    at, letter = np.empty(m, np.int64), np.empty(m, np.int64)
    for w in range(len(starts)):
        first[w] = total
        word = np.int64(0)
        for p in range(g):
            word = word * size + codes[starts[w] + p]
        if len(out):
            out[total] = word
        total += 1
        depth, p, c = 0, 0, 0  # of the change that is tried next: place p to letter c
        while m > 0:
            if p == g or depth == m:
                if depth == 0:
                    break
                depth -= 1
                word += (codes[starts[w] + at[depth]] - letter[depth]) * power[at[depth]]
                p, c = at[depth], letter[depth] + 1
                continue
            if c == size:
                p, c = p + 1, 0
                continue
            here = np.int64(codes[starts[w] + p])
            if c == here:
                c += 1
                continue
            word += (c - here) * power[p]
            if len(out):
                out[total] = word
            total += 1
            at[depth], letter[depth] = p, c
            depth, p, c = depth + 1, p + 1, 0
    first[len(starts)] = total
    return total
