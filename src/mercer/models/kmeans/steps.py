"""Lloyd's steps among points, with bounds that spare rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from mercer.inputs import Array
from mercer.ops import clusters as loops
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

NARROW = 12  # columns from which on products are quicker than differences
WORK, PIECES = 1 << 20, 16  # numbers of a piece at least, but for so many pieces
ROUNDINGS = 32  # by which a mean may be off
TILE, TILE_ROWS = 1 << 18, (64, 8192)  # numbers of rows and distances of one product


Sums = tuple[Array, Array, Array]  # of rows, of weights, of rows that have any: by cluster


@dataclass(eq=False)
class Steps:
    """Rows X (n, d) near zero and their weights, among k means: labels, and bounds of the distances
    to the mean of each row and to the next one (Hamerly, Making k-means even faster, 2010)."""

    X: Array
    w: Array
    k: int
    norms: Array  # |x|^2
    labels: Array = field(init=False)
    upper: Array = field(init=False)
    lower: Array = field(init=False)
    sums: Sums = field(init=False)
    fresh: bool = True  # whether sums were made anew, so that rows that left them left no rounding

    def __post_init__(self) -> None:
        n = len(self.X)
        self.labels, self.upper, self.lower = np.zeros(n, np.int64), np.empty(n), np.empty(n)

    @classmethod
    def of(cls, X: Array, w: Array, k: int) -> Self:
        found = cls(X, w, k, np.empty(len(X)))
        found.norms = found.own(np.zeros((1, X.shape[1])))
        return found

    def anew(self) -> Self:
        """The same rows, with bounds of their own."""
        return type(self)(self.X, self.w, self.k, self.norms)

    @property
    def pieces(self) -> list[slice]:
        n, d = self.X.shape
        return cuts(n, max(256, WORK // (self.k * d), -(-n // PIECES)))

    @property
    def narrow(self) -> bool:
        return self.X.shape[1] < NARROW

    @property
    def slack(self) -> float:
        """The rounding of squared distances."""
        d = self.X.shape[1]
        return float((8 + (d if self.narrow else math.sqrt(d))) * np.finfo(self.X.dtype).eps)

    @property
    def eps(self) -> float:
        """By which a mean may be off, of its length."""
        return ROUNDINGS * float(np.finfo(self.X.dtype).eps)

    # steps
    def begin(self, C: Array) -> None:
        """Rows to their nearest means C."""
        C = C.astype(self.X.dtype)
        parallel_map(lambda s: self._settle(s, np.arange(s.stop - s.start), C), self.pieces)

    def assign(self, C: Array, seen: Array) -> int:
        """Rows to their nearest means C, which were `seen` at the last time; how many have other
        ones than then."""
        C, seen = C.astype(self.X.dtype), seen.astype(self.X.dtype)
        shift = np.sqrt(np.square(C - seen, dtype=np.float64).sum(1))
        ways = shift, of_others(shift), halves(C.astype(np.float64))
        parts = parallel_map(lambda s: self._screened(s, C, ways), self.pieces)
        for _, change in parts:
            if change is not None:
                self.fresh = False
                for mine, more in zip(self.sums, change, strict=True):
                    mine += more
        return sum(moved for moved, _ in parts)

    def _screened(
        self, s: slice, C: Array, ways: tuple[Array, Array, Array]
    ) -> tuple[int, Sums | None]:
        """How many rows of a piece moved, and what that adds to the sums."""
        labels, index = self.labels[s], np.empty(s.stop - s.start, np.int64)
        count = loops.screen(labels, self.upper[s], self.lower[s], *ways, index)
        index = index[:count]
        old = self._settle(s, index, C)
        if not count or (old == labels[index]).all():
            return 0, None
        more = zeros(self.k, self.X.shape[1])
        return loops.move(self.X[s], self.w[s], index, labels, old, *more), more

    def _settle(self, s: slice, index: Array, C: Array) -> Array:
        """Labels and bounds of these rows of a piece; their labels before."""
        old = np.empty(len(index), np.int64)
        state = self.labels[s], self.upper[s], self.lower[s], old
        (self._by_differences if self.narrow else self._by_products)(s, index, C, state)
        return old

    def _by_differences(self, s: slice, index: Array, C: Array, state: tuple[Array, ...]) -> None:
        dtype, wide = C.dtype, -(-C.shape[1] // loops.UNROLLED) * loops.UNROLLED
        padded = np.zeros((self.k, wide), dtype)
        padded[:, : C.shape[1]] = C
        T, P = (np.zeros((rows, loops.GROUP), dtype) for rows in (wide, self.k))
        nil, room = np.zeros(max(loops.GROUP, self.k)), loops.room(loops.GROUP)
        loops.narrow(self.X[s], padded, T, P, nil, self.slack, index, state + room)

    def _by_products(self, s: slice, index: Array, C: Array, state: tuple[Array, ...]) -> None:
        X, norms, size = self.X[s], self.norms[s], np.square(C, dtype=np.float64).sum(1)
        wrong, rows = self.slack * size, int(np.clip(TILE // (X.shape[1] + self.k), *TILE_ROWS))
        room = loops.room(min(rows, len(index)))
        for at in cuts(len(index), rows):
            some = at if len(index) == len(X) else index[at]
            P, x = C @ X[some].T, norms[some]  # (k, b), (b,)
            low, twice = size - wrong, 2 * wrong
            loops.settle(P, -2.0, low, x, self.slack, twice, index, at.start, state + room)
        labels, upper, lower, _ = state
        loops.tell(X, C, labels, upper, lower, index)

    # sums
    def sum(self) -> None:
        """Sums of the rows of each cluster, anew."""
        parts = parallel_map(
            lambda s: sums(self.X[s], self.w[s], self.labels[s], self.k), self.pieces
        )
        S, W, count = (sum(more[1:], more[0]) for more in zip(*parts, strict=True))
        self.sums, self.fresh = (S, W, count), True

    def averages(self) -> Array:
        S, W, count = self.sums
        return np.asarray(S / np.where((count > 0) & (W > 0), W, 1)[:, None])

    def means(self, before: Array) -> tuple[Array, dict[int, int], float]:
        """Of the clusters; an empty one becomes a row that is far from its own mean: which, and
        w d^2 of the farthest."""
        C, empty = self.averages(), np.flatnonzero(self.sums[2] == 0)
        if not len(empty):
            return C, {}, math.inf
        own = self.own(before)
        cost = self.w * np.where(own > self.eps**2 * self.norms, own, 0.0)
        far = np.argsort(-cost, kind="stable")[: len(empty)]
        C[empty] = self.X[far]
        return C, dict(zip(empty.tolist(), far.tolist(), strict=True)), float(cost[far[0]])

    def own(self, C: Array) -> Array:
        """Squared distances to the mean of each row."""
        out = np.empty(len(self.X))
        parallel_map(lambda s: loops.own(self.X[s], C, self.labels[s], out[s]), self.pieces)
        return out

    # when to stop
    def variance(self) -> float:
        """Of a column, on average."""
        total = self.w.sum()
        mean = self.sums[0].sum(0) / total
        return max(float(self.w @ self.norms / total - mean @ mean), 0.0) / self.X.shape[1]

    def rounding(self) -> float:
        """The sum of squared ways of means that stay where they are."""
        return self.eps**2 * float(self.w @ self.norms / self.w.sum())


def sums(X: Array, w: Array, labels: Array, k: int) -> Sums:
    """Of the rows of each cluster."""
    out = zeros(k, X.shape[1])
    loops.add(X, w, labels, *out)
    return out


def zeros(k: int, d: int) -> Sums:
    """Sums of no rows."""
    return np.zeros((k, d)), np.zeros(k), np.zeros(k, np.int64)


def of_others(shift: Array) -> Array:
    """The greatest of all but each of these; of a single one itself.

    >>> of_others(np.array([1.0, 3.0, 2.0]))
    array([3., 2., 3.])
    """
    two = np.sort(shift)[-2:]
    return np.where(shift == two[-1], two[0], two[-1])


def halves(C: Array) -> Array:
    """Half of the distance of each of these points to the next one, at most."""
    size = np.square(C).sum(1)
    scale = size[:, None] + size
    D = scale - 2 * C @ C.T - 1e-13 * scale
    np.fill_diagonal(D, np.inf)
    return np.asarray(0.5 * np.sqrt(np.maximum(D.min(1), 0)))
