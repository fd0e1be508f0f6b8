"""Split conformal intervals; rows unlike any of training: how many by chance, which always, and how
their intervals widen."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from mercer.automl import fit_table, intervals
from mercer.automl.intervals import MIN_DISTANCE, fit_novelty, widening
from mercer.automl.predictors import LogTarget, prediction_bounds
from mercer.automl.rows import TableRows
from mercer.store import load


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
    told = intervals.interval_summary(
        rows, np.zeros(500), intervals.margin(rows.y, np.zeros(500)), None
    )
    assert 0.85 < told["coverage_measured"] < 0.95
    assert "90 %" in told["guarantee"]
    assert not np.isfinite(intervals.margin(rows.y[:5], np.zeros(5)).width)


def test_measured_coverage_is_of_the_intervals_that_predict_emits():
    """Wider ones of unusual rows cover more, and ends that are cut off cover less."""
    rng = np.random.default_rng(0)
    rows, f = TableRows(np.zeros((500, 1)), rng.normal(size=500), np.arange(500)), np.zeros(500)
    assert (
        intervals.interval_summary(
            rows, f, intervals.margin(rows.y, f), None, wider=np.full(500, 5.0)
        )["coverage_measured"]
        == 1.0
    )
    cut = intervals.interval_summary(rows, f, intervals.margin(rows.y, f, low=0.0), None)[
        "coverage_measured"
    ]
    assert cut == pytest.approx(np.mean(rows.y >= 0), abs=0.06)


@pytest.mark.parametrize("width", [0.5, 800.0, np.inf])
def test_ends_of_intervals_of_a_logarithm_are_never_nan(width):
    low, high = intervals.Margin(width, shift=1.0)(
        np.array([-1.0, 0.0, 3.0]), np.array([1.0, 2.0, 1.0])
    )
    assert not np.isnan([*low, *high]).any()
    assert np.all(low <= high)
    assert np.isinf(high).all() == (width == np.inf)


def test_targets_that_have_no_logarithm_make_intervals_wide_and_no_warning():
    y = np.r_[np.ones(18), 0.0, -1.0]
    assert intervals.margin(y, np.ones(20), LogTarget()).width == np.inf
    assert intervals.margin(y, np.ones(20), LogTarget(2.0)).width < 2.0


AT_ONCE = 1e-3


def rows(X):
    return TableRows(np.asarray(X, np.float32), np.zeros(len(X)), np.arange(len(X)))


def normal(rng, n, p):
    return rng.normal(size=(n, p))


def heavy(rng, n, p):
    return np.clip(rng.standard_t(3, size=(n, p)), -10, 10)


def coded(rng, n, p):
    return np.eye(p)[rng.zipf(1.7, n) % p]


def ring(rng, n, p):
    X = rng.normal(size=(n, p))
    return 2 * X / np.linalg.norm(X, axis=1, keepdims=True)


@pytest.mark.parametrize("make", [normal, heavy, coded, ring])
@pytest.mark.parametrize(("n", "p"), [(300, 2), (300, 30), (6000, 8)])
def test_about_one_row_in_a_hundred_is_unusual_by_chance(make, n, p):
    flagged = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found = fit_novelty(rows(make(rng, n, p)), seed)
        flagged.append(np.mean(found(make(rng, 2000, p)) > 1))
    assert np.mean(flagged) < 0.02


def test_far_rows_are_always_unusual_and_middles_of_rings_too():
    rng = np.random.default_rng(0)
    for X in (normal(rng, 2000, 5), normal(rng, 150, 20), coded(rng, 600, 6), ring(rng, 2000, 2)):
        found = fit_novelty(rows(X))
        far = X[:20].copy()
        far[:, 1] = X[:, 1].max() + 4
        assert (found(far) > 1).all()
        assert (widening(found(far)) >= 2).all()
    assert (
        found(np.zeros((1, 2)))[0] > 1
    )  # of the ring: within the range of every column, and yet far from all rows


@pytest.mark.parametrize("n", [1, 2, 10])
def test_few_rows_and_equal_ones_have_limits(n):
    found = fit_novelty(rows(np.ones((n, 3))))
    assert found.far == found.out == MIN_DISTANCE
    assert found(np.ones((2, 3))).tolist() == [0.0, 0.0]
    assert (found(np.full((2, 3), 9.0)) > 1).all()
    assert found(np.zeros((0, 3))).shape == (0,)


def test_an_odd_cell_makes_a_row_unusual():
    found = fit_novelty(rows(np.random.default_rng(0).normal(size=(300, 2))))
    X = np.zeros((2, 2))
    assert (found(X, np.array([True, False])) > 1).tolist() == [True, False]


def houses(n, seed):
    rng = np.random.default_rng(seed)
    size, town = rng.uniform(20, 200, n), rng.choice(["north", "south", "east"], n)
    price = np.maximum(
        5 * (size - 60) * np.where(town == "south", 1.5, 1.0) + 60 * rng.normal(size=n), 0.0
    )
    return pd.DataFrame({"size": size, "town": town, "price": price})


@pytest.fixture(scope="module")
def model():
    return fit_table(houses(600, 0), "price", time=AT_ONCE)


def test_non_negative_targets_have_non_negative_predictions_and_intervals(model):
    found = model.predict(houses(400, 1))
    assert found["prediction"].min() >= 0
    assert found["lower"].min() >= 0
    for coverage in (0.5, 0.99):
        assert model.predict_interval(houses(400, 1), coverage)["lower"].min() >= 0
    assert prediction_bounds(np.array([0.0, 4.0]))[0] == 0
    assert prediction_bounds(np.array([-1.0, 4.0]))[0] < -1


def test_negative_targets_may_have_negative_predictions():
    table = houses(300, 0).assign(price=lambda t: t["price"] - 300)
    assert fit_table(table, "price", time=AT_ONCE).predict(table)["lower"].min() < -300


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_unusual_rows_are_flagged_in_frames_batches_and_after_loading_and_their_intervals_widen(
    model, tmp_path
):
    usual = houses(300, 2)
    odd = pd.DataFrame(
        {"size": [5000.0, 100.0, np.nan, -900.0], "town": ["south", "mars", "north", None]}
    )
    found, strange = model.predict(usual), model.predict(odd)
    assert set(found["unusual"]) <= {0, 1}
    assert found["unusual"].mean() < 0.03
    assert strange["unusual"].tolist() == [1, 1, 1, 1]
    plain = (found["upper"] - found["prediction"])[found["unusual"] == 0].median()
    assert ((strange["upper"] - strange["prediction"]) >= 1.9 * plain).all()
    assert pa.Table.from_batches(model.predict_batches(odd))["unusual"].to_pylist() == [1, 1, 1, 1]
    model.save(tmp_path / "m.mercer")
    assert load(tmp_path / "m.mercer").predict(odd).equals(strange)


def test_many_unusual_rows_are_a_warning_and_few_are_none(model):
    job = model.predicting(houses(300, 2))
    list(job.batches())
    assert not job.oddities()
    with pytest.warns(UserWarning, match=r"50 of 300 rows are unlike any row of training.*unusual"):
        model.predict(
            houses(300, 2).assign(size=lambda t: np.where(np.arange(300) < 50, 9000.0, t["size"]))
        )


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n", [150, 1000])
def test_a_messy_table_has_few_unusual_rows_by_chance(n):
    """Names that are new in one row of ten, heavy tails, gaps, dates."""

    def messy(n, seed):
        rng = np.random.default_rng(seed)
        x, gaps = (
            rng.normal(size=n),
            np.where(rng.uniform(size=n) < 0.02, np.nan, rng.normal(size=n)),
        )
        when = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, n), unit="D")
        names = [f"name {i}" for i in np.minimum(rng.zipf(1.6, n), 10**6)]
        return pd.DataFrame(
            {
                "x": x,
                "heavy": np.exp(2 * rng.normal(size=n)),
                "name": names,
                "gaps": gaps,
                "when": when,
                "y": x,
            }
        )

    found = fit_table(messy(n, 0), "y", time=AT_ONCE).predict(messy(3000, 1))
    assert found["unusual"].mean() < 0.03


def units(n, seed):
    rng = np.random.default_rng(seed)
    x, a = rng.uniform(1, 200, n), rng.normal(size=n)
    cells = [
        f"{v:.1f} mg" if most else f"{1000 * v:.0f} ug"
        for v, most in zip(x, rng.uniform(size=n) < 0.75, strict=True)
    ]
    return pd.DataFrame(
        {"c": cells, "a": a, "b": rng.normal(size=n), "y": x / 50 + a + 0.3 * rng.normal(size=n)}
    )


def codes(n, seed):
    rng = np.random.default_rng(seed)
    return units(n, seed).assign(c=[f"k{int(v)}" for v in rng.pareto(0.5, n).clip(0, 1e9)])


@pytest.mark.parametrize("make", [units, codes])
def test_rows_with_new_values_in_a_column_of_mostly_new_values_are_usual_and_its_own_file_has_not_drifted(
    make,
):
    train = make(600, 0)
    found = fit_table(train, "y", time=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found.predict(make(2000, 1))["unusual"].mean() < 0.03
        assert found.predict(train)["unusual"].mean() < 0.03


def test_two_units_are_named():
    said = fit_table(units(200, 0), "y", time=1e-3).result.warnings
    assert any("two units (mg, ug)" in text for text in said)
