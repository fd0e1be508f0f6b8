"""Entries of rows as CSR rows: columns in order, equal ones added up, zeros left out.

Columns that occur are numbered in their order. A row adds its values up by number, marks a bit for
each, and writes what the bits say in order: linear in its entries, whatever their order, and what
shares a column is added in the order in which it came.
"""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

TILE_ROWS = 1 << 13

_ONE, _58 = np.uint64(1), np.uint64(58)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its 64 windows of six bits are all different
_BIT = np.zeros(64, np.int64)
_BIT[[((1 << k) * int(_DE_BRUIJN) % 2**64) >> 58 for k in range(64)]] = np.arange(64)


def canonical_rows(
    indptr: Array, codes: Array, values: Array, columns: Array, factors: Array
) -> tuple[Array, Array, Array]:
    """Data, columns and pointers of the rows in which entry t lies in column `columns[i, c]` with
    `values[t] factors[i, c]`, c = codes[t], for every block i; in threads.

    Loops look at no bounds: `indptr` ascends from 0 to the number of entries, and codes are below
    that of columns (`NamedRows`).
    """
    s, n = len(columns), len(indptr) - 1
    distinct, ranks = np.unique(columns, return_inverse=True)
    indices, data = np.empty(len(codes) * s, np.int32), np.empty(len(codes) * s)
    out = np.zeros(n + 1, np.int64)
    rules = ranks.reshape(-1), factors.reshape(-1), s, distinct
    tiles = cuts(n, max(TILE_ROWS, -(-n * len(distinct) // max(1, len(codes)))))
    parallel_map(
        lambda t: fill_rows(t.start, t.stop, indptr, codes, values, *rules, out, indices, data),
        tiles,
    )
    sizes = [int(out[t.start + 1 : t.stop + 1].sum()) for t in tiles]
    starts = [int(indptr[t.start]) * s for t in tiles]
    np.cumsum(out, out=out)
    if out[-1] < len(data):
        pieces = [slice(a, a + size) for a, size in zip(starts, sizes, strict=True)]
        indices, data = (np.concatenate([v[p] for p in pieces]) for v in (indices, data))
    index = np.int32 if out[-1] <= np.iinfo(np.int32).max else np.int64
    return data, indices.astype(index, copy=False), out.astype(index)


@njit
def fill_rows(
    begin: int,
    end: int,
    indptr: Array,
    codes: Array,
    values: Array,
    ranks: Array,
    factors: Array,
    s: int,
    distinct: Array,
    out: Array,
    indices: Array,
    data: Array,
) -> None:
    """Rows from begin to end, one after another from indptr[begin] s on; out[r + 1] is the size of
    row r."""
    k, size = ranks.shape[0] // s, distinct.shape[0]
    total = np.zeros(size)
    low, high = np.zeros(-(-size // 64), np.uint64), np.zeros(-(-size // 4096), np.uint64)
    at = indptr[begin] * s
    for r in range(begin, end):
        for i in range(s):
            for t in range(indptr[r], indptr[r + 1]):
                c = i * k + codes[t]
                b = ranks[c]
                total[b] += values[t] * factors[c]
                low[b >> 6] |= _ONE << np.uint64(b & 63)
                high[b >> 12] |= _ONE << np.uint64((b >> 6) & 63)
        stop = _emit(total, low, high, distinct, at, indices, data)
        out[r + 1] = stop - at
        at = stop


@njit
def _emit(
    total: Array, low: Array, high: Array, distinct: Array, at: int, indices: Array, data: Array
) -> int:
    """Write the sums whose bits are set, in order, but for zeros, and clear them; where the next
    row begins."""
    for a in range(high.shape[0]):
        words, high[a] = high[a], 0
        while words:
            w = a * 64 + _BIT[((words & (~words + _ONE)) * _DE_BRUIJN) >> _58]
            words &= words - _ONE
            bits, low[w] = low[w], 0
            while bits:
                b = w * 64 + _BIT[((bits & (~bits + _ONE)) * _DE_BRUIJN) >> _58]
                bits &= bits - _ONE
                indices[at], data[at] = distinct[b], total[b]
                at += total[b] != 0
                total[b] = 0
    return at


def reference(
    rows: list[list[tuple[int, float]]], columns: Array, factors: Array
) -> list[dict[int, float]]:
    """The rows of entries (code, value) in plain Python: values by column."""
    found = []
    for row in rows:
        sums: dict[int, float] = {}
        for of, factor in zip(columns, factors, strict=True):
            for code, value in row:
                column = int(of[code])
                sums[column] = sums.get(column, 0.0) + value * float(factor[code])
        found.append({column: sums[column] for column in sorted(sums) if sums[column] != 0})
    return found
