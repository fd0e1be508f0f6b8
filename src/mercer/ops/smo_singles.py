"""Steps of one dual, where there is no bias, over a small block of a kernel matrix, as those of two in `smo`."""
from __future__ import annotations

import numpy as np

from mercer.ops.jit import njit
from mercer.ops.smo import FAST, LANE, gate, settings


@njit(fastmath=FAST)
def _single(G, UP, DOWN, Ki, diagonal, tiny, step, gain, at):  # type: ignore[no-untyped-def]
    """G += step Ki; then the dual whose own step lowers the objective most."""
    for k in range(LANE):
        gain[k], at[k] = -1.0, 0
    for c in range(G.shape[0]):
        for k in range(LANE):
            g = G[c, k] + step * Ki[c, k]
            G[c, k] = g
            u, d = -(g + UP[c, k]), g + DOWN[c, k]
            d = d if d > u else u
            d = d if d > 0.0 else 0.0
            q, most = diagonal[c, k], gain[k]
            v = d * d / (q if q > tiny else tiny)
            at[k] = c if v > most else at[k]
            gain[k] = v if v > most else most
    best = 0
    for k in range(1, LANE):
        best = k if gain[k] > gain[best] else best
    return at[best] * LANE + best


@njit(fastmath=FAST)
def _steepest(G, UP, DOWN):  # type: ignore[no-untyped-def]
    """The dual with the largest slope, whatever it gains."""
    best, most = 0, -1.0
    for c in range(G.shape[0]):
        for k in range(LANE):
            slope = max(-(G[c, k] + UP[c, k]), G[c, k] + DOWN[c, k])
            if slope > most:
                best, most = c * LANE + k, slope
    return best


@njit(fastmath=FAST)
def singles(K, G, b, lo, hi, e, tol, most):  # type: ignore[no-untyped-def]
    """`pairs` without a bias: the sum of b is free, and a step moves one dual, until every slope is at most tol."""
    UP, DOWN, diagonal, tiny = settings(K, G, b, lo, hi, e)
    gain, at = np.empty(LANE), np.empty(LANE, np.int64)
    i, step = 0, 0.0
    for s in range(most):
        i = _single(G, UP, DOWN, K[i], diagonal, tiny, step, gain, at)
        c, r = i // LANE, i % LANE
        if not max(-(G[c, r] + UP[c, r]), G[c, r] + DOWN[c, r]) > tol:  # what gains most is not what is steepest
            i = _steepest(G, UP, DOWN)
            c, r = i // LANE, i % LANE
        rise, fall = -(G[c, r] + UP[c, r]), G[c, r] + DOWN[c, r]
        if not max(rise, fall) > tol:
            return s
        q = max(diagonal[c, r], tiny)
        if rise > fall:
            end = hi[i] if b[i] >= 0 else 0.0
            new = min(b[i] + rise / q, end)
        else:
            end = lo[i] if b[i] <= 0 else 0.0
            new = max(b[i] - fall / q, end)
        step, b[i] = new - b[i], new
        UP[c, r], DOWN[c, r] = gate(b[i], lo[i], hi[i], e)
    _single(G, UP, DOWN, K[i], diagonal, tiny, step, gain, at)  # of the last step
    return most
