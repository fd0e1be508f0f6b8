"""Split conformal intervals."""

import numpy as np
import pytest

from mercer.automl import intervals
from mercer.automl.predictors import LogTarget
from mercer.automl.rows import TableRows


@pytest.mark.parametrize("target", [None, LogTarget()])
def test_intervals_cover_what_they_promise_over_many_holdouts(target):
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        f = np.exp(rng.normal(size=200))
        y = f * np.exp(0.3 * rng.normal(size=200)) if target else f + rng.normal(size=200)
        low, high = intervals.margin(y[:100], f[:100], target)(f[100:])
        covered.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    assert 0.89 < np.mean(covered) < 0.93


def test_coverage_is_measured_on_other_rows_and_too_few_rows_have_no_interval():
    rng = np.random.default_rng(0)
    rows = TableRows(np.zeros((500, 1)), rng.normal(size=500), np.arange(500))
    told = intervals.interval_summary(rows, np.zeros(500), intervals.margin(rows.y, np.zeros(500)), None)
    assert 0.85 < told["coverage_measured"] < 0.95
    assert "90 %" in told["guarantee"]
    assert not np.isfinite(intervals.margin(rows.y[:5], np.zeros(5)).width)


def test_measured_coverage_is_of_the_intervals_that_predict_emits():
    """Wider ones of unusual rows cover more, and ends that are cut off cover less."""
    rng = np.random.default_rng(0)
    rows, f = TableRows(np.zeros((500, 1)), rng.normal(size=500), np.arange(500)), np.zeros(500)
    assert intervals.interval_summary(rows, f, intervals.margin(rows.y, f), None, wider=np.full(500, 5.0))["coverage_measured"] == 1.0
    cut = intervals.interval_summary(rows, f, intervals.margin(rows.y, f, low=0.0), None)["coverage_measured"]
    assert cut == pytest.approx(np.mean(rows.y >= 0), abs=0.06)


@pytest.mark.parametrize("width", [0.5, 800.0, np.inf])
def test_ends_of_intervals_of_a_logarithm_are_never_nan(width):
    low, high = intervals.Margin(width, shift=1.0)(np.array([-1.0, 0.0, 3.0]), np.array([1.0, 2.0, 1.0]))
    assert not np.isnan([*low, *high]).any()
    assert np.all(low <= high)
    assert np.isinf(high).all() == (width == np.inf)


def test_targets_that_have_no_logarithm_make_intervals_wide_and_no_warning():
    y = np.r_[np.ones(18), 0.0, -1.0]
    assert intervals.margin(y, np.ones(20), LogTarget()).width == np.inf
    assert intervals.margin(y, np.ones(20), LogTarget(2.0)).width < 2.0
