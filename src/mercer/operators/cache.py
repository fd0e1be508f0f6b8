"""Kernel rows times duals, by tiles in threads, with a cache of rows within a limit of memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.operators.base import TiledOperator
from mercer.operators.tiles import TILE_COLUMNS, TILE_ROWS
from mercer.ops import kernel_rows
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts, settle_allocator

Fill = Callable[[int, Array], None]  # of one tile


class RowCache:
    """Some columns of K, cut into tiles, and the rows that are kept for them: blocks (tiles, rows,
    TILE_COLUMNS), filled in place.

    Fewer columns than a `parent` has take the rows that they need from it where it keeps them.
    """

    def __init__(
        self,
        rows: TiledOperator,
        limit: float,
        index: Array | None = None,
        parent: RowCache | None = None,
    ) -> None:
        self.rows, self.limit, self.parent = rows, limit, parent
        self.index = index = np.arange(rows.shape[0]) if index is None else index
        self.cuts = cuts(len(index), TILE_COLUMNS)
        self.sides: list[Any] = [None] * len(self.cuts)
        self.blocks: dict[int, CacheBlock] = {}
        self.spare: Array | None = None
        self.made = self.clock = 0
        self.block_of, self.place = np.full(rows.shape[0], -1), np.zeros(rows.shape[0], np.intp)
        self.column = np.full(rows.shape[0], -1)
        self.column[index] = np.arange(len(index))
        settle_allocator()

    def __len__(self) -> int:
        return len(self.index)

    @property
    def row_bytes(self) -> float:
        return float(len(self.cuts)) * TILE_COLUMNS * self.rows.dtype.itemsize

    @property
    def held(self) -> float:
        """Bytes of the rows that are kept."""
        return self.row_bytes * sum(b.used for b in self.blocks.values())

    def only(self, keep: Array) -> RowCache:
        """Some of these columns; the rows that are kept for all of them stay where they are."""
        root = self.parent or self
        root._trim(0.75 * root.limit)
        return RowCache(self.rows, root.limit - root.held, self.index[keep], root)

    def add(self, G: Array, rows: Array, delta: Array, again: Array | None = None) -> None:
        """G += K[index, rows] @ delta, in float64; rows that are not kept are computed, and kept
        where there is room.

        `again` says which rows are likely to come again: the others are not kept, as memory costs
        more than their values.
        """
        groups, other = self._known(rows, delta)
        new, step, fills = self._new(
            rows[other], delta[other], np.ones(len(other), bool) if again is None else again[other]
        )
        column, diagonal, every = self.column[new], self.rows.diag()[new], np.arange(TILE_ROWS)

        def work(c: int) -> None:
            cols, out = self.cuts[c], G[self.cuts[c]]
            for K, index, d in groups:
                kernel_rows.add_rows(K[c], index, d, out)
            for s, fill, room in fills:
                m, width = s.stop - s.start, cols.stop - cols.start
                K = np.empty((m, width), self.rows.dtype) if room is None else room[c, :, :width]
                fill(c, K)
                kernel_rows.meet(K, column[s], cols.start, diagonal[s])
                kernel_rows.add_rows(K, every[:m], step[s], out)

        parallel_map(work, range(len(self.cuts)))

    def _new(
        self, rows: Array, delta: Array, again: Array
    ) -> tuple[Array, Array, list[tuple[slice, Fill, Array | None]]]:
        """Rows in the order in which they come, and how each piece of them is filled: from the
        parent, or by the kernel."""
        of = np.full(len(rows), -1) if self.parent is None else self.parent.block_of[rows]
        order, fills = np.lexsort((again, of)), list[tuple[slice, Fill, "Array | None"]]()
        rows, of, again, first = rows[order], of[order], again[order], 0
        for stop in (*(np.flatnonzero(np.diff(2 * of + again)) + 1), len(rows)):
            for s in (
                slice(first + c.start, first + c.stop) for c in cuts(stop - first, self._piece())
            ):
                fills.append(
                    (s, self._fill(rows[s], of[s]), self._room(rows[s]) if again[s][0] else None)
                )
            first = stop
        self.made += int((of < 0).sum())
        return rows, delta[order], fills

    def _fill(self, rows: Array, of: Array) -> Fill:
        if self.parent is not None and of[0] >= 0:
            parent, K, places = self.parent, self.parent.blocks[of[0]].K, self.parent.place[rows]
            return lambda c, out: kernel_rows.repack(
                K, places, *np.divmod(parent.column[self.index[self.cuts[c]]], TILE_COLUMNS), out
            )
        left = self.rows.side(rows, left=True)
        return lambda c, out: self.rows.fill(left, self._side(c), out)

    def _trim(self, most: float) -> None:
        """Keep at most so many bytes: the least recently used blocks go."""
        while self.held > most:
            oldest = next(iter(self.blocks))
            self.spare = self.blocks.pop(oldest).K
            self.block_of[self.block_of == oldest] = -1

    def _side(self, c: int) -> Any:
        if self.sides[c] is None:
            self.sides[c] = self.rows.side(self.index[self.cuts[c]], left=False)
        return self.sides[c]

    def _known(self, rows: Array, delta: Array) -> tuple[list[tuple[Array, Array, Array]], Array]:
        """By block: the places in it of the rows that it holds; and which rows are in none."""
        of, found = self.block_of[rows], []
        for k in np.unique(of[of >= 0]):
            self.blocks[k] = self.blocks.pop(k)  # the last used is the last to go
            found.append((self.blocks[k].K, self.place[rows[of == k]], delta[of == k]))
        return found, np.flatnonzero(of < 0)

    def _piece(self) -> int:
        """Rows that are computed, and go, together: few where the limit is low."""
        return int(np.clip(self.limit / self.row_bytes / 4, 64, TILE_ROWS))

    def _memory(self) -> Array:
        """Of the block that went last, whose pages are there already, or new; what is not written
        to takes no room yet."""
        K, self.spare = self.spare, None
        return (
            np.empty((len(self.cuts), self._piece(), TILE_COLUMNS), self.rows.dtype)
            if K is None
            else K
        )

    def _room(self, rows: Array) -> Array | None:
        """Places for these rows, in the newest block or in another: the least recently used ones go
        where the limit asks for it."""
        size = len(rows) * self.row_bytes
        if size > self.limit:
            return None
        self._trim(self.limit - size)
        if self.clock not in self.blocks or not self.blocks[self.clock].fits(len(rows)):
            self.clock += 1
            self.blocks[self.clock] = CacheBlock(self._memory())
        block = self.blocks[self.clock]
        first = block.used
        block.used += len(rows)
        self.block_of[rows], self.place[rows] = self.clock, np.arange(first, block.used)
        return block.K[:, first : block.used]


@dataclass(eq=False)
class CacheBlock:
    """Kernel rows by tiles (tiles, rows, TILE_COLUMNS), of which so many are used."""

    K: Array
    used: int = 0

    def fits(self, m: int) -> bool:
        return self.used + m <= self.K.shape[1]
