"""GaussianProcessRegressor over features: a GP with the kernel of its map, honest where the map is
not."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Gaussian, Linear, Polynomial
from mercer.lifts import Basis, Identity, Monomials
from mercer.methods import Fourier, Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.models import KernelRidge
from mercer.models.gp import VarianceStarvationWarning
from tests.models.gp.examples import data

EXACT = {
    "linear": Linear(),
    "offset": Linear() + 1,
    "cubic": Polynomial(3),
    "scaled": 0.3 * Polynomial(2),
}


def plain(k, X, y, Z, noise, mean=0.0):
    """The formulas of a GP: posterior mean and covariance of f, log p(y)."""
    K = k(X) + np.diag(np.broadcast_to(noise, len(X)))
    A = np.linalg.solve(K, k(X, Z)).T
    return (
        mean + A @ (y - mean),
        k(Z) - A @ k(X, Z),
        multivariate_normal(np.full(len(y), mean), K).logpdf(y),
    )


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(GP(lift=Monomials(2)), id="exact"),
        pytest.param(
            GP(via=Landmarks(30), prior_mean="y", fixed="all", random_state=0),
            id="landmarks",
            marks=pytest.mark.long,
        ),
    ],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("n", [60, 5, 1])
def test_bayesian_linear_regression_is_the_gp(name, n):
    (X, y), (Z, _) = data(n), data(7, seed=1)
    k, noise = EXACT[name], 0.2
    m = GP(k, noise).fit(X, y)
    mean, cov, log = plain(k, X, y, Z, noise)
    np.testing.assert_allclose(m.predict(Z), mean, atol=1e-9)
    np.testing.assert_allclose(m.predict(Z, return_cov=True, of="f")[1], cov, atol=1e-9)
    np.testing.assert_allclose(
        m.predict(Z, return_std=True)[1] ** 2, np.diag(cov) + noise, atol=1e-9
    )
    np.testing.assert_allclose(m.predict(Z, return_cov=True)[1], cov + noise * np.eye(7), atol=1e-9)
    assert m.log_marginal_likelihood_ == pytest.approx(log, abs=1e-7)


def test_against_scikit_learn():
    (X, y), (Z, _) = data(), data(9, seed=1)
    ref = Theirs(
        ConstantKernel(2.0, "fixed") * DotProduct(1.0, "fixed"), alpha=0.1, optimizer=None
    ).fit(X, y)
    m = GP(2 * (Linear() + 1), 0.1).fit(X, y)
    for ours, theirs in zip(
        m.predict(Z, return_std=True, of="f"), ref.predict(Z, return_std=True), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert m.log_marginal_likelihood_ == pytest.approx(ref.log_marginal_likelihood_value_)


def test_all_landmarks_are_the_gaussian_gp():
    (X, y), (Z, _) = data(), data(9, seed=1)
    Z = np.vstack([Z, [[40.0, 40.0]]])  # and one far away
    ref = Theirs(RBF(0.7, "fixed"), alpha=0.1, optimizer=None).fit(X, y)
    m = GP(Gaussian(0.7), 0.1, "landmarks", random_state=0).fit(X, y)
    mean, std = m.predict(Z, return_std=True, of="f")
    theirs = ref.predict(Z, return_std=True)
    np.testing.assert_allclose(mean, theirs[0], atol=1e-5)
    np.testing.assert_allclose(std, theirs[1], rtol=1e-4)
    np.testing.assert_allclose(
        m.predict(Z, return_cov=True, of="f")[1], ref.predict(Z, return_cov=True)[1], atol=1e-5
    )


def test_ridge_is_the_gp_mean():
    X, y = data()
    for via in (Fourier(300), Landmarks(20)):
        ridge = KernelRidge(Gaussian(0.5), 0.3, via, fit_intercept=False, random_state=0).fit(X, y)
        gp = GP(Gaussian(0.5), 0.3, via, random_state=0).fit(X, y)
        np.testing.assert_allclose(gp.predict(X), ridge.predict(X), atol=1e-9)


def test_one_noise_a_row():
    (X, y), (Z, _) = data(), data(7, seed=1)
    noise = np.random.default_rng(0).uniform(0.01, 3, len(y))
    m = GP(Polynomial(2), noise).fit(X, y)
    mean, cov, log = plain(Polynomial(2), X, y, Z, noise)
    np.testing.assert_allclose(m.predict(Z), mean)
    np.testing.assert_allclose(m.predict(Z, return_cov=True, of="f")[1], cov, atol=1e-10)
    assert m.log_marginal_likelihood_ == pytest.approx(log)
    np.testing.assert_allclose(m.predict(Z, return_std=True)[1] ** 2, np.diag(cov) + noise.mean())
    with pytest.raises(ValueError, match="for fit"):
        m.partial_fit(X, y)


def test_prior_mean():
    (X, y), (Z, _) = data(), data(7, seed=1)
    mean, _, log = plain(Polynomial(2), X, y + 5, Z, 0.2, mean=(y + 5).mean())
    m = GP(Polynomial(2), 0.2, prior_mean="y").fit(X, y + 5)
    np.testing.assert_allclose(m.predict(Z), mean)
    assert m.log_marginal_likelihood_ == pytest.approx(log)
    np.testing.assert_allclose(
        GP(Polynomial(2), 0.2, prior_mean=m.prior_mean_).fit(X, y + 5).predict(Z), mean
    )


@pytest.mark.parametrize("n", [80, 8])
def test_learnt_noise_and_scale_maximise_the_evidence(n):
    X, y = data(n)
    m = GP(Polynomial(3), via="features").fit(X, y)

    def loss(logs):
        return -plain(np.exp(logs[1]) * Polynomial(3), X, y, X[:1], np.exp(logs[0]))[2]

    best = min(
        minimize(loss, start, method="Nelder-Mead").fun
        for start in ([-2.0, 0.0], [0.0, -2.0], [-4.0, 2.0])
    )
    assert loss(np.log([m.noise_, m.scale_])) == pytest.approx(
        -m.log_marginal_likelihood_, abs=1e-6
    )
    assert -m.log_marginal_likelihood_ <= best + 1e-5


def test_noise_is_found():
    X, y = data(1500, noise=0.3)
    m = GP(Gaussian(0.7), via=Fourier(200), random_state=0).fit(X, y)
    assert m.noise_ == pytest.approx(0.09, rel=0.1)
    assert m.kernel_ == m.scale_ * Gaussian(0.7)
    inside = np.abs(y - m.predict(X)) < 1.96 * m.predict(X, return_std=True)[1]
    assert 0.93 < inside.mean() < 0.97


def test_x_and_cos_x_recover_their_coefficients():
    rng = np.random.default_rng(0)
    x = rng.uniform(-5, 5, 400)
    X, y = x[:, None], 2.0 + 0.5 * x - 1.5 * np.cos(x) + 0.1 * rng.normal(size=400)
    ridge = KernelRidge(lift=Basis(["x", "cos"]), alpha=1e-3).fit(X, y)
    np.testing.assert_allclose([ridge.intercept_, *ridge.coef_], [2.0, 0.5, -1.5], atol=0.03)
    gp = GP(lift=Basis({"1": np.ones_like, "x": np.positive, "cos": np.cos})).fit(X, y)
    np.testing.assert_allclose(gp.coef_, [2.0, 0.5, -1.5], atol=0.03)
    assert gp.noise_ == pytest.approx(0.01, rel=0.2)


def test_streamed_merged_and_whole_are_one():
    X, y = data(120)
    y = 1e6 + 100 * y
    Z = data(9, seed=1)[0]
    make = lambda: GP(Gaussian(0.7), via=Fourier(200), random_state=0)
    whole, parts, left, right = (
        make().fit(X, y),
        make(),
        make().fit(X[:50], y[:50]),
        make().fit(X[50:], y[50:]),
    )
    for i in range(0, 120, 17):
        parts.partial_fit(X[i : i + 17], y[i : i + 17])
    for m in (parts, left.merge(right)):
        assert m.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-6)
        assert m.noise_ == pytest.approx(whole.noise_, rel=1e-4)
        np.testing.assert_allclose(m.predict(Z), whole.predict(Z), rtol=1e-7)
    with pytest.raises(ValueError, match="different feature maps"):
        whole.merge(GP(Gaussian(0.8), via=Fourier(200), random_state=0).fit(X, y))


def test_refused_batches_change_nothing():
    X, y = data()
    m = GP(lift=Monomials(2)).partial_fit(X[:30], y[:30])
    before = m.predict(X, return_std=True)
    bad = X[30:].copy()
    bad[10, 1] = np.nan
    for rows, target, match in (
        (X[30:, :1], y[30:], "1 features"),
        (bad, y[30:], "NaN"),
        (X[30:], bad[:, 1], "NaN"),
        (1e200 * X, y, "too large"),
    ):
        with pytest.raises(ValueError, match=match), np.errstate(all="ignore"):
            m.partial_fit(rows, target)
        np.testing.assert_array_equal(m.predict(X, return_std=True), before)
    np.testing.assert_allclose(
        m.partial_fit(X[30:], y[30:]).predict(X),
        GP(lift=Monomials(2)).fit(X, y).predict(X),
        atol=1e-7,
    )


@pytest.mark.parametrize("size", [1e12, 1e-12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_y_of_any_size(size, dtype):
    X, y = data()
    X = X.astype(dtype)
    one, m = (GP(Polynomial(3), random_state=0).fit(X, v) for v in (y, size * y))
    tol = 1e-6 if dtype is np.float64 else 1e-3
    for a, b in zip(m.predict(X, return_std=True), one.predict(X, return_std=True), strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a / size, b, rtol=tol, atol=tol)
    assert m.noise_ == pytest.approx(one.noise_ * size**2, rel=1e-3)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e12, -1e-12])
@pytest.mark.parametrize("prior_mean", [0.0, "y"])
def test_constant_y(value, prior_mean):
    X, y = data(20)[0], np.full(20, value)
    m = GP(Linear() + 1, prior_mean=prior_mean).fit(X, y)
    mean, std = m.predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, rtol=1e-4, atol=1e-30)
    assert np.isfinite(m.log_marginal_likelihood_)
    told = prior_mean == 0.0 and value != 0  # else equal rows tell neither noise nor scale
    assert (std <= (1e-2 * abs(value) + 1e-6 if told else (abs(value) or 1.0))).all()
    assert (std > 0).all()


def test_sparse_rows_are_the_dense_ones():
    X, y = data()
    for via in (Fourier(300), Landmarks(30)):
        m = GP(Gaussian(0.7), 0.1, via, random_state=0)
        dense, sparse = (m.fit(A, y).predict(A, return_std=True) for A in (X, sp.csr_array(X)))
        np.testing.assert_allclose(dense, sparse, atol=1e-6)


def test_one_row():
    m = GP(Polynomial(2)).fit([[1.0, 2.0]], [3.0])
    mean, std = m.predict([[1.0, 2.0]], return_std=True)
    assert 0 < mean[0] < 3.1
    assert np.isfinite(std).all()


def test_variances_are_never_negative_and_points_are_alone():
    X, y = data(150, noise=0.0)
    Z = np.vstack([X, 50 * X[:20]])
    for via in (Fourier(300), Landmarks(60)):
        m = GP(Gaussian(0.6), 1e-10, via, random_state=0).fit(X, y)
        mean, std = m.predict(Z, return_std=True, of="f")
        assert (std >= 0).all()
        assert np.isfinite(std).all()
        alone = [m.predict(Z[i : i + 1], return_std=True, of="f") for i in (0, 7, 160)]
        np.testing.assert_allclose(np.array(alone)[:, 0, 0], mean[[0, 7, 160]], atol=1e-6)
        np.testing.assert_allclose(np.array(alone)[:, 1, 0], std[[0, 7, 160]], atol=1e-6)


@pytest.mark.parametrize("features", [64, 256])
def test_starved_variance_is_foretold(features):
    """Far from the data the exact variance is 1; with D features it is what the effective dimension
    leaves of it."""
    rng = np.random.default_rng(0)
    X, far = rng.uniform(-2, 2, size=(200, 5)), rng.uniform(30, 60, size=(300, 5))
    with pytest.warns(VarianceStarvationWarning, match=f"of the map's {features} directions"):
        m = GP(Gaussian(1.0), 1e-2, Fourier(features), random_state=0).fit(X, np.sin(X.sum(1)))
    left = 1 - m.effective_dimension_ / features
    assert left < 0.5
    assert np.mean(m.predict(far, return_std=True, of="f")[1] ** 2) == pytest.approx(left, rel=0.1)


def test_no_warning_where_variance_is_left():
    rng = np.random.default_rng(0)
    X, far = rng.uniform(-2, 2, size=(80, 5)), rng.uniform(30, 60, size=(300, 5))
    y = np.sin(X.sum(1))
    m = GP(Gaussian(1.0), 1e-2, Fourier(400), random_state=0).fit(
        X, y
    )  # a warning would be an error here
    assert np.mean(m.predict(far, return_std=True, of="f")[1] ** 2) > 0.75
    GP(Linear() + 1, 1e-2).fit(X, y)  # all six directions told, and that is right: the map is exact
    GP(lift=Identity()).fit(X, y)


def test_landmarks_keep_their_variance():
    X, y = data(200)
    far = np.full((1, 2), 50.0)
    m = GP(Gaussian(0.5), 0.1, Landmarks(60), random_state=0).fit(X, y)
    assert m.predict(far, return_std=True, of="f")[1] == pytest.approx(1.0)
    starved = GP(Gaussian(0.5), 0.1, Landmarks(60), restore_variance=False, random_state=0).fit(
        X, y
    )
    with pytest.warns(VarianceStarvationWarning, match="restore_variance"):
        assert starved.predict(far, return_std=True, of="f")[1] < 1e-6
    near = starved.predict(X[:5], return_std=True, of="f")[1]
    assert (near <= m.predict(X[:5], return_std=True, of="f")[1] + 1e-12).all()


@pytest.mark.parametrize("via", [Fourier(64), Landmarks(10)], ids=repr)
@pytest.mark.parametrize("of", ["y", "f"])
def test_draws_have_the_posteriors_moments(via, of):
    X, y = data(15)
    Z = data(4, seed=1)[0]
    m = GP(Gaussian(0.7), 0.2, via, prior_mean=1.0, random_state=0).fit(X, y)
    S = m.sample_y(Z, 20_000, of=of)
    mean, cov = m.predict(Z, return_cov=True, of=of)
    assert S.shape == (4, 20_000)
    np.testing.assert_allclose(S.mean(1), mean, atol=0.03)
    np.testing.assert_allclose(np.cov(S), cov, atol=0.03)
    np.testing.assert_array_equal(m.sample_y(Z, 3, of=of), m.sample_y(Z, 3, of=of))


def test_prior_draws_before_and_after_fit():
    X, y = data(15)
    k = Gaussian(0.7)
    for m in (
        GP(k, 0.2, Landmarks(15), random_state=0),
        GP(k, 0.2, Landmarks(15), random_state=0).fit(X, y),
    ):
        fitted = hasattr(m, "lift_")
        S = m.sample_y(X[:4], 20_000, posterior=False, of="f")
        np.testing.assert_allclose(np.cov(S), k(X[:4]), atol=0.05)
        assert hasattr(m, "lift_") == fitted


F100 = Fourier(100)


def test_beyond_the_memory_limit_by_passes():
    X, y = data(150)
    make = lambda **o: GP(Gaussian(0.8), 0.1, Fourier(400), random_state=0, **o)
    whole, m = make().fit(X, y), make(memory_limit=2e6).fit(X, y)
    assert m.plan_.way == "range finder"
    for a, b in zip(m.predict(X, return_std=True), whole.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    assert m.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, abs=1e-2)
    with pytest.raises(ValueError, match="exceed memory_limit in a stream"):
        make(memory_limit=2e6).partial_fit(X, y)


@pytest.mark.filterwarnings("ignore::mercer.models.gp.posterior.VarianceStarvationWarning")
@pytest.mark.parametrize(("via", "noise"), [(F100, 0.1), (F100, "learn"), (Landmarks(60), 0.1)])
@pytest.mark.parametrize("limit", [1e3, 6e4, 3e5])
def test_too_few_directions_for_the_memory_limit_are_refused_or_as_good(limit, via, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = np.sin(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=400)
    make = lambda **o: GP(Gaussian(3.0), noise, via, random_state=0, **o)
    whole = make().fit(X, y).predict(X)
    try:
        found = make(memory_limit=limit).fit(X, y).predict(X)
    except ValueError as e:
        assert "raise it, or use fewer features" in str(e)  # noqa: PT017
        assert limit < 3e5
        return
    assert np.sqrt(np.mean((found - whole) ** 2)) < 0.02 * np.sqrt(np.mean(y**2))
    assert limit > 1e4


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (dict(noise=0.0, via="features"), "noise must be a variance > 0"),
        (dict(noise="much"), "noise must be"),
        (dict(noise=[0.1, 0.2]), "X has 60 rows"),
        (dict(prior_mean="x"), "prior_mean must be"),
        (dict(kernel=Linear(), lift=Identity()), "not both"),
    ],
)
def test_one_sentence_errors(options, match):
    with pytest.raises(ValueError, match=match):
        GP(**options).fit(*data())


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_y_without_a_square_is_refused(size):
    X, y = data()
    with pytest.raises(ValueError, match="scale y first"), np.errstate(all="ignore"):
        GP(lift=Identity()).fit(X, size * y)


def test_questions_are_checked():
    m = GP(lift=Identity()).fit(*data())
    with pytest.raises(ValueError, match="not both"):
        m.predict([[0.0, 0.0]], return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="of must be"):
        m.predict([[0.0, 0.0]], of="z")


def test_features_forget_too():
    X, y = data(100)
    make = lambda: GP(Gaussian(0.7), via="features", random_state=0)
    m = make().partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:]).forget(X[70:], y[70:])
    np.testing.assert_allclose(
        m.predict(X), make().partial_fit(X[:70], y[:70]).predict(X), atol=1e-4
    )
