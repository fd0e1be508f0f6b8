"""The fit to all rows that is asked for: scores of the model before, intervals of rows not fitted."""

import numpy as np
import pandas as pd
import pytest

from mercer.automl import fit, fit_table
from mercer.automl.everything import joined_rows
from mercer.automl.rows import TableRows
from mercer.store import load


def table(n=260, seed=0, classes=False):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    y = np.sin(2 * a) + 0.5 * b + 0.2 * rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "y": np.where(y > 0, "up", "down") if classes else y})


@pytest.fixture
def watched(monkeypatch):
    """What the last study found."""
    seen = {}
    original = fit.Study.run

    def run(study):
        seen["study"], seen["found"] = study, original(study)
        return seen["found"]

    monkeypatch.setattr(fit.Study, "run", run)
    return seen


@pytest.mark.parametrize("classes", [False, True])
def test_the_saved_model_has_all_rows_and_scores_are_those_before(classes, watched, tmp_path):
    data, new = table(classes=classes), table(100, 1, classes)
    plain = fit_table(data, "y", time=1e-3)
    whole = fit_table(data, "y", time=1e-3, refit=True)
    assert (plain.result.rows_refitted, whole.result.rows_refitted) == (0, 260)
    assert [c.holdout for c in whole.result.contenders] == [
        c.holdout for c in plain.result.contenders
    ]
    assert "model before" in whole.result.verdict
    assert "fitted to these rows as well" in whole.result.holdout_rule
    chosen = whole.result.chosen.kind
    assert chosen == plain.result.chosen.kind
    assert not np.array_equal(
        plain.predictor(watched["study"].data.held.X), whole.predictor(watched["study"].data.held.X)
    )
    whole.save(tmp_path / "m.mercer")
    again = load(tmp_path / "m.mercer")
    assert again.predict(new).equals(whole.predict(new))
    assert again.result.rows_refitted == 260


def test_intervals_rest_on_residuals_of_rows_that_were_not_fitted(watched):
    model = fit_table(table(400), "y", time=1e-3, refit=True)
    study, found = watched["study"], watched["found"]
    y, f = found.apart
    residuals = np.abs(
        np.concatenate([study.data.held.y - found.chosen.evaluation.predicted, y - f])
    )
    assert model.margin.n == len(residuals) == 400
    assert model.margin.width == pytest.approx(
        np.sort(residuals)[int(np.ceil(401 * 0.9)) - 1], rel=1e-6
    )
    assert "cross-fitted residuals of 400 rows" in model.result.interval["guarantee"]
    fresh = table(800, 5)
    told = model.predict(fresh)
    assert 0.84 < np.mean((told["lower"] <= fresh["y"]) & (fresh["y"] <= told["upper"])) < 0.97


def test_rows_of_a_test_file_are_never_fitted(watched):
    data, test = table(), table(60, 3)
    with pytest.raises(ValueError, match="rows of a test file are never fitted"):
        fit_table(data, "y", test=test, refit=True, time=1e-3)
    model = fit_table(data, "y", test=test, time=1e-3)
    assert (len(watched["study"].data.train), model.result.rows_train) == (260, 260)
    other = test.assign(y=test["y"].to_numpy()[::-1].copy(), a=test["a"] + 1)
    again = fit_table(data, "y", test=other, time=1e-3)
    assert again.predict(data)["prediction"].equals(model.predict(data)["prediction"])


@pytest.mark.parametrize("most", [0.0, 1e9])
def test_joined_rows_have_every_value_of_both(most):
    rng = np.random.default_rng(0)
    sides = [
        TableRows(
            rng.normal(size=(n, 2)).astype(np.float32), np.arange(n), np.arange(n) + k, np.ones(n)
        )
        for n, k in ((5, 0), (3, 5))
    ]
    both = joined_rows(*sides, most)
    assert np.array_equal(both.X, np.concatenate([s.X for s in sides]))
    assert both.row_id.tolist() == list(range(8))
    assert both.y.dtype == np.int64
    assert both.group is None
