"""Tiles of pairwise distances: by matrix product where its digits suffice, else in float64, else by differences."""
from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

# What rounding may do to a squared distance (in units of the bandwidth): an error of e changes exp(-r2/2) by at most e/2.
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-9}

# Squared distances beyond this are equally far, lest profiles such as t^p exp(-t) meet infinity times zero.
FARTHEST = {np.dtype(np.float32): 1e12, np.dtype(np.float64): 1e30}


def augmented(A: Array, norms: Array, *, left: bool) -> Array:
    """Rows [-2 a, |a|^2, 1] or [a, 1, |a|^2]: the product of a left and a right one is the squared distance."""
    n, d = A.shape
    out = np.empty((n, d + 2), A.dtype)
    np.multiply(A, -2 if left else 1, out=out[:, :d])
    out[:, d] = norms if left else 1
    out[:, d + 1] = 1 if left else norms
    return out


def by_product(left: Array, right: Array) -> Array:
    """|x|^2 + |z|^2 - 2 x'z for augmented rows (n, d + 2) and (m, d + 2).

    Rounding may leave a small negative number; its absolute value is as good as zero, and four times faster than max.
    """
    D = left @ right.T
    return np.abs(D, out=D)


def precise_enough(norms_x: Array, norms_z: Array, dtype: np.dtype, tolerance: float) -> bool:
    """Whether cancellation in |x|^2 + |z|^2 - 2 x'z stays below the tolerance in this dtype (norms in float64)."""
    return bool(np.finfo(dtype).eps / 2 * (norms_x.max() + norms_z.max()) <= tolerance)


def reference_sqdist(X: Array, Z: Array, bandwidth: Array) -> Array:
    """sum_j ((x_j - z_j) / b_j)^2, plainly."""
    with np.errstate(over="ignore"):
        return np.square((X[:, None] - Z) / bandwidth).sum(-1)


def reference_absdist(X: Array, Z: Array, bandwidth: Array) -> Array:
    """sum_j |x_j - z_j| / b_j, plainly."""
    with np.errstate(over="ignore"):
        return np.abs((X[:, None] - Z) / bandwidth).sum(-1)


@njit
def _sqdist(X, Z, b, out):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            s = 0.0
            for k in range(X.shape[1]):
                t = (X[i, k] - Z[j, k]) / b[k]
                s += t * t
            out[i, j] = s


@njit
def _absdist(X, Zt, inverse, out):  # type: ignore[no-untyped-def]
    # Columns outside, so that the inner loop over j is contiguous and vectorises without reordering any sum.
    for i in range(X.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0
        for k in range(X.shape[1]):
            x, c = X[i, k], inverse[k]
            for j in range(out.shape[1]):
                out[i, j] += abs(x - Zt[k, j]) * c


@njit
def _sqdist_of(X, Z, rows, cols, b, out):  # type: ignore[no-untyped-def]
    for t in range(rows.shape[0]):
        s = 0.0
        for k in range(X.shape[1]):
            v = (X[rows[t], k] - Z[cols[t], k]) / b[k]
            s += v * v
        out[rows[t], cols[t]] = s


def by_differences(X: Array, Z: Array, bandwidth: Array) -> Array:
    """`reference_sqdist` without its (n, m, d) array: slow, right for any offset and spread."""
    out = np.empty((len(X), len(Z)), X.dtype)
    _sqdist(X, Z, np.ascontiguousarray(bandwidth, np.float64), out)
    return np.minimum(out, FARTHEST[out.dtype], out=out)


def absdist(X: Array, Z: Array, bandwidth: Array) -> Array:
    """`reference_absdist` without its (n, m, d) array."""
    with np.errstate(over="ignore", divide="ignore"):
        inverse = (1 / bandwidth).astype(X.dtype)
    if not np.isfinite(inverse).all():
        return np.minimum(reference_absdist(X, Z, bandwidth), FARTHEST[X.dtype]).astype(X.dtype)
    out = np.empty((len(X), len(Z)), X.dtype)
    _absdist(X, np.ascontiguousarray(Z.T), inverse, out)
    return out


def refine(D: Array, X: Array, Z: Array, bandwidth: Array, below: float) -> Array:
    """Recompute by differences, in place, the few squared distances that are below a threshold."""
    if D.size and D.min() < below:
        rows, cols = np.nonzero(below > D)
        _sqdist_of(X, Z, rows, cols, np.ascontiguousarray(bandwidth, np.float64), D)
    return D


# exp(-r^2/2) of a tile of squared distances, in place and in one pass: half the time of NumPy's three
@njit(fastmath={"contract", "nsz"})
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
