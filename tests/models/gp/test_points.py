"""Processes over points: formulas and scikit-learn's, honest variances, hard cases, rows that come
and go."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal, norm
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process import kernels as sk

from mercer.kernels import Gaussian, Linear, Matern, Polynomial, RationalQuadratic
from mercer.lifts import Monomials
from mercer.models import GaussianProcessRegressor as GP
from tests.models.gp.examples import data

TWINS = {
    "gaussian": (Gaussian((0.5, 1.5)), sk.RBF((0.5, 1.5))),
    "matern 1/2": (Matern(0.8, nu=0.5), sk.Matern(0.8, nu=0.5)),
    "matern 3/2": (Matern((0.8, 2.0), nu=1.5), sk.Matern((0.8, 2.0), nu=1.5)),
    "matern 5/2": (Matern(0.8, nu=2.5), sk.Matern(0.8, nu=2.5)),
    "rational": (RationalQuadratic(0.9, 0.6), sk.RationalQuadratic(0.9, 0.6)),
    "linear": (Linear() + 2.0, sk.DotProduct(np.sqrt(2.0))),
    "sum": (0.5 * Gaussian(0.7) + Linear() + 1, 0.5 * sk.RBF(0.7) + sk.DotProduct(1.0)),
    "product": (Gaussian(0.7) * Matern(nu=2.5), sk.RBF(0.7) * sk.Matern(nu=2.5)),
    "power": (RationalQuadratic() ** 2, sk.Exponentiation(sk.RationalQuadratic(), 2)),
}
HARD = {"exact": {}, "iterative": {"via": "iterative"}}


def plain(k, X, y, Z, noise):
    """The formulas of a GP: posterior mean and covariance of f, log p(y)."""
    K = k(X) + np.diag(np.broadcast_to(noise, len(X)))
    A = np.linalg.solve(K, k(X, Z)).T
    return A @ y, k(Z) - A @ k(X, Z), multivariate_normal(np.zeros(len(y)), K).logpdf(y)


# against the formulas and scikit-learn
@pytest.mark.parametrize("name", TWINS)
def test_twins(name):
    ours, theirs = TWINS[name]
    (X, y), (Z, _) = data(), data(9, seed=1)
    m, p = GP(ours, 0.1).fit(X, y), Theirs(theirs, alpha=0.1, optimizer=None).fit(X, y)
    for a, b in zip(
        m.predict(Z, return_std=True, of="f"), p.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        m.predict(Z, return_cov=True, of="f")[1], p.predict(Z, return_cov=True)[1], atol=1e-9
    )
    assert m.log_marginal_likelihood_ == pytest.approx(p.log_marginal_likelihood_value_)
    assert m.kernel_ == ours


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_posterior_of_f_and_of_y(via):
    (X, y), (Z, _) = data(), data(7, seed=1)
    k, noise = 0.8 * Matern(0.6, nu=2.5), np.random.default_rng(0).uniform(0.05, 1, 60)
    m = GP(k, noise, via).fit(X, y)
    mean, cov, log = plain(k, X, y, Z, noise)
    np.testing.assert_allclose(m.predict(Z), mean, atol=1e-5)
    np.testing.assert_allclose(m.predict(Z, return_cov=True, of="f")[1], cov, atol=1e-4)
    np.testing.assert_allclose(
        m.predict(Z, return_std=True)[1] ** 2, np.diag(cov) + noise.mean(), atol=1e-4
    )
    assert m.log_marginal_likelihood_ == pytest.approx(
        log, abs=3 * m.log_marginal_likelihood_error_ + 1e-6
    )


def test_a_lift_is_its_kernel():
    """Bayesian linear regression on an exact lift, and the GP by points."""
    (X, y), (Z, _) = data(), data(7, seed=1)
    points, weights = (
        GP(Polynomial(2), 0.2, "exact").fit(X, y),
        GP(lift=Monomials(2, weights="kernel"), noise=0.2).fit(X, y),
    )
    for a, b in zip(
        points.predict(Z, return_cov=True), weights.predict(Z, return_cov=True), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert points.log_marginal_likelihood_ == pytest.approx(weights.log_marginal_likelihood_)


def test_several_outputs():
    X, y = data(80)
    Y = np.column_stack([y, 1e3 + 50 * np.cos(2 * X[:, 0])])
    k, noise = Gaussian(0.6), 0.1
    both = GP(k, noise).fit(X, Y)
    for j in range(2):
        one = GP(k, noise).fit(X, Y[:, j])
        for a, b in zip(
            both.predict(X, return_std=True), one.predict(X, return_std=True), strict=True
        ):
            np.testing.assert_allclose(a[:, j], b, rtol=1e-8)
    m = GP(k).fit(X, Y)
    mean, std = m.predict(X, return_std=True)
    assert mean.shape == std.shape == (80, 2)
    assert m.predict(X[:3], return_cov=True)[1].shape == (3, 3, 2)
    assert m.noise_.shape == m.scale_.shape == (2,)
    assert m.sample_y(X[:3], 5).shape == (3, 2, 5)
    values = m.sample_functions(2000, n_features=1024)(X[:3])
    assert values.shape == (3, 2, 2000)
    np.testing.assert_allclose(values.mean(2), mean[:3], atol=0.1 * Y.std(0).max())
    np.testing.assert_allclose(values.mean(2)[:, 0], mean[:3, 0], atol=0.1)
    assert (
        abs(np.corrcoef(*(values[0] - values[0].mean(1, keepdims=True)))[0, 1]) < 0.1
    )  # outputs are drawn apart
    assert np.abs(mean[:, 1] - Y[:, 1]).max() < 40


# predictions
@pytest.mark.parametrize(
    ("via", "noise"), [("exact", 0.0), ("exact", 1e-10), ("exact", 1e-2), ("iterative", 1e-2)]
)
def test_variances_are_never_negative_and_points_are_alone(via, noise):
    X, y = data(120, noise=0.0)
    m = GP(Gaussian(0.6), noise, via).fit(X, y)
    Z = np.vstack([X[:40], data(60, seed=1)[0], 50 * X[:20]])
    mean, std = m.predict(Z, return_std=True, of="f")
    assert (std >= 0).all()
    assert np.isfinite(std).all()
    C = m.predict(Z, return_cov=True, of="f")[1]
    assert (np.diag(C) >= 0).all()
    for i in (0, 70, 110):
        alone, spread = m.predict(Z[i : i + 1], return_std=True, of="f")
        assert alone[0] == pytest.approx(mean[i], abs=1e-5)
        assert spread[0] == pytest.approx(std[i], abs=1e-3)
    np.testing.assert_allclose(std[-20:], 1.0, atol=1e-6)  # far away: the prior's


def test_quantiles_and_intervals():
    X, y = data()
    m = GP(Gaussian(0.6), 0.1).fit(X, y)
    mean, std = m.predict(X, return_std=True)
    np.testing.assert_allclose(
        m.predict_quantiles(X, [0.1, 0.5]), norm.ppf([0.1, 0.5], mean[:, None], std[:, None])
    )
    low, high = interval = m.predict_interval(X, 0.8)
    np.testing.assert_allclose(high - low, 2 * std * norm.ppf(0.9))
    assert "0.8" in interval.guarantee


# hard cases
@pytest.mark.parametrize("way", HARD)
def test_duplicated_inputs(way):
    X, y = data(40)
    m = GP(Gaussian(0.5), **HARD[way]).fit(np.vstack([X, X]), np.append(y, y + 0.1))
    assert np.isfinite(m.predict(X, return_std=True)).all()
    once = GP(Gaussian(0.5), 0.0, **HARD[way]).fit(np.vstack([X, X]), np.append(y, y))
    assert np.isfinite(once.predict(X, return_std=True)).all()
    np.testing.assert_allclose(once.predict(X), y, atol=1e-5)


def test_no_noise_interpolates():
    X, y = data(40, noise=0.0)
    m = GP(Matern(0.5, nu=1.5), 0.0).fit(X, y)
    mean, std = m.predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-6)
    assert (std < 1e-3).all()


@pytest.mark.parametrize("bandwidth", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("learns", [True, False])
def test_bandwidths_of_any_size(bandwidth, learns):
    X, y = data(50)
    m = GP(Gaussian(bandwidth), "learn" if learns else 0.1).fit(X, y)
    mean, std = m.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    if learns:  # the start scaled to the data is found
        assert m.loo_score_ > 0.6


def test_constant_columns_and_far_rows():
    X, y = data(50)
    m = GP().fit(np.column_stack([X, np.full(50, 7.0), 1e8 + X[:, 0]]), y)
    assert m.loo_score_ > 0.6
    assert np.isfinite(GP(Gaussian(), 0.1).fit(1e150 * X, y).predict(1e150 * X)).all()


def test_sparse_and_single_precision_rows():
    X, y = data()
    dense = GP(Gaussian(0.7), 0.1).fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(
        GP(Gaussian(0.7), 0.1).fit(sp.csr_array(X), y).predict(sp.csr_array(X), return_std=True),
        dense,
        atol=1e-8,
    )
    half = (
        GP(Gaussian(0.7), 0.1)
        .fit(X.astype(np.float32), y)
        .predict(X.astype(np.float32), return_std=True)
    )
    assert half[0].dtype == half[1].dtype == np.float32
    np.testing.assert_allclose(half, dense, atol=1e-5)


# points that come and go
@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_rows_beyond_floating_point_leave_the_model(via):
    X, y = data(30)
    m = GP(Linear(), 0.1, via).fit(X, y)
    before = m.predict(X)
    with pytest.raises(ValueError, match="too large for floating-point"):
        m.partial_fit([[1e200, 0.0]], [1.0])
    with pytest.raises(ValueError, match="y is up to 1e\\+160"):
        m.partial_fit([[1.0, 0.0]], [1e160])
    np.testing.assert_array_equal(m.predict(X), before)


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_partial_fit_and_forget_are_refits(via):
    X, y = data(60)
    Z = data(9, seed=1)[0]
    make = lambda rows: GP(Matern(0.6), 0.1, via).fit(X[rows], y[rows])
    m = (
        make(slice(0, 40))
        .partial_fit(X[40:55], y[40:55])
        .partial_fit(X[55:], y[55:])
        .forget(X[[3, 50, 17]], y[[3, 50, 17]])
    )
    whole = make(np.setdiff1d(np.arange(60), [3, 50, 17]))
    for a, b in zip(m.predict(Z, return_std=True), whole.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8 if via == "exact" else 1e-3)
    assert m.log_marginal_likelihood_ == pytest.approx(
        whole.log_marginal_likelihood_, rel=1e-6 if via == "exact" else 0.1
    )
    assert m.plan_.settings["rows"] == 57
    with pytest.raises(ValueError, match="was not taken in"):
        m.forget(X[[3]], y[[3]])
    learnt = GP(Gaussian(0.6)).fit(X[:50], y[:50])
    kernel = learnt.kernel_
    assert learnt.partial_fit(X[50:], y[50:]).kernel_ == kernel
    streamed = GP(Gaussian(0.6), 0.1, via).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert (streamed.plan_.way, streamed.plan_.settings["rows"]) == (via, 60)
