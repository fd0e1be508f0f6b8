"""Features that memory does not hold, made anew some rows at a time: what a Gram matrix is summed
over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, Table
from mercer.models.sparse.dictionary import Features
from mercer.ops.tiles import cuts

PIECE = 4 << 20  # bytes of features that are read at a time
NOT_FINITE = "the lift gives features that are not finite; scale the columns of X first."


@dataclass(frozen=True, eq=False)
class StreamedFeatures:
    """All features of rows, as an array would be read: F[rows] for a slice, F[:, ids]."""

    features: Features
    rows: Table
    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.features.width

    def __getitem__(self, at: slice | tuple[slice, Array]) -> Array:
        rows, ids = at if isinstance(at, tuple) else (at, np.arange(self.features.width))
        return finite(self.features.columns(self.rows[rows], ids))


def finite(F: Matrix) -> Matrix:
    """Features; ValueError where some are not finite."""
    if not np.isfinite(F.data if sp.issparse(F) else F).all():
        raise ValueError(NOT_FINITE)
    return F


def pieces(F: Matrix | StreamedFeatures) -> list[slice]:
    """Rows of a dense array, few enough that they stay small."""
    return cuts(F.shape[0], max(256, PIECE // (8 * max(1, F.shape[1]))))


def sums(F: Matrix | StreamedFeatures, r: Array) -> Array:
    """F'r, in float64 whatever the precision of F."""
    if not isinstance(F, StreamedFeatures) and (sp.issparse(F) or F.dtype == np.float64):
        return np.asarray(F.T @ r, np.float64)
    total = np.zeros(F.shape[1])
    for rows in pieces(F):
        total += r[rows] @ F[rows].astype(np.float64)
    return total
