"""Gaussian processes by their points: the Cholesky factor of scale K + diag(noise), the evidence, and its gradient tile by tile."""
from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.kernels.base import Sides
from mercer.ops import tiles
from mercer.ops.threads import parallel_map, single_blas
from mercer.pairs import Tile, centre_of

SMALL = 500  # rows up to which one thread is the fastest
LEAST, MOST = 1e-14, 1e-4  # jitter tried, in shares of the largest diagonal entry


@dataclass(frozen=True, eq=False)
class Evidence:
    """log p(Y) of N(0, scale K + diag(noise)) for every column of Y, its slopes by the log-parameters, and the scale."""

    log: float
    gradient: Array  # by the kernel's parameters, the noise, the scale
    scale: float


LARGE = "the kernel's values are too large for floating-point numbers; scale the columns of X first."


def factor(kernel: Kernel, rows: Table, noise: Any, scale: float = 1.0) -> Array:
    """The lower triangle L, L L' = scale K + diag(noise), in one n x n array (what is above the diagonal is not cleared).

    Where rounding makes the matrix indefinite, the least jitter that mends it is added.
    """
    jitter = 0.0
    while True:
        A = kernel(rows)
        if scale != 1:
            A *= scale
        size = float(np.abs(A.diagonal()).max(initial=0))
        if not math.isfinite(size):
            raise ValueError(LARGE)
        A.flat[:: len(A) + 1] += noise + jitter * (size or 1.0)
        L, failed = dpotrf(A.T, lower=1, clean=0, overwrite_a=1)  # A' is A in the order that LAPACK reads
        if not failed:
            return L
        jitter = max(10 * jitter, LEAST)
        if jitter > MOST:
            raise ValueError(f"the kernel matrix of {kernel!r} is not positive semidefinite at these rows; see mercer.check_psd.")


def root(C: Array, size: float, least: float) -> Array:
    """L, L L' = C, with as much more on the diagonal, from `least` of `size` on, as rounding asks for.

    >>> root(np.array([[4.0, 2.0], [2.0, 1.0]]), 4.0, 1e-12).round(3)
    array([[2., 0.],
           [1., 0.]])
    """
    if not np.isfinite(C).all():
        raise ValueError(LARGE)
    jitter = 0.0
    while jitter <= MOST:
        try:
            return np.asarray(cholesky(C + jitter * (size or 1.0) * np.eye(len(C)), lower=True, check_finite=False))
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, least)
    raise ValueError("the kernel matrix is not positive semidefinite at these rows; see mercer.check_psd.")


def solve(L: Array, Y: Array) -> Array:
    """(L L')^-1 Y"""
    return np.asarray(dpotrs(L, Y, lower=1)[0])


def log_determinant(L: Array) -> float:
    return float(2 * np.log(L.diagonal()).sum())


def evidence(
    kernel: Kernel, rows: Table, Y: Array, noise: Any, scale: float | None = 1.0, *, least: float = 0.0, slopes: bool = True
) -> Evidence:
    """log p(Y) at these parameters.

    noise : one number, or one a row; with scale=None the ratio of noise to scale, whose best scale is then a formula:
        the mean of y'(K + noise)^-1 y
    least : with scale=None the least noise, in the units of Y: the scale is no less than what makes the noise that
    """
    with few_threads(len(Y)):
        return _evidence(kernel, rows, Y, noise, scale, least, slopes)


def best_scale(fit: float, size: int, ratio: Any, least: float) -> float:
    """The scale of the largest evidence at a ratio of noise to scale; fit : y'(K + ratio)^-1 y of `size` numbers.

    >>> best_scale(4.0, 2, ratio=0.1, least=0.0), best_scale(4.0, 2, ratio=0.1, least=0.5)
    (2.0, 5.0)
    """
    return max(fit / size, least / float(np.min(ratio)) if least else 0.0, float(np.finfo(float).tiny))


def few_threads(n: int) -> AbstractContextManager[None]:
    """BLAS at one thread where more would take longer to start than the work itself."""
    return single_blas() if n <= SMALL else nullcontext()


def _evidence(kernel: Kernel, rows: Table, Y: Array, noise: Any, scale: float | None, least: float, slopes: bool) -> Evidence:
    n, q = Y.shape
    L = factor(kernel, rows, noise, scale or 1.0)
    coef = solve(L, Y)
    fit, det = float(np.vdot(Y, coef)), log_determinant(L)
    s = best_scale(fit, n * q, noise, least) if scale is None else 1.0
    log = -0.5 * (fit / s + q * det + n * q * math.log(2 * math.pi * s))
    gradient = _slopes(kernel, rows, L, coef / math.sqrt(s), noise, scale, fit / s) if slopes else np.zeros(0)
    return Evidence(log, gradient, s if scale is None else scale)


def _slopes(kernel: Kernel, rows: Table, L: Array, coef: Array, noise: Any, scale: float | None, fit: float) -> Array:
    """tr(W dA), W = (coef coef' - q A^-1) / 2; L is overwritten."""
    n, q = coef.shape
    inverse = dpotri(L, lower=1, overwrite_c=1)[0].T  # the upper triangle, by rows
    along = noise * 0.5 * (np.square(coef).sum(1) - q * inverse.diagonal())  # (n,)
    by_kernel = np.array([*kernel.parameters().values()]) * pull(kernel, rows, coef, coef, inverse, q)
    free = 0.5 * (fit - n * q)  # by the scale at this ratio: zero where it is the best, and not where the least noise holds it up
    by_noise, by_scale = (along.sum() - free, 0.0) if scale is None else (along.sum(), free - along.sum())
    return np.array([*((scale or 1.0) * by_kernel), by_noise, by_scale])


def pull(kernel: Kernel, rows: Table, U: Array, V: Array, R: Array, q: int = 1) -> Array:
    """d tr(W K) / d parameter for a symmetric W = (U V' - q R) / 2; of R the upper triangle is read. No (n, n, p) array is made."""
    sides = Sides(rows, centre_of(rows, rows))
    pieces = tiles.cuts(len(rows), tiles.square(8))

    def row(i: int) -> Array:
        r = pieces[i]
        return np.sum([kernel.dual(Tile(sides[r], sides[c], r.start - c.start), weights(r, c)) for c in pieces[i:]], axis=0)

    def weights(r: slice, c: slice) -> Array:
        W = U[r] @ V[c].T - q * R[r, c]
        if r == c:  # below the diagonal there are no values; the tiles beyond count twice
            W = np.triu(W)
            return np.asarray((W + W.T) / 2 - np.diag(W.diagonal()) / 2)
        return W

    tiles.settle_allocator()
    return np.sum(parallel_map(row, range(len(pieces))), axis=0)
