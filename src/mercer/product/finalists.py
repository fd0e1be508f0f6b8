"""Finalists: every kind at its best setting, scored by the same folds of the same rows; the simplest near the best is chosen."""
from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators import KernelLogistic
from mercer.inputs import Array
from mercer.product.clock import Clock
from mercer.product.crossval import ENDLESS, refits
from mercer.product.folds import FOLDS, Folds, folds
from mercer.product.machines import calibration, cross_fitted
from mercer.product.metrics import Score, gap_error, log_loss, over_folds
from mercer.product.predictors import Constant, spread_out
from mercer.product.recipes import KINDS, NAMES, Recipe
from mercer.product.search import AS_IT_IS, Problem, Tried, attempt
from mercer.product.targets import Identity, Target
from mercer.product.tuning import Tuned, out_of_fold

AROUND = (0.1, 1.0, 10.0)  # penalties tried about the one that ridge regression suggests
ROUNDS = 25  # of logistic regression in cross-validation
FEWER = 3  # folds where there are more than two classes, each of which costs as much as a fit
SOFTER = 0.15  # a logistic loss bends about so much as a squared one


@dataclass(frozen=True, eq=False)
class Finalist:
    """A kind at its best: its settings and the metric of its out-of-fold predictions."""

    kind: str
    recipe: Recipe | None
    size: int
    alpha: float
    target: Target
    score: Score
    seconds: float
    probabilities: Array | None = None  # out of fold
    scale: tuple[float, tuple[float, ...]] | None = None  # of a machine's scores: slope and offsets

    @property
    def name(self) -> str:
        return NAMES[self.kind]


def split_of(p: Problem) -> Folds:
    """The folds on which finalists are compared."""
    return folds(p.rows, k=FEWER if p.n_classes > 2 else FOLDS, seed=p.seed)


def constant(p: Problem) -> Finalist:
    """The mean or the shares of the training blocks."""
    split, clock = split_of(p), Clock(0)
    out = None
    for fold in range(len(split.plan)):
        train, test = split.split(fold)
        found = Constant.of(p.rows.y[train], p.rows.weights()[train], p.n_classes)(p.rows.X[test])
        out = np.full((len(p.rows), *found.shape[1:]), np.nan) if out is None else out
        out[test] = found
    return Finalist("constant", None, 0, 0.0, Identity(), _score(p, out, split), clock.spent)


def finalist(p: Problem, recipe: Recipe, size: int, hint: Tried | None = None, targets: Any = AS_IT_IS, until: Clock = ENDLESS) -> Finalist:
    """A recipe at its best penalty: by ridge from the moments, and for classes then by logistic regression around it."""
    clock = Clock(0)
    tried = hint if hint is not None and hint.size == size else attempt(p, recipe, size, targets=targets, until=until)
    if p.numeric:
        where = split_of(p).tested()
        f = tried.predicted
        assert f is not None
        score = p.metric(p.rows.y[where], p.kept(tried.target.back(f[where, 0])), p.rows.weights()[where])
        return Finalist(recipe.kind, recipe, tried.size, tried.alpha, tried.target, score, clock.spent + tried.seconds)
    alpha, P = _logistic(p, recipe, tried, until)
    return Finalist(recipe.kind, recipe, tried.size, alpha, Identity(), _score(p, P, split_of(p)), clock.spent, P)


def machine(p: Problem, tuned: Tuned, memory: float, until: Clock = ENDLESS) -> Finalist:
    """A kernel machine on the same folds; its scores become probabilities by a calibration that leaves their fold out."""
    clock, split, setting = Clock(0), split_of(p), tuned.setting
    s, where, _ = out_of_fold(p, split, setting, tuned.target, memory, until)
    y, w = p.rows.y[where], p.rows.weights()[where]
    P = np.full(s.shape if p.n_classes else (len(s),), np.nan)
    target, scale = tuned.target, None
    if p.numeric:
        target = target if isinstance(target, Identity) or not len(where) else target.smeared(y, s[where], w, p.metric)
        P[where] = p.kept(target.back(s[where]))
    else:
        P[where], scale = cross_fitted(s[where], y, w, split.block[where]), calibration(s[where], y, w)
    found = None if p.numeric else P
    return Finalist("machine", tuned.recipe, len(p.rows), setting.penalty, target, _score(p, P, split), clock.spent, found, scale)


def _logistic(p: Problem, recipe: Recipe, tried: Tried, until: Clock) -> tuple[float, Array]:
    """The penalty of the least log loss on one fold, and with it the probabilities over all folds."""
    split = split_of(p)
    one = Folds(split.block, split.plan[-1:])
    where, alphas = one.tested(), [max(1e-6, SOFTER * tried.alpha * a) for a in AROUND]
    y, w = p.rows.y[where], p.rows.weights()[where]
    losses = [log_loss(y, _probabilities(p, recipe, tried.size, a, one, until)[where], w).value for a in alphas]
    best = alphas[int(np.argmin(losses))]
    return best, _probabilities(p, recipe, tried.size, best, split, until)


def _probabilities(p: Problem, recipe: Recipe, size: int, alpha: float, split: Folds, until: Clock) -> Array:
    def make() -> Any:
        settings = {"alpha": alpha, "tol": 1e-3, "max_iter": ROUNDS, "memory_limit": min(1e9, p.memory / 5)}
        return Lenient(recipe.estimator(KernelLogistic, size, p.seed, **settings), p.n_classes)

    return refits(make, lambda m, X: m.predict(X), p.rows.X, p.rows.y, p.rows.weight, split, until)


class Lenient:
    """Logistic regression that takes rows of one class only, and says nothing of rounds that were not enough."""

    def __init__(self, estimator: Any, n_classes: int) -> None:
        self.estimator, self.n_classes = estimator, n_classes
        self.constant: Constant | None = None

    def fit(self, X: Array, y: Array, sample_weight: Array | None = None) -> Lenient:
        w = np.ones(len(y)) if sample_weight is None else sample_weight
        if len(np.unique(y[w > 0])) < 2:
            self.constant = Constant.of(y, w, self.n_classes)
            return self
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.estimator.fit(X, y, sample_weight)
        return self

    def predict(self, X: Array) -> Array:
        if self.constant is not None:
            return self.constant(X)
        return spread_out(self.estimator, self.estimator.predict_proba(X), self.n_classes)


def _score(p: Problem, out: Array | None, split: Folds) -> Score:
    assert out is not None
    where = split.tested()
    return over_folds(p.metric, p.rows.y[where], out[where], p.rows.weights()[where], split.block[where])


def choose(p: Problem, found: list[Finalist]) -> Finalist:
    """The simplest whose score is within one standard error of the best, the error being that of their difference."""
    where = split_of(p).tested()
    units = None if p.rows.unit is None else p.rows.unit[where]
    best = max(found, key=lambda f: p.metric.gain(f.score.value) if np.isfinite(f.score.value) else -np.inf)
    near = [f for f in found if _behind(p, f, best) <= gap_error(f.score, best.score, units)]
    return min(near or [best], key=lambda f: KINDS.index(f.kind))


def _behind(p: Problem, f: Finalist, best: Finalist) -> float:
    gap = p.metric.gain(best.score.value) - p.metric.gain(f.score.value)
    return gap if np.isfinite(gap) else np.inf
