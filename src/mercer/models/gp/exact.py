"""The exact posterior, by a Cholesky factor that grows and shrinks with its rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotri

from mercer.inputs import Array, Table
from mercer.models.gp.factor import appended, factor, few_threads, log_determinant, removed, solve
from mercer.models.gp.points import NO_PLAN, PointPosterior, knowing, stack
from mercer.models.gp.posterior import PLAIN, LeaveOneOut, Outputs
from mercer.plans import Plan
from mercer.store import register


@register("gp.ExactPosterior")
@dataclass(frozen=True, eq=False)
class ExactPosterior(PointPosterior):
    """By L L' = scale K + noise."""

    @classmethod
    def of(
        cls,
        kernel: Any,
        X: Table,
        Y: Array,
        noise: Array,
        scale: float,
        outputs: Outputs = PLAIN,
        plan: Plan = NO_PLAN,
    ) -> Self:
        """The factor, then the coefficients."""
        new = cls(kernel, X, Y, noise, scale, np.zeros_like(Y), outputs, plan)
        with few_threads(len(Y)):
            return knowing(replace(new, coef=solve(new.L, Y)), L=new.L)

    @cached_property
    def L(self) -> Array:
        """Not kept in files: made again when first asked for."""
        with few_threads(len(self.Y)):
            return factor(self._matrix, self.noise, self.scale, self.kernel)

    def _matrix(self) -> Array:
        """K, in an array of its own."""
        return np.asarray(self.kernel(self.X))

    @property
    def log_determinant(self) -> float:
        return log_determinant(self.L)

    def solve(self, B: Array) -> Array:
        return solve(self.L, B)

    def variance(self, X: Table, noise: float = 0.0) -> Array:
        """Never below zero, and so much noise."""
        Z = X.astype(np.float64)
        out = self.scale * self.kernel.diag(Z).astype(np.float64)
        for at, K in self.cross(Z):
            out[at] -= np.square(self._whitened(K)).sum(0)
        return np.maximum(out, 0) + noise

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        Z = X.astype(np.float64)
        V = np.concatenate([self._whitened(K) for _, K in self.cross(Z)], axis=1)
        C = self._prior(Z) - V.T @ V
        np.fill_diagonal(C, np.maximum(C.diagonal(), 0))
        return np.asarray(C + noise * np.eye(len(Z)))

    def _whitened(self, K: Array) -> Array:
        """L^-1 K'"""
        with few_threads(len(self.Y)):
            return np.asarray(solve_triangular(self.L, K.T, lower=True, check_finite=False))

    @cached_property
    def left_out(self) -> LeaveOneOut:
        """Row i without row i: y_i - coef_i / (A^-1)_ii, with variance 1 / (A^-1)_ii."""
        inverse = dpotri(self.L, lower=1)[0].diagonal()[:, None]
        residual, variance = self.coef / inverse, np.broadcast_to(1 / inverse, self.Y.shape)
        log = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
        return LeaveOneOut(self.Y - residual, variance, log, self.Y)

    # changes
    def _grown(self, X: Table, Y: Array, noise: Array) -> Self:
        """The factor grows by rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused
            K = np.concatenate([K for _, K in self.cross(X)])
            corner = self._prior(X)
            corner.flat[:: len(corner) + 1] += noise
            L = appended(self.L, K, corner)
        return self._changed(
            L, stack(self.X, X), np.vstack([self.Y, Y]), np.append(self.noise, noise)
        )

    def _shrunk(self, index: Array) -> Self:
        keep = np.setdiff1d(np.arange(len(self.Y)), index)
        return self._changed(removed(self.L, index), self.X[keep], self.Y[keep], self.noise[keep])

    def _changed(self, L: Array, X: Table, Y: Array, noise: Array) -> Self:
        return knowing(
            replace(self, X=X, Y=Y, noise=noise, coef=solve(L, Y), plan=self._plan_of(len(Y))), L=L
        )
