"""Tiles of kernel values for dual solvers, written where they are to be kept; Gaussians of float32 and of bits in two passes."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Gaussian, Kernel
from mercer.ops.bits import lookup, packed
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

    dtype = NARROW

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


class BitTiles:
    """The same for rows whose columns have two values each, all equally far apart, as indicators have: distances are counts."""

    def __init__(self, kernel: Gaussian, high: Array, step: float, dtype: Any) -> None:
        self.high, self.dtype = high, np.dtype(dtype)
        with np.errstate(over="ignore"):
            square = np.square(np.float64(step) / np.max(kernel.bandwidth))
        self.values = np.exp(-0.5 * np.minimum(square, 1e6) * np.arange(len(high) + 1)).astype(dtype)

    def side(self, rows: Table, *, left: bool) -> Array:
        words = packed(rows.data == self.high)
        return words if left else np.ascontiguousarray(words.T)

    def fill(self, left: Array, right: Array, out: Array) -> None:
        lookup(left, right, self.values, out)

    @classmethod
    def of(cls, kernel: Gaussian, X: Table, Z: Table, dtype: Any) -> BitTiles | None:
        """None where the rows are not such, or the bandwidths of columns differ."""
        if np.ptp(kernel.bandwidth) > 0 or not len(X) or not len(Z):
            return None
        low, high = np.minimum(X.data.min(0), Z.data.min(0)), np.maximum(X.data.max(0), Z.data.max(0))
        with np.errstate(over="ignore"):
            wide = high - low
        if not np.isin(wide, (0, wide.max())).all() or not all(_either(t.data, low, high) for t in ((X,) if X is Z else (X, Z))):
            return None
        return cls(kernel, high, float(wide.max()), dtype)


def _either(A: Array, low: Array, high: Array) -> bool:
    """Whether every value is one of the two of its column; the first rows tell most of the others apart."""
    return all(bool(((part == low) | (part == high)).all()) for part in (A[:100], A))


def tiles_of(kernel: Kernel, X: Table, Z: Table, dtype: Any) -> Any:
    """The tiles between rows of X and Z: fast ones of bits, or where float32 is asked for and tells squared distances well enough."""
    centre = centre_of(X, Z)
    if not isinstance(kernel, Gaussian) or centre is None:
        return Tiles(kernel, centre)
    if (bits := BitTiles.of(kernel, X, Z, dtype)) is not None:
        return bits
    return _narrow(kernel, centre, X, Z) if np.dtype(dtype) == NARROW else Tiles(kernel, centre)


def _narrow(kernel: Gaussian, centre: Array, X: Table, Z: Table) -> Any:
    fast = GaussianTiles(kernel, centre)
    with np.errstate(over="ignore", invalid="ignore"):
        x = square_norms(fast.scaled(X))
        z = x if Z is X else square_norms(fast.scaled(Z))
    return fast if precise_enough(x, z, NARROW, TOLERANCE[NARROW]) else Tiles(kernel, centre)
