"""How a matrix of pairs is cut: tiles that stay in a core's cache, walked in a fixed order whatever the number of threads."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.threads import parallel_map

TILE_BYTES = 1 << 19  # one array of a tile; a formula holds two or three, and a core has 1 MB or more of second-level cache
ROWS = 256


def cuts(n: int, step: int) -> list[slice]:
    """[0, n) in pieces of `step`.

    >>> cuts(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def columns(itemsize: int) -> int:
    """The number of columns of a tile of `ROWS` rows."""
    return TILE_BYTES // (ROWS * itemsize)


def fill(out: Array, tile: Callable[[slice, slice], Any], *, symmetric: bool = False) -> Array:
    """out[rows, cols] = tile(rows, cols), in threads; of a symmetric matrix only one triangle is computed."""
    across = cuts(out.shape[1], ROWS if symmetric else columns(out.dtype.itemsize))

    def row(rows: slice) -> None:
        for cols in across:
            if symmetric and cols.start < rows.start:
                continue
            out[rows, cols] = tile(rows, cols)
            if symmetric and cols.start > rows.start:
                out[cols, rows] = out[rows, cols].T

    parallel_map(row, cuts(out.shape[0], ROWS))
    return out


def broadcast(value: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """A formula's value as an array of that shape: constants give one number."""
    return np.broadcast_to(np.asarray(value, dtype), shape)
