"""Which of some points are nearest to each row, and what a swap of one of them would cost: loops over
squared distances, each beside its plain reference."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

SMALL = 1 << 15  # distances for which no loop is compiled


@njit
def _two_nearest(D, at, first, second):  # type: ignore[no-untyped-def]
    for i in range(D.shape[0]):
        row, a, near, next_ = D[i], 0, D[i, 0], np.inf
        for c in range(1, D.shape[1]):
            v = row[c]
            if v < near:
                a, near, next_ = c, v, near
            elif v < next_:
                next_ = v
        at[i], first[i], second[i] = a, near, next_


@njit
def _swap_costs(at, first, second, far, weight, out):  # type: ignore[no-untyped-def]
    for t in range(far.shape[1]):
        total, to = 0.0, out[t]
        for i in range(len(at)):
            stays = weight[i] * min(first[i], far[i, t])
            total += stays
            to[at[i]] += weight[i] * min(second[i], far[i, t]) - stays
        to += total


def two_nearest(D: Array) -> tuple[Array, Array, Array]:
    """Of squared distances D (n, k): the nearest point of each row, the distance to it, and to the
    next.

    >>> [v.tolist() for v in two_nearest(np.array([[4.0, 1.0, 9.0]]))]
    [[1], [1.0], [4.0]]
    """
    if D.size < SMALL:
        return reference_two_nearest(D)
    n = len(D)
    at, first, second = np.empty(n, np.intp), np.empty(n), np.empty(n)
    _two_nearest(np.ascontiguousarray(D), at, first, second)
    return at, first, second


def reference_two_nearest(D: Array) -> tuple[Array, Array, Array]:
    """The same, plainly."""
    at, every = D.argmin(1), np.arange(len(D))
    rest = D.copy()
    rest[every, at] = np.inf
    return at, D[every, at], rest.min(1)


def swap_costs(at: Array, first: Array, second: Array, far: Array, weight: Array, k: int) -> Array:
    """sum_i w_i min d^2 if point c gave way to one at distances far[:, t], for all t and c,
    (t, k)."""
    if far.shape[0] * k < SMALL:
        return reference_swap_costs(at, first, second, far, weight, k)
    out = np.zeros((far.shape[1], k))
    _swap_costs(at, first, second, far, weight, out)
    return out


def reference_swap_costs(
    at: Array, first: Array, second: Array, far: Array, weight: Array, k: int
) -> Array:
    """The same, plainly."""
    stays = weight[:, None] * np.minimum(first[:, None], far)
    more = weight[:, None] * np.minimum(second[:, None], far) - stays
    return np.stack([np.bincount(at, m, minlength=k) for m in more.T]) + stays.sum(0)[:, None]
