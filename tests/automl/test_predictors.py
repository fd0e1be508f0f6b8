"""Transformations of the target, and constants."""

import numpy as np
import pytest

from mercer.automl.predictors import ConstantPredictor, IdentityTarget, LogTarget, prediction_bounds, transformations
from mercer.automl.recipes import LINEAR
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem, try_recipe
from tests.automl.arrays import problem


def test_weights_move_the_constant():
    assert ConstantPredictor.of(np.array([0.0, 1.0]), np.array([1.0, 3.0]), 0).values == (0.75,)
    assert ConstantPredictor.of(np.array([0, 2]), np.ones(2), 3).values == (0.5, 0.0, 0.5)
    assert prediction_bounds(np.array([1.0, 1.0])) == (1.0, 1.0)


def test_a_logarithm_is_tried_for_skewed_targets_only():
    y = np.exp(np.random.default_rng(0).normal(size=500))
    assert transformations(y) == [IdentityTarget(y.mean(), y.std()), LogTarget()]
    assert transformations(np.append(y, 0.0))[1].shift > 0
    assert transformations(-y) == [IdentityTarget(-y.mean(), y.std())]
    assert transformations(np.ones(5)) == [IdentityTarget(1.0, 1.0)]


def test_a_target_far_from_zero_keeps_its_digits():
    p = problem(300)
    far = SearchProblem(TableRows(p.rows.X, 1e9 + p.rows.y, p.rows.row_id), p.metric, 0)
    near, there = (try_recipe(q, LINEAR, 3, targets=transformations(q.rows.y)).score.value for q in (p, far))
    assert there == pytest.approx(near, abs=1e-4)


def test_predictions_of_a_logarithm_are_means_again():
    rng = np.random.default_rng(0)
    z = rng.normal(size=4000)
    y = np.exp(z + 0.6 * rng.normal(size=4000))
    back = LogTarget().retransformed(y, z).back(z)
    assert back.mean() == pytest.approx(y.mean(), rel=0.1)
    assert np.exp(z).mean() < 0.9 * y.mean()
    assert np.isfinite(LogTarget().retransformed(y, z).back(np.array([1e6]))).all()
