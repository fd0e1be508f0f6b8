"""The compiled loops of sparse projections: where an entry goes, and with which sign, is hashed on
the fly."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

CHUNK_COLUMNS = 512  # columns whose places are worked out together, for all rows of a tile

_STEP, _ONE, _FIRST, _SECOND = (
    np.uint64(v) for v in (0x9E3779B97F4A7C15, 1, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_27, _30, _31, _32, _58 = (np.uint64(v) for v in (27, 30, 31, 32, 58))
_DE_BRUIJN = np.uint64(
    0x03F79D71B4CB0A89
)  # its 64 windows of six bits are all different: they tell which bit is set
_BIT = np.zeros(64, np.int64)
_BIT[[((1 << k) * int(_DE_BRUIJN) % 2**64) >> 58 for k in range(64)]] = np.arange(64)


@njit
def mixed(counter: int, a: Any, b: Any) -> Any:
    """64 bits that depend on every bit of a counter and of the key (a, b)."""
    z = np.uint64(counter) * _STEP + a
    z = (z ^ (z >> _30)) * _FIRST
    z = (z ^ (z >> _27) ^ b) * _SECOND
    return z ^ (z >> _31)


@njit
def positions(columns: Array, key: Array, s: int, width: int, at: Array) -> None:
    """at[i c + t] = i width + h(i, columns[t]), of block i of the output; c = len(columns)."""
    c = columns.shape[0]
    a, b, w = key[0], key[1], np.uint64(width)
    for i in range(s):
        here = at[i * c : (i + 1) * c]
        for t in range(c):
            here[t] = i * width + np.int64(((mixed(columns[t] * s + i, a, b) >> _32) * w) >> _32)


@njit
def entries(columns: Array, key: Array, s: int, value: Any, other: Any, entry: Array) -> None:
    """entry[i c + t] = `value` where sigma(i, columns[t]) is 1, `other` where it is -1."""
    c = columns.shape[0]
    a, b = key[0], key[1]
    for i in range(s):
        here = entry[i * c : (i + 1) * c]
        for t in range(c):
            here[t] = other if mixed(columns[t] * s + i, a, b) & _ONE else value


@njit
def add_columns(
    n: int,
    c: int,
    V: Array,
    step: int,
    start: int,
    key: Array,
    s: int,
    width: int,
    value: Any,
    other: Any,
    out: Array,
    out_step: int,
) -> None:
    """out (n, m) += V (n, c) A', where the columns of V are those of A from `start` on."""
    at, entry = np.empty(CHUNK_COLUMNS * s, np.int64), np.empty(CHUNK_COLUMNS * s, V.dtype)
    for t in range(0, c, CHUNK_COLUMNS):
        columns = np.arange(start + t, start + min(t + CHUNK_COLUMNS, c))
        w = columns.shape[0]
        positions(columns, key, s, width, at)
        entries(columns, key, s, value, other, entry)
        for r in range(n):
            _scatter(V[r * step + t : r * step + t + w], at[: s * w], entry, out[r * out_step :])


@njit
def add_csr(
    begin: int,
    end: int,
    pointers: Array,
    columns: Array,
    values: Array,
    key: Array,
    s: int,
    width: int,
    value: Any,
    other: Any,
    out: Array,
    step: int,
) -> None:
    """out (n, m) += X A' for the CSR rows from begin to end."""
    at, entry = _buffers(pointers[begin : end + 1], s, values)
    for r in range(begin, end):
        cols, c = columns[pointers[r] : pointers[r + 1]], pointers[r + 1] - pointers[r]
        positions(cols, key, s, width, at)
        entries(cols, key, s, value, other, entry)
        _scatter(values[pointers[r] : pointers[r + 1]], at[: s * c], entry, out[r * step :])


@njit
def _scatter(v: Array, at: Array, entry: Array, out: Array) -> None:
    c = v.shape[0]
    for k in range(0, at.shape[0], max(1, c)):
        for t in range(c):
            out[at[k + t]] += entry[k + t] * v[t]


@njit
def inner_csr(
    begin: int,
    end: int,
    pointers: Array,
    columns: Array,
    values: Array,
    key: Array,
    s: int,
    width: int,
    value: Any,
    other: Any,
    w: Array,
    out: Array,
) -> None:
    """out[r] = (A x_r, w) for the CSR rows from begin to end."""
    at, entry = _buffers(pointers[begin : end + 1], s, values)
    for r in range(begin, end):
        cols, x = columns[pointers[r] : pointers[r + 1]], values[pointers[r] : pointers[r + 1]]
        positions(cols, key, s, width, at)
        entries(cols, key, s, value, other, entry)
        total = 0 * value
        for i in range(s):
            for t in range(x.shape[0]):
                total += x[t] * w[at[i * x.shape[0] + t]] * entry[i * x.shape[0] + t]
        out[r] = total


@njit
def count_csr(
    begin: int,
    end: int,
    pointers: Array,
    columns: Array,
    key: Array,
    s: int,
    width: int,
    indptr: Array,
) -> None:
    """indptr[r + 1] = the number of outputs that row r reaches."""
    at, seen = _buffers(pointers[begin : end + 1], s, columns)[0], np.full(s * width, -1, np.int64)
    for r in range(begin, end):
        cols = columns[pointers[r] : pointers[r + 1]]
        positions(cols, key, s, width, at)
        count = 0
        for t in range(s * cols.shape[0]):
            count += seen[at[t]] != r
            seen[at[t]] = r
        indptr[r + 1] = count


@njit
def fill_csr(
    begin: int,
    end: int,
    pointers: Array,
    columns: Array,
    values: Array,
    key: Array,
    s: int,
    width: int,
    value: Any,
    other: Any,
    indptr: Array,
    indices: Array,
    data: Array,
) -> None:
    """The rows of X A' between the places that indptr gives them, their indices sorted."""
    at, entry = _buffers(pointers[begin : end + 1], s, values)
    total = np.zeros(s * width, values.dtype)
    low, high = np.zeros(-(-s * width // 64), np.uint64), np.zeros(-(-s * width // 4096), np.uint64)
    for r in range(begin, end):
        cols, c = columns[pointers[r] : pointers[r + 1]], pointers[r + 1] - pointers[r]
        positions(cols, key, s, width, at)
        entries(cols, key, s, value, other, entry)
        _scatter(values[pointers[r] : pointers[r + 1]], at[: s * c], entry, total)
        _mark(at[: s * c], low, high)
        _emit(total, low, high, indptr[r], indices, data)


@njit
def _buffers(pointers: Array, s: int, values: Array) -> tuple[Array, Array]:
    """Room for the positions and the entries of the longest row."""
    longest = 0
    for i in range(pointers.shape[0] - 1):
        longest = max(longest, pointers[i + 1] - pointers[i])
    return np.empty(longest * s, np.int64), np.empty(longest * s, values.dtype)


@njit
def _mark(at: Array, low: Array, high: Array) -> None:
    """One bit of `low` for every output, one bit of `high` for every word of `low`."""
    for t in range(at.shape[0]):
        low[at[t] >> 6] |= _ONE << np.uint64(at[t] & 63)
        high[at[t] >> 12] |= _ONE << np.uint64((at[t] >> 6) & 63)


@njit
def _emit(total: Array, low: Array, high: Array, at: int, indices: Array, data: Array) -> None:
    """Write the outputs whose bits are set, in order, and clear them."""
    for a in range(high.shape[0]):
        words, high[a] = high[a], 0
        while words:
            b = a * 64 + _lowest(words)
            words &= words - _ONE
            outputs, low[b] = low[b], 0
            while outputs:
                p = b * 64 + _lowest(outputs)
                outputs &= outputs - _ONE
                indices[at], data[at], total[p] = p, total[p], 0
                at += 1


@njit
def _lowest(word: Any) -> int:
    """Which is the lowest bit set."""
    return _BIT[((word & (~word + _ONE)) * _DE_BRUIJN) >> _58]


@njit
def polar(start: int, key: Array, radius: Array, angle: Array) -> None:
    """Polar coordinates of pairs of independent normals, from `start` on: sqrt(-2 ln u) and a
    uniform angle. [Box & Muller 1958]"""
    for t in range(radius.shape[0]):
        z = mixed(start + t, key[0], key[1])
        radius[t] = np.sqrt(-2 * np.log((np.float64(z >> np.uint64(24)) + 0.5) * 2.0**-40))
        angle[t] = (np.float64(z & np.uint64(0xFFFFFF)) + 0.5) * (2 * np.pi * 2.0**-24) - np.pi
