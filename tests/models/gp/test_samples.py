"""Functions drawn once: Matheron's rule passes through what is known, and values do not depend on what else is asked."""
import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear
from mercer.models.gp.exact import ExactPosterior
from mercer.models.gp.iterative import IterativePosterior
from mercer.models.gp.samples import drawn

WAYS = {"exact": ExactPosterior.of, "iterative": IterativePosterior.of}


def process(way, noise=1e-8, n=15):
    X = np.random.default_rng(0).uniform(-2, 2, size=(n, 2))
    return WAYS[way](Gaussian(0.8), Table(X), np.sin(3 * X[:, :1]), np.full(n, noise), 2.0)


@pytest.mark.parametrize("way", WAYS)
def test_posterior_draws_pass_through_the_points(way):
    p = process(way)
    F = drawn(p, 4, posterior=True, n_features=512, seed=0)
    np.testing.assert_allclose(F(p.X), np.tile(p.Y, 4), atol=1e-2)
    far = F(np.random.default_rng(1).uniform(30, 60, size=(200, 2)))
    assert far.std() == pytest.approx(np.sqrt(2.0), rel=0.2)


def test_values_are_of_one_function():
    F = drawn(process("exact"), 3, posterior=True, n_features=256, seed=0)
    Z = np.random.default_rng(1).normal(size=(2000, 2))
    np.testing.assert_allclose(F(Z)[[5, 1500]], F(Z[[5, 1500]]), atol=1e-10)
    again = drawn(process("exact"), 3, posterior=True, n_features=256, seed=0)
    np.testing.assert_array_equal(F(Z), again(Z))
    assert np.abs(F(Z) - drawn(process("exact"), 3, posterior=True, n_features=256, seed=1)(Z)).max() > 0.1


def test_an_exact_map_draws_from_the_very_posterior():
    """A linear kernel: two features, and the moments to what so many draws tell."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    p = ExactPosterior.of(Linear(), Table(X), X[:, :1] - X[:, 1:], np.full(10, 0.5), 1.5)
    Z = np.random.default_rng(1).normal(size=(4, 2))
    values = drawn(p, 40_000, posterior=True, n_features=64, seed=0)(Z)
    np.testing.assert_allclose(values.mean(1), p.mean(Table(Z))[:, 0], atol=0.02)
    np.testing.assert_allclose(np.cov(values), p.covariance(Table(Z)), atol=0.02)


def test_other_units():
    F = drawn(process("exact"), 2, posterior=False, n_features=128, seed=0)
    Z = np.random.default_rng(1).normal(size=(5, 2))
    np.testing.assert_allclose(F.moved((3.0,), (10.0,))(Z), 3 + 10 * F(Z))
