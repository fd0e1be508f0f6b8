"""Mondrian trees: boxes cut at random, more often where they are long."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np

from mercer.inputs import Array
from mercer.lifts.trees import OneTree


class _Box(NamedTuple):
    """A node that will be cut, and when."""

    time: float
    node: int
    rows: Array
    low: Array
    sides: Array


def mondrian(
    X: Array,
    most: int,
    rng: np.random.Generator,
    *,
    scale: Array | float = 1.0,
    lifetime: float = np.inf,
) -> OneTree:
    """A tree of at most so many leaves: cuts come in the order of their times, until `lifetime`.

    The smallest box around the rows of a node waits for an exponential time of rate sum_j (side j /
    scale_j), is then cut across a side drawn by its share of that sum, at a uniform place. Two rows
    are together at time t with probability exp(-t sum_j |x_j - z_j| / scale_j): a Laplace kernel.

    Rows without a value in the column of a cut go where more rows are.

    >>> tree = mondrian(np.arange(4.0)[:, None], 4, np.random.default_rng(0))
    >>> len(tree.columns), int((tree.children[:, 0] < 0).sum())
    (7, 4)
    """
    columns, thresholds, children, missing = [0], [0.0], [(-1, -1)], [False]
    waiting: list[_Box] = []

    def wait(node: int, rows: Array, since: float) -> None:
        here = X[rows].astype(np.float64)
        low = np.fmin.reduce(here, axis=0)
        high = np.fmax.reduce(here, axis=0)
        sides = np.nan_to_num(high / scale - low / scale)
        if sides.sum() > 0:
            time = since + rng.exponential() / float(sides.sum())
            heapq.heappush(waiting, _Box(time, node, rows, low, high - low))

    wait(0, np.arange(len(X)), 0.0)
    while waiting and len(columns) < 2 * most - 1:
        box = heapq.heappop(waiting)
        if box.time >= lifetime:
            break
        j, cut = _cut(box, scale, rng)
        x = X[box.rows, j]
        left, none = x <= cut, np.isnan(x)
        to_left = 2 * int(left.sum()) > len(x) - int(none.sum())
        left |= none & to_left
        first = len(columns)
        columns[box.node], thresholds[box.node], missing[box.node] = j, cut, to_left
        children[box.node] = (first, first + 1)
        for rows in (box.rows[left], box.rows[~left]):
            columns.append(0)
            thresholds.append(0.0)
            children.append((-1, -1))
            missing.append(False)
            wait(len(columns) - 1, rows, box.time)
    return OneTree(
        np.array(columns), np.array(thresholds), np.array(children), np.array(missing, bool)
    )


def _cut(box: _Box, scale: Array | float, rng: np.random.Generator) -> tuple[int, float]:
    """The column, and a place from its smallest value up to, and not including, its largest."""
    shares = np.nan_to_num(box.sides / scale)
    j = int(rng.choice(len(shares), p=shares / shares.sum()))
    low, side = float(box.low[j]), float(box.sides[j])
    return j, min(low + side * rng.random(), float(np.nextafter(low + side, -np.inf)))
