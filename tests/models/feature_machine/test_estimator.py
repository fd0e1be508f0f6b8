"""Feature machines as users meet them."""

import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1

import mercer
from mercer import FeatureMachineClassifier, FeatureMachineRegressor, KernelRidge
from mercer.models.feature_machine import fit as fitting
from mercer.models.feature_machine.fit import FeatureSettings, cell_rows, choose
from mercer.models.feature_machine.paths import MetricPath, PathSetting
from mercer.models.feature_machine.search import FoundMachines, MetricProblem
from tests.contract import keeps_contract


@pytest.fixture(scope="module")
def friedman() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    X, y = make_friedman1(700, 10, noise=1.0, random_state=0)
    return X[:350], y[:350], X[350:], y[350:]


@pytest.fixture(scope="module")
def machine(friedman: tuple[np.ndarray, ...]) -> FeatureMachineRegressor:
    X, y, _, _ = friedman
    return FeatureMachineRegressor(random_state=0).fit(X, y)


@pytest.mark.parametrize(
    "model",
    [FeatureMachineRegressor, pytest.param(FeatureMachineClassifier, marks=pytest.mark.long)],
)
def test_check_estimator(model: type) -> None:
    # rows are split by their places, so that copies may lie on both sides and weights may not
    why = {"check_sample_weight_equivalence_on_dense_data": "splits are of rows"}
    keeps_contract(model(random_state=0), why)


def test_a_learnt_metric_beats_a_gaussian(machine, friedman) -> None:
    X, y, X_new, y_new = friedman
    plain = KernelRidge(cv="loo", bandwidths=[0.5, 1, 2], via="exact").fit(X, y)
    gap, plain_gap = (np.mean((m.predict(X_new) - y_new) ** 2) for m in (machine, plain))
    assert gap < 0.8 * plain_gap


def test_importances_are_those_of_the_columns_that_matter(machine) -> None:
    v = machine.importances_
    assert v.sum() == pytest.approx(1)
    assert v[:5].min() > 2 * v[5:].max()


def test_intervals_cover_new_rows(machine, friedman) -> None:
    _X, _, X_new, y_new = friedman
    low, high = found = machine.predict_interval(X_new, coverage=0.9)
    p = machine.predict(X_new)
    assert ((low <= p) & (p <= high)).all()
    assert "70 rows" in found.guarantee
    # 350 new rows by a quantile of 70: a standard error of about 0.04
    assert 0.78 < np.mean((low <= y_new) & (y_new <= high)) < 0.99
    wide = machine.predict_interval(X_new, coverage=0.95)
    assert (wide.upper >= high).all()
    assert (wide.lower <= low).all()


def test_gradients_are_those_of_predictions(friedman) -> None:
    X, y, X_new, _ = friedman
    m = FeatureMachineRegressor(random_state=1).fit(X, y)
    X_new = X_new[:30]
    G = m.gradient(X_new)
    assert G.shape == (30, 10)
    h = 1e-3
    steps = [(m.predict(X_new + h * e) - m.predict(X_new - h * e)) / (2 * h) for e in np.eye(10)]
    D = np.column_stack(steps)
    # kinks of 1-norms at a few values aside
    assert np.median(np.abs(G - D)) < 0.02 * np.abs(D).max()
    assert np.corrcoef(G.ravel(), D.ravel())[0, 1] > 0.95


def test_the_same_seed_gives_the_same_machine(machine, friedman, tmp_path) -> None:
    X, y, X_new, _ = friedman
    again = clone(machine).fit(X, y)
    np.testing.assert_array_equal(again.predict(X_new), machine.predict(X_new))
    machine.save(tmp_path / "m.mercer")
    loaded = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(loaded.predict(X_new), machine.predict(X_new))
    np.testing.assert_array_equal(
        loaded.predict_interval(X_new).lower, machine.predict_interval(X_new).lower
    )
    assert "calibrate" in str(loaded.plan_)


def test_float32_stays(machine, friedman) -> None:
    X32 = friedman[2].astype(np.float32)
    assert machine.predict(X32).dtype == np.float32
    np.testing.assert_allclose(machine.predict(X32), machine.predict(friedman[2]), rtol=1e-3)


def test_weights_are_copies(friedman) -> None:
    X, y = friedman[0][:80], friedman[1][:80]
    w = np.zeros(80)
    w[:60] = 1
    a = FeatureMachineRegressor(random_state=0).fit(X, y, w)
    b = FeatureMachineRegressor(random_state=0).fit(X[:60], y[:60])
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-4)
    with pytest.raises(ValueError, match="at least one non-zero"):
        a.fit(X, y, np.zeros(80))


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_and_their_probabilities(classes: int) -> None:
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(400, 4))
    f = X[:, 0] + np.abs(X[:, 1])
    names = np.array(["a", "b", "c"])[:classes]
    y = names[np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))]
    m = FeatureMachineClassifier(random_state=0).fit(X[:200], y[:200])
    assert m.score(X[200:], y[200:]) > 0.85
    P = m.predict_proba(X[200:])
    np.testing.assert_allclose(P.sum(1), 1, rtol=1e-6)
    assert (m.classes_[P.argmax(1)] == m.predict(X[200:])).all()
    right = np.mean(P.max(1))
    assert abs(right - m.score(X[200:], y[200:])) < 0.12
    assert m.importances_[:2].sum() > 0.8
    shape = (5, 4) if classes == 2 else (5, classes, 4)
    assert m.gradient(X[:5]).shape == shape


def test_missing_values_are_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0].copy()
    gaps = rng.random(200) < 0.3
    y[gaps] += 3  # what is missing says something
    X[gaps, 1] = np.nan
    m = FeatureMachineRegressor(random_state=0).fit(X[:150], y[:150])
    assert np.mean((m.predict(X[150:]) - y[150:]) ** 2) < 0.2
    assert m.importances_[1] > 0.1


@pytest.mark.parametrize("n", [1, 2, 3, 6, 12])
def test_few_rows(n: int) -> None:
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 7)), rng.normal(size=n)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        m = FeatureMachineRegressor(random_state=0).fit(X, y)
    assert np.isfinite(m.predict(X)).all()
    assert not np.isfinite(m.predict_interval(X).upper).any() or n >= 10
    assert "nothing is guaranteed" in m.predict_interval(X).guarantee
    told = [str(w.message) for w in said if w.filename == __file__]
    assert ("nothing was searched" in m.plan_.why) is bool(told) is (n < 7)
    assert all(f"{n} row" in text and "at least 7 rows" in text for text in told)


@pytest.mark.parametrize("n", [2, 6, 7])
def test_few_rows_of_classes(n: int) -> None:
    X, y = np.random.default_rng(n).normal(size=(n, 3)), np.arange(n) % 2
    with pytest.warns(UserWarning, match="nothing was searched") if n < 7 else nullcontext():
        m = FeatureMachineClassifier(random_state=0).fit(X, y)
    assert np.allclose(m.predict_proba(X).sum(axis=1), 1)
    weight = np.r_[np.ones(2), np.zeros(n - 2)]  # rows that do not count are none
    with pytest.warns(UserWarning, match="2 rows are too few"):
        m.fit(X, y, weight)


FRAMES = {
    "a date": (pd.date_range("2020-01-01", periods=30), "column 'c' of X holds dates or times"),
    "a date with a zone": (
        pd.date_range("2020", periods=30, tz="UTC"),
        "column 'c' of X holds dates",
    ),
    "a span": (pd.to_timedelta(np.arange(30), unit="D"), "column 'c' of X holds dates or times"),
    "a period": (
        pd.period_range("2020-01", periods=30, freq="M"),
        "column 'c' of X must hold numbers",
    ),
    "categories": (pd.Categorical(list("uvw") * 10), "column 'c' of X must hold numbers"),
    "text": (list("uvw") * 10, "column 'c' of X must hold numbers"),
    "complex": (1j * np.arange(30), "column 'c' of X is complex"),
}


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("model", [FeatureMachineRegressor, FeatureMachineClassifier, KernelRidge])
def test_columns_that_are_no_numbers_are_named(model, kind: str) -> None:
    values, sentence = FRAMES[kind]
    good = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["a", "b", "c"])
    y = (good["a"] > 0).astype(int)
    bad = good[["a", "b"]].assign(c=values)
    with pytest.raises(ValueError, match=f"^{sentence}") as e:
        model().fit(bad, y)
    assert "mercer.fit_table" in str(e.value)
    m = model(random_state=0).fit(good, y)
    with pytest.raises(ValueError, match=f"^{sentence}"):
        m.predict(bad)
    assert m.predict(good).shape == (30,)


def test_frames_of_numbers_however_they_are_held() -> None:
    x = np.random.default_rng(0).normal(size=30)
    held = [pd.Categorical([1, 2, 3] * 10), [True, False] * 15, [str(v) for v in x]]
    held += [pd.array([1, None, 2] * 10, dtype="Int64"), np.array([1, 2.5, None] * 10, object)]
    for values in held:
        m = FeatureMachineRegressor(random_state=0).fit(pd.DataFrame({"a": x, "b": values}), x)
        assert list(m.feature_names_in_) == ["a", "b"]
    twice = pd.DataFrame(np.column_stack([x, x]), columns=["a", "a"])
    with pytest.raises(ValueError, match=r"^X has two columns of the same name; rename one\.$"):
        m.fit(twice, x)


@pytest.mark.parametrize(
    "make",
    [
        lambda r: np.repeat(r.normal(size=(10, 3)), 6, axis=0),  # copies
        lambda r: np.outer(r.normal(size=60), [1.0, 2.0, 3.0]),  # a line
        lambda r: r.normal(size=(60, 3)) + 1e6,
        lambda r: np.column_stack([r.normal(size=60), np.ones(60), np.zeros(60)]),
        lambda r: 1e200 * r.normal(size=(60, 3)),
        lambda r: 1e-200 * r.normal(size=(60, 3)),
        lambda r: r.normal(size=(60, 90)),  # n < d
    ],
)
def test_hostile_rows(make) -> None:
    rng = np.random.default_rng(0)
    X = make(rng)
    y = X[:, 0] / np.abs(X[:, 0]).max() + 0.01 * rng.normal(size=60)
    m = FeatureMachineRegressor(random_state=0).fit(X, y)
    assert np.isfinite(m.predict(X)).all()
    assert m.score(X, y) > 0.3


def test_wrong_settings_say_so(friedman) -> None:
    X, y = friedman[0][:20], friedman[1][:20]
    with pytest.raises(
        ValueError, match="time_limit must be a number of seconds > 0 or None, got -1"
    ):
        FeatureMachineRegressor(time_limit=-1).fit(X, y)
    with pytest.raises(ValueError, match="memory_limit must be a number of bytes"):
        FeatureMachineRegressor(memory_limit="much").fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        FeatureMachineRegressor().fit(np.where(X > 0.9, np.inf, X), y)
    with pytest.raises(ValueError, match="one class only"):
        FeatureMachineClassifier().fit(X, np.ones(20))


def test_many_rows_are_solved_in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MAX_ONE_CELL", 100)
    monkeypatch.setattr(fitting, "MIN_CELL", 100)
    X, y = make_friedman1(600, 5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = FeatureMachineRegressor(random_state=0).fit(X[:400], y[:400])
    assert len(m.machine_.ensemble.members[0].cells) > 3
    assert m.score(X[400:], y[400:]) > 0.85
    assert m.gradient(X[:3]).shape == (3, 5)


def test_the_plan_follows_from_sizes() -> None:
    s = FeatureSettings(None, 4e9, 0)
    assert choose(30, s) == fitting.FeaturePlan(0, 30, False)
    assert choose(1_000, s) == fitting.FeaturePlan(200, 1_000, True)
    assert choose(80_000, s) == fitting.FeaturePlan(2_000, 20_000, True)
    assert choose(80_000, FeatureSettings(None, 1e8, 0)).cell < 4_000
    hurried, slow = (cell_rows(80_000, 7, 1, seconds) for seconds in (5.0, 50.0))
    assert 500 <= hurried < slow < cell_rows(80_000, 1, 1, 50.0)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e150])
def test_units_of_targets_do_not_matter(size: float, friedman) -> None:
    X, y = friedman[0][:60], friedman[1][:60]
    a = FeatureMachineRegressor(random_state=0).fit(X, y).predict(X)
    b = FeatureMachineRegressor(random_state=0).fit(X, y * size).predict(X)
    np.testing.assert_allclose(b / size, a, rtol=1e-3)


def test_the_class_is_that_of_the_largest_score() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    for y in (
        X[:, 0] + rng.normal(size=90) > 0,
        np.digitize(X[:, 0] + rng.normal(size=90), [-1, 1]),
    ):
        m = FeatureMachineClassifier(random_state=0).fit(X, y)
        F = m.decision_function(X)
        largest = m.classes_[(F > 0).astype(int) if F.ndim == 1 else F.argmax(1)]
        np.testing.assert_array_equal(m.predict(X), largest)


def test_little_memory_and_time_make_the_metric_of_fewer_rows() -> None:
    p = MetricProblem(
        np.zeros((9_000, 2)), np.zeros((9_000, 1), np.float32), None, np.zeros(1), 0, 0
    )
    path = MetricPath(PathSetting("standard", 1, 1.0, 1.0, "diagonal"), (0.1, 0.1, 0.1))
    found = FoundMachines(((path, 1.0),), 1.0, 1, 2_000)
    s = FeatureSettings(3.0, 2e8, 0)
    plan = fitting.timed(choose(9_000, s), found, p, 1.0, 1e8)
    assert plan.metric_rows**2 * 12 <= 1e8
    assert plan.cell <= fitting.timed(choose(9_000, s), found, p, 100.0, 1e8).cell
    rich = replace(found, rows=8_000)
    assert fitting.timed(choose(9_000, s), rich, p, 1.0, 4e9).metric_rows == 8_000


def test_rows_that_were_not_fitted_are_told(friedman) -> None:
    plan = choose(1_000, FeatureSettings(None, 4e9, 0))
    assert plan.why(1_000, refitted=False).endswith("200 of them calibrate, and were not fitted")
    few = FeatureMachineRegressor(random_state=0).fit(friedman[0][:20], friedman[1][:20])
    assert "nothing is guaranteed" in few.predict_interval(friedman[0][:2]).guarantee


def test_one_missing_value_among_many_rows(friedman) -> None:
    X = friedman[0][:120].copy()
    X[3, 2] = np.nan  # which some cuts of the search lack
    m = FeatureMachineRegressor(random_state=0).fit(X, friedman[1][:120])
    assert np.isfinite(m.predict(X)).all()
