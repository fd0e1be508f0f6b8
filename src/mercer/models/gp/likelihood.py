"""The marginal likelihood of rows by the Cholesky factor of scale K + diag(noise), and its gradient
tile by tile."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotri

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.models.gp.factor import best_scale, factor, few_threads, log_determinant, solve
from mercer.ops import tiles
from mercer.ops.threads import parallel_map
from mercer.pairs import Sides, Tile, centre_of


@dataclass(frozen=True, eq=False)
class MarginalLikelihood:
    """log p(Y) of N(0, scale K + diag(noise)) for every column of Y, its slopes by the
    log-parameters, and the scale."""

    log: float
    gradient: Array  # by the kernel's parameters, the noise, the scale
    scale: float


def marginal_likelihood(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: float | Array,
    scale: float | None = 1.0,
    *,
    least: float = 0.0,
    slopes: bool = True,
) -> MarginalLikelihood:
    """log p(Y) at these parameters.

    noise : one number, or one a row; with scale=None the ratio of noise to scale, whose best scale
        is then a formula: the mean of y'(K + noise)^-1 y
    least : with scale=None the least noise, in the units of Y: the scale is no less than what makes
    the noise that
    """
    with few_threads(len(Y)):
        return _marginal_likelihood(kernel, rows, Y, noise, scale, least, slopes)


def _marginal_likelihood(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: float | Array,
    scale: float | None,
    least: float,
    slopes: bool,
) -> MarginalLikelihood:
    n, q = Y.shape
    L = factor(lambda: kernel(rows), noise, scale or 1.0, kernel)
    coef = solve(L, Y)
    fit, det = float(np.vdot(Y, coef)), log_determinant(L)
    s = best_scale(fit, n * q, noise, least) if scale is None else 1.0
    log = -0.5 * (fit / s + q * det + n * q * math.log(2 * math.pi * s))
    gradient = (
        _slopes(kernel, rows, L, coef / math.sqrt(s), noise, scale, fit / s)
        if slopes
        else np.zeros(0)
    )
    return MarginalLikelihood(log, gradient, s if scale is None else scale)


def _slopes(
    kernel: Kernel,
    rows: Table,
    L: Array,
    coef: Array,
    noise: float | Array,
    scale: float | None,
    fit: float,
) -> Array:
    """tr(W dA), W = (coef coef' - q A^-1) / 2; L is overwritten."""
    n, q = coef.shape
    inverse = dpotri(L, lower=1, overwrite_c=1)[0].T  # the upper triangle, by rows
    along = noise * 0.5 * (np.square(coef).sum(1) - q * inverse.diagonal())  # (n,)
    by_kernel = np.array([*kernel.parameters().values()]) * pull(
        kernel, rows, coef, coef, inverse, q
    )
    free = (
        0.5 * (fit - n * q)
        # by the scale at this ratio: zero where it is the best, and not where the least noise holds it
        # up
    )
    by_noise, by_scale = (
        (along.sum() - free, 0.0) if scale is None else (along.sum(), free - along.sum())
    )
    return np.array([*((scale or 1.0) * by_kernel), by_noise, by_scale])


def pull(kernel: Kernel, rows: Table, U: Array, V: Array, R: Array, q: int = 1) -> Array:
    """d tr(W K) / d parameter for a symmetric W = (U V' - q R) / 2; of R the upper triangle is
    read. No (n, n, p) array is made."""
    sides = Sides(rows, centre_of(rows, rows))
    pieces = tiles.cuts(len(rows), tiles.square(8))

    def row(i: int) -> Array:
        r = pieces[i]
        return np.sum(
            [
                kernel.dual(Tile(sides[r], sides[c], r.start - c.start), weights(r, c))
                for c in pieces[i:]
            ],
            axis=0,
        )

    def weights(r: slice, c: slice) -> Array:
        W = U[r] @ V[c].T - q * R[r, c]
        if r == c:  # below the diagonal there are no values; the tiles beyond count twice
            W = np.triu(W)
            return np.asarray((W + W.T) / 2 - np.diag(W.diagonal()) / 2)
        return W

    tiles.settle_allocator()
    return np.sum(parallel_map(row, range(len(pieces))), axis=0)
