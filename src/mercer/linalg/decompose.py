"""Eigenvectors of moments: whole, of known low rank, by passes where D x D is too large, or from a
sketch of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import eigh, qr

from mercer.inputs import Array
from mercer.invariants import Floats, Is, Whole
from mercer.stats import FrequentDirections
from mercer.store import register

OVERSAMPLING = 10  # directions beyond those asked for that a range finder follows
POWER_ROUNDS = 3  # products that sharpen the range


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """A = vectors diag(values) vectors' (D, r), the largest first; zero (or not told) in all other
    directions."""

    values: Array
    vectors: Array

    def above(self, share: float) -> Eigenpairs:
        """Without the eigenvalues that are rounding: below this share of the largest."""
        kept = self.values > share * max(float(self.values.max(initial=0)), np.finfo(float).tiny)
        return Eigenpairs(self.values[kept], self.vectors[:, kept])

    def top(self, k: int) -> Eigenpairs:
        return Eigenpairs(self.values[:k], self.vectors[:, :k])


def eigen(A: Array, rank: int | None = None, top: int | None = None) -> Eigenpairs:
    """The eigenvectors of a symmetric A >= 0 of at most this rank, all or the `top` ones.

    >>> eigen(np.diag([1.0, 3.0, 2.0])).values
    array([3., 2., 1.])
    """
    D = len(A)
    if (
        rank is not None and 3 * (rank + OVERSAMPLING) < D
    ):  # the range of A @ random is then all of A's: no D^3 work
        return ritz(lambda V: A @ V, D, rank, rounds=0).top(top or rank)
    values, vectors = largest(lambda: A, D if top is None else min(top, D))
    return Eigenpairs(np.maximum(values[::-1], 0), vectors[:, ::-1])


def largest(matrix: Callable[[], Array], k: int, *, overwrite: bool = False) -> tuple[Array, Array]:
    """The k largest eigenvalues of a symmetric matrix in ascending order, and their eigenvectors.

    LAPACK's way to some of the eigenvectors may come back without them where many eigenvalues are
    equal: all are then found, of the matrix made anew.

    >>> largest(lambda: np.eye(4), 2)[0]
    array([1., 1.])
    """
    A = matrix()
    n = len(A)
    values, vectors = eigh(
        A, subset_by_index=(n - k, n - 1), overwrite_a=overwrite, check_finite=False
    )
    if len(values) < k:
        values, vectors = (
            v[..., n - k :]
            for v in eigh(matrix(), driver="evd", overwrite_a=overwrite, check_finite=False)
        )
    return values, vectors


def ritz(
    product: Callable[[Array], Array], D: int, r: int, rounds: int = POWER_ROUNDS
) -> Eigenpairs:
    """The leading r eigenvectors of A >= 0 known by products A @ V (D, r): rounds + 2 of them.

    Halko, Martinsson and Tropp, Finding structure with randomness (2011).
    """
    width = min(D, r + OVERSAMPLING)
    V = np.random.default_rng(0).standard_normal((D, width))
    for _ in range(rounds + 1):
        V = qr(product(V), mode="economic", check_finite=False)[0]
    values, turn = eigh(_symmetric(V.T @ product(V)), check_finite=False)
    return Eigenpairs(np.maximum(values[::-1], 0), V @ turn[:, ::-1]).top(r)


def _symmetric(A: Array) -> Array:
    return (A + A.T) / 2


def signed(V: Array) -> Array:
    """Columns turned so that the largest entry of each is positive: an eigenvector's sign is then
    no accident.

    >>> signed(np.array([[1.0, 0.6], [0.0, -0.8]]))
    array([[ 1. , -0.6],
           [ 0. ,  0.8]])
    """
    largest = V[np.abs(V).argmax(axis=0), np.arange(V.shape[1])]
    return V * np.where(largest < 0, -1.0, 1.0)


@register("linalg.Components")
@dataclass(frozen=True, eq=False)
class Components:
    """What PCA tells: components (k, D), their variances, the share of all variance, and the
    mean."""

    components: Array
    variance: Array
    ratio: Array
    mean: Array

    must = dict(
        components=Floats("k", "D"), variance=Floats("k"), ratio=Floats("k"), mean=Floats("D")
    )

    @classmethod
    def of(cls, s: Eigenpairs, total: float, n: float, mean: Array) -> Self:
        """From the spectrum of the centred moments of n rows and their trace."""
        ratio = s.values / total if total > 0 else np.zeros_like(s.values)
        return cls(np.ascontiguousarray(signed(s.vectors).T), s.values / max(n - 1, 1), ratio, mean)

    def trimmed(self, floor: float) -> Components:
        """Without those whose variance is at most this share of the largest."""
        on = self.variance > floor * self.variance.max(initial=0)
        return Components(self.components[on], self.variance[on], self.ratio[on], self.mean)


@register("linalg.SketchedMoments")
@dataclass(eq=False)
class SketchedMoments:
    """n, sum z, sum |z|^2, and frequent directions in place of sum zz': merges, in O(size D)
    memory.

    >>> A = np.random.default_rng(0).normal(size=(500, 8)) * 0.3 ** np.arange(8) + 5
    >>> s = SketchedMoments.zero(8, 6).add(A[:200]).add(A[200:]).spectrum()
    >>> bool(np.allclose(s.values[:2], np.linalg.eigvalsh(500 * np.cov(A.T, bias=True))[:-3:-1], rtol=1e-3))
    True
    """

    rows: FrequentDirections
    n: int
    s: Array
    square: float

    must = dict(rows=Is("FrequentDirections"), s=Floats("D"), n=Whole())

    @classmethod
    def zero(cls, D: int, size: int) -> Self:
        return cls(FrequentDirections.zero(D, size), 0, np.zeros(D), 0.0)

    def add(self, F: Array) -> SketchedMoments:
        F = F.astype(np.float64)
        return SketchedMoments(
            self.rows.add(F), self.n + len(F), self.s + F.sum(0), self.square + float(np.sum(F * F))
        )

    def __add__(self, o: SketchedMoments) -> SketchedMoments:
        return SketchedMoments(
            self.rows + o.rows, self.n + o.n, self.s + o.s, self.square + o.square
        )

    @property
    def mean(self) -> Array:
        return self.s / self.n

    @property
    def total(self) -> float:
        """sum |z - mean|^2."""
        return max(self.square - self.n * float(self.mean @ self.mean), 0.0)

    def spectrum(self) -> Eigenpairs:
        """Of B'B - n mean mean', which is sum (z - mean)(z - mean)' up to the sketch's loss."""
        M = np.vstack([self.rows.B, np.sqrt(self.n) * self.mean])
        sign = np.append(np.ones(len(self.rows.B)), -1.0)
        Q, R = qr(M.T, mode="economic", check_finite=False)
        values, turn = eigh(_symmetric((R * sign) @ R.T), check_finite=False)
        return Eigenpairs(np.maximum(values[::-1], 0), Q @ turn[:, ::-1])
