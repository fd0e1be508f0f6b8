"""Bayesian linear regression from a spectrum: the evidence as a Gaussian density, its maximum, and
the posterior of the weights."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from mercer.linalg.decompose import eigen
from mercer.models.gp.linear import LinearLikelihood, WeightPosterior

SHAPES = {"tall": (40, 5), "wide": (5, 8), "one": (1, 1)}


def data(shape, seed=0):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=shape)
    return F, F @ rng.normal(size=shape[1]) + 0.5 * rng.normal(size=shape[0])


def told(F, y):
    s = eigen(F.T @ F, len(y)).above(1e-12)
    beta = s.vectors.T @ (F.T @ y)
    return s, beta, LinearLikelihood(len(y), s.values, beta, float(y @ y))


def log(F, y, noise, scale):
    return multivariate_normal(np.zeros(len(y)), scale * F @ F.T + noise * np.eye(len(y))).logpdf(y)


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("noise", "scale"), [(0.3, 2.0), (1e-3, 1e2)])
def test_the_evidence_is_a_gaussian_density(name, noise, scale):
    F, y = data(SHAPES[name])
    assert told(F, y)[2].log(noise, scale) == pytest.approx(log(F, y, noise, scale), rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_no_other_noise_and_scale_are_better(seed):
    F, y = data((40, 5), seed)
    noise, scale = told(F, y)[2].best(1e-12, 1e12)
    loss = lambda z: -log(F, y, *np.exp(z))
    best = min(
        minimize(loss, start, method="Nelder-Mead").fun for start in ([-2.0, 0.0], [0.0, -2.0])
    )
    assert loss(np.log([noise, scale])) <= best + 1e-5


@pytest.mark.parametrize("name", SHAPES)
def test_the_posterior_is_that_of_the_formulas(name):
    F, y = data(SHAPES[name])
    s, beta, _ = told(F, y)
    p = WeightPosterior.of(s, beta, 0.3, 2.0)
    precision = F.T @ F / 0.3 + np.eye(F.shape[1]) / 2.0
    Z = np.random.default_rng(1).normal(size=(6, F.shape[1]))
    np.testing.assert_allclose(p.coef, np.linalg.solve(precision, F.T @ y) / 0.3, atol=1e-9)
    np.testing.assert_allclose(p.covariance(Z), Z @ np.linalg.solve(precision, Z.T), atol=1e-9)
    np.testing.assert_allclose(p.variance(Z), np.diag(p.covariance(Z)))
    assert p.effective == pytest.approx(F.shape[1] - np.trace(np.linalg.inv(precision)) / 2.0)


def test_draws_have_their_moments():
    F, y = data((5, 8))
    s, beta, _ = told(F, y)
    for p in (WeightPosterior.of(s, beta, 0.3, 2.0), WeightPosterior.prior(8, 2.0)):
        W = p.draw(60_000, np.random.default_rng(0))
        np.testing.assert_allclose(W.mean(1), p.coef, atol=0.05)
        np.testing.assert_allclose(np.cov(W), p.covariance(np.eye(8)), atol=0.1)
