"""Checks of what a Gaussian process is given, each a sentence where it is wrong."""
from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from mercer.inputs import Array, Items, Matrix
from mercer.models.gp.posterior import PointProcess


def check_noise(noise: Any, *, zero: bool) -> None:
    """A variance, one a row, or "learn"; zero only where points are interpolated."""
    if isinstance(noise, str) and noise == "learn":
        return
    try:
        v = np.asarray(noise, dtype=np.float64)
    except (TypeError, ValueError):
        v = np.array(-1.0)
    if v.ndim > 1 or not (np.isfinite(v) & ((v >= 0) if zero else (v > 0))).all():
        raise ValueError(f"noise must be a variance {'>=' if zero else '>'} 0, one a row, or 'learn', got {reprlib.repr(noise)}.")


def check_flag(value: Any, name: str) -> None:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}.")


def check_restarts(n: Any) -> int:
    """The number of starts of a search beside its own."""
    return check_count(n, "n_restarts", least=0)


def check_count(n: Any, name: str, *, least: int = 1) -> int:
    """A whole number."""
    if isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= least:
        return int(n)
    raise ValueError(f"{name} must be an integer >= {least}, got {n!r}.")


def check_shares(values: Any, name: str) -> Array:
    """Numbers between 0 and 1."""
    try:
        v = np.atleast_1d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        v = np.array([-1.0])
    if isinstance(values, str) or v.ndim != 1 or not ((v > 0) & (v < 1)).all():
        raise ValueError(f"{name} must be between 0 and 1, got {reprlib.repr(values)}.")
    return v


def check_mean(mean: Any) -> None:
    """A number, "y" or "auto"."""
    if isinstance(mean, str) and mean in ("y", "auto"):
        return
    if not (isinstance(mean, int | float | np.number) and np.isfinite(mean)):
        raise ValueError(f"prior_mean must be a number, 'y' or 'auto', got {mean!r}.")


def _equal(P: Any, X: Any, i: int) -> Array:
    """Which rows (or items) of P are row i of X."""
    if isinstance(P, Items):
        return np.array([v == X.values[i] for v in P.values], bool)
    X = X.toarray() if isinstance(P, np.ndarray) and not isinstance(X, np.ndarray) else X
    gap = P - X[[i]] if isinstance(P, np.ndarray) else (P - X[[i] * P.shape[0]]).toarray()
    return ~np.any(np.asarray(gap), axis=1)


def found_in(X: Matrix, Z: Array, p: PointProcess) -> Array:
    """Which points these are: the last equal one of each."""
    free = np.ones(len(p.Y), bool)
    index = []
    for i in range(len(Z)):
        same = free & _equal(p.X, X, i) & np.isclose(p.Y, Z[i], rtol=1e-12, atol=1e-12).all(1)
        if not same.any():
            raise ValueError(f"row {i} of X was not taken in (with this y), or was forgotten; forget rows that were seen.")
        index.append(int(np.flatnonzero(same)[-1]))
        free[index[-1]] = False
    return np.array(index)
