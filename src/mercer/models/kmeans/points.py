"""k-means among rows of numbers, whose means are points too: n k d a step at most.

Seeds, swaps and first steps are those of a sample, on its squared distances; the best of these goes
on with all rows, of which bounds spare those that cannot change their cluster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.models.base import check_finite
from mercer.ops import clusters as loops
from mercer.ops.philox import Stream, uniforms
from mercer.ops.threads import parallel_map, single_blas
from mercer.ops.tiles import cuts, fill

LOG = logger("kmeans")
TINY = np.finfo(np.float64).tiny
NARROW = 12  # columns from which on products are quicker than differences
WORK, PIECES = 1 << 20, 16  # numbers of a piece at least, but for so many pieces
TILE = 1 << 18  # numbers of rows and distances of one product
SAME, APART, PROBE = 1e-6, 0.05, 4
LEAST, EACH = 256, 24  # rows of a sample, and rows for each cluster
HEAD = 256  # rows whose mean is the origin
FAR = 4.0  # of an origin, in squared deviations, from which on rows are moved there
MOST, CLOSE = 30, 1e-4  # steps of a sample, and the share that one must bring


@dataclass(frozen=True, eq=False)
class Points:
    """What the steps came to: labels of rows and means (k, d), the labels that these are means of,
    and rows that stand for the mean of a cluster without any, by cluster."""

    labels: Array
    centers: Array
    members: Array
    lone: dict[int, int]
    inertia: float
    steps: int
    settled: bool
    origin: float | Array = 0.0  # that the means are about

    def coef(self, weight: Array) -> Array:
        """The means as sums over rows, (n, k)."""
        n, k = len(self.labels), len(self.centers)
        A, size = np.zeros((n, k)), np.bincount(self.members, weight, minlength=k)
        A[np.arange(n), self.members] = weight / np.where(size > 0, size, 1)[self.members]
        for c, row in self.lone.items():
            A[:, c], A[row, c] = 0, 1
        return A


@dataclass(eq=False)
class Steps:
    """Lloyd's steps over rows X (n, d) near zero: labels, and bounds of the distances to the mean
    of each row and to the next (Hamerly, 2010)."""

    X: Array
    w: Array
    k: int
    fresh: bool = True  # sums were made anew, so that rows that left them left no rounding
    labels: Array = field(init=False)
    upper: Array = field(init=False)
    lower: Array = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.X)
        self.labels, self.upper, self.lower = np.zeros(n, np.int64), np.empty(n), np.empty(n)

    @cached_property
    def pieces(self) -> list[slice]:
        n, d = self.X.shape
        return cuts(n, max(256, WORK // (self.k * d), -(-n // PIECES)))

    @cached_property
    def norms(self) -> Array:
        """|x|^2"""
        zero, out = np.zeros((1, self.X.shape[1])), np.empty(len(self.X))
        parallel_map(lambda s: loops.own(self.X[s], zero, self.labels[s], out[s]), self.pieces)
        return out

    @property
    def narrow(self) -> bool:
        return self.X.shape[1] < NARROW

    @property
    def slack(self) -> float:
        d = self.X.shape[1]
        return float((8 + (d if self.narrow else math.sqrt(d))) * np.finfo(self.X.dtype).eps)

    def assign(self, C: Array, seen: Array | None) -> int:
        """Rows to their nearest means C, which were `seen` at the last time; how many have other
        ones than then."""
        C = C.astype(self.X.dtype)
        if seen is None:
            parallel_map(lambda s: self._settle(s, np.arange(s.stop - s.start), C), self.pieces)
            self.sum()
            return len(self.X)
        wide = C.astype(np.float64)
        shift = np.sqrt(np.square(wide - seen.astype(C.dtype)).sum(1))
        half = self._half(wide)
        parts = parallel_map(lambda s: self._screened(s, C, shift, half), self.pieces)
        for _, sums in parts:
            if sums is not None:
                self.fresh = False
                for mine, more in zip(self.sums, sums, strict=True):
                    mine += more
        return sum(moved for moved, _ in parts)

    def _screened(
        self, s: slice, C: Array, shift: Array, half: Array
    ) -> tuple[int, list[Array] | None]:
        index = np.empty(s.stop - s.start, np.int64)
        mine = self.labels[s]
        count = loops.screen(mine, self.upper[s], self.lower[s], shift, half, index)
        if not count:
            return 0, None
        index = index[:count]
        old = self._settle(s, index, C)
        if (old == mine[index]).all():
            return 0, None
        sums = self._zeros()
        return loops.move(self.X[s], self.w[s], index, mine, old, *sums), sums

    def _settle(self, s: slice, index: Array, C: Array) -> Array:
        X, state = self.X[s], (self.labels[s], self.upper[s], self.lower[s])
        old = np.empty(len(index), np.int64)
        if self.narrow:
            wide = -(-C.shape[1] // loops.UNROLLED) * loops.UNROLLED
            padded = np.zeros((self.k, wide), C.dtype)
            padded[:, : C.shape[1]] = C
            loops.narrow(X, padded, index, *state, old, self.slack)
            return old
        size = np.square(C, dtype=np.float64).sum(1)
        every, norms = len(index) == len(X), self.norms[s]
        for at in cuts(len(index), int(np.clip(TILE // (X.shape[1] + self.k), 64, 8192))):
            part = X[at] if every else X[index[at]]
            x = norms[at] if every else norms[index[at]]
            D = np.empty((self.k, len(part)))
            loops.squares(C @ part.T, size, x, D)
            near = np.empty(len(part), np.int64)
            loops.settle(D, x + size.max(), self.slack, index, at.start, *state, old, near)
        return old

    def _half(self, C: Array) -> Array:
        """Half of the distance of each mean to the next one, at least."""
        size = np.square(C).sum(1)
        D = size[:, None] + size - 2 * C @ C.T - 1e-13 * (size[:, None] + size)
        np.fill_diagonal(D, np.inf)
        return 0.5 * np.sqrt(np.maximum(D.min(1), 0))

    def _zeros(self) -> list[Array]:
        k, d = self.k, self.X.shape[1]
        return [np.zeros((k, d)), np.zeros(k), np.zeros(k, np.int64)]

    def sum(self) -> None:
        """Sums of rows, of weights and of rows that have any, by cluster."""

        def piece(s: slice) -> list[Array]:
            sums = self._zeros()
            loops.add(self.X[s], self.w[s], self.labels[s], *sums)
            return sums

        parts = parallel_map(piece, self.pieces)
        self.sums, self.fresh = [sum(more[1:], more[0]) for more in zip(*parts, strict=True)], True

    def averages(self) -> Array:
        S, W, count = self.sums
        return np.asarray(S / np.where(count > 0, W, 1)[:, None])

    def variance(self) -> float:
        """Of a column, on average."""
        total = self.w.sum()
        mean = self.sums[0].sum(0) / total
        return max(float(self.w @ self.norms / total - mean @ mean), 0) / self.X.shape[1]

    def rounding(self) -> float:
        """By how much means may move, squared and summed, that stay where they are."""
        eps = 32 * float(np.finfo(self.X.dtype).eps)
        return eps**2 * float(self.w @ self.norms) / float(self.w.sum())

    def own(self, C: Array) -> Array:
        """Squared distances to the mean of each row."""
        out = np.empty(len(self.X))
        parallel_map(lambda s: loops.own(self.X[s], C, self.labels[s], out[s]), self.pieces)
        return out

    def means(self, before: Array) -> tuple[Array, dict[int, int], float]:
        """Of the clusters; an empty one becomes a row that is far from its own mean: which, and
        w d^2 of the farthest."""
        C, empty = self.averages(), np.flatnonzero(self.sums[2] == 0)
        if not len(empty):
            return C, {}, math.inf
        cost = self.w * self.own(before)
        far = np.argsort(-cost, kind="stable")[: len(empty)]
        C[empty] = self.X[far]
        return C, dict(zip(empty.tolist(), far.tolist(), strict=True)), float(cost[far[0]])


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
    the variance of a column."""
    with single_blas():
        o = origin(X, weight)
        steps = Steps(near(X, o), weight, k)
        check_finite(float(weight @ steps.norms))
        found = best(steps, beginning(steps, stream, n_init), max_iter, tol)
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
    out = np.empty_like(X, order="C")
    parallel_map(
        lambda s: np.subtract(X[s], o, out=out[s]), cuts(len(X), max(64, WORK // X.shape[1]))
    )
    return out


@dataclass(frozen=True, eq=False)
class Beginning:
    """Means C (k, d); where the sample was all rows, the clusters that they are means of, and the
    rows that stand for clusters without any."""

    C: Array
    members: Array | None
    lone: dict[int, int]


def beginning(steps: Steps, stream: Stream, n_init: int) :
    """The best run on a sample."""
    X, k = steps.X, steps.k
    rows, w = sample(steps, stream.child(n_init))
    S = X[rows]
    D = distances(S - (w @ S / w.sum()).astype(X.dtype))
    tries = 2 + int(math.log(k))

    def run(i: int) -> tuple[float, Array, Array]:
        at, chosen = np.zeros(len(rows), np.int64), np.zeros(k, np.int64)
        u = uniforms(stream.child(i), 0, 2 * k, tries)
        return loops.start(D, w, u, k, MOST, CLOSE, at, chosen), at, chosen

    runs = sorted(parallel_map(run, range(n_init)), key=lambda run: run[0])
    every, begun, last = len(rows) == len(X), [], -1.0
    for cost, at, chosen in runs:
        if begun and (every or cost > runs[0][0] * (1 + APART) or cost <= last * (1 + SAME)):
            continue
        last = cost
        C, W, count = np.zeros((k, X.shape[1])), np.zeros(k), np.zeros(k, np.int64)
        loops.add(S, w, at, C, W, count)
        C /= np.where(count > 0, W, 1)[:, None]
        empty = np.flatnonzero(count == 0)
        C[empty] = S[chosen[empty]]
        lone = dict(zip(empty.tolist(), rows[chosen[empty]].tolist(), strict=True))
        members = None
        if every:
            members = np.empty_like(at)
            members[rows] = at
        begun.append(Beginning(C, members, lone))
    return begun


def best(steps, begun, max_iter, tol):
    if len(begun) == 1 or PROBE == 0:
        return lloyd(steps, begun[0], max_iter, tol)
    found = None
    for b in begun:
        s = Steps(steps.X, steps.w, steps.k)
        s.__dict__["norms"] = steps.norms
        f = lloyd(s, b, PROBE, tol)
        if found is None or f.inertia < found.inertia:
            found, begun = f, Beginning(f.centers, None, f.lone)
    if found.settled:
        return found
    return lloyd(steps, begun, max_iter, tol)


def sample(steps: Steps, stream: Stream) -> tuple[Array, Array]:
    """Rows and their weights: all rows by their values, where these are few, so that draws do not
    depend on how they are arranged or repeated; else some, half of them in proportion to w |x|^2,
    as few rows far away may be a cluster (Bachem, Lucic and Krause, Scalable k-means clustering
    via lightweight coresets, 2018)."""
    X, w, size = steps.X, steps.w, LEAST + EACH * steps.k
    rows = np.flatnonzero(w)
    if len(rows) <= 1.5 * size:
        rows = rows[np.argsort(X[rows] @ np.cos(np.arange(X.shape[1])), kind="stable")]
        return rows, w[rows]
    far = w * steps.norms
    share = w / w.sum() + (far / far.sum() if far.any() else 0)
    total = np.cumsum(share)
    u = uniforms(stream, 0, size, 1)[:, 0]
    drawn = np.searchsorted(total, (np.arange(size) + u) / size * total[-1], side="right")
    rows, often = np.unique(np.minimum(drawn, rows[-1]), return_counts=True)
    return rows, often * w[rows] / share[rows]


def distances(S: Array) -> Array:
    """Squared distances between rows, (m, m)."""
    m = len(S)
    x = np.einsum("ij,ij->i", S, S, dtype=np.float64)

    def tile(rows: slice, cols: slice) -> Array:
        out = np.empty((rows.stop - rows.start, cols.stop - cols.start))
        loops.squares(S[rows] @ S[cols].T, x[rows], x[cols], out)
        return out

    return fill(np.empty((m, m)), tile, symmetric=True)


def lloyd(steps: Steps, begun: Beginning, max_iter: int, tol: float) -> Points:
    """Steps until no row changes its cluster, or means move by next to nothing."""
    C, members, lone = begun.C, begun.members, begun.lone
    seen, close, settled, step = C, 0.0, False, 0
    while not settled and step < max_iter:
        moved = steps.assign(C, seen if step else None)
        if step == 0:
            close = tol * steps.variance() + steps.rounding()
            moved = moved if members is None else int((members != steps.labels).sum())
        seen, step, members = C, step + 1, steps.labels.copy()
        if not moved:
            settled = True
        else:
            C, lone, left = steps.means(seen)
            way = float(np.square(C - seen).sum())
            settled = way <= close or left == 0
        LOG.info("step %d: %d rows of other clusters", step, moved)
    if not steps.fresh:
        steps.sum()
        C = np.where(steps.sums[2][:, None] > 0, steps.averages(), C)
    if C is not seen:
        steps.assign(C, seen)
    inertia = float(steps.w @ steps.own(C))
    return Points(steps.labels, C, cast(Array, members), lone, inertia, step, settled)
