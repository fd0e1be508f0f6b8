"""Features that are another up to a factor and an offset: candidates by one product with a fixed
vector, then compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mercer.inputs import Array, Matrix

ALIKE = 1e-9  # two columns whose products with one vector differ by less are compared
SAME = 1e-13  # what is left of a copy, squared, where products of all rows tell


def marking(w: Array) -> Array:
    """A fixed vector of no pattern, with the weights in it, that sums to zero."""
    v = w * np.cos(np.arange(1.0, len(w) + 1) * np.sqrt(2.0))
    return v - w * v.sum()


def groups(ids: Array, marks: Array) -> Iterator[Array]:
    """Features of nearly the same mark, of which there are two or more.

    >>> [g.tolist() for g in groups(np.arange(5), np.array([3.0, 1.0, 2.0, 3.0, 1.0]))]
    [[1, 4], [0, 3]]
    """
    order = np.argsort(marks, kind="stable")
    apart = np.diff(marks[order]) > ALIKE * max(float(marks.max(initial=0.0)), 1e-300)
    ends = np.r_[0, np.flatnonzero(apart) + 1, len(order)]
    for k in np.flatnonzero(np.diff(ends) > 1).tolist():
        yield np.sort(ids[order[ends[k] : ends[k + 1]]])


def twins(
    group: Array, column: Callable[[int], tuple[Array, Array]], close: Array
) -> dict[int, int]:
    """Those of a group that are an earlier one. A column comes as places (none: all rows) and
    values of norm 1; `close` (p,) is what rounding may leave between them."""
    found: dict[int, int] = {}
    firsts: list[tuple[int, Array, Array]] = []
    for j in group.tolist():
        at, x = column(j)
        for i, places, z in firsts:
            if np.array_equal(at, places) and _alike(x, z, float(close[j])):
                found[j] = i
                break
        else:
            firsts.append((j, at, x))
    return found


def paired_twins(group: Array, G: Array) -> dict[int, int]:
    """The same by the products G (p, p) of centred columns.

    >>> paired_twins(np.arange(3), np.array([[4.0, 0, -2], [0, 1, 0], [-2, 0, 1]]))
    {2: 0}
    """
    found: dict[int, int] = {}
    firsts: list[int] = []
    for j in group.tolist():
        left = 1 - np.square(G[j, firsts]) / (G[j, j] * G.diagonal()[firsts])
        same = np.flatnonzero(left <= SAME)
        if len(same):
            found[j] = firsts[same[0]]
        else:
            firsts.append(j)
    return found


def _alike(x: Array, z: Array, close: float) -> bool:
    sign = 1.0 if float(np.vdot(x, z)) > 0 else -1.0
    return float(np.abs(x - sign * z).max()) <= close * float(np.abs(z).max())


def dense_column(F: Array, means: Array, norms: Array) -> Callable[[int], tuple[Array, Array]]:
    """Columns less their means."""
    every = np.zeros(0, np.int64)
    return lambda j: (every, (F[:, j] - means[j]) / norms[j])


def sparse_column(F: Matrix) -> Callable[[int], tuple[Array, Array]]:
    """What CSC columns hold beside zeros."""

    def column(j: int) -> tuple[Array, Array]:
        at = slice(F.indptr[j], F.indptr[j + 1])
        x = np.asarray(F.data[at], np.float64)
        return F.indices[at], x / np.linalg.norm(x)

    return column
