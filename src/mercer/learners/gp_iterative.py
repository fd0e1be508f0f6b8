"""Gaussian processes on the operator: conjugate gradients for means and variances, Lanczos quadrature for the determinant."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigh_tridiagonal

from mercer.inputs import Array, Matrix, Table
from mercer.kernels import Kernel
from mercer.learners.gp_process import PointProcess, stack
from mercer.learners.precondition import Woodbury
from mercer.learners.solvers import CG, Iterated
from mercer.operators.kernel import KernelOperator
from mercer.ops.philox import Stream, normals
from mercer.ops.tiles import cuts

PROBES, STEPS = 16, 100
MOST_STEPS = 300  # of a variance
SOLVED = 1e-3  # of a probe's residual, where its quadrature is exact beside the probes' own spread
LOOSE = 0.02  # of the noise: how far a variance may be above the exact one
COLUMNS = 512  # variances that are solved for together


@dataclass(frozen=True, eq=False)
class Determinant:
    """log det A, and the standard error of the estimate."""

    log: float
    error: float


@dataclass(frozen=True, eq=False)
class IterativeProcess(PointProcess):
    """A `PointProcess` without a factor; its linear equations are solved to a residual of tol |y|."""

    tol: float = 1e-6
    memory: float = 1e9

    @classmethod
    def solved(
        cls, kernel: Kernel, X: Matrix, Y: Array, noise: Array, scale: float, *, tol: float = 1e-6, memory: float = 1e9,
        rescale: bool = False,
    ) -> IterativeProcess:
        """The process; with rescale, noise and scale are multiplied by the factor that the evidence likes best."""
        first = cls(kernel, X, Y, noise, scale, np.zeros_like(Y), tol, memory)
        coef = first.handle.solve(Y).x
        if not rescale:
            return replace(first, coef=coef)._taking(first.handle)
        by = max(float(np.vdot(Y, coef)) / Y.size, np.finfo(float).tiny)
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
        return self._again(stack(self.X, X), np.vstack([self.Y, Y]), np.append(self.noise, noise))

    def without(self, index: Array) -> IterativeProcess:
        """Without some points."""
        keep = np.setdiff1d(np.arange(len(self.Y)), index)
        return self._again(self.X[keep], self.Y[keep], self.noise[keep])

    def _again(self, X: Matrix, Y: Array, noise: Array) -> IterativeProcess:
        return IterativeProcess.solved(self.kernel, X, Y, noise, self.scale, tol=self.tol, memory=self.memory)

    def variance(self, Z: Matrix) -> Array:
        """Of f at new rows, (m,), to within 2 % of the noise (and rounding in float32, where K is kept in that)."""
        out = self.scale * self.kernel.diag(Table(Z)).astype(np.float64)
        for at in cuts(Z.shape[0], COLUMNS):
            K = np.concatenate([K for _, K in self.cross(Z[at])]).T
            out[at] -= explained(self._product, K, self.handle.preconditioner, LOOSE * float(self.noise.min()))
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
        return log_determinant(self._product, self.handle.preconditioner)

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
    return out


def log_determinant(product: Callable[[Array], Array], P: Woodbury, probes: int = PROBES, seed: int = 0) -> Determinant:
    """log det A = log det P + tr log(P^-1/2 A P^-1/2), the trace by Gauss quadrature along probes z ~ N(0, P).

    Conjugate gradients on A x = z make the Jacobi matrix T of each quadrature: z'P^-1 z e1' log(T) e1.
    Ubaru, Chen and Saad, Fast estimation of tr f(A) via stochastic Lanczos quadrature (2017).

    >>> A = np.diag(np.arange(1.0, 101.0))
    >>> d = log_determinant(lambda V: A @ V, Woodbury.of(np.zeros((100, 0)), np.full(100, 50.0)))
    >>> bool(abs(d.log - np.log(np.arange(1.0, 101.0)).sum()) < 4 * d.error)
    True
    """
    return probed(product, P, probes, seed).determinant


@dataclass(frozen=True, eq=False)
class Probed:
    """What probes z ~ N(0, P), (n, t), tell: log det A, A^-1 z and P^-1 z."""

    determinant: Determinant
    solved: Array
    whitened: Array


def probed(product: Callable[[Array], Array], P: Woodbury, probes: int = PROBES, seed: int = 0) -> Probed:
    """`log_determinant`, and the solutions that were found on the way."""
    n = len(P.s)
    E = normals(Stream(seed), 0, probes, P.rank + n).T  # (r + n, t)
    Z = (P.S @ E[: P.rank] + E[P.rank :]) / P.s[:, None]
    W = P.solve(Z)
    size, alphas, betas, X = _jacobi(product, Z, W, P)
    each = np.array([size[j] * _quadrature([a[j] for a in alphas], [b[j] for b in betas]) for j in range(probes)])
    error = float(each.std(ddof=1) / math.sqrt(probes))
    return Probed(Determinant(P.logdet + float(each.mean()), error), X, W)


def _jacobi(product: Callable[[Array], Array], Z: Array, W: Array, P: Woodbury) -> tuple[Array, list[Array], list[Array], Array]:
    """z'P^-1 z, the coefficients of preconditioned conjugate gradients (nan after a probe's end), and where they ended."""
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
    return first, alphas, betas, X


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
