"""Cells: rows halved again and again along a long direction, each cell with some rows of its
neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Floats, Ints, check
from mercer.ops.threads import single_blas
from mercer.ops.tiles import cuts
from mercer.stats.sample import mix
from mercer.store import register

OVERLAP = 0.05  # of a node's rows that each half takes from the other
DIRECTION_ROWS = 2_000  # rows by which a direction is found
# columns of which all directions are found; else steps towards the longest, from so many starts
MAX_EIGEN_COLUMNS = 64
POWER_STEPS = 8
POWER_STARTS = 3
EVEN_SHARE = 0.25  # shares of a node's rows: a smaller half for which no other direction is tried
MIN_SHARE = 0.05  # the smallest there may be
BLOCK_VALUES = 1 << 22  # of rows held in float64 at a time


@register("models.CellTree")
@dataclass(frozen=True, eq=False)
class CellTree:
    """Node i sends x to `children[i][x'axes[i] > cuts[i]]`: a node, or with a negative number c the
    cell -1 - c.

    A cut is between two distinct values, so that equal rows go the same way; x'axis is summed row
    by row in float64, so that a row goes the same way alone and among others.

    >>> t, rows = CellTree.of(np.arange(8.0)[:, None], most=4, overlap=0.0)
    >>> t.cell(np.array([[0.0], [7.0]])), [len(i) for i in rows]
    (array([0, 1]), [4, 4])
    """

    axes: Array
    cuts: Array
    children: Array

    must = dict(
        axes=Floats("n", "d"), cuts=Floats("n"), children=Ints("n", 2, low=-(1 << 31), below="n")
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        """Every node and every cell has one place in the tree, and a node comes before those below
        it."""
        child, nodes = self.children.ravel(), np.repeat(np.arange(len(self.cuts)), 2)
        inner, cells = child[child >= 0], -1 - child[child < 0]
        down = (inner > nodes[child >= 0]).all()
        once = np.array_equal(np.sort(inner), np.arange(1, len(self.cuts))) and np.array_equal(
            np.sort(cells), np.arange(len(cells))
        )
        return None if down and once else "has branches that meet, or lead back or nowhere"

    @property
    def n_cells(self) -> int:
        return len(self.cuts) + 1

    @property
    def d(self) -> int:
        return int(self.axes.shape[1])

    @classmethod
    def of(cls, X: Array, most: int, overlap: float = OVERLAP) -> tuple[CellTree, list[Array]]:
        """The tree of these rows, and the rows of every cell: at most `most`, of rows that hardly
        differ a sample of so many."""
        grown = _TreeBuilder(X, most, overlap)
        with single_blas():  # whose rounding is not that of several threads
            grown.node(np.arange(len(X)))
        axes = np.array(grown.axes, np.float32).reshape(-1, X.shape[1])
        return cls(
            axes,
            np.array(grown.cuts, np.float64),
            np.array(grown.children, np.int64).reshape(-1, 2),
        ), grown.cells

    def cell(self, X: Array) -> Array:
        """The number of the cell of each row."""
        if X.shape[1] != self.d:
            raise ValueError(
                f"X has {X.shape[1]} columns, {self.d} expected; give the columns of training."
            )
        out = np.zeros(len(X), np.int64)
        left = (
            [(0, np.arange(len(X)))] if len(self.cuts) else []
        )  # a list, as a tree may be deeper than Python's stack
        while left:
            node, rows = left.pop()
            right = project(X, rows, self.axes[node]) > self.cuts[node]
            for side, mine in enumerate((rows[~right], rows[right])):
                child = int(self.children[node, side])
                if child < 0:
                    out[mine] = -1 - child
                elif len(mine):
                    left.append((child, mine))
        return out


@dataclass(frozen=True, eq=False)
class _Cut:
    """Rows in the order of a direction, and how many of them are on the left of a cut."""

    axis: Array
    order: Array
    left: int
    at: float

    @classmethod
    def of(cls, axis: Array, s: Array) -> _Cut:
        """Between the two distinct values that are nearest to the median; nothing is on the left
        where all are equal."""
        order = np.argsort(s, kind="stable")
        v = s[order]
        steps = np.flatnonzero(v[1:] > v[:-1]) + 1
        if not len(steps):
            return cls(axis, order, 0, 0.0)
        i = int(steps[np.argmin(np.abs(steps - len(v) / 2))])
        low, high = float(v[i - 1]), float(v[i])
        middle = low + (high - low) / 2
        return cls(axis, order, i, middle if middle < high else low)

    @property
    def smaller(self) -> int:
        return min(self.left, len(self.order) - self.left)

    def halves(self, overlap: float) -> tuple[Array, Array]:
        """Both sides, each with the nearest of the other's rows: a share of twice the smaller side,
        so that both are smaller than all."""
        near = int(2 * overlap * self.smaller)
        return np.sort(self.order[: self.left + near]), np.sort(
            self.order[max(self.left - near, 0) :]
        )


class _TreeBuilder:
    """What a tree is made of while it grows."""

    def __init__(self, X: Array, most: int, overlap: float) -> None:
        self.X, self.most, self.overlap = X, most, overlap
        self.axes: list[Array] = []
        self.cuts: list[float] = []
        self.children: list[list[int]] = []
        self.cells: list[Array] = []

    def node(self, rows: Array) -> int:
        """The number of the node of these rows, or -1 - the number of their cell."""
        cut = self._cut(rows) if len(rows) > self.most else None
        if cut is None or not cut.left or cut.smaller < MIN_SHARE * len(rows):
            self.cells.append(self._some(rows))
            return -len(self.cells)
        number = len(self.cuts)
        self.axes.append(cut.axis)
        self.cuts.append(cut.at)
        self.children.append([0, 0])
        left, right = cut.halves(self.overlap)
        self.children[number] = [self.node(rows[left]), self.node(rows[right])]
        return number

    def _cut(self, rows: Array) -> _Cut:
        """Along the first of some directions that parts rows evenly, else the one that comes
        nearest to it."""
        few, best = self.X[rows[:: max(1, len(rows) // DIRECTION_ROWS)]], None
        for start in range(POWER_STARTS):
            axis = (
                principal_direction(few)
                if not start and few.shape[1] <= MAX_EIGEN_COLUMNS
                else power_direction(few, start)
            )
            cut = _Cut.of(axis, project(self.X, rows, axis))
            best = cut if best is None or cut.smaller > best.smaller else best
            if best.smaller >= EVEN_SHARE * len(rows):
                break
        assert best is not None
        return best

    def _some(self, rows: Array) -> Array:
        """All, or as many as a cell holds."""
        return (
            rows
            if len(rows) <= self.most
            else np.sort(rows[np.argsort(_hashes(rows), kind="stable")[: self.most]])
        )


def _hashes(numbers: Array, seed: int = 0) -> Array:
    """64 bits of every whole number, which depend on the seed only."""
    words = numbers.astype(np.int64).view(np.uint64)
    with np.errstate(over="ignore"):
        return mix(mix(words + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)))


def principal_direction(X: Array) -> Array:
    """The direction in which rows vary most, of unit length."""
    A = np.asarray(X - X.mean(0), np.float64)
    return _signed(np.linalg.eigh(A.T @ A)[1][:, -1])


def power_direction(X: Array, start: int = 0) -> Array:
    """A direction in which rows vary much: some steps towards the longest, from a start that no
    column is left out of."""
    A = np.asarray(X - X.mean(0), np.float64)
    v = (0.5 + _hashes(np.arange(X.shape[1]), start) / 2.0**64) * np.where(
        _hashes(np.arange(X.shape[1]), start + 101) % 2, 1.0, -1.0
    )
    for _ in range(POWER_STEPS):
        w = A.T @ (A @ v)
        size = float(np.linalg.norm(w))
        v = w / size if size else v
    return _signed(v / np.linalg.norm(v))


def _signed(v: Array) -> Array:
    """Of the two signs always the same."""
    return np.asarray(v * np.sign(v[np.argmax(np.abs(v))]), np.float32)


def project(X: Array, rows: Array, axis: Array) -> Array:
    """x'axis of these rows."""
    a, step = axis.astype(np.float64), max(1, BLOCK_VALUES // max(len(axis), 1))
    parts = [np.ascontiguousarray(X[rows[s]] * a).sum(1) for s in cuts(len(rows), step)]
    return np.concatenate(parts) if parts else np.zeros(0)
