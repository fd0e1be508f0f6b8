"""From settings and rows to a fitted Gaussian process, by the way that the plan chooses."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from mercer import methods
from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.lifts import KernelLift
from mercer.models.gp.exact import ExactPosterior
from mercer.models.gp.features import FeaturePosterior, moments_fit, one_output
from mercer.models.gp.gram import GramPosterior, noise_and_scale
from mercer.models.gp.iterative import IterativePosterior
from mercer.models.gp.landmarks import LandmarkPosterior, is_projection
from mercer.models.gp.learning import Candidate, Learning
from mercer.models.gp.linear import FeatureSolution, FeatureTargets, WeightPosterior
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.problem import ProcessSettings, choose
from mercer.models.gp.samples import draws
from mercer.models.gp.space import NOISE
from mercer.models.gp.starts import defaults
from mercer.models.maps import FittedMap, asked, default_features, fitted_map
from mercer.plans import Plan

MIN_NOISE = 1e-12  # in shares of scale k(x, x): below it there is none


def fit(s: ProcessSettings, X: Table, Y: Array, flat: bool) -> PointPosterior | FeaturePosterior:
    """One of the posteriors, which answer the same questions."""
    plan = choose(len(Y), Y.shape[1], s)
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
    settings = {"rows": n, "learnt from": learnt, "steps": found.steps}
    plan = Plan(plan.way, plan.why, settings, plan.bytes, plan.flops, rejected=plan.rejected)
    given = (found.kernel, X, problem.Z, each, found.scale, problem.outputs, plan)
    if plan.way == "exact":
        p: PointPosterior = ExactPosterior.of(*given)
    else:
        few = n > most and found.steps > 0 and not refine
        p = IterativePosterior.of(*given, memory=s.memory, rescale=few and found.profiled, least=NOISE[0])
    p.warn_if_singular(stacklevel=6)
    return p


def of_gram(s: ProcessSettings, X: Table, Y: Array, flat: bool, plan: Plan) -> GramPosterior:
    """X is the matrix; noise and scale alone are learnt."""
    if s.spec.told or s.spec.tied or s.spec.kept or s.spec.fixed is True:
        raise ValueError("fixed, tied, bounds and priors are for a kernel, and a Gram matrix has no parameters; leave them out.")
    K = np.asarray(X.data)
    if not np.allclose(K, K.T, rtol=1e-4, atol=1e-5 * float(np.abs(K).max())):
        raise ValueError("X must be a symmetric Gram matrix with kernel='precomputed'; use (K + K.T) / 2 if that is rounding.")
    K, outputs, n, scale = K.astype(np.float64), s.outputs(Y, None, flat), len(Y), 1.0
    Z, noise = (Y - outputs.mean) / outputs.unit, s.noises(n, outputs)
    if noise is None:
        level, scale = noise_and_scale(K, Z) if np.any(Z) else (1 / (n + 1),) * 2
        noise = np.full(n, level)
    plan = replace(plan, settings={"rows": n, "learnt from": n})
    p = GramPosterior.of("precomputed", Table(K), Z, noise, scale, outputs, plan)
    p.warn_if_singular(stacklevel=6)
    return p


# features
def over_features(s: ProcessSettings, X: Table, Y: Array, flat: bool, plan: Plan) -> FeaturePosterior:
    """Over the map of each kernel that was found; that of the largest likelihood of all rows stays."""
    found, y = candidates(s, X, Y, flat), one_output(Y)
    fitted = [(one(s, X, y, flat, c), c) for c in found]
    p, c = max(fitted, key=lambda pair: pair[0].log_marginal_likelihood) if len(found) > 1 else fitted[0]
    if not isinstance(s.method, methods.Landmarks):
        return p
    made, weighs = p.plan, isinstance(p, LandmarkPosterior) and p.row_weights is not None
    why = f"{plan.why}: {made.settings['n_features']:,} landmarks stand for {made.settings['rows']:,} rows"
    settings = {**made.settings, **({} if c is None else c.told(len(y)))}
    settings |= {"noise of a row": "with what landmarks leave out of it"} if weighs else {}
    return replace(p, plan=Plan("landmarks", why, settings, made.bytes, made.flops, made.passes, plan.rejected))


def candidates(s: ProcessSettings, X: Table, Y: Array, flat: bool) -> Sequence[Candidate | None]:
    """What was learnt for landmarks before the map is made; None where the map is that of the kernel as given."""
    if not s.over_landmarks:
        if s.asks:
            raise ValueError("over features noise and scale alone are learnt; leave out fixed, tied, bounds, priors, or use landmarks.")
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


def one(s: ProcessSettings, X: Table, y: Array, flat: bool, c: Candidate | None) -> FeaturePosterior:
    """Over the map of one kernel: by moments where they fit, else by passes."""
    if c is None:
        phi = map_of(s, X)
    else:
        size = asked(s.method) or default_features(len(X))
        phi = FittedMap.fit(KernelLift(c.kernel, size, method=s.method, random_state=s.random_state), X, s.memory)
    start = begun(s, phi, X, y, flat, None if c is None else c.held)
    rows = Table(X.data)
    return start.fitted(s, rows, y) if moments_fit(phi.width, s.memory) else start.by_passes(s, rows, y)


def map_of(s: ProcessSettings, X: Table, *, stream: bool = False) -> FittedMap:
    """The map that was asked for, fitted to these rows."""
    return fitted_map(s.kernel, s.lift, s.method, X, seed=s.random_state, memory=s.memory, stream=stream)


def begun(s: ProcessSettings, phi: FittedMap, X: Table, y: Array, flat: bool, held: tuple[float, float] | None = None) -> FeaturePosterior:
    """A posterior over this map, before any row was summed."""
    kind = LandmarkPosterior if is_projection(phi) else FeaturePosterior
    return kind.begun(s, phi, X, FeatureTargets.of(s, y, held, flat))


def begin(s: ProcessSettings, X: Table, Y: Array, flat: bool) -> FeaturePosterior:
    """Of the first batch of a stream, which fixes the map."""
    s.check_noise_over_features()
    y, phi = one_output(Y), map_of(s, X, stream=True)
    start = begun(s, phi, X, y, flat)
    if not moments_fit(phi.width, s.memory):
        raise ValueError(f"{phi.width:,} features exceed memory_limit in a stream; use fewer, raise it, or fit at once.")
    return start.streamed(Table(X.data), y)


# before any row was seen
def prior_draws(s: ProcessSettings, X: Table, count: int, rng: np.random.Generator, of: str, *, points: bool) -> Array:
    """Draws of the prior at these rows, (n, 1, count), with the kernel as given (over features with the map of these rows)."""
    noise = 0.0 if s.noise is None or of == "f" else float(np.mean(s.noise))
    mean = 0.0 if isinstance(s.prior, str) else s.prior
    if not points:
        phi = map_of(s, X)
        start: Any = begun(replace(s, noise=None), phi, X, np.zeros(1), True)
        solved = FeatureSolution(WeightPosterior.prior(phi.width, 1.0), noise, 1.0, mean, 0.0)
        return np.asarray(replace(start, solved=solved).sample(Table(X.data), count, rng, noise=noise, posterior=False))
    kernel = s.kernel_at(X) or defaults(X)[0]
    C = kernel(Table(X.astype(np.float64).data)) + noise * np.eye(len(X))
    return draws(np.full((len(X), 1), mean), C, np.ones(1), count, rng)
