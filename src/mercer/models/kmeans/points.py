"""k-means among rows of numbers, whose means are points too: n k d a step at most.

It begins with the best of some runs on a sample and goes on with all rows, of which bounds spare
those that cannot change their cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.models.base import check_finite
from mercer.models.kmeans.seeds import Beginning, beginnings
from mercer.models.kmeans.steps import WORK, Steps
from mercer.ops.philox import Stream
from mercer.ops.threads import parallel_map, single_blas
from mercer.ops.tiles import cuts

LOG = logger("kmeans")
HEAD = 256  # rows whose mean is the origin
FAR = 4.0  # of an origin, in squared deviations, from which on rows are moved there
SMALL, LARGE = 1e-20, 1e20  # of |x|^2, between which squares are safe in float32


@dataclass(frozen=True, eq=False)
class Points:
    """What the steps came to: labels of rows and means (k, d) about an origin, the labels that
    these are means of, and rows that stand for the mean of a cluster without any, by cluster."""

    labels: Array
    centers: Array
    members: Array
    lone: dict[int, int]
    inertia: float
    steps: int
    settled: bool
    origin: float | Array = 0.0

    def coef(self, weight: Array) -> Array:
        """The means as sums over rows, (n, k)."""
        n, k = len(self.labels), len(self.centers)
        A, size = np.zeros((n, k)), np.bincount(self.members, weight, minlength=k)
        A[np.arange(n), self.members] = weight / np.where(size > 0, size, 1)[self.members]
        for c, row in self.lone.items():
            A[:, c], A[row, c] = 0, 1
        return A


def points(
    X: Array,
    weight: Array,
    k: int,
    stream: Stream,
    *,
    n_init: int = 1,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> Points:
    """The best of n_init runs on a sample, and Lloyd's steps from there until no row changes its
    cluster, or means move by less than tol: the sum of their squared ways is at most tol times
    the variance of a column.

    >>> found = points(np.array([[0.0], [0.1], [5.0], [5.1]]), np.ones(4), 2, Stream(0))
    >>> round(found.inertia, 9), sorted(np.ravel(found.centers + found.origin).round(9).tolist())
    (0.01, [0.05, 5.05])
    """
    with single_blas():  # its threads cost more than they bring where each product is small
        o = origin(X, weight)
        steps = Steps.of(near(X, o), weight, k)
        scale = float(weight @ steps.norms / weight.sum())
        check_finite(scale)
        if X.dtype == np.float32 and not SMALL < scale < LARGE:
            steps = Steps.of(steps.X.astype(np.float64), weight, k)
        begun = beginnings(steps.X, weight, steps.norms, k, stream, n_init)
        found = lloyd(*nearest(steps, begun), max_iter, tol)
    return found if o is None else replace(found, origin=o.astype(np.float64))


def origin(X: Array, weight: Array) -> Array | None:
    """A point near the rows, where they are far from zero: the mean of some."""
    rows = np.flatnonzero(weight)
    some = X[rows[:: -(-len(rows) // HEAD)]].astype(np.float64)
    mean = some.mean(0)
    spread = np.square(some - mean).sum() / len(some)
    return None if mean @ mean <= FAR * spread else mean.astype(X.dtype)


def near(X: Array, o: Array | None) -> Array:
    """Rows about an origin."""
    if o is None:
        return np.ascontiguousarray(X)
    out = np.empty(X.shape, X.dtype)
    pieces = cuts(len(X), max(64, WORK // X.shape[1]))
    parallel_map(lambda s: np.subtract(X[s], o, out=out[s]), pieces)
    return out


def nearest(steps: Steps, begun: list[Beginning]) -> tuple[Steps, Beginning]:
    """Those means of some that all rows are nearest to, and steps that have begun with them."""
    least, found = math.inf, (steps, begun[0])
    for one in begun:
        mine = steps.anew()
        mine.begin(one.C)
        cost = float(mine.w @ np.square(mine.upper))
        if cost < least:
            least, found = cost, (mine, one)
    return found


def lloyd(steps: Steps, begun: Beginning, max_iter: int, tol: float) -> Points:
    """Steps until no row changes its cluster, or means move by next to nothing."""
    C = seen = begun.C
    lone, members, step = begun.lone, steps.labels.copy(), 1
    steps.sum()
    close = tol * steps.variance() + steps.rounding()
    settled = begun.members is not None and bool((begun.members == members).all())
    while not settled:
        C, lone, left = steps.means(seen)
        settled = float(np.square(C - seen).sum()) <= close or left == 0
        if settled or step == max_iter:
            break
        moved, seen, step = steps.assign(C, seen), C, step + 1
        members, settled = steps.labels.copy(), not moved
        LOG.info("step %d: %d rows in other clusters", step, moved)
    if not steps.fresh:
        steps.sum()
        C = np.where(steps.sums[2][:, None] > 0, steps.averages(), C)
    if C is not seen:
        steps.assign(C, seen)
    inertia = float(steps.w @ steps.own(C))
    return Points(steps.labels, C, members, lone, inertia, step, settled)
