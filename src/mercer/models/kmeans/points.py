"""k-means among rows of numbers, whose means are points too: n k d a step at most.

It begins with the best of some runs on a sample and goes on with all rows, of which bounds spare
those that cannot change their cluster.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

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
FEW = 4  # steps after which several runs are compared
SMALL, LARGE = 1e-20, 1e20  # of |x|^2, between which squares are safe in float32


@dataclass(frozen=True, eq=False)
class PointClusters:
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
) -> PointClusters:
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
        runs = [Descent(steps.anew(), one, tol) for one in begun]
        at = 0.0 if o is None else o.astype(np.float64)
        return replace(first(runs, max_iter).go(max_iter).end(at), origin=at)


def nearest(X: Array, C: Array, origin: Array) -> Array:
    """The nearest of means C about an origin to each row, of equal ones the first: as they are told
    for the labels of `points`."""
    size = np.square(C).sum(1).max()
    with single_blas():
        rows = near(X, origin.astype(X.dtype) if origin.any() else None)
        if X.dtype == np.float32 and not SMALL < size < LARGE:
            rows = rows.astype(np.float64)
        steps = Steps.of(rows, np.ones(len(X)), len(C))
        if not np.isfinite(steps.norms).all():  # of products, which need no squares
            return np.asarray((np.square(C).sum(1) - 2 * (rows @ C.T)).argmin(1))
        steps.begin(C)
    return steps.labels


def origin(X: Array, weight: Array) -> Array | None:
    """A point near the rows, where most are far from zero: the mean of some, without those
    that are farther than half of them."""
    rows = np.flatnonzero(weight)
    some = X[rows[:: -(-len(rows) // HEAD)]].astype(np.float64)
    size = np.square(some).sum(1)
    some = some[size <= np.median(size)]
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


@dataclass(eq=False)
class Descent:
    """Lloyd's steps from means C, which were `seen` when rows were last given to the nearest ones;
    members: the labels that they are means of."""

    steps: Steps
    begun: Beginning
    tol: float
    step: int = 1

    def __post_init__(self) -> None:
        steps, begun = self.steps, self.begun
        steps.begin(begun.C)
        steps.sum()
        self.C = self.seen = begun.C
        self.lone, self.members = begun.lone, steps.labels.copy()
        self.close = self.tol * steps.variance() + steps.rounding()
        same = begun.members is not None and bool((begun.members == self.members).all())
        self.settled = same and bool(steps.sums[2].all())

    @property
    def inertia(self) -> float:
        """sum_i w_i |x_i - mean|^2"""
        return float(self.steps.w @ self.steps.own(self.C))

    def go(self, most: int) -> Self:
        """Until no row changes its cluster, or means move by next to nothing, or so many steps."""
        while not self.settled and self.step < most:
            self.C, self.lone, left = self.steps.means(self.seen)
            way = float(np.square(self.C - self.seen).sum())
            if left == 0 or (way <= self.close and not self.lone):
                self.settled = True
                break
            moved = self.steps.assign(self.C, self.seen)
            self.seen, self.step, self.settled = self.C, self.step + 1, not moved
            self.members = self.steps.labels.copy()
            LOG.info("step %d: %d rows in other clusters", self.step, moved)
        return self

    def end(self, origin: float | Array = 0.0) -> PointClusters:
        """Means that no sum has lost digits of, nor the origin that they are told with, and the
        rows nearest to them."""
        steps = self.steps
        if not steps.fresh:
            steps.sum()
        if not self.settled:
            self.C, self.lone, _ = steps.means(self.seen)
        self.C = np.where(steps.sums[2][:, None] > 0, steps.averages(), self.C)
        self.C = (alike(self.C, self.lone, steps.eps) + origin) - origin
        steps.assign(self.C, self.seen)
        return PointClusters(
            steps.labels, self.C, self.members, self.lone, self.inertia, self.step, self.settled
        )


def alike(C: Array, lone: dict[int, int], eps: float) -> Array:
    """Means of which those that one row stands for are the same number for number as others that
    they are but for rounding."""
    for c in lone:
        same = np.flatnonzero(np.square(C - C[c]).sum(1) <= eps**2 * np.square(C[c]).sum())
        C[c] = C[min(same, key=lambda e: (e in lone, e))]
    return C


def first(runs: list[Descent], most: int) -> Descent:
    """The one that is best after a few steps, where there are several."""
    if len(runs) == 1:
        return runs[0]
    return min((run.go(min(FEW, most)) for run in runs), key=lambda run: run.inertia)
