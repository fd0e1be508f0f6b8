"""What numbers a kernel or a map may be given: positive ones, whole ones, one a column; and room for
its values."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from mercer.inputs import Array


def positive(value: Any, name: str, *, zero: bool = False) -> float:
    """A finite number > 0 (or >= 0), as a float."""
    try:
        number = (
            float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
        )
    except OverflowError:  # of an integer beyond all floats
        number = math.inf
    if not (math.isfinite(number) and (number > 0 or (zero and number == 0))):
        raise ValueError(f"{name} must be a number {'>= 0' if zero else '> 0'}, got {value!r:.60}.")
    return number


def whole(value: Any, name: str, least: int = 0) -> int:
    """An integer >= least; 2.0 counts as 2."""
    if (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and value >= least
        and value % 1 == 0
    ):
        return int(value)
    raise ValueError(f"{name} must be an integer >= {least}, got {value!r}.")


def positives(value: Any, name: str) -> float | tuple[float, ...]:
    """One positive number, or one a column."""
    if isinstance(value, tuple):
        if not value:
            raise ValueError(f"{name} is empty; give one number, or one a column.")
        return tuple(positive(v, name) for v in value)
    return positive(value, name)


def empty(shape: tuple[int, int], dtype: Any) -> Array:
    """Room for a Gram matrix, or a sentence on what to do without one."""
    try:
        return np.empty(shape, dtype)
    except MemoryError as e:
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize / 1e9
        raise MemoryError(
            f"the Gram matrix needs {size:,.0f} GB; use k.operator(X, Z), which never forms it."
        ) from e
