"""How equations with scale K + noise are solved: by a Cholesky factor that grows and shrinks with
its rows, or by conjugate gradients on the operator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotri
from sklearn.exceptions import ConvergenceWarning

from mercer import methods
from mercer.gpu.devices import device_there
from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is, Number, Text
from mercer.linalg.precondition import Woodbury
from mercer.linalg.solvers import CG
from mercer.models.base import fields_alone
from mercer.models.gp.factor import (
    LARGE,
    appended,
    factor,
    few_threads,
    log_determinant,
    removed,
    solve,
)
from mercer.models.gp.posterior import LeaveOneOut
from mercer.models.gp.quadrature import Determinant
from mercer.models.gp.quadrature import log_determinant as estimated_determinant
from mercer.models.gp.sources import GivenPoints, KernelPoints, Source
from mercer.ops.tiles import cuts
from mercer.store import register

WITHIN = 1e-3  # of n: the standard error of log p(y) at which there are probes enough
MAX_STEPS = 300  # of a variance
LOOSE, TIGHT = (
    0.02,
    1e-8,
)  # of the noise, or of the prior variance: how far a variance may be above the exact one
COLUMNS = 512  # variances that are solved for together


@register("gp.CholeskySystem")
@dataclass(frozen=True, eq=False)
class CholeskySystem:
    """A = scale K + diag(noise), by L L' = A.

    known : L, where it was made from that of other rows
    """

    points: Source
    noise: Array  # (n,)
    scale: float
    known: InitVar[Array | None] = None

    must = dict(points=Is("KernelPoints", "GivenPoints"), noise=Floats("n", low=0), scale=Number(0))
    __getstate__ = fields_alone

    def __post_init__(self, known: Array | None) -> None:
        if known is not None:
            object.__setattr__(self, "L", known)

    def _laws(self) -> str | None:
        return _sizes(self.points, self.noise)

    @cached_property
    def L(self) -> Array:
        """Not kept in files: made again when first asked for."""
        with few_threads(len(self.noise)):
            return factor(self.points.matrix, self.noise, self.scale, self.points.kernel)

    # solving
    def coefficients(self, Y: Array) -> Array:
        """A^-1 Y of a first fit, which makes the factor."""
        with few_threads(len(Y)):
            return self.solve(Y)

    def solve(self, B: Array) -> Array:
        """A^-1 B"""
        return solve(self.L, B)

    def determinant(self, outputs: int) -> Determinant:
        """log det A"""
        return Determinant(log_determinant(self.L), 0.0)

    # asking
    def cross(self, Z: Table) -> Iterator[tuple[slice, Array]]:
        """scale k(Z, X), some rows at a time."""
        return self.points.cross(Z, self.scale)

    def variance(self, Z: Table, noise: float = 0.0) -> Array:
        """Of f given its values at the points, never below zero, and so much noise."""
        out = self.scale * self.points.diag(Z)
        for at, K in self.cross(Z):
            out[at] -= np.square(self._whitened(K)).sum(0)
        return np.maximum(out, 0) + noise

    def covariance(self, Z: Table, noise: float = 0.0) -> Array:
        """Of f at all pairs of rows, and so much noise."""
        prior = self.points.pairs(Z, self.scale)
        V = np.concatenate([self._whitened(K) for _, K in self.cross(Z)], axis=1)
        return _positive(prior - V.T @ V, noise)

    def _whitened(self, K: Array) -> Array:
        """L^-1 K'"""
        with few_threads(len(self.noise)):
            return np.asarray(solve_triangular(self.L, K.T, lower=True, check_finite=False))

    def left_out(self, Y: Array, coef: Array) -> LeaveOneOut:
        """Row i without row i: y_i - coef_i / (A^-1)_ii, with variance 1 / (A^-1)_ii."""
        inverse = dpotri(self.L, lower=1)[0].diagonal()[:, None]
        residual, variance = coef / inverse, np.broadcast_to(1 / inverse, Y.shape)
        log = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
        return LeaveOneOut(Y - residual, variance, log, Y)

    # changes
    def grown(self, X: Table, noise: Array) -> CholeskySystem:
        """With these rows too: the factor grows by them."""
        points = self.points.joined(X)
        with np.errstate(over="ignore", invalid="ignore"):  # what is too large is refused
            K = np.concatenate([K for _, K in self.cross(X)])
            corner = self.points.pairs(X, self.scale)
            corner.flat[:: len(corner) + 1] += noise
            L = appended(self.L, K, corner)
        return CholeskySystem(points, np.append(self.noise, noise), self.scale, known=L)

    def shrunk(self, keep: Array) -> CholeskySystem:
        """Of these rows alone."""
        points, gone = self.points.kept(keep), np.setdiff1d(np.arange(len(self.noise)), keep)
        return CholeskySystem(points, self.noise[keep], self.scale, known=removed(self.L, gone))


@register("gp.IterativeSystem")
@dataclass(frozen=True, eq=False)
class IterativeSystem:
    """A = scale K + diag(noise) without a factor; equations are solved to a residual of tol |b|."""

    points: KernelPoints
    noise: Array  # (n,)
    scale: float
    tol: float = 1e-6
    memory: float = 1e9
    device: str = "cpu"  # that products are taken on, where it is there

    must = dict(points=Is("KernelPoints"), noise=Floats("n", low=0), scale=Number(0), device=Text())
    __getstate__ = fields_alone

    def _laws(self) -> str | None:
        return _sizes(self.points, self.noise)

    @cached_property
    def handle(self) -> Any:
        """Not kept in files: made again when first asked for; on the GPU where there is one."""
        op, gpu = self.points.operator(self.scale), device_there(self.device)
        if gpu is None:
            return CG(tol=self.tol, memory=self.memory).init(op, self.noise)
        solver = import_module("mercer.gpu.solve").GPUSolver
        return solver(tol=self.tol, device=gpu).init(op, self.noise)

    # solving
    def coefficients(self, Y: Array) -> Array:
        """A^-1 Y of a first fit."""
        return self.solve(Y)

    def solve(self, B: Array) -> Array:
        """A^-1 B"""
        return np.asarray(self.handle.solve(B).x)

    def determinant(self, outputs: int) -> Determinant:
        """log det A, as exact as the likelihood of so many outputs asks for."""
        error = 2 * WITHIN * len(self.noise) / outputs
        return estimated_determinant(self.handle.product, self.handle.preconditioner, error=error)

    # asking
    def cross(self, Z: Table) -> Iterator[tuple[slice, Array]]:
        """scale k(Z, X), some rows at a time."""
        return self.points.cross(Z, self.scale)

    def variance(self, Z: Table, noise: float = 0.0) -> Array:
        """To within 2 % of the noise or 1e-8 of the prior's (and rounding in float32, where K is
        kept in that)."""
        out = self.scale * self.points.diag(Z)
        tol = max(LOOSE * float(self.noise.min()), TIGHT * float(np.abs(out).max(initial=0)))
        for at in cuts(len(Z), COLUMNS):
            K = np.concatenate([K for _, K in self.cross(Z[at])]).T
            out[at] -= explained(self.handle.product, K, self.handle.preconditioner, tol)
        return np.maximum(out, 0) + noise

    def covariance(self, Z: Table, noise: float = 0.0) -> Array:
        """Of f at all pairs of rows, and so much noise."""
        K = np.concatenate([K for _, K in self.cross(Z)]).T
        s = self.handle.solve(K)
        told = s.x.T @ (K + s.remainder)
        return _positive(self.points.pairs(Z, self.scale) - (told + told.T) / 2, noise)

    def left_out(self, Y: Array, coef: Array) -> LeaveOneOut:
        raise AttributeError(
            "leaving rows out in closed form needs a Cholesky factor; fit with via='exact'."
        )

    # changes: there is no factor to update, so all is solved for again
    def grown(self, X: Table, noise: Array) -> IterativeSystem:
        """With these rows too."""
        with np.errstate(over="ignore"):
            if not np.isfinite(self.points.diag(X)).all():
                raise ValueError(LARGE)
        return self._of(self.points.joined(X), np.append(self.noise, noise))

    def shrunk(self, keep: Array) -> IterativeSystem:
        """Of these rows alone."""
        return self._of(self.points.kept(keep), self.noise[keep])

    def _of(self, points: KernelPoints, noise: Array) -> IterativeSystem:
        return IterativeSystem(points, noise, self.scale, self.tol, self.memory, self.device)

    def times(self, Z: Table, coef: Array) -> Array | None:
        """scale k(Z, X) coef on the GPU, in float64, as coefficients cancel; None where there is
        none."""
        gpu = device_there(self.device)
        if gpu is None or not len(Z):
            return None
        made = import_module("mercer.gpu.operator").GPUOperator
        op = made(self.points.kernel, Z, self.points.X, precision="float64", device=gpu)
        return np.asarray(self.scale * (op @ coef))


PointSystem = CholeskySystem | IterativeSystem


def latent(system: PointSystem, coef: Array, Z: Table) -> Array:
    """scale k(Z, X) coef, (m, q): the mean of f in its own units."""
    if isinstance(system, IterativeSystem) and (found := system.times(Z, coef)) is not None:
        return found
    out = np.empty((len(Z), coef.shape[1]))
    for at, K in system.cross(Z):
        out[at] = K @ coef
    return out


def system_of_before(values: dict[str, Any]) -> PointSystem:
    """From the parts of a posterior in files in which it had no system: a matrix that was given is
    known by the name, or the mark, in the place of its kernel."""
    kernel, X, given = values["kernel"], values["X"], (values["noise"], values["scale"])
    X = X if isinstance(X, Table) else Table(X)
    if "tol" in values:
        return IterativeSystem(KernelPoints(kernel, X), *given, values["tol"], values["memory"])
    named = isinstance(kernel, str | methods.Exact)
    return CholeskySystem(GivenPoints(X.data) if named else KernelPoints(kernel, X), *given)


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


def _sizes(points: Source, noise: Array) -> str | None:
    n = len(noise)
    return None if len(points) == n else f"has {len(points)} points and noise at {n}"


def _positive(C: Array, noise: float) -> Array:
    """A covariance, no variance below zero, and so much noise."""
    np.fill_diagonal(C, np.maximum(C.diagonal(), 0))
    return np.asarray(C + noise * np.eye(len(C)))
