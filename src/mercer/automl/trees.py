"""Gradient-boosted trees as scikit-learn grows them by default, given categories as codes: the
rival that a table deserves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

from mercer.automl.boosted import BoostedTrees, TreeColumns, TreeEnsemble
from mercer.automl.budget import Clock
from mercer.automl.candidates import ModelCandidate, folds_of, score_of
from mercer.automl.predictors import ConstantPredictor, IdentityTarget
from mercer.automl.recipes import LEARNING_RATE, MULTICLASS_PENALTY, N_ROUNDS, TreeGrowth
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem

TREE_SHARE = 0.15  # of the time
CROSSVAL_PART = 0.8  # of that, for the folds
VALIDATION_PART = 0.4  # of that, for the trees that are validated before those of all rows
PROBE_ROWS = 5_000
MIN_ROWS = 20_000
PROBE_SHARE = 0.2  # of the seconds, that the first look takes at most
SECONDS_A_TREE = 1e-3  # 0.4 ms were measured for trees of 300 rows, and larger ones take more
FIRST_ROUNDS = 3  # rounds that are timed
PROBE_FITS = 2  # of them and three times as many, the second of which tells how many there will be
# rounds with which larger steps come to about what all rounds would; with time for fewer, steps
# stay as they are and it is said that rounds lack
MIN_ROUNDS = 34
SAFE_SHARE = 0.8  # of the rounds that the first ones promise: later trees are larger
PATIENCE = 1.2  # times the seconds, after which folds are given up
MIN_SECONDS = 1.0  # what trees always get
SINGLE_THREAD_CELLS = (
    4_000_000  # cells, below which threads wait for each other longer than they work
)


@dataclass(frozen=True, eq=False)
class GrownEnsemble:
    """A grown ensemble as it predicts, how it was grown, and on how many rows."""

    predictor: BoostedTrees
    growth: TreeGrowth
    rows: int


def few_threads(cells: int) -> AbstractContextManager[object]:
    """One thread where there is little to do."""
    return threadpool_limits(1 if cells < SINGLE_THREAD_CELLS else None, user_api="openmp")


def least_seconds(n_classes: int) -> float:
    """What one tree a class and round takes, however few the rows.

    >>> least_seconds(2) < 1 < 10 < least_seconds(150)
    True
    """
    return 0.0 if n_classes <= 2 else SECONDS_A_TREE * N_ROUNDS * n_classes


def fold_seconds(own: float, spare: float, needs: Sequence[float]) -> float:
    """For the folds of trees: their own seconds, or what is left of the time and none that was left
    out could use, less a part for the trees of all rows.

    >>> fold_seconds(3.0, 20.0, [5.0, 40.0]), fold_seconds(3.0, 2.0, [])
    (12.0, 3.0)
    """
    rest = spare - sum(need for need in needs if need <= spare - own)
    return max(own, CROSSVAL_PART * rest)


def grow_trees(
    rows: TableRows, design: TreeColumns, n_classes: int, seed: int, clock: Clock, seconds: float
) -> GrownEnsemble:
    """The ensemble of all rows, or of as many as the seconds allow; where even so time is up, fewer
    rounds."""
    n = len(rows)
    if n > MIN_ROWS:
        probe = Clock(0)
        _, growth = _boost(
            rows.sample(PROBE_ROWS, seed), design, n_classes, seed, PROBE_SHARE * seconds
        )
        n = max(
            MIN_ROWS,
            min(n, int(PROBE_ROWS * seconds * growth.rounds / N_ROUNDS / max(probe.spent, 1e-3))),
        )
    used = rows.sample(n, seed)
    clock.say(f"growing trees on {len(used):,} rows")
    model, growth = _boost(used, design, n_classes, seed, max(seconds, MIN_SECONDS))
    return _grown(model, used, design, n_classes, growth)


def grow_like(
    rows: TableRows, design: TreeColumns, n_classes: int, seed: int, growth: TreeGrowth
) -> GrownEnsemble:
    """The ensemble of all rows, grown as another was, however long it takes."""
    model = _model(n_classes, design, seed, growth)
    with few_threads(len(rows) * design.size):
        model.fit(design(rows.X), rows.y, sample_weight=rows.weight)
    return _grown(model, rows, design, n_classes, growth)


def trees_candidate(p: SearchProblem, seconds: float) -> ModelCandidate | None:
    """Trees on the folds of all, grown alike in each; None where the seconds are too few for so
    many rounds, or the problem does not say how trees see its columns."""
    split, watch = folds_of(p), Clock(0)
    if p.design is None:
        return None
    growth: TreeGrowth | None = None
    out = np.full((len(p.rows), p.n_classes) if p.n_classes else len(p.rows), np.nan)
    for fold in range(len(split.plan)):
        train, test = split.split(fold)
        part = p.rows.take(train).with_positive_weight()
        if not len(part) or (p.n_classes and len(np.unique(part.y)) < 2):
            constant = ConstantPredictor.of(part.y, part.weights(), p.n_classes)
            out[test] = constant(p.rows.X[test])
            continue
        if growth is None:
            each = seconds / len(split.plan)
            model, growth = _boost(part, p.design, p.n_classes, p.seed, each)
            grown = _grown(model, part, p.design, p.n_classes, growth)
            if growth.starved:
                return None
        else:
            grown = grow_like(part, p.design, p.n_classes, p.seed, growth)
        out[test] = grown.predictor(p.rows.X[test])
        if watch.spent > PATIENCE * seconds:
            return None
    score = score_of(p, out)
    made = ModelCandidate("trees", None, 0, 0.0, IdentityTarget(), score, watch.spent, out)
    return replace(made, growth=growth)


def _grown(
    model: Any, rows: TableRows, design: TreeColumns, n_classes: int, growth: TreeGrowth
) -> GrownEnsemble:
    low = 0.0 if not n_classes and rows.y.min() >= 0 else -np.inf
    codes = tuple(map(int, model.classes_)) if n_classes else ()
    trees, width = TreeEnsemble.of(model), int(rows.X.shape[1])
    predictor = BoostedTrees(trees, design, codes, n_classes, width, low)
    return GrownEnsemble(predictor, growth, len(rows))


def _model(n_classes: int, design: TreeColumns, seed: int, growth: TreeGrowth) -> Any:
    kind = HistGradientBoostingClassifier if n_classes else HistGradientBoostingRegressor
    categorical = design.categorical
    return kind(
        max_iter=growth.rounds,
        learning_rate=growth.rate,
        categorical_features=categorical if categorical.any() else None,
        random_state=seed,
        warm_start=True,
        l2_regularization=MULTICLASS_PENALTY if n_classes > 2 else 0.0,
    )


def _boost(
    rows: TableRows, design: TreeColumns, n_classes: int, seed: int, seconds: float
) -> tuple[Any, TreeGrowth]:
    """Some rounds first, and some more, which tell how many there is time for: where those are
    fewer than all, larger steps make up for it. The first are not asked, as what is done once
    weighs in them. The ensemble, and the rounds and the rate asked for in the end.
    """
    if n_classes and np.bincount(rows.y).max() == len(rows):
        raise ValueError("trees need rows of two classes.")
    first, rate, wanted = TreeGrowth(FIRST_ROUNDS), LEARNING_RATE, N_ROUNDS
    model = _model(n_classes, design, seed, first)
    X, whole, rounds, added, fits = design(rows.X), Clock(seconds), 0, FIRST_ROUNDS, 0
    with few_threads(len(rows) * design.size):
        while added > 0:
            watch, rounds, fits = Clock(0), rounds + added, fits + 1
            model.set_params(max_iter=rounds).fit(X, rows.y, sample_weight=rows.weight)
            able = whole.left() * added / max(watch.spent, 1e-6)
            if fits == PROBE_FITS and MIN_ROUNDS < able < N_ROUNDS - rounds:
                wanted = max(MIN_ROUNDS, int(SAFE_SHARE * able))
                rate, added, rounds = LEARNING_RATE * N_ROUNDS / wanted, FIRST_ROUNDS, 0
                model = _model(n_classes, design, seed, replace(first, rate=rate))
            else:
                added = int(min(wanted - rounds, 3 * rounds, able))
    return model, TreeGrowth(rounds, rate)
