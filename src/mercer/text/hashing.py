"""The compiled loops of hashed n-grams: MurmurHash3 of every n-gram, and rows of counts in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

U, _1, _4 = np.uint32, np.uint64(1), np.uint64(4)
_C1, _C2, _5, _N = U(0xCC9E2D51), U(0x1B873593), U(5), U(0xE6546B64)
_F1, _F2 = U(0x85EBCA6B), U(0xC2B2AE35)
_ONE, _8, _13, _15, _16, _17, _19, _24, _31 = (U(v) for v in (1, 8, 13, 15, 16, 17, 19, 24, 31))
_NONE = U(0xFFFFFFFF)
SHORT = 48  # rows of fewer n-grams are sorted by insertion


@njit
def _load(text: Array, p: Any) -> Any:
    """Four bytes as a number; there are always four, since the buffer is longer than the text."""
    return (
        U(text[p])
        | U(text[p + _1]) << _8
        | U(text[p + np.uint64(2)]) << _16
        | U(text[p + np.uint64(3)]) << _24
    )


@njit
def _mixed(k: Any) -> Any:
    k = U(k * _C1)
    k = U((k << _15) | (k >> _17))
    return U(k * _C2)


@njit
def _block(h: Any, k: Any) -> Any:
    h = U(h ^ _mixed(k))
    h = U((h << _13) | (h >> _19))
    return U(h * _5 + _N)


@njit
def _key(text: Array, h: Any, begin: Any, p: Any, end: Any, width: Any, mask: Any, sign: Any) -> Any:  # fmt: skip
    """Twice the column of text[begin:end], and 1 where its sign is -1; h is the hash of all before
    p, which is at most three bytes from the end."""
    tail = _load(text, p) & U((_ONE << U((end - p) << np.uint64(3))) - _ONE)
    h = U(h ^ _mixed(tail) ^ U(end - begin))
    h = U((h ^ (h >> _16)) * _F1)
    h = U((h ^ (h >> _13)) * _F2)
    h = U(h ^ (h >> _16))
    negative = h >> _31
    size = U(-np.int32(h)) if negative else h
    column = U(size & mask) if mask else U(size % width)
    return U(column << _ONE) | U(negative & sign)


@njit
def word_keys(
    text: Array, starts: Array, docs: Array, how: Array, at: Array, keys: Array, ends: Array
) -> Any:
    """The keys of n-grams of words: of n = how[0] to how[1] words, how[2] columns, signs where
    how[3].

    It begins at document at[0] and word at[1], and stops at the end or where keys has no more room;
    `at` then says where to go on. `ends[r]` is where row r ends in keys. Returns the number of rows.
    """
    least, most, width, sign = np.uint64(how[0]), np.uint64(how[1]), U(how[2]), U(how[3])
    mask = U(how[2] - 1) if how[2] & (how[2] - 1) == 0 else U(0)
    m, room, part = np.uint64(0), np.uint64(len(keys)) - most, 0
    row, j = at[0], np.uint64(at[1])
    while row < len(docs) - 1 and m <= room:
        last = np.uint64(docs[row + 1])
        while j < last and m <= room:
            begin = p = np.uint64(starts[j])
            h = U(0)
            for e in range(j + _1, min(j + most, last) + _1):
                end = np.uint64(starts[e]) - _1
                while p + _4 <= end:
                    h = _block(h, _load(text, p))
                    p += _4
                if e - j >= least:
                    keys[m] = _key(text, h, begin, p, end, width, mask, sign)
                    m += _1
            j += _1
        ends[row - at[0]] = m
        if j < last:
            part = 1
            break
        row += 1
    rows = row - at[0] + part
    at[0], at[1] = row, j
    return rows


@njit
def char_keys(
    text: Array, starts: Array, docs: Array, how: Array, at: Array, keys: Array, ends: Array
) -> Any:
    """The keys of n-grams of characters, as `word_keys`; at[1] is a run and at[2] a place in it.

    Where how[4], runs have a blank on either side, and one of fewer than how[0] characters counts
    as a whole.
    """
    least, most, width, sign, pad = how[0], how[1], U(how[2]), U(how[3]), how[4]
    mask = U(how[2] - 1) if how[2] & (how[2] - 1) == 0 else U(0)
    m, room, part = np.uint64(0), np.uint64(len(keys)) - np.uint64(most), 0
    row, j, p = at[0], at[1], np.uint64(at[2])
    while row < len(docs) - 1 and m <= room:
        while j < docs[row + 1] and m <= room:
            first, stop = np.uint64(starts[j] - pad), np.uint64(starts[j + 1])
            p = max(p, first)
            while p < stop and m <= room:
                h, n, done, end = U(0), 0, p, p
                while n < most and end < stop:
                    n += 1
                    end += _1
                    while text[end] & 0xC0 == 0x80:
                        end += _1
                    if done + _4 <= end:
                        h = _block(h, _load(text, done))
                        done += _4
                    if n >= least or (pad and end == stop and p == first):
                        keys[m] = _key(text, h, p, done, end, width, mask, sign)
                        m += _1
                p += _1
                while text[p] & 0xC0 == 0x80:
                    p += _1
            if p < stop:
                break
            j, p = j + 1, np.uint64(0)
        ends[row - at[0]] = m
        if j < docs[row + 1]:
            part = 1
            break
        row += 1
    rows = row - at[0] + part
    at[0], at[1], at[2] = row, j, p
    return rows


@njit
def count(
    keys: Array,
    ends: Array,
    how: Array,
    spare: Array,
    heads: Array,
    indices: Array,
    values: Array,
    indptr: Array,
) -> Any:
    """Sum the signs of equal columns, of how[0] bits, of every row in ascending order; sums that
    are 0 are left out unless how[1]. `spare` is as long as keys, and `heads` of 1024. Returns the
    number of sums."""
    bits, keep = U(how[0]), how[1]
    pos, a = np.uint64(0), np.uint64(0)
    indptr[0] = 0
    for r in range(len(ends)):
        n = np.uint64(ends[r]) - a
        turned = _insert(keys, a, n) if n < SHORT else _radix(keys, a, n, spare, heads, bits)
        last, total = _NONE, np.int64(0)
        for t in range(n):
            k = spare[t] if turned else keys[a + t]
            column = k >> _ONE
            same = column == last
            pos += np.uint64((not same) and (total != 0 or (keep and last != _NONE)))
            total = (total if same else 0) + (1 - 2 * np.int64(k & _ONE))
            indices[pos], values[pos], last = column, total, column
        pos += np.uint64(total != 0 or (keep and last != _NONE))
        indptr[r + 1] = pos
        a += n
    return pos


@njit
def _insert(keys: Array, a: Any, n: Any) -> Any:
    for i in range(a + _1, a + n):
        k, j = keys[i], np.uint64(i)
        while j > a and keys[j - _1] > k:
            keys[j] = keys[j - _1]
            j -= _1
        keys[j] = k
    return False


@njit
def _radix(keys: Array, a: Any, n: Any, spare: Array, heads: Array, bits: Any) -> Any:
    """Sort keys[a : a + n] by columns of that many bits, ten at a time; whether they are in `spare`
    then."""
    shift, turned = _ONE, False
    while shift <= bits:
        for t in range(1024):
            heads[t] = 0
        for t in range(n):
            k = spare[t] if turned else keys[a + t]
            heads[(k >> shift) & U(1023)] += _ONE
        total = U(0)
        for t in range(1024):
            size = heads[t]
            heads[t] = total
            total += size
        for t in range(n):
            k = spare[t] if turned else keys[a + t]
            d = (k >> shift) & U(1023)
            if turned:
                keys[a + np.uint64(heads[d])] = k
            else:
                spare[heads[d]] = k
            heads[d] += _ONE
        turned, shift = not turned, shift + U(10)
    return turned
