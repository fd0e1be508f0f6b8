"""The Cholesky factor of scale K + diag(noise): made, solved with, and rows added to it and taken
out of it in O(n^2) each."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dlauum, dpotrf, dpotrs, dtrtri

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.threads import single_blas

SMALL = 500  # rows up to which one thread is the fastest
LEAST_JITTER, MOST_JITTER = 1e-14, 1e-4  # that are tried, in shares of the largest diagonal entry
TINY = float(np.finfo(float).tiny)
INVERTED = 64  # rows up to which LAPACK inverts a triangle faster than products of its parts do
LARGE = (
    "the kernel's values are too large for floating-point numbers; scale the columns of X first."
)


def factor(
    matrix: Callable[[], Array],
    noise: Any,
    scale: float = 1.0,
    of: Any = "K",
    *,
    clear: bool = False,
) -> Array:
    """The lower triangle L, L L' = scale K + diag(noise), in one n x n array; what is above the
    diagonal is zero only where that is asked for.

    matrix : makes K, in an array that is overwritten
    of : what K is of, for those who read that it is of no kernel

    Where rounding makes the matrix indefinite, the least jitter that mends it is added.
    """
    jitter = 0.0
    while True:
        A = matrix()
        if scale != 1:
            A *= scale
        size = float(np.abs(A.diagonal()).max(initial=0))
        if not math.isfinite(size):
            raise ValueError(LARGE)
        A.flat[:: len(A) + 1] += noise + jitter * (size or 1.0)
        L, failed = dpotrf(
            A.T, lower=1, clean=int(clear), overwrite_a=1
        )  # A' is A in the order that LAPACK reads
        if not failed:
            return L
        jitter = max(10 * jitter, LEAST_JITTER)
        if jitter > MOST_JITTER:
            raise ValueError(
                f"the kernel matrix of {of!r} is not positive semidefinite at these rows; see mercer.check_psd."
            )


def root(C: Array, size: float, least: float) -> Array:
    """L, L L' = C, with as much more on the diagonal, from `least` of `size` on, as rounding asks
    for.

    >>> root(np.array([[4.0, 2.0], [2.0, 1.0]]), 4.0, 1e-12).round(3)
    array([[2., 0.],
           [1., 0.]])
    """
    if not np.isfinite(C).all():
        raise ValueError(LARGE)
    jitter = 0.0
    while jitter <= MOST_JITTER:
        try:
            return np.asarray(
                cholesky(
                    C + jitter * (size or 1.0) * np.eye(len(C)), lower=True, check_finite=False
                )
            )
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, least)
    raise ValueError(
        "the kernel matrix is not positive semidefinite at these rows; see mercer.check_psd."
    )


def solve(L: Array, Y: Array) -> Array:
    """(L L')^-1 Y"""
    return np.asarray(dpotrs(L, Y, lower=1)[0])


def inverse(L: Array) -> Array:
    """(L L')^-1, its lower triangle, in the place of L, which LAPACK's order must have; what is
    above the diagonal stays as it is.

    >>> inverse(np.array([[2.0, 0.0], [1.0, 1.0]], order="F")).round(3)
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    invert_triangle(L)
    return np.asarray(dlauum(L, lower=1, overwrite_c=1)[0])


def invert_triangle(L: Array) -> None:
    """L^-1 in the place of L, by halves: LAPACK's own way is three times slower at 400 rows, as it
    leaves little to matrix products."""
    n = len(L)
    if n <= INVERTED:
        done = dtrtri(L, lower=1, overwrite_c=1)[0]
        if not L.flags.f_contiguous:  # a part of an array, of which LAPACK had a copy
            L[:] = done
        return
    h = n // 2
    A, B, C = L[:h, :h], L[h:, :h], L[h:, h:]
    invert_triangle(A)
    invert_triangle(C)
    B[:] = dtrmm(-1.0, C, dtrmm(1.0, A, B, side=1, lower=1), side=0, lower=1, overwrite_b=1)


def log_determinant(L: Array) -> float:
    return float(2 * np.log(L.diagonal()).sum())


def best_scale(fit: float, size: int, ratio: Any, least: float) -> float:
    """The scale of the largest likelihood at a ratio of noise to scale; fit : y'(K + ratio)^-1 y of
    `size` numbers.

    >>> best_scale(4.0, 2, ratio=0.1, least=0.0), best_scale(4.0, 2, ratio=0.1, least=0.5)
    (2.0, 5.0)
    """
    lowest = ratio if isinstance(ratio, float) else float(np.min(ratio))
    return max(fit / size, least / lowest if least else 0.0, TINY)


def few_threads(n: int) -> AbstractContextManager[None]:
    """BLAS at one thread where more would take longer to start than the work itself."""
    return single_blas() if n <= SMALL else nullcontext()


# rows that come and go
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
    left.flat[:: m + 1] = np.maximum(
        left.diagonal(), least * size
    )  # a point that the others tell already
    out[n:, :n], out[n:, n:] = V.T, root(left, float(size.max(initial=0)), least)
    return out


def removed(L: Array, index: Array) -> Array:
    """The factor of A without these rows and columns: what a row held is put back into those after
    it.

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
