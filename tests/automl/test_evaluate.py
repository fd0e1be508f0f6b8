"""What the holdout says of predictors, and the decision for a rare class."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from mercer.automl import evaluate
from mercer.automl.candidates import feature_candidate
from mercer.automl.evaluate import Decision, best_f1_decision, calibration, confusion_weights
from mercer.automl.metrics import METRICS
from mercer.automl.recipes import LINEAR, Recipe
from mercer.automl.refit import fit_all_rows
from mercer.automl.rows import TableRows
from mercer.automl.summarise import learnt_importances
from mercer.kernels import Gaussian
from tests.automl.arrays import problem


def test_a_threshold_finds_the_rare_class():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=3000) < 0.04).astype(int)
    p = np.clip(0.08 * y + 0.03 * rng.uniform(size=3000), 0, 1)
    P = np.stack([1 - p, p], axis=1)
    rule = best_f1_decision(y, P)
    assert rule.code == 1
    assert f1_score(y, rule(P)) > 0.95
    assert f1_score(y, Decision()(P)) == 0


def test_a_shuffled_column_that_matters_costs_most():
    p = problem(600)
    f = feature_candidate(p, Recipe("fourier", Gaussian(1.0)), 256)
    found = evaluate.importance(
        fit_all_rows(p, f, 256, 1e9), p.rows, p.metric, [0, 1, 2], ["a", "b", "c"]
    )
    assert {found[0][0], found[1][0]} == {"a", "b"}
    assert abs(found[2][1]) < 0.1 < found[1][1]
    assert found[0][2] > 0


def test_sizes_tell_how_many_rows_are_shuffled(monkeypatch):
    p = problem(600)
    model = fit_all_rows(p, feature_candidate(p, LINEAR, 3), 3, 1e9)
    asked = []
    known = type("Known", (), {"predict": lambda self, X: asked.append(len(X)) or X[:, 0]})
    watched = dataclasses.replace(model, estimator=known())
    for work, rows, repeats in (
        (1e10, 600, 3),
        (600 * 3 * 10.0, 600, 1),
        (1.0, evaluate.MIN_SHUFFLED_ROWS, 1),
    ):
        monkeypatch.setattr(evaluate, "MAX_WORK", work)
        monkeypatch.setattr(evaluate, "values_a_row", lambda predictor: 10.0)
        asked.clear()
        evaluate.importance(watched, p.rows, p.metric, [0, 1, 2], ["a", "b", "c"])
        assert asked == [rows] * (1 + 3 * repeats)
    monkeypatch.undo()
    assert 3 < evaluate.values_a_row(model) < 100


def test_worst_rows_are_the_most_wrong_and_counted_from_one():
    rows = TableRows(np.zeros((4, 1)), np.array([0.0, 0.0, 0.0, 0.0]), np.arange(10, 14))
    found = evaluate.worst(rows, np.array([0.0, 3.0, -5.0, 1.0]), ())
    assert [r["row"] for r in found[:2]] == [13, 12]
    labels = TableRows(np.zeros((3, 1)), np.array([0, 1, 1]), np.arange(3))
    found = evaluate.worst(labels, np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]]), ("no", "yes"))
    assert [(r["row"], r["actual"]) for r in found] == [(2, "yes"), (3, "yes")]


def test_calibration_counts_every_row_once():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=5000)
    found = evaluate.calibration(
        (rng.uniform(size=5000) < p).astype(int), np.stack([1 - p, p], axis=1)
    )
    assert sum(count for _, _, count in found) == 5000
    assert all(abs(mean - share) < 0.06 for mean, share, _ in found)


def test_what_rounding_loses_is_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)).astype(np.float32), rng.normal(size=200)
    rows, r2 = TableRows(X, y, np.arange(200)), METRICS["r2"]
    about_constant = lambda A: 0.1 + 1e-15 * A[:, 0]
    base = r2(y, about_constant(X), None)
    assert evaluate._shuffled(about_constant, rows, X.copy(), r2, base, np.array([0]), 0, 3) == (
        0.0,
        0.0,
    )


def test_importances_of_a_learnt_metric_are_summed_by_column():
    machine = SimpleNamespace(models=[SimpleNamespace(importances_=np.array([1.0, 2.0, 1.0]))] * 2)
    found = learnt_importances(SimpleNamespace(estimator=machine), [0, 2, 2], ["a", "y", "b"])
    assert found == (("b", 0.75), ("a", 0.25))
    plain = SimpleNamespace(estimator=SimpleNamespace())
    assert learnt_importances(plain, [0, 2, 2], ["a", "y", "b"]) == ()


def test_a_threshold_weighs_rows_as_copies_of_them():
    rng = np.random.default_rng(0)
    y = (rng.uniform(size=200) < 0.1).astype(int)
    p = np.clip(0.1 + 0.2 * y + 0.1 * rng.normal(size=200), 0, 1)
    P, w = np.column_stack([1 - p, p]), rng.integers(0, 4, size=200)
    copies = best_f1_decision(np.repeat(y, w), np.repeat(P, w, axis=0))
    assert best_f1_decision(y, P, w.astype(float)) == copies
    assert best_f1_decision(y, P, np.zeros(200)) == best_f1_decision(y, P)
    assert best_f1_decision(y, P) != copies


def test_calibration_and_confusion_are_weighted_as_scores_are():
    rng = np.random.default_rng(0)
    y, w = rng.integers(0, 2, 400), rng.choice([0.0, 1.0, 5.0], 400)
    P = np.stack([1 - (p := rng.uniform(size=400)), p], axis=1)
    decided = (p > 0.5).astype(int)
    C = np.array(confusion_weights(y, decided, 2, w))
    assert np.trace(C) / C.sum() == pytest.approx(w @ (decided == y) / w.sum())
    assert confusion_weights(y, decided, 2, None) == ()
    twice = np.repeat(np.arange(400), w.astype(int))
    for one, other in zip(calibration(y, P, w), calibration(y[twice], P[twice]), strict=True):
        assert one[:2] == pytest.approx(other[:2])
    assert sum(n for *_, n in calibration(y, P, w)) == 400
