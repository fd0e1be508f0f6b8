"""The last fit: a candidate on all training rows, with as many features as the time and memory left
allow."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.automl import budget, machines
from mercer.automl.candidates import ModelCandidate
from mercer.automl.predictors import (
    Classifier,
    ConstantPredictor,
    Predictor,
    Regressor,
    TargetTransform,
    prediction_bounds,
)
from mercer.automl.readable import fit_formula
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.automl.splits import FoldPlan, make_folds
from mercer.inputs import Array
from mercer.models import KernelLogistic, KernelRidge
from mercer.ops.threads import single_blas

MAX_FEATURES = 4096
MAX_ITER = 60
# rows that fix the map of a stream, and rows beyond which there is one
BATCH_ROWS = 1 << 16
STREAM_ROWS = 1 << 17
# square arrays of features that a fit holds at most: moments, those of a batch, their sum, factors
SQUARE_ARRAYS = 14
SINGLE_THREAD_WORK = (
    1e11  # multiplications, below which threads of BLAS wait for each other longer than they work
)
PENALTY_FACTORS = np.logspace(-2, 2, 5)  # on the candidate's penalty
FITS_OF_CROSSVAL = {
    True: 8.0,
    False: 6.0,
    # that cross-validation of a classifier took, of two classes or more: three penalties, then the
    # folds
}
MIN_ROWS = 5_000
MAX_LANDMARKS = 2048  # beyond them ridge regression has no features of its own


def fit_all_rows(p: SearchProblem, f: ModelCandidate, size: int, memory: float) -> Predictor:
    """The predictor of all these rows."""
    if f.recipe is None:
        return ConstantPredictor.of(p.rows.y, p.rows.weights(), p.n_classes)
    if f.kind == "machine":
        return _machine(p, f, memory)
    if f.kind == "sparse":
        return fit_formula(p, f, size)
    with single_blas() if len(p.rows) * float(size) ** 2 < SINGLE_THREAD_WORK else nullcontext():
        return _regressor(p, f, size, memory) if p.numeric else _classifier(p, f, size, memory)


def _machine(p: SearchProblem, f: ModelCandidate, memory: float) -> Predictor:
    """At all rows, as it was cross-validated on them; the retransformation and the calibration are
    those of rows that were left out."""
    assert f.plan is not None
    if p.n_classes and len(np.unique(p.rows.with_positive_weight().y)) < 2:
        return ConstantPredictor.of(p.rows.y, p.rows.weights(), p.n_classes)
    with machines.ignore_convergence():
        y = f.target.to(p.rows.y) if p.numeric else p.rows.y
        m = machines.fit_machine(p.rows, y, p.n_classes, f.plan, len(p.rows), memory)
    return machine_predictor(m, f.target, f.scale, p)


def machine_predictor(
    m: machines.Machine,
    target: TargetTransform,
    scale: tuple[float, tuple[float, ...]] | None,
    p: SearchProblem,
) -> Predictor:
    """What turns its output into numbers or probabilities."""
    if scale is None:
        return Regressor(m, target, *prediction_bounds(p.rows.y))
    return Classifier(replace(m, slope=scale[0], offsets=scale[1]), p.n_classes)


def _regressor(p: SearchProblem, f: ModelCandidate, size: int, memory: float) -> Regressor:
    """Back from a logarithm as cross-validation had it: what rows say that the model was fitted to
    would be too good."""
    if len(p.rows) > min(STREAM_ROWS, _batch_rows(p, memory)) and size <= budget.max_features(
        memory, SQUARE_ARRAYS
    ):
        m = _by_stream(p, p.rows, len(p.rows), f, size, memory, f.target)
    else:
        m = _at_once(p, f, size, memory, f.target)
    return Regressor(without_statistics(m), f.target, *prediction_bounds(p.rows.y))


def _at_once(
    p: SearchProblem, f: ModelCandidate, size: int, memory: float, target: TargetTransform
) -> KernelRidge:
    """The penalty is chosen once more, near the candidate's, by two folds of all rows."""
    assert f.recipe is not None
    split = make_folds(p.rows, k=2, seed=p.seed)
    wide = size > len(
        p.rows
    )  # then moments are large, factors slow, and the candidate was compared on these very rows
    by_folds = (
        p.rows.time is None and len(split.plan) > 1 and not wide and _squares(size, 4) < memory / 4
    )
    options: dict[str, Any] = (
        {"cv": _positions(split), "alphas": f.alpha * PENALTY_FACTORS}
        if by_folds
        else {"alpha": f.alpha}
    )
    m = f.recipe.estimator(
        KernelRidge, size, p.seed, memory_limit=max(memory / 2, _squares(size + 64, 8)), **options
    )
    return m.fit(p.rows.X, target.to(p.rows.y), p.rows.weight)


def fit_streamed_rows(
    p: SearchProblem, rows: TableRows, n: int, f: ModelCandidate, size: int, memory: float
) -> Predictor:
    """The same of n of the rows, which are more than memory holds; `p` has those that it does."""
    if f.recipe is None:
        only = replace(rows, X=rows.y[:, None])
        return ConstantPredictor.streamed(
            ((part.y, part.weights()) for part in only.sampled_batches(n, p.seed, STREAM_ROWS)),
            p.n_classes,
        )
    return Regressor(
        without_statistics(_by_stream(p, rows, n, f, size, memory, f.target)),
        f.target,
        *prediction_bounds(rows.y),
    )


def _by_stream(
    p: SearchProblem,
    rows: TableRows,
    n: int,
    f: ModelCandidate,
    size: int,
    memory: float,
    target: TargetTransform,
) -> KernelRidge:
    """A random batch fixes the map, the others are added to its moments."""
    assert f.recipe is not None
    m = f.recipe.estimator(
        KernelRidge,
        size,
        p.seed,
        memory_limit=max(memory / 2, _squares(size + 64, 8)),
        alpha=f.alpha,
    )
    few = min(BATCH_ROWS, _batch_rows(p, memory))
    for batch in chain([rows.sample(few, p.seed)], rows.sampled_batches(n, p.seed, 4 * few, few)):
        m.partial_fit(batch.X, target.to(batch.y), batch.weight)
    return m


def _batch_rows(p: SearchProblem, memory: float) -> int:
    """Rows that are fitted together."""
    return budget.max_rows(memory, 12.0 * p.rows.X.shape[1], 1 / 24)


def _squares(size: int, copies: int) -> float:
    return 8.0 * size * size * copies


def _positions(split: FoldPlan) -> list[tuple[Array, Array]]:
    return [split.split(i) for i in range(len(split.plan))]


def _classifier(p: SearchProblem, f: ModelCandidate, size: int, memory: float) -> Predictor:
    assert f.recipe is not None
    if len(np.unique(p.rows.with_positive_weight().y)) < 2:
        return ConstantPredictor.of(p.rows.y, p.rows.weights(), p.n_classes)
    m = f.recipe.estimator(
        KernelLogistic,
        size,
        p.seed,
        alpha=f.alpha,
        tol=1e-4,
        max_iter=MAX_ITER,
        memory_limit=memory / 5,
    )
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # how many rounds there were stands in the plan
        m.fit(p.rows.X, p.rows.y, p.rows.weight)
    return Classifier(without_statistics(m), p.n_classes)


def without_statistics(m: KernelRidge | KernelLogistic) -> KernelRidge | KernelLogistic:
    """Without the moments and rows that only further training needs: a model file holds what
    predicts."""
    return m.without_statistics() if isinstance(m, KernelRidge) else m


@dataclass(frozen=True)
class FitSize:
    """Features and rows of the last fit."""

    features: int
    rows: int


def ridge_work(n: float, D: float, solves: float) -> float:
    """Multiplications of the moments of n rows and of so many factorisations."""
    return n * D * D + solves * D**3 / 3 * 2  # float64 counts twice


def expected_seconds(here: SearchProblem, f: ModelCandidate, n: int, D: int) -> float:
    """What a fit of n rows with D features should take, by what cross-validation on `here` took."""
    took, rows = max(f.seconds, 1e-3), len(here.rows)
    if f.kind == "machine":
        return took / 2  # of some folds of all rows
    if f.kind == "sparse":
        return took / 2 * n / rows  # it was that of all rows and of the folds
    if here.numeric:
        return took * ridge_work(n, D, 12) / ridge_work(rows, f.size, 55)
    return took / FITS_OF_CROSSVAL[here.n_classes == 2] * (n / (0.75 * rows)) * (D / max(f.size, 1))


def fit_size(here: SearchProblem, f: ModelCandidate, n: int, left: float, memory: float) -> FitSize:
    """As many features as time and memory allow, up to four times those of the search; fewer rows
    only where even that is too slow."""
    if f.kind in ("constant", "machine"):
        return FitSize(f.size, n)
    if f.kind in ("linear", "sparse", "explicit"):
        return _rows(here, f, n, f.size, left, memory)
    most = min(MAX_FEATURES, 4 * f.size, budget.max_features(memory, SQUARE_ARRAYS))
    options = [
        D
        for D in (4 * f.size, 2 * f.size)
        if most >= D and (f.kind != "landmarks" or (n >= 4 * D and D <= MAX_LANDMARKS))
    ]
    fitting = [D for D in options if expected_seconds(here, f, n, D) <= left]
    return _rows(here, f, n, fitting[0] if fitting else f.size, left, memory)


def _rows(
    here: SearchProblem, f: ModelCandidate, n: int, D: int, left: float, memory: float
) -> FitSize:
    asked = expected_seconds(here, f, n, D)
    rows = n if asked <= max(left, 1.0) else max(min(n, MIN_ROWS), int(n * max(left, 1.0) / asked))
    return FitSize(D, min(rows, max_rows_held(here, f, memory)))


def max_rows_held(here: SearchProblem, f: ModelCandidate, memory: float) -> int:
    """The most rows that memory holds: of classifiers the scores for every class, some times over;
    and what maps learn from."""
    if f.kind == "sparse":  # all features of all rows, some times over
        return max(1000, int(memory / 4 / (8 * max(f.size, 1)) / 4))
    if here.numeric or f.kind == "constant":
        return 1 << 62
    learned = STREAM_ROWS if f.kind in ("explicit", "landmarks") else 1 << 62
    return min(learned, max(1000, int(memory / 3 / (64 * here.n_classes))))
