"""Distances in the 1-norm: columns of two values by the bits that are set, in whole numbers, the
others by differences, four columns at a time."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

# Squared distances beyond this are equally far, lest profiles such as t^p exp(-t) meet infinity
# times zero.
MAX_SQUARE = {np.dtype(np.float32): 1e12, np.dtype(np.float64): 1e30}

# columns of two values, and pairs, from which on to look for them is worth it
MIN_TWOFOLD, MIN_PAIRS = 16, 4096
MAX_SET = 0.2  # the share of bits that are set up to which they are faster than differences
# Weights of such columns are whole numbers of up to so many bits: all sums of their products are
# whole numbers that the precision tells apart. A weight of a smaller share of the sum than these
# would be left with too few bits.
WEIGHT_BITS = {np.dtype(np.float32): 23, np.dtype(np.float64): 52}
MIN_WEIGHT = 1e-300
MIN_SHARE = {np.dtype(np.float32): 2.0**-8, np.dtype(np.float64): 2.0**-20}


def reference_absdist(X: Array, Z: Array, bandwidth: Array) -> Array:
    """sum_j |x_j - z_j| / b_j, plainly."""
    with np.errstate(over="ignore"):
        return np.abs((X[:, None] - Z) / bandwidth).sum(-1)


def absdist(X: Array, Z: Array, bandwidth: Array) -> Array:
    """`reference_absdist` without its (n, m, d) array.

    >>> absdist(np.array([[0.0, 1.0]]), np.array([[2.0, 4.0]]), np.array([1.0, 3.0]))
    array([[3.]])
    """
    with np.errstate(over="ignore", divide="ignore"):
        inverse = (1 / bandwidth).astype(X.dtype)
    if not np.isfinite(inverse).all():
        return np.minimum(reference_absdist(X, Z, bandwidth), MAX_SQUARE[X.dtype]).astype(X.dtype)
    Zt = np.ascontiguousarray(Z.T)
    columns, out = np.arange(X.shape[1]), None
    if len(columns) >= MIN_TWOFOLD and len(X) * len(Z) >= MIN_PAIRS:
        columns, out = _split(X, Zt, inverse)
    add = out is not None
    out = np.empty((len(X), len(Z)), X.dtype) if out is None else out
    _absdist(X, Zt, inverse, columns, add, out)
    return out


def _split(X: Array, Zt: Array, inverse: Array) -> tuple[Array, Array | None]:
    """The columns that are left to the loop, and the distances in the others: sums of w_k [x_k !=
    z_k], the weights rounded to shares of their sum."""
    low, high = np.empty((2, X.shape[1]), X.dtype)
    two = _twofold(X, Zt, low, high)
    with np.errstate(over="ignore", invalid="ignore"):
        w = (high.astype(np.float64) - low) * inverse
    w[~two] = 0
    total = float(w.sum())
    at = np.flatnonzero(w >= max(MIN_SHARE[X.dtype] * total, MIN_WEIGHT))
    every = np.arange(X.shape[1])
    if len(at) < MIN_TWOFOLD or not total < np.finfo(X.dtype).max / 4:
        return every, None
    share = _shares(Zt, at, high)
    if np.minimum(share, 1 - share).mean() > MAX_SET:
        return every, None
    rare, w = np.where(share > 0.5, low[at], high[at]), w[at]
    steps = 2.0 ** WEIGHT_BITS[X.dtype] - len(w)
    unit = float(w[0] if w.min() == w.max() else w.sum() / steps)
    q = np.rint(w / unit).astype(X.dtype)
    out = np.empty((len(X), Zt.shape[1]), X.dtype)
    _by_bits(X, Zt, at, rare, q, X.dtype.type(unit), out)
    return every[~two | (np.isin(every, at, invert=True) & (low < high))], out


@njit
def _shares(Zt, at, high):  # type: ignore[no-untyped-def]
    """The share of the higher of two values."""
    out = np.empty(len(at))
    for t in range(len(at)):
        z, v, count = Zt[at[t]], high[at[t]], 0
        for j in range(len(z)):
            count += z[j] == v
        out[t] = count / len(z)
    return out


@njit(fastmath={"contract", "nsz"})
def _by_bits(X, Zt, at, rare, q, unit, out):  # type: ignore[no-untyped-def]
    # x + z - 2 x z of bits that say a column has its rarer value: the sums of q are read off, and
    # the products are few. All numbers are whole, so that no sum is rounded.
    z, own = np.empty((len(at), out.shape[1]), out.dtype), np.zeros(out.shape[1], out.dtype)
    for t in range(len(at)):
        source, to, v, c = Zt[at[t]], z[t], rare[t], q[t]
        for j in range(len(own)):
            to[j] = source[j] == v
            own[j] += c * to[j]
    some, two = np.empty(len(at), np.int64), out.dtype.type(2)
    for i in range(X.shape[0]):
        row, count, mine = out[i], 0, out.dtype.type(0)
        for t in range(len(at)):
            if X[i, at[t]] == rare[t]:
                some[count] = t
                count += 1
                mine += q[t]
        for j in range(len(row)):
            row[j] = mine + own[j]
        four = count - count % 4
        for k in range(0, four, 4):
            t0, t1, t2, t3 = some[k], some[k + 1], some[k + 2], some[k + 3]
            c0, c1, c2, c3 = two * q[t0], two * q[t1], two * q[t2], two * q[t3]
            z0, z1, z2, z3 = z[t0], z[t1], z[t2], z[t3]
            for j in range(len(row)):
                row[j] -= (z0[j] * c0 + z1[j] * c1) + (z2[j] * c2 + z3[j] * c3)
        for k in range(four, count):
            c0, z0 = two * q[some[k]], z[some[k]]
            for j in range(len(row)):
                row[j] -= z0[j] * c0
        for j in range(len(row)):
            row[j] *= unit


@njit
def _twofold(X, Zt, low, high):  # type: ignore[no-untyped-def]
    """Which columns have at most two values, and these; a column is left where a third is seen."""
    found = np.ones(X.shape[1], np.bool_)
    alive, left = np.empty(X.shape[1], np.int64), 0
    for k in range(X.shape[1]):
        z = Zt[k]
        a = b = z[0]
        for j in range(len(z)):
            if z[j] != a and z[j] != b:
                if b != a:
                    found[k] = False
                    break
                b = z[j]
        low[k], high[k] = a, b
        if found[k]:
            alive[left] = k
            left += 1
    for i in range(X.shape[0]):
        kept = 0
        for t in range(left):
            k = alive[t]
            v = X[i, k]
            if v != low[k] and v != high[k]:
                if high[k] != low[k]:
                    found[k] = False
                    continue
                high[k] = v
            alive[kept] = k
            kept += 1
        left = kept
    for k in range(X.shape[1]):
        low[k], high[k] = min(low[k], high[k]), max(low[k], high[k])
    return found


@njit(fastmath={"contract", "nsz"})
def _absdist(X, Zt, inverse, columns, add, out):  # type: ignore[no-untyped-def]
    # Columns outside, so that the inner loop over j is contiguous and vectorises; four of them at a
    # time, so that sums are read and written a quarter as often.
    four = len(columns) - len(columns) % 4
    for i in range(X.shape[0]):
        row = out[i]
        if not add:
            row[:] = 0
        for k in range(0, four, 4):
            k0, k1, k2, k3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
            x0, x1, x2, x3 = X[i, k0], X[i, k1], X[i, k2], X[i, k3]
            c0, c1, c2, c3 = inverse[k0], inverse[k1], inverse[k2], inverse[k3]
            z0, z1, z2, z3 = Zt[k0], Zt[k1], Zt[k2], Zt[k3]
            for j in range(len(row)):
                row[j] += (abs(x0 - z0[j]) * c0 + abs(x1 - z1[j]) * c1) + (
                    abs(x2 - z2[j]) * c2 + abs(x3 - z3[j]) * c3
                )
        for k in columns[four:]:
            x0, c0, z0 = X[i, k], inverse[k], Zt[k]
            for j in range(len(row)):
                row[j] += abs(x0 - z0[j]) * c0
