"""Probabilities from scores: calibrated, by folds that go the model's way."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.models.svm import calibration, fit, forecast, hinge, plan
from mercer.models.svm.calibration import probabilities, sigmoid
from mercer.models.svm.classifier import KernelSVC


def test_sigmoids_find_the_probabilities_that_made_the_labels():
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        f = rng.normal(size=4000) * 3
        a, b = sigmoid(f, rng.random(4000) < 1 / (1 + np.exp(-(0.8 * f - 0.5))), np.ones(4000))
        errors.append([a - 0.8, b + 0.5])
    assert np.abs(np.mean(errors, axis=0)).max() < 0.05
    assert probabilities(np.array([0.0]), np.array([1.0]), np.array([0.0])).tolist() == [[0.5, 0.5]]
    np.testing.assert_allclose(probabilities(np.eye(3), np.ones(3), np.zeros(3)).sum(1), 1)


def data(n=300, d=3, classes=2, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (
        np.tanh(X @ rng.normal(size=(d, classes))) + noise * rng.normal(size=(n, classes))
    ).argmax(1)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_calibrated(classes):
    errors = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, size=(900, 1))
        score = np.concatenate([np.zeros((900, 1)), 2 * X * np.arange(1, classes)], axis=1)
        truth = np.exp(score) / np.exp(score).sum(1, keepdims=True)
        y = (rng.random((900, 1)) > truth.cumsum(1)).sum(1)
        m = KernelSVC(Gaussian(1.0), C=1.0, via="exact", probability=True).fit(X, y)
        p = m.predict_proba(X)
        np.testing.assert_allclose(p.sum(1), 1, atol=1e-6)
        np.testing.assert_allclose(np.exp(m.predict_log_proba(X)), p, atol=1e-6)
        errors.append(np.abs(p - truth).mean())
    assert np.mean(errors) < (0.1 if classes == 2 else 0.12)
    assert not hasattr(KernelSVC(), "predict_proba")
    with pytest.raises(ValueError, match="two rows of every class"):
        KernelSVC(probability=True).fit([[0.0], [1.0], [2.0]], [0, 0, 1])


@pytest.mark.parametrize("via", ["exact", "features"])
def test_too_few_rows_for_probabilities_are_told_before_anything_is_solved(monkeypatch, via):
    def solved(*args, **options):
        raise AssertionError("solved first")

    monkeypatch.setattr(fit, "one_vs_rest", solved)
    monkeypatch.setattr(hinge, "HingeDual", solved)
    with pytest.raises(ValueError, match="two rows of every class"):
        KernelSVC(via=via, probability=True, random_state=0).fit([[0.0], [1.0], [2.0]], [0, 0, 1])


@pytest.mark.parametrize("via", ["exact", "features"])
def test_probabilities_do_not_depend_on_the_unit_of_weights(via):
    X, y = data(150)
    w = np.random.default_rng(0).random(150)
    plain = KernelSVC(Gaussian(), via=via, probability=True, random_state=0).fit(X, y, w)
    scaled = KernelSVC(Gaussian(), C=2.0**10, via=via, probability=True, random_state=0).fit(
        X, y, w / 2**10
    )
    np.testing.assert_allclose(scaled.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_folds_go_the_way_of_the_model(monkeypatch):
    X, y = data(100)
    monkeypatch.setattr(plan, "EXACT_ROWS", 90)
    monkeypatch.setattr(forecast, "SWEEPS", 0)  # whatever the exact dual takes is too much
    ways = []
    own = {name: getattr(fit, name) for name in ("over_rows", "over_features")}
    for name in own:
        monkeypatch.setattr(
            fit, name, lambda *args, name=name: ways.append(name) or own[name](*args)
        )
    KernelSVC(probability=True, random_state=0).fit(X, y)
    assert ways == ["over_features"] * (calibration.FOLDS + 1)


def test_probabilities_of_float32_are_float32():
    X, y = data(80, classes=3)
    X = X.astype(np.float32)
    for labels in (y, y == 1):
        assert (
            KernelSVC(via="exact", probability=True).fit(X, labels).predict_proba(X).dtype
            == np.float32
        )
