"""A kernel machine against the best by folds, on validation rows."""

import dataclasses

import numpy as np
import pytest

from mercer.automl import validate
from mercer.automl.budget import Clock
from mercer.automl.candidates import Contest, contest, finalist
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import Identity, Log, Regressor, transformations
from mercer.automl.recipes import LINEAR
from mercer.automl.rows import Rows
from mercer.automl.search import Problem
from mercer.automl.tuning import Tuned
from tests.automl.arrays import SETTING, checkers, forever, problem


def outcome(p, tuned):
    return Contest(p, (), finalist(p, LINEAR, p.rows.X.shape[1]), (), tuned)


@pytest.mark.parametrize("classes", [0, 2])
def test_a_machine_that_is_clearly_ahead_has_won(classes, monkeypatch):
    monkeypatch.setattr(validate, "EQUAL", 500)
    p = checkers(2000) if classes else problem(2000)
    tuned = Tuned(SETTING, Identity() if classes else transformations(p.rows.y)[0], 1e-3, 500)
    met = validate.meet(p, outcome(p, tuned), forever(), 0.9, 0.25, 1e9)
    assert met.wins
    assert met.rival is None
    assert met.machine.rows == 2000 - met.aside == 1800
    assert "500 rows" in met.words
    again = validate.refitted(p, tuned, met.machine.predictor, met.machine.features, 1e9)
    assert np.isfinite(again(p.rows.X)).all()


def test_a_straight_line_is_not_beaten():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)).astype(np.float32)
    y = X @ np.arange(1.0, 6.0) + rng.normal(size=2000)
    p = Problem(Rows(X, y, np.arange(2000)), METRICS["r2"], 0)
    met = validate.meet(p, outcome(p, Tuned(SETTING, transformations(y)[0], 1e-3, 500)), forever(), 0.9, 0.25, 1e9)
    assert not met.wins
    assert met.rival is not None


def skewed(n, **more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)).astype(np.float32)
    return Problem(Rows(X, np.exp(X[:, 0] + 0.7 * rng.normal(size=n)), np.arange(n), **more), METRICS["r2"], 0)


def test_a_smear_is_scored_on_rows_that_it_was_not_taken_from():
    p = skewed(1000)
    m = validate.Meeting(p, outcome(p, None), Tuned(SETTING, Log(), 1.0, 100), forever(), 1e9)
    z = np.log(m.held.rows.y) - np.where(m.half == 0, 0.5, 0.0)  # the first half is predicted too low, the second right
    low = Regressor(type("Known", (), {"predict": lambda self, X: z[: len(X)]})(), Log(), 0.0, 9.0)
    ships, told = m.told(low)
    assert np.array_equal(told[m.half == 0], np.clip(np.exp(z[m.half == 0]), 0, 9))  # with the smear of the second: none
    assert told[m.half == 1] == pytest.approx(np.clip(np.exp(0.5 + z[m.half == 1]), 0, 9))
    assert ships.target.smear == pytest.approx((1 + np.exp(0.5)) / 2, rel=0.01)
    assert told.max() <= 9.0


def test_both_are_scored_by_one_rule(monkeypatch):
    asked = []
    own = validate.Meeting.told
    monkeypatch.setattr(validate.Meeting, "told", lambda self, predictor: asked.append(predictor) or own(self, predictor))
    p = skewed(800)
    rival = finalist(p, LINEAR, 2, targets=(Log(),))
    met = validate.meet(p, Contest(p, (), rival, (), Tuned(SETTING, Log(), 1e-3, 500)), forever(), 0.9, 0.25, 1e9)
    assert met.rival is not None
    assert len(asked) == 2
    assert all(isinstance(f.predictor.target, Log) and f.predictor.target.smear > 1.05 for f in (met.machine, met.rival))


def test_the_machine_has_the_time_that_the_rival_left(monkeypatch):
    monkeypatch.setattr(validate, "EQUAL", 200)
    given = []
    own = Tuned.size
    monkeypatch.setattr(Tuned, "size", lambda self, n, left, memory: given.append(left) or own(self, n, left, memory))
    rival = validate.Meeting.rival
    monkeypatch.setattr(validate.Meeting, "rival", lambda self, *a: dataclasses.replace(rival(self, *a), seconds=700.0))
    monkeypatch.setattr(validate.Meeting, "ahead", lambda self, mine, theirs: 0.0)
    p = problem(600)
    validate.meet(p, outcome(p, Tuned(SETTING, Identity(), 1e-3, 100)), Clock(1000.0), 0.8, 0.25, 1e9)
    assert given[-1] == pytest.approx(100.0, abs=30)  # 800 are to be spent, and the rival took 700


def test_halves_keep_groups_whole():
    p = problem(400, unit=np.arange(400) // 8)
    m = validate.Meeting(p, outcome(p, None), Tuned(SETTING, Identity(), 1.0, 100), forever(), 1e9)
    unit = m.held.rows.unit
    assert set(m.half) == {0, 1}
    assert not np.intersect1d(unit[m.half == 0], unit[m.half == 1]).size


@pytest.mark.parametrize("classes", [0, 2])
def test_validation_rows_without_weight_do_not_stop_a_meeting(classes):
    w = np.r_[np.ones(300), np.zeros(100)]
    p = problem(400, classes=classes, time=np.arange(400.0), weight=w)
    met = validate.meet(p, outcome(p, Tuned(SETTING, Identity(), 1e-3, 100)), forever(), 0.9, 0.25, 1e9)
    assert np.isfinite(met.machine.predictor(p.rows.X)).all()


def test_validation_rows_are_the_last_in_time_and_whole_groups():
    p = problem(400, time=np.arange(400.0))
    m = validate.Meeting(p, outcome(p, None), Tuned(SETTING, Identity(), 1.0, 100), forever(), 1e9)
    assert m.held.rows.time.min() > m.rest.rows.time.max()
    p = problem(400, unit=np.arange(400) // 8)
    m = validate.Meeting(p, outcome(p, None), Tuned(SETTING, Identity(), 1.0, 100), forever(), 1e9)
    assert not np.intersect1d(m.held.rows.unit, m.rest.rows.unit).size


def test_more_rows_than_folds_leave_the_machine_to_a_meeting(monkeypatch):
    monkeypatch.setattr("mercer.automl.candidates.BY_FOLDS", 200)
    found = contest(problem(300), forever())
    assert found.tuned is not None
    assert "machine" not in {f.kind for f in found.found}
    monkeypatch.undo()
    assert "machine" in {f.kind for f in contest(problem(300), forever()).found}
