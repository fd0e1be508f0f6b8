"""What landmarks of float32 rows keep: where kernel values have digits that float32 rows hide, they
are taken in float64."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel
from mercer.operators.tiles import tiles_about

FINE = 1e-11  # of k(x, x): what float64 values tell beside the landmarks before
SEEN, FEW = 1024, 64  # rows by which it is told what a kernel is like there
LITTLE = 100 * FINE  # of k(x, x) is what tells the rows apart, so that parts of it are lost
ONE_SIZE = 1e-3  # of the largest k(x, x): more than this between them is no rounding


def least_share(kernel: Kernel | str, rows: Table, coarse: float) -> float:
    """The share of k(x, x) up to which a landmark that others leave untold counts as told.

    `coarse` where float32 rows suffice: k(x, x) is about the same everywhere and little of it
    is common to all rows. Columns of a linear kernel may have a millionth of k(x, x), beside a
    larger one or as they are far from zero, and tell all there is to be told.
    """
    if not isinstance(kernel, Kernel) or rows.items or rows.dtype == np.float64:
        return min(coarse, FINE)
    some = rows[:: -(-len(rows) // SEEN)].astype(np.float64)
    own = kernel.diag(some)
    if np.ptp(own) > ONE_SIZE * np.max(own, initial=0.0):
        return FINE
    return coarse if tiles_about(kernel, some, np.float64) is None else FINE


def warn_if_hidden(kernel: Kernel | str, rows: Table) -> None:
    """Where the rows share so much of k(x, x) that float64 hides what tells them apart."""
    if not isinstance(kernel, Kernel) or rows.items or rows.sparse:
        return
    some = rows[:: -(-len(rows) // FEW)].astype(np.float64)
    with np.errstate(all="ignore"):
        about = tiles_about(kernel, some, np.float64)
        if about is None or len(some) < 2:
            return
        own = about.diag(some).max()
        hidden = 0 < own < LITTLE * kernel.diag(some).max()
    if hidden:
        text = (
            "rows share all but some 1e-10 of k(x, x), so landmarks may miss what tells them apart"
        )
        warnings.warn(
            f"{text}; centre the columns of X, or take a smaller bandwidth.", stacklevel=4
        )


def values_dtype(kernel: Kernel, points: Table, told: Array, coarse: float) -> np.dtype[Any]:
    """The precision of kernel values at landmarks of which each tells the square of this, the
    diagonal of the factor of their block: float64 where that is less than float32 values tell."""
    if points.items or points.dtype == np.float64:
        return points.dtype
    least = coarse * kernel.diag(points.astype(np.float64))
    return np.dtype(np.float64) if (np.square(told) < least).any() else points.dtype
