"""Leading eigenpairs of a symmetric matrix that is there, by products with one vector at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal

from mercer.inputs import Array
from mercer.linalg.decompose import Eigenpairs
from mercer.ops.philox import Stream, normals

Product = Callable[[Array, Array], Any]  # of a vector, and where to write it
WIDE, NARROW = np.dtype(np.float64), np.dtype(np.float32)

TOL = {WIDE: 1e-8, NARROW: 1e-6}  # of |A v - value v| / value
FLOOR = {WIDE: 1e-12, NARROW: 1e-7}  # of the largest value: as near as rounding lets them come
AGAIN = 0.01  # of a vector's square: where less is left, it is made orthogonal once more
SPENT = 16  # times rounding: what is left of a vector is then nothing new
EXTRA = 6  # vectors beyond k before the first look
LEAST_BETWEEN, BETWEEN = 2, 6  # vectors between looks: at least, and as a share of those there are
PROBES, PROBED = 24, 2  # steps from another start at most: where there were few, and a share else
MISSED = 1e-6  # of the least value: another that exceeds it by less is not sought
COPIES = 100  # times |A v - value v|: values nearer than that may be seen as one
TINY = float(np.finfo(float).tiny)
UNLIKELY = 1e-4  # that a start has so little of a vector, times the usual


@dataclass(eq=False)
class Orthonormal:
    """Orthonormal rows, to which others are added."""

    rows: Array
    size: int

    def take(self, w: Array) -> tuple[float, float]:
        """w without what it has along the rows, in place: what it had along the last of them, and
        how long it is, 0 where that is rounding."""
        near, Q = self.rows[max(self.size - 2, 0) : self.size], self.rows[: self.size]
        before, along, left = float(w @ w), 0.0, 0.0
        for part in (near, Q, Q):  # most of it first, else rounding grows from row to row
            h = part @ w
            w -= h @ part
            along += float(h[-1]) if len(h) else 0.0
            if part is Q and (left := float(w @ w)) > AGAIN * before:
                break
        spent = SPENT * float(np.finfo(w.dtype).eps)
        return along, left**0.5 if left > spent**2 * before else 0.0

    def add(self, w: Array, length: float) -> None:
        """w / length as a row."""
        np.divide(w, length, out=self.rows[self.size])
        self.size += 1


@dataclass(eq=False)
class Tridiagonal:
    """A tridiagonal matrix Q A Q', of rows Q of a basis that follow each other."""

    diagonal: list[float] = field(default_factory=list)
    beside: list[float] = field(default_factory=list)  # the last leads to the row after them

    def __len__(self) -> int:
        return len(self.diagonal)

    def largest(self, first: int, last: int) -> Eigenpairs:
        """Its eigenvalues from number `first` to number `last`, the largest being number 1."""
        a, b, r = np.array(self.diagonal), np.array(self.beside[:-1]), len(self.diagonal)
        some = (r - last, r - first)
        values, vectors = eigh_tridiagonal(a, b, select="i", select_range=some, check_finite=False)
        if len(values) <= last - first:  # LAPACK may lose some of those that are equal
            T = np.diag(a) + np.diag(b, 1) + np.diag(b, -1)
            values, vectors = (v[..., some[0] : some[1] + 1] for v in eigh(T, driver="evd"))
        return Eigenpairs(values[::-1], vectors[:, ::-1])

    def left(self, s: Eigenpairs) -> Array:
        """|A v - value v| of each."""
        return np.asarray(self.beside[-1] * np.abs(s.vectors[-1]))


@dataclass(eq=False)
class Lanczos:
    """Chains in the complement of the rows that a basis begins with."""

    product: Product
    basis: Orthonormal
    seed: int
    starts: int = 0
    products: int = 0
    norm: float = 0.0  # of A, as far as it is known

    def begin(self) -> None:
        """Add a random row."""
        rows = self.basis.rows
        w = normals(Stream(self.seed), self.starts, self.starts + 1, rows.shape[1])[0]
        w = w.astype(rows.dtype)
        self.starts += 1
        self.basis.add(w, self.basis.take(w)[1])

    def grow(self, chain: Tridiagonal, steps: int) -> None:
        """Let a chain take in so many rows more; one that it has not taken in is the last."""
        w = np.empty_like(self.basis.rows[0])
        for _ in range(steps):
            self.product(self.basis.rows[self.basis.size - 1], w)
            self.products += 1
            along, left = self.basis.take(w)
            chain.diagonal.append(along)
            chain.beside.append(left)
            self.norm = max(self.norm, abs(along), left)
            if left > 0:
                self.basis.add(w, left)
            else:
                self.begin()

    def near(self, s: Eigenpairs) -> Array:
        """|A v - value v| that is near enough for each."""
        dtype = self.basis.rows.dtype
        return np.maximum(TOL[dtype] * s.values, FLOOR[dtype] * max(self.norm, s.values[0]))

    def leading(self, chain: Tridiagonal, k: int) -> tuple[Eigenpairs, float]:
        """The k largest of a chain, and how often |A v - value v| is too large: up to 1 where all
        are near enough. Most often the last of them tells that they are not, and comes alone."""
        for first in (k, 1):
            s = chain.largest(first, k)
            far = float((chain.left(s) / np.maximum(self.near(s), TINY)).max())
            if not far <= 1:
                break
        return s, far

    def bound(self, s: Eigenpairs) -> tuple[float, int]:
        """Above which no other value may be, and how many of these are above it.

        What one start does not tell apart are values that are next to equal. A copy of the least
        value takes nobody's place, so that only those of the others are sought where these are
        well above it.
        """
        floor = FLOOR[self.basis.rows.dtype] * s.values[0]
        lowest = max(s.values[-1], floor)
        low = lowest + max(MISSED * lowest, floor)
        k = len(s.values)
        if k == 1:
            return float(low), 1
        high = s.values[-2] - COPIES * self.near(s)[-2]
        return (float(high), k - 1) if high > low else (float(low), k)

    def misses(self, bound: float, most: int) -> bool:
        """Whether there may be a value above a bound in the complement of the basis, after so many
        steps from another start.

        Row i of the chain is p_i(A) of the first. Above all values of the chain p_i increases, so
        a vector of a larger value is at least p_i(bound) as long in row i as in the first; all
        these squares add up to 1 at most. Van Dorsselaer, Hochstenbach and van der Vorst,
        Computing probabilistic bounds for extreme eigenvalues (2000).
        """
        chain, before, now, squares = Tridiagonal(), 0.0, 1.0, 1.0
        self.begin()
        for _ in range(most):
            beside = chain.beside[-1] if chain.beside else 0.0
            self.grow(chain, 1)
            before, now = now, (bound - chain.diagonal[-1]) * now - beside * before
            if not now >= 0:  # the chain has a value above the bound
                return True
            if chain.beside[-1] == 0:
                return False
            now /= chain.beside[-1]
            squares += now * now
            if squares * UNLIKELY**2 > len(self.basis.rows[0]):
                return False
        return True


def pace(before: tuple[int, float], now: tuple[int, float]) -> int:
    """Vectors until a look is worth while, after two of them, each the vectors there were and how
    far the worst was from near enough.

    >>> pace((0, np.inf), (60, 1e3)), pace((60, 1e4), (64, 1e2))
    (10, 4)
    """
    most = max(2 * LEAST_BETWEEN, now[0] // BETWEEN)
    if not 1 < now[1] < before[1] < np.inf:
        return most
    steps = np.log(now[1]) / np.log(before[1] / now[1]) * (now[0] - before[0])
    return int(np.clip(np.ceil(steps), LEAST_BETWEEN, most))


def _used_up(chain: Tridiagonal, k: int, rest: float, bound: float) -> bool:
    """Whether a matrix A >= 0 has less than k values above a bound, as far as a trace that a chain
    leaves over tells: its complement has none, and adds no more than this to the chain's own."""
    if rest >= bound or len(chain) <= k:
        return False
    after = chain.largest(k + 1, k + 1).values[0]
    return bool(after + chain.beside[-1] ** 2 / (bound - rest) <= bound)


class TooSlow(Exception):
    """More vectors than were allowed, as would be in another precision."""


def lanczos(
    product: Product,
    without: Array,
    k: int,
    most: int,
    *,
    total: float = np.inf,
    least: float = -np.inf,
    seed: int = 0,
) -> tuple[Eigenpairs, float, int] | None:
    """The k leading eigenpairs of A >= 0 in the complement of some orthonormal rows (m, n), in the
    precision of these; |A v - value v| of the worst as a share of the largest value; and the number
    of products. `total` is the trace of A where it is known.

    TooSlow where this takes more than `most` vectors. None where a value is below `least`, or where
    one vector may not have led to all of them, as to those of equal values: another start then
    finds more, or does not show in as many steps that there is nothing to find.

    >>> A = np.diag(0.9 ** np.arange(200.0))
    >>> s, residual, products = lanczos(lambda v, out: np.dot(A, v, out), np.eye(1, 200), 3, 90)
    >>> s.values.round(9), residual < 1e-7
    (array([0.9  , 0.81 , 0.729]), True)
    """
    m, n = without.shape
    most = min(most, n // 2 - m)
    rows = np.empty((m + k + max(PROBED * most, PROBES) + 2, n), without.dtype)
    rows[:m] = without
    space, chain, more = Lanczos(product, Orthonormal(rows, m), seed), Tridiagonal(), k + EXTRA
    space.begin()
    before = (0, np.inf)
    while len(chain) + more <= most:
        space.grow(chain, more)
        rest = total - sum(chain.diagonal)
        if not np.isfinite(chain.diagonal[-1]):
            return None
        if least > 0 and chain.largest(k, k).values[0] + rest < least:
            return None
        s, far = space.leading(chain, k)
        if far <= 1:
            if s.values[-1] < least:
                return None
            bound, above = space.bound(s)
            vectors = rows[m : m + len(chain)].T @ s.vectors.astype(rows.dtype)
            if not _used_up(chain, above, rest, bound):
                rows[m : m + k] = vectors.T  # what else the chain holds may be half of a vector
                space.basis.size = m + k
                if space.misses(bound, max(PROBES, PROBED * len(chain))):
                    return None
            residual = float(chain.left(s).max() / max(s.values[0], np.finfo(float).tiny))
            return Eigenpairs(s.values, vectors), residual, space.products
        now = (len(chain), far)
        more, before = pace(before, now), now
    raise TooSlow
