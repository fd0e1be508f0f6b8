"""Rows of numbers as points among which means are points too: what k-means asks of a linear kernel,
at n k d instead of n^2 d a step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.inputs import Array
from mercer.ops import gaussian
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

PIECE = 1 << 17  # numbers of rows that are multiplied at a time: sums depend on it


@dataclass(frozen=True, eq=False)
class PointSpace:
    """Rows X (n, d), best about an origin that is near them; distances in float64 from products in
    their precision.

    >>> space = PointSpace(np.array([[0.0, 1.0], [4.0, 1.0]]))
    >>> space.to_rows(np.array([0])).tolist(), space.to_means(np.array([[0.5], [0.5]])).tolist()
    ([[0.0], [16.0]], [[4.0], [4.0]])
    """

    X: Array

    @cached_property
    def _pieces(self) -> list[slice]:
        return cuts(len(self.X), max(64, PIECE // self.X.shape[1]))

    @cached_property
    def norms(self) -> Array:
        """|x|^2"""
        out = np.empty(len(self.X))
        parallel_map(lambda s: gaussian.squares(self.X[s], out[s]), self._pieces)
        return out

    def distances(self, C: Array) -> Array:
        """Squared distances of all rows to these points, (n, t)."""
        C = C.astype(self.X.dtype)
        squares, out = np.square(C, dtype=np.float64).sum(1), np.empty((len(self.X), len(C)))

        def fill(s: slice) -> None:
            D = out[s]
            np.multiply(self.X[s] @ C.T, -2.0, out=D)
            D += self.norms[s, None]
            D += squares
            np.maximum(D, 0, out=D)

        parallel_map(fill, self._pieces)
        return out

    def points(self, A: Array) -> Array:
        """sum_i A_ic x_i, (k, d)."""
        A = A.astype(self.X.dtype)
        parts = parallel_map(lambda s: A[s].T @ self.X[s], self._pieces)
        return np.asarray(np.sum(parts, axis=0, dtype=np.float64))

    def to_rows(self, rows: Array) -> Array:
        return self.distances(self.X[rows])

    def to_means(self, A: Array) -> Array:
        return self.distances(self.points(A))

    def inner(self, A: Array) -> Array:
        """Inner products of the points sum_i A_ic x_i, (k, k)."""
        P = self.points(A)
        return P @ P.T
