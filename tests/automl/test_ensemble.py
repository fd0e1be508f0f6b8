"""Means of candidates: weights from rows left out, and none where they do not help."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.automl import ensemble
from mercer.automl.ensemble import _helps, best_weights, blended, described, ensemble_candidate
from mercer.automl.predictors import Classifier, ConstantPredictor, WeightedMean
from mercer.models import KernelLogistic
from mercer.store import decode, encode
from tests.automl.arrays import problem
from tests.automl.test_choice import candidate


@pytest.mark.parametrize("classes", [0, 3])
def test_two_models_that_err_apart_are_better_together(classes):
    p, rng = problem(600, classes=classes), np.random.default_rng(0)
    truth = np.eye(3)[p.rows.y] if classes else p.rows.y
    parts = [truth + 0.7 * rng.normal(size=truth.shape) for _ in range(2)]
    if classes:
        parts = [np.exp(3 * v) / np.exp(3 * v).sum(1, keepdims=True) for v in parts]
    found = [candidate(p, k, v) for k, v in zip(("fourier", "machine"), parts, strict=True)]
    best = max(found, key=lambda f: f.score.value)
    mean = ensemble_candidate(p, found, best)
    assert mean.score.value > best.score.value
    assert dict(mean.members)["machine"] == pytest.approx(0.5, abs=0.15)
    assert sum(w for _, w in mean.members) == pytest.approx(1)


def test_a_model_that_adds_nothing_gets_no_part():
    p, rng = problem(600), np.random.default_rng(0)
    good = p.rows.y + 0.1 * rng.normal(size=600)
    found = [
        candidate(p, "machine", good),
        candidate(p, "linear", good + 2.0 * rng.normal(size=600)),
        candidate(p, "constant", np.zeros(600)),
    ]
    assert ensemble_candidate(p, found, found[0]) is None
    assert ensemble_candidate(p, found[:1], found[0]) is None


def test_at_most_three_take_part_and_their_weights_add_up():
    rng, y = np.random.default_rng(0), np.random.default_rng(1).normal(size=900)
    parts = [y + rng.normal(size=900) for _ in range(6)]
    w = best_weights(parts, y, np.ones(900), 3)
    assert sum(v > 0 for v in w) == 3
    assert sum(w) == pytest.approx(1)
    mean = blended(w, parts)
    assert np.mean((mean - y) ** 2) < 0.5 < min(np.mean((v - y) ** 2) for v in parts)
    assert best_weights([y, y + 1], y, np.ones(900), 2) == (1.0, 0.0)


def test_the_mean_is_saved_and_says_what_it_is():
    p = problem(100, classes=2)
    m = KernelLogistic(alpha=1.0).fit(p.rows.X, p.rows.y)
    mean = WeightedMean((Classifier(m, 2), ConstantPredictor((0.25, 0.75), 2)), (0.75, 0.25))
    X = p.rows.X[:7]
    assert mean(X) == pytest.approx(0.75 * m.predict_proba(X) + 0.25 * np.array([0.25, 0.75]))
    assert np.array_equal(decode(*encode(mean))(X), mean(X))
    assert described((("linear", 0.25), ("fourier", 0.25), ("machine", 0.5))).startswith(
        "the mean of linear (0.25), fourier features (0.25) and kernel machine (0.50)"
    )


def test_rows_of_one_group_are_no_proof_that_a_mean_helps(monkeypatch):
    """Groups err as a whole and some rows have no weight: none is surely better, row by row."""
    monkeypatch.setattr(ensemble, "difference_error", lambda *scores: np.inf)
    sure, group = 0, np.repeat(np.arange(20), 50)
    weight = (np.arange(1000) % 7 > 0).astype(float)
    for seed in range(60):
        p, rng = problem(1000, seed, group=group, weight=weight), np.random.default_rng(seed)
        sizes = np.exp(0.7 * rng.normal(size=(2, 20)))[:, group]
        found = [
            candidate(p, kind, p.rows.y + size * rng.normal(size=1000))
            for kind, size in zip(("linear", "machine"), sizes, strict=True)
        ]
        made = replace(found[0], kind="ensemble")
        sure += any(_helps(p, m, b) for m, b in ((made, found[1]), (found[1], made)))
    assert sure <= 6


def test_the_best_is_compared_on_the_folds_of_the_mean():
    """A score over repeats, better or worse, has no say in whether the mean helps."""
    p, rng = problem(600), np.random.default_rng(0)
    parts = [p.rows.y + 0.7 * rng.normal(size=600) for _ in range(2)]
    found = [candidate(p, k, v) for k, v in zip(("fourier", "machine"), parts, strict=True)]
    best = max(found, key=lambda f: f.score.value)
    rest = [f for f in found if f is not best]
    good = p.rows.y + 0.1 * rng.normal(size=600)
    alone = [candidate(p, "machine", good), candidate(p, "linear", good + 0.09)]
    for value in (-9.0, 1.0):
        lucky = replace(best, score=replace(best.score, value=value))
        assert ensemble_candidate(p, [*rest, lucky], lucky) is not None
        lucky = replace(alone[0], score=replace(alone[0].score, value=value))
        assert ensemble_candidate(p, [lucky, alone[1]], lucky) is None


@pytest.mark.parametrize("weights", [(0.5,), (0.5, 0.4), (0.2, 0.3, 0.5)])
def test_weights_that_do_not_fit_are_refused(weights):
    one = ConstantPredictor((1.0,))
    with pytest.raises(ValueError, match="WeightedMean needs"):
        WeightedMean((one, one), weights)


def test_members_of_other_classes_are_refused():
    mean = WeightedMean((ConstantPredictor((1.0,)), ConstantPredictor((0.5, 0.5), 2)), (0.5, 0.5))
    with pytest.raises(ValueError, match="classes"):
        decode(*encode(mean))
