"""Fitting a feature machine: rows kept back to calibrate, a search on the others, machines fitted to
all."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from mercer.inputs import Array
from mercer.invariants import Floats, Is
from mercer.models.feature_machine.machine import (
    METRIC_ROWS,
    PAIR_BYTES,
    FeatureEnsemble,
    Probabilities,
    fit_members,
    on_gpu,
)
from mercer.models.feature_machine.search import (
    MIN_SEARCH,
    FoundMachines,
    MetricProblem,
    search,
    without_search,
)
from mercer.ops.threads import n_threads
from mercer.plans import Plan
from mercer.store import register

CALIBRATION_SHARE = 0.2  # of the rows
MAX_CALIBRATION = 2_000
MIN_CALIBRATION = 10  # fewer are not kept back: no 90 % interval could follow from them
REFIT_SHARE = 0.02  # calibration rows below this share of all are not worth another fit
MAX_ONE_CELL = 20_000  # rows up to which all are in one cell, given the memory and the time
MIN_CELL = 500  # rows of a cell, however short time and memory are
PAIR_SECONDS = 5e-8  # of the equations, for every pair of rows of a cell, measured on one core
ROUND_SECONDS = 1.5e-8  # of distances, values and gradients of a round, for every pair of rows
FACTOR_SECONDS = 4e-12  # of a factor, for every cube of its rows
MIN_METRIC_ROWS = 2_000
FIRST_SLOPE = 4.0  # of scores that are shares of classes, before any row tells
OUTPUT_SHARE = 0.1  # what another output adds to it
SEARCH_SHARE = 0.4  # of the time


@dataclass(frozen=True)
class FeatureSettings:
    """What the user asked for, checked."""

    time_limit: float | None
    memory: float
    seed: int
    gpu: str | None = None  # the torch device to solve on
    no_gpu: str = ""  # why there is none, where one was looked for


@dataclass(frozen=True)
class FeaturePlan:
    """How many rows are kept back, how many a cell holds, and whether all rows are fitted once
    more."""

    calibration: int
    cell: int
    refit: bool
    metric_rows: int = METRIC_ROWS
    on: str = ""  # " on the GPU"

    def why(self, n: int, *, refitted: bool) -> str:
        cells = "in one piece" if self.cell >= n else f"in cells of at most {self.cell:,}"
        last = "" if refitted or not self.calibration else ", and were not fitted"
        none = f"; {not_searched(n)}" if n < MIN_SEARCH else ""
        return f"{n:,} rows, solved {cells}{self.on}; {self.calibration:,} of them calibrate{last}{none}"


def not_searched(n: int) -> str:
    """What rows that are too few leave out.

    >>> not_searched(1)
    'nothing was searched, as 1 row is too few to hold any out: norm, length and penalty are the first'
    """
    rows = "1 row is" if n == 1 else f"{n:,} rows are"
    first = "norm, length and penalty are the first"
    return f"nothing was searched, as {rows} too few to hold any out: {first}"


def choose(n: int, s: FeatureSettings) -> FeaturePlan:
    """From sizes and settings alone; the time may make cells smaller still, once the search has
    ended.

    >>> choose(2_000, FeatureSettings(None, 4e9, 0))
    FeaturePlan(calibration=400, cell=2000, refit=True, metric_rows=8000, on='')
    """
    kept = min(int(CALIBRATION_SHARE * n), MAX_CALIBRATION)
    kept = kept if kept >= MIN_CALIBRATION else 0
    if s.gpu is not None:
        most = on_gpu().most_rows(s.gpu)
        rows = min(n, on_gpu().METRIC_ROWS, most)
        return FeaturePlan(kept, min(n, most), kept > REFIT_SHARE * n, rows, " on the GPU")
    fits = int(math.sqrt(s.memory / 2 / 4))
    cell = max(min(n, MAX_ONE_CELL, fits), min(n, MIN_CELL))
    return FeaturePlan(kept, cell, kept > REFIT_SHARE * n, on=s.no_gpu.replace(";", ",", 1))


def timed(
    plan: FeaturePlan, found: FoundMachines, p: MetricProblem, seconds: float, memory: float
) -> FeaturePlan:
    """With a metric of as many rows as the search had and memory holds, and cells that leave time
    for it; all rows are not fitted once more where that would make cells smaller."""
    m = min(METRIC_ROWS, max(found.rows, MIN_METRIC_ROWS), int(math.sqrt(memory / PAIR_BYTES)))
    rounds = sum(path.rounds for path, _ in found.members)
    metric = rounds * (FACTOR_SECONDS * m**3 + ROUND_SECONDS * m**2)
    sizes = {
        turns: cell_rows(
            len(p.X), p.Y.shape[1], turns * len(found.members), seconds - turns * metric
        )
        for turns in (1, 2)
    }
    refit = plan.refit and min(sizes[2], plan.cell) >= min(sizes[1], plan.cell)
    return replace(plan, cell=min(plan.cell, sizes[2 if refit else 1]), refit=refit, metric_rows=m)


def cell_rows(n: int, outputs: int, machines: int, seconds: float) -> int:
    """Rows of a cell so that all cells of so many machines take so many seconds, on the threads
    there are.

    >>> cell_rows(10_000, 1, 1, math.inf), cell_rows(10_000_000, 1, 5, 0.1)
    (10000, 500)
    """
    if not np.isfinite(seconds):
        return n
    pair = PAIR_SECONDS * (1 + OUTPUT_SHARE * (outputs - 1)) * machines
    return max(MIN_CELL, int(max(seconds, 0.0) * n_threads() / (pair * n)))


@register("feature_machine.FittedMachine")
@dataclass(frozen=True, eq=False)
class FittedMachine:
    """Everything a fitted estimator answers by."""

    ensemble: FeatureEnsemble
    cautious: FeatureEnsemble  # fitted without the rows that calibrate
    residuals: Array  # |y - cautious| of those, (m, q)
    probabilities: Probabilities | None
    importances: Array
    plan: Plan

    must = dict(
        ensemble=Is("FeatureEnsemble"),
        cautious=Is("FeatureEnsemble"),
        residuals=Floats("m", "q", low=0),
        probabilities=Is("Probabilities") | None,
        importances=Floats("d", low=0),
        plan=Is("Plan"),
    )


def fit(p: MetricProblem, s: FeatureSettings, centre: Array, scale: Array) -> FittedMachine:
    """p's targets are (y - centre) / scale."""
    begun, n = time.perf_counter(), len(p.X)
    end = math.inf if s.time_limit is None else begun + s.time_limit
    plan = choose(n, s)
    order = np.random.default_rng([s.seed, 1]).permutation(n)
    kept, rest = order[: plan.calibration], order[plan.calibration :]
    deadline = None if s.time_limit is None else begun + SEARCH_SHARE * s.time_limit
    part = _rows_of(replace(p, deadline=deadline, gpu=s.gpu), rest)
    found = search(part) if len(rest) >= MIN_SEARCH else without_search(len(rest))
    left = end - time.perf_counter()
    if n > MAX_ONE_CELL and math.isfinite(left) and s.gpu is None:
        found = found.best_alone()
    if s.gpu is None:
        plan = timed(plan, found, p, 0.8 * left, s.memory / 2)
    before, units = time.perf_counter(), (centre, scale)
    cautious = _fitted(part, found, plan, s, units)
    enough = end - time.perf_counter() > time.perf_counter() - before
    refitted = plan.refit and enough
    ensemble = _fitted(p, found, plan, s, units) if refitted else cautious
    return FittedMachine(
        ensemble,
        cautious,
        _residuals(p, cautious, kept, s.gpu),
        probabilities(p, cautious, kept, s.gpu) if p.classes else None,
        ensemble.importances(p.X.shape[1]),
        _told(plan, found, n, refitted),
    )


def _rows_of(p: MetricProblem, rows: Array) -> MetricProblem:
    return replace(p, X=p.X[rows], Y=p.Y[rows], weight=None if p.weight is None else p.weight[rows])


def _fitted(
    p: MetricProblem,
    found: FoundMachines,
    plan: FeaturePlan,
    s: FeatureSettings,
    units: tuple[Array, Array],
) -> FeatureEnsemble:
    paths = [path for path, _ in found.members]
    members = fit_members(
        paths,
        p.X,
        p.Y,
        p.weight,
        seed=s.seed,
        most=plan.cell,
        memory=s.memory / 2,
        metric_rows=plan.metric_rows,
        gpu=s.gpu,
    )
    return FeatureEnsemble(members, tuple(w for _, w in found.members), *units)


def _residuals(p: MetricProblem, f: FeatureEnsemble, rows: Array, gpu: str | None) -> Array:
    if not len(rows):
        return np.empty((0, p.Y.shape[1]))
    return np.abs(f.centre + f.scale * p.Y[rows] - f(p.X[rows], gpu))


def probabilities(
    p: MetricProblem, f: FeatureEnsemble, rows: Array, gpu: str | None = None
) -> Probabilities:
    """The slope of the least log loss on rows that were not fitted, its logarithm drawn to
    FIRST_SLOPE's as if by one row. There is nothing else to fit, so that the most probable class is
    that of the largest score."""
    if not len(rows):
        return Probabilities(FIRST_SLOPE, p.classes)
    scores = class_scores(f(p.X[rows], gpu))
    mine = scores[np.arange(len(rows)), class_scores(f.centre + f.scale * p.Y[rows]).argmax(axis=1)]
    w = np.ones(len(rows)) if p.weight is None else p.weight[rows]

    def loss(t: float) -> float:
        z = math.exp(t)
        told = float(w @ (logsumexp(z * scores, axis=1) - z * mine))
        return told + 0.5 * (t - math.log(FIRST_SLOPE)) ** 2

    best = minimize_scalar(loss, bounds=(-3.0, 6.0), method="bounded")
    return Probabilities(float(math.exp(best.x)), p.classes)


def spread(gap: Array, w: Array | None = None) -> Array:
    """Standard deviations of columns about zero, however small or large they are; 1 where there is
    none.

    >>> spread(np.array([[1e-200], [-1e-200]]))
    array([1.e-200])
    """
    size = np.abs(gap).max(axis=0)
    size = np.where(size > 0, size, 1.0)
    found = size * np.sqrt(np.average(np.square(gap / size), axis=0, weights=w))
    return np.where(found > 0, found, 1.0)


def class_scores(F: Array) -> Array:
    """Shares (n, K) of classes; of two, one column tells both."""
    return np.column_stack([1 - F, F]) if F.shape[1] == 1 else F


def _told(plan: FeaturePlan, found: FoundMachines, n: int, refitted: bool) -> Plan:
    shown = {
        f"machine {i + 1}": f"{path.setting}, {path.rounds} rounds, penalty {path.penalties[-1]:.2g}, weight {w:.2g}"
        for i, (path, w) in enumerate(found.members)
    }
    m = min(n, plan.metric_rows)
    settings = {**shown, "paths tried": found.tried, "rows of the search": found.rows}
    return Plan(
        "feature machine",
        plan.why(n, refitted=refitted),
        settings,
        bytes=PAIR_BYTES * max(m, plan.cell) ** 2,
    )
