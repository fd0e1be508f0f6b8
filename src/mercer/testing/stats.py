"""The contract of a statistic."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any


def check_statistic(
    of: Callable[[Any], Any], zero: Any, rows: Any, same: Callable[[Any, Any], None], *, subtracts: bool = False
) -> None:
    """Assert the laws of merging: parts add up to the whole, and zero adds nothing.

    In any grouping and order.

    Parameters
    ----------
    of : callable
        Makes the statistic of some rows.
    zero : statistic
        That of no rows.
    rows : array-like of shape (n, d)
        The rows, which are cut into parts.
    same : callable
        `same(a, b)` asserts that two statistics are equal (to rounding).
    subtracts : bool, default=False
        Whether whole - part is the rest as well.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.stats import Sample
    >>> def same(a, b): assert np.array_equal(a.rows, b.rows)
    >>> rows = np.arange(40.0).reshape(-1, 2)
    >>> check_statistic(lambda r: Sample.of(r, 5), Sample.of(rows[:0], 5), rows, same)
    """
    n = rows.shape[0]
    a, b, c = (of(rows[s]) for s in (slice(0, n // 3), slice(n // 3, n // 2), slice(n // 2, n)))
    whole = of(rows)
    same(a + b + c, whole)
    same(a + (b + c), whole)
    same(c + a + b, whole)
    same(whole + zero, whole)
    same(zero + whole, whole)
    if subtracts:
        same(whole - b, a + c)
