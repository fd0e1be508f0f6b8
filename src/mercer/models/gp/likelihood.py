"""The marginal likelihood of rows by the Cholesky factor of scale K + diag(noise), and its gradient
tile by tile."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dspr2

from mercer.costs.choice import choose
from mercer.costs.processes import PAIRS, WHOLE, readings
from mercer.inputs import Array, Table
from mercer.kernels import Cauchy, Gaussian, Kernel, Laplace, Matern, RationalQuadratic
from mercer.kernels.algebra import OnColumns, Power, Product, Scale, Sum
from mercer.kernels.params import substitute
from mercer.models.gp.factor import (
    SMALL,
    best_scale,
    factor,
    few_threads,
    inverse,
    log_determinant,
    solve,
)
from mercer.ops import tiles
from mercer.ops.threads import parallel_map, single_blas
from mercer.pairs import Dual, DualPairs, Side, Sides, Tile, centre_of, contract
from mercer.pairs.packed import Packed, packed, unpacked

LEAVES = Gaussian, Matern, RationalQuadratic, Cauchy, Laplace
NODES = Sum, Product, Scale, Power, OnColumns


@dataclass(eq=False)
class MarginalLikelihood:
    """log p(Y) of N(0, scale K + diag(noise)) for every column of Y, its slopes by the
    log-parameters, and the scale."""

    log: float
    slopes: Array | Callable[[], Array]  # or what makes them, let go once they are there
    scale: float

    @property
    def gradient(self) -> Array:
        """By the kernel's parameters, the noise, the scale."""
        if callable(self.slopes):
            self.slopes = self.slopes()
        return self.slopes


def marginal_likelihood(
    kernel: Kernel,
    rows: Table,
    Y: Array,
    noise: float | Array,
    scale: float | None = 1.0,
    *,
    least: float = 0.0,
) -> MarginalLikelihood:
    """log p(Y) at these parameters; its slopes, two thirds of the work, when they are asked for.

    noise : one number, or one a row; with scale=None the ratio of noise to scale, whose best scale
        is then a formula: the mean of y'(K + noise)^-1 y
    least : with scale=None the least noise, in the units of Y: the scale is no less than what makes
    the noise that
    """
    n, q = Y.shape
    with few_threads(n):
        read = reading(kernel, rows)
        L = factor(read.matrix, noise, scale or 1.0, kernel, clear=True)
        coef = solve(L, Y)
    fit, det = float(np.vdot(Y, coef)), log_determinant(L)
    s = best_scale(fit, n * q, noise, least) if scale is None else 1.0
    log = -0.5 * (fit / s + q * det + n * q * math.log(2 * math.pi * s))

    def slopes() -> Array:
        with few_threads(n):
            return _slopes(read, L, coef / math.sqrt(s), noise, scale, fit / s)

    return MarginalLikelihood(log, slopes, s if scale is None else scale)


def _slopes(
    read: Reading,
    L: Array,
    coef: Array,
    noise: float | Array,
    scale: float | None,
    fit: float,
) -> Array:
    """tr(W dA), W = (coef coef' - q A^-1) / 2; L is overwritten."""
    n, q = coef.shape
    R = inverse(L).T  # the upper triangle, by rows
    along = noise * 0.5 * (np.square(coef).sum(1) - q * R.diagonal())  # (n,)
    by_kernel = read.values * read.pull(coef, coef, R, q)
    free = (
        0.5 * (fit - n * q)
        # by the scale at this ratio: zero where it is the best, and not where the least noise holds it
        # up
    )
    by_noise, by_scale = (
        (along.sum() - free, 0.0) if scale is None else (along.sum(), free - along.sum())
    )
    return np.array([*((scale or 1.0) * by_kernel), by_noise, by_scale])


class Reading:
    """The kernel matrix of rows, and what weights on its pairs are to the parameters."""

    def __init__(self, kernel: Kernel, rows: Table) -> None:
        values: list[float] = []

        def slot(path: str, value: float) -> Dual:
            values.append(value)
            return Dual(value, {len(values) - 1: 1.0})

        self.kernel, self.rows = kernel, rows
        self.dual: Kernel = substitute(kernel, slot)  # of dual numbers
        self.values = np.array(values)

    def matrix(self) -> Array:
        """K, in an array that may be overwritten; of a symmetric one the upper triangle suffices."""
        raise NotImplementedError

    def pull(self, U: Array, V: Array, R: Array, q: int = 1) -> Array:
        """d tr(W K) / d parameter for a symmetric W = (U V' - q R) / 2; R is the upper triangle."""
        raise NotImplementedError


class ByPairs(Reading):
    """Of few rows and a stationary formula, every pair once."""

    def __init__(self, kernel: Kernel, rows: Table, pairs: Packed) -> None:
        super().__init__(kernel, rows)
        pairs.forget()
        tiles.settle_allocator()
        with self._one_thread():
            self.pairs, self.read = pairs, self.dual.on(DualPairs(pairs))

    def _one_thread(self) -> AbstractContextManager[None]:
        """Threads take longer to start than passes over pairs; of few rows nobody has more."""
        return single_blas() if len(self.rows) > SMALL else nullcontext()

    def matrix(self) -> Array:
        value = self.read.v if isinstance(self.read, Dual) else self.read
        if np.ndim(value) == 0:
            value = np.full(self.pairs.size, float(value))
        return unpacked(value, self.pairs.n).T

    def pull(self, U: Array, V: Array, R: Array, q: int = 1) -> Array:
        with self._one_thread():
            return contract(self.read, packed_weights(U, V, R, q, self.pairs), len(self.values))


class WholeTile(Reading):
    """Of few rows and any formula, which is read once."""

    def __init__(self, kernel: Kernel, rows: Table) -> None:
        super().__init__(kernel, rows)
        side = Side(rows, centre_of(rows, rows))
        self.shape, self.read = (len(rows),) * 2, self.dual.on(DualPairs(Tile(side, side, 0)))

    def matrix(self) -> Array:
        value = self.read.v if isinstance(self.read, Dual) else self.read
        return np.array(np.broadcast_to(value, self.shape), np.float64, order="C")

    def pull(self, U: Array, V: Array, R: Array, q: int = 1) -> Array:
        return contract(self.read, upper_weights(U, V, R, q), len(self.values))


class PullByTiles(Reading):
    """Of many rows: the formula is read twice, tile by tile."""

    def matrix(self) -> Array:
        return np.asarray(self.kernel(self.rows))

    def pull(self, U: Array, V: Array, R: Array, q: int = 1) -> Array:
        return pull(self.kernel, self.rows, U, V, R, q)


def reading(kernel: Kernel, rows: Table) -> Reading:
    """The quickest of these rows."""
    way = way_of(kernel, rows)
    if way == PAIRS:
        return ByPairs(kernel, rows, rows.pairs if isinstance(rows, Rung) else Packed(rows))
    return (WholeTile if way == WHOLE else PullByTiles)(kernel, rows)


def way_of(kernel: Kernel, rows: Table) -> str:
    """How kernel values and slopes of these rows are read, by shapes alone."""
    plain = not (rows.items or rows.sparse) and rows.dtype == np.float64
    paired = plain and stationary(kernel)
    size = len(rows), rows.width, len(kernel.parameters())
    return choose("likelihoods", readings(*size, paired=paired, items=rows.items))


def stationary(k: Kernel) -> bool:
    """Whether the formula asks for nothing but Euclidean distances of rows.

    >>> from mercer.kernels import Gaussian, Linear
    >>> stationary(0.5 * Gaussian() + Gaussian(2.0)), stationary(Gaussian() + Linear())
    (True, False)
    """
    if type(k) in LEAVES:
        return not isinstance(k, Laplace) or k.norm == 2
    return type(k) in NODES and all(map(stationary, k.inner))


class Rung(Table):
    """Rows of which likelihoods are asked one after another."""

    @cached_property
    def pairs(self) -> Packed:
        return Packed(self)

    @classmethod
    def of(cls, rows: Table) -> Rung:
        made = cls.looked_at(rows.data, rows.columns)
        assert isinstance(made, Rung)
        return made


def packed_weights(U: Array, V: Array, R: Array, q: int, pairs: Packed) -> Array:
    """`upper_weights` of every pair once."""
    w = packed(R.T)
    if q != 1:
        w *= q
    for u, v in zip(U.T, V.T, strict=True):
        w = dspr2(pairs.n, -0.5, u, v, w, lower=1, overwrite_ap=1)
    w[pairs.diagonal] *= 0.5
    return np.negative(w, out=w)


def upper_weights(U: Array, V: Array, R: Array, q: int) -> Array:
    """Of all pairs in tr(W K), W = (U V' - q R) / 2 symmetric; R is zero below the diagonal, and
    stands there for both triangles."""
    W = (0.5 * U) @ V.T
    along = 0.5 * q * R.diagonal()
    W -= R if q == 1 else q * R
    W.flat[:: len(W) + 1] += along
    return np.asarray(W)


def pull(kernel: Kernel, rows: Table, U: Array, V: Array, R: Array, q: int = 1) -> Array:
    """d tr(W K) / d parameter for a symmetric W = (U V' - q R) / 2; of R, which is zero below the
    diagonal, the upper triangle stands for both. No (n, n, p) array is made."""
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
        if r == c:  # the tiles beyond count twice
            return upper_weights(U[r], V[c], R[r, c], q)
        return np.asarray(U[r] @ V[c].T - q * R[r, c])

    tiles.settle_allocator()
    return np.sum(parallel_map(row, range(len(pieces))), axis=0)
