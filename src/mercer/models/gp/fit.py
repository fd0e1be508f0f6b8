"""From settings and rows to a fitted Gaussian process: hyper-parameters are learnt, then the plan's
way is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from mercer import methods
from mercer.gpu.devices import without
from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.kernels.ways import value_ways
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.lifts.widths import default_features
from mercer.models.gp.factor import few_threads
from mercer.models.gp.features import FeaturePosterior
from mercer.models.gp.likelihood import way_of
from mercer.models.gp.linear import (
    FeatureSolution,
    FeatureTargets,
    WeightPosterior,
    moments_fit,
    noise_and_scale,
)
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.posterior import Outputs, one_output
from mercer.models.gp.problem import ProcessSettings, choose
from mercer.models.gp.quadrature import estimated_likelihood
from mercer.models.gp.samples import draws
from mercer.models.gp.search import FittedHyperparameters, Measure, learn, refined, unlearnt
from mercer.models.gp.sources import GivenPoints, KernelPoints
from mercer.models.gp.space import NOISE, SearchSpace, space
from mercer.models.gp.sparse import fitc, vfe
from mercer.models.gp.starts import defaults, magnitude, starts
from mercer.models.gp.systems import CholeskySystem, IterativeSystem
from mercer.models.maps import FittedMap, asked, fitted_map, kernel_lift
from mercer.ops.philox import Stream, permutation
from mercer.plans import Plan
from mercer.store import register

MIN_NOISE = 1e-12  # in shares of scale k(x, x): below it there is none
MAX_POINTS = 512  # landmarks over which all rows are learnt from: a step takes O(n m^2)


# what is learnt
@register("gp.Candidate")
@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel for landmarks, and the rows and steps that it was learnt by.

    held : noise and scale in the units of y, where the search has them from what was said, else
    None
    """

    kernel: Kernel
    rows: int
    steps: int
    held: tuple[float, float] | None = None

    def told(self, n: int) -> dict[str, Any]:
        """What the plan says of it."""
        return {"kernel learnt from": min(n, self.rows), "steps": self.steps} if self.steps else {}


@dataclass(frozen=True, eq=False)
class Learning:
    """The search for kernel, noise and scale by the likelihood: of some rows, then of all. Rows are
    in float64, targets in their units."""

    s: ProcessSettings
    X: Table
    Y: Array  # (n, q), in the units of y
    outputs: Outputs

    @cached_property
    def Z(self) -> Array:
        return np.asarray((self.Y - self.outputs.mean) / self.outputs.unit)

    @cached_property
    def noise(self) -> Array | None:
        return self.s.noises(len(self.Y), self.outputs)

    @property
    def _unit(self) -> float:
        return float(self.outputs.unit[0])

    @property
    def _level(self) -> float | None:
        """The noise that is given, in the units of y."""
        return None if self.noise is None else float(self.noise.mean() * self.outputs.unit[0] ** 2)

    def space(self, kernel: Kernel) -> SearchSpace:
        """Of a kernel at these rows; ValueError where names are none of its parameters."""
        size = magnitude(kernel, self.X)
        return space(
            kernel, self.s.spec, self._level, scaled=self.s.learns, unit=self._unit, size=size
        )

    def search(self, way: str) -> FittedHyperparameters:
        """By as many rows as the way takes."""
        s, seed, kernel = self.s, seed_of(self.s.random_state), self.s.kernel_at(self.X)
        if kernel is not None and self.noise is not None and not (s.learns or s.asks):
            return FittedHyperparameters(kernel, float(self.noise.mean()), 1.0, 0.0, 0)
        begin = starts(
            kernel,
            self.X,
            s.spec,
            self._level,
            scale=s.learns,
            unit=self._unit,
            restarts=s.n_restarts,
            seed=seed,
            rough=way == "exact",
        )
        if not begin[0].space.size or not np.any(self.Z):
            return unlearnt(begin[0].space, len(self.Z))
        with few_threads(len(self.Z)):
            return learn(begin, self.X, self.Z, self.noise, seed=seed, most=s.search_rows(way))

    def refined(self, found: FittedHyperparameters, measure: Measure) -> FittedHyperparameters:
        """A few steps more, by a measure of all rows."""
        s = self.space(found.kernel)
        return refined(found, s, self.X, self.Z, self.noise, measure=measure) if s.size else found

    def refined_by_products(self, found: FittedHyperparameters) -> FittedHyperparameters:
        gpu = None if self.s.no_gpu(self.X) else self.s.gpu
        return self.refined(found, partial(estimated_likelihood, memory=self.s.memory, gpu=gpu))

    # for landmarks
    def candidates(self, given: Kernel | None) -> list[Candidate]:
        """The kernel from some of the rows, and from there by all of them; noise and scale come
        later."""
        s, n = self.s, len(self.Y)
        if given is not None:
            free = self.space(given)
            if free.profiled and free.size == 1 and np.any(self.Z):
                return [
                    Candidate(given, 0, 0)
                ]  # its noise and scale are those of all rows over the landmarks
        most = s.search_rows("landmarks") or n
        found = self.search("landmarks")
        found.warn_of_bounds(s.spec.bounds, stacklevel=8)
        few = self._candidate(found, most)
        if not found.steps or n <= most or isinstance(s.learn_rows, int):
            return [few]
        measure = fitc if s.restore_variance and self.noise is None else vfe
        more = self.refined(found, partial(measure, points=self._points(found.kernel)))
        return [few, self._candidate(more, n)]

    def _candidate(self, found: FittedHyperparameters, rows: int) -> Candidate:
        free, unit = found.profiled and np.any(self.Z), self._unit
        return Candidate(
            found.kernel,
            rows,
            found.steps,
            None if free else (found.noise * unit**2, found.scale * unit**2),
        )

    def _points(self, kernel: Kernel) -> Table:
        """The landmarks over which all rows are learnt from, chosen from as many rows as memory
        lets."""
        s, X = self.s, self.X
        m = min(asked(s.method) or default_features(len(X)), MAX_POINTS)
        most = max(m, int(s.memory // (16 * m)))
        some = permutation(Stream(seed_of(s.random_state)), len(X))[:most]
        rows = X if most >= len(X) else X[np.sort(some)]
        return Table(Nystrom(kernel, m, random_state=s.random_state).fit(rows).landmarks_)


# the way
def fit(s: ProcessSettings, X: Table, Y: Array, flat: bool) -> PointPosterior | FeaturePosterior:
    """One of the posteriors, which answer the same questions."""
    plan = choose(len(Y), Y.shape[1], s, "" if s.precomputed else s.no_gpu(X))
    plan = replace(plan, why=plan.why + without(s.device))
    if s.precomputed:
        return of_gram(s, X, Y, flat, plan)
    if plan.way in ("exact", "iterative"):
        return of_points(s, X, Y, flat, plan)
    if plan.way == "landmarks" and not s.over_landmarks:  # too many rows to factor
        s = replace(s, method=methods.Landmarks())
    return over_features(s, X, Y, flat, plan)


# points
def of_points(s: ProcessSettings, X: Table, Y: Array, flat: bool, plan: Plan) -> PointPosterior:
    """The hyper-parameters, then the posterior at the rows."""
    X = X.astype(np.float64)
    n, problem = len(Y), Learning(s, X, Y, s.outputs(Y, s.kernel_at(X), flat))
    found, most = problem.search(plan.way), s.search_rows(plan.way) or 0
    refine = plan.way == "iterative" and s.all_rows and found.steps > 0 and n > most
    if refine:
        found = problem.refined_by_products(found)
    X = Table(X.data)
    each = np.full(n, found.noise) if problem.noise is None else problem.noise
    each = np.maximum(each, MIN_NOISE * found.scale * float(np.abs(found.kernel.diag(X)).max()))
    learnt = n if s.all_rows else min(n, s.search_rows(plan.way) or n)
    settings: dict[str, Any] = {"rows": n, "learnt from": learnt, "steps": found.steps}
    settings |= {"likelihoods": way_of(found.kernel, X)} if learnt == n and found.steps else {}
    settings |= {"on a bound": ", ".join(found.at_bounds)} if found.at_bounds else {}
    settings |= value_ways(found.kernel, X)
    found.warn_of_bounds(s.spec.bounds, stacklevel=6)
    plan = Plan(plan.way, plan.why, settings, plan.bytes, plan.flops, rejected=plan.rejected)
    system = (KernelPoints(found.kernel, X), each, found.scale)
    exact, device = plan.way == "exact", "cpu" if s.no_gpu(X) else s.device
    p = PointPosterior.of(
        CholeskySystem(*system)
        if exact
        else IterativeSystem(*system, memory=s.memory, device=device),
        problem.Z,
        problem.outputs,
        plan,
    )
    if not (exact or refine) and n > most and found.steps > 0 and found.profiled:
        p = p.rescaled(NOISE[0])
    p.warn_if_singular(stacklevel=6)
    return p


def of_gram(s: ProcessSettings, X: Table, Y: Array, flat: bool, plan: Plan) -> PointPosterior:
    """X is the matrix; noise and scale alone are learnt."""
    if s.spec.told or s.spec.tied or s.spec.kept or s.spec.fixed is True:
        raise ValueError(
            "fixed, tied, bounds and priors are for a kernel, and a Gram matrix has no parameters; leave them out."
        )
    K = np.asarray(X.data)
    if not np.allclose(K, K.T, rtol=1e-4, atol=1e-5 * float(np.abs(K).max())):
        raise ValueError(
            "X must be a symmetric Gram matrix with kernel='precomputed'; use (K + K.T) / 2 if that is rounding."
        )
    K, outputs, n, scale = K.astype(np.float64), s.outputs(Y, None, flat), len(Y), 1.0
    Z, noise = (Y - outputs.mean) / outputs.unit, s.noises(n, outputs)
    if noise is None:
        level, scale = noise_and_scale(K, Z) if np.any(Z) else (1 / (n + 1),) * 2
        noise = np.full(n, level)
    plan = replace(plan, settings={"rows": n, "learnt from": n})
    p = PointPosterior.of(CholeskySystem(GivenPoints(K), noise, scale), Z, outputs, plan)
    p.warn_if_singular(stacklevel=6)
    return p


# features
def over_features(
    s: ProcessSettings, X: Table, Y: Array, flat: bool, plan: Plan
) -> FeaturePosterior:
    """Over the map of each kernel that was found; that of the largest likelihood of all rows
    stays."""
    found, y = candidates(s, X, Y, flat), one_output(Y)
    fitted = [(one(s, X, y, flat, c), c) for c in found]
    p, c = (
        max(fitted, key=lambda pair: pair[0].log_marginal_likelihood)
        if len(found) > 1
        else fitted[0]
    )
    if not isinstance(s.method, methods.Landmarks):
        return p
    made, weighs = p.plan, p.row_weights is not None
    why = f"{plan.why}: {made.settings['n_features']:,} landmarks stand for {made.settings['rows']:,} rows"
    settings = {**made.settings, **({} if c is None else c.told(len(y)))}
    settings |= {"noise of a row": "with what landmarks leave out of it"} if weighs else {}
    return replace(
        p, plan=Plan("landmarks", why, settings, made.bytes, made.flops, made.passes, plan.rejected)
    )


def candidates(s: ProcessSettings, X: Table, Y: Array, flat: bool) -> Sequence[Candidate | None]:
    """What was learnt for landmarks before the map is made; None where the map is that of the
    kernel as given."""
    if not s.over_landmarks:
        if s.asks:
            raise ValueError(
                "over features noise and scale alone are learnt; leave out fixed, tied, bounds, priors, or use landmarks."
            )
        s.check_noise_over_features()
        return [None]
    s.check_noise_over_features()
    given = s.kernel_at(X)
    problem = Learning(s, X.astype(np.float64), Y, s.outputs(Y, given, flat))
    if s.learns:
        return problem.candidates(given)
    if s.asks:
        problem.space(cast(Kernel, given))  # refuses names that are none
    return [None]


def one(
    s: ProcessSettings, X: Table, y: Array, flat: bool, c: Candidate | None
) -> FeaturePosterior:
    """Over the map of one kernel: by moments where they fit, else by passes."""
    if c is None:
        phi = map_of(s, X, y)
    else:
        size = asked(s.method) or default_features(len(X))
        phi = FittedMap.fit(kernel_lift(c.kernel, size, s.method, s.random_state, X), X, s.memory)
    start = begun(s, phi, X, y, flat, None if c is None else c.held)
    rows = Table(X.data)
    return (
        start.fitted(s, rows, y)
        if moments_fit(phi.width, s.memory)
        else start.by_passes(s, rows, y)
    )


def map_of(
    s: ProcessSettings,
    X: Table,
    y: Array | None = None,
    *,
    stream: bool = False,
    count: int | None = None,
) -> FittedMap:
    """The map that was asked for, fitted to these rows, or to some of so many."""
    return fitted_map(
        s.kernel,
        s.lift,
        s.method,
        X,
        seed=s.random_state,
        memory=s.memory,
        stream=stream,
        y=y,
        count=count,
    )


def begun(
    s: ProcessSettings,
    phi: FittedMap,
    X: Table,
    y: Array,
    flat: bool,
    held: tuple[float, float] | None = None,
) -> FeaturePosterior:
    """A posterior over this map, before any row was summed."""
    return FeaturePosterior.begun(s, phi, X, FeatureTargets.of(s, y, held, flat))


def begin(s: ProcessSettings, X: Table, Y: Array, flat: bool) -> FeaturePosterior:
    """Of the first batch of a stream, which fixes the map."""
    s.check_noise_over_features()
    y, phi = one_output(Y), map_of(s, X, Y, stream=True)
    start = begun(s, phi, X, y, flat)
    if not moments_fit(phi.width, s.memory):
        raise ValueError(
            f"{phi.width:,} features exceed memory_limit in a stream; use fewer, raise it, or fit at once."
        )
    return start.streamed(Table(X.data), y)


# before any row was seen
def prior_draws(
    s: ProcessSettings, X: Table, count: int, rng: np.random.Generator, of: str, *, points: bool
) -> Array:
    """Draws of the prior at these rows, (n, 1, count), with the kernel as given (over features with
    the map of these rows)."""
    noise = 0.0 if s.noise is None or of == "f" else float(np.mean(s.noise))
    mean = 0.0 if isinstance(s.prior, str) else s.prior
    if not points:
        phi = map_of(s, X)
        start: Any = begun(replace(s, noise=None), phi, X, np.zeros(1), True)
        solved = FeatureSolution(WeightPosterior.prior(phi.width, 1.0), noise, 1.0, mean, 0.0)
        return np.asarray(
            replace(start, solved=solved).sample(
                Table(X.data), count, rng, noise=noise, posterior=False
            )
        )
    kernel = s.kernel_at(X) or defaults(X)[0]
    C = kernel(Table(X.astype(np.float64).data)) + noise * np.eye(len(X))
    return draws(np.full((len(X), 1), mean), C, np.ones(1), count, rng)


def prior_moments(
    s: ProcessSettings, X: Table, of: str, *, points: bool, full: bool
) -> tuple[Array, Array]:
    """The mean (n,) and the variance, (n,) or of all pairs (n, n), of the same prior."""
    if of not in ("y", "f"):
        raise ValueError(f"of must be 'y' or 'f' (without the noise), got {of!r}.")
    noise = 0.0 if s.noise is None or of == "f" else float(np.mean(s.noise))
    mean = np.full(len(X), 0.0 if isinstance(s.prior, str) else s.prior, np.float64)
    if not points:
        F = map_of(s, X).features(Table(X.data)).astype(np.float64)
        return mean, F @ F.T + noise * np.eye(len(X)) if full else np.square(F).sum(1) + noise
    kernel, Z = s.kernel_at(X) or defaults(X)[0], Table(X.astype(np.float64).data)
    return mean, (
        kernel(Z) + noise * np.eye(len(X)) if full else np.asarray(kernel.diag(Z)) + noise
    )
