"""Linear functions among feature machines: where truth is linear they are found, and answer all that
machines do."""

import numpy as np
import pytest

import mercer
from mercer import FeatureMachineClassifier, FeatureMachineRegressor
from mercer.models.feature_machine import search
from mercer.models.feature_machine.dense import PENALTIES, PathRows, best_linear, solved_linear
from mercer.models.feature_machine.machine import fit_member
from mercer.models.feature_machine.paths import MetricPath, PathSetting, neighbours, settings

LINEAR = PathSetting("standard", 2, 1.0, 1.0, "linear")


def drawn(seed, n=160, d=8, noise=2.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d) + 7
    w = rng.normal(size=d)
    y = ((X - X.mean(0)) / X.std(0)) @ w + noise * rng.normal(size=n)
    return X, y


def linear_weight(m):
    told = [str(v) for v in m.plan_.settings.values() if "inputs, linear" in str(v)]
    return sum(float(v.rsplit(" ", 1)[1]) for v in told)


def test_where_truth_is_linear_linear_functions_have_a_part_and_help(monkeypatch):
    gains, weights = [], []
    for seed in range(2):
        X, y = drawn(seed, 460)
        scores = []
        for searched in (settings, lambda *a: [s for s in settings(*a) if s.form != "linear"]):
            monkeypatch.setattr(search, "settings", searched)
            m = FeatureMachineRegressor(random_state=seed).fit(X[:160], y[:160])
            scores.append(m.score(X[160:], y[160:]))
            weights.append(linear_weight(m))
        gains.append(scores[0] - scores[1])
    assert weights[1] == weights[3] == 0
    assert weights[0] + weights[2] > 0.8
    assert np.mean(gains) > 0.01


def test_where_truth_is_a_wave_they_have_none():
    X = np.random.default_rng(0).uniform(-3, 3, (300, 2))
    m = FeatureMachineRegressor(random_state=0).fit(X, np.cos(3 * X[:, 0]) * np.cos(X[:, 1]))
    assert linear_weight(m) == 0


def test_classes_divided_by_a_plane():
    X, y = drawn(1, 200, noise=0.3)
    m = FeatureMachineClassifier(random_state=0).fit(X[:120], y[:120] > 0)
    assert m.score(X[120:], y[120:] > 0) > 0.85
    np.testing.assert_allclose(m.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("factor", [0.2, 1.0])
def test_the_equations_are_those_of_ridge_regression(weighted, factor):
    rng = np.random.default_rng(0)
    U, Y = rng.normal(size=(50, 4)) + 3, rng.normal(size=(50, 2))
    w = rng.integers(1, 4, 50).astype(float) if weighted else None
    coef, b = solved_linear(PathRows(U, Y, w), 0.1, factor)
    r = (Y - U @ coef - b) * (1.0 if w is None else w[:, None])
    np.testing.assert_allclose(U.T @ r, 0.1 * 4 / factor**2 * coef, atol=1e-9)
    np.testing.assert_allclose(r.sum(0), 0, atol=1e-9)
    copies = np.repeat(np.arange(50), 1 if w is None else w.astype(int))
    again = solved_linear(PathRows(U[copies], Y[copies]), 0.1, factor)
    np.testing.assert_allclose(again[0], coef, atol=1e-9)


def test_the_penalty_is_the_best_of_held_out_rows():
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(30, 25)), rng.normal(size=(500, 25))
    w = rng.normal(size=(25, 1))
    rows, out = (PathRows(A, A @ w + 5 * rng.normal(size=(len(A), 1))) for A in (U, V))
    found = best_linear(rows, out, 1.0)
    losses = []
    for penalty in PENALTIES:
        coef, b = solved_linear(rows, penalty, 1.0)
        losses.append(np.mean((V @ coef + b - out.Y) ** 2))
    assert found.penalty == int(np.argmin(losses))
    assert found.loss == pytest.approx(min(losses), rel=1e-5)


def test_a_member_has_slopes_and_importances_and_is_saved(tmp_path):
    X, y = drawn(2)
    X[::7, 1] = np.nan
    m = fit_member(MetricPath(LINEAR, (1e-4,)), X, y[:, None], None, seed=0, most=50, memory=1e9)
    there = X[~np.isnan(X).any(1)][:5]
    G, h = m.gradients(there)[:, 0], 0.1
    for j in range(X.shape[1]):
        step = h * X[:, j][~np.isnan(X[:, j])].std() * (np.arange(X.shape[1]) == j)
        rise = (m(there + step) - m(there - step))[:, 0] / (2 * step[j])
        np.testing.assert_allclose(G[:, j], rise, rtol=1e-3, atol=1e-6)
    strong = np.argsort(m.importances(X.shape[1]))
    assert strong[-1] == np.argmax(np.abs(G[0] * np.nanstd(X, axis=0)))
    X, y = drawn(3)
    whole = FeatureMachineRegressor(random_state=0).fit(X, y)
    assert linear_weight(whole) > 0
    whole.save(tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(X), whole.predict(X))


def test_settings_have_linear_ones_up_to_many_columns():
    assert sum(s.form == "linear" for s in settings(("standard", "rank"), 10)) == 4
    assert not any(s.form == "linear" for s in settings(("standard",), 2000))
    assert {s.form for s in neighbours(LINEAR)} == {"linear"}
    assert str(LINEAR) == "standardised inputs, linear"
