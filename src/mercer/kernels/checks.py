"""What numbers a kernel or a map may be given: positive ones, whole ones, one a column."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np


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
