"""Gaussian processes on the operator: means, variances and covariances by conjugate gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.linalg.precondition import Woodbury
from mercer.linalg.solvers import CG, Iterated
from mercer.models.gp.factor import LARGE, best_scale
from mercer.models.gp.points import NO_PLAN, PointPosterior, knowing, stack
from mercer.models.gp.posterior import PLAIN, LeaveOneOut, Outputs
from mercer.models.gp.quadrature import Determinant, log_determinant
from mercer.operators.kernel import KernelOperator
from mercer.ops.tiles import cuts
from mercer.plans import Plan
from mercer.store import register

WITHIN = 1e-3  # of n: the standard error of log p(y) at which there are probes enough
MAX_STEPS = 300  # of a variance
LOOSE, TIGHT = (
    0.02,
    1e-8,
)  # of the noise, or of the prior variance: how far a variance may be above the exact one
COLUMNS = 512  # variances that are solved for together


@register("gp.IterativePosterior")
@dataclass(frozen=True, eq=False)
class IterativePosterior(PointPosterior):
    """Without a factor; its linear equations are solved to a residual of tol |y|."""

    tol: float = 1e-6
    memory: float = 1e9

    @classmethod
    def of(
        cls,
        kernel: Kernel,
        X: Table,
        Y: Array,
        noise: Array,
        scale: float,
        outputs: Outputs = PLAIN,
        plan: Plan = NO_PLAN,
        *,
        tol: float = 1e-6,
        memory: float = 1e9,
        rescale: bool = False,
        least: float = 0.0,
    ) -> Self:
        """With rescale, noise and scale times the factor that the likelihood likes best, of those
        with a noise >= least."""
        first = cls(kernel, X, Y, noise, scale, np.zeros_like(Y), outputs, plan, tol, memory)
        coef = first.solve(Y)
        if not rescale:
            return knowing(replace(first, coef=coef), handle=first.handle)
        by = best_scale(float(np.vdot(Y, coef)), Y.size, noise, least)
        return replace(first, coef=coef / by, noise=noise * by, scale=scale * by)

    @cached_property
    def handle(self) -> Iterated:
        """Not kept in files: made again when first asked for."""
        return CG(tol=self.tol, memory=self.memory).init(
            KernelOperator(self.scale * self.kernel, self.X), self.noise
        )

    def solve(self, B: Array) -> Array:
        return self.handle.solve(B).x

    def variance(self, X: Table, noise: float = 0.0) -> Array:
        """To within 2 % of the noise or 1e-8 of the prior's (and rounding in float32, where K is
        kept in that)."""
        Z = X.astype(np.float64)
        out = self.scale * self.kernel.diag(Z).astype(np.float64)
        tol = max(LOOSE * float(self.noise.min()), TIGHT * float(np.abs(out).max(initial=0)))
        for at in cuts(len(Z), COLUMNS):
            K = np.concatenate([K for _, K in self.cross(Z[at])]).T
            out[at] -= explained(self.handle.product, K, self.handle.preconditioner, tol)
        return np.maximum(out, 0) + noise

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        Z = X.astype(np.float64)
        K = np.concatenate([K for _, K in self.cross(Z)]).T
        s = self.handle.solve(K)
        told = s.x.T @ (K + s.remainder)
        C = self._prior(Z) - (told + told.T) / 2
        np.fill_diagonal(C, np.maximum(C.diagonal(), 0))
        return np.asarray(C + noise * np.eye(len(Z)))

    @property
    def left_out(self) -> LeaveOneOut:
        raise AttributeError(
            "leaving rows out in closed form needs a Cholesky factor; fit with via='exact'."
        )

    @cached_property
    def determinant(self) -> Determinant:
        n, q = self.Y.shape
        return log_determinant(
            self.handle.product, self.handle.preconditioner, error=2 * WITHIN * n / q
        )

    @property
    def log_determinant(self) -> float:
        return self.determinant.log

    @property
    def log_marginal_likelihood_error(self) -> float:
        return 0.5 * len(self.outputs) * self.determinant.error

    # changes: there is no factor to update, so all is solved for again
    def _grown(self, X: Table, Y: Array, noise: Array) -> Self:
        with np.errstate(over="ignore"):
            if not np.isfinite(self.kernel.diag(X)).all():
                raise ValueError(LARGE)
        return self._again(stack(self.X, X), np.vstack([self.Y, Y]), np.append(self.noise, noise))

    def _shrunk(self, index: Array) -> Self:
        keep = np.setdiff1d(np.arange(len(self.Y)), index)
        return self._again(self.X[keep], self.Y[keep], self.noise[keep])

    def _again(self, X: Table, Y: Array, noise: Array) -> Self:
        plan = self._plan_of(len(Y))
        return self.of(
            self.kernel,
            X,
            Y,
            noise,
            self.scale,
            self.outputs,
            plan,
            tol=self.tol,
            memory=self.memory,
        )


def explained(product: Callable[[Array], Array], K: Array, P: Woodbury, tol: float) -> Array:
    """k'A^-1 k for every column k of K, from below and to within tol: what conjugate gradients on A
    x = k have told so far.

    P <= A, so that r'P^-1 r of a residual bounds what it hides, r'A^-1 r.

    >>> A = np.diag([1.0, 2.0, 4.0])
    >>> explained(lambda V: A @ V, np.ones((3, 1)), Woodbury.of(np.zeros((3, 0)), np.ones(3)), 1e-9).round(6)
    array([1.75])
    """
    out, on = np.zeros(K.shape[1]), np.arange(K.shape[1])
    R, D = K.copy(), P.solve(K)
    gamma = np.einsum("ij,ij->j", R, D)
    for _ in range(MAX_STEPS):
        left = gamma > tol
        if not left.all():
            on, R, D, gamma = on[left], R[:, left], D[:, left], gamma[left]
        if not len(on):
            break
        AD = product(D)
        curve = np.einsum("ij,ij->j", D, AD)
        alpha = np.where(curve > 0, gamma / np.where(curve > 0, curve, 1), 0)
        out[on] += alpha * gamma
        R -= alpha * AD
        W = P.solve(R)
        new = np.where(curve > 0, np.einsum("ij,ij->j", R, W), 0)
        D = W + new / gamma * D
        gamma = new
    else:
        if (gamma > tol).any():
            warnings.warn(
                f"variances at {np.sum(gamma > tol)} rows are too large by up to {gamma.max():.1g} after {MAX_STEPS} steps; "
                "use via='exact' or 'landmarks', or more noise.",
                ConvergenceWarning,
                stacklevel=2,
            )
    return out
