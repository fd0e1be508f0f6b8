"""Two points of a Gaussian kernel put together as one between them: the step of the budget that
makes new points."""

from __future__ import annotations

import math

import numpy as np

from mercer.ops.budget import SEEN, SIZE
from mercer.ops.jit import njit

GOLDEN = (math.sqrt(5) - 1) / 2


@njit
def _inner(m, j, l):  # type: ignore[no-untyped-def]
    """The inner product of the weights of two points."""
    total = 0.0
    for c in range(m.A.shape[0]):
        total += m.A[c, j] * m.A[c, l]
    return total


@njit
def _lightest(m):  # type: ignore[no-untyped-def]
    """The point whose removal would change f the least."""
    found, least = 0, np.inf
    for j in range(int(m.tally[SIZE])):
        worth = m.Q[j, j] * _inner(m, j, j)
        if worth < least:
            found, least = j, worth
    return found


@njit
def _kin(m, j, l):  # type: ignore[no-untyped-def]
    """Whether two points speak for the same class."""
    if m.A.shape[0] == 1:
        return m.A[0, j] * m.A[0, l] > 0
    a, b = 0, 0
    for c in range(m.A.shape[0]):
        a = c if m.A[c, j] > m.A[a, j] else a
        b = c if m.A[c, l] > m.A[b, l] else b
    return a == b


@njit
def _kept(h, log_k, jj, ll, jl):  # type: ignore[no-untyped-def]
    """|weights of z|^2 for z = h x_j + (1 - h) x_l, of a Gaussian with k(x_j, x_l) = exp(log_k)."""
    u, v = math.exp((1 - h) ** 2 * log_k), math.exp(h * h * log_k)
    return jj * u * u + ll * v * v + 2 * jl * u * v


@njit
def _best_h(log_k, jj, ll, jl):  # type: ignore[no-untyped-def]
    """The h with the most kept, by golden section; where there are two hills, on that of the
    heavier point."""
    if log_k < -30:
        return 0.0  # nothing to gain between them, and a far point must not pull the other one
    low, high = 0.0, 1.0 if log_k > -2 else 0.5
    a, b = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_a, at_b = _kept(a, log_k, jj, ll, jl), _kept(b, log_k, jj, ll, jl)
    while high - low > 1e-5:
        if at_a > at_b:
            high, b, at_b = b, a, at_a
            a = high - GOLDEN * (high - low)
            at_a = _kept(a, log_k, jj, ll, jl)
        else:
            low, a, at_a = a, b, at_b
            b = low + GOLDEN * (high - low)
            at_b = _kept(b, log_k, jj, ll, jl)
    return (low + high) / 2


@njit
def _partner(m, j, top):  # type: ignore[no-untyped-def]
    """The point that the lightest point j is best merged with, and h."""
    best, best_h, least, jj = -1, 0.0, np.inf, _inner(m, j, j)
    for l in range(int(m.tally[SIZE])):
        if l == j:
            continue
        log_k = max(math.log(m.Q[j, l] / top), -700.0)
        ll, jl = _inner(m, l, l), _inner(m, j, l)
        away = 0.0 if _kin(m, j, l) else 1e300
        h = _best_h(log_k, jj, ll, jl)
        lost = jj + ll + 2 * jl * math.exp(log_k) - _kept(h, log_k, jj, ll, jl) + away
        if lost < least:
            best, best_h, least = l, h, lost
    return best, best_h


@njit
def merged(i, K, slots, m):  # type: ignore[no-untyped-def]
    """Put z = h x_j + (1 - h) x_l in the place of x_l, with the weights that project both on it;
    which point goes."""
    j = _lightest(m)
    top = m.Q[j, j]
    l, h = _partner(m, j, top)
    log_k = max(math.log(m.Q[j, l] / top), -700.0)
    u, v, rest = math.exp((1 - h) ** 2 * log_k), math.exp(h * h * log_k), h * (1 - h) * log_k
    for c in range(m.A.shape[0]):
        m.A[c, l] = u * m.A[c, j] + v * m.A[c, l]
        m.U[c, l] = u * m.U[c, j] + v * m.U[c, l]
    for c in range(m.P.shape[1]):
        m.P[l, c] = h * m.P[j, c] + (1 - h) * m.P[l, c]
    if h > 0:
        for t in range(i + 1, K.shape[0]):
            K[t, l] = top * math.exp(
                h * math.log(K[t, j] / top) + (1 - h) * math.log(K[t, l] / top) - rest
            )
        for t in range(int(m.tally[SIZE])):
            m.Q[t, l] = top * math.exp(
                h * math.log(m.Q[t, j] / top) + (1 - h) * math.log(m.Q[t, l] / top) - rest
            )
            m.Q[l, t] = m.Q[t, l]
    m.Q[l, l] = top
    if m.owner[l] >= 0:
        slots[m.owner[l]] = -1
    m.owner[l], m.born[l] = -1, m.tally[SEEN] - 1
    return j
