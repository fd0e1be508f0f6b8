"""Transformations of the target, robust ways back from a logarithm, and constants."""

import re

import numpy as np
import pyarrow as pa
import pytest

from mercer.automl import fit_table
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import (
    ConstantPredictor,
    IdentityTarget,
    LogTarget,
    prediction_bounds,
    robust_retransformation,
    transformations,
)
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
    near, there = (
        try_recipe(q, LINEAR, 3, targets=transformations(q.rows.y)).score.value for q in (p, far)
    )
    assert there == pytest.approx(near, abs=1e-4)


def test_predictions_of_a_logarithm_are_means_again():
    rng = np.random.default_rng(0)
    z = rng.normal(size=4000)
    y = np.exp(z + 0.6 * rng.normal(size=4000))
    back = LogTarget().retransformed(y, z).back(z)
    assert back.mean() == pytest.approx(y.mean(), rel=0.1)
    assert np.exp(z).mean() < 0.9 * y.mean()
    assert np.isfinite(LogTarget().retransformed(y, z).back(np.array([1e6]))).all()


AT_ONCE = 1e-3


def dirty(n=1200, bad=3, seed=0, price=False):
    """Stones whose price is a logarithm of their side; in a few rows the side is 0, or the price is
    a hundred times too high."""
    rng = np.random.default_rng(seed)
    side = rng.normal(5.7, 0.6, n)
    y = np.exp(-1.5 + 1.6 * side + 0.15 * rng.normal(size=n))
    where = rng.choice(n, bad, replace=False)
    side[where] = 0.0
    y[where[: bad if price else 0]] *= 100
    return pa.table({"side": side, "depth": rng.normal(61, 1.4, n), "price": y})


def test_a_few_dirty_rows_do_not_spoil_a_linear_model_of_a_logarithm():
    e = fit_table(dirty(4000), "price", test=dirty(400, 0, seed=9), time=AT_ONCE).result
    found = {c.kind: c for c in e.contenders}
    assert "log of the target" in found["linear"].detail
    assert found["linear"].holdout > 0.9  # with the mean of exp(residual), below 0.6
    assert not re.search(r"better than a linear model .* by 0\.[2-9]", e.verdict)


@pytest.mark.parametrize("bad", [0, 3, 30])
@pytest.mark.parametrize("sigma", [0.1, 0.6, 1.2])
def test_the_smear_is_that_of_the_clean_rows_whatever_the_dirty_ones(bad, sigma):
    rng = np.random.default_rng(bad)
    r = sigma * rng.normal(size=4000)
    wild = np.append(r, rng.uniform(8, 30, bad) * rng.choice([-1, 1], bad))
    assert robust_retransformation(wild) == pytest.approx(np.exp(sigma**2 / 2), rel=0.12)


@pytest.mark.parametrize("metric", ["r2", "rmse", "mae"])
def test_the_way_back_is_never_worse_than_none(metric):
    rng = np.random.default_rng(0)
    z = rng.normal(size=2000)
    for noise in (rng.normal(size=2000), rng.standard_t(2, size=2000), rng.exponential(size=2000)):
        y, m = np.exp(z + 0.5 * noise), METRICS[metric]
        back = LogTarget().retransformed(y, z, metric=m)
        assert (
            m.gain(m(y, back.back(z)).value)
            >= m.gain(m(y, np.exp(np.minimum(z, back.top))).value) - 1e-12
        )


def test_weights_count_in_the_smear():
    r, w = np.array([0.0, 1.0] * 100), np.array([1.0, 0.0] * 100)
    assert robust_retransformation(r, w) == pytest.approx(1.0)
