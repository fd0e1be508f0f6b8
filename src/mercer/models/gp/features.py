"""The posterior over features: Bayesian linear regression from moments that add, subtract and
merge, or along leading directions."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Is, Number
from mercer.kernels import Kernel
from mercer.linalg.decompose import POWER_ROUNDS, Eigenpairs, eigen, ritz
from mercer.models.base import fields_alone
from mercer.models.gp.landmarks import STARVED, LandmarkResidual, RowWeights, is_projection
from mercer.models.gp.linear import (
    FeatureSolution,
    FeatureTargets,
    LinearLikelihood,
    WeightPosterior,
    check_told,
)
from mercer.models.gp.posterior import (
    LeaveOneOut,
    Outputs,
    Posterior,
    VarianceStarvationWarning,
    one_output,
)
from mercer.models.gp.problem import ProcessSettings
from mercer.models.gp.samples import SampledFunctions
from mercer.models.gp.space import NOISE, times
from mercer.models.maps import FittedMap
from mercer.models.settings import FittedKernel
from mercer.plans import Plan
from mercer.stats import Moments
from mercer.store import register

PROBE = 64  # rows on which a map is compared with its kernel


@register("gp.FeaturePosterior")
@dataclass(frozen=True, eq=False)
class FeaturePosterior:
    """y = prior mean + phi(x)'w + e, w ~ N(0, scale I), e ~ N(0, noise), by moments.

    `with_points` adds a whole batch, in the arrays of the batch: the value before stays what it
    was.
    """

    plan: Plan
    phi: FittedMap
    targets: FeatureTargets
    moments: Moments | None  # None where they did not fit
    approximate: bool  # whether phi phi' is not the kernel
    eps: float  # of the coarsest rows: what is rounding
    solved: FeatureSolution | None = None  # of the moments as they are, where it was asked for
    residual: LandmarkResidual | None = None  # where phi is a projection on landmarks

    must = dict(
        plan=Is("Plan"),
        phi=Is("FittedMap"),
        targets=Is("FeatureTargets"),
        moments=Is("Moments") | None,
        eps=Number(0),
        solved=Is("FeatureSolution") | None,
        residual=Is("LandmarkResidual") | None,
    )
    __getstate__ = fields_alone

    def _laws(self) -> str | None:
        D, m = self.phi.width, self.moments
        if m is None and self.solved is None:
            return "has neither moments nor a solution"
        if m is not None and len(m.shift) != D + 1:
            return f"has moments that are not of {D} features and y"
        if self.residual is not None and not is_projection(self.phi):
            return "has landmarks that its map does not have"
        return (
            None
            if self.solved is None or len(self.solved.posterior.coef) == D
            else f"has a solution that is not of {D} features"
        )

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files in which landmarks had a class of their own."""
        names = ("restore", "row_weights")
        residual = LandmarkResidual(*(values.pop(name) for name in names))
        return {**values, "residual": residual}

    # fitting
    @classmethod
    def begun(cls, s: ProcessSettings, phi: FittedMap, X: Table, targets: FeatureTargets) -> Self:
        """Before any row was summed."""
        residual = LandmarkResidual(s.restore_variance) if is_projection(phi) else None
        starved = residual is None and approximate(phi, Table(X.data))
        eps = float(np.finfo(X.dtype).eps)
        return cls(Plan("features", ""), phi, targets, None, starved, eps, residual=residual)

    def fitted(self, s: ProcessSettings, X: Table, y: Array) -> Self:
        """The moments of [phi, y] in one pass."""
        z = self.targets.in_units(y)
        targets = replace(self.targets, spread=float(z.var()))
        residual, weight = self.residual, None
        if residual is not None:
            residual, weight = residual.weighing(s, self.phi, targets, X, z)
        weight = s.precision(len(y)) if weight is None else weight
        moments = self.phi.moments(X, np.append(self.phi.shift(X), 0.0), z, weight)
        why = f"{self.phi.width:,} features: their D x D moments fit, and tell mean, variance and evidence in one pass"
        plan = self.phi.plan(len(y), "features", why, 1)
        made = replace(self, targets=targets, residual=residual, moments=moments, plan=plan)
        return replace(made, solved=made.solution)

    def by_passes(self, s: ProcessSettings, X: Table, y: Array) -> Self:
        """Along as many leading directions as memory lets, without moments."""
        D, n = self.phi.width, len(y)
        if s.precision(n) is not None:
            raise ValueError(
                "noise with one number a row needs moments, which exceed memory_limit; raise it, or give one number."
            )
        r = int(min(n, max(s.memory // (64 * D), 1)))
        spectrum = ritz(lambda V: self.phi.covariance_product(X, np.zeros(D), V), D, r).above(
            self._rounding()
        )
        z = self.targets.in_units(y)
        new, mean = (
            replace(self, targets=replace(self.targets, spread=float(z.var()))),
            self.targets.mean_in_units(float(z.mean())),
        )
        z -= mean
        b = sum((F.T @ z[at] for at, F in self.phi.batches(X)), np.zeros(D))
        solved = new._from(spectrum, spectrum.vectors.T @ b, float(z @ z), n, mean)
        check_told(spectrum, b, solved.noise / solved.scale, float(z @ z), s.memory_limit)
        why = f"{D:,} features: D x D moments exceed the memory limit; the posterior is that along the {r} leading directions"
        return replace(
            new, solved=solved, plan=self.phi.plan(n, "range finder", why, POWER_ROUNDS + 3)
        )

    def streamed(self, X: Table, y: Array) -> Self:
        """Of the first batch of a stream."""
        moments = self.phi.moments(X, np.append(self.phi.shift(X), 0.0), self.targets.in_units(y))
        return replace(self, moments=moments)._counted()

    def _counted(self) -> Self:
        assert self.moments is not None
        why = f"a stream: {self.phi.width:,} features of a map that its first batch fixed"
        return replace(self, plan=self.phi.plan(self.moments.count, "features", why, 1))

    # changes
    def with_points(self, X: Table, Y: Array) -> Self:
        if np.ndim(self.targets.noise):  # type: ignore[arg-type]
            raise ValueError(
                "noise has one number a row, which is for fit; give one number, or 'learn', in a stream."
            )
        if self.moments is None:
            raise ValueError("partial_fit cannot continue a fit by passes; raise memory_limit.")
        z = self.targets.in_units(one_output(Y))
        residual, weight = self._taking(X, z, 1)
        total = self.moments.joined(self.phi.moments(X, self.moments.shift, z, weight))
        eps = max(self.eps, float(np.finfo(X.dtype).eps))
        return replace(self, residual=residual, moments=total, eps=eps, solved=None)._counted()

    def without_points(self, X: Table, Y: Array) -> Self:
        if np.ndim(self.targets.noise) or self.moments is None:  # type: ignore[arg-type]
            raise ValueError(
                "forget needs moments that subtract: give one noise, or 'learn', and a larger memory_limit."
            )
        z = self.targets.in_units(one_output(Y))
        residual, weight = self._taking(X, z, -1)
        left = self.moments - self.phi.moments(X, self.moments.shift, z, weight)
        if left.count < 1 or not left.possible:
            raise ValueError(
                f"cannot forget {len(Y)} rows of {self.moments.count}; give rows that were seen, not all."
            )
        return replace(self, residual=residual, moments=left, solved=None)._recounted()

    def _taking(
        self, X: Table, z: Array, sign: int
    ) -> tuple[LandmarkResidual | None, Array | None]:
        """The residual with rows that come later, or go, and what they weigh."""
        if self.residual is None:
            return None, None
        return self.residual.taking(self.phi, X, z, sign)

    def merged(self, other: Posterior) -> Self:
        if not isinstance(other, FeaturePosterior):
            raise ValueError(
                "models of points do not merge; give the rows to partial_fit, or fit both with via='features'."
            )
        if self.phi.fingerprint != other.phi.fingerprint:
            raise ValueError(
                "the models have different feature maps, whose statistics do not add; fit both with the same kernel, via and random_state."
            )
        if self.moments is None or other.moments is None:
            raise ValueError(
                "merge needs the statistics of both models, and one was fitted by passes; raise memory_limit."
            )
        if np.ndim(self.targets.noise) or np.ndim(other.targets.noise):  # type: ignore[arg-type]
            raise ValueError(
                "noise has one number a row, whose weights do not add; give one number, or 'learn', to merge."
            )
        if self.row_weights is not None or other.row_weights is not None:
            raise ValueError(
                "rows over landmarks weigh by the noise learnt in fit, which differs; give the rows to partial_fit."
            )
        total = self.moments + other._moments_in(self.targets)
        return replace(self, moments=total, eps=max(self.eps, other.eps), solved=None)._recounted()

    def _recounted(self) -> Self:
        """The plan, with the rows that there are now."""
        assert self.moments is not None
        return replace(
            self,
            plan=self.phi.plan(
                self.moments.count, self.plan.way, self.plan.why, self.plan.passes or 1
            ),
        )

    def _moments_in(self, t: FeatureTargets) -> Moments:
        """The moments with y in other units."""
        assert self.moments is not None
        m, factor, mine = self.moments, np.ones(len(self.moments.shift)), self.targets
        factor[-1] = mine.unit / t.unit
        shift = m.shift * factor
        shift[-1] += (mine.origin - t.origin) / t.unit
        S, peak = m.S * np.outer(factor, factor), m.peak * max(1, factor[-1] ** 2)
        return replace(m, shift=shift, s=m.s * factor, S=S, peak=peak)

    # solving
    @cached_property
    def solution(self) -> FeatureSolution:
        """Eigenvectors of moments about zero (phi) and prior mean (y), numbers, the posterior."""
        if self.solved is not None:
            return self.solved
        assert self.moments is not None
        D, m = self.phi.width, self.moments
        w = self.row_weights
        seen = float(m.mean[D]) if w is None else w.total / m.count
        mean = self.targets.mean_in_units(seen)
        S = m.about(np.append(np.zeros(D), mean)).S
        s = eigen(S[:D, :D], m.count).above(self._rounding())
        found = self._from(s, s.vectors.T @ S[:D, D], float(S[D, D]), m.count, mean)
        self._warn_if_starved(found)
        return found

    def _rounding(self) -> float:
        return self.eps * math.sqrt(self.phi.width)

    def _from(
        self, s: Eigenpairs, beta: Array, square: float, n: int, mean: float
    ) -> FeatureSolution:
        """At the noise and scale that are given, or of the largest likelihood; everything in the
        units of y again."""
        e, t, w = LinearLikelihood(n, s.values, beta, square), self.targets, self.row_weights
        floor = NOISE[0] * self._variance_of_y() or np.finfo(float).eps * (
            square / n or mean**2 or 1.0
        )
        held = None if t.held is None else tuple(v / t.unit**2 for v in t.held)
        if w is None:
            level, scale = e.best(floor, 1 / self._rounding()) if held is None else held
            log, noise = e.log(level, scale), level
        else:
            level, scale, log = w.best(e, floor, None if held is None else held[1])
            noise = w.ratio * scale
        p = WeightPosterior.of(s, beta, level, scale).in_units(t.unit)
        log -= n * math.log(t.unit)
        return FeatureSolution(p, noise * t.unit**2, p.scale, mean * t.unit + t.origin, log)

    def _variance_of_y(self) -> float:
        """In its unit."""
        if self.moments is None or self.row_weights is not None:
            return self.targets.spread
        m = self.moments
        return max(float(m.S[-1, -1] / m.n - (m.s[-1] / m.n) ** 2), 0.0)

    def _warn_if_starved(self, found: FeatureSolution) -> None:
        left = 1 - found.posterior.effective / self.phi.width
        if self.approximate and left < STARVED:
            warnings.warn(
                f"the data tell {found.posterior.effective:.0f} of the map's {self.phi.width:,} directions, so that far "
                f"from the data the variance is about {left:.2g} of the right one; give more features, or use via='landmarks'.",
                VarianceStarvationWarning,
                stacklevel=5,
            )

    # what is known
    @property
    def row_weights(self) -> RowWeights | None:
        """What rows weigh; None where all weigh the same."""
        return None if self.residual is None else self.residual.row_weights

    @property
    def outputs(self) -> Outputs:
        return Outputs(
            np.array([self.solution.prior_mean]), np.ones(1), self.targets.flat, self.targets.noise
        )

    @property
    def scaled_kernel(self) -> FittedKernel:
        kernel = self.phi.kernel
        return times(self.solution.scale, kernel) if isinstance(kernel, Kernel) else kernel

    @property
    def scale(self) -> float:
        return self.solution.scale

    @property
    def noise_level(self) -> float:
        return (
            self.solution.noise
            if self.targets.noise is None
            else float(np.mean(self.targets.noise))
        )

    @property
    def learnt_noise(self) -> float:
        return self.solution.noise

    @property
    def log_marginal_likelihood(self) -> float:
        return self.solution.log_marginal_likelihood

    @property
    def log_marginal_likelihood_error(self) -> float:
        return 0.0

    @property
    def reads(self) -> int | None:
        return self.phi.reads

    @property
    def left_out(self) -> LeaveOneOut:
        raise AttributeError("leaving rows out needs the points themselves; fit with via='exact'.")

    # asking
    def mean(self, X: Table) -> Array:
        return self.phi.linear(X, self.solution.posterior.coef, self.solution.prior_mean)[:, None]

    def variance(self, X: Table, noise: float = 0.0) -> Array:
        out, p = np.full(len(X), noise), self.solution.posterior
        for at, F in self.phi.batches(X):
            out[at] += p.variance(F)
            if self.residual is not None:
                self.residual.add_variance(out[at], self.phi, X[at], F, p.scale)
        return out

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        F, p = self.phi.features(X), self.solution.posterior
        out = np.asarray(p.covariance(F) + noise * np.eye(len(F)))
        if self.residual is not None:
            self.residual.add_covariance(out, self.phi, X, p.scale)
        return out

    def sample(
        self,
        X: Table,
        count: int,
        rng: np.random.Generator,
        *,
        noise: float = 0.0,
        posterior: bool = True,
    ) -> Array:
        out = self.phi.linear(X, self._weights(count, rng, posterior), self.solution.prior_mean)
        if self.residual is not None:
            self.residual.add_draws(out, self.phi, X, self.scale, rng)
        return np.asarray(out + math.sqrt(noise) * rng.standard_normal(out.shape), X.dtype)[:, None]

    def _weights(self, count: int, rng: np.random.Generator, posterior: bool) -> Array:
        p = self.solution.posterior
        return (p if posterior else WeightPosterior.prior(len(p.coef), p.scale)).draw(count, rng)

    def functions(
        self, count: int, *, posterior: bool, n_features: int, seed: int
    ) -> SampledFunctions:
        W = self._weights(count, np.random.default_rng(seed), posterior)
        within = SampledFunctions(self.phi.lift, W, None, (self.solution.prior_mean,))
        if self.residual is None:
            return within
        return self.residual.beside(within, self.phi, self.scale, n_features=n_features, seed=seed)


def approximate(phi: FittedMap, X: Table) -> bool:
    """Whether phi phi' and the kernel differ on some of the rows."""
    rows, kernel = X[:: max(1, len(X) // PROBE)][:PROBE], getattr(phi.lift, "kernel_", None)
    if not isinstance(kernel, Kernel):
        return False
    F, K = phi.features(rows), kernel(rows)
    return bool(np.abs(F @ F.T - K).max() > 3 * np.sqrt(np.finfo(F.dtype).eps) * np.abs(K).max())
