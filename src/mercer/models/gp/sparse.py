"""The marginal likelihood over landmarks from all rows, bounded (VFE) or with noise of its own at
each row (FITC), and its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.kernels.params import substitute
from mercer.models.gp.factor import best_scale, root
from mercer.models.gp.likelihood import MarginalLikelihood
from mercer.ops.threads import parallel_map, single_blas
from mercer.ops.tiles import broadcast, cuts
from mercer.pairs import Side, Tile, centre_of
from mercer.pairs.dual import Dual, DualPairs, contract, plain
from mercer.pairs.tile import Diagonal

BLOCK_ROWS = 256  # rows at a time
# sums kept apart, and so the most threads: what they add up to does not depend on how many there
# are
LANES = 4
JITTER = 1e-8  # of k(z, z), on the diagonal of k(Z, Z): the bound stays one


@dataclass(frozen=True, eq=False)
class Pass:
    """What one pass over the rows tells, of noises d in units of the scale: Phi = k(X, Z) R'^-1, R
    R' = k(Z, Z)."""

    R: Array  # lower triangular
    A: Array  # Phi' D^-1 Phi
    b: Array  # Phi' D^-1 Y
    d: Array  # (n,)
    square: float  # sum y^2 / d
    missing: float  # sum (k(x, x) - q(x, x)) / d, where that is a penalty


def vfe(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: float | Array,
    scale: float | None = 1.0,
    *,
    points: Table,
    least: float = 0.0,
    slopes: bool = True,
) -> MarginalLikelihood:
    """log N(Y; 0, scale Q + diag(noise)) - sum scale (k - q)(x, x) / (2 noise) <= log p(Y), with Q
    = k(X, Z) k(Z, Z)^-1 k(Z, X).

    It is the likelihood where the points Z tell all rows. O(n m^2) time, O(m^2) memory; noise and
    scale as in `marginal_likelihood`.

    Titsias, Variational learning of inducing variables in sparse Gaussian processes (2009).

    >>> from mercer.kernels import Gaussian
    >>> from mercer.models.gp.likelihood import marginal_likelihood
    >>> X, y = Table(np.linspace(0, 3, 20)[:, None]), np.sin(np.linspace(0, 3, 20))[:, None]
    >>> few, all_ = (vfe(Gaussian(), X, y, 0.1, points=X[::s]).log for s in (7, 1))
    >>> bool(few < all_ and math.isclose(all_, marginal_likelihood(Gaussian(), X, y, 0.1).log, rel_tol=1e-6))
    True
    """
    return _measured(
        kernel, rows, Y, noise, scale, points=points, least=least, slopes=slopes, own=False
    )


def fitc(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: float | Array,
    scale: float | None = 1.0,
    *,
    points: Table,
    least: float = 0.0,
    slopes: bool = True,
) -> MarginalLikelihood:
    """log N(Y; 0, scale Q + diag(noise + scale (k - q)(x, x))): what the points leave out of a row
    is noise of its own.

    Snelson and Ghahramani, Sparse Gaussian processes using pseudo-inputs (2006); otherwise as
    `vfe`.
    """
    return _measured(
        kernel, rows, Y, noise, scale, points=points, least=least, slopes=slopes, own=True
    )


def _measured(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: float | Array,
    scale: float | None,
    *,
    points: Table,
    least: float,
    slopes: bool,
    own: bool,
) -> MarginalLikelihood:
    n, q = Y.shape
    noise = np.broadcast_to(np.asarray(noise, np.float64) / (scale or 1.0), (n,))
    p = gathered(kernel, rows, Y, noise, points, own)
    with single_blas():
        root = cholesky(p.A + np.eye(len(p.A)), lower=True, check_finite=False)
        w = cho_solve((root, True), p.b, check_finite=False)
        inverse = cho_solve((root, True), np.eye(len(root)), check_finite=False) if slopes else root
    fit = max(p.square - float(np.vdot(p.b, w)), 0.0)
    s = best_scale(fit, n * q, noise, least) if scale is None else scale
    det = 2 * float(np.log(root.diagonal()).sum()) + float(np.log(p.d).sum())
    log = -0.5 * (fit / s + q * det + n * q * math.log(2 * math.pi * s) + q * p.missing)
    if not slopes:
        return MarginalLikelihood(log, np.zeros(0), s)
    by_kernel, by_noise = _slopes(
        kernel, rows, Y / math.sqrt(s), noise, points, p, w / math.sqrt(s), inverse, own=own
    )
    free = 0.5 * (fit / s - n * q)
    by_noise, by_scale = (by_noise - free, 0.0) if scale is None else (by_noise, free - by_noise)
    return MarginalLikelihood(log, np.array([*by_kernel, by_noise, by_scale]), s)


def gathered(kernel: Kernel, rows: Table, Y: Array, noise: Array, points: Table, own: bool) -> Pass:
    """The statistics of all rows; own : whether what is left out of a row adds to its noise."""
    m, q = len(points), Y.shape[1]
    with single_blas():
        K = np.array(kernel(points), np.float64)
        K.flat[:: m + 1] += JITTER * np.abs(K.diagonal()).max(initial=0)
        R = root(K, float(np.abs(K.diagonal()).max(initial=0)), JITTER)
    tile, d = _tiles(rows, points), np.array(noise)

    def lane(pieces: list[slice]) -> tuple[Array, Array, float]:
        A, b, missing = np.zeros((m, m)), np.zeros((m, q)), 0.0
        for at in pieces:
            C = broadcast(kernel.on(tile(at)), (at.stop - at.start, m), np.float64)
            F = solve_triangular(R, C.T, lower=True, check_finite=False)  # (m, rows)
            left = np.maximum(kernel.diag(rows[at]) - np.einsum("ij,ij->j", F, F), 0)
            if own:
                d[at] += left
            missing += 0.0 if own else float((left / d[at]).sum())
            b += F @ (Y[at] / d[at, None])
            F /= np.sqrt(d[at])
            A += F @ F.T
        return A, b, missing

    parts = parallel_map(lane, _lanes(len(rows)))
    A, b = (
        sum((p[0] for p in parts), np.zeros((m, m))),
        sum((p[1] for p in parts), np.zeros((m, q))),
    )
    return Pass(R, A, b, d, float((Y**2 / d[:, None]).sum()), sum(p[2] for p in parts))


def _slopes(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: Array,
    points: Table,
    p: Pass,
    w: Array,
    inverse: Array,
    *,
    own: bool,
) -> tuple[Array, float]:
    """The slopes by the log-parameters of the kernel and by log noise: one more pass, which pulls
    weights on k(X, Z) back.

    With a = (Q + D)^-1 y, P = k(X, Z) k(Z, Z)^-1, c the slope by what is left out of each row (by
    its noise where that is its own, else the penalty's -1 / (2 d)) and W = (a a' - (Q + D)^-1) / 2
    - diag(c) these weights are 2 W P on k(X, Z), -P'W P on k(Z, Z) and c on the diagonal.
    """
    q, m = Y.shape[1], len(points)
    with single_blas():
        u = _up(p.R, w)  # P'a
        told, all_ = (_up(p.R, _up(p.R, B).T) for B in (inverse, np.eye(m)))
    index = {path: i for i, path in enumerate(kernel.parameters())}
    dual = substitute(kernel, lambda path, v: Dual(v, {index[path]: 1.0}))
    tile = _tiles(rows, points)

    def lane(pieces: list[slice]) -> tuple[Array, float, Array]:
        total, by_noise, middle = np.zeros(len(index)), 0.0, np.zeros((m, m))
        for at in pieces:
            value, d = dual.on(DualPairs(tile(at))), p.d[at]
            K = broadcast(plain(value), (len(d), m), np.float64)
            a, T, P = (Y[at] - K @ u) / d[:, None], K @ told, K @ all_
            slope = 0.5 * (
                np.square(a).sum(1) - q / d + q * np.einsum("ij,ij->i", T, K) / d**2
            )  # by d
            left = np.maximum(kernel.diag(rows[at]) - np.einsum("ij,ij->i", P, K), 0)
            c = slope if own else -0.5 * q / d
            by_noise += float(noise[at] @ (slope if own else slope + 0.5 * q * left / d**2))
            total += contract(
                value, a @ u.T - T * (q / d)[:, None] - 2 * P * c[:, None], len(index)
            )
            total += contract(dual.on(DualPairs(Diagonal(Side(rows[at])))), c, len(index))
            middle += P.T @ (P * c[:, None])
        return total, by_noise, middle

    parts = parallel_map(lane, _lanes(len(rows)))
    with single_blas():
        middle = sum((b[2] for b in parts), -0.5 * (u @ u.T - q * (all_ - told)))
    total = sum((b[0] for b in parts), kernel.gradient(points, middle))
    return np.array([*kernel.parameters().values()]) * total, sum(b[1] for b in parts)


def _up(R: Array, B: Array) -> Array:
    """R'^-1 B for a lower triangular R."""
    return np.asarray(solve_triangular(R, B, lower=True, trans=1, check_finite=False))


def _tiles(rows: Table, points: Table) -> Callable[[slice], Tile]:
    """Pieces of the rows against all points."""
    centre = centre_of(points, points)
    z = Side(points, centre)
    return lambda at: Tile(Side(rows[at], centre), z)


def _lanes(n: int) -> list[list[slice]]:
    pieces = cuts(n, BLOCK_ROWS)
    return [pieces[i::LANES] for i in range(min(LANES, len(pieces)))]
