"""Tiles of Gaussians of sparse rows as they are."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Gaussian
from mercer.ops.distances import TOLERANCE
from mercer.ops.gaussian import reference_values
from mercer.pairs.gaussian import GaussianPairs, RowsWithNorms, few_products, gamma_of
from mercer.pairs.side import product


class SparseTiles:
    """Values of a Gaussian between sparse rows, in either precision, by products in float64 that
    skip what is zero."""

    one_sided = True

    def __init__(self, kernel: Gaussian, dtype: DTypeLike) -> None:
        self.bandwidth, self.dtype = kernel.bandwidth, np.dtype(dtype)
        self.gamma = gamma_of(self.bandwidth)
        self.whole: tuple[Matrix, Array] | None = None  # the side of all rows

    def side(self, rows: Table, *, left: bool) -> tuple[Matrix, Array]:
        made = RowsWithNorms.sparse(rows.data, self.bandwidth)
        return made.A, made.norms

    def fill(self, left: tuple[Matrix, Array], right: tuple[Matrix, Array], out: Array) -> None:
        (A, x), (B, z), K = left, right, np.empty(out.shape, self.dtype)
        if few_products(A, B):
            reference_values(product(A, B), x, z, self.gamma, K, 0, 0)
        else:
            pairs = GaussianPairs(RowsWithNorms(A, x), RowsWithNorms(B, z), self.gamma)
            pairs.fill(slice(0, len(K)), slice(0, K.shape[1]), K, 0, 0, np.empty(K.size))
        out[:] = K

    @classmethod
    def of(cls, kernel: Gaussian, X: Table, Z: Table, dtype: DTypeLike) -> SparseTiles | None:
        """None where digits would be lost."""
        tiles = cls(kernel, dtype)
        with np.errstate(over="ignore"):
            left = tiles.side(X, left=True)
            right = left if Z is X else tiles.side(Z, left=False)
        most = float(left[1].max() + right[1].max())
        if not tiles.gamma * np.finfo(np.float64).eps * most <= TOLERANCE[tiles.dtype]:
            return None
        tiles.whole = left if Z is X else None
        return tiles
