"""How a matrix of pairs is cut: tiles that stay in a core's cache, walked in a fixed order whatever
the number of threads."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import cache
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.threads import parallel_map, single_blas

TILE_BYTES = (
    1 << 20
)  # one array of a tile: small enough for a core's cache, large enough that Python's share is small
TILE_ROWS = 256
WIDE = 4  # of items, whose sides take longer to prepare than a tile to leave the cache
FEW, CHEAP = 1 << 14, 1 << 20  # values, and times their columns, that are one tile
PLAIN = 1 << 18  # the same, for which OpenBLAS starts no threads
MIRRORED = 64  # rows of a tile that are mirrored at a time
KEPT = 128 << 20  # bytes that an arena keeps at most
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt


@cache
def settle_allocator() -> None:
    """Free one large block: the C library then keeps a tile's temporaries instead of returning
    their pages every time.

    glibc raises its thresholds for returning memory to the size of the largest block it saw freed.
    Without this, page faults take twice the time of the arithmetic.
    """
    np.empty(31 << 20, np.uint8)
    if "MALLOC_TRIM_THRESHOLD_" in os.environ:  # fixed, as Dask does for its workers
        with suppress(OSError, AttributeError):  # of another C library
            mallopt = ctypes.CDLL(None).mallopt
            mallopt(_MMAP_THRESHOLD, KEPT // 4)
            mallopt(_TRIM_THRESHOLD, KEPT)


def cuts(n: int, step: int) -> list[slice]:
    """[0, n) in pieces of `step`.

    >>> cuts(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def columns(itemsize: int) -> int:
    """The number of columns of a tile of `TILE_ROWS` rows."""
    return TILE_BYTES // (TILE_ROWS * itemsize)


def square(itemsize: int) -> int:
    """The rows and columns of a square tile, for symmetric matrices."""
    return math.isqrt(TILE_BYTES // itemsize) // 64 * 64


def wider(side: int, wide: int, n: int) -> int:
    """The side of square tiles, up to `wide` times that of a cache: of few rows less, so that
    tiles outside the triangle are no large part of it, and threads have some each.

    >>> wider(320, 1, 9000), wider(320, 3, 9000), wider(320, 3, 2000), wider(320, 3, 400)
    (320, 960, 512, 320)
    """
    return int(np.clip(-(-n // 256) * 64, side, wide * side))


def at_once(size: int, width: int) -> bool:
    """Whether so many values, of rows of so many columns, are one tile that threads do not share:
    starting these takes longer. Items, of no columns, take longer themselves.

    >>> at_once(150 * 150, 10), at_once(150 * 150, 1000), at_once(150 * 150, 0)
    (True, False, False)
    """
    return size <= FEW or (size <= 4 * FEW and 0 < size * width <= CHEAP)


def fill(
    out: Array,
    tile: Callable[[slice, slice], Any],
    *,
    symmetric: bool = False,
    wide: int = 1,
    width: int = 0,
) -> Array:
    """out[rows, cols] = tile(rows, cols), in threads; of a symmetric matrix only one triangle is
    computed. Tiles are up to `wide` times as wide as a cache would have them; few values of rows of
    so many columns are one tile."""
    if at_once(out.size, width):
        with nullcontext() if out.size * width <= PLAIN else single_blas():
            out[:] = tile(slice(0, out.shape[0]), slice(0, out.shape[1]))
        return mirrored(out) if symmetric else out
    size = out.dtype.itemsize
    down, across = TILE_ROWS, wide * columns(size)
    if symmetric:
        down = across = wider(square(size), wide, len(out))
    settle_allocator()

    def row(rows: slice) -> None:
        for cols in cuts(out.shape[1], across):
            if symmetric and cols.start < rows.start:
                continue
            values = np.asarray(tile(rows, cols))
            out[rows, cols] = values
            if symmetric and cols.start > rows.start:
                out[cols, rows] = values.T  # while they are in the cache
            elif symmetric:
                mirrored(out[rows, cols])

    parallel_map(row, cuts(out.shape[0], down))
    return out


def mirrored(K: Array) -> Array:
    """K below its diagonal what it is above it, in place: rounding differs between the two.

    >>> mirrored(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [2., 4.]])
    """
    for at in cuts(len(K), MIRRORED):
        K[at.stop :, at] = K[at, at.stop :].T
        corner = K[at, at]
        np.copyto(corner, corner.T, where=_below(len(corner)))
    return K


@cache
def _below(n: int) -> Array:
    """Where a matrix of n rows is below its diagonal."""
    return np.tri(n, k=-1, dtype=bool)


def broadcast(value: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """A formula's value as an array of that shape: constants give one number."""
    return np.broadcast_to(np.asarray(value, dtype), shape)
