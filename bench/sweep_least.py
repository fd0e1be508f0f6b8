"""The work that no implementation can be without, at the shape of a problem: products of rows by
BLAS, one exponential a pair, new pages of what is returned, and of equations a factor. What the
peer takes over that is the ratio that a perfect implementation would have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import spotrf

from mercer.ops import gaussian
from mercer.ops.threads import n_threads, single_blas
from mercer.ops.triangles import multiplied
from mercer.pairs.gaussian import GaussianPairs, RowsWithNorms

Clock = Callable[[], float]
PIECE = 256  # rows and columns of values that stay in a core's cache
REPEATS, SECONDS = 7, 0.1  # of a part: as often as that, or until it took so long


@dataclass(frozen=True)
class Least:
    """Seconds of parts of the work, each the best of a few, on all threads."""

    clock: Clock

    def gram(self, X: Any, Z: Any = None, *, kept: bool = True) -> float:
        """Kernel values of rows, or of one triangle of rows with themselves; kept or summed up."""
        n, m = X.shape[0], (X if Z is None else Z).shape[0]
        share = 0.5 * (1 + 1 / n) if Z is None else 1.0
        values = share * (self._products(X, X if Z is None else Z) + self._values(n * m, X.dtype))
        return values + (self._pages(n * m, X.dtype) if kept else 0.0)

    def solution(self, n: int, steps: int | None) -> float:
        """Of n equations: a factor in float32, or as many products with one triangle of K where
        that is less."""
        A = np.eye(n, dtype=np.float32, order="F") + np.float32(0.1 / n)
        seconds = self._best(lambda: spotrf(A, lower=1, clean=0))
        if steps is None:
            return seconds
        K, v = np.eye(n), np.ones((n, 1))
        with single_blas():
            return min(seconds, steps * self._best(lambda: multiplied(K, v)))

    def _products(self, X: Any, Z: Any) -> float:
        """By BLAS; of sparse rows by the loop over columns that they share, or by BLAS where dense
        ones are quicker."""
        if not sp.issparse(X):
            # two columns at least, as BLAS is not asked for products of single numbers; a product
            # of rows with themselves is not to be half of one already
            more = ((0, 0), (0, int(X.shape[1] == 1)))
            left, right, out = np.pad(X, more), np.pad(Z, more), np.empty((len(X), len(Z)), X.dtype)
            return self._best(lambda: np.matmul(left, right.T, out=out))
        pairs = GaussianPairs(*(RowsWithNorms.sparse(A, 1.0) for A in (X, Z)), 0.5)
        out = np.empty((X.shape[0], Z.shape[0]), pairs.dtype)
        every = slice(0, len(out)), slice(0, out.shape[1])
        loop = self._best(lambda: pairs.sparse_products(*every, out, half=False)) / n_threads()
        return min(loop, self._products(X.toarray(), Z.toarray()))

    def _values(self, count: int, dtype: Any) -> float:
        P, x = np.zeros((PIECE, PIECE), dtype), np.ones(PIECE, dtype)
        out = np.empty_like(P)
        seconds = self._best(lambda: gaussian.values(P, x, x, 0.5, out, 0, 0))
        return seconds * count / P.size / n_threads()

    def _pages(self, count: int, dtype: Any) -> float:
        """New memory, written once by all threads."""
        return self._best(lambda: np.empty(count, dtype).fill(1)) / n_threads()

    def _best(self, work: Callable[[], Any]) -> float:
        work()
        best, spent = np.inf, 0.0
        for _ in range(REPEATS):
            start = self.clock()
            work()
            seconds = self.clock() - start
            best, spent = min(best, seconds), spent + seconds
            if spent > SECONDS:
                break
        return float(best)
