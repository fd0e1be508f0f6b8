"""Every kind compared by the same folds, and the simplest near the best."""

import numpy as np
import pytest

from mercer import KernelLogistic, KernelRidge
from mercer.automl.candidates import (
    ModelCandidate,
    constant_candidate,
    feature_candidate,
)
from mercer.automl.choice import choose_candidate
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import IdentityTarget
from mercer.automl.recipes import EXPLICIT, LINEAR, Recipe
from mercer.automl.refit import fit_all_rows
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.kernels import Gaussian
from tests.automl.arrays import KINDS, problem


@pytest.mark.parametrize("recipe", KINDS, ids=lambda r: r.kind)
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_every_kind_is_compared_and_fitted(recipe, classes):
    p = problem(300, classes=classes)
    f = feature_candidate(p, recipe, recipe.size(64, 3, 300))
    assert np.isfinite(f.score.value)
    predictor = fit_all_rows(p, f, f.size, 1e9)
    found = predictor(p.rows.X)
    assert found.shape == ((300, classes) if classes else (300,))
    assert p.metric(p.rows.y, found).value > constant_candidate(p).score.value
    assert isinstance(predictor.estimator, KernelLogistic if classes else KernelRidge)
    assert not hasattr(predictor.estimator, "moments_")
    assert recipe.detail(64)


def test_the_simplest_within_an_error_is_chosen():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)).astype(np.float32)
    line = SearchProblem(
        TableRows(X, X[:, 0] + 0.5 * rng.normal(size=400), np.arange(400)), METRICS["r2"], 0
    )
    found = [
        constant_candidate(line),
        *(
            feature_candidate(line, r, 128)
            for r in (LINEAR, EXPLICIT, Recipe("fourier", Gaussian(1.0)))
        ),
    ]
    assert choose_candidate(line, found).kind == "linear"
    noise = SearchProblem(TableRows(X, rng.normal(size=400), np.arange(400)), METRICS["r2"], 0)
    found = [
        constant_candidate(noise),
        *(feature_candidate(noise, r, 128) for r in (LINEAR, Recipe("fourier", Gaussian(1.0)))),
    ]
    assert choose_candidate(noise, found).kind == "constant"
    wave = problem(600)
    found = [
        constant_candidate(wave),
        feature_candidate(wave, LINEAR, 3),
        feature_candidate(wave, Recipe("fourier", Gaussian(1.0)), 256),
    ]
    assert choose_candidate(wave, found).kind == "fourier"


def test_one_row_more_is_no_reason_for_a_more_flexible_model():
    y = np.arange(140) % 2
    p = SearchProblem(
        TableRows(np.zeros((140, 1), np.float32), y, np.arange(140)), METRICS["accuracy"], 2
    )
    right = np.eye(2)[y]
    almost = right.copy()
    almost[0] = almost[0, ::-1]
    simple, flexible = (
        ModelCandidate(kind, None, 0, 0.0, IdentityTarget(), METRICS["accuracy"](y, P), 0.0)
        for kind, P in (("linear", almost), ("fourier", right))
    )
    assert choose_candidate(p, [simple, flexible]) is simple
    worse = right.copy()
    worse[:10] = worse[:10, ::-1]
    far = ModelCandidate(
        "linear", None, 0, 0.0, IdentityTarget(), METRICS["accuracy"](y, worse), 0.0
    )
    assert choose_candidate(p, [far, flexible]) is flexible


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["auc", "balanced_accuracy"])
def test_a_constant_is_at_chance_however_rare_a_class_is(name, seed):
    y = np.zeros(300, int)
    y[np.random.default_rng(seed).choice(300, 7, replace=False)] = 1
    p = SearchProblem(
        TableRows(np.zeros((300, 1), np.float32), y, np.arange(300)), METRICS[name], 2, seed
    )
    assert constant_candidate(p).score.value == pytest.approx(0.5)
