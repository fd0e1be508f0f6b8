"""Scores of a ranking, of rows of a class among others: the area under the curve and the average
precision, with the influence of every row."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mercer.inputs import Array

# the value, the influence of every row, and the rows that it rests on; None without rows of both
# sides
Ranked = tuple[float, Array, float] | None
Ranking = Callable[[Array, Array, Array], Ranked]


def area(positive: Array, p: Array, w: Array) -> Ranked:
    """The chance that a row of the class has a higher p than another, with the influences of
    DeLong, DeLong and Clarke-Pearson (1988); a row counts as much as its weight.

    >>> area(np.array([True, False]), np.array([0.9, 0.1]), np.ones(2))[0]
    1.0
    """
    sums = [float(w[side].sum()) for side in (positive, ~positive)]
    if not all(s > 0 for s in sums):
        return None
    share = np.empty(len(p))
    share[positive] = _below(p[positive], p[~positive], w[~positive])
    share[~positive] = 1 - _below(p[~positive], p[positive], w[positive])
    value = min(
        1.0, float(w[positive] @ share[positive]) / float(w[positive] @ np.ones(positive.sum()))
    )
    return value, w * (share - value) / np.where(positive, *sums), _count(positive, w)


def _below(p: Array, other: Array, w: Array) -> Array:
    """The share of the weight of the others that is below each, equal ones counting half."""
    order = np.argsort(other, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(w[order])])
    return (
        sums[np.searchsorted(other[order], p, "left")]
        + sums[np.searchsorted(other[order], p, "right")]
    ) / (2 * sums[-1])


def precision(positive: Array, p: Array, w: Array) -> Ranked:
    """sum_i w_i T_i / N_i / sum_i w_i over the rows i of the class, T_i and N_i the weight of the
    class and of all rows from p_i up; a row's influence is its weight times the derivative by it.

    >>> round(precision(np.array([True, False, True]), np.array([0.9, 0.5, 0.1]), np.ones(3))[0], 4)
    0.8333
    """
    u, total = np.where(positive, w, 0.0), float(w[positive].sum())
    if not 0 < total < w.sum():
        return None
    order = np.argsort(-p, kind="stable")
    first, last = (np.searchsorted(-p[order], -p, side) for side in ("left", "right"))
    T, N = (np.cumsum(v[order])[last - 1] for v in (u, w))  # equal ones are taken together
    T, N = np.where(N > 0, T, 0.0), np.where(N > 0, N, 1.0)
    value = min(1.0, float(u @ (T / N)) / total)
    gain, loss = (
        np.append(np.cumsum(v[order][::-1])[::-1], 0.0)[first] for v in (u / N, u * T / N**2)
    )
    slope = (np.where(positive, T / N - value + gain, 0.0) - loss) / total
    return value, w * slope, _count(positive, w)


def _count(positive: Array, w: Array) -> float:
    """Twice the rows of the side that has fewer: as many as one more or less would move it by."""
    return 2.0 * min(int(np.sum(w[side] > 0)) for side in (positive, ~positive))
