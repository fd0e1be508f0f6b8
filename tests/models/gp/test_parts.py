"""What scikit-learn's users ask of a Gaussian process: its prior, its terms, the likelihood at other
parameters, bounds that were met."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessClassifier as PeerClassifier
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from mercer.kernels import Gaussian, Linear, Matern
from mercer.lifts import HashedFeatures
from mercer.methods import Fourier
from mercer.models import GaussianProcessClassifier
from mercer.models import GaussianProcessRegressor as GP

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=40)
Z = rng.normal(size=(9, 3))
FAR = np.array([0.0, 0.0, 1e6])


# before fit
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_prior_is_that_of_scikit_learn(dtype):
    ours, peer = GP(2.0 * Gaussian(0.7), noise=0.3), Peer(2.0 * RBF(0.7) + WhiteKernel(0.3))
    A = Z.astype(dtype)
    for option in ("return_std", "return_cov"):
        for a, b in zip(
            ours.predict(A, **{option: True}), peer.predict(A, **{option: True}), strict=True
        ):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
            assert a.dtype == dtype
    assert ours.predict(A).shape == (9,)
    assert not hasattr(ours, "n_features_in_")


def test_the_prior_knows_its_mean_noise_and_map():
    mean, std = GP(Gaussian(), noise=3.0, prior_mean=7.0).predict(Z, return_std=True)
    np.testing.assert_allclose([mean[0], std[0]], [7, 2])
    np.testing.assert_allclose(GP(Gaussian(), noise=3.0).predict(Z, return_std=True, of="f")[1], 1)
    over = GP(Gaussian(), 0.0, Fourier(400), random_state=0)
    np.testing.assert_allclose(over.predict(Z, return_cov=True)[1], Gaussian()(Z), atol=0.3)
    np.testing.assert_allclose(over.predict(Z, return_std=True)[1], 1)
    with pytest.raises(NotFittedError, match="call fit first"):
        GP(Gaussian() + Linear()).predict(Z, term=0)


def test_the_prior_over_features_that_are_sparse():
    m = GP(lift=HashedFeatures(1 << 14), noise=0.5)
    rows = Z @ Z.T + 0.5 * np.eye(9)
    np.testing.assert_allclose(m.predict(Z, return_cov=True)[1], rows, atol=1e-10)
    np.testing.assert_allclose(m.predict(Z, return_std=True)[1] ** 2, np.diag(rows), atol=1e-10)


# terms
def terms():
    return Gaussian(1.0).on_columns([0]) + 2.0 * Linear().on_columns([1])


@pytest.mark.parametrize("k", [terms(), 3.0 * terms()], ids=["sum", "scaled sum"])
def test_terms_add_up_and_are_what_brute_force_says(k):
    m = GP(k, noise=0.05, prior_mean=1.5).fit(X, y)
    parts = [m.predict(Z, return_cov=True, term=i) for i in range(2)]
    np.testing.assert_allclose(sum(p[0] for p in parts) + 1.5, m.predict(Z), atol=1e-10)
    factor = 3.0 if k != terms() else 1.0
    A = np.linalg.inv(k(X) + 0.05 * np.eye(40))
    for i, (mean, C) in enumerate(parts):
        K = factor * terms().terms[i](Z, X)
        np.testing.assert_allclose(mean, K @ A @ (y - 1.5), atol=1e-8)
        np.testing.assert_allclose(C, factor * terms().terms[i](Z) - K @ A @ K.T, atol=1e-8)
    std = m.predict(Z, return_std=True, term=1)[1]
    np.testing.assert_allclose(std**2, np.diag(parts[1][1]), atol=1e-10)


def test_terms_of_several_outputs_at_offsets():
    Y = np.stack([y + 1e6, -2 * y], axis=1)
    m = GP(terms(), random_state=0).fit(X + FAR, Y)
    whole = m.predict(Z + FAR)
    parts = [m.predict(Z + FAR, term=i) for i in range(2)]
    np.testing.assert_allclose(parts[0] + parts[1] + m.prior_mean_, whole, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "term", "match"),
    [
        (GP(Gaussian(), 0.1), 0, "a kernel that is a sum"),
        (GP(terms(), 0.1), 2, "from 0 to 1, got 2"),
        (GP(terms(), 0.1), "noise", "whole number"),
        (GP(terms(), 0.1), True, "whole number"),
        (GP(terms(), 0.1, "iterative"), 0, "via='exact'"),
        (GP(terms(), 0.1, "landmarks"), 0, "via='exact'"),
    ],
)
def test_what_has_no_such_term_says_so(model, term, match):
    with pytest.raises(ValueError, match=match):
        model.fit(X, y).predict(Z, term=term)


# the likelihood at other parameters
def test_the_likelihood_is_that_of_scikit_learn_elsewhere():
    peer = Peer(ConstantKernel(1.0) * RBF([1.0, 2.0, 3.0]) + WhiteKernel(0.1), optimizer=None).fit(
        X, y
    )
    m = GP(Gaussian((1.0, 2.0, 3.0)), 0.1, prior_mean=0.0).fit(X, y)
    assert [*m.theta_] == ["bandwidth__0", "bandwidth__1", "bandwidth__2", "noise", "scale"]
    theirs = np.log([0.5, 1.5, 1.0, 4.0, 0.2])  # scale, bandwidths, noise
    mine = theirs[[1, 2, 3, 4, 0]]
    value, slopes = peer.log_marginal_likelihood(theirs, eval_gradient=True)
    ours, by = m.log_marginal_likelihood(mine, eval_gradient=True)
    assert ours == pytest.approx(value)
    np.testing.assert_allclose(by, slopes[[1, 2, 3, 4, 0]], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("size", [1.0, 1e-9, 1e9])
def test_the_likelihood_at_home_is_the_fitted_one_and_flat_there(size):
    m = GP(Matern((1.0, 1.0, 1.0)), random_state=0).fit(X, size * y)
    value, slopes = m.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(m.log_marginal_likelihood_, abs=1e-6)
    inside = [not name.startswith("bandwidth") or v < 5 for name, v in m.theta_.items()]
    assert np.abs(slopes[inside]).max() < 0.1
    assert m.log_marginal_likelihood({"noise": m.theta_["noise"] + 1}) < value


def test_noise_of_each_row_is_no_parameter():
    m = GP(Gaussian(), np.linspace(0.1, 0.2, 40)).fit(X, y)
    assert [*m.theta_] == ["bandwidth", "scale"]
    assert m.log_marginal_likelihood() == pytest.approx(m.log_marginal_likelihood_)


@pytest.mark.parametrize(
    ("theta", "match"),
    [
        ({1: 0.0, "zz": 0.0}, "theta names 1; there are"),
        ("abc", "theta must have 3 numbers, .* got 'abc'"),
        ([0.0], "must have 3 numbers"),
        ({"nu": 1.0}, "names 'nu'; there are bandwidth, noise, scale"),
        ([0.0, np.nan, 0.0], "logarithms between"),
        ({"noise": "x"}, "logarithms between"),
    ],
)
def test_what_is_no_theta_is_refused(theta, match):
    with pytest.raises(ValueError, match=match):
        GP(Gaussian(), 0.1).fit(X, y).log_marginal_likelihood(theta)


def test_the_likelihood_elsewhere_takes_an_exact_model_of_one_output():
    for model, Y in [
        (GP(Gaussian(), 0.1, "landmarks"), y),
        (GP(Gaussian(), 0.1), np.stack([y, y], 1)),
    ]:
        with pytest.raises(ValueError, match=r"via='exact'|of one output"):
            model.fit(X, Y).log_marginal_likelihood()


# bounds
def test_bounds_that_were_met_are_told():
    bounds = {"bandwidth": (1e-3, 2e-3)}
    with pytest.warns(ConvergenceWarning, match="beyond the bounds of bandwidth"):
        m = GP(Gaussian(1.5e-3), bounds=bounds, random_state=0).fit(X, y)
    assert "bandwidth" in m.plan_.settings["on a bound"]
    with pytest.warns(ConvergenceWarning, match="beyond the bounds of bandwidth"):
        GP(Gaussian(1.5e-3), via="landmarks", bounds=bounds, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="beyond the bounds of bandwidth"):
        GaussianProcessClassifier(Gaussian(1.5e-3), bounds=bounds, random_state=0).fit(X, y > 0)


def test_bounds_that_were_not_met_are_not():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = GP(Gaussian(), bounds={"bandwidth": (0.01, 100.0)}, random_state=0).fit(X, y)
        GP(Gaussian((1.0, 1.0, 1.0)), random_state=0).fit(
            X, y
        )  # a column may be left out: no bound was given
    assert "on a bound" not in m.plan_.settings


# classes
def test_the_latent_function_is_that_of_scikit_learn():
    labels = (y > 0).astype(int)
    peer = PeerClassifier(2.0 * RBF(1.5), optimizer=None).fit(X, labels)
    m = GaussianProcessClassifier(2.0 * Gaussian(1.5), fixed=True).fit(X, labels)
    mean, variance = m.latent_mean_and_variance(Z)
    assert mean.shape == variance.shape == (len(Z),)
    if not hasattr(peer, "latent_mean_and_variance"):
        pytest.skip("scikit-learn before 1.7")
    theirs = peer.latent_mean_and_variance(Z)
    np.testing.assert_allclose(mean, theirs[0], atol=1e-4)
    np.testing.assert_allclose(variance, theirs[1], atol=1e-4)


@pytest.mark.parametrize("via", ["exact", "landmarks"])
def test_the_latent_functions_of_several_classes(via):
    labels = np.digitize(y, [-0.5, 0.5])
    m = GaussianProcessClassifier(Gaussian(1.5), via, random_state=0).fit(X, labels)
    mean, variance = m.latent_mean_and_variance(Z.astype(np.float32))
    assert mean.shape == variance.shape == (9, 3)
    assert mean.dtype == np.float32
    assert (variance > 0).all()
    assert (mean.argmax(1) == m.predict_proba(Z).argmax(1)).mean() > 0.8
