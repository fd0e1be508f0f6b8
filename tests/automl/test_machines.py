"""Kernel machines of tables: cells, scores and their calibration, the search, the meeting with the best by folds, files."""

import dataclasses

import numpy as np
import pytest
from sklearn.metrics import log_loss

from mercer.automl import candidates, cells, machines, refit, tuning, validate
from mercer.automl.budget import Clock, Late
from mercer.automl.candidates import Contest, contest, finalist, machine
from mercer.automl.cells import Tree
from mercer.automl.machines import Machine, Only, Setting, calibration, cross_fitted
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import Classifier, Identity, Log, Regressor, robust_smear, transformations
from mercer.automl.recipes import LINEAR
from mercer.automl.rows import Rows
from mercer.automl.search import Problem
from mercer.automl.tuning import Tuned, tune
from mercer.estimators import KernelRidge, KernelSVC
from mercer.kernels import Gaussian, Laplace
from mercer.ops.threads import limit
from mercer.store import decode, encode

SETTING = Setting(Laplace(2.0, norm=1), 0.1)


def forever():
    return Clock(1e9)


def problem(n, classes=0, **more):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=n)
    if classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    return Problem(Rows(X, y, np.arange(n), **more), METRICS["accuracy" if classes else "r2"], classes)


def checkers(n, seed=0, classes=2):
    """A board of fields, which no straight line parts."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 4, size=(n, 2)).astype(np.float32)
    y = (np.floor(X).sum(1) % classes).astype(int)
    return Problem(Rows(X, y, np.arange(n)), METRICS["accuracy"], classes)


@pytest.mark.parametrize("overlap", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_every_row_is_among_the_rows_of_its_cell(overlap, seed):
    X = np.random.default_rng(seed).normal(size=(3000, 4)).astype(np.float32)
    tree, rows = Tree.of(X, 400, overlap)
    cell = tree.cell(X)
    assert max(map(len, rows)) <= 400
    assert np.array_equal(np.unique(np.concatenate(rows)), np.arange(3000))
    assert all(np.isin(np.flatnonzero(cell == c), rows[c]).all() for c in range(len(rows)))
    assert (sum(map(len, rows)) == 3000) == (overlap == 0)


def test_rows_that_do_not_differ_stay_in_one_cell():
    tree, rows = Tree.of(np.ones((100, 2), np.float32), 10)
    assert [len(r) for r in rows] == [10]
    assert tree.cell(np.zeros((3, 2), np.float32)).tolist() == [0, 0, 0]


def ties(kind, n):
    rng = np.random.default_rng(0)
    return {
        "few values": lambda: rng.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=(n, 5)),
        "ten levels": lambda: np.eye(10)[rng.integers(0, 10, n)],
        "mostly zero": lambda: np.where(rng.random((n, 1)) < 0.9, 0.0, rng.normal(size=(n, 1))),
        "two values": lambda: np.repeat([0.0, 1.0], [n - n // 10, n // 10])[:, None],
    }[kind]().astype(np.float32)


@pytest.mark.parametrize("kind", ["few values", "ten levels", "mostly zero", "two values"])
def test_rows_that_are_equal_in_much_are_in_cells_that_are_small(kind):
    n, most = 6000, 600
    X = ties(kind, n)
    tree, rows = Tree.of(X, most)
    cell = tree.cell(X)
    assert max(map(len, rows)) <= most
    assert sum(map(len, rows)) < 1.6 * n
    assert len(rows) > 1
    for c in np.unique(cell):  # a cell has most of the rows that go there, or as many as it holds
        mine = np.flatnonzero(cell == c)
        assert np.isin(mine, rows[c]).sum() >= 0.8 * min(len(mine), most)
    _, code = np.unique(X, axis=0, return_inverse=True)
    assert all(len(np.unique(cell[code == k])) == 1 for k in range(code.max() + 1))  # equal rows go the same way


@pytest.mark.parametrize("d", [3, 80])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_alone_has_the_cell_that_it_has_among_others(d, seed):
    X = (1000 + np.random.default_rng(seed).integers(0, 3, size=(1200, d)) / 3).astype(np.float32)
    tree, _ = Tree.of(X, 100)
    cell = tree.cell(X)
    assert [int(tree.cell(x[None])[0]) for x in X] == cell.tolist()
    assert tree.cell(np.asfortranarray(X)).tolist() == cell.tolist()


@pytest.mark.parametrize("d", [10, 300])
def test_long_directions_vary_as_the_longest_do(d):
    X = np.random.default_rng(0).normal(size=(1000, d)) * np.r_[3.0, 2.0, np.ones(d - 2)]
    most = np.var(X @ cells.longest(X))
    assert all(np.var(X @ cells.long(X, start)) > 0.9 * most for start in range(3))
    assert np.array_equal(cells.long(X, 1), cells.long(X, 1))


def test_many_columns_need_no_square_of_them(monkeypatch):
    monkeypatch.setattr(cells, "longest", lambda X: pytest.fail("eigenvectors of many columns"))
    X = np.random.default_rng(0).normal(size=(400, 300)).astype(np.float32)
    assert len(Tree.of(X, 130)[1]) == 4


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_one_cell_is_the_estimator_itself(classes):
    p = problem(300, classes=classes)
    m = machines.fit(p.rows, p.rows.y, classes, SETTING, 300, 1e9)
    if classes:
        own = KernelSVC(SETTING.kernel, C=10.0, via="exact").fit(p.rows.X, p.rows.y)
        assert np.array_equal(m.scores(p.rows.X).argmax(1), own.predict(p.rows.X))
    else:
        own = KernelRidge(SETTING.kernel, alpha=0.1, via="exact").fit(p.rows.X, p.rows.y)
        assert m.predict(p.rows.X) == pytest.approx(own.predict(p.rows.X), abs=1e-2)


def test_cells_do_about_as_well_as_all_rows_at_once():
    p, new = checkers(3000), checkers(2000, seed=1)
    right = {most: np.mean(machines.fit(p.rows, p.rows.y, 2, SETTING, most, 1e9).scores(new.rows.X).argmax(1) == new.rows.y)
             for most in (3000, 500)}  # fmt: skip
    assert right[3000] > 0.93
    assert right[500] > right[3000] - 0.03


def test_weights_of_zero_leave_rows_out():
    p = problem(200)
    w = np.r_[np.ones(150), np.zeros(50)]
    some = p.rows.take(slice(150))
    with_zeros = Rows(p.rows.X, p.rows.y, p.rows.number, w)
    both = [machines.fit(r, r.y, 0, SETTING, 999, 1e9).predict(p.rows.X) for r in (with_zeros, some)]
    assert both[0] == pytest.approx(both[1], abs=1e-2)


@pytest.mark.parametrize("classes", [0, 2])
def test_a_region_without_weight_does_not_stop_a_fit(classes):
    p = problem(600, classes=classes)
    w = (p.rows.X[:, 0] > 0).astype(float)
    m = machines.fit(Rows(p.rows.X, p.rows.y, p.rows.number, w), p.rows.y, classes, SETTING, 100, 1e9)
    some = p.rows.take(w > 0)
    same = machines.fit(some, some.y, classes, SETTING, 100, 1e9)
    ask = (lambda m: m.scores(p.rows.X)) if classes else (lambda m: m.predict(p.rows.X))
    assert ask(m) == pytest.approx(ask(same), abs=1e-2)


def test_the_number_of_threads_changes_nothing():
    p, memory = problem(1600), 2 * 2 * 16 * 500.0**2  # of which a half, but no quarter, holds a cell's factors
    found = []
    for threads in (1, 4):
        with limit(threads), machines.hushed():
            m = machines.fit(p.rows, p.rows.y, 0, SETTING, 450, memory)
        found.append((m.predict(p.rows.X), [model.plan_.way for model in m.models]))
    assert found[0][1] == found[1][1]
    assert np.array_equal(found[0][0], found[1][0])
    with limit(1):
        one = Tuned(SETTING, Identity(), 1e-3, 2_000).size(100_000, 1e9, 1e9)
    with limit(8):
        assert Tuned(SETTING, Identity(), 1e-3, 2_000).size(100_000, 1e9, 1e9) == one


@pytest.mark.parametrize("classes", [2, 4])
def test_cells_that_lack_classes_know_what_they_have(classes):
    X = np.repeat(np.arange(4.0), 50).astype(np.float32)[:, None] + np.random.default_rng(0).uniform(0, 0.1, (200, 1)).astype(np.float32)
    y = np.repeat(np.arange(4), 50) % classes
    m = machines.fit(Rows(X, y, np.arange(200)), y, classes, SETTING, 30, 1e9)
    assert any(isinstance(model, Only) for model in m.models)
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
    loss = log_loss(y, cross_fitted(s, y, np.ones(len(y)), np.arange(len(y)) % 2))
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
    P = cross_fitted(s, np.array([1, 0, 1, 1]), np.array(weight, float), np.array(part))
    assert P.sum(1) == pytest.approx(1)
    assert np.array_equal(P.argmax(1), s.argmax(1)) or any(weight)
    one = cross_fitted(s[:1], np.array([1]), np.ones(1), np.zeros(1))
    assert one[0] == pytest.approx(np.exp(s[0]) / np.exp(s[0]).sum())  # as the scores say, since no other row does


@pytest.mark.parametrize("classes", [0, 2])
def test_a_fold_without_weight_is_left_out(classes):
    w = np.zeros(300)
    w[:5] = 1.0
    p = problem(300, classes=classes, weight=w, time=np.arange(300.0))
    f = machine(p, Tuned(SETTING, Identity(), 1.0, 300), 1e9)
    assert np.isfinite(f.alpha)
    trial = p, candidates.split_of(p)
    assert tuning._loss(trial, SETTING, Identity(), 1e9)[0] == np.inf  # no tested row has weight


@pytest.mark.parametrize("column", range(3))
def test_kernels_do_not_depend_on_the_order_of_a_table(column):
    X = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32) * np.float32([1, 1, 50])
    widths = [tuning.kernel_candidates(A, None)[0].bandwidth for A in (X, X[np.argsort(X[:, column])])]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


@pytest.mark.parametrize("classes", [0, 2])
def test_a_machine_is_compared_on_the_folds_of_all(classes):
    p = problem(300, classes=classes)
    f = machine(p, Tuned(SETTING, transformations(p.rows.y)[0] if not classes else Identity(), 1.0, 300), 1e9)
    plain = finalist(p, LINEAR, 3)
    assert len(f.score.influence) == len(plain.score.influence)
    assert f.score.value > plain.score.value
    m = refit.fit(p, f, f.size, 1e9)
    assert isinstance(m, Classifier if classes else Regressor)
    with pytest.raises(Late):
        machine(p, Tuned(SETTING, Identity(), 1.0, 300), 1e9, Clock(0, start=0.0))


def test_the_smear_of_a_logarithm_is_that_of_rows_left_out(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)).astype(np.float32)
    p = Problem(Rows(X, np.exp(X[:, 0] + 0.7 * rng.normal(size=600)), np.arange(600)), METRICS["r2"], 0)
    sharp = Tuned(Setting(Laplace(0.5, norm=1), 1e-3), Log(), 1.0, 600)  # which goes through every row that it sees
    seen, smeared = [], Log.smeared
    monkeypatch.setattr(Log, "smeared", lambda self, y, z, *more: seen.append(robust_smear(np.log(y) - z)) or smeared(self, y, z, *more))
    target = machine(p, sharp, 1e9).target
    assert seen[0] > 1.2
    assert target.smear in (1.0, pytest.approx(seen[0], rel=1e-6))  # whichever scores better


def test_the_search_prefers_what_fits_and_is_timed():
    p = checkers(2500)
    tuned = tune(p, Identity(), None, forever(), 1.0, 1e9)
    trial = p, candidates.split_of(p)
    found, poor = (tuning._loss(trial, s, Identity(), 1e9)[0] for s in (tuned.setting, Setting(Gaussian(20.0), 1.0)))
    assert found < 0.5 * poor
    assert tuned.seconds > 0
    assert tuned.rows > 500
    X = checkers(2500).rows.X
    assert tuned.setting.kernel in tuning.kernel_candidates(X[:2500], None)
    dense = tune(checkers(8000), Identity(), None, forever(), 1.0, 1e9)  # now on cells of all rows
    assert dense.rows <= tuning.CELL


def test_a_search_without_time_tries_one_setting_a_round(monkeypatch):
    tried = []
    loss = tuning._loss
    monkeypatch.setattr(tuning, "_loss", lambda trial, setting, **more: tried.append(setting) or loss(trial, setting, **more))
    tune(problem(300, classes=2), Identity(), Gaussian(1.0), Clock(1.0, start=0.0), 1.0, 1e9)
    assert len(tried) == 1


@pytest.mark.parametrize(("left", "rows", "cell"), [(1e9, 10_000, 10_000), (15.0, 10_000, 4_000), (3.0, 3_800, 2_000)])
def test_the_size_follows_the_time(left, rows, cell):
    with limit(2):
        found = Tuned(SETTING, Identity(), 1.0, 2_000).size(10_000, left, 4e9)
    assert found[1] == cell
    assert found[0] == pytest.approx(rows, rel=0.2)
    assert Tuned(SETTING, Identity(), 1.0, 2_000).size(10_000, 1e9, 4e8)[1] <= 4_000  # kernel values of a cell must fit memory


def test_a_larger_fit_tells_how_seconds_grow():
    tuned = Tuned(SETTING, Identity(), 1.0, 1_000)
    assert tuned.timed(2**2.5, 2_000).power == pytest.approx(2.5)
    assert tuned.timed(2**2.5, 2_000).guess(4_000, 4_000) == pytest.approx(4**2.5)
    assert tuned.timed(100.0, 2_000).power == tuning.POWERS[1]
    assert tuned.timed(9.0, 1_100) is tuned


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


@pytest.mark.parametrize("classes", [0, 3])
def test_a_machine_goes_through_a_file(classes):
    p = problem(400, classes=classes)
    m = machines.fit(p.rows, p.rows.y, classes, SETTING, 150, 1e9)
    same = decode(*encode(m))
    assert isinstance(same, Machine)
    ask = (lambda m: m.predict_proba(p.rows.X)) if classes else (lambda m: m.predict(p.rows.X))
    assert np.array_equal(ask(m), ask(same))
    assert same.plan_.startswith(f"400 rows in {len(m.models)} cells; ")
