"""Chi-squared distances and harmonic means of rows of numbers >= 0, and the slopes of both by the
left row."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

FEW_OUTPUTS = 3  # up to so many go one by one; more share the slopes of a column, and a product


def reference_chisq(X: Array, Z: Array) -> Array:
    """sum_k (x_k - z_k)^2 / (x_k + z_k), 0 where both are 0, plainly."""
    D, S = X[:, None] - Z, X[:, None] + Z
    return np.divide(D * D, S, out=np.zeros_like(S), where=S > 0).sum(-1)


def reference_harmonic(X: Array, Z: Array) -> Array:
    """sum_k 2 x_k z_k / (x_k + z_k), 0 where both are 0, plainly."""
    P, S = 2 * X[:, None] * Z, X[:, None] + Z
    return np.divide(P, S, out=np.zeros_like(S), where=S > 0).sum(-1)


def reference_slopes(T: Array, A: Array, X: Array, Z: Array, *, distance: bool) -> Array:
    """sum_j T_ij A_jt of the slopes by x_ik, (n, t, d), plainly: 2 (z / (x + z))^2 of means, (x -
    z) (x + 3 z) / (x + z)^2 of distances, 0 and 1 where both are 0."""
    D, S = X[:, None] - Z, X[:, None] + Z
    safe = np.where(S > 0, S, 1)
    of_mean = 2 * (Z / safe) ** 2
    slope = np.where(S > 0, D * (S + 2 * Z) / safe**2, 1) if distance else of_mean
    return np.einsum("ij,jt,ijk->itk", T, A, slope)


@njit(fastmath={"contract", "nsz"})
def _chisq(X, Zt, out):  # type: ignore[no-untyped-def]
    # by halves, lest x + z be beyond all numbers; typed, lest the loop be widened
    zero, half = out.dtype.type(0), out.dtype.type(0.5)
    for i in range(X.shape[0]):
        row = out[i]
        row[:] = 0
        for k in range(X.shape[1]):
            x, z = X[i, k], Zt[k]
            for j in range(len(row)):
                mean, d = half * x + half * z[j], x - z[j]
                row[j] += d * (half * d / mean) if mean > zero else zero


@njit(fastmath={"contract", "nsz"})
def _harmonic(X, Zt, out):  # type: ignore[no-untyped-def]
    # low (high / mean): equal numbers give themselves, and nothing is beyond all numbers before it
    # must be
    zero, half = out.dtype.type(0), out.dtype.type(0.5)
    for i in range(X.shape[0]):
        row = out[i]
        row[:] = 0
        for k in range(X.shape[1]):
            x, z = X[i, k], Zt[k]
            if x == zero:
                continue
            for j in range(len(row)):
                low, high = min(x, z[j]), max(x, z[j])
                row[j] += low * (high / (low + half * (high - low))) if low > zero else zero


@njit(fastmath={"contract", "nsz"})
def _column_slopes(T, x, z, distance, out):  # type: ignore[no-untyped-def]
    zero, one, two = out.dtype.type(0), out.dtype.type(1), out.dtype.type(2)
    for i in range(T.shape[0]):
        for j in range(T.shape[1]):
            s = x[i] + z[j]
            if s > zero:
                u = z[j] / s
                slope = (x[i] - z[j]) / s * (one + two * u) if distance else two * u * u
            else:
                slope = one if distance else zero
            out[i, j] = T[i, j] * slope


@njit(fastmath={"contract", "nsz", "reassoc"})
def _row_slopes(W, X, Zt, distance, out):  # type: ignore[no-untyped-def]
    zero, one, two = out.dtype.type(0), out.dtype.type(1), out.dtype.type(2)
    for i in range(W.shape[0]):
        w = W[i]
        for k in range(X.shape[1]):
            x, z, total = X[i, k], Zt[k], zero
            for j in range(W.shape[1]):
                s = x + z[j]
                if s > zero:
                    u = z[j] / s
                    total += w[j] * ((x - z[j]) / s * (one + two * u) if distance else two * u * u)
                elif distance:
                    total += w[j]
            out[i, k] = total


def chisq(X: Array, Z: Array) -> Array:
    """`reference_chisq` without its (n, m, d) array.

    >>> chisq(np.array([[0.0, 1.0]]), np.array([[0.0, 3.0]]))
    array([[1.]])
    """
    out = np.empty((len(X), len(Z)), X.dtype)
    _chisq(X, np.ascontiguousarray(Z.T), out)
    return out


def harmonic(X: Array, Z: Array) -> Array:
    """`reference_harmonic` without its (n, m, d) array.

    >>> harmonic(np.array([[0.0, 1.0]]), np.array([[0.0, 3.0]]))
    array([[1.5]])
    """
    out = np.empty((len(X), len(Z)), X.dtype)
    _harmonic(X, np.ascontiguousarray(Z.T), out)
    return out


def chisquare_slopes(T: Array, A: Array, X: Array, Z: Array, *, distance: bool) -> Array:
    """`reference_slopes` without its (n, m, d) array.

    >>> one = np.ones((1, 1))
    >>> chisquare_slopes(one, one, one, 3 * one, distance=False)
    array([[[1.125]]])
    """
    out = np.empty((len(X), A.shape[1], X.shape[1]), np.result_type(T, A))
    X, Z = (np.asarray(R, T.dtype) for R in (X, Z))
    Zt = np.ascontiguousarray(Z.T)
    if A.shape[1] <= FEW_OUTPUTS:
        sums = np.empty(X.shape, out.dtype)
        for t, a in enumerate(A.T):
            _row_slopes(np.multiply(T, a, dtype=out.dtype, order="C"), X, Zt, distance, sums)
            out[:, t] = sums
        return out
    T, Xt = np.ascontiguousarray(T), np.ascontiguousarray(X.T)
    tile = np.empty(T.shape, T.dtype)
    for k in range(X.shape[1]):
        _column_slopes(T, Xt[k], Zt[k], distance, tile)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            out[:, :, k] = tile @ A
    return out
