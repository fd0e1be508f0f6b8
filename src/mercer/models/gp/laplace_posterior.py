"""Posteriors of f given labels, by Laplace's approximation: at the rows, over landmarks, and of
several classes against the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import log_expit

from mercer.inputs import Array, Table
from mercer.invariants import Each, Floats, Is, Number
from mercer.kernels import Kernel
from mercer.models.gp.factor import few_threads
from mercer.models.gp.laplace import STEPS, TOL, curvature, log_probability, mode
from mercer.models.gp.sources import KernelPoints
from mercer.models.gp.space import times
from mercer.models.gp.systems import CholeskySystem, latent, system_of_before
from mercer.models.maps import FittedMap
from mercer.models.settings import FittedKernel
from mercer.ops.tiles import cuts
from mercer.plans import Plan
from mercer.store import register

BLOCK_ROWS = 2048  # that features are made of at a time


@register("gp.LaplacePosterior")
@dataclass(frozen=True, eq=False)
class LaplacePosterior:
    """The posterior of f given labels y in {-1, 1} at the points of a system whose noise is 1 / W;
    coef = d log p(y | f), (n, 1)."""

    system: CholeskySystem
    coef: Array
    log: float  # the approximate marginal likelihood

    must = dict(system=Is("CholeskySystem"), coef=Floats("n", 1), log=Number(finite=False))

    def _laws(self) -> str | None:
        n, points = len(self.coef), len(self.system.noise)
        return None if points == n else f"has {points} points and coefficients of {n}"

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files in which the parts of the system were its own."""
        system = system_of_before(values)
        return {"system": system, "coef": values["coef"], "log": values["log"]}

    @classmethod
    def at_mode(cls, kernel: Kernel, X: Table, y: Array, scale: float) -> Self:
        with few_threads(len(y)):
            m = mode(scale * kernel(X), y)
        system = CholeskySystem(KernelPoints(kernel, X), 1 / m.W, scale)
        return cls(system, curvature(m.f, y)[0][:, None], m.log)

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.system.points.reads

    @property
    def scaled_kernel(self) -> FittedKernel:
        return self.system.points.scaled(self.system.scale)

    @property
    def log_marginal_likelihood(self) -> float:
        return self.log

    def latent(self, X: Table) -> tuple[Array, Array]:
        """The mean and the variance of f, (m,) each."""
        Z = X.astype(np.float64)
        return latent(self.system, self.coef, Z)[:, 0], self.system.variance(Z)

    def logs(self, X: Table) -> Array:
        """log p(y = -1) and log p(y = 1) at new rows, (m, 2)."""
        return _both(*self.latent(X))


@register("gp.LaplaceWeights")
@dataclass(frozen=True, eq=False)
class LaplaceWeights:
    """f = phi(x)'w, w ~ N(0, scale I), by Laplace about the mode of w; `root` is the factor of the
    precision of w."""

    coef: Array
    root: Array
    scale: float
    log_marginal_likelihood: float

    must = dict(coef=Floats("D"), root=Floats("D", "D"), scale=Number(0))

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files with another word for the likelihood."""
        return {
            {"log_evidence": "log_marginal_likelihood"}.get(name, name): value
            for name, value in values.items()
        }

    @classmethod
    def at_mode(cls, F: Array, y: Array, scale: float) -> LaplaceWeights:
        """Newton's method on the weights of features F (n, D), steps halved where they would
        lose."""
        with few_threads(F.shape[1]):
            return cls._at_mode(F, y, scale)

    @classmethod
    def _at_mode(cls, F: Array, y: Array, scale: float) -> LaplaceWeights:
        w = np.zeros(F.shape[1])
        value, root, step = _newton(F, y, w, scale)
        for _ in range(STEPS):
            size = 1.0
            while (new := _value(F, y, w + size * step, scale)) < value - 1e-9 * abs(
                value
            ) and size > 1e-6:
                size /= 2
            gain, w = new - value, w + size * step
            value, root, step = _newton(F, y, w, scale)
            if gain < TOL * len(y):
                break
        log = value - float(np.log(root.diagonal()).sum()) - 0.5 * len(w) * math.log(scale)
        return cls(w, root, scale, log)

    def latent(self, F: Array, missing: Array) -> tuple[Array, Array]:
        """The mean and the variance of f at rows of features F, (m,) each, with the variance that
        the features leave out."""
        V = solve_triangular(self.root, F.T, lower=True, check_finite=False)
        return F @ self.coef, np.square(V).sum(0) + self.scale * missing


@register("gp.LaplaceFeatures")
@dataclass(frozen=True, eq=False)
class LaplaceFeatures:
    """The posterior of f over landmarks, with the variance that they leave out."""

    phi: FittedMap
    weights: LaplaceWeights

    must = dict(phi=Is("FittedMap"), weights=Is("LaplaceWeights"))

    def _laws(self) -> str | None:
        D, found = self.phi.width, len(self.weights.coef)
        return None if found == D else f"has {found} weights of {D} features"

    @classmethod
    def at_mode(cls, phi: FittedMap, X: Table, y: Array, scale: float) -> Self:
        return cls(phi, LaplaceWeights.at_mode(phi.features(X).astype(np.float64), y, scale))

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def scaled_kernel(self) -> Kernel:
        return times(self.weights.scale, self.phi.lift.kernel_)

    @property
    def log_marginal_likelihood(self) -> float:
        return self.weights.log_marginal_likelihood

    def latent(self, X: Table) -> tuple[Array, Array]:
        """The mean and the variance of f, (m,) each."""
        parts = [self._latent(X[at]) for at in cuts(len(X), BLOCK_ROWS)]
        mean, variance = (np.concatenate(values) for values in zip(*parts, strict=True))
        return mean, variance

    def _latent(self, X: Table) -> tuple[Array, Array]:
        F = np.asarray(self.phi.features(X), np.float64)
        whole = self.phi.lift.kernel_.diag(X).astype(np.float64)
        return self.weights.latent(F, np.maximum(whole - np.square(F).sum(1), 0))

    def logs(self, X: Table) -> Array:
        """log p(y = -1) and log p(y = 1) at new rows, (m, 2)."""
        return _both(*self.latent(X))


@register("gp.OneVersusRest")
@dataclass(frozen=True, eq=False)
class OneVersusRest:
    """One posterior for two classes, or one for each of several against the rest."""

    plan: Plan
    each: tuple[LaplacePosterior | LaplaceFeatures, ...]

    must = dict(plan=Is("Plan"), each=Each(Is("LaplacePosterior", "LaplaceFeatures")))

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.each[0].reads

    @property
    def scaled_kernel(self) -> FittedKernel | list[FittedKernel]:
        """Of f: one for two classes, else a list, one a class."""
        found = [p.scaled_kernel for p in self.each]
        return found[0] if len(found) == 1 else found

    @property
    def log_marginal_likelihood(self) -> float:
        return float(sum(p.log_marginal_likelihood for p in self.each))

    def latent(self, X: Table) -> tuple[Array, Array]:
        """The means and variances of f, (m,) each, or (m, K) of several classes."""
        means, variances = zip(*(p.latent(X) for p in self.each), strict=True)
        if len(means) == 1:
            return means[0], variances[0]
        return np.column_stack(means), np.column_stack(variances)

    def logs(self, X: Table) -> Array:
        """log p of both classes, or of each of several against the rest, in float64."""
        logs = [p.logs(X) for p in self.each]
        return logs[0] if len(logs) == 1 else np.column_stack([v[:, 1] for v in logs])


def _both(mean: Array, variance: Array) -> Array:
    return np.column_stack([log_probability(-mean, variance), log_probability(mean, variance)])


def _value(F: Array, y: Array, w: Array, scale: float) -> float:
    return float(log_expit(y * (F @ w)).sum() - 0.5 * w @ w / scale)


def _newton(F: Array, y: Array, w: Array, scale: float) -> tuple[float, Array, Array]:
    """log p(y, w) less a constant, the factor of its curvature, and the step to where that would
    end."""
    by_f, W = curvature(F @ w, y)
    H = F.T @ (F * W[:, None])
    H.flat[:: len(w) + 1] += 1 / scale
    root = np.linalg.cholesky(H)
    slope = F.T @ by_f - w / scale
    step = solve_triangular(root, solve_triangular(root, slope, lower=True), lower=True, trans=1)
    return _value(F, y, w, scale), root, step
