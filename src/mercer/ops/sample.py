"""k-means on the squared distances of a sample: seeds, swaps of these and Lloyd's steps, which see
points through their distances alone."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

FAST = {"contract", "nsz", "nnan", "reassoc"}


@njit(fastmath=FAST)
def _cost(d, first, w):  # type: ignore[no-untyped-def]
    s = 0.0
    for j in range(len(d)):
        s += w[j] * min(d[j], first[j])
    return s


@njit(fastmath=FAST)
def _insert(d, c, at, first, next_, second):  # type: ignore[no-untyped-def]
    """A mean c at squared distances d among the two nearest."""
    for j in range(len(d)):
        v, f, s = d[j], first[j], second[j]
        near, mid = v < f, v < s
        second[j] = f if near else (v if mid else s)
        next_[j] = at[j] if near else (c if mid else next_[j])
        first[j] = v if near else f
        at[j] = c if near else at[j]


@njit
def _total(w, first, cum):  # type: ignore[no-untyped-def]
    s = 0.0
    for j in range(len(w)):
        s += w[j] * first[j]
        cum[j] = s
    return s


@njit
def _drawn(cum, mass):  # type: ignore[no-untyped-def]
    """The first row whose sum is above the mass."""
    low, high = 0, len(cum) - 1
    while low < high:
        mid = (low + high) // 2
        if cum[mid] > mass:
            high = mid
        else:
            low = mid + 1
    return low


@njit
def _seed(D, w, u, chosen, at, first, next_, second, cum):  # type: ignore[no-untyped-def]
    """k rows, each drawn in proportion to w d^2, the best of a few draws."""
    m, (k, tries) = len(D), (len(chosen), u.shape[1])
    for j in range(m):
        at[j], first[j], next_[j], second[j] = 0, 1.0, 0, np.inf
    _total(w, first, cum)
    chosen[0] = _drawn(cum, u[0, 0] * cum[-1])
    for j in range(m):
        first[j] = D[chosen[0], j]
    for c in range(1, k):
        total, best, least = _total(w, first, cum), c % m, np.inf
        for t in range(tries if total > 0 else 0):  # else fewer points than clusters
            i = _drawn(cum, u[c, t] * total)
            cost = _cost(D[i], first, w)
            if cost < least:
                best, least = i, cost
        chosen[c] = best
        _insert(D[best], c, at, first, next_, second)


@njit
def _swap_cost(far, w, at, first, second, out):  # type: ignore[no-untyped-def]
    """The mean to give way to a point at distances far, and the sum of w d^2 then."""
    total = 0.0
    for c in range(len(out)):
        out[c] = 0.0
    for j in range(len(far)):
        stays = min(first[j], far[j])
        total += w[j] * stays
        out[at[j]] += w[j] * (min(second[j], far[j]) - stays)
    best = 0
    for c in range(1, len(out)):
        if out[c] < out[best]:
            best = c
    return best, total + out[best]


@njit
def _swap(D, c, chosen, at, first, next_, second):  # type: ignore[no-untyped-def]
    """Mean c is another row now: the two nearest of all rows."""
    k, d = len(chosen), D[chosen[c]]
    for j in range(len(D)):
        if at[j] == c or next_[j] == c:
            at[j], first[j], next_[j], second[j] = 0, np.inf, 0, np.inf
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


@njit
def _swaps(D, w, u, chosen, at, first, next_, second, cum):  # type: ignore[no-untyped-def]
    out = np.empty(len(chosen))
    for r in range(len(u)):
        total = _total(w, first, cum)
        if not total > 0:
            return
        best, gone, least = 0, 0, np.inf
        for t in range(u.shape[1]):
            i = _drawn(cum, u[r, t] * total)
            c, cost = _swap_cost(D[i], w, at, first, second, out)
            if cost < least:
                best, gone, least = i, c, cost
        if least < total * (1 - 1e-9):
            chosen[gone] = best
            _swap(D, gone, chosen, at, first, next_, second)


@njit(fastmath=FAST)
def _shift(row, v, to):  # type: ignore[no-untyped-def]
    for j in range(len(row)):
        to[j] += v * row[j]


@njit(fastmath=FAST)
def _nearer(S, c, scale, q, new, first):  # type: ignore[no-untyped-def]
    for j in range(len(S)):
        v, f = S[j] * scale - q, first[j]
        new[j] = c if v < f else new[j]
        first[j] = min(v, f)


@njit
def _nearest(S, w, at, W, q, new, first):  # type: ignore[no-untyped-def]
    """Of means of clusters, from the sums S (k, m) of squared distances over their rows:
    |x - mean|^2 = S / W - sum_i w_i S_i / 2 W^2; the sum of w d^2."""
    for c in range(len(W)):
        W[c], q[c] = 0.0, 0.0
    for j in range(len(at)):
        W[at[j]] += w[j]
        q[at[j]] += w[j] * S[at[j], j]
        first[j] = np.inf
    for c in range(len(W)):
        if W[c] > 0:
            _nearer(S[c], c, 1 / W[c], q[c] / (2 * W[c] * W[c]), new, first)
    total = 0.0
    for j in range(len(at)):
        total += w[j] * max(first[j], 0.0)
    return total


@njit
def _steps(D, w, at, first, k, most, close):  # type: ignore[no-untyped-def]
    """Lloyd's steps until one brings less than a share `close`."""
    m = len(D)
    S, W, q, new, before = np.zeros((k, m)), np.empty(k), np.empty(k), np.zeros(m, np.int64), np.inf
    for j in range(m):
        _shift(D[j], w[j], S[at[j]])
    total = np.inf
    for _ in range(most):
        total = _nearest(S, w, at, W, q, new, first)
        if not total < before * (1 - close):
            break
        before = total
        for j in range(m):
            if new[j] != at[j]:
                _shift(D[j], -w[j], S[at[j]])
                _shift(D[j], w[j], S[new[j]])
                at[j] = new[j]
    return total


def start(
    D: Array, w: Array, u: Array, k: int, most: int, close: float, at: Array, chosen: Array
) -> float:
    """Seeds, swaps of these and steps on squared distances D (m, m): clusters of the rows, the
    rows that were seeds, and the sum of w d^2. u: the first k rows of draws are for seeds, the
    others for swaps."""
    m = len(D)
    first, second, next_, cum = np.empty(m), np.empty(m), np.empty(m, np.int64), np.empty(m)
    _seed(D, w, u[:k], chosen, at, first, next_, second, cum)
    if k > 1:
        _swaps(D, w, u[k:], chosen, at, first, next_, second, cum)
    return float(_steps(D, w, at, first, k, most, close))
