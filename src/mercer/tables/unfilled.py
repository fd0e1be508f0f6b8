"""Numbers that stand for missing values, such as -999: all nines, and far from everything else in their column."""
from __future__ import annotations

import numpy as np

from mercer.inputs import Array

NINES = tuple(float("9" * k) for k in range(2, 10))
LEAST = 10  # other values, without which nothing is far
TIMES = 3  # a positive one must come so often: a value may happen to be 999


def gone_marks(values: Array, low: float, high: float) -> tuple[float, ...]:
    """The marks in a sample of a column that runs from `low` to `high`: farther from the rest than the rest spans.

    >>> gone_marks(np.array([*range(20), -999.0]), -999.0, 19.0), gone_marks(np.array([*range(90), 99.0]), 0.0, 99.0)
    ((-999.0,), ())
    """
    ends = {float(v) for v in (low, high, *(values.min(initial=0), values.max(initial=0))) if abs(v) in NINES}
    found: list[float] = []
    for mark in sorted(ends | {-v for v in NINES if np.any(values == -v)}, key=abs, reverse=True):
        rest = values[~np.isin(values, [*found, mark])]
        often = mark < 0 <= rest.min(initial=0) or int(np.sum(values == mark)) >= TIMES
        if often and len(rest) >= LEAST and _apart(mark, rest):
            found.append(mark)
    return tuple(sorted(found))


def _apart(mark: float, rest: Array) -> bool:
    low, high = float(rest.min()), float(rest.max())
    gap = low - mark if mark < low else mark - high
    return gap > max(high - low, abs(mark) / 2)
