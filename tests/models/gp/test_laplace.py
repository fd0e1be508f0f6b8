"""Laplace's approximation: probabilities at any mean and variance, in their tails too."""

import numpy as np
import pytest
from scipy.special import log_expit

from mercer.kernels import Gaussian
from mercer.models.gp.laplace import log_probability, mode, probability


def integral(mean, deviation):
    """log E sigmoid(f) by brute force: a fine sum about the step, the mean, and the tilted mean."""
    about = [(0.0, 60.0), *((m, 12 * deviation) for m in (mean, min(mean + deviation**2, 0.0)))]
    f = np.unique(np.concatenate([np.linspace(c - r, c + r, 40_001) for c, r in about]))
    log = log_expit(f) - 0.5 * ((f - mean) / deviation) ** 2
    return (
        log.max()
        + np.log(np.trapezoid(np.exp(log - log.max()), f))
        - np.log(deviation * np.sqrt(2 * np.pi))
    )


@pytest.mark.parametrize("deviation", [0.01, 0.3, 0.499, 0.5, 1.0, 2.0, 10.0, 100.0, 3000.0])
def test_probabilities_are_integrals(deviation):
    mean = np.array([-1000.0, -60.0, -10.0, -1.0, 0.0, 0.3, 5.0, 40.0, 2000.0])
    found = log_probability(mean, np.full(len(mean), deviation**2))
    np.testing.assert_allclose(found, [integral(m, deviation) for m in mean], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("variance", [0.0, 0.2, 1.0, 1e2, 1e4, 1e7])
def test_both_classes_sum_to_one(variance):
    mean = np.concatenate([-np.logspace(4, -3, 30), [0.0], np.logspace(-3, 4, 30)])
    both = [probability(sign * mean, np.full(61, variance)) for sign in (-1, 1)]
    np.testing.assert_allclose(np.sum(both, axis=0), 1, rtol=1e-10)
    assert (np.diff(both[1]) >= -1e-12).all()
    odds = np.diff([log_probability(s * mean, np.full(61, variance)) for s in (-1, 1)], axis=0)[0]
    assert (np.diff(odds) > 0).all()  # no two rows tie, also where the probabilities do
    np.testing.assert_allclose(odds, -odds[::-1], rtol=1e-9, atol=1e-9)


def test_many_rows_are_one_by_one():
    rng = np.random.default_rng(0)
    mean, variance = 5 * rng.normal(size=9000), rng.uniform(0, 2, 9000)
    some = [0, 4095, 4096, 8999]
    np.testing.assert_allclose(
        probability(mean, variance)[some], [probability(mean[[i]], variance[[i]])[0] for i in some]
    )


def test_the_mode_is_a_stationary_point():
    X = np.random.default_rng(0).normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    for scale in (1.0, 1e6):
        K = scale * Gaussian()(X)
        m = mode(K, y)
        np.testing.assert_allclose(m.a, (y + 1) / 2 - 1 / (1 + np.exp(-m.f)), atol=1e-4)
        np.testing.assert_allclose(K @ m.a, m.f, atol=1e-6 * scale)
