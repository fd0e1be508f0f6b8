"""Names put in order and equal ones joined, millions at a time.

Names are ordered by column, then by 32 bits of a fingerprint, then by their bytes: the first two
are one number, which NumPy sorts, merging what is sorted already; bytes are looked at only where
such numbers are equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

_PRIME, _START, _32 = (np.uint64(v) for v in (0x100000001B3, 0xCBF29CE484222325, 32))


class Joined(NamedTuple):
    """Which of some names to take, in order, none twice, and how often each came."""

    picks: Array
    counts: Array


def joined(columns: Array, counts: Array, buffer: Array, offsets: Array) -> Joined:
    """Names in order, equal ones of a column joined; the arrays were looked at by whoever made
    them (`Distinct`)."""
    keys = np.empty(len(columns), np.uint64)
    fingerprints(columns.astype(np.int64), buffer, offsets, keys)
    order = np.argsort(keys, kind="stable")
    keys, total = keys[order], np.empty(len(order), np.int64)
    k = join(keys, order, counts.astype(np.int64), buffer, offsets, total)
    return Joined(order[:k], total[:k])


def gathered(picks: Array, buffer: Array, offsets: Array) -> tuple[Array, Array]:
    """The names of those numbers as a buffer and offsets of their own."""
    out = np.zeros(len(picks) + 1, np.int64)
    np.cumsum(offsets[picks + 1] - offsets[picks], out=out[1:])
    room = np.empty(out[-1], np.uint8)
    gather(picks, buffer, offsets, out, room)
    return room, out


def reference(columns: Array, counts: Array, names: list[bytes]) -> dict[tuple[int, bytes], int]:
    """How often each name of each column came, in plain Python."""
    found: dict[tuple[int, bytes], int] = {}
    for column, count, name in zip(columns.tolist(), counts.tolist(), names, strict=True):
        found[column, name] = found.get((column, name), 0) + count
    return found


@njit
def fingerprints(columns: Array, buffer: Array, offsets: Array, keys: Array) -> None:
    """The column in the upper 32 bits, those of a fingerprint of the name below."""
    for i in range(keys.shape[0]):
        h = _START
        for t in range(offsets[i], offsets[i + 1]):
            h = (h ^ np.uint64(buffer[t])) * _PRIME
        h ^= h >> _32
        keys[i] = (np.uint64(columns[i]) << _32) | ((h * _PRIME) >> _32)


@njit
def join(
    keys: Array, order: Array, counts: Array, buffer: Array, offsets: Array, total: Array
) -> int:
    """Put names of equal keys in order, then the first of equal names at the front of `order` and
    their sum into `total`; how many there are."""
    n, k, begin = keys.shape[0], 0, 0
    while begin < n:
        end = begin + 1
        while end < n and keys[end] == keys[begin]:
            end += 1
        if end - begin > 1:
            _sort(order[begin:end], buffer, offsets)
        for t in range(begin, end):
            i = order[t]
            if t > begin and _compare(order[k - 1], i, buffer, offsets) == 0:
                total[k - 1] += counts[i]
            else:
                order[k], total[k] = i, counts[i]
                k += 1
        begin = end
    return k


@njit
def _sort(order: Array, buffer: Array, offsets: Array) -> None:
    """By bytes; few names, but for those that were made to share their keys. [Shell 1959]"""
    n, gap = order.shape[0], 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for t in range(gap, n):
            i, at = order[t], t
            while at >= gap and _compare(order[at - gap], i, buffer, offsets) > 0:
                order[at] = order[at - gap]
                at -= gap
            order[at] = i
        gap //= 3


@njit
def _compare(i: int, j: int, buffer: Array, offsets: Array) -> int:
    """Below, at or above zero as name i comes before name j, is equal to it, or comes after it."""
    a, b = offsets[i], offsets[j]
    size, other = offsets[i + 1] - a, offsets[j + 1] - b
    for t in range(min(size, other)):
        if buffer[a + t] != buffer[b + t]:
            return 1 if buffer[a + t] > buffer[b + t] else -1
    return size - other


@njit
def gather(picks: Array, buffer: Array, offsets: Array, out: Any, room: Array) -> None:
    """room[out[t] : out[t + 1]] = the name number picks[t]."""
    for t in range(picks.shape[0]):
        at, start = out[t], offsets[picks[t]]
        for c in range(out[t + 1] - at):
            room[at + c] = buffer[start + c]
