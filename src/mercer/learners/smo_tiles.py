"""Tiles of kernel values for dual solvers, written where they are to be kept; Gaussians of float32 in two passes."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Gaussian, Kernel
from mercer.ops.distances import TOLERANCE, augmented, precise_enough
from mercer.ops.smo_gauss import half_exp
from mercer.pairs import Side, Tile, centre_of
from mercer.pairs.side import per_column, square_norms

NARROW = np.dtype(np.float32)


class Tiles:
    """k(x, z) for any two sets of rows, about one centre, so that an entry is always the same number."""

    def __init__(self, kernel: Kernel, centre: Array | None) -> None:
        self.kernel, self.centre = kernel, centre

    def side(self, rows: Table, *, left: bool) -> Any:
        return Side(rows, self.centre)

    def fill(self, left: Any, right: Any, out: Array) -> None:
        out[:] = self.kernel.on(Tile(left, right))


class GaussianTiles:
    """The same for a Gaussian in float32: one matrix product of augmented rows, and one exponential in place."""

    def __init__(self, kernel: Gaussian, centre: Array) -> None:
        self.bandwidth, self.centre = kernel.bandwidth, centre

    def scaled(self, rows: Table) -> Array:
        return ((rows.data - self.centre) / per_column(self.bandwidth, rows.width)).astype(np.float32)

    def side(self, rows: Table, *, left: bool) -> Array:
        A = self.scaled(rows)
        return augmented(A, square_norms(A), left=left)

    def fill(self, left: Array, right: Array, out: Array) -> None:
        np.matmul(left, right.T, out=out)
        half_exp(out)


def tiles_of(kernel: Kernel, X: Table, Z: Table, dtype: Any) -> Any:
    """The tiles between rows of X and Z: fast ones where float32 is asked for and tells squared distances well enough."""
    centre = centre_of(X, Z)
    if isinstance(kernel, Gaussian) and np.dtype(dtype) == NARROW and centre is not None:
        fast = GaussianTiles(kernel, centre)
        with np.errstate(over="ignore", invalid="ignore"):
            x = square_norms(fast.scaled(X))
            z = x if Z is X else square_norms(fast.scaled(Z))
        if precise_enough(x, z, NARROW, TOLERANCE[NARROW]):
            return fast
    return Tiles(kernel, centre)
