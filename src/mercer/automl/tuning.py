"""The machine of the contest: one whose metric is learnt, or support vectors where labels count,
timed on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer.automl import budget, machines
from mercer.automl.budget import Clock
from mercer.automl.learned import LearnedSetting, find_machines
from mercer.automl.machines import MachinePlan, MachineSetting
from mercer.automl.metrics import log_loss
from mercer.automl.predictors import TargetTransform
from mercer.automl.recipes import Recipe, rounded
from mercer.automl.rows import hashes
from mercer.automl.search import SearchProblem
from mercer.automl.splits import FoldPlan, make_folds
from mercer.inputs import Array
from mercer.kernels import Gaussian, Kernel, Laplace, Matern
from mercer.kernels.defaults import spread
from mercer.models.cells import OVERLAP
from mercer.ops.threads import parallel_map, single_blas

FIRST_ROWS = 3_000  # rows of the first round
ALL_FOLDS_ROWS = 1_500  # rows up to which every fold counts and not one of them
N_FOLDS = 3
HINGE_PENALTIES = (0.1, 1.0)  # 1/C of support vectors
# classes up to which support vectors are tried, a machine for every two of them
HINGE_CLASSES = 8
CLEARLY_LESS = 0.95  # of the loss of a learnt metric, which more rows serve better
FIRST_PART = 0.8  # of the time, for the search of a metric
NEIGHBOURS = ((0.6, 1.0), (1.0, 0.3), (1.6, 1.0), (1.0, 3.0))  # factors on bandwidth and penalty
LABEL_METRICS = ("accuracy", "balanced_accuracy")
MAX_ROUNDS = 12  # how often the search goes on from a new best
CELL_SIZES = (
    16_000,
    8_000,
    4_000,
    2_000,
    1_000,
)  # of cells in the last fit; the smallest where memory is
# the most that the power of rows may be: 1.6 to 2.6 were measured on a few thousand rows, of which
# those of a factorisation grow
MAX_POWER = 3.0
MIN_GROWTH = 1.5  # how much larger a fit must be to tell it
SAFE_SHARE = 0.7  # of the time left: what a guess of seconds is worth


FoldedProblem = tuple[SearchProblem, FoldPlan]


@dataclass(frozen=True, eq=False)
class TunedMachine:
    """The setting that was best, and what a cell of so many rows took to fit."""

    setting: MachinePlan
    target: TargetTransform
    seconds: float
    rows: int
    power: float = 2.0  # of the rows of a cell in its seconds

    def timed(self, seconds: float, rows: int) -> TunedMachine:
        """With the seconds of a larger fit, and the power that both together tell."""
        if rows < MIN_GROWTH * self.rows:
            return self
        if isinstance(self.setting, LearnedSetting):
            return replace(self, seconds=max(seconds, 1e-4), rows=rows)
        power = math.log(max(seconds, 1e-4) / self.seconds) / math.log(rows / self.rows)
        return replace(
            self,
            seconds=max(seconds, 1e-4),
            rows=rows,
            power=min(max(power, self.power), MAX_POWER),
        )

    def alone(self) -> TunedMachine:
        """Of a mean of machines the best alone, in the seconds that are its own."""
        if not isinstance(self.setting, LearnedSetting) or len(self.setting.members) < 2:
            return self
        one, all_ = self.setting.alone(), self.setting.work(self.rows, self.rows)
        share = one.work(self.rows, self.rows) / max(all_, 1e-12)
        return replace(self, setting=one, seconds=max(share * self.seconds, 1e-4))

    @property
    def recipe(self) -> Recipe:
        return Recipe("machine", getattr(self.setting, "kernel", None))

    def guess(self, n: int, cell: int) -> float:
        """Seconds of a fit of n rows in such cells; each halving repeats some rows."""
        if isinstance(self.setting, LearnedSetting):
            once = self.setting.work(self.rows, self.rows)
            return self.seconds * self.setting.work(n, cell) / max(once, 1e-12)
        halvings, share = 0, 0.5 + OVERLAP
        while n * share**halvings > cell:
            halvings += 1
        return float(self.seconds * (n * share**halvings / self.rows) ** self.power * 2.0**halvings)

    def size(self, n: int, left: float, memory: float) -> tuple[int, int]:
        """(rows, rows of a cell): the largest cells in which all rows are done in time and memory,
        else fewer rows."""
        sizes = [c for c in (n, *CELL_SIZES[:-1]) if c <= n]
        able = [
            c
            for c in sizes
            if 4.0 * c * c * (1 if c == n else machines.PARALLEL_CELLS) <= memory / 2
        ] or [min(n, CELL_SIZES[-1])]
        for cell in able:
            if self.guess(n, cell) <= SAFE_SHARE * left:
                return n, cell
        last = able[-1]
        return max(min(n, last), int(n * SAFE_SHARE * max(left, 0.1) / self.guess(n, last))), last


Attempts = list[tuple[float, TunedMachine]]


def kernel_candidates(X: Array) -> list[Kernel]:
    """Kernels that are narrower than those of features: Laplace in the 1-norm first, which cuts as
    trees do."""
    few = X[:: max(1, len(X) // 2_000)].astype(np.float64)
    mixed = few[
        np.argsort(hashes(np.arange(len(few))), kind="stable")
    ]  # rows side by side in a file may be alike
    d = (
        float(np.abs(mixed - np.roll(mixed, 1, axis=0)).sum(1).mean()) or 1.0
    )  # the mean distance of two rows in the 1-norm
    b = math.sqrt(spread(few) / 2)
    near: list[Kernel] = [Laplace(rounded(d * f), norm=1) for f in (0.5, 0.25, 1.0)]
    return [*near, Gaussian(rounded(b)), Matern(rounded(b))]


def tune_machine(
    p: SearchProblem, target: TargetTransform, clock: Clock, share: float, memory: float
) -> TunedMachine:
    """A machine with a learnt metric; where labels of few classes count, also support vectors, of
    which the best and what is beside it are tried on the same folds."""
    found = find_machines(p, target, clock, _part(clock, share), memory)
    learnt = LearnedSetting.of(found, len(p.rows), p.seed)
    few = p.sample(min(FIRST_ROWS, budget.max_cell_rows(memory, machines.FACTOR_BYTES)))
    split = make_folds(few.rows, k=N_FOLDS, seed=p.seed)
    split = split if len(few.rows) <= ALL_FOLDS_ROWS else FoldPlan(split.block, split.plan[-1:])
    settings: list[MachinePlan] = [learnt, *hinge_settings(p, few.rows.X)]
    with single_blas():  # whose threads would wait for each other longer than they work
        tried = _round([(few, split)], settings, target, clock, share, memory)
        own = next(attempt for attempt in tried if attempt[1].setting is learnt)
        if not tried[0][0] < CLEARLY_LESS * own[0]:
            return own[1]
        best = tried[0][1]
        assert isinstance(best.setting, MachineSetting)
        beside = [best.setting.neighbour(b, v) for b, v in NEIGHBOURS]
        return _refined([(few, split)], beside, tried[0], clock, share, memory)


def hinge_settings(p: SearchProblem, X: Array) -> list[MachineSetting]:
    """Support vectors, where labels count and a machine for every two classes takes no long."""
    if not 2 <= p.n_classes <= HINGE_CLASSES or p.metric.name not in LABEL_METRICS:
        return []
    return [MachineSetting(k, v) for v in HINGE_PENALTIES for k in kernel_candidates(X)]


def _refined(
    trials: Sequence[FoldedProblem],
    settings: list[MachineSetting],
    best: tuple[float, TunedMachine],
    clock: Clock,
    share: float,
    memory: float,
) -> TunedMachine:
    """The best of these settings on these rows, and what is beside it, as long as that is better
    and there is time."""
    seen: set[MachineSetting] = set()
    for _ in range(MAX_ROUNDS):
        new = [s for s in settings if s not in seen]
        tried = _round(trials, new, best[1].target, clock, share, memory)
        if not tried or tried[0][0] >= best[0]:
            break
        best, seen = tried[0], seen | set(settings)
        assert isinstance(best[1].setting, MachineSetting)
        settings = [best[1].setting.neighbour(b, v) for b, v in NEIGHBOURS]
        if clock.left(share) <= 0:
            break
    return best[1]


def _round(
    trials: Sequence[FoldedProblem],
    settings: Sequence[MachinePlan],
    target: TargetTransform,
    clock: Clock,
    share: float,
    memory: float,
) -> Attempts:
    """(loss, tuned), the best first: in the order given, while time is left."""
    out: Attempts = []
    count = sum(len(split.plan) for _, split in trials)
    for i, setting in enumerate(settings):
        if out and clock.left(share) < out[-1][1].seconds * count:
            break
        clock.say(f"trying a machine: {setting.detail} ({i + 1} of {len(settings)})")
        watch, one = (
            Clock(0),
            partial(_loss, setting=setting, target=target, memory=memory / len(trials)),
        )
        fits = parallel_map(one, trials) if len(trials) > 1 else [one(trials[0])]
        loss, rows = (float(np.mean(values)) for values in zip(*fits, strict=True))
        seconds, power = max(watch.spent / count, 1e-4), setting.power(trials[0][0].n_classes)
        out.append((loss, TunedMachine(setting, target, seconds, max(int(rows), 1), power)))
    return sorted(out, key=_loss_of)


def _loss_of(attempt: tuple[float, TunedMachine]) -> float:
    return attempt[0] if np.isfinite(attempt[0]) else np.inf


def _part(clock: Clock, share: float) -> float:
    """The share of the time at which a part of what is left until then is spent."""
    spent = clock.spent / clock.budget
    return spent + FIRST_PART * max(share - spent, 0.0)


def _loss(
    trial: FoldedProblem, setting: MachinePlan, target: TargetTransform, memory: float
) -> tuple[float, int]:
    """The loss on rows that were not fitted, and how many were: squared error, or log loss and
    what the metric falls short of 1 by."""
    p, split = trial
    s, where, rows = out_of_fold(p, split, setting, target, memory)
    y, w = p.rows.y[where], p.rows.weights()[where]
    if not w.any():
        return math.inf, rows
    if p.numeric:
        return float(np.average(np.square(target.to(y) - s[where]), weights=w)), rows
    P = machines.cross_fitted_probabilities(s[where], y, w, np.arange(len(where)) % 2)
    missed = 0.0 if p.metric.name == "log_loss" else 1 - p.metric(y, P, w).value
    return log_loss(y, P, w).value + (missed if math.isfinite(missed) else 0.0), rows


def out_of_fold(
    p: SearchProblem,
    split: FoldPlan,
    setting: MachinePlan,
    target: TargetTransform,
    memory: float,
    until: Clock | None = None,
) -> tuple[Array, Array, int]:
    """Scores (n, K) or numbers (n,) of the rows that folds test, nan elsewhere; which rows those
    are; and how many were fitted."""
    out = np.full((len(p.rows), p.n_classes) if p.n_classes else len(p.rows), np.nan)
    rows = []
    for fold in range(len(split.plan)):
        if until is not None:
            until.check()
        train, test = split.split(fold)
        if p.rows.weights()[train].any() and len(test):
            part = p.rows.take(train)
            m = machines.fit_machine(
                part,
                part.y if p.n_classes else target.to(part.y),
                p.n_classes,
                setting,
                len(part),
                memory,
            )
            out[test] = m.scores(p.rows.X[test]) if p.n_classes else m.predict(p.rows.X[test])
            rows.append(len(part))
    where = np.flatnonzero(np.isfinite(out if out.ndim == 1 else out[:, 0]))
    return out, where, int(np.mean(rows)) if rows else 0
