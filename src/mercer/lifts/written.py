"""Kernel values at landmarks, written where they are to be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.inputs import Array
from mercer.ops.distances import TOLERANCE, precise_enough
from mercer.pairs.gaussian import GaussianPairs

# What products may do to a squared distance (in units of the bandwidth): of float64 rows little
# beside what landmarks leave untold, 1e-11 of k(x, x).
ROUNDING = {**TOLERANCE, np.dtype(np.float64): 2e-11}
Fill = Callable[[slice, Array], None]  # writes the values of some rows


def written(values: Callable[[slice], Array]) -> Fill:
    """Written where they are to be."""
    return lambda at, out: np.copyto(out, values(at))


def filled(pairs: GaussianPairs, at: slice, out: Array) -> None:
    """The values of some rows with all points."""
    pairs.fill(at, slice(0, out.shape[1]), out, 0, 0, np.empty(out.size, pairs.dtype))


def of_few(bandwidth: float, rows: Array, points: Array, plain: Fill) -> Fill:
    """exp(-|x - z|^2 / (2 bandwidth^2)) of pieces of rows, from their products with the points and
    both norms: no copies of the rows, and no loop to compile. Where squared distances would lose
    digits, as far from the origin, `plain`, which is what it is tested against."""
    with np.errstate(all="ignore"):
        scaled = points / points.dtype.type(bandwidth) / points.dtype.type(bandwidth)
        z = np.einsum("ij,ij->i", points, scaled)

    def fill(at: slice, out: Array) -> None:
        part = rows[at]
        with np.errstate(all="ignore"):
            x = np.einsum("ij,ij->i", part, part) / z.dtype.type(bandwidth) ** 2
            if not precise_enough(x, z, z.dtype, ROUNDING[z.dtype]):
                plain(at, out)
                return
            np.matmul(part, scaled.T, out=out)
        out -= 0.5 * x[:, None]
        out -= 0.5 * z
        np.exp(np.minimum(out, 0, out=out), out=out)

    return fill
