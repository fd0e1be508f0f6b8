"""Gaussian processes on the operator: conjugate gradients for means and variances, Lanczos quadrature for the determinant."""
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigh_tridiagonal
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Kernel
from mercer.models.gp.likelihood import LARGE, best_scale
from mercer.models.gp.posterior import PointProcess, stack
from mercer.linalg.precondition import Woodbury
from mercer.linalg.solvers import CG, Iterated
from mercer.operators.kernel import KernelOperator
from mercer.ops.philox import Stream, normals
from mercer.ops.tiles import cuts
from mercer.store import register

PROBES, STEPS = 16, 100
MOST_PROBES = 512
WITHIN = 1e-3  # of n: the standard error of log p(y) at which there are probes enough
MOST_STEPS = 300  # of a variance
SOLVED = 1e-3  # of a probe's residual, where its quadrature is exact beside the probes' own spread
LOOSE, LEAST = 0.02, 1e-8  # of the noise, or of the prior variance: how far a variance may be above the exact one
COLUMNS = 512  # variances that are solved for together


@register("gp.Determinant")
@dataclass(frozen=True, eq=False)
class Determinant:
    """log det A, and the standard error of the estimate."""

    log: float
    error: float


@register("gp.IterativeProcess")
@dataclass(frozen=True, eq=False)
class IterativeProcess(PointProcess):
    """A `PointProcess` without a factor; its linear equations are solved to a residual of tol |y|."""

    tol: float = 1e-6
    memory: float = 1e9

    @classmethod
    def solved(
        cls, kernel: Kernel, X: Matrix, Y: Array, noise: Array, scale: float, *, tol: float = 1e-6, memory: float = 1e9,
        rescale: bool = False, least: float = 0.0,
    ) -> IterativeProcess:
        """The process; with rescale, noise and scale times the factor that the evidence likes best, of those with a noise >= least."""
        first = cls(kernel, X, Y, noise, scale, np.zeros_like(Y), tol, memory)
        coef = first.handle.solve(Y).x
        if not rescale:
            return replace(first, coef=coef)._taking(first.handle)
        by = best_scale(float(np.vdot(Y, coef)), Y.size, noise, least)
        return replace(first, coef=coef / by, noise=noise * by, scale=scale * by)

    def _taking(self, handle: Iterated) -> IterativeProcess:
        self.__dict__["handle"] = handle
        return self

    @cached_property
    def handle(self) -> Iterated:
        """Not kept in files: made again when first asked for."""
        return CG(tol=self.tol, memory=self.memory).init(KernelOperator(self.scale * self.kernel, self.rows), self.noise)

    def with_points(self, X: Matrix, Y: Array, noise: Array) -> IterativeProcess:
        """With more points: there is no factor to update, so all is solved for again."""
        with np.errstate(over="ignore"):
            if not np.isfinite(self.kernel.diag(Table(X))).all():
                raise ValueError(LARGE)
        return self._again(stack(self.X, X), np.vstack([self.Y, Y]), np.append(self.noise, noise))

    def without(self, index: Array) -> IterativeProcess:
        """Without some points."""
        keep = np.setdiff1d(np.arange(len(self.Y)), index)
        return self._again(self.X[keep], self.Y[keep], self.noise[keep])

    def _again(self, X: Matrix, Y: Array, noise: Array) -> IterativeProcess:
        return IterativeProcess.solved(self.kernel, X, Y, noise, self.scale, tol=self.tol, memory=self.memory)

    def variance(self, Z: Matrix) -> Array:
        """Of f at new rows, (m,), to within 2 % of the noise or 1e-8 of the prior's (and rounding in float32, where K is kept in that)."""
        out = self.scale * self.kernel.diag(Table(Z)).astype(np.float64)
        tol = max(LOOSE * float(self.noise.min()), LEAST * float(np.abs(out).max(initial=0)))
        for at in cuts(Z.shape[0], COLUMNS):
            K = np.concatenate([K for _, K in self.cross(Z[at])]).T
            out[at] -= explained(self._product, K, self.handle.preconditioner, tol)
        return np.maximum(out, 0)

    def covariance(self, Z: Matrix) -> Array:
        """Of f at all pairs of new rows, (m, m)."""
        K = np.concatenate([K for _, K in self.cross(Z)]).T
        s = self.handle.solve(K)
        told = s.x.T @ (K + s.remainder)
        C = self.scale * self.kernel(Table(Z)) - (told + told.T) / 2
        np.fill_diagonal(C, np.maximum(C.diagonal(), 0))
        return np.asarray(C)

    def _product(self, V: Array) -> Array:
        """A V, in float32 inside where its rounding is small beside the noise."""
        return self.handle.system @ V if self.handle.cheap is None else self.handle._times32(V)

    @cached_property
    def determinant(self) -> Determinant:
        n, q = self.Y.shape
        return log_determinant(self._product, self.handle.preconditioner, error=2 * WITHIN * n / q)

    @cached_property
    def log_evidence(self) -> float:
        n, q = self.Y.shape
        return -0.5 * (float(np.vdot(self.Y, self.coef)) + q * self.determinant.log + n * q * math.log(2 * math.pi))


def explained(product: Callable[[Array], Array], K: Array, P: Woodbury, tol: float) -> Array:
    """k'A^-1 k for every column k of K, from below and to within tol: what conjugate gradients on A x = k have told so far.

    P <= A, so that r'P^-1 r of a residual bounds what it hides, r'A^-1 r.

    >>> A = np.diag([1.0, 2.0, 4.0])
    >>> explained(lambda V: A @ V, np.ones((3, 1)), Woodbury.of(np.zeros((3, 0)), np.ones(3)), 1e-9).round(6)
    array([1.75])
    """
    out, on = np.zeros(K.shape[1]), np.arange(K.shape[1])
    R, D = K.copy(), P.solve(K)
    gamma = np.einsum("ij,ij->j", R, D)
    for _ in range(MOST_STEPS):
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
                f"variances at {np.sum(gamma > tol)} rows are too large by up to {gamma.max():.1g} after {MOST_STEPS} steps; "
                "use via='exact' or 'landmarks', or more noise.", ConvergenceWarning, stacklevel=2,
            )  # fmt: skip
    return out


def log_determinant(product: Callable[[Array], Array], P: Woodbury, seed: int = 0, error: float = math.inf) -> Determinant:
    """log det A = log det P + tr log(P^-1/2 A P^-1/2), the trace by Gauss quadrature along probes z ~ N(0, P), z'P^-1 z = n.

    Conjugate gradients on A x = z make the Jacobi matrix T of each quadrature: n e1' log(T) e1. There are 16 probes, and as many
    again, up to 512, until the standard error is no larger than `error`.

    Ubaru, Chen and Saad, Fast estimation of tr f(A) via stochastic Lanczos quadrature (2017).

    >>> A = np.diag(np.arange(1.0, 101.0))
    >>> d = log_determinant(lambda V: A @ V, Woodbury.of(np.zeros((100, 0)), np.full(100, 50.0)))
    >>> bool(abs(d.log - np.log(np.arange(1.0, 101.0)).sum()) < 4 * d.error)
    True
    """
    logs = probed(product, P, PROBES, seed).logs
    while len(logs) < MOST_PROBES and _error(logs) > error:
        logs = np.append(logs, probed(product, P, PROBES, seed, first=len(logs)).logs)
    return Determinant(float(logs.mean()), _error(logs))


def _error(logs: Array) -> float:
    """The standard error of a mean."""
    return float(logs.std(ddof=1) / math.sqrt(len(logs)))


@dataclass(frozen=True, eq=False)
class Probed:
    """What probes z, (n, t), tell: log det A by each, A^-1 z and P^-1 z."""

    logs: Array
    solved: Array
    whitened: Array


def probed(product: Callable[[Array], Array], P: Woodbury, probes: int = PROBES, seed: int = 0, first: int = 0) -> Probed:
    """`log_determinant` by each of some probes, from number `first` on, and the solutions that were found on the way."""
    n = len(P.s)
    E = normals(Stream(seed), first, first + probes, P.rank + n).T  # (r + n, t)
    Z = (P.S @ E[: P.rank] + E[P.rank :]) / P.s[:, None]
    W = P.solve(Z)
    size = np.sqrt(n / np.einsum("ij,ij->j", Z, W))  # a length tells nothing of A, and would only add its own spread
    Z, W = Z * size, W * size
    alphas, betas, X = _jacobi(product, Z, W, P)
    each = [n * _quadrature([a[j] for a in alphas], [b[j] for b in betas]) for j in range(probes)]
    return Probed(P.logdet + np.array(each), X, W)


def _jacobi(product: Callable[[Array], Array], Z: Array, W: Array, P: Woodbury) -> tuple[list[Array], list[Array], Array]:
    """The coefficients of preconditioned conjugate gradients (nan after a probe's end), and where they ended."""
    R, D, alphas, betas, X = Z.copy(), W, list[Array](), list[Array](), np.zeros_like(Z)
    gamma = np.einsum("ij,ij->j", R, D)
    first, on = gamma.copy(), np.ones(Z.shape[1], bool)
    for _ in range(min(STEPS, len(Z))):
        AD = product(D)
        curve = np.einsum("ij,ij->j", D, AD)
        on = on & (curve > 0) & (gamma > SOLVED**2 * first)
        if not on.any():
            break
        alpha = np.where(on, gamma / np.where(on, curve, 1), np.nan)
        R -= np.where(on, alpha, 0) * AD
        X += np.where(on, alpha, 0) * D
        W = P.solve(R)
        new = np.einsum("ij,ij->j", R, W)
        beta = np.where(on, new / gamma, np.nan)
        D = W + np.where(on, beta, 0) * D
        gamma = np.where(on, new, gamma)
        alphas.append(alpha)
        betas.append(beta)
    return alphas, betas, X


def _quadrature(alpha: list[float], beta: list[float]) -> float:
    """e1' log(T) e1"""
    a = np.array([v for v in alpha if not math.isnan(v)])
    if not len(a):
        return 0.0
    b = np.array(beta[: len(a) - 1])
    diagonal = 1 / a
    diagonal[1:] += b / a[:-1]
    values, vectors = eigh_tridiagonal(diagonal, np.sqrt(b) / a[:-1])
    return float(np.square(vectors[0]) @ np.log(np.maximum(values, 1e-300)))
