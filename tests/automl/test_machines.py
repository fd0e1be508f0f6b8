"""Kernel machines of tables: weights, threads, classes that lack, calibration, files."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from mercer.automl import machines, refit
from mercer.automl.budget import Clock, OutOfTime
from mercer.automl.candidates import feature_candidate, machine_candidate
from mercer.automl.machines import (
    IndicatorRidge,
    Machine,
    MachineSetting,
    SingleClass,
    calibration,
    cross_fitted_probabilities,
)
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import (
    Classifier,
    IdentityTarget,
    LogTarget,
    Regressor,
    robust_retransformation,
    transformations,
)
from mercer.automl.recipes import LINEAR
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem
from mercer.automl.tuning import TunedMachine
from mercer.kernels import Laplace
from mercer.models import KernelRidge, KernelSVC
from mercer.ops.threads import limit
from mercer.store import decode, encode
from tests.automl.arrays import SETTING, checkers, problem


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_one_cell_is_the_estimator_itself(classes):
    p = problem(300, classes=classes)
    m = machines.fit_machine(p.rows, p.rows.y, classes, SETTING, 300, 1e9)
    if classes:
        own = KernelSVC(SETTING.kernel, C=10.0, via="exact").fit(p.rows.X, p.rows.y)
        assert np.array_equal(m.scores(p.rows.X).argmax(1), own.predict(p.rows.X))
    else:
        own = KernelRidge(SETTING.kernel, alpha=0.1, via="exact").fit(p.rows.X, p.rows.y)
        assert m.predict(p.rows.X) == pytest.approx(own.predict(p.rows.X), abs=1e-2)


@pytest.mark.parametrize("classes", [2, 3, 12])
@pytest.mark.parametrize("most", [400, 100])
def test_squares_of_indicators_learn_classes_and_survive_a_file(classes, most):
    p = problem(400, classes=classes)
    m = machines.fit_machine(
        p.rows, p.rows.y, classes, MachineSetting(SETTING.kernel, 0.1, "squared"), most, 1e9
    )
    assert all(isinstance(model, IndicatorRidge | SingleClass) for model in m.models)
    assert np.mean(m.scores(p.rows.X).argmax(1) == p.rows.y) > 0.85
    made = Classifier(m, classes)
    assert np.array_equal(decode(*encode(made))(p.rows.X), made(p.rows.X))
    if most == 400:
        own = KernelRidge(SETTING.kernel, alpha=0.1, via="exact").fit(
            p.rows.X, np.eye(classes)[p.rows.y]
        )
        assert m.scores(p.rows.X) == pytest.approx(own.predict(p.rows.X), abs=1e-2)


def test_outputs_and_classes_that_differ_are_refused():
    ridge = KernelRidge(SETTING.kernel).fit(np.eye(3), np.eye(3))
    for codes in ((0, 1), (0, 1, 1)):
        with pytest.raises(ValueError, match="outputs for"):
            decode(*encode(IndicatorRidge(ridge, codes)))


def test_cells_do_about_as_well_as_all_rows_at_once():
    p, new = checkers(3000), checkers(2000, seed=1)
    right = {
        most: np.mean(
            machines.fit_machine(p.rows, p.rows.y, 2, SETTING, most, 1e9)
            .scores(new.rows.X)
            .argmax(1)
            == new.rows.y
        )
        for most in (3000, 500)
    }
    assert right[3000] > 0.93
    assert right[500] > right[3000] - 0.03


def test_weights_of_zero_leave_rows_out():
    p = problem(200)
    w = np.r_[np.ones(150), np.zeros(50)]
    some = p.rows.take(slice(150))
    with_zeros = TableRows(p.rows.X, p.rows.y, p.rows.row_id, w)
    both = [
        machines.fit_machine(r, r.y, 0, SETTING, 999, 1e9).predict(p.rows.X)
        for r in (with_zeros, some)
    ]
    assert both[0] == pytest.approx(both[1], abs=1e-2)


@pytest.mark.parametrize("classes", [0, 2])
def test_a_region_without_weight_does_not_stop_a_fit(classes):
    p = problem(600, classes=classes)
    w = (p.rows.X[:, 0] > 0).astype(float)
    m = machines.fit_machine(
        TableRows(p.rows.X, p.rows.y, p.rows.row_id, w), p.rows.y, classes, SETTING, 100, 1e9
    )
    some = p.rows.take(w > 0)
    same = machines.fit_machine(some, some.y, classes, SETTING, 100, 1e9)
    ask = (lambda m: m.scores(p.rows.X)) if classes else (lambda m: m.predict(p.rows.X))
    assert ask(m) == pytest.approx(ask(same), abs=1e-2)


def test_the_number_of_threads_changes_nothing():
    p, memory = (
        problem(1600),
        2 * 2 * 16 * 500.0**2,
    )  # of which a half, but no quarter, holds a cell's factors
    found = []
    for threads in (1, 4):
        with limit(threads), machines.ignore_convergence():
            m = machines.fit_machine(p.rows, p.rows.y, 0, SETTING, 450, memory)
        found.append((m.predict(p.rows.X), [model.plan_.way for model in m.models]))
    assert found[0][1] == found[1][1]
    assert np.array_equal(found[0][0], found[1][0])
    with limit(1):
        one = TunedMachine(SETTING, IdentityTarget(), 1e-3, 2_000).size(100_000, 1e9, 1e9)
    with limit(8):
        assert TunedMachine(SETTING, IdentityTarget(), 1e-3, 2_000).size(100_000, 1e9, 1e9) == one


@pytest.mark.parametrize("classes", [2, 4])
def test_cells_that_lack_classes_know_what_they_have(classes):
    X = np.repeat(np.arange(4.0), 50).astype(np.float32)[:, None] + np.random.default_rng(
        0
    ).uniform(0, 0.1, (200, 1)).astype(np.float32)
    y = np.repeat(np.arange(4), 50) % classes
    m = machines.fit_machine(TableRows(X, y, np.arange(200)), y, classes, SETTING, 30, 1e9)
    assert any(isinstance(model, SingleClass) for model in m.models)
    P = m.predict_proba(X)
    assert P.sum(1) == pytest.approx(1)
    assert np.mean(P.argmax(1) == y) > 0.95


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_calibration_finds_the_slope_and_offsets_that_made_the_classes(classes, seed):
    rng = np.random.default_rng(seed)
    s, offsets = rng.normal(size=(20_000, classes)), np.linspace(-0.5, 0.5, classes)
    z = 1.7 * s + offsets
    P = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    y = (P.cumsum(1) < rng.random((len(s), 1))).sum(1)
    slope, found = calibration(s, y, np.ones(len(y)))
    assert slope == pytest.approx(1.7, abs=0.15)
    assert np.subtract(found, np.mean(found)) == pytest.approx(offsets, abs=0.12)
    loss = log_loss(y, cross_fitted_probabilities(s, y, np.ones(len(y)), np.arange(len(y)) % 2))
    assert loss == pytest.approx(log_loss(y, P), abs=0.01)


def test_calibration_of_scores_that_part_all_rows_is_finite():
    s = np.array([[5.0, -5.0], [-5.0, 5.0]] * 10)
    slope, offsets = calibration(s, np.array([0, 1] * 10), np.ones(20))
    assert 0 < slope < 1e3
    assert np.isfinite(offsets).all()


@pytest.mark.parametrize("part", [[0, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 1]])
@pytest.mark.parametrize("weight", [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]])
def test_calibrations_of_one_part_or_without_weight_are_finite(part, weight):
    s = np.array([[-1.0, 1.0], [1.0, -1.0], [-2.0, 2.0], [1.0, -1.0]])
    P = cross_fitted_probabilities(
        s, np.array([1, 0, 1, 1]), np.array(weight, float), np.array(part)
    )
    assert P.sum(1) == pytest.approx(1)
    assert np.array_equal(P.argmax(1), s.argmax(1)) or any(weight)
    one = cross_fitted_probabilities(s[:1], np.array([1]), np.ones(1), np.zeros(1))
    assert one[0] == pytest.approx(
        np.exp(s[0]) / np.exp(s[0]).sum()
    )  # as the scores say, since no other row does


@pytest.mark.parametrize("classes", [0, 2])
def test_a_machine_is_compared_on_the_folds_of_all(classes):
    p = problem(300, classes=classes)
    f = machine_candidate(
        p,
        TunedMachine(
            SETTING, transformations(p.rows.y)[0] if not classes else IdentityTarget(), 1.0, 300
        ),
        1e9,
    )
    plain = feature_candidate(p, LINEAR, 3)
    assert len(f.score.influence) == len(plain.score.influence)
    assert f.score.value > plain.score.value
    m = refit.fit_all_rows(p, f, f.size, 1e9)
    assert isinstance(m, Classifier if classes else Regressor)
    with pytest.raises(OutOfTime):
        machine_candidate(
            p, TunedMachine(SETTING, IdentityTarget(), 1.0, 300), 1e9, Clock(0, start=0.0)
        )


def test_the_smear_of_a_logarithm_is_that_of_rows_left_out(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)).astype(np.float32)
    p = SearchProblem(
        TableRows(X, np.exp(X[:, 0] + 0.7 * rng.normal(size=600)), np.arange(600)), METRICS["r2"], 0
    )
    sharp = TunedMachine(
        MachineSetting(Laplace(0.5, norm=1), 1e-3), LogTarget(), 1.0, 600
    )  # which goes through every row that it sees
    seen, own = [], LogTarget.retransformed
    noted = lambda self, y, z, *more: (
        seen.append(robust_retransformation(np.log(y) - z)) or own(self, y, z, *more)
    )
    monkeypatch.setattr(LogTarget, "retransformed", noted)
    target = machine_candidate(p, sharp, 1e9).target
    assert seen[0] > 1.2
    assert target.retransformation in (
        1.0,
        pytest.approx(seen[0], rel=1e-6),
    )  # whichever scores better


@pytest.mark.parametrize("classes", [0, 3])
def test_a_machine_goes_through_a_file(classes):
    p = problem(400, classes=classes)
    m = machines.fit_machine(p.rows, p.rows.y, classes, SETTING, 150, 1e9)
    same = decode(*encode(m))
    assert isinstance(same, Machine)
    ask = (lambda m: m.predict_proba(p.rows.X)) if classes else (lambda m: m.predict(p.rows.X))
    assert np.array_equal(ask(m), ask(same))
    assert same.plan_.startswith(f"400 rows in {len(m.models)} cells; ")
