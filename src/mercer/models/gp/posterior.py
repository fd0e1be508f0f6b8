"""The posterior of a Gaussian process from its points: mean, variance, covariance, leave-one-out, and points added or taken out."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotri

from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Floats, Is, Number, Samples
from mercer.kernels import Kernel
from mercer.models.gp.likelihood import factor, few_threads, log_determinant, solve
from mercer.models.gp.updates import appended, removed
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import broadcast, cuts
from mercer.pairs import Side, Tile, centre_of
from mercer.store import register

PIECE = 128  # new rows at a time: always as many, so that no prediction depends on how many are asked for


@register("gp.LeftOut")
@dataclass(frozen=True, eq=False)
class LeftOut:
    """Of every row, by the model of all others: the mean and the variance of y, and log p(y), (n, q) each."""

    mean: Array
    variance: Array
    log: Array

    must = dict(mean=Floats("n", "q", finite=False), variance=Floats("n", "q", finite=False), log=Floats("n", "q", finite=False))


@register("gp.PointProcess")
@dataclass(frozen=True, eq=False)
class PointProcess:
    """f ~ GP(0, scale k) seen at rows X as Y = f + N(0, noise), Y (n, q) in units of its own; coef = (scale K + noise)^-1 Y."""

    kernel: Kernel
    X: Matrix
    Y: Array
    noise: Array  # (n,)
    scale: float
    coef: Array

    must = dict(
        kernel=Is("Kernel", "gram.Given"), X=Samples("n", None), Y=Floats("n", "q"), noise=Floats("n", low=0), coef=Floats("n", "q"),
        scale=Number(0),
    )  # fmt: skip

    @classmethod
    def of(cls, kernel: Kernel, X: Matrix, Y: Array, noise: Array, scale: float) -> PointProcess:
        with few_threads(len(Y)):
            L = factor(kernel, Table(X), noise, scale)
            new = cls(kernel, X, Y, noise, scale, solve(L, Y))
        new.__dict__["L"] = L
        return new

    @cached_property
    def L(self) -> Array:
        """Not kept in files: made again when first asked for."""
        with few_threads(len(self.Y)):
            return factor(self.kernel, self.rows, self.noise, self.scale)

    @property
    def rows(self) -> Table:
        return Table(self.X)

    @cached_property
    def _side(self) -> Side:
        return Side(self.rows, centre_of(self.rows, self.rows))

    def cross(self, Z: Matrix) -> Iterator[tuple[slice, Array]]:
        """scale k(Z, X), some rows at a time; distances are measured about the centre of X, whatever Z is."""
        pieces = cuts(Z.shape[0], PIECE)
        for start in range(0, len(pieces), 8):
            group = pieces[start : start + 8]
            yield from zip(group, parallel_map(lambda p: self._tile(Z[p]), group), strict=True)

    def _tile(self, Z: Matrix) -> Array:
        s = self._side
        value = self.kernel.on(Tile(Side(Table(Z), s.centre), s))
        return self.scale * broadcast(value, (Z.shape[0], len(s)), np.float64)

    def mean(self, Z: Matrix) -> Array:
        """Of f at new rows, (m, q)."""
        out = np.empty((Z.shape[0], self.Y.shape[1]))
        for at, K in self.cross(Z):
            out[at] = K @ self.coef
        return out

    def variance(self, Z: Matrix) -> Array:
        """Of f at new rows, (m,): never below zero."""
        out = self.scale * self.kernel.diag(Table(Z)).astype(np.float64)
        for at, K in self.cross(Z):
            out[at] -= np.square(self._whitened(K)).sum(0)
        return np.maximum(out, 0)

    def covariance(self, Z: Matrix) -> Array:
        """Of f at all pairs of new rows, (m, m)."""
        V = np.concatenate([self._whitened(K) for _, K in self.cross(Z)], axis=1)
        C = self.scale * self.kernel(Table(Z)) - V.T @ V
        np.fill_diagonal(C, np.maximum(C.diagonal(), 0))
        return np.asarray(C)

    def _whitened(self, K: Array) -> Array:
        """L^-1 K'"""
        with few_threads(len(self.Y)):
            return self._triangular(K)

    def _triangular(self, K: Array) -> Array:
        return np.asarray(solve_triangular(self.L, K.T, lower=True, check_finite=False))

    @cached_property
    def log_evidence(self) -> float:
        n, q = self.Y.shape
        fit = float(np.vdot(self.Y, self.coef))
        return -0.5 * (fit + q * log_determinant(self.L) + n * q * math.log(2 * math.pi))

    @cached_property
    def left_out(self) -> LeftOut:
        """Row i without row i: y_i - coef_i / (A^-1)_ii, with variance 1 / (A^-1)_ii."""
        inverse = dpotri(self.L, lower=1)[0].diagonal()[:, None]
        residual, variance = self.coef / inverse, np.broadcast_to(1 / inverse, self.Y.shape)
        log = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
        return LeftOut(self.Y - residual, variance, log)

    # changes
    def with_points(self, X: Matrix, Y: Array, noise: Array) -> PointProcess:
        """With more points, in O(n^2) a point: the factor grows by rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused
            K = np.concatenate([K for _, K in self.cross(X)])
            corner = self.scale * self.kernel(Table(X))
            corner.flat[:: len(corner) + 1] += noise
            L = appended(self.L, K, corner)
        return self._changed(L, stack(self.X, X), np.vstack([self.Y, Y]), np.append(self.noise, noise))

    def without(self, index: Array) -> PointProcess:
        """Without some points, in O(n^2) a point."""
        keep = np.setdiff1d(np.arange(len(self.Y)), index)
        return self._changed(removed(self.L, index), self.X[keep], self.Y[keep], self.noise[keep])

    def _changed(self, L: Array, X: Matrix, Y: Array, noise: Array) -> PointProcess:
        new = replace(self, X=X, Y=Y, noise=noise, coef=solve(L, Y))
        new.__dict__["L"] = L
        return new


def stack(A: Matrix, B: Matrix) -> Matrix:
    """The rows of both."""
    if isinstance(A, Items):
        return Items([*A.values, *B.values])
    if isinstance(A, np.ndarray):
        return np.vstack([A, B if isinstance(B, np.ndarray) else B.toarray()])
    import scipy.sparse as sp

    return sp.csr_array(sp.vstack([A, B]))
