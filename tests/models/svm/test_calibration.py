"""Probabilities from scores."""
import numpy as np

from mercer.models.svm.calibration import probabilities, sigmoid


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
