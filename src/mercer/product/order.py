"""The n-th of many numbers in order, a part of them at a time: nothing is sorted but the few that agree in their leading bits."""
from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from mercer.inputs import Array

BITS, FEW = 16, 1 << 16


def nth_key(parts: Callable[[], Iterable[Array]], n: int) -> np.uint64:
    """The n-th, from 0, of the unsigned numbers in the parts, which are gone over for every 16 bits until few are left.

    >>> nth_key(lambda: [np.array([7, 1], np.uint64), np.array([5], np.uint64)], 1)
    np.uint64(5)
    """
    known, left, ranks = 0, 64, n
    while left:
        left -= BITS
        counts = sum((np.bincount(_next(k, known, left), minlength=1 << BITS) for k in parts()), np.zeros(1 << BITS, np.int64))
        upto = np.cumsum(counts)
        there = int(np.searchsorted(upto, ranks, side="right"))
        ranks, known = ranks - int(upto[there] - counts[there]), known << BITS | there
        if counts[there] <= FEW:
            near = np.concatenate([k[k >> np.uint64(left) == known] for k in parts()])
            return np.uint64(np.sort(near)[ranks])
    return np.uint64(known)


def _next(keys: Array, known: int, left: int) -> Array:
    """The next bits of those that begin as known."""
    shift = np.uint64(left)
    mine = keys if left + BITS == 64 else keys[keys >> np.uint64(left + BITS) == known]
    return (mine >> shift & np.uint64((1 << BITS) - 1)).astype(np.int64)


def key_of(values: Array) -> Array:
    """Unsigned numbers in the order of finite floats."""
    bits = np.asarray(values, np.float64).view(np.uint64)
    sign = bits >> np.uint64(63) == 1
    return np.where(sign, ~bits, bits | np.uint64(1 << 63))


def float_of(key: np.uint64) -> float:
    """The float of that key.

    >>> [float_of(k) for k in key_of(np.array([-2.5, 0.0, 3.0]))]
    [-2.5, 0.0, 3.0]
    """
    bits = key & np.uint64((1 << 63) - 1) if key >> np.uint64(63) else ~key
    return float(np.array([bits], np.uint64).view(np.float64)[0])
