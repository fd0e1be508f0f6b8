"""The search for hyper-parameters: quasi-Newton steps on log-parameters, from several starts on few
rows, then on more and more of them, with what was learnt of the curvature."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.logs import logger
from mercer.models.gp.factor import few_threads
from mercer.models.gp.likelihood import MarginalLikelihood, Rung, marginal_likelihood
from mercer.models.gp.minimise import Iterate, minimise
from mercer.models.gp.space import NOISE, SearchSpace
from mercer.ops.philox import Stream, normals, permutation

LOG = logger("gp")

BOUND = 1e-6  # of the distance of two bounds: so near is on one
STEP = 4  # rows of one rung over those of the one below: its cost is then a few per cent
MIN_SEARCH_ROWS = 60
# rows of the first rung for a variable: by which ends are chosen, or only one of every form of kernel
ROWS_A_VARIABLE, ROWS_OF_A_FORM = 20, 8
# what a step must bring, in the loss of a row: until the last climb, where a step is dear, and in it
ROUGH, FAIR, FINE = 1e-4, 1e-5, 3e-7
SAME = 0.2  # logarithms within which two ends are one
GO_ON, ENDS = 2, 3  # how many ends of a form go on, and how many are followed
TOLD = 0.15  # less of the loss of a row than noise alone has: the rows tell something
FIRST_STEPS = 3  # from every start
LOOK_STEPS = 5  # on from those that are apart
AGAIN_STEPS = 6  # from promising ends
MAX_STEPS = 200  # from the best
REFINE_STEPS = 8  # where a step is dear
FEW = 2  # variables: one step less tells as much from every start
# of a kernel, rows, Y, noise and scale, None for the best with a noise of `least` or more
Measure = Callable[..., MarginalLikelihood]


@dataclass(frozen=True, eq=False)
class FittedHyperparameters:
    """A kernel, its noise and scale in the units of Y, and log p(Y) there."""

    kernel: Kernel
    noise: float
    scale: float
    log: float
    steps: int
    curvature: Array | None = None  # of the loss of a row by the free variables
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

    @cache
    def problem(n: int) -> LikelihoodOfRows:
        at = order[:n] if n < len(rows) else slice(None)
        given = None if noise is None else noise[at]
        return LikelihoodOfRows(Rung.of(rows[at]), Y[at], given, n / len(rows), measure)

    def look(n: int) -> list[LocalOptimum]:
        p = problem(n)
        found = [p.climb(p.begun(s), ROUGH, FIRST_STEPS - (s.space.size <= FEW)) for s in starts]
        return [p.climb(c, ROUGH, LOOK_STEPS) for c in apart(found, GO_ON)]

    found, noisy = look(rungs[0]), noise_alone(Y) - TOLD
    while len(rungs) > 1 and min(c.loss for c in found) > noisy:
        rungs = rungs[1:]  # so few rows tell nothing but noise: more of them may
        found = look(rungs[0])
    if len(rungs) > 1:
        rungs = rungs[1:]  # few rows tell where to begin, more of them which end is the better
        p = problem(rungs[0])
        found = [p.climb(p.begun(*c.begin), ROUGH, AGAIN_STEPS) for c in promising(found)]
    best = sorted(apart(found), key=lambda c: c.loss)
    for n in rungs:
        p = problem(n)
        lost = best[0].loss > noisy  # nearly noise: which of the ends leads on is not told yet
        some = best[: GO_ON if lost else 1]
        on = (c if c.rows == n else p.begun(*c.begin) for c in some)
        best = sorted((p.climb(c, ROUGH, MAX_STEPS) for c in on), key=lambda c: c.loss)
    return p.climb(best[0], FINE, MAX_STEPS).learnt()


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
    known = found.curvature
    if known is not None and len(known) != s.size:
        known = None
    p = LikelihoodOfRows(rows, Y, noise, 1.0, measure)
    best = p.climb(p.begun(Start(s, s.first(logs)), known), FAIR, steps).learnt()
    return replace(best, steps=found.steps + best.steps)


@dataclass(frozen=True, eq=False)
class LocalOptimum:
    """Where a climb over so many rows ended."""

    space: SearchSpace
    at: Iterate
    known: MarginalLikelihood
    rows: int

    @property
    def loss(self) -> float:
        """Of a row."""
        return self.at.loss

    @property
    def begin(self) -> tuple[Start, Array | None]:
        """For other rows: the place, and the curvature there."""
        return Start(self.space, self.at.z), self.at.curvature

    def learnt(self) -> FittedHyperparameters:
        s, full, scale = self.space, self.space.full(self.at.z), self.known.scale
        noise = math.exp(full[-2])
        noise = noise * scale if s.profiled else noise
        log, steps, met = self.known.log, self.at.tried, _met(Start(s, self.at.z))
        return FittedHyperparameters(
            s.at(full), noise, scale, log, steps, self.at.curvature, s.profiled, met
        )


@dataclass(frozen=True, eq=False)
class LikelihoodOfRows:
    """-log p(Y, parameters) / n of these rows, to be made small.

    share : of all rows, and so of the priors
    """

    rows: Table
    Y: Array
    noise: Array | None
    share: float
    measure: Measure

    def begun(self, start: Start, curvature: Array | None = None) -> LocalOptimum:
        s, z = start.space, np.clip(start.z, start.space.lower, start.space.upper)
        with few_threads(len(self.rows)):
            loss, slope, e = self.loss(s, z)
            return LocalOptimum(s, Iterate(z, loss, slope(), curvature), e, len(self.rows))

    def climb(self, c: LocalOptimum, tol: float, steps: int) -> LocalOptimum:
        """On from there to a local minimum."""
        s, known = c.space, c.known

        def loss(z: Array) -> tuple[float, Callable[[], Array]]:
            value, slope, e = self.loss(s, z)

            def taken() -> Array:
                nonlocal known
                known = e
                return slope()

            return value, taken

        with few_threads(len(self.rows)):
            end = minimise(loss, c.at, s.lower, s.upper, tol=tol, steps=steps)
        return LocalOptimum(s, end, known, len(self.rows))

    def loss(
        self, s: SearchSpace, z: Array
    ) -> tuple[float, Callable[[], Array], MarginalLikelihood]:
        full, per = s.full(z), 1 / self.Y.size
        noise = math.exp(full[-2]) if self.noise is None else self.noise
        scale, floor = (None, {"least": NOISE[0]}) if s.profiled else (math.exp(full[-1]), {})
        e = self.measure(s.at(full), self.rows, self.Y, noise, scale, **floor)
        if LOG.isEnabledFor(logging.INFO):
            LOG.info("a try over %d rows: log likelihood %.8g", len(self.rows), e.log)
        prior = s.prior(np.append(full[:-1], math.log(e.scale))) if s.priors else (0.0, 0.0)

        def slope() -> Array:
            return -per * s.free(e.gradient + self.share * prior[1])

        return -per * (e.log + self.share * prior[0]), slope, e


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
    return apart(found, ENDS if len({id(c.space) for c in found}) == 1 else 1)


def apart(found: Sequence[LocalOptimum], most: int | None = None) -> list[LocalOptimum]:
    """The best of every form of kernel, so many at most, none near another."""
    kept: list[LocalOptimum] = []
    for c in sorted(found, key=lambda c: c.loss):
        same = [k for k in kept if k.space is c.space]
        if (most is None or len(same) < most) and not any(_near(c, k) for k in same):
            kept.append(c)
    return kept


def _near(a: LocalOptimum, b: LocalOptimum) -> bool:
    return bool(np.abs(a.at.z - b.at.z).max(initial=0) < SAME)


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
