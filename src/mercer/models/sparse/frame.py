"""Columns to [-1, 1] before a lift multiplies them: a division, and an offset only for columns far
from zero, so that products stay products in the user's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table
from mercer.invariants import Floats, check
from mercer.store import register

FAR = 8.0  # half-widths of a column's values from zero to their middle, beyond which it is shifted


@register("sparse.UnitFrame")
@dataclass(frozen=True, eq=False)
class UnitFrame:
    """(x - shift) / scale of every column: shift is 0 for columns that are not far from zero.

    >>> X = Table(np.array([[1.0, 0.0, 2001.0], [-4.0, 1.0, 2005.0]]))
    >>> frame = UnitFrame.of(X)
    >>> frame.shift, frame.scale, frame(X).data.tolist()
    (array([   0.,    0., 2003.]), array([4., 1., 2.]), [[0.25, 0.0, -1.0], [-1.0, 1.0, 1.0]])
    """

    shift: Array
    scale: Array

    must = dict(shift=Floats("d"), scale=Floats("d"))

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        return None if (self.scale > 0).all() else "has a scale that is not > 0"

    @classmethod
    def of(cls, rows: Table) -> UnitFrame:
        """Of these rows, whose largest magnitude becomes 1; sparse rows are never shifted."""
        X = rows.data
        if sp.issparse(X):
            top = np.asarray(abs(X).max(axis=0).todense(), np.float64).ravel()
            return cls(np.zeros(len(top)), np.where(top > 0, top, 1.0))
        low, high = X.min(0).astype(np.float64), X.max(0).astype(np.float64)
        half = high / 2 - low / 2
        middle = low + half
        shift = np.where((np.abs(middle) > FAR * half) & (half > 0), middle, 0.0)
        top = np.maximum(np.abs(low - shift), np.abs(high - shift))
        return cls(shift, np.where(top > 0, top, 1.0))

    def __call__(self, rows: Table) -> Table:
        """The rows in these units, in float64: float32 would lose what lies beyond an offset."""
        if rows.sparse:
            return Table(
                sp.csr_array(rows.data.astype(np.float64) @ sp.diags_array(1 / self.scale)),
                rows.columns,
            )
        return Table((rows.data.astype(np.float64) - self.shift) / self.scale, rows.columns)
