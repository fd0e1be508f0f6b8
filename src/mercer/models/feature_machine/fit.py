"""Fitting a feature machine: rows kept back to calibrate, a search on the others, machines fitted to
all."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from mercer.inputs import Array
from mercer.invariants import Floats, Is
from mercer.models.feature_machine.machine import FeatureEnsemble, Probabilities, fit_members
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
OUTPUT_SHARE = 0.1  # what another output adds to it
SEARCH_SHARE = 0.4  # of the time


@dataclass(frozen=True)
class FeatureSettings:
    """What the user asked for, checked."""

    time_limit: float | None
    memory: float
    seed: int


@dataclass(frozen=True)
class FeaturePlan:
    """How many rows are kept back, how many a cell holds, and whether all rows are fitted once
    more."""

    calibration: int
    cell: int
    refit: bool

    def why(self, n: int) -> str:
        cells = "in one piece" if self.cell >= n else f"in cells of at most {self.cell:,}"
        return f"{n:,} rows, solved {cells}; {self.calibration:,} of them calibrate"


def choose(n: int, s: FeatureSettings) -> FeaturePlan:
    """From sizes and settings alone; the time may make cells smaller still, once the search has
    ended.

    >>> choose(2_000, FeatureSettings(None, 4e9, 0))
    FeaturePlan(calibration=400, cell=2000, refit=True)
    """
    kept = min(int(CALIBRATION_SHARE * n), MAX_CALIBRATION)
    kept = kept if kept >= MIN_CALIBRATION else 0
    fits = int(math.sqrt(s.memory / 2 / 4))
    return FeaturePlan(
        kept, max(min(n, MAX_ONE_CELL, fits), min(n, MIN_CELL)), kept > REFIT_SHARE * n
    )


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
    part = _rows_of(replace(p, deadline=deadline), rest)
    found = search(part) if len(rest) >= MIN_SEARCH else without_search(len(rest))
    left = end - time.perf_counter()
    if n > MAX_ONE_CELL and math.isfinite(left):
        found = found.best_alone()
    turns = 2 if plan.refit else 1
    cell = cell_rows(n, p.Y.shape[1], turns * len(found.members), 0.8 * left)
    plan = replace(plan, cell=min(plan.cell, cell))
    before, units = time.perf_counter(), (centre, scale)
    cautious = _fitted(part, found, plan, s, units)
    enough = end - time.perf_counter() > time.perf_counter() - before
    ensemble = _fitted(p, found, plan, s, units) if plan.refit and enough else cautious
    return FittedMachine(
        ensemble,
        cautious,
        _residuals(p, cautious, kept),
        probabilities(p, cautious, kept) if p.classes else None,
        ensemble.importances(p.X.shape[1]),
        _told(plan, found, n),
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
        paths, p.X, p.Y, p.weight, seed=s.seed, most=plan.cell, memory=s.memory / 2
    )
    return FeatureEnsemble(members, tuple(w for _, w in found.members), *units)


def _residuals(p: MetricProblem, f: FeatureEnsemble, rows: Array) -> Array:
    if not len(rows):
        return np.empty((0, p.Y.shape[1]))
    return np.abs(f.centre + f.scale * p.Y[rows] - f(p.X[rows]))


def probabilities(p: MetricProblem, f: FeatureEnsemble, rows: Array) -> Probabilities:
    """Of the least log loss on rows that were not fitted, drawn to (slope 1, offsets 0) as if by one
    row."""
    scores = class_scores(f(p.X[rows])) if len(rows) else np.empty((0, p.classes))
    hot = class_scores(f.centre + f.scale * p.Y[rows]) if len(rows) else scores
    w = np.ones(len(rows)) if p.weight is None else p.weight[rows]
    y = hot.argmax(axis=1) if len(rows) else np.empty(0, int)

    def loss(v: Array) -> tuple[float, Array]:
        z = np.exp(v[0]) * scores + v[1:]
        top = logsumexp(z, axis=1)
        d = w[:, None] * (np.exp(z - top[:, None]) - np.eye(p.classes)[y])
        value = (
            w @ (top - z[np.arange(len(y)), y]) + 0.5 * float(v[1:] @ v[1:]) + 0.5 * (v[0] - 1) ** 2
        )
        slopes = np.concatenate([[np.exp(v[0]) * np.sum(d * scores) + v[0] - 1], d.sum(0) + v[1:]])
        return float(value), slopes

    bounds = [(-3.0, 6.0)] + [(-10.0, 10.0)] * p.classes
    start = np.zeros(p.classes + 1)
    start[0] = 1.0
    best = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return Probabilities(float(np.exp(best[0])), tuple(best[1:].tolist()))


def class_scores(F: Array) -> Array:
    """Shares (n, K) of classes; of two, one column tells both."""
    return np.column_stack([1 - F, F]) if F.shape[1] == 1 else F


def _told(plan: FeaturePlan, found: FoundMachines, n: int) -> Plan:
    shown = {
        f"machine {i + 1}": f"{path.setting}, {path.rounds} rounds, penalty {path.penalties[-1]:.2g}, weight {w:.2g}"
        for i, (path, w) in enumerate(found.members)
    }
    settings = {**shown, "paths tried": found.tried, "rows of the search": found.rows}
    return Plan("feature machine", plan.why(n), settings, bytes=4.0 * plan.cell**2)
