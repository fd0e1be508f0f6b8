"""Weighted sums over pairs of slopes by the left row: of absolute differences, of near pairs, and
of products over columns."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.absolute import MAX_SQUARE
from mercer.ops.distances import reference_elementary, reference_prod1p
from mercer.ops.jit import njit

FEW_OUTPUTS = 3  # up to so many go one by one; more share the signs of a tile, and a matrix product


def reference_signs(T: Array, A: Array, X: Array, Z: Array) -> Array:
    """sum_j T_ij A_jt sign(x_ik - z_jk), (n, t, d), plainly."""
    return np.einsum("ij,jt,ijk->itk", T, A, np.sign(X[:, None] - Z))


@njit(fastmath={"contract", "nsz", "reassoc"})
def _signs(W, X, Zt, out):  # type: ignore[no-untyped-def]
    zero = out.dtype.type(0)  # typed, lest the loop be widened
    for i in range(W.shape[0]):
        w = W[i]
        for k in range(X.shape[1]):
            x, z, above, below = X[i, k], Zt[k], zero, zero
            for j in range(W.shape[1]):
                above += w[j] if x > z[j] else zero
                below += w[j] if x < z[j] else zero
            out[i, k] = above - below


@njit
def _signed(T, x, z, out):  # type: ignore[no-untyped-def]
    zero = out.dtype.type(0)
    for i in range(T.shape[0]):
        for j in range(T.shape[1]):
            out[i, j] = T[i, j] if x[i] > z[j] else (-T[i, j] if x[i] < z[j] else zero)


def signs(T: Array, A: Array, X: Array, Z: Array) -> Array:
    """`reference_signs` without its (n, m, d) array."""
    out = np.empty((len(X), A.shape[1], X.shape[1]), np.result_type(T, A))
    Zt = np.ascontiguousarray(Z.T)
    if A.shape[1] <= FEW_OUTPUTS:
        sums = np.empty(X.shape, out.dtype)
        for t, a in enumerate(A.T):
            _signs(np.multiply(T, a, dtype=out.dtype, order="C"), X, Zt, sums)
            out[:, t] = sums
        return out
    T = np.ascontiguousarray(T)
    tile, Xt = np.empty(T.shape, T.dtype), np.ascontiguousarray(X.T)
    for k in range(X.shape[1]):
        _signed(T, Xt[k], Zt[k], tile)
        out[:, :, k] = product(tile, A)
    return out


def product(A: Array, B: Array) -> Array:
    """A @ B; BLAS may leave flags of lanes that hold no entry."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.asarray(A @ B)


def reference_differences(
    T: Array, A: Array, X: Array, Z: Array, scale: Array, least: float
) -> Array:
    """sum_j T_ij A_jt u_ijk / |u_ij| of u = (x - z) scale, (n, t, d), plainly: 0 where u = 0; norms
    are at least `least`, and 1 where that is infinite."""
    U = (X[:, None] - Z) * scale
    r = np.sqrt(np.square(U).sum(-1))
    V = T / (np.maximum(np.where(r > 0, r, 1), least) if np.isfinite(least) else 1.0)
    return np.einsum("ij,jt,ijk->itk", V, A, U)


@njit
def _differences(T, pairs, A, X, Z, scale, limits, out):  # type: ignore[no-untyped-def]
    u, least, most = np.empty(X.shape[1]), limits[0], limits[1]
    for p in range(pairs.shape[1]):
        i, j, s = pairs[0, p], pairs[1, p], 0.0
        for k in range(X.shape[1]):
            u[k] = (X[i, k] - Z[j, k]) * scale[k]
            s += u[k] * u[k]
        if s == 0 or not s < most:
            continue
        r = max(np.sqrt(s), least) if least < np.inf else 1.0
        for t in range(A.shape[1]):
            c = T[i, j] * A[j, t] / r
            for k in range(X.shape[1]):
                out[i, t, k] += c * u[k]


def add_differences(
    T: Array, near: Array, A: Array, sides: tuple[Array, Array, Array], least: float, out: Array
) -> None:
    """out += the sums of `reference_differences` over the pairs that are `near`, (n, m); `sides`
    are X, Z and scale, in float64. Those beyond `MAX_SQUARE` are equally far, and add nothing."""
    pairs = np.array(np.nonzero(near))
    if pairs.size:
        limits = np.array([least, MAX_SQUARE[T.dtype]])
        T, A = np.ascontiguousarray(T), np.ascontiguousarray(A)
        _differences(T, pairs, A, *sides, limits, out)


def _others(d: int, k: int) -> Array:
    return np.flatnonzero(np.arange(d) != k)


def reference_prod1p_slopes(T: Array, A: Array, X: Array, Z: Array) -> Array:
    """sum_j T_ij A_jt z_jk prod over other columns of (1 + x z), plainly."""
    d = X.shape[1]
    P = [reference_prod1p(X[:, _others(d, k)], Z[:, _others(d, k)]) * Z[:, k] for k in range(d)]
    return np.einsum("ij,jt,kij->itk", T, A, P)


def reference_elementary_slopes(T: Array, A: Array, X: Array, Z: Array, order: int) -> Array:
    """sum_j T_ij A_jt z_jk e_(order - 1) of the other columns' x z, plainly."""
    d = X.shape[1]
    P = [
        reference_elementary(X[:, _others(d, k)], Z[:, _others(d, k)], order - 1) * Z[:, k]
        for k in range(d)
    ]
    return np.einsum("ij,jt,kij->itk", T, A, P)


@njit
def _prod1p_slopes(T, A, X, Z, out):  # type: ignore[no-untyped-def]
    d = X.shape[1]
    after, slope = np.empty(d + 1), np.empty(d)
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            after[d] = 1
            for k in range(d - 1, -1, -1):
                after[k] = after[k + 1] * (1 + X[i, k] * Z[j, k])
            before = T[i, j] * 1.0
            for k in range(d):
                slope[k] = before * after[k + 1] * Z[j, k]
                before *= 1 + X[i, k] * Z[j, k]
            for t in range(A.shape[1]):
                for k in range(d):
                    out[i, t, k] += A[j, t] * slope[k]


@njit
def _elementary_slopes(T, A, X, Z, order, out):  # type: ignore[no-untyped-def]
    # E[k, t] holds e_t of the first k columns; B[t] the slope of the result by e_t of those so far
    d = X.shape[1]
    E, B, slope = np.zeros((d + 1, order + 1)), np.empty(order + 1), np.empty(d)
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            E[0, 0] = 1
            for k in range(d):
                u = X[i, k] * Z[j, k]
                E[k + 1, 0] = 1
                for t in range(1, order + 1):
                    E[k + 1, t] = E[k, t] + u * E[k, t - 1]
            B[:] = 0
            B[order] = T[i, j]
            for k in range(d - 1, -1, -1):
                u, s = X[i, k] * Z[j, k], 0.0
                for t in range(1, order + 1):
                    s += B[t] * E[k, t - 1]
                    B[t - 1] += u * B[t]
                slope[k] = s * Z[j, k]
            for t in range(A.shape[1]):
                for k in range(d):
                    out[i, t, k] += A[j, t] * slope[k]


def prod1p_slopes(T: Array, A: Array, X: Array, Z: Array) -> Array:
    """`reference_prod1p_slopes` in O(d) a pair; no factor is divided by, as it may be 0."""
    out = np.zeros((len(X), A.shape[1], X.shape[1]))
    _prod1p_slopes(np.ascontiguousarray(T), np.ascontiguousarray(A), X, Z, out)
    return out


def elementary_slopes(T: Array, A: Array, X: Array, Z: Array, order: int) -> Array:
    """`reference_elementary_slopes` in O(d order) a pair, by the recurrence run backwards."""
    out = np.zeros((len(X), A.shape[1], X.shape[1]))
    _elementary_slopes(np.ascontiguousarray(T), np.ascontiguousarray(A), X, Z, order, out)
    return out
