"""The last fit, and how large it may be."""

import numpy as np
import pytest

from mercer.automl import refit
from mercer.automl.candidates import ModelCandidate, feature_candidate
from mercer.automl.predictors import ConstantPredictor, IdentityTarget
from mercer.automl.recipes import LINEAR, Recipe
from mercer.automl.refit import fit_all_rows
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.kernels import Gaussian
from tests.automl.arrays import KINDS, problem


@pytest.mark.parametrize("recipe", KINDS, ids=lambda r: r.kind)
def test_a_stream_is_like_all_rows_at_once(recipe, monkeypatch):
    p = problem(600)
    f = ModelCandidate(recipe.kind, recipe, 64, 0.1, IdentityTarget(0.5, 2.0), None, 0.0)
    monkeypatch.setattr(refit, "PENALTY_FACTORS", np.ones(1))
    whole = fit_all_rows(p, f, 64, 1e9)(p.rows.X)
    monkeypatch.setattr(refit, "STREAM_ROWS", 100)
    monkeypatch.setattr(refit, "BATCH_ROWS", 100)
    streamed = fit_all_rows(p, f, 64, 1e9)(p.rows.X)
    if recipe.kind in ("linear", "fourier"):
        assert np.abs(streamed - whole).max() < 1e-3
    else:  # these learn their map from the first batch
        assert p.metric(p.rows.y, streamed).value > p.metric(p.rows.y, whole).value - 0.15


def test_one_class_has_a_constant_model():
    p = problem(50, classes=2)
    one = SearchProblem(TableRows(p.rows.X, np.zeros(50, int), p.rows.row_id), p.metric, 2)
    f = ModelCandidate("linear", LINEAR, 3, 1.0, IdentityTarget(), None, 0.0)
    assert np.array_equal(fit_all_rows(one, f, 3, 1e9)(p.rows.X[:2]), [[1, 0], [1, 0]])


def test_rows_of_weight_in_one_class_only_have_a_constant_model():
    p = problem(100, classes=2, weight=np.zeros(100))
    p.rows.weight[np.flatnonzero(p.rows.y == 1)] = 1.0
    found = fit_all_rows(p, feature_candidate(p, LINEAR, 3), 3, 1e9)
    assert isinstance(found, ConstantPredictor)
    assert found.values == (0.0, 1.0)


def test_more_features_where_time_allows_and_fewer_rows_where_it_does_not():
    p = problem(1000)
    f = ModelCandidate(
        "fourier", Recipe("fourier", Gaussian(1.0)), 256, 1.0, IdentityTarget(), None, 1.0
    )
    assert refit.fit_size(p, f, 1000, 1e6, 4e9).features == 1024
    assert refit.fit_size(p, f, 10**8, 1.0, 4e9).rows < 10**8
    assert refit.fit_size(p, f, 1000, 1e6, 1e6).features == 256
