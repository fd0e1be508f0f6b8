"""Bags of items or rows, laid one after another: sums of a kernel over all pairs of members, a few
hundred rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table, table
from mercer.ops.tiles import cuts
from mercer.pairs.side import Side, centre_of

PIECE = 512  # rows of members


@dataclass(frozen=True, eq=False)
class Bags:
    """The members of bags one after another; bag i has those from starts[i] to starts[i + 1].

    Parameters
    ----------
    members : Table or None
        None where no bag has any.
    starts : ndarray of shape (n + 1,)
    mean : bool
        Whether a sum over a bag is divided by its size.
    """

    members: Table | None
    starts: Array
    mean: bool

    @classmethod
    def of(cls, bags: list[Any], mean: bool, items: bool) -> Bags:
        """Of lists of items, where `items` says that members may be such, or of arrays of rows.

        >>> Bags.of([[[1.0]], [[2.0], [3.0]]], True, False).starts
        array([0, 1, 3])
        """
        tables = [_members(bag, items) for bag in bags]
        sizes = [0 if t is None else len(t) for t in tables]
        some = [t for t in tables if t is not None]
        members = _joined(some) if some else None
        return cls(members, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), mean)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def weights(self) -> Array:
        """What a member counts in its bag: 1, or 1 over the size of the bag."""
        sizes = np.diff(self.starts)
        return np.repeat(1 / np.maximum(sizes, 1) if self.mean else np.ones(len(self)), sizes)

    @property
    def owners(self) -> Array:
        """The bag of every member."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def bag(self, i: int) -> Bags:
        """One of them."""
        if self.members is None:
            return Bags(None, np.zeros(2, np.int64), self.mean)
        begin, end = self.starts[i : i + 2]
        return Bags(self.members[begin:end], np.array([0, end - begin]), self.mean)


def _members(bag: Any, items: bool) -> Table | None:
    try:
        single = not hasattr(bag, "__len__") or getattr(bag, "shape", None) == ()
        if single or isinstance(bag, str | bytes | dict):
            raise ValueError(f"it is {bag!r:.40} of type {type(bag).__name__}")
        size = bag.shape[0] if hasattr(bag, "shape") else len(bag)
        return table(bag, "bag", items=items) if size else None
    except ValueError as e:
        raise ValueError(
            f"X must list bags, such as lists of items or arrays of rows, but one of them is no such: {e}"
        ) from e


def _joined(tables: list[Table]) -> Table:
    kinds = {t.items for t in tables}
    if len(kinds) > 1:
        raise ValueError("X has bags of items beside bags of rows; give members of one kind.")
    if kinds == {True}:
        return Table([item for t in tables for item in t.data])
    if len(widths := {t.width for t in tables}) > 1:
        raise ValueError(
            f"X has bags of rows of {min(widths)} and of {max(widths)} columns; give the same columns in all bags."
        )
    if any(t.sparse for t in tables):
        return Table(sp.vstack([sp.csr_array(t.data) for t in tables], "csr"), tables[0].columns)
    return Table(np.concatenate([t.in_order_of(tables[0]).data for t in tables]), tables[0].columns)


class Overlap:
    """All pairs of members of two sets of bags, as small tiles that `tile` makes; `diagonal` says
    which bags are the same, as in a tile of bags."""

    def __init__(self, tile: Any, x: Bags, z: Bags, diagonal: int | None) -> None:
        self.tile, self.x, self.z = tile, x, z
        same = diagonal is not None
        self.offset = _offset(x, z, diagonal) if diagonal is not None else 0
        centre = None if x.members is None or z.members is None else centre_of(x.members, z.members)
        self.left = MemberSides(x.members, centre)
        self.right = self.left if same and x is z else MemberSides(z.members, centre)
        self.same = same

    def __iter__(self) -> Iterator[tuple[slice, slice, Any]]:
        """Rows, columns, and their tile."""
        for rows in cuts(int(self.x.starts[-1]), PIECE):
            for cols in cuts(int(self.z.starts[-1]), PIECE):
                at = self.offset + rows.start - cols.start if self.same else None
                yield rows, cols, self.tile(self.left[rows], self.right[cols], at)

    def summed(self, on: Callable[[Any], Any]) -> Array:
        """sum_ab u_a v_b k(a, b) over the members a and b of every two bags, shape (n, m)."""
        x, z = self.x, self.z
        out = np.zeros((len(x), len(z)))
        (u, i), (v, j) = ((b.weights, b.owners) for b in (x, z))
        for rows, cols, tile in self:
            shape = rows.stop - rows.start, cols.stop - cols.start
            V = np.broadcast_to(on(tile), shape) * u[rows, None] * v[cols]
            (first, r), (second, c) = _runs(i[rows]), _runs(j[cols])
            out[np.ix_(r, c)] += np.add.reduceat(np.add.reduceat(V, first, axis=0), second, axis=1)
        return out

    def spread(self, A: Array, rows: slice, cols: slice) -> Array:
        """Weights (n, m) of pairs of bags as those of a piece of pairs of members."""
        x, z = self.x, self.z
        u, v = x.weights[rows, None], z.weights[cols]
        out: Array = A[np.ix_(x.owners[rows], z.owners[cols])] * u * v
        return out


class MemberSides(dict[int, Side]):
    """Pieces of members as sides of tiles, each made once."""

    def __init__(self, members: Table | None, centre: Array | None) -> None:
        super().__init__()
        self.members, self.centre = members, centre

    def __getitem__(self, rows: Any) -> Side:
        assert self.members is not None
        return self.setdefault(rows.start, Side(self.members[rows], self.centre))


def _offset(x: Bags, z: Bags, diagonal: int) -> int:
    """Where the members of x_i, which is z_(i + diagonal), stand among those of z."""
    return int(z.starts[diagonal]) if diagonal >= 0 else -int(x.starts[-diagonal])


def _runs(owner: Array) -> tuple[Array, Array]:
    """Where runs of equal numbers begin, and the numbers."""
    first = np.flatnonzero(np.concatenate([[True], owner[1:] != owner[:-1]]))
    return first, owner[first]
