"""A readable candidate: a formula of few terms in the units of the table, its penalty chosen on the
folds of all, its numbers rounded as far as its score allows; what predicts is what is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from mercer.automl.budget import Clock, OutOfTime
from mercer.automl.candidates import FormulaPlan, ModelCandidate, folds_of, score_of
from mercer.automl.crossval import NO_LIMIT
from mercer.automl.formulas import ReadableModel, at_fewest_digits
from mercer.automl.machines import ignore_convergence
from mercer.automl.predictors import (
    Classifier,
    ConstantPredictor,
    IdentityTarget,
    Predictor,
    Regressor,
    TargetTransform,
    prediction_bounds,
)
from mercer.automl.reasons import LeftOut, took_too_long
from mercer.automl.recipes import NAMES, Recipe
from mercer.automl.search import UNTRANSFORMED, SearchProblem
from mercer.automl.terms import MAX_TERMS, fitted_again
from mercer.automl.thresholds import short_thresholds
from mercer.automl.units import ColumnUnits
from mercer.inputs import Array, Table
from mercer.lifts import KitchenSink
from mercer.models import SparseClassifier, SparseRegressor
from mercer.models.sparse.fit import SparseModel
from mercer.models.sparse.folds import FoldLosses
from mercer.models.sparse.maps import SparseMap, dictionary_of
from mercer.models.sparse.problem import SparseSettings, WeighedRows
from mercer.models.sparse.solve import Solver, SparsePath, grid
from mercer.models.sparse.terms import worded
from mercer.ops.threads import single_blas

FORMULA = Recipe("sparse")
MAX_SUPPORT = 40  # features that a penalty may keep, of which so many terms are found
MAX_CLASS_SUPPORT = 25
MAX_CLASSES = 5  # each has a formula
# columns, squares, products of pairs and jumps, at most; of classes, whose path takes longer
MAX_FEATURES = 600
MAX_CLASS_FEATURES = 200
N_JUMPS = 19  # a column
WORK = 2e9  # multiplications of Gram matrices a second, a guess on the safe side
N_ALPHAS, EPS = 40, 1e-3
N_CLASS_ALPHAS, CLASS_EPS = 20, 1e-2
TOL = 1e-4  # relative duality gap: choices of terms need no more


@dataclass(frozen=True, eq=False)
class FoldScores:
    """Of one fold: f (m, n_test, C) for every penalty, of the path and of its terms fitted once
    more; which classes C are of."""

    path: Array
    relaxed: Array
    present: Array


def formula_size(p: SearchProblem, seconds: float) -> int:
    """Features of the lift: as many as the seconds allow, but four a column; 0 where those are too
    many, or classes are."""
    most = MAX_CLASS_FEATURES if p.n_classes else MAX_FEATURES
    n, d = p.rows.X.shape
    if not d or 4 * d > most or p.n_classes > MAX_CLASSES:
        return 0
    folds = len(folds_of(p).plan) + 1
    able = np.sqrt(WORK * max(seconds, 0.0) / (n * folds))
    return int(min(most, max(able, 4 * d)))


def compare_formula(
    p: SearchProblem, until: Clock, found: list[ModelCandidate], targets: Sequence[TargetTransform]
) -> list[LeftOut]:
    """Compare a formula; why not, where columns or classes are many or time is up."""
    if p.units is None:
        return []
    if not (size := formula_size(p, until.budget)):
        n = p.n_classes
        many = f"{n:,} classes" if n > MAX_CLASSES else f"{p.rows.X.shape[1]:,} columns"
        return [LeftOut("sparse", f"{many} are too many for one to be read")]
    until.say(f"comparing by cross-validation: {NAMES['sparse'].lower()}")
    try:
        found.append(formula_candidate(p, size, targets, until))
    except OutOfTime:
        return [took_too_long("sparse", until.spent)]
    return []


def formula_candidate(
    p: SearchProblem,
    size: int,
    targets: Sequence[TargetTransform] = UNTRANSFORMED,
    until: Clock = NO_LIMIT,
) -> ModelCandidate:
    """The best formula by the folds of all, of the penalties that keep few terms: being few and told
    from nothing they need no larger one. `OutOfTime` where time is up."""
    clock = Clock(0)
    assert p.units is not None
    with ignore_convergence(), single_blas():
        found = [_of_target(p, p.units, size, t, until) for t in targets]
    best = max(found, key=lambda f: np.nan_to_num(p.metric.gain(f.score.value), nan=-np.inf))
    return replace(best, seconds=clock.spent)


def _of_target(
    p: SearchProblem, units: ColumnUnits, size: int, target: TargetTransform, until: Clock
) -> ModelCandidate:
    X = units(p.rows.X)
    y = target.to(p.rows.y) if p.numeric else p.rows.y
    w = p.rows.weights()
    s = SparseSettings.of(_estimator(p, size))
    alphas, short = _readable_penalties(s, X, y, w, p.n_classes)
    split = folds_of(p)
    parts = []
    for fold in range(len(split.plan)):
        until.check()
        train, test = split.split(fold)
        some = train[w[train] > 0]
        if len(some) and len(test):
            parts.append((test, _fold(s, (X[some], y[some], w[some]), X[test], p, alphas)))
    place, relaxed, out = _chosen(p, y, w, parts, short)
    if p.numeric:
        where = split.tested()
        if not isinstance(target, IdentityTarget):
            seen = (p.rows.y[where], out[where], w[where])
            target = target.retransformed(*seen, p.metric)
        out = p.kept(target.back(out))
    plan, score = FormulaPlan(relaxed), score_of(p, out)
    alpha = float(alphas[place])
    return ModelCandidate("sparse", FORMULA, size, alpha, target, score, 0.0, out, formula=plan)


def _estimator(p: SearchProblem, size: int, alpha: float | str = "cv") -> Any:
    lift = KitchenSink(size, n_knots=0, n_jumps=N_JUMPS, functions=())
    n, eps = (N_CLASS_ALPHAS, CLASS_EPS) if p.n_classes else (N_ALPHAS, EPS)
    cls = SparseClassifier if p.n_classes else SparseRegressor
    settings: dict[str, Any] = {
        "n_alphas": n,
        "eps": eps,
        "tol": TOL,
        "refit": False,
        "random_state": p.seed,
    }
    return cls(lift, alpha, memory_limit=max(p.memory / 4, 1e8), **settings)


def _sparse_rows(X: Array, y: Array, w: Array, n_classes: int) -> tuple[WeighedRows, Array]:
    """Classes by their places among those that the rows have, which come beside."""
    if not n_classes:
        return WeighedRows.of(Table(X), y, w, 0, None), np.zeros(0, np.int64)
    present, codes = np.unique(y, return_inverse=True)
    return WeighedRows.of(Table(X), codes, w, len(present), None), present


def _readable_penalties(
    s: SparseSettings, X: Array, y: Array, w: Array, n_classes: int
) -> tuple[Array, int]:
    """Those of all rows, from the largest on, up to the last that keeps features of which few terms
    may be found; and how many of them keep few."""
    some = np.flatnonzero(w > 0)
    rows, present = _sparse_rows(X[some], y[some], w[some], n_classes)
    if n_classes and len(present) < 2:
        return np.ones(1), 1
    _, D = dictionary_of(s, rows)
    solver = Solver.of(D, rows.loss(), s.tol)
    alphas = grid(solver.largest, s.n_alphas, s.eps)
    if solver.quadratic is not None:
        sizes = solver.path(alphas, 1.0)[0].sizes
        return alphas[: _until(sizes, MAX_SUPPORT)], _until(sizes, MAX_TERMS)
    sizes = _class_sizes(solver, alphas)
    return alphas[: _until(sizes, MAX_CLASS_SUPPORT)], _until(sizes, MAX_TERMS)


def _class_sizes(solver: Solver, alphas: Array) -> Array:
    """How many features each penalty keeps; none is solved after the first that keeps too many."""
    assert solver.sets is not None
    sizes: list[int] = []
    for a in alphas.tolist():
        sizes.append(len(solver.sets.at(a, 1.0).ids))
        if sizes[-1] > MAX_CLASS_SUPPORT:
            break
    return np.array(sizes)


def _until(sizes: Array, most: int) -> int:
    """How many come before the first that is larger; at least one.

    >>> _until(np.array([0, 3, 8, 12, 9]), 10), _until(np.array([12]), 10)
    (3, 1)
    """
    many = sizes > most
    return max(1, int(np.argmax(many))) if many.any() else len(sizes)


def _fold(
    s: SparseSettings,
    train: tuple[Array, Array, Array],
    test: Array,
    p: SearchProblem,
    alphas: Array,
) -> FoldScores:
    """Everything is learnt from the training rows: units of the path, the lift, its terms."""
    rows, present = _sparse_rows(*train, p.n_classes)
    if p.n_classes and len(present) < 2:
        nothing = np.zeros((len(alphas), len(test), 1))
        return FoldScores(nothing, nothing, present)
    phi, D = dictionary_of(s, rows)
    path, _ = Solver.of(D, rows.loss(), s.tol).path(alphas, 1.0)
    F = phi.columns(Table(test), path.ids)
    again = _relaxed(phi, rows, path, F)
    return FoldScores(path.scores(F).transpose(1, 0, 2), again, present)


def _relaxed(phi: SparseMap, rows: WeighedRows, path: SparsePath, F: Array) -> Array:
    """Scores (m, n, C) of the terms of every penalty, fitted once more."""
    known: dict[bytes, Array] = {}
    G = phi.columns(rows.rows, path.ids)
    out = []
    for i in range(len(path)):
        some = (path.coef[i] != 0).any(0)
        key = some.tobytes()
        if key not in known:
            b, b0 = (
                fitted_again(G[:, some], rows)
                if some.any()
                else (path.coef[i][:, some], path.intercept[i])
            )
            known[key] = F[:, some] @ b.T + b0
        out.append(known[key])
    return np.stack(out)


def _chosen(
    p: SearchProblem, y: Array, w: Array, parts: Sequence[tuple[Array, FoldScores]], short: int
) -> tuple[int, bool, Array]:
    """The place of the penalty, whether its terms are fitted once more, which all but the first
    `short` need, and what is then said of rows left out: numbers (n,) or probabilities (n, K)."""
    options = []
    for relaxed in (False, True):
        scores = [f.relaxed if relaxed else f.path[:short] for _, f in parts]
        said = [
            np.stack([_said(p, one, f.present) for one in found])
            for found, (_, f) in zip(scores, parts, strict=True)
        ]
        losses = np.stack(
            [_losses(y[at], w[at], out) for out, (at, _) in zip(said, parts, strict=True)], axis=1
        )
        options.append((FoldLosses(losses), said))
    relaxed = bool(options[1][0].means.min() < options[0][0].means.min())
    losses_of, said = options[relaxed]
    place = losses_of.best
    out = np.full((len(y), *said[0].shape[2:]), np.nan)
    for (at, _), one in zip(parts, said, strict=True):
        out[at] = one[place]
    return place, relaxed, out


def _said(p: SearchProblem, f: Array, present: Array) -> Array:
    """Scores (n, C) as numbers (n,) or probabilities (n, K) of all classes."""
    if p.numeric:
        return f[:, 0]
    out = np.zeros((len(f), p.n_classes))
    if len(present) < 2:
        out[:, present] = 1.0
    elif f.shape[1] == 1:
        out[:, present] = np.hstack([expit(-f), expit(f)])
    else:
        out[:, present] = softmax(f, axis=1)
    return out


def _losses(y: Array, w: Array, said: Array) -> Array:
    """Of every penalty, (m,): mean squared errors, or of -log P of the right class."""
    v = w / w.sum() if w.any() else np.full(len(w), 1 / len(w))
    if said.ndim == 2:
        return np.asarray(np.square(said - y) @ v)
    right = said[:, np.arange(len(y)), y]
    return -np.asarray(np.log(np.maximum(right, 1e-6)) @ v)


def fit_formula(p: SearchProblem, f: ModelCandidate, size: int) -> Predictor:
    """The formula of all rows at the candidate's penalty, rounded to the fewest digits at which its
    score on these rows stays."""
    assert f.formula is not None
    assert p.units is not None
    rows = p.rows.with_positive_weight()
    if p.n_classes and len(np.unique(rows.y)) < 2:
        return ConstantPredictor.of(p.rows.y, p.rows.weights(), p.n_classes)
    X = p.units(rows.X)
    y = f.target.to(rows.y) if p.numeric else rows.y
    m = _estimator(p, size, f.alpha)
    with ignore_convergence(), single_blas():
        m.fit(X, y, rows.weight)
        sparse, _ = _sparse_rows(X, y, rows.weights(), p.n_classes)
        few = _few_terms(m.model_, sparse, f.formula.relaxed)
        m.model_ = short_thresholds(few, p.units, X)

    def predictor(model: SparseModel, digits: int) -> Regressor | Classifier:
        n = type(m)(**m.get_params(deep=False))
        vars(n).update({**vars(m), "model_": model})
        assert p.units is not None
        said = ReadableModel(n, p.units, digits)
        if p.numeric:
            return Regressor(said, f.target, *prediction_bounds(p.rows.y))
        return Classifier(said, p.n_classes)

    def score(one: Predictor) -> Any:
        return p.metric(rows.y, one(rows.X), rows.weight)

    return at_fewest_digits(m.model_, f.target, (X, rows.weights()), predictor, score, p.metric)


def _few_terms(m: SparseModel, rows: WeighedRows, relaxed: bool) -> SparseModel:
    """The last model of the path that keeps few enough features, of which the terms are fitted once
    more, or that keeps few terms."""
    most = MAX_CLASS_SUPPORT if rows.classes else MAX_SUPPORT
    able = np.flatnonzero(m.path.sizes <= (most if relaxed else MAX_TERMS))
    place = int(able[-1]) if len(able) else 0
    ids, coef, b0 = m.path.at(place)
    F = m.map.columns(rows.rows, ids)
    if relaxed and len(ids):
        coef, b0 = fitted_again(F, rows)
        some = (coef != 0).any(0)
        ids, coef, F = ids[some], coef[:, some], F[:, some]
    deviations = np.sqrt(rows.w @ np.square(F - rows.w @ F))
    named = worded(m.map, ids)
    return replace(
        m, ids=ids, coef=coef, intercept=b0, deviations=deviations, names=named, place=place
    )
