"""k-means on the squared distances of a sample: seeds, swaps of these and Lloyd's steps, which see
points through their distances alone.

Loops call no others and make no arrays, which halves the time that they take to compile.
"""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

FAST = {"nsz", "nnan", "reassoc"}  # not "contract", with which seeds take a quarter longer


@njit(fastmath=FAST)
def squares(P, x, z, X, Z, least, same, out):  # type: ignore[no-untyped-def]
    """out = |x_i - z_j|^2 of products and squared norms; of rows X and Z by differences where it is
    at most a share `least` of both norms. same: 1 where these rows are the same, which are 0 from
    themselves, or 0."""
    for i in range(P.shape[0]):
        p, a, to, close = P[i], x[i], out[i], -same
        for j in range(P.shape[1]):
            v = a + z[j] - 2.0 * p[j]
            to[j] = v
            close += v <= least * (a + z[j])
        to[i if same else 0] *= 1 - same
        for j in range(P.shape[1] if close else 0):
            if a + z[j] - 2.0 * p[j] <= least * (a + z[j]):
                s = 0.0
                for c in range(X.shape[1]):
                    e = X[i, c] - Z[j, c]
                    s += e * e
                to[j] = s


@njit(fastmath=FAST)
def _seeds(D, w, u, chosen, at, next_, first, second, cum, more):  # type: ignore[no-untyped-def]
    """From chosen[0] on: in every round a row drawn in proportion to w d^2, the best of a few
    draws, which is a seed of its own while there are fewer than k, and then stands for the one
    that is missed least, where the sum is less that way."""
    m, k = len(D), len(chosen)
    for r in range(1, len(u)):
        total = 0.0
        for j in range(m):
            total += w[j] * first[j]
            cum[j] = total
        if r >= k and not total > 0:
            return
        best, c, least = r % m, r, np.inf  # which it is where fewer points differ than k
        for t in range(u.shape[1] if total > 0 else 0):
            i, high = 0, m - 1
            while i < high:  # the first row whose sum is above the mass
                mid = (i + high) // 2
                if cum[mid] > u[r, t] * total:
                    high = mid
                else:
                    i = mid + 1
            while i > 0 and not w[i] * first[i] > 0:  # the last of all, by rounding
                i -= 1
            cost, gone = 0.0, r
            if r < k:
                for j in range(m):
                    cost += w[j] * min(D[i, j], first[j])
            else:
                for e in range(k):
                    more[e] = 0.0
                for j in range(m):
                    stays = min(D[i, j], first[j])
                    cost += w[j] * stays
                    more[at[j]] += w[j] * (min(D[i, j], second[j]) - stays)
                gone = 0
                for e in range(k):
                    gone = e if more[e] < more[gone] else gone
                cost += more[gone]
            if cost < least:
                best, c, least = i, gone, cost
        if r >= k and not least < total * (1 - 1e-9):
            continue
        chosen[c] = best
        d = D[best]
        for j in range(m):
            if at[j] == c or next_[j] == c:
                first[j], second[j] = np.inf, np.inf
                for e in range(k):
                    v = D[chosen[e], j]
                    if v < first[j]:
                        next_[j], second[j], at[j], first[j] = at[j], first[j], e, v
                    elif v < second[j]:
                        next_[j], second[j] = e, v
            elif d[j] < first[j]:
                next_[j], second[j], at[j], first[j] = at[j], first[j], c, d[j]
            elif d[j] < second[j]:
                next_[j], second[j] = c, d[j]


@njit(fastmath=FAST)
def _steps(D, w, most, close, new, at, S, W, q, first):  # type: ignore[no-untyped-def]
    """Lloyd's steps from clusters `new` until one brings less than a share `close`: the clusters
    before the last step, and the sum of w d^2 to their means.

    Means are seen by sums S (k, m) of squared distances over the rows of a cluster, which has the
    weight W: |x_j - mean|^2 = S_j / W - sum_i w_i S_i / 2 W^2."""
    m, k, total, before = len(D), len(S), np.inf, np.inf
    for _ in range(most):
        for j in range(m):
            for side in range(2 if new[j] != at[j] else 0):
                c, v = (new[j], w[j]) if side else (at[j], -w[j])
                if c >= 0:
                    for i in range(m):
                        S[c, i] += v * D[j, i]
            at[j], first[j] = new[j], np.inf
        for c in range(k):
            W[c], q[c] = 0.0, 0.0
        for j in range(m):
            W[at[j]] += w[j]
            q[at[j]] += w[j] * S[at[j], j]
        for c in range(k):
            if W[c] > 0:
                scale, less = 1 / W[c], q[c] / (2 * W[c] * W[c])
                for j in range(m):
                    v, f = S[c, j] * scale - less, first[j]
                    new[j] = c if v < f else new[j]
                    first[j] = v if v < f else f
        total = 0.0
        for j in range(m):
            total += w[j] * (first[j] if first[j] > 0 else 0.0)
        if not total < before * (1 - close):
            break
        before = total
    return total


def seeds(D: Array, w: Array, u: Array, k: int) -> tuple[Array, Array]:
    """k rows by squared distances D (m, m) and draws u (rounds, tries), the first of which are for
    seeds, those from k on for swaps; and the nearest of these to each row.

    >>> x = np.array([0.0, 1.0, 10.0, 11.0])
    >>> seeds(np.square(x[:, None] - x), np.ones(4), np.full((2, 1), 0.4), 2)
    (array([1, 2]), array([0, 0, 1, 1]))
    """
    m, chosen = len(D), np.zeros(k, np.int64)
    cum = np.cumsum(w)
    chosen[0] = min(np.searchsorted(cum, u[0, 0] * cum[-1], side="right"), m - 1)
    at, first, second = (
        np.zeros((2, m), np.int64),
        D[chosen[0]].astype(np.float64),
        np.full(m, np.inf),
    )
    if k > 1:
        _seeds(D, w, u, chosen, at[0], at[1], first, second, cum, np.empty(k))
    return chosen, at[0]


def steps(D: Array, w: Array, at: Array, k: int, most: int, close: float) -> tuple[float, Array]:
    """Lloyd's steps on squared distances D (m, m) from clusters `at`, until one brings less than a
    share `close`: the sum of w d^2, and the clusters about whose means it is.

    >>> x = np.array([0.0, 1.0, 10.0, 11.0])
    >>> steps(np.square(x[:, None] - x), np.ones(4), np.array([0, 1, 1, 1]), 2, 9, 0.0)
    (1.0, array([0, 0, 1, 1]))
    """
    m, found = len(D), np.full(len(D), -1)
    S, W = np.zeros((k, m)), np.empty((2, k))
    return float(_steps(D, w, most, close, at.copy(), found, S, W[0], W[1], np.empty(m))), found
