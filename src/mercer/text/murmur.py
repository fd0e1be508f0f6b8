"""MurmurHash3 of many names at once, and the columns and signs that hashes stand for.

Names are one buffer of bytes and the offsets between them, as Arrow has them: name i is
`buffer[offsets[i] : offsets[i + 1]]`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

MAX_COLUMNS = 2**31 - 1  # of 32 signed bits
TASK_NAMES = 1 << 15

_C1, _C2, _C3, _C4, _5, _STEP = (
    np.uint32(v) for v in (0xCC9E2D51, 0x1B873593, 0x85EBCA6B, 0xC2B2AE35, 5, 0xE6546B64)
)
_8, _13, _15, _16, _17, _19 = (np.uint32(v) for v in (8, 13, 15, 16, 17, 19))


def murmur3(buffer: Array, offsets: Array, seed: int = 0) -> Array:
    """The 32 bits of MurmurHash3_x86_32 of every name, as int32; scikit-learn's `murmurhash3_32`.

    >>> murmur3(*packed(["foo", ""])), reference(b"foo")
    (array([-156908512,          0], dtype=int32), -156908512)
    """
    wrong = strings_law(buffer, offsets)
    if wrong:
        raise ValueError(f"The names {wrong}; give bytes and ascending offsets between them.")
    if not 0 <= seed < 1 << 32:
        raise ValueError(f"seed must be a whole number from 0 to 2**32 - 1, got {seed!r}.")
    out = np.empty(len(offsets) - 1, np.int32)
    given = plain_bytes(buffer), np.require(offsets, None, ["C", "W"]), np.uint32(seed), out
    parallel_map(lambda t: hash_names(t.start, t.stop, *given), cuts(len(out), TASK_NAMES))
    return out


def plain_bytes(buffer: Array) -> Array:
    """The bytes in one piece that may be written to, so that Numba compiles one signature."""
    return np.require(buffer, np.uint8, ["C", "W"])


def strings_law(buffer: Any, offsets: Any) -> str | None:
    """What is wrong with bytes and offsets between them; None where loops may read them."""
    if not isinstance(buffer, np.ndarray) or buffer.dtype != np.uint8 or buffer.ndim != 1:
        return "are no vector of uint8"
    if not isinstance(offsets, np.ndarray) or offsets.dtype != np.int64 or offsets.ndim != 1:
        return "have offsets that are no vector of int64"
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(buffer):
        return f"have offsets that do not go from 0 to their {len(buffer)} bytes"
    return "have offsets that descend" if (offsets[1:] < offsets[:-1]).any() else None


def packed(names: Sequence[str]) -> tuple[Array, Array]:
    """Strings as one buffer of UTF-8 and the offsets between them.

    >>> packed(["a", "é"])
    (array([ 97, 195, 169], dtype=uint8), array([0, 1, 3]))
    """
    whole = "".join(names)
    try:
        parts = names if whole.isascii() else list(map(str.encode, names))
        buffer = bytearray(whole, "utf-8")
    except UnicodeEncodeError as e:
        raise ValueError(
            f"The name {e.object!r:.60} is no UTF-8 ({e.reason}); take such characters out."
        ) from e
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    return np.frombuffer(buffer, np.uint8), offsets


def columns_of(hashes: Array, n_features: int) -> Array:
    """|h| mod n_features, int32: the columns of scikit-learn's hashing transformers.

    >>> columns_of(np.array([-(2**31), -7, 7], np.int32), 5)
    array([3, 2, 2], dtype=int32)
    """
    if not 1 <= n_features <= MAX_COLUMNS:
        raise ValueError(
            f"n_features must be from 1 to 2**31 - 1 where names are hashed, got {n_features}; hashes have 32 bits."
        )
    return (np.abs(hashes.astype(np.int64)) % n_features).astype(np.int32)


def signs_of(hashes: Array) -> Array:
    """1 where h >= 0 and -1 elsewhere, int32.

    >>> signs_of(np.array([-7, 0], np.int32))
    array([-1,  1], dtype=int32)
    """
    return np.where(hashes >= 0, np.int32(1), np.int32(-1))


def reference(name: bytes, seed: int = 0) -> int:
    """The hash of one name, in plain Python."""
    h, mask = seed, 0xFFFFFFFF
    for at in range(0, len(name), 4):
        word = name[at : at + 4]
        k = int.from_bytes(word, "little") * 0xCC9E2D51 & mask
        k = ((k << 15 | k >> 17) & mask) * 0x1B873593 & mask
        h ^= k
        if len(word) == 4:
            h = ((h << 13 | h >> 19) & mask) * 5 + 0xE6546B64 & mask
    h ^= len(name)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (h >> 31 << 32)


@njit
def hash_names(begin: int, end: int, buffer: Array, offsets: Array, seed: Any, out: Array) -> None:
    """The hashes of the names from begin to end."""
    for i in range(begin, end):
        at, stop, h = offsets[i], offsets[i + 1], seed
        size = np.uint32(stop - at)
        while at + 4 <= stop:
            h ^= _scrambled(_word(buffer, at))
            h = np.uint32(np.uint32((h << _13) | (h >> _19)) * _5 + _STEP)
            at += 4
        k = np.uint32(0)
        for t in range(stop - 1, at - 1, -1):
            k = np.uint32((k << _8) | buffer[t])
        h ^= _scrambled(k) ^ size
        h = np.uint32((h ^ (h >> _16)) * _C3)
        h = np.uint32((h ^ (h >> _13)) * _C4)
        out[i] = np.int32(h ^ (h >> _16))


@njit
def _word(buffer: Array, at: int) -> Any:
    """Four bytes, the lowest first."""
    low = np.uint32(buffer[at]) | (np.uint32(buffer[at + 1]) << _8)
    return np.uint32(low | ((np.uint32(buffer[at + 2]) | (np.uint32(buffer[at + 3]) << _8)) << _16))


@njit
def _scrambled(k: Any) -> Any:
    k = np.uint32(k * _C1)
    return np.uint32(np.uint32((k << _15) | (k >> _17)) * _C2)
