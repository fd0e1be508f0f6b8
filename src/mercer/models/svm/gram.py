"""All kernel values of a dual problem, each computed once: for rows whose Gram matrix fits the
memory limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mercer.inputs import Array
from mercer.operators import TiledOperator
from mercer.operators.tiles import one_sided, panel_rows
from mercer.ops import kernel_rows, smo
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts, settle_allocator

PART_ROWS = 512  # kernel rows that one task adds up: a constant, as sums depend on it
SAMPLE_SHARE = 9  # the rows that are solved first are a third: so small a part of the matrix


@dataclass(frozen=True, eq=False)
class GramMatrix:
    """K (n, n), its columns padded to lanes: what solvers of duals ask of kernel rows, read from
    memory."""

    K: Array

    @classmethod
    def of(cls, op: TiledOperator) -> GramMatrix:
        return cls(square(op))

    @staticmethod
    def bytes(n: int, itemsize: int) -> float:
        """The memory that it takes for n rows, with that of the rows that are solved first."""
        return float(itemsize) * n * smo.lanes(n) * smo.LANE * (1 + 1 / SAMPLE_SHARE)

    @property
    def made(self) -> int:
        """Kernel rows that were computed: those of one triangle."""
        return len(self.K) // 2

    def add(self, G: Array, rows: Array, delta: Array, again: Array | None = None) -> None:
        """G += K[:, rows] @ delta, in float64, whatever the number of threads; `again` is for
        those who keep some rows only."""
        parts = cuts(len(rows), PART_ROWS)
        for part in parallel_map(lambda s: self._sum(rows[s], delta[s]), parts):
            G += part

    def _sum(self, rows: Array, delta: Array) -> Array:
        out = np.zeros(len(self.K))
        kernel_rows.add_rows(self.K, rows, delta, out)
        return out

    def some(self, rows: Array, room: Array | None = None) -> Array:
        """K of some rows with themselves, its columns padded to lanes, in this room."""
        out = padded(len(rows), self.K.dtype, room)
        parallel_map(
            lambda s: kernel_rows.pick(self.K, rows[s], rows, out[s]), cuts(len(rows), PART_ROWS)
        )
        return out

    def room(self, size: int) -> Array:
        """Memory for values."""
        return np.empty(size, self.K.dtype)

    def restrict(self, rows: Array) -> GramMatrix:
        """That of some rows."""
        return GramMatrix(self.some(rows))


def padded(n: int, dtype: DTypeLike, room: Array | None = None) -> Array:
    """For n rows and columns, filled up by zeros to whole lanes; in memory that is there, or new."""
    shape = n, smo.lanes(n) * smo.LANE
    out = np.empty(shape, dtype) if room is None else room[: shape[0] * shape[1]].reshape(shape)
    out[:, n:] = 0
    return out


Panels = list[tuple[slice, Any]]  # of some rows, each with its side of tiles


def panels(op: TiledOperator, rows: Array | None, *, left: bool) -> Panels:
    """These rows, or all, in panels, made ready for tiles."""
    parts = cuts(op.shape[0] if rows is None else len(rows), panel_rows(op))
    sides = parallel_map(lambda s: op.side(s if rows is None else rows[s], left=left), parts)
    return list(zip(parts, sides, strict=True))


def square(op: TiledOperator, rows: Array | None = None) -> Array:
    """K of these rows, or of all, with themselves, its columns padded to lanes: one triangle, by
    loops of their own where there are such, else by tiles, and its mirror image."""
    n = op.shape[0] if rows is None else len(rows)
    out, pairs = padded(n, op.dtype), getattr(op, "pairs", None)
    if pairs is not None:
        (pairs if rows is None else pairs.some(rows)).matrix(out)
    else:
        left = panels(op, rows, left=True)
        right = left if one_sided(getattr(op, "_tiles", None)) else panels(op, rows, left=False)
        fill_mirrored(op, [(a, b) for i, a in enumerate(left) for b in right[i:]], out)
    every = np.arange(n)
    out[every, every] = op.diag() if rows is None else op.diag()[rows]
    return out


def fill_mirrored(op: TiledOperator, jobs: Sequence[Any], K: Array, first: int = 0) -> None:
    """Tiles between panels, written to K and transposed; the columns begin with `first`."""
    settle_allocator()

    def work(job: tuple[tuple[slice, Any], tuple[slice, Any]]) -> None:
        (rows, left), (cols, right) = job
        tile = np.empty((rows.stop - rows.start, cols.stop - cols.start), K.dtype)
        op.fill(left, right, tile)
        if first + cols.start == rows.start:
            K[rows, rows] = (tile + tile.T) / 2  # products of two sides may be rounded otherwise
        else:
            K[rows, first + cols.start : first + cols.stop] = tile
            kernel_rows.mirror(tile, K, first + cols.start, rows.start)

    parallel_map(work, jobs)
