"""Rows added to a Cholesky factor and taken out of it, in O(n^2) each."""
from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from mercer.inputs import Array
from mercer.models.gp.likelihood import root
from mercer.ops.jit import njit


def appended(L: Array, K: Array, corner: Array) -> Array:
    """The factor of [[A, K'], [K, corner]] from that of A; K (m, n).

    >>> A = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> bool(np.allclose(np.tril(appended(np.array([[2.0]]), A[1:, :1], A[1:, 1:])), np.linalg.cholesky(A)))
    True
    """
    n, m = len(L), len(K)
    out = np.zeros((n + m, n + m), order="F")
    out[:n, :n] = L
    V = solve_triangular(L, K.T, lower=True, check_finite=False)
    left = corner - V.T @ V
    size, least = np.abs(corner.diagonal()), np.finfo(float).eps * (n + m)
    left.flat[:: m + 1] = np.maximum(left.diagonal(), least * size)  # a point that the others tell already
    out[n:, :n], out[n:, n:] = V.T, root(left, float(size.max(initial=0)), least)
    return out


def removed(L: Array, index: Array) -> Array:
    """The factor of A without these rows and columns: what a row held is put back into those after it.

    >>> A = np.array([[4.0, 2.0, 1.0], [2.0, 5.0, 3.0], [1.0, 3.0, 6.0]])
    >>> keep = np.ix_([0, 2], [0, 2])
    >>> bool(np.allclose(np.tril(removed(np.linalg.cholesky(A), np.array([1]))), np.linalg.cholesky(A[keep])))
    True
    """
    R = np.array(L.T, order="C")  # a copy, the upper triangle by rows: the loop runs along memory
    for i in sorted(np.asarray(index).tolist(), reverse=True):
        put_back(R[i + 1 :, i + 1 :], R[i, i + 1 :].copy())
        R = np.delete(np.delete(R, i, 0), i, 1)
    return np.asarray(R.T)


def reference_put_back(R: Array, v: Array) -> None:
    """R'R + v v' = S'S: S in the place of R, by a fresh factor."""
    upper = np.triu(R)
    R[:] = np.linalg.cholesky(upper.T @ upper + np.outer(v, v)).T


@njit
def _rotate(R, v):  # type: ignore[no-untyped-def]
    for k in range(v.shape[0]):
        r = np.hypot(R[k, k], v[k])
        c, s = r / R[k, k], v[k] / R[k, k]
        R[k, k] = r
        for j in range(k + 1, v.shape[0]):
            R[k, j] = (R[k, j] + s * v[j]) / c
            v[j] = c * v[j] - s * R[k, j]


def put_back(R: Array, v: Array) -> None:
    """`reference_put_back` by plane rotations, in O(n^2); v is overwritten."""
    _rotate(R, v)
