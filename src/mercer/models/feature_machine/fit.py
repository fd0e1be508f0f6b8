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
from mercer.models.feature_machine.machine import FeatureEnsemble, Probabilities, fit_member
from mercer.models.feature_machine.paths import MetricPath
from mercer.models.feature_machine.search import FoundMachines, MetricProblem, search
from mercer.ops.threads import n_threads
from mercer.plans import Plan
from mercer.store import register

CALIBRATION_SHARE = 0.2  # of the rows
MAX_CALIBRATION = 2_000
MIN_CALIBRATION = 10  # fewer are not kept back: no 90 % interval could follow from them
MAX_ONE_CELL = 20_000  # rows up to which all are in one cell, given the memory
MIN_CELL = 500  # rows of a cell, however short time and memory are
PAIR_SECONDS = 6e-8  # of the equations, for every pair of rows and one output, measured
SEARCH_SHARE = 0.5  # of the time
REFIT_SHARE = 0.02  # calibration rows below this share of all are not worth another fit


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


def choose(n: int, outputs: int, s: FeatureSettings) -> FeaturePlan:
    """From sizes and settings alone.

    >>> choose(2_000, 1, FeatureSettings(None, 4e9, 0))
    FeaturePlan(calibration=400, cell=2000, refit=True)
    """
    kept = min(int(CALIBRATION_SHARE * n), MAX_CALIBRATION)
    kept = kept if kept >= MIN_CALIBRATION else 0
    fits = int(math.sqrt(s.memory / 2 / 4))
    cell = min(n, MAX_ONE_CELL, fits)
    if s.time_limit is not None:
        pairs = 0.35 * s.time_limit * n_threads() / (PAIR_SECONDS * (1 + 0.2 * outputs))
        cell = min(cell, int(pairs / n))
    return FeaturePlan(kept, max(cell, min(n, MIN_CELL)), kept > REFIT_SHARE * n)


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
    plan = choose(n, p.Y.shape[1], s)
    order = np.random.default_rng([s.seed, 1]).permutation(n)
    kept, rest = order[: plan.calibration], order[plan.calibration :]
    deadline = None if s.time_limit is None else begun + SEARCH_SHARE * s.time_limit
    part = _rows_of(replace(p, deadline=deadline), rest)
    found = search(part) if len(rest) >= 5 else _without_search(p)
    units = centre, scale
    cautious = _fitted(part, found, plan, s, units)
    residuals = _residuals(p, cautious, kept)
    ensemble = _fitted(p, found, plan, s, units) if plan.refit else cautious
    return FittedMachine(
        ensemble,
        cautious,
        residuals,
        probabilities(p, cautious, kept) if p.classes else None,
        ensemble.importances(p.X.shape[1]),
        _told(plan, found, n),
    )


def _rows_of(p: MetricProblem, rows: Array) -> MetricProblem:
    return replace(p, X=p.X[rows], Y=p.Y[rows], weight=None if p.weight is None else p.weight[rows])


def _without_search(p: MetricProblem) -> FoundMachines:
    """Of rows too few to hold any out."""
    from mercer.models.feature_machine.paths import PathSetting

    path = MetricPath(PathSetting("standard", 1, 1.0, 1.0, "diagonal", 1.0), (0.1,))
    return FoundMachines(((path, 1.0),), math.inf, math.inf, 0, len(p.X), ())


def _fitted(
    p: MetricProblem,
    found: FoundMachines,
    plan: FeaturePlan,
    s: FeatureSettings,
    units: tuple[Array, Array],
) -> FeatureEnsemble:
    members = tuple(
        fit_member(path, p.X, p.Y, p.weight, seed=s.seed, most=plan.cell, memory=s.memory / 2)
        for path, _ in found.members
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
