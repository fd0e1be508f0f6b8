"""Loops of k-means among points: the two nearest means of each row with bounds, and sums of what
moves between clusters.

They are given room to work in, as loops that make arrays take longer to compile.
"""

from __future__ import annotations

import math

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

FAST = {"contract", "nsz", "nnan", "reassoc"}
GROUP = 128  # rows that meet all means at a time
UNROLLED = 4  # columns of one pass over a group


# steps
@njit
def screen(labels, upper, lower, shift, others, half, index):  # type: ignore[no-untyped-def]
    """Moves bounds by what means moved, shift (k,), and by the most that others moved, (k,); index
    of the rows that may have another mean now, how many. half: of the distance of each mean to the
    next."""
    count = 0
    for i in range(len(labels)):
        a = labels[i]
        upper[i] += shift[a]
        lower[i] -= others[a]
        if not upper[i] < max(lower[i], half[a]):
            index[count] = i
            count += 1
    return count


@njit(fastmath=FAST)
def settle(P, scale, size, x, slack, wrong, index, start, state):  # type: ignore[no-untyped-def]
    """Nearest means and bounds of the rows index[start:], b of them, from P (k, b): d^2 is between
    scale P + size + x - slack (d^2 + x) and as much + wrong + 2 slack x. state: labels and both
    bounds of all rows, the labels of rows index before, and `room` for b rows."""
    labels, upper, lower, old, at, first, second = state
    for i in range(P.shape[1]):
        first[i], second[i] = np.inf, np.inf
    for c in range(P.shape[0]):
        z = size[c]
        for i in range(P.shape[1]):
            v, f, s = scale * P[c, i] + z, first[i], second[i]
            mid = v if v > f else f
            second[i] = mid if mid < s else s
            at[i] = c if v < f else at[i]
            first[i] = v if v < f else f
    for r in range(P.shape[1]):
        if start + r < len(index):
            i, f, s = index[start + r], first[r] + x[r], second[r] + x[r]
            f += wrong[at[r]]
            f = (f if f > 0 else 0.0) * (1 + slack) + slack * x[r]
            s = s * (1 - slack) - slack * x[r]
            upper[i], lower[i] = math.sqrt(f), math.sqrt(s if s > 0 else 0.0)
            old[start + r] = labels[i]
            labels[i] = at[r]


@njit(fastmath=FAST)
def tell(X, C, labels, upper, lower, index):  # type: ignore[no-untyped-def]
    """Nearest means by differences, of equal ones the first, of rows index whose bounds do not tell
    it."""
    for i in index:
        if not upper[i] < lower[i]:
            least = np.inf
            for c in range(len(C)):
                s = 0.0
                for j in range(X.shape[1]):
                    e = np.float64(X[i, j]) - np.float64(C[c, j])
                    s += e * e
                if s < least:
                    least, labels[i] = s, c


@njit(fastmath=FAST)
def narrow(X, C, T, P, nil, slack, index, state):  # type: ignore[no-untyped-def]
    """`settle` for the rows index of X, which has few columns, by differences: an offset costs no
    digits. T (d, GROUP) and P (k, GROUP) are room for a group; columns of C and rows of T that
    fill up d are zeros, as are all of nil."""
    for start in range(0, len(index), GROUP):
        for r in range(GROUP if len(index) - start > GROUP else len(index) - start):
            i = index[start + r]
            for j in range(X.shape[1]):
                T[j, r] = X[i, j]
        for c in range(len(C)):
            for r in range(GROUP):
                P[c, r] = 0
            for j in range(0, len(T), UNROLLED):
                a, b, e, f = C[c, j], C[c, j + 1], C[c, j + 2], C[c, j + 3]
                for r in range(GROUP):
                    s, t = T[j, r] - a, T[j + 1, r] - b
                    u, v = T[j + 2, r] - e, T[j + 3, r] - f
                    P[c, r] += (s * s + t * t) + (u * u + v * v)
        settle(P, 1.0, nil, nil, slack, nil, index, start, state)


def room(b: int) -> tuple[Array, Array, Array]:
    """For b rows: the nearest mean of each, and squared distances to the two nearest."""
    return np.empty(b, np.int64), np.empty(b), np.empty(b)


# sums
@njit(fastmath=FAST)
def add(X, w, labels, S, W, count):  # type: ignore[no-untyped-def]
    """Weighted sums of the rows of each cluster, their weights, and how many have any."""
    for i in range(len(X)):
        c, v, row = labels[i], w[i], X[i]
        to = S[c]
        for j in range(len(row)):
            to[j] += v * row[j]
        W[c] += v
        count[c] += v > 0


@njit(fastmath=FAST)
def move(X, w, index, labels, old, S, W, count):  # type: ignore[no-untyped-def]
    """The same for the rows index that have other labels than before; how many."""
    moved = 0
    for r in range(len(index)):
        i = index[r]
        a, b, v = old[r], labels[i], w[i]
        if a != b:
            moved += 1
            row, from_, to = X[i], S[a], S[b]
            for j in range(len(row)):
                from_[j] -= v * row[j]
                to[j] += v * row[j]
            W[a] -= v
            W[b] += v
            count[a] -= v > 0
            count[b] += v > 0
    return moved


@njit(fastmath=FAST)
def own(X, C, labels, out):  # type: ignore[no-untyped-def]
    """|x_i - c|^2 to the mean of each row, by differences, in float64."""
    for i in range(len(X)):
        row, c, s = X[i], C[labels[i]], 0.0
        for j in range(len(row)):
            e = row[j] - c[j]
            s += e * e
        out[i] = s
