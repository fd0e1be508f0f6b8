"""exp(-r^2/2) of a tile of squared distances, in place and in one pass: half the time of NumPy's three."""
from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

FAST = {"contract", "nsz"}


@njit(fastmath=FAST)
def half_exp(D):  # type: ignore[no-untyped-def]
    """D = exp(-|D|/2) of float32, to its rounding; 2^t = 2^n 2^r, n whole, |r| <= 1/2, by its Taylor series in r log 2."""
    one = np.float32
    for i in range(D.shape[0]):
        for j in range(D.shape[1]):
            t = max(abs(D[i, j]) * one(-0.7213475204444817), one(-126.0))
            n = np.floor(t + one(0.5))
            r = (t - n) * one(0.6931471805599453)
            p = one(1 / 5040)
            p = p * r + one(1 / 720)
            p = p * r + one(1 / 120)
            p = p * r + one(1 / 24)
            p = p * r + one(1 / 6)
            p = p * r + one(0.5)
            p = p * r + one(1.0)
            p = p * r + one(1.0)
            D[i, j] = p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


def reference_half_exp(D: Array) -> Array:
    """The same, plainly."""
    return np.exp(-np.abs(D.astype(np.float64)) / 2).astype(D.dtype)
