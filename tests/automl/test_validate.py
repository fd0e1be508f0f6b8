"""A kernel machine against the best by folds, on validation rows."""

import dataclasses

import numpy as np
import pytest

from mercer.automl import validate
from mercer.automl.budget import Clock
from mercer.automl.candidates import feature_candidate
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import IdentityTarget, LogTarget, Regressor, transformations
from mercer.automl.recipes import LINEAR, TreeGrowth
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.automl.select import Selection, select_candidate
from mercer.automl.trees import grow_like
from mercer.automl.tuning import TunedMachine
from tests.automl.arrays import SETTING, checkers, forever, problem
from tests.automl.test_trees import DESIGN


def outcome(p, tuned):
    return Selection(p, (), feature_candidate(p, LINEAR, p.rows.X.shape[1]), (), tuned)


@pytest.mark.parametrize("classes", [0, 2])
def test_a_machine_that_is_clearly_ahead_has_won(classes, monkeypatch):
    monkeypatch.setattr(validate, "FIRST_ROWS", 500)
    p = checkers(2000) if classes else problem(2000)
    tuned = TunedMachine(
        SETTING, IdentityTarget() if classes else transformations(p.rows.y)[0], 1e-3, 500
    )
    met = validate.compare_on_validation(p, outcome(p, tuned), forever(), 0.9, 0.25, 1e9)
    assert met.machine_wins
    assert met.rival is None
    assert met.machine.rows == 2000 - met.n_validation == 1800
    assert "500 rows" in met.summary
    again = validate.refit_machine(p, tuned, met.machine.predictor, met.machine.features, 1e9)
    assert np.isfinite(again(p.rows.X)).all()


def test_a_straight_line_is_not_beaten():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)).astype(np.float32)
    y = X @ np.arange(1.0, 6.0) + rng.normal(size=2000)
    p = SearchProblem(TableRows(X, y, np.arange(2000)), METRICS["r2"], 0)
    met = validate.compare_on_validation(
        p,
        outcome(p, TunedMachine(SETTING, transformations(y)[0], 1e-3, 500)),
        forever(),
        0.9,
        0.25,
        1e9,
    )
    assert not met.machine_wins
    assert met.rival is not None


def skewed(n, **more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)).astype(np.float32)
    return SearchProblem(
        TableRows(X, np.exp(X[:, 0] + 0.7 * rng.normal(size=n)), np.arange(n), **more),
        METRICS["r2"],
        0,
    )


def test_a_smear_is_scored_on_rows_that_it_was_not_taken_from():
    p = skewed(1000)
    m = validate.Validation(
        p, outcome(p, None), TunedMachine(SETTING, LogTarget(), 1.0, 100), forever(), 1e9
    )
    z = np.log(m.held.rows.y) - np.where(
        m.half == 0, 0.5, 0.0
    )  # the first half is predicted too low, the second right
    low = Regressor(
        type("Known", (), {"predict": lambda self, X: z[: len(X)]})(), LogTarget(), 0.0, 9.0
    )
    ships, told = m.retransformed(low)
    assert np.array_equal(
        told[m.half == 0], np.clip(np.exp(z[m.half == 0]), 0, 9)
    )  # with the smear of the second: none
    assert told[m.half == 1] == pytest.approx(np.clip(np.exp(0.5 + z[m.half == 1]), 0, 9))
    assert ships.target.retransformation == pytest.approx((1 + np.exp(0.5)) / 2, rel=0.01)
    assert told.max() <= 9.0


def test_both_are_scored_by_one_rule(monkeypatch):
    asked = []
    own = validate.Validation.retransformed
    monkeypatch.setattr(
        validate.Validation,
        "retransformed",
        lambda self, predictor: asked.append(predictor) or own(self, predictor),
    )
    p = skewed(800)
    rival = feature_candidate(p, LINEAR, 2, targets=(LogTarget(),))
    met = validate.compare_on_validation(
        p,
        Selection(p, (), rival, (), TunedMachine(SETTING, LogTarget(), 1e-3, 500)),
        forever(),
        0.9,
        0.25,
        1e9,
    )
    assert met.rival is not None
    assert len(asked) == 2
    assert all(
        isinstance(f.predictor.target, LogTarget) and f.predictor.target.retransformation > 1.05
        for f in (met.machine, met.rival)
    )


def test_the_machine_has_the_time_that_the_rival_left(monkeypatch):
    monkeypatch.setattr(validate, "FIRST_ROWS", 200)
    given = []
    own = TunedMachine.size
    monkeypatch.setattr(
        TunedMachine,
        "size",
        lambda self, n, left, memory: given.append(left) or own(self, n, left, memory),
    )
    rival = validate.Validation.rival
    monkeypatch.setattr(
        validate.Validation,
        "rival",
        lambda self, *a: dataclasses.replace(rival(self, *a), seconds=700.0),
    )
    monkeypatch.setattr(validate.Validation, "ahead", lambda self, mine, theirs: 0.0)
    p = problem(600)
    validate.compare_on_validation(
        p,
        outcome(p, TunedMachine(SETTING, IdentityTarget(), 1e-3, 100)),
        Clock(1000.0),
        0.8,
        0.25,
        1e9,
    )
    assert given[-1] == pytest.approx(100.0, abs=30)  # 800 are to be spent, and the rival took 700


def test_halves_keep_groups_whole():
    p = problem(400, group=np.arange(400) // 8)
    m = validate.Validation(
        p, outcome(p, None), TunedMachine(SETTING, IdentityTarget(), 1.0, 100), forever(), 1e9
    )
    unit = m.held.rows.group
    assert set(m.half) == {0, 1}
    assert not np.intersect1d(unit[m.half == 0], unit[m.half == 1]).size


@pytest.mark.parametrize("classes", [0, 2])
def test_validation_rows_without_weight_do_not_stop_a_meeting(classes):
    w = np.r_[np.ones(300), np.zeros(100)]
    p = problem(400, classes=classes, time=np.arange(400.0), weight=w)
    met = validate.compare_on_validation(
        p, outcome(p, TunedMachine(SETTING, IdentityTarget(), 1e-3, 100)), forever(), 0.9, 0.25, 1e9
    )
    assert np.isfinite(met.machine.predictor(p.rows.X)).all()


def test_validation_rows_are_the_last_in_time_and_whole_groups():
    p = problem(400, time=np.arange(400.0))
    m = validate.Validation(
        p, outcome(p, None), TunedMachine(SETTING, IdentityTarget(), 1.0, 100), forever(), 1e9
    )
    assert m.held.rows.time.min() > m.rest.rows.time.max()
    p = problem(400, group=np.arange(400) // 8)
    m = validate.Validation(
        p, outcome(p, None), TunedMachine(SETTING, IdentityTarget(), 1.0, 100), forever(), 1e9
    )
    assert not np.intersect1d(m.held.rows.group, m.rest.rows.group).size


def test_more_rows_than_folds_leave_the_machine_to_a_meeting(monkeypatch):
    monkeypatch.setattr("mercer.automl.select.MAX_MACHINE_ROWS", 200)
    found = select_candidate(problem(300), forever())
    assert found.tuned is not None
    assert "machine" not in {f.kind for f in found.candidates}
    monkeypatch.undo()
    assert "machine" in {f.kind for f in select_candidate(problem(300), forever()).candidates}


@pytest.mark.parametrize("classes", [0, 2])
def test_a_mean_of_both_is_taken_where_they_err_apart_and_else_not(classes):
    p, rng = problem(3000, classes=classes), np.random.default_rng(0)
    m = validate.Validation(
        p, outcome(p, None), TunedMachine(SETTING, IdentityTarget(), 1.0, 100), forever(), 1e9
    )
    y = m.held.rows.y

    def fit(size):
        told = np.eye(2)[y] if classes else y
        told = told + size * rng.normal(size=told.shape)
        told = np.exp(told) / np.exp(told).sum(1, keepdims=True) if classes else told
        return validate.ScoredFit(None, 1, 1.0, m.score(told), told=told)

    apart = m.mean_members({"machine": fit(0.8), "linear": fit(0.8)})
    assert [kind for kind, _ in apart] == ["machine", "linear"]
    assert 0.3 < dict(apart)["machine"] < 0.7
    assert m.mean_members({"machine": fit(0.1), "linear": fit(5.0)}) == ()
    same = fit(0.5)
    assert m.mean_members({"machine": same, "linear": same}) == ()
    both = m.result(fit(0.8), fit(0.8), True, "", None)
    told = [v * f.told for (_, v), f in zip(both.members, (both.machine, both.rival), strict=True)]
    assert both.told == pytest.approx(sum(told))


@pytest.mark.parametrize("classes", [0, 2])
def test_trees_join_a_mean_where_that_helps_and_never_are_it_alone(classes):
    p, rng = problem(3000, classes=classes), np.random.default_rng(0)
    m = validate.Validation(
        p, outcome(p, None), TunedMachine(SETTING, IdentityTarget(), 1.0, 100), forever(), 1e9
    )
    y = m.held.rows.y

    def trees(size):
        told = np.eye(2)[y] if classes else y
        told = told + size * rng.normal(size=told.shape)
        told = np.exp(told) / np.exp(told).sum(1, keepdims=True) if classes else told
        return validate.ValidatedTrees(2.0, m.score(told), told)

    def fit(size):
        made = trees(size)
        return validate.ScoredFit(None, 1, 1.0, made.score, told=made.told)

    met = m.result(fit(0.8), None, True, "", trees(0.8))
    assert [kind for kind, _ in met.members] == ["machine", "trees"]
    assert 0.3 < dict(met.members)["trees"] < 0.7
    far = m.result(fit(5.0), None, True, "", trees(0.1)).members
    assert dict(far)["machine"] >= 0.1 - 1e-9  # trees alone are never the model
    assert sum(v for _, v in far) == pytest.approx(1)
    assert m.result(fit(0.1), None, True, "", trees(5.0)).members == ()


@pytest.mark.parametrize("classes", [0, 2])
def test_trees_are_grown_without_the_validation_rows(classes):
    p = replace_design(problem(1000, classes=classes))
    tuned = TunedMachine(SETTING, IdentityTarget(), 1e-3, 100)
    m = validate.Validation(p, outcome(p, tuned), tuned, forever(), 1e9)
    found = m.trees()
    by_hand = grow_like(m.rest.rows, DESIGN, classes, p.seed, TreeGrowth())
    assert np.array_equal(found.told, by_hand.predictor(m.held.rows.X))
    assert found.score.value > 0.5
    met = validate.compare_on_validation(p, outcome(p, tuned), forever(), 0.9, 0.25, 1e9)
    assert np.array_equal(met.trees.told, found.told)
    assert validate.Validation(p, outcome(p, tuned), tuned, Clock(10.0), 1e9).trees() is None


def replace_design(p):
    return dataclasses.replace(p, design=DESIGN)


def test_a_mean_of_both_is_judged_by_rows_as_they_weigh(monkeypatch):
    """On rows that weigh nothing the better one is right and the mean is not."""
    heavy = np.arange(6000) % 2 == 0
    p, rng = problem(6000, weight=np.where(heavy, 1.0, 1e-9)), np.random.default_rng(0)
    m = validate.Validation(
        p, outcome(p, None), TunedMachine(SETTING, IdentityTarget(), 1.0, 100), forever(), 1e9
    )
    y, light = m.held.rows.y, m.weights < 1
    told = [y + size * rng.normal(size=len(y)) for size in (0.8, 1.0)]
    told = [np.where(light, y + far, t) for t, far in zip(told, (0.0, 9.0), strict=True)]
    fits = [validate.ScoredFit(None, 1, 1.0, m.score(t), told=t) for t in told]
    monkeypatch.setattr(validate, "difference_error", lambda *given: np.inf)
    assert fits[0].score.value > fits[1].score.value
    members = m.mean_members(dict(zip(("machine", "linear"), fits, strict=True)))
    assert 0.3 < dict(members)["machine"] < 0.9
