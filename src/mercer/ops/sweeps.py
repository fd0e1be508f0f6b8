"""Sweeps over products of columns that are never built: which of them have the largest inner
products with a vector.

A word of k letters (columns, in order) is a head and a tail. For a tile of heads h and one of tails
t all x_h x_t'r are one matrix product, of r x_h and x_t, two blocks made on the fly; of its values
only the best are kept. In float32 each value is raised by what rounding may have taken, and those
that remain are computed anew in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.monomials import Program
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts, settle_allocator
from mercer.ops.words import TILE, Patch, letters, places, tiles

ROWS = 4096  # at a time: blocks stay small, and so do the errors of sums in float32
PIECE = 128  # products that are computed anew, at a time
SPARE = 256  # more than asked for are computed anew, so that the bound on all others is close
REACH = 1e6  # products of columns up to so much, and from 1 / REACH**3 on, are taken in float32
CROWD = 1 / 32  # of a tile: where more than that may count, all its scales are computed
ALIKE = 1e-9  # relative difference of products with a vector up to which two may be copies
FAST = {"reassoc", "contract", "nsz"}  # sums in any order, as vectors take them
FIRST = 4  # tiles at first, then twice as many: each round knows what those before have found
SAFETY = 1 + 1e-6  # for the few roundings of a bound itself


@njit
def products(XT: Array, words: Array, r: Array, begin: int, out: Array) -> None:
    """out[j, i] = r_i prod_l XT[words[j, l], i] of the rows from begin on; r = 1 where it is
    empty."""
    m, length, bare = out.shape[1], words.shape[1], r.shape[0] == 0
    for j in range(words.shape[0]):
        o, word, done = out[j], words[j], 1
        if length == 0 or word[0] < 0:
            for i in range(m):
                o[i] = 1.0 if bare else r[begin + i]
            continue
        x = XT[word[0], begin : begin + m]
        if not bare:
            for i in range(m):
                o[i] = x[i] * r[begin + i]
        elif length > 1 and word[1] >= 0:
            z, done = XT[word[1], begin : begin + m], 2
            for i in range(m):
                o[i] = x[i] * z[i]
        else:
            o[:] = x
        for a in word[done:]:
            if a >= 0:
                x = XT[a, begin : begin + m]
                for i in range(m):
                    o[i] *= x[i]


@njit(fastmath=FAST)
def sums(XT: Array, words: Array, w: Array, r: Array, v: Array, out: Array) -> None:
    """out[j] = x'r, x'v, x'w, the weighted mean square of x, and that of x less its mean, where x
    is the product of words[j]."""
    n = len(w)
    x = np.empty(n)
    for j in range(words.shape[0]):
        x[:] = 1.0
        for a in words[j]:
            if a >= 0:
                z = XT[a]
                for i in range(n):
                    x[i] *= z[i]
        xr, xv, xw = 0.0, 0.0, 0.0
        for i in range(n):
            xr += x[i] * r[i]
            xv += x[i] * v[i]
            xw += x[i] * w[i]
        square, variance = 0.0, 0.0
        for i in range(n):
            square += w[i] * x[i] * x[i]
            variance += w[i] * (x[i] - xw) * (x[i] - xw)
        out[j, 0], out[j, 1], out[j, 2], out[j, 3], out[j, 4] = xr, xv, xw, square, variance


def built(XT: Array, words: Array) -> Array:
    """(m, n) the products of these columns, the rows of XT.

    >>> built(np.array([[2.0, 3.0], [5.0, 7.0]]), np.array([[0, 1], [1, -1]]))
    array([[10., 21.],
           [ 5.,  7.]])
    """
    out = np.empty((len(words), XT.shape[1]), XT.dtype)
    parallel_map(
        lambda some: products(XT, words[some], XT[0, :0], 0, out[some]), cuts(len(words), TILE)
    )
    return out


class Best:
    """The k largest values so far with their places, ties by place: the same for any order of
    tiles."""

    def __init__(self, k: int) -> None:
        self.k, self.floor, self.lock = k, -np.inf, Lock()
        self.values, self.places = np.empty(0), np.empty(0, np.int64)

    def take(self, values: Array, at: Array) -> None:
        with self.lock:
            self.values = np.append(self.values, values)
            self.places = np.append(self.places, at)
            if len(self.values) > 2 * self.k:
                self.trim()

    def trim(self) -> None:
        """Drop all but k; from now on what is below the last of them is not looked at."""
        if len(self.values) > self.k:
            some = np.lexsort((self.places, -self.values))[: self.k]
            self.values, self.places = self.values[some], self.places[some]
            self.floor = float(self.values[-1])


@dataclass(frozen=True, eq=False)
class Sweep:
    """All products of columns, a row of XT each, of some degrees and within caps.

    Places are those of a program, the constant counted. With `unit` a product x is divided by
    its standard deviation, (sum_i w_i x_i^2 - (sum_i w_i x_i)^2)^(1/2); constants are left out.

    >>> from mercer.ops.monomials import plan
    >>> XT = np.array([[0.0, 1.0, 1.0], [1.0, 0.5, -1.0]])
    >>> sweep = Sweep(XT, np.full(3, 1 / 3), plan(2, 2), np.array([1, 2]), range(1, 3))
    >>> sweep.largest(np.array([1.0, 1.0, -2.0]), 2, 0.5)
    (array([2, 4]), array([3.5, 2.5]), 1.0)
    """

    XT: Array  # (d, n) float64
    w: Array  # (n,) float64, weights that sum to 1
    program: Program
    caps: Array  # (d,) the highest exponent of each column, no higher than the program's
    degrees: range
    unit: bool = False

    @cached_property
    def tiles(self) -> list[Patch]:
        return list(tiles(self.caps, self.degrees))

    @cached_property
    def dtype(self) -> np.dtype[np.floating]:
        """The precision to sweep in: float32 where it holds the products."""
        top = self.tops[self.caps > 0]
        k = self.degrees.stop - 1
        low, high = top[top > 0].min(initial=1.0) ** k, top.max(initial=1.0) ** k
        return np.dtype(np.float32 if high <= REACH and low >= REACH**-3 else np.float64)

    @cached_property
    def rounded(self) -> Array:
        return self.XT.astype(self.dtype)

    @cached_property
    def floors(self) -> list[tuple[Array, Array]]:
        """Of each tile the norms of heads, and the least scale of a tail's products over the norm
        of their head: what the scale of a product is at least, without one for each."""
        return parallel_map(self._floor, self.tiles) if self.unit else []

    @cached_property
    def _off(self) -> float:
        """The relative error of a sum over all rows in float64."""
        return gamma(len(self.w) + 8, np.dtype(np.float64))

    def columns(self, at: Array) -> Array:
        """(m, n) the products at some places, in float64, not divided."""
        return built(self.XT, letters(self.program, at))

    def sums(self, words: Array, r: Array) -> Array:
        """(m, 5) of products x of words: x'r and x'v, v a vector that is always the same, divided
        by what x is divided by, inf for constants with `unit`; that; and mean and deviation of x
        as it is."""
        out = np.empty((len(words), 5))
        mark = self._mark
        parallel_map(
            lambda some: sums(self.XT, words[some], self.w, r, mark, out[some]),
            cuts(len(words), PIECE),
        )
        least = 16 * self._off * out[:, 3]
        scale = deviations(out[:, 4], least) if self.unit else np.ones(len(words))
        both = out[:, :2] / scale[:, None]
        return np.column_stack([both, scale, out[:, 2], np.sqrt(out[:, 4])])

    def largest(self, r: Array, k: int, above: float) -> tuple[Array, Array, float]:
        """Places and values x_j'r of the k largest |x_j'r| above a number, copies of one before
        left out, and a bound on all others."""
        size = float(np.abs(r).max(initial=0.0))
        if size == 0 or not len(self.tiles):
            return np.empty(0, np.int64), np.empty(0), above
        settle_allocator()
        step = 2.0 ** np.floor(np.log2(size))  # a power of two: dividing by it is exact
        best, least = Best(k + SPARE), above / step / SAFETY
        small, norms, start, stop = (r / step).astype(self.dtype), self._norms(r / step), 0, FIRST
        while start < len(self.tiles):  # a round asks for no less than the last of the best so far
            some = range(start, min(stop, len(self.tiles)))
            look = partial(self._look, r=small, norms=norms, above=least, best=best)
            parallel_map(look, some)
            best.trim()
            start, stop, least = stop, 2 * stop, max(least, best.floor)
        return self._anew(best, r, k, above, best.floor * step * SAFETY)

    def _anew(
        self, best: Best, r: Array, k: int, above: float, bound: float
    ) -> tuple[Array, Array, float]:
        """The best in float64, where all others are within a bound."""
        at = best.places
        both = self.sums(letters(self.program, at), r)[:, :2]
        order = np.lexsort((at, -np.abs(both[:, 0])))
        at, both = at[order], both[order]
        once = self._once(at, both)
        at, values = at[once], both[once, 0]
        kept = np.flatnonzero(np.abs(values[:k]) > above)
        others = float(np.abs(values[k:]).max(initial=0.0))
        return at[kept], values[kept], max(above, bound, others)

    @cached_property
    def _mark(self) -> Array:
        """(n,) no vector that data would know of: products with it tell features apart."""
        v = self.w * np.cos(np.arange(1.0, len(self.w) + 1) * np.sqrt(2.0))
        return np.asarray(v - self.w * v.sum())

    def _once(self, at: Array, both: Array) -> Array:
        """(m,) which products are no copies of one before, but for a sign, an offset and, with
        `unit`, a factor: these have the same products with both vectors."""
        both, once = np.abs(both), np.ones(len(at), bool)
        order = np.lexsort((at, both[:, 1]))
        near = np.abs(np.diff(both[order], axis=0)) <= ALIKE * both.max(axis=0, initial=0.0)
        ends = np.append(np.flatnonzero(~near.all(axis=1)) + 1, len(at))
        sizes = np.diff(ends, prepend=0)
        for end, size in zip(ends[sizes > 1], sizes[sizes > 1], strict=True):
            group = order[end - size : end]
            once[self._copies(group[np.argsort(at[group])], at)] = False
        return once

    def _copies(self, group: Array, at: Array) -> list[int]:
        """Those of a group that are one before them, to rounding."""
        F = self.columns(at[group])
        s, means = self.sums(letters(self.program, at[group]), self._mark)[:, 2:4].T
        close = self._off * np.abs(F).max(axis=1) / s
        F = (F - means[:, None]) / s[:, None]
        firsts: list[int] = []
        copies: list[int] = []
        for i, f in enumerate(F):
            C = F[firsts]
            off = np.minimum(np.abs(C - f).max(axis=1), np.abs(C + f).max(axis=1))
            (copies if (off <= close[i] + close[firsts]).any() else firsts).append(i)
        return [int(group[i]) for i in copies]

    def _look(self, i: int, r: Array, norms: Array, above: float, best: Best) -> None:
        """Give the best what may exceed a number in one tile."""
        tile = self.tiles[i]
        V, error = self._values(tile, r, norms)
        np.abs(V, out=V)
        V += V.dtype.type(error)
        V[tile.near :][tile.strange(self.caps)] = 0
        if self.unit:
            V = self._over_scales(i, V, above)
        h, t = np.nonzero(max(above, best.floor, float(np.finfo(r.dtype).tiny)) <= V)
        v = V[h, t].astype(np.float64)
        if len(v) > best.k:
            few = v >= np.partition(v, -best.k)[-best.k]
            h, t, v = h[few], t[few], v[few]
        if len(v):
            best.take(v, places(self.program, tile.words(h, t)))

    def _values(self, tile: Patch, r: Array, norms: Array) -> tuple[Array, float]:
        """(h, t) x_h x_t'r, and what each of them may be off: sums of n terms, each of k factors
        and r, all of them rounded. `norms` are those of r and of r times each column."""
        n, k = len(r), tile.heads.words.shape[1] + tile.tails.words.shape[1]
        V = np.zeros((len(tile.heads), len(tile.tails)), r.dtype)
        for rows in cuts(n, ROWS):
            H = self._block(self.rounded, tile.heads.words, r, rows)
            T = self._block(self.rounded, tile.tails.words, r[:0], rows)
            V += H @ T.T
        roundings = min(n, ROWS) + len(cuts(n, ROWS)) + 2 * k + 4
        sizes = self._most(tile.heads.words, norms) * self._most(tile.tails.words, self.norms)
        lost = n * (k + 2) * float(np.finfo(r.dtype).smallest_subnormal) * REACH
        return V, 1.01 * gamma(roundings, r.dtype) * sizes + lost

    def _most(self, words: Array, norms: Array) -> float:
        """What the norm of a product is at most: that of its first column times the largest
        magnitudes of the others."""
        if not words.shape[1]:
            return float(norms[-1])
        return float((norms[words[:, 0]] * self.tops[words[:, 1:]].prod(axis=1)).max())

    @cached_property
    def tops(self) -> Array:
        """(d,) the largest magnitude of each column."""
        return np.asarray(np.abs(self.XT).max(axis=1, initial=0.0))

    @cached_property
    def norms(self) -> Array:
        """(d + 1,) those of columns, and of 1."""
        return self._norms(np.ones(len(self.w)))

    def _norms(self, r: Array) -> Array:
        """(d + 1,) of r times each column, and of r."""
        squares = np.asarray(r, np.float64) ** 2
        return np.sqrt([*(np.square(x) @ squares for x in self.XT), squares.sum()])

    def _over_scales(self, i: int, V: Array, above: float) -> Array:
        """Bounds (h, t) on |x_j'r| / s_j of |x_j'r|, 0 where that is not above a number: with s_j
        at the least it can be, and as it is where that leaves any."""
        norms, least = self.floors[i]
        U = np.asarray(V / (norms[:, None] * least))
        h, t = np.nonzero(above <= U)
        if len(h) > CROWD * U.size:
            return np.asarray(V / self._scales(self.tiles[i])[0])
        U[:] = 0
        words = self.tiles[i].words(h, t)
        U[h, t] = V[h, t] / self.sums(words, self._mark)[:, 2]
        return U

    def _floor(self, tile: Patch) -> tuple[Array, Array]:
        S, norms = self._scales(tile)
        norms[norms == 0] = 1.0
        return norms, (S / norms[:, None]).min(axis=0)

    def _scales(self, tile: Patch) -> tuple[Array, Array]:
        """(h, t) what the standard deviation of products is at least, inf for constants, and the
        norms of heads; in float64."""
        shape = len(tile.heads), len(tile.tails)
        M, Q, norms = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
        for rows in cuts(len(self.w), ROWS):
            H = self._block(self.XT, tile.heads.words, self.w, rows)
            T = self._block(self.XT, tile.tails.words, self.w[:0], rows)
            M += H @ T.T
            H = self._block(self.XT, np.repeat(tile.heads.words, 2, axis=1), self.w, rows)
            norms += H.sum(axis=1)
            Q += H @ (T * T).T
        S = deviations(Q - M * M - 4 * self._off * Q, 8 * self._off * Q)
        S[tile.near :][tile.strange(self.caps)] = np.inf
        return S, np.sqrt(norms)

    def _block(self, XT: Array, words: Array, r: Array, rows: slice) -> Array:
        """(m, rows) words, times r."""
        out = np.empty((len(words), rows.stop - rows.start), XT.dtype)
        products(XT, words, r, rows.start, out)
        return out


def deviations(variance: Array, least: Array) -> Array:
    """The root of variances, inf where they are no more than the least that is no rounding.

    >>> deviations(np.array([4.0, 1e-20]), np.full(2, 1e-16))
    array([ 2., inf])
    """
    return np.sqrt(np.where(variance > least, variance, np.inf))


def gamma(m: int, dtype: np.dtype[np.floating]) -> float:
    """The relative error of m roundings, one after the other: m u / (1 - m u)."""
    u = float(np.finfo(dtype).eps) / 2
    return m * u / (1 - m * u)
