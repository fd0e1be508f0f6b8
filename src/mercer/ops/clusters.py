"""Loops of k-means among points: the two nearest means of each row with bounds, and sums of what
moves between clusters."""

from __future__ import annotations

import math

import numpy as np

from mercer.ops.jit import njit

FAST = {"contract", "nsz", "nnan", "reassoc"}
GROUP = 128  # rows that meet all means at a time
UNROLLED = 4  # columns of one pass over a group


# distances
@njit(fastmath=FAST)
def squares(P, x, z, out):  # type: ignore[no-untyped-def]
    """out = |x_i - z_j|^2 of products and squared norms."""
    for i in range(P.shape[0]):
        p, a, to = P[i], x[i], out[i]
        for j in range(P.shape[1]):
            to[j] = max(a + z[j] - 2.0 * p[j], 0.0)


@njit(fastmath=FAST)
def _distances(T, c, sums, to):  # type: ignore[no-untyped-def]
    """|t - c|^2 of the columns t of T, by differences: an offset costs no digits."""
    d = T.shape[0]
    for i in range(GROUP):
        sums[i] = 0
    for j in range(0, d, UNROLLED):  # rows of zeros fill up both
        a, b, e, f = c[j], c[j + 1], c[j + 2], c[j + 3]
        s, t, u, v = T[j], T[j + 1], T[j + 2], T[j + 3]
        for i in range(GROUP):
            s_, t_, u_, v_ = s[i] - a, t[i] - b, u[i] - e, v[i] - f
            sums[i] += (s_ * s_ + t_ * t_) + (u_ * u_ + v_ * v_)
    for i in range(GROUP):
        to[i] = sums[i]


# steps
@njit(fastmath=FAST)
def _two_nearest(D, at, first, second):  # type: ignore[no-untyped-def]
    """Of squared distances (k, b)."""
    b = D.shape[1]
    for i in range(b):
        at[i], first[i], second[i] = 0, D[0, i], np.inf
    for c in range(1, D.shape[0]):
        row = D[c]
        for i in range(b):
            v, f = row[i], first[i]
            second[i] = min(second[i], max(v, f))
            at[i] = c if v < f else at[i]
            first[i] = min(v, f)


@njit
def screen(labels, upper, lower, shift, half, index):  # type: ignore[no-untyped-def]
    """Moves bounds by what means moved, shift (k,); index of the rows that may have another mean
    now, how many. half: of the distance of each mean to the next."""
    k = len(shift)
    far = np.argmax(shift)
    most, other = shift[far], 0.0
    for c in range(k):
        if c != far:
            other = max(other, shift[c])
    count = 0
    for i in range(len(labels)):
        a = labels[i]
        upper[i] += shift[a]
        lower[i] -= other if a == far else most
        if not upper[i] < max(lower[i], half[a]):
            index[count] = i
            count += 1
    return count


@njit(fastmath=FAST)
def settle(D, sizes, slack, index, start, labels, upper, lower, old, at):  # type: ignore[no-untyped-def]
    """Nearest means and bounds of the rows index[start:], b of them, from squared distances (k, b)
    that may be wrong by slack (d^2 + size); old: the labels before."""
    first, second = np.empty(len(at)), np.empty(len(at))
    _two_nearest(D, at, first, second)
    for r in range(min(len(at), len(index) - start)):
        i, f, s = index[start + r], first[r], second[r]
        upper[i] = math.sqrt(f + slack * (f + sizes[r]))
        lower[i] = math.sqrt(max(s - slack * (s + sizes[r]), 0.0)) if s < np.inf else s
        old[start + r] = labels[i]
        labels[i] = at[r]


@njit(fastmath=FAST)
def narrow(X, C, index, labels, upper, lower, old, slack):  # type: ignore[no-untyped-def]
    """`settle` for the rows index of X, which has few columns."""
    d, n, k = X.shape[1], len(index), len(C)
    T = np.zeros((C.shape[1], GROUP), X.dtype)
    sums, D, sizes = np.empty(GROUP, X.dtype), np.empty((k, GROUP)), np.zeros(GROUP)
    at = np.empty(GROUP, np.int64)
    for start in range(0, n, GROUP):
        for r in range(min(GROUP, n - start)):
            i = index[start + r]
            for j in range(d):
                T[j, r] = X[i, j]
        for c in range(k):
            _distances(T, C[c], sums, D[c])
        settle(D, sizes, slack, index, start, labels, upper, lower, old, at)


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
