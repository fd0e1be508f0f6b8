"""The posterior from the rows themselves, however equations with the kernel matrix are solved."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning

from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is
from mercer.kernels import Kernel
from mercer.kernels.params import substitute
from mercer.models.base import fields_alone
from mercer.models.gp.factor import best_scale
from mercer.models.gp.likelihood import marginal_likelihood
from mercer.models.gp.posterior import PLAIN, LeaveOneOut, Outputs, Posterior
from mercer.models.gp.quadrature import Determinant
from mercer.models.gp.samples import SampledFunctions, drawn, draws
from mercer.models.gp.sources import KernelPoints, found_in
from mercer.models.gp.systems import CholeskySystem, PointSystem, latent, system_of_before
from mercer.models.settings import FittedKernel
from mercer.plans import Plan
from mercer.store import register

MISSED = 1e-6  # of the largest y: what an interpolation may miss by rounding
NO_PLAN = Plan("exact", "")
EXACT_ALONE = "{} takes a model of points with a kernel and a factor; fit with via='exact'."


@register("gp.PointPosterior")
@dataclass(frozen=True, eq=False)
class PointPosterior:
    """f ~ GP(0, scale k) seen at points X as Y = f + N(0, noise), Y (n, q) in units of its own; coef
    = (scale K + noise)^-1 Y.

    The system knows the points, the noise and the scale, and how to solve.
    """

    system: PointSystem
    Y: Array
    coef: Array
    outputs: Outputs = PLAIN
    plan: Plan = NO_PLAN

    must = dict(
        system=Is("CholeskySystem", "IterativeSystem"),
        Y=Floats("n", "q"),
        coef=Floats("n", "q"),
        outputs=Is("Outputs"),
        plan=Is("Plan"),
    )
    __getstate__ = fields_alone

    def _laws(self) -> str | None:
        (n, q), units, points = self.Y.shape, len(self.outputs), len(self.system.noise)
        if units != q:
            return f"has targets of {q} outputs and units of {units}"
        return None if points == n else f"has {points} points and {n} targets"

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files in which every way was a class with fields of its own; before these the
        estimator knew the units."""
        q = values["Y"].shape[1]
        units = Outputs(np.zeros(q), np.ones(q), flat=False)
        return {
            "system": system_of_before(values),
            "Y": values["Y"],
            "coef": values["coef"],
            "outputs": values.get("outputs", units),
            "plan": values.get("plan", NO_PLAN),
        }

    # fitting
    @classmethod
    def of(
        cls, system: PointSystem, Y: Array, outputs: Outputs = PLAIN, plan: Plan = NO_PLAN
    ) -> PointPosterior:
        """Given Y at the points of the system."""
        return cls(system, Y, system.coefficients(Y), outputs, plan)

    def rescaled(self, least: float) -> PointPosterior:
        """Noise and scale times the factor that the likelihood likes best, of those with a noise >=
        least."""
        s = self.system
        by = best_scale(float(np.vdot(self.Y, self.coef)), self.Y.size, s.noise, least)
        system = replace(s, noise=s.noise * by, scale=s.scale * by)
        return replace(self, system=system, coef=self.coef / by)

    def warn_if_singular(self, stacklevel: int) -> None:
        """Where there is to be no noise, or none to speak of, the mean at the rows should be y."""
        o = self.outputs
        if o.noise is None:
            return
        given = np.broadcast_to(o.noise, (len(self.Y),)) / o.unit[0] ** 2
        if not (none := (given == 0) | (given < self.system.noise)).any():
            return
        apart = float(np.abs(self.latent(self.system.points.X) - self.Y)[none].max(initial=0))
        if apart > MISSED * np.abs(self.Y).max():
            warnings.warn(
                f"noise is {np.min(o.noise):g}, but the kernel is singular at the rows to rounding: f is a least-squares fit "
                f"that misses y by up to {apart * float(o.unit.max()):.2g}, and the likelihood means nothing; "
                "give a noise > 0, or noise='learn'.",
                LinAlgWarning,
                stacklevel=stacklevel,
            )

    # what is known
    @property
    def kernel(self) -> FittedKernel:
        """Without its scale."""
        return self.system.points.kernel

    @property
    def reads(self) -> int | None:
        return self.system.points.reads

    @property
    def scale(self) -> float:
        return self.system.scale

    @property
    def scaled_kernel(self) -> FittedKernel:
        o = self.outputs
        return self.system.points.scaled(self.scale * float(o.unit[0]) ** 2 if len(o) == 1 else 1.0)

    @property
    def noise_level(self) -> float:
        return float(self.system.noise.mean())

    @property
    def learnt_noise(self) -> float:
        return float(self.system.noise[0])

    @cached_property
    def determinant(self) -> Determinant:
        """Of scale K + noise, and its standard error."""
        return self.system.determinant(self.Y.shape[1])

    @cached_property
    def log_marginal_likelihood(self) -> float:
        """log p(y), summed over outputs."""
        n, q = self.Y.shape
        within = -0.5 * (
            float(np.vdot(self.Y, self.coef))
            + q * self.determinant.log
            + n * q * math.log(2 * math.pi)
        )
        return within - n * float(np.log(self.outputs.unit).sum())

    @property
    def log_marginal_likelihood_error(self) -> float:
        return 0.5 * len(self.outputs) * self.determinant.error

    @cached_property
    def left_out(self) -> LeaveOneOut:
        return self.system.left_out(self.Y, self.coef)

    # hyper-parameters
    @property
    def theta(self) -> dict[str, float]:
        """The logarithms of the kernel's parameters, of the noise (where it is one number) and of
        the scale, in the units of y; of one output."""
        kernel, unit = self._kernel_of_one("theta"), float(self.outputs.unit[0])
        noise = {"noise": self.learnt_noise * unit**2} if np.ptp(self.system.noise) == 0 else {}
        values = {**kernel.parameters(), **noise, "scale": self.scale * unit**2}
        return {name: math.log(v) for name, v in values.items() if v > 0}

    def likelihood_at(self, theta: dict[str, float]) -> tuple[float, Array]:
        """log p(y) at these logarithms, and its slopes by them."""
        kernel, unit = self._kernel_of_one("log_marginal_likelihood"), float(self.outputs.unit[0])
        at = substitute(kernel, lambda path, v: math.exp(theta[path]) if path in theta else v)
        noise = math.exp(theta["noise"]) / unit**2 if "noise" in theta else self.system.noise
        scale = math.exp(theta["scale"]) / unit**2
        found = marginal_likelihood(at, self.system.points.X, self.Y, noise, scale)
        names = (*kernel.parameters(), "noise", "scale")
        slopes = [g for name, g in zip(names, found.gradient, strict=True) if name in theta]
        return found.log - len(self.Y) * math.log(unit), np.array(slopes)

    def _kernel_of_one(self, asked: str) -> Kernel:
        if not isinstance(self.kernel, Kernel) or not isinstance(self.system, CholeskySystem):
            raise ValueError(EXACT_ALONE.format(asked))
        if len(self.outputs) > 1:
            raise ValueError(f"{asked} is of one output, and y has {len(self.outputs)}.")
        return self.kernel

    def of_term(self, term: Kernel) -> PointPosterior:
        """Of the part of f whose kernel is `term`, one of the terms of the kernel: f is the sum of
        such parts, which are independent before the data. Its prior mean is 0."""
        s = self.system
        if not isinstance(s, CholeskySystem):
            raise ValueError(EXACT_ALONE.format("term"))
        system = CholeskySystem(KernelPoints(term, s.points.X), s.noise, s.scale, known=s.L)
        zero = replace(self.outputs, mean=np.zeros(len(self.outputs)))
        return replace(self, system=system, outputs=zero)

    # asking
    def latent(self, Z: Table) -> Array:
        """The mean of f in its own units, (m, q)."""
        return latent(self.system, self.coef, Z)

    def mean(self, X: Table) -> Array:
        return self._mean(X.astype(np.float64)).astype(X.dtype)

    def _mean(self, Z: Table) -> Array:
        o = self.outputs
        return np.asarray(o.mean + o.unit * self.latent(Z))

    def variance(self, X: Table, noise: float = 0.0) -> Array:
        return self.system.variance(X.astype(np.float64), noise)

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        return self.system.covariance(X.astype(np.float64), noise)

    def sample(
        self,
        X: Table,
        count: int,
        rng: np.random.Generator,
        *,
        noise: float = 0.0,
        posterior: bool = True,
    ) -> Array:
        Z, o, s = X.astype(np.float64), self.outputs, self.system
        if posterior:
            return draws(self._mean(Z), s.covariance(Z, noise), o.unit, count, rng)
        C = s.points.prior(Z, s.scale) + noise * np.eye(len(Z))
        return draws(np.tile(o.mean, (len(Z), 1)), C, o.unit, count, rng)

    def functions(
        self, count: int, *, posterior: bool, n_features: int, seed: int
    ) -> SampledFunctions:
        f = drawn(self, count, posterior=posterior, n_features=n_features, seed=seed)
        return f.moved(self.outputs.mean, self.outputs.unit)

    # changes
    def with_points(self, X: Table, Y: Array) -> PointPosterior:
        """In O(n^2) a point where there is a factor, at the hyper-parameters as they are."""
        Z, s = self._in_units(Y, "partial_fit"), self.system
        noise = s.noise[0] if len(s.noise) else 0.0
        grown = s.grown(X.astype(np.float64), np.full(len(Z), noise))
        new = self._changed(grown, np.vstack([self.Y, Z]))
        new.warn_if_singular(stacklevel=5)
        return new

    def without_points(self, X: Table, Y: Array) -> PointPosterior:
        """Each once, in O(n^2) a point where there is a factor."""
        Z, n = self._in_units(Y, "forget"), len(self.Y)
        index = found_in(self.system.points, self.Y, X.astype(np.float64), Z)
        if len(index) == n:
            raise ValueError(f"cannot forget all {n} rows; leave at least one.")
        keep = np.setdiff1d(np.arange(n), index)
        return self._changed(self.system.shrunk(keep), self.Y[keep])

    def merged(self, other: Posterior) -> Posterior:
        raise ValueError(
            "models of points do not merge; give the rows to partial_fit, or fit both with via='features'."
        )

    def _changed(self, system: PointSystem, Y: Array) -> PointPosterior:
        """Of other rows, which the plan counts."""
        n = len(Y)
        plan = replace(self.plan, settings={**self.plan.settings, "rows": n}, bytes=8.0 * n * n)
        return replace(self, system=system, Y=Y, coef=system.solve(Y), plan=plan)

    def _in_units(self, Y: Array, name: str) -> Array:
        o = self.outputs
        if np.ndim(o.noise):  # type: ignore[arg-type]
            raise ValueError(
                f"noise has one number a row, which is for fit; give one number, or 'learn', for {name}."
            )
        if Y.shape[1] != len(o):
            raise ValueError(f"y has {Y.shape[1]} columns, {len(o)} expected, as in fit.")
        Z = (Y - o.mean) / o.unit
        if not np.abs(Z).max() < 1e150:
            raise ValueError(
                f"y is up to {np.abs(Y).max():.1g}, whose square is no floating-point number; leave such rows out."
            )
        return np.asarray(Z)
