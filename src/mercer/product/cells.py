"""Cells: rows halved again and again along their longest direction, each cell with some rows of its neighbours."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.tiles import cuts

OVERLAP = 0.05  # of a node's rows that each half takes from the other
SEEN = 2_000  # rows by which a direction is found
STEP = 1 << 14


@dataclass(frozen=True, eq=False)
class Tree:
    """Node i sends x to `children[i][x'axes[i] > cuts[i]]`: a node, or with a negative number c the cell -1 - c.

    >>> t, rows = Tree.of(np.arange(8.0)[:, None], most=4, overlap=0.0)
    >>> t.cell(np.array([[0.0], [7.0]])), [len(i) for i in rows]
    (array([0, 1]), [4, 4])
    """

    axes: Array
    cuts: Array
    children: Array

    @classmethod
    def of(cls, X: Array, most: int, overlap: float = OVERLAP) -> tuple[Tree, list[Array]]:
        """The tree of these rows, and the rows of every cell: at most `most`, or all where they do not differ."""
        grown = _Growing(X, most, overlap)
        grown.node(np.arange(len(X)))
        axes = np.array(grown.axes, np.float32).reshape(-1, X.shape[1])
        return cls(axes, np.array(grown.cuts, np.float32), np.array(grown.children, np.int64).reshape(-1, 2)), grown.cells

    def cell(self, X: Array) -> Array:
        """The number of the cell of each row."""
        out = np.zeros(len(X), np.int64)
        if len(self.cuts):
            self._sort(X, np.arange(len(X)), 0, out)
        return out

    def _sort(self, X: Array, rows: Array, node: int, out: Array) -> None:
        right = along(X, rows, self.axes[node]) > self.cuts[node]
        for side, mine in enumerate((rows[~right], rows[right])):
            child = int(self.children[node, side])
            if child < 0:
                out[mine] = -1 - child
            elif len(mine):
                self._sort(X, mine, child, out)


class _Growing:
    """What a tree is made of while it grows."""

    def __init__(self, X: Array, most: int, overlap: float) -> None:
        self.X, self.most, self.overlap = X, most, overlap
        self.axes: list[Array] = []
        self.cuts: list[float] = []
        self.children: list[list[int]] = []
        self.cells: list[Array] = []

    def node(self, rows: Array) -> int:
        """The number of the node of these rows, or -1 - the number of their cell."""
        halves = self._halves(rows) if len(rows) > self.most else None
        if halves is None:
            self.cells.append(rows)
            return -len(self.cells)
        axis, cut, left, right = halves
        number = len(self.cuts)
        self.axes.append(axis)
        self.cuts.append(cut)
        self.children.append([0, 0])
        self.children[number] = [self.node(left), self.node(right)]
        return number

    def _halves(self, rows: Array) -> tuple[Array, float, Array, Array] | None:
        """The direction, the cut at the median, and the rows of both halves with those that are near; None where that parts nothing."""
        axis = longest(self.X[rows[:: max(1, len(rows) // SEEN)]])
        s = along(self.X, rows, axis)
        low, cut, high = np.quantile(s, [0.5 - self.overlap, 0.5, 0.5 + self.overlap])
        left, right = rows[s <= high], rows[s >= low if self.overlap else s > cut]
        smaller = max(len(left), len(right)) < 0.9 * len(rows) and min(len(left), len(right)) > 0
        return (axis, float(np.float32(cut)), left, right) if smaller else None


def longest(X: Array) -> Array:
    """The direction in which rows vary most, of unit length."""
    A = X - X.mean(0)
    _, vectors = np.linalg.eigh(np.asarray(A.T @ A, np.float64))
    v = vectors[:, -1]
    return np.asarray(v * np.sign(v[np.argmax(np.abs(v))]), np.float32)  # of the two signs always the same


def along(X: Array, rows: Array, axis: Array) -> Any:
    """x'axis of these rows."""
    return np.concatenate([X[rows[s]] @ axis for s in cuts(len(rows), STEP)]) if len(rows) else np.zeros(0, np.float32)
