"""Candidates: every kind at its best setting, scored by the same folds of the same rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.automl.budget import Clock
from mercer.automl.crossval import NO_LIMIT, refits
from mercer.automl.machines import MachinePlan, calibration, cross_fitted_probabilities
from mercer.automl.metrics import Score, log_loss, over_folds
from mercer.automl.predictors import ConstantPredictor, IdentityTarget, TargetTransform, all_classes
from mercer.automl.recipes import NAMES, Recipe, TreeGrowth
from mercer.automl.search import UNTRANSFORMED, SearchProblem, Trial, try_recipe
from mercer.automl.splits import N_FOLDS, FoldPlan, make_folds
from mercer.automl.tuning import TunedMachine, out_of_fold
from mercer.inputs import Array
from mercer.models import KernelLogistic

PENALTY_FACTORS = (0.1, 1.0, 10.0)  # penalties tried about the one that ridge regression suggests
MAX_ITER = 25  # of logistic regression in cross-validation
N_FOLDS_MULTICLASS = (
    3  # folds where there are more than two classes, each of which costs as much as a fit
)
LOGISTIC_CURVATURE = 0.15  # a logistic loss bends about so much as a squared one


@dataclass(frozen=True)
class FormulaPlan:
    """How the terms of a formula get their numbers: as the path of penalties has them, or fitted once
    more."""

    relaxed: bool


@dataclass(frozen=True, eq=False)
class ModelCandidate:
    """A kind at its best: its settings and the metric of its out-of-fold predictions."""

    kind: str
    recipe: Recipe | None
    size: int
    alpha: float
    target: TargetTransform
    score: Score
    seconds: float
    predicted: Array | None = None  # out of fold: numbers (n,) or probabilities (n, K), else nan
    scale: tuple[float, tuple[float, ...]] | None = None  # of a machine's scores: slope and offsets
    plan: MachinePlan | None = None  # of a machine
    members: tuple[tuple[str, float], ...] = ()  # of a mean of models: their kinds and weights
    # scores and predictions of every repeat of the folds, its own first, of which `score` is then
    # the mean; none where there is one
    repeats: tuple[tuple[Score, Array | None], ...] = ()
    growth: TreeGrowth | None = None  # of trees
    formula: FormulaPlan | None = None  # of a formula

    @property
    def name(self) -> str:
        return NAMES[self.kind]

    @property
    def probabilities(self) -> Array | None:
        """Out of fold, of classes."""
        return self.predicted if self.predicted is not None and self.predicted.ndim == 2 else None


def folds_of(p: SearchProblem) -> FoldPlan:
    """The folds on which candidates are compared."""
    return make_folds(p.rows, k=N_FOLDS_MULTICLASS if p.n_classes > 2 else N_FOLDS, seed=p.seed)


def constant_candidate(p: SearchProblem) -> ModelCandidate:
    """The mean or the shares of the training blocks."""
    split, clock = folds_of(p), Clock(0)
    out = None
    for fold in range(len(split.plan)):
        train, test = split.split(fold)
        found = ConstantPredictor.of(p.rows.y[train], p.rows.weights()[train], p.n_classes)(
            p.rows.X[test]
        )
        out = np.full((len(p.rows), *found.shape[1:]), np.nan) if out is None else out
        out[test] = found
    return ModelCandidate(
        "constant", None, 0, 0.0, IdentityTarget(), score_of(p, out), clock.spent, out
    )


def feature_candidate(
    p: SearchProblem,
    recipe: Recipe,
    size: int,
    hint: Trial | None = None,
    targets: Sequence[TargetTransform] = UNTRANSFORMED,
    until: Clock = NO_LIMIT,
) -> ModelCandidate:
    """A recipe at its best penalty: by ridge from the moments, and for classes then by logistic
    regression around it."""
    clock = Clock(0)
    tried = (
        hint
        if hint is not None and hint.size == size
        else try_recipe(p, recipe, size, targets=targets, until=until)
    )
    if p.numeric:
        assert tried.predicted is not None
        f = p.kept(tried.target.back(tried.predicted[:, 0]))
        return ModelCandidate(
            recipe.kind,
            recipe,
            tried.size,
            tried.alpha,
            tried.target,
            score_of(p, f),
            clock.spent + tried.seconds,
            f,
        )
    alpha, P = _logistic(p, recipe, tried, until)
    return ModelCandidate(
        recipe.kind,
        recipe,
        tried.size,
        alpha,
        IdentityTarget(),
        score_of(p, P),
        clock.spent,
        P,
    )


def machine_candidate(
    p: SearchProblem, tuned: TunedMachine, memory: float, until: Clock = NO_LIMIT
) -> ModelCandidate:
    """A kernel machine on the same folds; its scores become probabilities by a calibration that
    leaves their fold out."""
    clock, split, setting = Clock(0), folds_of(p), tuned.setting
    s, where, _ = out_of_fold(p, split, setting, tuned.target, memory, until)
    y, w = p.rows.y[where], p.rows.weights()[where]
    P = np.full(s.shape if p.n_classes else (len(s),), np.nan)
    target, scale = tuned.target, None
    if p.numeric:
        target = (
            target
            if isinstance(target, IdentityTarget) or not len(where)
            else target.retransformed(y, s[where], w, p.metric)
        )
        P[where] = p.kept(target.back(s[where]))
    else:
        P[where], scale = (
            cross_fitted_probabilities(s[where], y, w, split.block[where]),
            calibration(s[where], y, w),
        )
    return ModelCandidate(
        "machine",
        tuned.recipe,
        len(p.rows),
        float(getattr(setting, "penalty", 0.0)),
        target,
        score_of(p, P),
        clock.spent,
        P,
        scale,
        setting,
    )


def _logistic(p: SearchProblem, recipe: Recipe, tried: Trial, until: Clock) -> tuple[float, Array]:
    """The penalty of the least log loss on one fold, and with it the probabilities over all
    folds."""
    split = folds_of(p)
    one = FoldPlan(split.block, split.plan[-1:])
    where, alphas = (
        one.tested(),
        [max(1e-6, LOGISTIC_CURVATURE * tried.alpha * a) for a in PENALTY_FACTORS],
    )
    y, w = p.rows.y[where], p.rows.weights()[where]
    losses = [
        log_loss(y, _probabilities(p, recipe, tried.size, a, one, until)[where], w).value
        for a in alphas
    ]
    best = alphas[int(np.argmin(losses))]
    return best, _probabilities(p, recipe, tried.size, best, split, until)


def _probabilities(
    p: SearchProblem, recipe: Recipe, size: int, alpha: float, split: FoldPlan, until: Clock
) -> Array:
    def make() -> LenientLogistic:
        settings = {
            "alpha": alpha,
            "tol": 1e-3,
            "max_iter": MAX_ITER,
            "memory_limit": min(1e9, p.memory / 5),
        }
        return LenientLogistic(
            recipe.estimator(KernelLogistic, size, p.seed, **settings), p.n_classes
        )

    return refits(make, lambda m, X: m.predict(X), p.rows.X, p.rows.y, p.rows.weight, split, until)


class LenientLogistic:
    """Logistic regression that takes rows of one class only, and says nothing of rounds that were
    not enough."""

    def __init__(self, estimator: KernelLogistic, n_classes: int) -> None:
        self.estimator, self.n_classes = estimator, n_classes
        self.constant: ConstantPredictor | None = None

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> LenientLogistic:
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        if len(np.unique(y[w > 0])) < 2:
            self.constant = ConstantPredictor.of(y, w, self.n_classes)
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.estimator.fit(X, y, sample_weight)
        return self

    def predict(self, X: Array) -> Array:
        if self.constant is not None:
            return self.constant(X)
        return all_classes(self.estimator, self.estimator.predict_proba(X), self.n_classes)


def score_of(p: SearchProblem, out: Array | None) -> Score:
    """The metric of out-of-fold predictions."""
    assert out is not None
    split = folds_of(p)
    where = split.tested()
    return over_folds(
        p.metric, p.rows.y[where], out[where], p.rows.weights()[where], split.block[where]
    )
