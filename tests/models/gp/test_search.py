"""The search of hyper-parameters: no lower than scikit-learn's, columns and parts found where there
are any."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process import kernels as sk

from mercer.kernels import Gaussian, Linear, Matern, Periodic, Sum
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.priors import LogNormal
from tests.models.gp.examples import data


def plain(k, X, y, Z, noise):
    """The formulas of a GP: posterior mean and covariance of f, log p(y)."""
    K = k(X) + np.diag(np.broadcast_to(noise, len(X)))
    A = np.linalg.solve(K, k(X, Z)).T
    return A @ y, k(Z) - A @ k(X, Z), multivariate_normal(np.zeros(len(y)), K).logpdf(y)


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_is_not_below_scikit_learns(seed):
    X, y = data(150, seed, d=4)
    y -= y.mean()
    p = Theirs(
        sk.ConstantKernel() * sk.RBF(np.ones(4), (1e-3, 1e4)) + sk.WhiteKernel(),
        alpha=0,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs meets its bounds
        p.fit(X, y)
    m = GP(Gaussian((1.0,) * 4), prior_mean=0.0, random_state=0).fit(X, y)
    assert m.log_marginal_likelihood_ >= p.log_marginal_likelihood_value_ - 0.02
    assert plain(m.kernel_, X, y, X[:1], m.noise_)[2] == pytest.approx(
        m.log_marginal_likelihood_, abs=1e-5
    )


# hyper-parameters
def test_columns_without_a_say_are_found():
    X, y = data(200, d=4)
    m = GP(Matern((1.0,) * 4, nu=2.5), random_state=0).fit(X, y)
    b = m.kernel_.kernel.bandwidth
    assert min(b[2:]) > 5 * max(b[0], 0.1)
    assert m.noise_ == pytest.approx(0.09, rel=0.35)
    assert m.plan_.way == "exact"


def test_a_rough_part_is_found_where_there_is_one():
    X, y = data(250, noise=0.05)
    rough = y + np.sign(np.sin(25 * X[:, 1]))
    assert isinstance(GP(random_state=0, n_restarts=0).fit(X, rough).kernel_.kernel, Sum)
    assert not isinstance(
        GP(via=Landmarks(50), random_state=0, n_restarts=0).fit(X, rough).kernel_.kernel, Sum
    )


def test_kernels_on_chosen_columns():
    X, y = data(80)
    frame = pd.DataFrame(X, columns=["a", "b"])
    k = Gaussian(0.5).on_columns(["a"]) + Linear().on_columns(["b"])
    m = GP(k, random_state=0).fit(frame, y)
    named, placed = (
        m.predict(frame),
        GP(Gaussian(0.5).on_columns([0]) + Linear().on_columns([1]), random_state=0)
        .fit(X, y)
        .predict(X),
    )
    np.testing.assert_allclose(named, placed, atol=1e-3)
    assert m.loo_score_ > 0.6


@pytest.mark.filterwarnings("ignore:the likelihood grows beyond the bounds")
def test_fixed_tied_and_bounded():
    X, y = data(100)
    k = Gaussian((0.3, 0.4)) + 0.5 * Periodic(1.0, 0.7).on_columns([0])
    m = GP(
        k,
        fixed=("terms__1__kernel__kernel__period",),
        tied=[("terms__0__bandwidth__0", "terms__0__bandwidth__1")],
        bounds={"terms__1__factor": (0.2, 0.3), "noise": (0.5, 0.6)},
        n_restarts=0,
    ).fit(X, 10 * y)
    inner = m.kernel_.get_params()
    assert inner["terms__1__kernel__kernel__period"] == 0.7
    assert len(set(inner["terms__0__bandwidth"])) == 1
    assert 0.2 - 1e-9 <= inner["terms__1__factor"] <= 0.3 + 1e-9
    assert 0.5 - 1e-9 <= m.noise_ <= 0.6 + 1e-9


def test_given_noise_keeps_the_kernel_unless_told():
    X, y = data(100)
    assert GP(Gaussian(5.0), 0.09).fit(X, y).kernel_ == Gaussian(5.0)
    m = GP(1.0 * Gaussian(5.0), 0.09, fixed=()).fit(X, y)
    assert m.noise_ == 0.09
    assert (
        m.log_marginal_likelihood_ > GP(Gaussian(5.0), 0.09).fit(X, y).log_marginal_likelihood_ + 5
    )
    pinned = GP(Gaussian(5.0), priors={"bandwidth": LogNormal(3.0, 1e-3)}).fit(X, y)
    assert pinned.posterior_.kernel.bandwidth == pytest.approx(3.0, rel=0.02)


# what landmarks leave out
def rough(n, seed):
    """A function that few landmarks cannot follow."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(9 * X[:, 0]) * np.cos(8 * X[:, 1]) + 0.1 * rng.normal(size=n)
