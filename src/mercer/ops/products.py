"""Tiles of polynomial products over the columns: prod_j (1 + x_j z_j) and elementary symmetric polynomials of x_j z_j."""
from __future__ import annotations

from itertools import combinations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit


def reference_prod1p(X: Array, Z: Array) -> Array:
    """prod_j (1 + x_j z_j), plainly."""
    return np.prod(1 + X[:, None] * Z, axis=-1, dtype=X.dtype)


def reference_elementary(X: Array, Z: Array, order: int) -> Array:
    """sum over j1 < ... < jk of the product of x_j z_j, plainly."""
    P = X[:, None] * Z
    return sum((P[..., list(c)].prod(-1) for c in combinations(range(X.shape[1]), order)), np.zeros(P.shape[:2], X.dtype))


@njit
def _prod1p(X, Zt, out):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 1
        for k in range(X.shape[1]):
            x = X[i, k]
            for j in range(out.shape[1]):
                out[i, j] *= 1 + x * Zt[k, j]


@njit
def _elementary(X, Zt, order, out):  # type: ignore[no-untyped-def]
    E = np.empty((order + 1, Zt.shape[1]), X.dtype)  # E[t] holds e_t of the columns so far
    for i in range(X.shape[0]):
        E[:] = 0
        E[0] = 1
        for k in range(X.shape[1]):
            x = X[i, k]
            for t in range(min(order, k + 1), 0, -1):
                for j in range(Zt.shape[1]):
                    E[t, j] += x * Zt[k, j] * E[t - 1, j]
        out[i] = E[order]


def prod1p(X: Array, Z: Array) -> Array:
    """prod_j (1 + x_j z_j): the inner product of all 2^d products of subsets, in O(d)."""
    out = np.empty((len(X), len(Z)), X.dtype)
    _prod1p(X, np.ascontiguousarray(Z.T), out)
    return out


def elementary(X: Array, Z: Array, order: int) -> Array:
    """e_order(x_1 z_1, ..., x_d z_d) in O(d order)."""
    out = np.empty((len(X), len(Z)), X.dtype)
    _elementary(X, np.ascontiguousarray(Z.T), order, out)
    return out
