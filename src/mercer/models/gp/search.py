"""The search for hyper-parameters: L-BFGS on log-parameters, from several starts on few rows, then
on more and more of them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.logs import logger
from mercer.models.gp.factor import few_threads
from mercer.models.gp.likelihood import MarginalLikelihood, marginal_likelihood
from mercer.models.gp.space import NOISE, SearchSpace
from mercer.ops.philox import Stream, normals, permutation

LOG = logger("gp")

BOUND = 1e-6  # of the distance of two bounds: so near is on one
STEP = 4  # rows of one rung over those of the one below: its cost is then a few per cent
MIN_SEARCH_ROWS = 60
ROWS_A_VARIABLE, ROWS_OF_A_FORM = (
    20,
    8,
)  # of the first rung: by which ends are chosen, or only one of every form of kernel
ROUGH, FAIR, FINE = (
    1e-4,
    1e-5,
    1e-7,
)  # what a step must bring, in the loss of a row: on few rows, where a step is dear, and on all
SAME, ENDS = 0.2, 3  # logarithms within which two ends are one, and how many are followed
TOLD = 0.15  # less of the loss of a row than noise alone has: the rows tell something
SPREAD = 0.1, 10.0  # how much less or more than others a variable may be trusted to move
LOOK_STEPS, AGAIN_STEPS, MAX_STEPS, REFINE_STEPS = (
    8,
    6,
    200,
    8,
)  # steps from every start, from promising ends, from the best, and where a step is dear
Measure = Callable[
    ..., MarginalLikelihood
]  # of a kernel, rows, Y, noise and scale, None for the best with a noise of `least` or more


@dataclass(frozen=True, eq=False)
class FittedHyperparameters:
    """A kernel, its noise and scale in the units of Y, and log p(Y) there."""

    kernel: Kernel
    noise: float
    scale: float
    log: float
    steps: int
    reach: Array | None = None  # of the free variables, as in `LocalOptimum`
    profiled: bool = False  # nothing was said of noise and scale, so other rows may move both
    at_bounds: tuple[str, ...] = ()  # the parameters that the search left on a bound

    def warn_of_bounds(self, bounds: Mapping[str, object] | None, stacklevel: int) -> None:
        """Where parameters ended on bounds that a user gave."""
        told = [
            name
            for name in self.at_bounds
            if any(name == b or name.startswith(f"{b}__") for b in bounds or ())
        ]
        if told:
            warnings.warn(
                f"the likelihood grows beyond the bounds of {', '.join(told)}, where the search ended; widen them, or fix the value.",
                ConvergenceWarning,
                stacklevel=stacklevel,
            )


def unlearnt(s: SearchSpace, n: int) -> FittedHyperparameters:
    """Where n rows tell nothing, as one or equal ones do: noise and scale alike, 1 / (n + 1) or as
    near as the space lets them be.

    >>> from mercer.kernels import Gaussian
    >>> from mercer.models.gp.hyperparameters import HyperparameterSpec
    >>> from mercer.models.gp.space import space
    >>> found = unlearnt(space(Gaussian(), HyperparameterSpec(bounds={"noise": (2.0, 3.0)}), None), 1)
    >>> round(found.noise, 9), round(found.scale, 9)
    (2.0, 0.5)
    """
    level = -math.log(n + 1)
    full = s.full(s.first(np.append(s.start[:-2], [0.0 if s.profiled else level, level])))
    scale = math.exp(level if s.profiled else full[-1])
    return FittedHyperparameters(
        s.at(full),
        math.exp(full[-2]) * (scale if s.profiled else 1),
        scale,
        0.0,
        0,
        profiled=s.profiled,
    )


@dataclass(frozen=True, eq=False)
class Start:
    """A space, and where in it a search begins."""

    space: SearchSpace
    z: Array


def learn(
    starts: Sequence[Start],
    rows: Table,
    Y: Array,
    noise: Array | None = None,
    *,
    seed: int = 0,
    most: int | None = None,
    measure: Measure = marginal_likelihood,
) -> FittedHyperparameters:
    """The best parameters that a search from these starts finds.

    noise : one number a row, where it is given
    most : rows of the last rung, all of them where None
    """
    order = permutation(Stream(seed), len(rows))
    forms, free = len({id(s.space) for s in starts}), max(s.space.size for s in starts)
    last = min(len(rows), most or len(rows))
    rungs = ladder(last, free * (ROWS_A_VARIABLE if forms == 1 else ROWS_OF_A_FORM))

    def climb(s: Start, reach: Array, n: int, tol: float, steps: int) -> LocalOptimum:
        at = order[:n] if n < len(rows) else slice(None)
        given = None if noise is None else noise[at]
        return _climb(
            s,
            reach,
            rows[at],
            Y[at],
            given,
            share=n / len(rows),
            tol=tol,
            steps=steps,
            measure=measure,
        )

    def look(n: int) -> list[LocalOptimum]:
        return [climb(s, np.ones(s.space.size), n, ROUGH, LOOK_STEPS) for s in starts]

    found, noisy = look(rungs[0]), noise_alone(Y) - TOLD
    while len(rungs) > 1 and min(c.loss for c in found) > noisy:
        rungs = rungs[1:]  # so few rows tell nothing but noise: more of them may
        found = look(rungs[0])
    if len(rungs) > 1:
        rungs = rungs[1:]  # few rows tell where to begin, more of them which end is the better
        found = [climb(c.end, c.reach, rungs[0], ROUGH, AGAIN_STEPS) for c in promising(found)]
    best = min(found, key=lambda c: c.loss)
    for n in rungs:
        best = climb(best.end, best.reach, n, FINE if n == rungs[-1] else ROUGH, MAX_STEPS)
    return best.learnt()


def refined(
    found: FittedHyperparameters,
    s: SearchSpace,
    rows: Table,
    Y: Array,
    noise: Array | None = None,
    *,
    measure: Measure,
    steps: int = REFINE_STEPS,
) -> FittedHyperparameters:
    """What a few steps from parameters found on some rows make of them by a measure of all rows.

    s : the space of `found.kernel`
    """
    values, ratio = (
        found.kernel.parameters().values(),
        found.noise / found.scale if s.profiled else found.noise,
    )
    logs = np.log(
        [*(v if v > 0 else 1.0 for v in values), max(ratio, np.finfo(float).tiny), found.scale]
    )
    reach = np.ones(s.size) if found.reach is None or len(found.reach) != s.size else found.reach
    best = _climb(
        Start(s, s.first(logs)),
        reach,
        rows,
        Y,
        noise,
        share=1.0,
        tol=FAIR,
        steps=steps,
        measure=measure,
    ).learnt()
    return replace(best, steps=found.steps + best.steps)


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """Where a climb ended, and how far its variables move about there (the root of the inverse
    curvature's diagonal)."""

    end: Start
    reach: Array
    loss: float
    log: float
    scale: float
    steps: int

    def learnt(self) -> FittedHyperparameters:
        s, full = self.end.space, self.end.space.full(self.end.z)
        noise = math.exp(full[-2])
        noise = noise * self.scale if s.profiled else noise
        met = _met(self.end)
        return FittedHyperparameters(
            s.at(full), noise, self.scale, self.log, self.steps, self.reach, s.profiled, met
        )


def _met(end: Start) -> tuple[str, ...]:
    """The parameters whose variable lies on a bound; of a fixed one both are its value."""
    s, z = end.space, end.z
    near = BOUND * np.maximum(s.upper - s.lower, 0)
    on = (s.upper > s.lower) & ((z - s.lower <= near) | (s.upper - z <= near))
    names = zip(s.names, s.group, strict=True)
    return tuple(name for name, g in names if g >= 0 and on[g])


def noise_alone(Y: Array) -> float:
    """-log p(Y) / n where there is but noise."""
    return 0.5 * math.log(2 * math.pi * math.e * max(float(np.mean(Y * Y)), np.finfo(float).tiny))


def promising(found: Sequence[LocalOptimum]) -> list[LocalOptimum]:
    """The best end of every form of kernel; of one form alone the best that are apart."""
    most = ENDS if len({id(c.end.space) for c in found}) == 1 else 1
    kept: list[LocalOptimum] = []
    for c in sorted(found, key=lambda c: c.loss):
        same = [k for k in kept if k.end.space is c.end.space]
        if len(same) < most and not any(_near(c, k) for k in same):
            kept.append(c)
    return kept


def _near(a: LocalOptimum, b: LocalOptimum) -> bool:
    return bool(np.abs(a.end.z - b.end.z).max(initial=0) < SAME)


def ladder(n: int, least: int) -> list[int]:
    """The numbers of rows, ending with n; only the first may be more than a quarter of the next.

    >>> ladder(5000, 100), ladder(200, 30), ladder(100, 30)
    ([100, 312, 1250, 5000], [60, 200], [100])
    """
    least, rungs = max(MIN_SEARCH_ROWS, least), [n]
    while rungs[0] >= 2 * least:
        rungs.insert(0, max(least, rungs[0] // STEP))
    return rungs


def scattered(s: Start, count: int, stream: Stream) -> list[Start]:
    """Starts about a start: every free variable, noise and scale too, times exp(N(0, 1)), inside
    its bounds."""
    moved = s.z + normals(stream, 0, count, max(s.space.size, 1))[:, : s.space.size]
    return [Start(s.space, np.clip(z, s.space.lower, s.space.upper)) for z in moved]


def _climb(
    start: Start,
    reach: Array,
    rows: Table,
    Y: Array,
    noise: Array | None,
    *,
    share: float,
    tol: float,
    steps: int,
    measure: Measure,
) -> LocalOptimum:
    """To a local minimum of -log p(Y, parameters) / n, by L-BFGS on z / reach: flat directions take
    long steps at once."""
    s, per, seen = start.space, 1 / Y.size, dict[bytes, MarginalLikelihood]()
    floor = {"least": NOISE[0]} if s.profiled else {}

    def loss(u: Array) -> tuple[float, Array]:
        full = s.full(u * reach)
        v = math.exp(full[-2]) if noise is None else noise
        e = measure(s.at(full), rows, Y, v, None if s.profiled else math.exp(full[-1]), **floor)
        seen[u.tobytes()] = e
        LOG.info("try %d over %d rows: log likelihood %.8g", len(seen), len(rows), e.log)
        prior, slope = s.prior(np.append(full[:-1], math.log(e.scale)))
        return -per * (e.log + share * prior), -per * s.free(e.gradient + share * slope) * reach

    options = {
        "ftol": tol,
        "gtol": 1e-2 * math.sqrt(tol),
        "maxiter": steps,
        "maxfun": 2 * steps,
        "maxcor": 20,
    }
    bounds = list(zip(s.lower / reach, s.upper / reach, strict=True))
    with few_threads(len(rows)):
        r = minimize(
            loss, start.z / reach, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        if r.x.tobytes() not in seen:
            loss(r.x)
    e = seen[r.x.tobytes()]
    spread = reach * np.sqrt(np.maximum(np.diag(r.hess_inv.todense()), 1e-12))
    end = Start(s, np.clip(r.x * reach, s.lower, s.upper))
    return LocalOptimum(
        end, np.clip(spread / np.median(spread), *SPREAD), float(r.fun), e.log, e.scale, int(r.nfev)
    )
