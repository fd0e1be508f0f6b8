"""One sweep of dual coordinate descent over rows of features."""
from __future__ import annotations

import numpy as np

from mercer.ops.jit import njit

FAST = {"contract", "reassoc"}  # what dot products in SIMD need


@njit(fastmath=FAST)
def sweep(F, y, a, c, square, active, order, coef, state):  # type: ignore[no-untyped-def]
    """One coordinate step a row in that order, on views; the sum of a y, and the extreme projected gradients."""
    b, scale, total, above, below = state
    high, low = -np.inf, np.inf
    for i in order:
        dot = F.dtype.type(0)
        for j in range(F.shape[1]):
            dot += F[i, j] * coef[j]
        g = y[i] * (dot + b + scale * total) - 1
        if (a[i] <= 0 and g > above) or (a[i] >= c[i] and g < below):
            active[i] = False
            continue
        if (a[i] <= 0 and g >= 0) or (a[i] >= c[i] and g <= 0):
            continue
        high, low = max(high, g), min(low, g)
        new = min(max(a[i] - g / max(square[i] + scale, 1e-300), 0.0), c[i])
        move = (new - a[i]) * y[i]
        a[i] = new
        total += move
        step = F.dtype.type(move)
        for j in range(F.shape[1]):
            coef[j] += step * F[i, j]
    return total, high, low
