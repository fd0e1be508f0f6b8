"""The fit to all rows that is asked for: scores of the model before, intervals of rows not fitted."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mercer.automl import everything, fit, fit_table
from mercer.automl.budget import Clock
from mercer.automl.candidates import ModelCandidate
from mercer.automl.everything import joined_rows, refit_everything
from mercer.automl.predictors import IdentityTarget
from mercer.automl.recipes import Recipe
from mercer.automl.refit import fit_all_rows
from mercer.automl.rows import TableRows
from mercer.automl.select import Selection
from mercer.automl.study import FittedCandidate, StudyResult
from mercer.automl.validate import ScoredFit, ValidationResult
from mercer.kernels import Gaussian
from mercer.store import load
from tests.automl.arrays import forever


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


@pytest.fixture
def study(watched):
    """A study of 208 training rows and 52 others, with all the time in the world."""
    fit_table(table(), "y", time=1e-3)
    return replace(watched["study"], clock=forever())


def found_by(study, kind, predictor, rows, seconds=0.0, validation=None, tuned=None):
    """What a study says that found one model of so many rows."""
    recipe = Recipe(kind, Gaussian(1.0))
    f = ModelCandidate(kind, recipe, 32, 0.1, IdentityTarget(), None, 0.0)
    entry = FittedCandidate(kind, predictor, None, seconds, "", "", rows)
    selection = Selection(study.problem, (f,), f, (), tuned)
    return StudyResult(selection, (entry,), kind, validation=validation), f


@pytest.mark.parametrize("kind", ["fourier", "landmarks"])
@pytest.mark.parametrize("seconds", [0.0, 1e12])
def test_the_saved_model_has_the_features_and_the_share_of_rows_that_were_scored(
    kind, seconds, study
):
    """However much time there is; of rows, where there is less, no fewer than were scored."""
    assert len(study.data.train) == 208
    for features, rows, then in ((32, 208, 260), (48, 104, 130)):
        _, f = found_by(study, kind, None, rows)
        before = fit_all_rows(study.problem.sample(rows), f, features, 1e9)
        found, _ = found_by(study, kind, before, rows, seconds)
        after, n = refit_everything(study, found)
        assert n == (rows if seconds else then)
        assert after.estimator.via == before.estimator.via


@pytest.mark.parametrize(("rows", "then"), [(208, 260), (188, 260), (94, 118)])
def test_a_machine_of_fewer_rows_stays_one_of_fewer(rows, then, study, monkeypatch):
    """Rows that validated are no choice; those that were left out to keep to time are."""
    seen = []
    monkeypatch.setattr(
        everything, "refit_machine", lambda p, *rest: seen.append(len(p.rows)) or "machine"
    )
    for seconds, n in ((1e-3, then), (1e12, rows)):
        mine = ScoredFit("former", rows, seconds, None, 50)
        validation = ValidationResult(mine, None, True, "", 20, 2.0)
        found, _ = found_by(study, "machine", "former", rows, seconds, validation, "tuned")
        assert refit_everything(study, found) == ("machine", n)
        assert seen.pop() == n


def test_the_fit_to_all_rows_has_the_seconds_that_are_left(study, monkeypatch):
    """Those kept for it, and what the study did not use: no new budget."""
    left = []
    monkeypatch.setattr(
        everything, "_again", lambda *given: left.append(given[-1]) or ("machine", 260)
    )
    found, _ = found_by(study, "machine", "former", 208)
    for spent, seconds in ((85.0, 15.0), (40.0, 60.0), (400.0, 1.0)):
        late = replace(study, clock=Clock(85.0, start=time.perf_counter() - spent))
        refit_everything(late, found)
        assert left.pop() == pytest.approx(seconds, abs=5)


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
