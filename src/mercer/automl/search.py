"""The search for a kernel, a bandwidth and a penalty: many on few rows, the best of them on more,
within the seconds given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.automl import budget
from mercer.automl.boosted import TreeColumns
from mercer.automl.budget import Clock
from mercer.automl.crossval import NO_LIMIT, ridge_path
from mercer.automl.metrics import Metric, Score, normalised
from mercer.automl.predictors import (
    IdentityTarget,
    TargetTransform,
    indicators,
    prediction_bounds,
    transformations,
)
from mercer.automl.recipes import (
    ALPHAS,
    Recipe,
    follow_relevance,
    kernels,
    neighbours,
    scaled,
    slopes,
)
from mercer.automl.rows import TableRows
from mercer.automl.splits import make_folds
from mercer.automl.units import ColumnUnits
from mercer.inputs import Array

UNTRANSFORMED: Sequence[TargetTransform] = (IdentityTarget(),)
FIRST_ROWS = 2_000
FIRST_SIZE = 256
# of the last rung
MAX_ROWS = 32_000
MAX_FEATURES = 1024
RELEVANCE_POWERS = (
    (0.25, 0.7),
    (0.5, 0.7),
    (0.5, 1.2),
)  # power of the slopes, and a factor on all bandwidths
MAX_SLOPE_COLUMNS = 200  # columns, beyond which no slopes are taken
MAX_RESPONSES = 2_000_000  # rows times classes
# classes, beyond which only what is cheap is always tried: the work grows with each of them
MANY_CLASSES = 100
GROWTH = 4  # of the rows from rung to rung; the features double


@dataclass(frozen=True, eq=False)
class Trial:
    """A recipe with its best penalty by cross-validation, and the score of its out-of-fold
    predictions."""

    recipe: Recipe
    size: int
    alpha: float
    target: TargetTransform
    score: Score
    seconds: float = 0.0
    predicted: Array | None = None


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """What is asked of the search: rows, the metric, and how many classes (0: a number is
    predicted)."""

    rows: TableRows
    metric: Metric
    n_classes: int
    seed: int = 0
    memory: float = 4e9  # bytes that arrays may take
    design: TreeColumns | None = None  # how trees see the columns; None: none take part
    units: ColumnUnits | None = None  # of the columns in the table; None: no formula takes part
    sums: bool = False  # whether only models take part whose fits are sums over rows

    @property
    def numeric(self) -> bool:
        return self.n_classes == 0

    def sample(self, n: int) -> SearchProblem:
        return replace(self, rows=self.rows.sample(n, self.seed))

    def responses(self, target: TargetTransform) -> Array:
        """What ridge regression fits: the transformed target, or one indicator a class."""
        return (
            target.to(self.rows.y)[:, None]
            if self.numeric
            else indicators(self.rows.y, self.n_classes)
        )

    def kept(self, f: Array) -> Array:
        """Numbers within what a predictor of these rows is kept within."""
        return np.clip(f, *prediction_bounds(self.rows.y))

    def path_score(self, target: TargetTransform, f: Array, where: Array) -> Score:
        """The metric for numbers; for classes the squared error of their indicators, which is
        smooth: both higher is better."""
        y, w = self.rows.y[where], self.rows.weights()[where]
        if self.numeric:
            s = self.metric(y, self.kept(target.back(f[where, 0])), w)
            return Score(self.metric.gain(s.value), self.metric.gain(1.0) * s.influence)
        errors = -np.square(f[where] - indicators(y, self.n_classes)).sum(1)
        v = normalised(w)
        return Score(float(v @ errors), v * (errors - v @ errors))


def try_recipe(
    p: SearchProblem,
    recipe: Recipe,
    size: int,
    alphas: Array = ALPHAS,
    targets: Sequence[TargetTransform] = UNTRANSFORMED,
    until: Clock = NO_LIMIT,
) -> Trial:
    """The best penalty and transformation of the target for a recipe, from one pass of moments for
    each; `OutOfTime` where time is up."""
    clock = Clock(0)
    split, size = make_folds(p.rows, seed=p.seed), recipe.size(size, p.rows.X.shape[1], len(p.rows))
    where, best = split.tested(), None
    for target in targets:
        paths = ridge_path(
            recipe.lift(size, p.seed),
            p.rows.X,
            p.responses(target),
            p.rows.weight,
            split,
            alphas,
            until,
            p.memory,
        )
        for alpha, f in zip(alphas, paths, strict=True):
            fitted = _retransformed(p, target, f, where) if p.numeric else target
            score = p.path_score(fitted, f, where)
            if best is None or score.value > best.score.value:
                best = Trial(recipe, size, float(alpha), fitted, score, predicted=f)
    assert best is not None
    return replace(
        best, seconds=clock.spent, predicted=np.array(best.predicted)
    )  # a copy, as it is one penalty of all


def _retransformed(
    p: SearchProblem, target: TargetTransform, f: Array, where: Array
) -> TargetTransform:
    """Back from a logarithm as suits the metric best, by predictions of left-out rows."""
    if isinstance(target, IdentityTarget):
        return target
    return target.retransformed(p.rows.y[where], f[where, 0], p.rows.weights()[where], p.metric)


def rungs(n: int) -> list[tuple[int, int]]:
    """(rows, features) of every round of the search; at least two, the second to refine what the
    first has found.

    >>> rungs(20_000), rungs(300)
    ([(2000, 256), (8000, 512), (20000, 1024)], [(300, 256), (300, 512)])
    """
    out, rows, size = [(min(n, FIRST_ROWS), FIRST_SIZE)], FIRST_ROWS, FIRST_SIZE
    while rows < min(n, MAX_ROWS) or len(out) < 2:
        rows, size = rows * GROWTH, size * 2
        out.append((min(n, rows, MAX_ROWS), min(size, MAX_FEATURES)))
    return out


def _within(steps: list[tuple[int, int]], p: SearchProblem) -> list[tuple[int, int]]:
    """With as many rows and features as memory holds; every penalty has a prediction for each class
    of all rows."""
    rows = budget.max_rows(
        p.memory, 16.0 * len(ALPHAS) * max(p.n_classes, 1) + 4 * p.rows.X.shape[1]
    )
    return [(min(n, rows), min(size, budget.max_features(p.memory))) for n, size in steps]


def successive_halving(p: SearchProblem, clock: Clock, share: float) -> tuple[Trial, SearchProblem]:
    """The best kernel and bandwidth: all on the first rung, the best and what they suggest on the
    next, while time is left.

    Returns it and the rows of the last rung, so that others can be compared on the same.
    """
    steps = _within(
        rungs(min(len(p.rows), max(FIRST_ROWS, MAX_RESPONSES // max(p.n_classes, 1)))), p
    )
    here, size = p.sample(steps[0][0]), steps[0][1]
    targets = (
        transformations(p.rows.y) if p.numeric else UNTRANSFORMED
    )  # a logarithm must be one of every row
    found = _rung(here, kernels(here.rows.X), size, targets, clock, share)
    for rows, size in steps[1:]:
        entered = _suggested(here, found)
        each = float(np.median([t.seconds for t in found])) * 2 * rows / len(here.rows)
        if each * min(len(entered), 4) > clock.left(share):
            break
        here = p.sample(rows)
        found = _rung(here, entered, size, _likely(found[0].target), clock, share)
    return found[0], here


def _suggested(here: SearchProblem, found: Sequence[Trial]) -> list[Recipe]:
    """The best, its neighbours, bandwidths that follow its slopes, and its nearest rivals."""
    best = found[0]
    if here.rows.X.shape[1] > MAX_SLOPE_COLUMNS:
        return list(
            dict.fromkeys([best.recipe, *neighbours(best.recipe), *(t.recipe for t in found[1:3])])
        )
    few = here.sample(budget.max_rows(here.memory, 12.0 * best.size))
    Y = few.responses(best.target)
    relevance = slopes(
        best.recipe.lift(best.size, here.seed),
        few.rows.X,
        Y / (Y.std() or 1.0),
        best.alpha,
        few.rows.weight,
    )
    follow = [
        scaled(follow_relevance(best.recipe, relevance, power), step)
        for power, step in RELEVANCE_POWERS
    ]
    return list(
        dict.fromkeys(
            [best.recipe, *follow, *neighbours(best.recipe), *(t.recipe for t in found[1:3])]
        )
    )


def _likely(target: TargetTransform) -> Sequence[TargetTransform]:
    """The transformation that won is kept: its rivals were compared on the first rung."""
    return (target,) if isinstance(target, IdentityTarget) else (type(target)(target.shift),)


def _rung(
    p: SearchProblem,
    recipes: Sequence[Recipe],
    size: int,
    targets: Sequence[TargetTransform],
    clock: Clock,
    share: float,
) -> list[Trial]:
    """Each recipe on these rows, in the order given while time is left, but at least three; the
    best first."""
    found: list[Trial] = []
    for i, recipe in enumerate(recipes):
        if i >= (3 if p.n_classes <= MANY_CLASSES else 1) and clock.left(share) < 0:
            break
        clock.say(f"trying {recipe.spelled} on {len(p.rows):,} rows ({i + 1} of {len(recipes)})")
        found.append(try_recipe(p, recipe, size, targets=targets))
    return sorted(found, key=lambda t: -_finite(t.score.value))


def _finite(value: float) -> float:
    return value if np.isfinite(value) else -np.inf
