"""Checks of what a Gaussian process is given, each a sentence where it is wrong."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array, Matrix
from mercer.learners.gp_process import PointProcess


def check_noise(noise: Any, *, zero: bool) -> None:
    """A variance, one a row, or "learn"; zero only where points are interpolated."""
    if isinstance(noise, str) and noise == "learn":
        return
    try:
        v = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError):
        v = np.array(-1.0)
    if v.ndim > 1 or not (np.isfinite(v) & ((v >= 0) if zero else (v > 0))).all():
        raise ValueError(f"noise must be a variance {'>=' if zero else '>'} 0, one a row, or 'learn', got {noise!r}.")


def check_mean(mean: Any) -> None:
    """A number, "y" or "auto"."""
    if isinstance(mean, str) and mean in ("y", "auto"):
        return
    if not (isinstance(mean, int | float | np.number) and np.isfinite(mean)):
        raise ValueError(f"prior_mean must be a number, 'y' or 'auto', got {mean!r}.")


def found_in(X: Matrix, Z: Array, p: PointProcess) -> Array:
    """Which points these are: the last equal one of each."""
    free = np.ones(len(p.Y), bool)
    index = []
    for i in range(len(Z)):
        gap = p.X - X[[i]] if isinstance(p.X, np.ndarray) else (p.X - X[[i] * len(p.Y)]).toarray()
        same = free & ~np.any(gap, axis=1) & np.isclose(p.Y, Z[i], rtol=1e-12, atol=1e-12).all(1)
        if not same.any():
            raise ValueError(f"row {i} of X was not taken in (with this y), or was forgotten; forget rows that were seen.")
        index.append(int(np.flatnonzero(same)[-1]))
        free[index[-1]] = False
    return np.array(index)
