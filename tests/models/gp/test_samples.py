"""Functions drawn once: Matheron's rule passes through what is known, and values do not depend on
what else is asked."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Kernel, Linear, Polynomial
from mercer.lifts import Nystrom
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.models.gp import VarianceStarvationWarning
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.samples import Beside, drawn, residual_functions
from mercer.models.gp.sources import KernelPoints
from mercer.models.gp.systems import CholeskySystem, IterativeSystem
from tests.models.gp.examples import data

WAYS = {"exact": CholeskySystem, "iterative": IterativeSystem}


def process(way, noise=1e-8, n=15):
    X = np.random.default_rng(0).uniform(-2, 2, size=(n, 2))
    system = WAYS[way](KernelPoints(Gaussian(0.8), Table(X)), np.full(n, noise), 2.0)
    return PointPosterior.of(system, np.sin(3 * X[:, :1]))


@pytest.mark.parametrize("way", WAYS)
def test_posterior_draws_pass_through_the_points(way):
    p = process(way)
    F = drawn(p, 4, posterior=True, n_features=512, seed=0)
    np.testing.assert_allclose(F(p.system.points.X), np.tile(p.Y, 4), atol=1e-2)
    far = F(np.random.default_rng(1).uniform(30, 60, size=(200, 2)))
    assert far.std() == pytest.approx(np.sqrt(2.0), rel=0.2)


def test_values_are_of_one_function():
    F = drawn(process("exact"), 3, posterior=True, n_features=256, seed=0)
    Z = np.random.default_rng(1).normal(size=(2000, 2))
    np.testing.assert_allclose(F(Z)[[5, 1500]], F(Z[[5, 1500]]), atol=1e-10)
    again = drawn(process("exact"), 3, posterior=True, n_features=256, seed=0)
    np.testing.assert_array_equal(F(Z), again(Z))
    assert (
        np.abs(F(Z) - drawn(process("exact"), 3, posterior=True, n_features=256, seed=1)(Z)).max()
        > 0.1
    )


def test_an_exact_map_draws_from_the_very_posterior():
    """A linear kernel: two features, and the moments to what so many draws tell."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    system = CholeskySystem(KernelPoints(Linear(), Table(X)), np.full(10, 0.5), 1.5)
    p = PointPosterior.of(system, X[:, :1] - X[:, 1:])
    Z = np.random.default_rng(1).normal(size=(4, 2))
    values = drawn(p, 40_000, posterior=True, n_features=64, seed=0)(Z)
    np.testing.assert_allclose(values.mean(1), p.mean(Table(Z))[:, 0], atol=0.02)
    np.testing.assert_allclose(np.cov(values), p.covariance(Table(Z)), atol=0.02)


def test_other_units():
    F = drawn(process("exact"), 2, posterior=False, n_features=128, seed=0)
    Z = np.random.default_rng(1).normal(size=(5, 2))
    np.testing.assert_allclose(F.moved((3.0,), (10.0,))(Z), 3 + 10 * F(Z))


# what landmarks leave out
def test_draws_have_the_covariance_that_is_left_out():
    X = np.random.default_rng(0).uniform(-1, 1, size=(40, 2))
    Z = np.vstack([X[:3], [[2.0, 2.0], [30.0, -30.0]]])
    gaps = []
    for seed in range(4):
        phi = Nystrom(Gaussian(0.7), 8, random_state=0).fit(X)
        psi, V, A = residual_functions(phi, 3.0, 2000, n_features=2048, seed=seed)
        g = Beside(phi, psi).transform(Z) @ np.vstack([-A, V])
        gaps.append(np.cov(g) - 3.0 * (Gaussian(0.7)(Z) - phi.transform(Z) @ phi.transform(Z).T))
        np.testing.assert_allclose(
            Beside(phi, psi).transform(phi.landmarks_) @ np.vstack([-A, V]), 0, atol=1e-8
        )
    np.testing.assert_allclose(np.mean(gaps, axis=0), 0, atol=0.2)


def test_nothing_is_left_out_by_all_landmarks_of_a_small_kernel():
    X = np.random.default_rng(0).normal(size=(30, 2))
    phi = Nystrom(Polynomial(2), 30, random_state=0).fit(X)
    psi, V, A = residual_functions(phi, 1.0, 5, n_features=64, seed=0)
    far = 10 * X
    whole = psi.transform(Table(far)) @ V
    np.testing.assert_allclose(
        phi.transform(far) @ A, whole, rtol=1e-3, atol=1e-3 * np.abs(whole).max()
    )


@pytest.mark.parametrize("of", ["y", "f"])
@pytest.mark.parametrize("posterior", [True, False])
def test_draws_have_their_moments(of, posterior):
    X, y = data(15)
    Z = data(4, seed=1)[0]
    m = GP(Gaussian(0.7), 0.2, prior_mean=1.0).fit(X, y)
    S = m.sample_y(Z, 20_000, posterior=posterior, of=of)
    mean, cov = m.predict(Z, return_cov=True, of=of)
    if not posterior:
        mean, cov = np.ones(4), Gaussian(0.7)(Z) + 0.2 * (of == "y") * np.eye(4)
    np.testing.assert_allclose(S.mean(1), mean, atol=0.04)
    np.testing.assert_allclose(np.cov(S), cov, atol=0.04)
    before = GP(Gaussian(0.7), 0.2).sample_y(Z, 20_000, posterior=False, of="f")
    np.testing.assert_allclose(np.cov(before), Gaussian(0.7)(Z), atol=0.04)
    again = GP(Gaussian(0.7), 0.2).sample_y(Z, 20_000, of="f")
    np.testing.assert_array_equal(again, before)  # there is no posterior yet


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_functions_are_drawn_once(via):
    X, y = data(20)
    Z = data(5, seed=1)[0]
    m = GP(Gaussian(0.7), 0.2, via, prior_mean=1.0).fit(X, y)
    F = m.sample_functions(4000, n_features=2048)
    values = F(Z)
    np.testing.assert_allclose(F(Z[2:3])[0], values[2], atol=1e-9)
    mean, cov = m.predict(Z, return_cov=True, of="f")
    np.testing.assert_allclose(values.mean(1), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(values), cov, atol=0.06)
    free = m.sample_functions(4000, posterior=False, n_features=2048)(Z)
    np.testing.assert_allclose(np.cov(free), Gaussian(0.7)(Z), atol=0.1)


def test_functions_over_features():
    X, y = data(30)
    m = GP(Gaussian(0.7), 0.2, "features", random_state=0).fit(X, y)
    F = m.sample_functions(4000)
    mean, cov = m.predict(X[:4], return_cov=True, of="f")
    np.testing.assert_allclose(F(X[:4]).mean(1), mean, atol=0.05)
    np.testing.assert_allclose(np.cov(F(X[:4])), cov, atol=0.05)


class Own(Kernel):
    """1 / (1 + |x - z|^2), of which no random features are known."""

    def on(self, p):
        return 1 / (1 + p.sqdist(1.0))


def test_functions_of_a_kernel_without_random_features_warn():
    X, y = data()
    m = GP(Own(), 0.1, Landmarks(20), random_state=0).fit(X, y)
    with pytest.warns(VarianceStarvationWarning, match="no feature map is known"):
        assert m.sample_functions(2)(X).shape == (60, 2)
    with pytest.raises(ValueError, match="use sample_y"):
        GP(Own(), 0.1).fit(X, y).sample_functions(2)
