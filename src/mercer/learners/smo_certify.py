"""A gap that holds: that of duals, with what the rounding of kernel values and of their sums may add to it."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.learners.smo_box import EPS, Box, Duals, inside
from mercer.learners.smo_rows import KernelRows
from mercer.ops import smo
from mercer.ops.threads import single_blas

SOME, TIMES = 32, 2.0  # rows whose sums are taken again, and the error of the others, in that of the worst of these


@single_blas()  # of short sums
def certified(rows: KernelRows, box: Box, found: Duals, index: Array | None = None) -> Duals:
    """The gap with its rounding: sums K b of some rows are taken again in float64, and all may be as wrong as the worst of them.

    The rounding of float64 itself is counted in the size of the terms of a sum. Duals clearly at a bound do not feel it.
    """
    b, G, ridge = found.b, found.G, np.zeros(len(found.b)) if box.ridge is None else box.ridge
    support = np.flatnonzero(b)
    if G is None or not len(support):
        return replace(found, G=None)
    at = np.arange(rows.n) if index is None else index
    root = np.sqrt(np.abs(rows.scale[at]))
    some = _some(inside(b, box.lo, box.hi))
    exact = rows.wide.strip(at[some], at[support]) @ b[support] + ridge[some] * b[some] - box.t[some]
    measured = float(np.max(np.abs(G[some] - exact) / np.maximum(root[some], 1e-300)))
    error = root * (TIMES * measured + EPS * float(np.abs(b) @ root))
    gap = float(smo.gap_within(G, b, box.lo, box.hi, box.e, ridge, -found.intercept, error))
    return replace(found, gap=max(gap, found.gap), rounding=max(gap - found.gap, 0.0), G=None)


def _some(free: Array) -> Any:
    """Some of those inside their bounds, which feel rounding most; of all where there are none."""
    of = np.flatnonzero(free) if free.any() else np.arange(len(free))
    return of[np.unique(np.linspace(0, len(of) - 1, min(len(of), SOME)).astype(np.intp))]
