"""The kernel machine of tables: feature machines, whose metric is learnt, as the contest fits them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from mercer.automl.budget import Clock
from mercer.automl.predictors import TargetTransform
from mercer.automl.search import SearchProblem
from mercer.inputs import Array
from mercer.invariants import Each, Is, Whole
from mercer.models.feature_machine.fit import class_scores, spread
from mercer.models.feature_machine.losses import Loss, classification_loss
from mercer.models.feature_machine.machine import PAIR_BYTES, FeatureEnsemble, fit_members
from mercer.models.feature_machine.paths import GRADIENT_ROWS, MetricPath
from mercer.models.feature_machine.search import (
    MIN_SEARCH,
    PROMOTED_ROWS,
    FoundMachines,
    MetricProblem,
    search,
    without_search,
)
from mercer.store import register

RANKING_METRICS = ("auc", "average_precision")
ABSOLUTE_METRICS = ("mae",)
BALANCED_METRICS = ("balanced_accuracy",)
MAX_ENSEMBLE_ROWS = 20_000  # beyond which there is one machine and no mean
# rows on which the metric is learnt once more
MAX_METRIC_ROWS = 8_000
MIN_METRIC_ROWS = 2_000
# of a factor in float32 and of equations by conjugate gradients, measured on two cores
FACTOR_SECONDS = 3e-12
PAIR_SECONDS = 4e-8
POWER = 2.2  # between a factor and conjugate gradients
GRADIENT_BYTES = 24.0  # that slopes take for a row and one whose gradient is taken
TIE_BREAK = 0.5  # of the log loss beside a ranking or the errors of classes


@register("automl.LearnedModel")
@dataclass(frozen=True, eq=False)
class LearnedModel:
    """A feature machine: of numbers what it predicts, of classes one score each."""

    ensemble: FeatureEnsemble
    codes: tuple[int, ...]  # of the classes it knows; none of numbers
    n_features_in_: int

    must = dict(
        ensemble=Is("FeatureEnsemble", d="n_features_in_"),
        codes=Each(Whole(0, 1 << 31)),
        n_features_in_=Whole(1),
    )

    def _laws(self) -> str | None:
        outputs, K = len(self.ensemble.centre), len(self.codes)
        return (
            None
            if outputs == (1 if K in (0, 2) else K) and len(set(self.codes)) == K
            else f"has {outputs} outputs for {K} classes"
        )

    @property
    def classes_(self) -> Array:
        return np.asarray(self.codes, np.int64)

    @property
    def plan_(self) -> str:
        parts = zip(self.ensemble.members, self.ensemble.weights, strict=True)
        told = [f"{m.path.setting}, {m.path.rounds} rounds, weight {w:.2g}" for m, w in parts]
        return "; ".join(told)

    @property
    def n_cells(self) -> int:
        return max(len(m.cells) for m in self.ensemble.members)

    @property
    def importances_(self) -> Array:
        return self.ensemble.importances(self.n_features_in_)

    def predict(self, X: Array) -> Array:
        """Numbers, (n,)."""
        return self.ensemble(X)[:, 0]

    def decision_function(self, X: Array) -> Array:
        """About the share of each class, (n, classes)."""
        return class_scores(self.ensemble(X))


@dataclass(frozen=True)
class LearnedSetting:
    """The paths of a search and their weights; what it fits has cells of its own, in the metric."""

    members: tuple[tuple[MetricPath, float], ...]
    seed: int
    metric_rows: int = MAX_METRIC_ROWS  # on which the metric is learnt again
    cell: int | None = None  # rows at most; None: all

    @classmethod
    def of(cls, found: FoundMachines, n: int, seed: int) -> LearnedSetting:
        """What was found, the best alone where there are many rows; the metric on as many rows as
        the search had."""
        members = (found.best_alone() if n > MAX_ENSEMBLE_ROWS else found).members
        return cls(members, seed, min(MAX_METRIC_ROWS, max(found.rows, MIN_METRIC_ROWS)))

    def alone(self) -> LearnedSetting:
        """The machine that is best alone, which comes first."""
        return replace(self, members=((self.members[0][0], 1.0),))

    def work(self, n: int, cell: int) -> float:
        """Seconds of a fit of n rows in such cells, on a machine of which only ratios count: rounds
        of factors for the metric, then pairs of rows for each machine."""
        m, cell = min(n, self.metric_rows), min(n, cell)
        rounds = sum(path.rounds for path, _ in self.members)
        metric = rounds * (FACTOR_SECONDS * m**3 + PAIR_SECONDS * m**2)
        return metric + len(self.members) * PAIR_SECONDS * float(n) * cell

    own_cells: ClassVar[bool] = True

    def in_cells(self, most: int) -> LearnedSetting:
        return replace(self, cell=most)

    def power(self, n_classes: int) -> float:
        """Of the rows in the seconds of a fit, before larger fits tell it."""
        return POWER

    def fit(
        self, X: Array, y: Array, w: Array | None, n_classes: int, memory: float
    ) -> LearnedModel:
        """The machine of these rows; y are codes of at least two classes, or numbers."""
        Y, centre, scale, codes = targets(y, w, n_classes)
        weight = None if w is None else w / w.mean()
        most = len(X) if self.cell is None else self.cell
        fitted = fit_members(
            [path for path, _ in self.members],
            X,
            Y,
            weight,
            seed=self.seed,
            most=most,
            memory=memory,
            metric_rows=min(self.metric_rows, metric_rows_held(memory)),
        )
        weights = tuple(v for _, v in self.members)
        return LearnedModel(FeatureEnsemble(fitted, weights, centre, scale), codes, int(X.shape[1]))

    @property
    def detail(self) -> str:
        best, _ = max(self.members, key=lambda member: member[1])
        others = len(self.members) - 1
        more = f", and the mean with {others} others" if others else ""
        what = "no metric" if best.setting.form == "linear" else "a learnt metric"
        return f"{what}: {best.setting}{more}"

    def how(self, n_classes: int) -> str:
        """The loss, the rounds and the penalty of the machine that counts most."""
        best, _ = max(self.members, key=lambda member: member[1])
        what = "ridge regression of indicators" if n_classes else "ridge regression"
        return f"{what}, {best.rounds} rounds, penalty {best.penalties[-1]:.3g}"


def metric_rows_held(memory: float) -> int:
    """Rows whose metric is learnt in half of the memory: pairs of rows, and some arrays of them at
    the rows whose gradients are taken.

    >>> metric_rows_held(2e9), metric_rows_held(3e7)
    (8183, 645)
    """
    few = math.sqrt(memory / 2 / (PAIR_BYTES + GRADIENT_BYTES))
    slopes = GRADIENT_BYTES * GRADIENT_ROWS
    many = (math.sqrt(slopes**2 + 2 * PAIR_BYTES * memory) - slopes) / (2 * PAIR_BYTES)
    return max(MIN_SEARCH, int(few if few < GRADIENT_ROWS else many))


def targets(
    y: Array, w: Array | None, n_classes: int
) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """(targets about zero, centre, scale, codes of the classes that are there)."""
    if not n_classes:
        centre = np.average(y, weights=w)
        gap = np.asarray(y, np.float64)[:, None] - centre
        scale = spread(gap, w)
        return (gap / scale).astype(np.float32), np.array([centre]), scale, ()
    codes = np.unique(y)
    hot = (y[:, None] == codes).astype(np.float64)
    hot = hot[:, 1:] if len(codes) == 2 else hot
    shares = np.average(hot, axis=0, weights=w)
    return (hot - shares).astype(np.float32), shares, np.ones(len(shares)), tuple(codes.tolist())


def find_machines(
    p: SearchProblem, target: TargetTransform, clock: Clock, share: float, memory: float
) -> FoundMachines:
    """The search on the training rows, by the metric that was asked for, until that share of the
    time is spent."""
    rows = p.rows.with_positive_weight().sample(PROMOTED_ROWS, p.seed)
    y = rows.y if p.n_classes else target.to(rows.y)
    w = None if rows.weight is None or not rows.weight.any() else rows.weight
    Y, centre, _, codes = targets(y, w, p.n_classes)
    if len(rows) < MIN_SEARCH:
        return without_search(len(rows))
    problem = MetricProblem(
        rows.X,
        Y,
        None if w is None else w / w.mean(),
        centre if p.n_classes else np.zeros(1),
        len(codes),
        p.seed,
        memory,
        time.perf_counter() + max(clock.left(share), 0.0),
        rows.group,
        rows.time,
    )
    return search(replace(problem, judge=_judge(p, problem)))


def _judge(p: SearchProblem, problem: MetricProblem) -> Loss | None:
    """What the metric asks for in place of squares, or of log loss and errors: rankings for
    rankings, absolute errors for those, log loss alone, and the mean error of the classes."""
    name = p.metric.name
    if not p.n_classes:
        return _absolute_error if name in ABSOLUTE_METRICS else None
    if p.n_classes == 2 and name in RANKING_METRICS:
        return _scored(p, problem, classification_loss)
    if name in BALANCED_METRICS:
        return _scored(p, problem, log_loss_alone)
    if name == "log_loss":
        shift, by = problem.offset, _threshold(problem)
        return lambda F, Y, w: log_loss_alone(F + shift - by, Y + shift - by, w)
    return None


def _absolute_error(F: Array, Y: Array, w: Array | None) -> float:
    return float(np.average(np.abs(F - Y)[:, 0], weights=w))


def _scored(p: SearchProblem, problem: MetricProblem, smooth: Loss) -> Loss:
    """What the metric lacks of 1, and a part of a smooth loss, by which ties are broken."""
    shift, by = problem.offset, _threshold(problem)

    def loss(F: Array, Y: Array, w: Array | None) -> float:
        P, y = class_scores(F + shift), class_scores(Y + shift).argmax(1)
        lost = 1 - p.metric(y, P, np.ones(len(y)) if w is None else w).value
        least = smooth(F + shift - by, Y + shift - by, w)
        return lost + TIE_BREAK * least if np.isfinite(lost) else least

    return loss


def _threshold(problem: MetricProblem) -> float:
    """Of the one score of two classes, which a loss wants about zero."""
    return 0.5 if problem.Y.shape[1] == 1 else 0.0


def log_loss_alone(F: Array, Y: Array, w: Array | None) -> float:
    """Log loss at the best slope of the scores, without the share of errors; of two classes, one
    score above zero for the second.

    >>> F, Y = np.array([[1.0], [-1.0], [1.0]]), np.array([[0.5], [-0.5], [-0.5]])
    >>> round(classification_loss(F, Y, None) - log_loss_alone(F, Y, None), 3)
    0.333
    """
    decided, right = ((A[:, 0] > 0 if A.shape[1] == 1 else A.argmax(1)) for A in (F, Y))
    return classification_loss(F, Y, w) - float(np.average(decided != right, weights=w))
