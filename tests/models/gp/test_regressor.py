"""GaussianProcessRegressor over points: the formulas, scikit-learn, honest variances, and the hard cases."""
import importlib.util
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor as Theirs
from sklearn.gaussian_process import kernels as sk
from sklearn.utils.estimator_checks import check_estimator

from mercer.kernels import Constant, Gaussian, Laplace, Linear, Matern, Periodic, Polynomial, RationalQuadratic, Sum
from mercer.lifts import Monomials
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.priors import LogNormal
from mercer.store import load, save

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


def data(n=60, seed=0, noise=0.3, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)


def plain(k, X, y, Z, noise):
    """The formulas of a GP: posterior mean and covariance of f, log p(y)."""
    K = k(X) + np.diag(np.broadcast_to(noise, len(X)))
    A = np.linalg.solve(K, k(X, Z)).T
    return A @ y, k(Z) - A @ k(X, Z), multivariate_normal(np.zeros(len(y)), K).logpdf(y)


@pytest.mark.parametrize(
    "model",
    [
        GP(Gaussian(0.7), fixed="all", n_restarts=0), GP(Gaussian(0.7), 0.1),
        pytest.param(GP(Gaussian(0.7), 0.1, "iterative"), marks=pytest.mark.long),
        pytest.param(GP(Gaussian(0.7), via="landmarks", fixed="all"), marks=pytest.mark.long),
    ],
    ids=["learnt", "exact", "iterative", "landmarks"],
)
def test_scikit_learn_contract(model):
    check_estimator(model, on_skip=None)


@pytest.mark.long
def test_scikit_learn_contract_with_all_learnt():
    check_estimator(GP(), on_skip=None)


# against the formulas and scikit-learn
@pytest.mark.parametrize("name", TWINS)
def test_twins(name):
    ours, theirs = TWINS[name]
    (X, y), (Z, _) = data(), data(9, seed=1)
    m, p = GP(ours, 0.1).fit(X, y), Theirs(theirs, alpha=0.1, optimizer=None).fit(X, y)
    for a, b in zip(m.predict(Z, return_std=True, of="f"), p.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(m.predict(Z, return_cov=True, of="f")[1], p.predict(Z, return_cov=True)[1], atol=1e-9)
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
    np.testing.assert_allclose(m.predict(Z, return_std=True)[1] ** 2, np.diag(cov) + noise.mean(), atol=1e-4)
    assert m.log_marginal_likelihood_ == pytest.approx(log, abs=3 * m.log_marginal_likelihood_error_ + 1e-6)


def test_a_lift_is_its_kernel():
    """Bayesian linear regression on an exact lift, and the GP by points."""
    (X, y), (Z, _) = data(), data(7, seed=1)
    points, weights = GP(Polynomial(2), 0.2, "exact").fit(X, y), GP(lift=Monomials(2, weights="kernel"), noise=0.2).fit(X, y)
    for a, b in zip(points.predict(Z, return_cov=True), weights.predict(Z, return_cov=True), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)
    assert points.log_marginal_likelihood_ == pytest.approx(weights.log_marginal_likelihood_)


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_is_not_below_scikit_learns(seed):
    X, y = data(150, seed, d=4)
    y -= y.mean()
    p = Theirs(sk.ConstantKernel() * sk.RBF(np.ones(4), (1e-3, 1e4)) + sk.WhiteKernel(), alpha=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs meets its bounds
        p.fit(X, y)
    m = GP(Gaussian((1.0,) * 4), prior_mean=0.0, random_state=0).fit(X, y)
    assert m.log_marginal_likelihood_ >= p.log_marginal_likelihood_value_ - 0.02
    assert plain(m.kernel_, X, y, X[:1], m.noise_)[2] == pytest.approx(m.log_marginal_likelihood_, abs=1e-5)


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
    assert not isinstance(GP(via=Landmarks(50), random_state=0, n_restarts=0).fit(X, rough).kernel_.kernel, Sum)


def test_kernels_on_chosen_columns():
    X, y = data(80)
    frame = pd.DataFrame(X, columns=["a", "b"])
    k = Gaussian(0.5).on_columns(["a"]) + Linear().on_columns(["b"])
    m = GP(k, random_state=0).fit(frame, y)
    named, placed = m.predict(frame), GP(Gaussian(0.5).on_columns([0]) + Linear().on_columns([1]), random_state=0).fit(X, y).predict(X)
    np.testing.assert_allclose(named, placed, atol=1e-3)
    assert m.loo_score_ > 0.6


def test_fixed_tied_and_bounded():
    X, y = data(100)
    k = Gaussian((0.3, 0.4)) + 0.5 * Periodic(1.0, 0.7).on_columns([0])
    m = GP(k, fixed=("terms__1__kernel__kernel__period",), tied=[("terms__0__bandwidth__0", "terms__0__bandwidth__1")],
           bounds={"terms__1__factor": (0.2, 0.3), "noise": (0.5, 0.6)}, n_restarts=0).fit(X, 10 * y)  # fmt: skip
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
    assert m.log_marginal_likelihood_ > GP(Gaussian(5.0), 0.09).fit(X, y).log_marginal_likelihood_ + 5
    pinned = GP(Gaussian(5.0), priors={"bandwidth": LogNormal(3.0, 1e-3)}).fit(X, y)
    assert pinned.posterior_.kernel.bandwidth == pytest.approx(3.0, rel=0.02)


def test_several_outputs():
    X, y = data(80)
    Y = np.column_stack([y, 1e3 + 50 * np.cos(2 * X[:, 0])])
    k, noise = Gaussian(0.6), 0.1
    both = GP(k, noise).fit(X, Y)
    for j in range(2):
        one = GP(k, noise).fit(X, Y[:, j])
        for a, b in zip(both.predict(X, return_std=True), one.predict(X, return_std=True), strict=True):
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
    assert abs(np.corrcoef(*(values[0] - values[0].mean(1, keepdims=True)))[0, 1]) < 0.1  # outputs are drawn apart
    assert np.abs(mean[:, 1] - Y[:, 1]).max() < 40


# predictions
@pytest.mark.parametrize(("via", "noise"), [("exact", 0.0), ("exact", 1e-10), ("exact", 1e-2), ("iterative", 1e-2)])
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
    np.testing.assert_allclose(m.predict_quantiles(X, [0.1, 0.5]), norm.ppf([0.1, 0.5], mean[:, None], std[:, None]))
    low, high = interval = m.predict_interval(X, 0.8)
    np.testing.assert_allclose(high - low, 2 * std * norm.ppf(0.9))
    assert "0.8" in interval.guarantee


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


# leave-one-out and calibration
def test_leave_one_out_is_n_refits():
    X, y = data(25)
    m = GP(Gaussian(0.6), 0.1, prior_mean=0.5).fit(X, y)
    for i in range(25):
        rest = np.arange(25) != i
        mean, std = GP(Gaussian(0.6), 0.1, prior_mean=0.5).fit(X[rest], y[rest]).predict(X[[i]], return_std=True)
        assert m.loo_predictions_[i] == pytest.approx(mean[0])
        assert m.loo_variances_[i] == pytest.approx(std[0] ** 2)
        assert m.loo_log_densities_[i] == pytest.approx(norm.logpdf(y[i], mean[0], std[0]))


def test_intervals_cover_what_they_say():
    covered = {c: [] for c in (0.5, 0.8, 0.9, 0.95)}
    for seed in range(5):
        (X, y), (Z, z) = data(150, seed), data(400, 100 + seed)
        m = GP(Gaussian(1.0), random_state=0).fit(X, y)
        for c, share in m.calibration(Z, z).items():
            covered[c].append(share)
        assert abs(m.calibration()[0.9] - 0.9) < 0.1
    for c, shares in covered.items():
        assert np.mean(shares) == pytest.approx(c, abs=0.05)


def test_the_plot_is_the_calibration():
    class Axes:
        lines = []

        def plot(self, x, y, **_):
            self.lines.append((x, y))

        def set(self, **_):
            return None

    X, y = data(80)
    m = GP(Gaussian(0.6), 0.1).fit(X, y)
    (_, diagonal), (nominal, found) = m.plot_calibration(X, y, ax=Axes()).lines
    assert diagonal == [0, 1]
    assert found[49] == m.calibration(X, y, [nominal[49]])[nominal[49]]
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(ImportError, match="pip install matplotlib"):
            m.plot_calibration(X, y)


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


@pytest.mark.parametrize("size", [1e12, 1e-12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_y_of_any_size(size, dtype):
    X, y = data()
    one, m = (GP(random_state=0).fit(X.astype(dtype), s * y) for s in (1.0, size))
    for a, b in zip(m.predict(X.astype(dtype), return_std=True), one.predict(X.astype(dtype), return_std=True), strict=True):
        assert a.dtype == dtype
        np.testing.assert_allclose(a / size, b, rtol=1e-3, atol=1e-3)
    assert m.noise_ == pytest.approx(size**2 * one.noise_, rel=1e-2)
    assert m.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_ - 60 * np.log(size), abs=1e-2)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e12])
@pytest.mark.parametrize("n", [1, 20])
@pytest.mark.parametrize("via", ["exact", "iterative", "landmarks"])
def test_constant_y_and_one_row(value, n, via):
    """They tell neither noise nor scale, so that nothing is certain, the less the fewer rows there are."""
    X = data(n)[0]
    m = GP(via=via).fit(X, np.full(n, value))
    mean, std = m.predict(X, return_std=True)
    np.testing.assert_allclose(mean, value, rtol=1e-6)
    assert np.isfinite(std).all()
    assert np.isfinite(m.log_marginal_likelihood_)
    far = m.predict(np.full((1, 2), 1e3), return_std=True)[1][0]
    assert far == pytest.approx((abs(value) or 1.0) * np.sqrt(2 / (n + 1)), rel=1e-6)
    assert far > std.max()


def test_constant_columns_and_far_rows():
    X, y = data(50)
    m = GP().fit(np.column_stack([X, np.full(50, 7.0), 1e8 + X[:, 0]]), y)
    assert m.loo_score_ > 0.6
    assert np.isfinite(GP(Gaussian(), 0.1).fit(1e150 * X, y).predict(1e150 * X)).all()


def test_sparse_and_single_precision_rows():
    X, y = data()
    dense = GP(Gaussian(0.7), 0.1).fit(X, y).predict(X, return_std=True)
    np.testing.assert_allclose(GP(Gaussian(0.7), 0.1).fit(sp.csr_array(X), y).predict(sp.csr_array(X), return_std=True), dense, atol=1e-8)
    half = GP(Gaussian(0.7), 0.1).fit(X.astype(np.float32), y).predict(X.astype(np.float32), return_std=True)
    assert half[0].dtype == half[1].dtype == np.float32
    np.testing.assert_allclose(half, dense, atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"noise": 0.1}, {"noise": 0.1, "prior_mean": 3.0}])
@pytest.mark.parametrize("via", ["exact", "landmarks"])
def test_y_whose_square_overflows_is_refused(via, options):
    X, y = data(20)
    with pytest.raises(ValueError, match="scale y first"):
        GP(Gaussian(0.7), via=via, **options).fit(X, 1e160 * y)


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
    m = make(slice(0, 40)).partial_fit(X[40:55], y[40:55]).partial_fit(X[55:], y[55:]).forget(X[[3, 50, 17]], y[[3, 50, 17]])
    whole = make(np.setdiff1d(np.arange(60), [3, 50, 17]))
    for a, b in zip(m.predict(Z, return_std=True), whole.predict(Z, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8 if via == "exact" else 1e-3)
    assert m.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-6 if via == "exact" else 0.1)
    assert m.plan_.settings["rows"] == 57
    with pytest.raises(ValueError, match="was not taken in"):
        m.forget(X[[3]], y[[3]])
    learnt = GP(Gaussian(0.6)).fit(X[:50], y[:50])
    kernel = learnt.kernel_
    assert learnt.partial_fit(X[50:], y[50:]).kernel_ == kernel
    streamed = GP(Gaussian(0.6), 0.1, via).partial_fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert (streamed.plan_.way, streamed.plan_.settings["rows"]) == (via, 60)


@pytest.mark.parametrize("size", [1e-13, 1.0, 1e13])
def test_rows_to_forget_are_known_by_their_y_at_any_size(size):
    X = np.zeros((3, 1))
    y = size * np.array([1.0, 2.0, 3.0])
    m = GP(Gaussian(), 0.1).fit(X, y).forget(X[:1], y[:1])
    np.testing.assert_array_equal(m.posterior_.Y[:, 0], y[1:])
    with pytest.raises(ValueError, match="was not taken in"):
        m.forget(X[:1], y[:1])


def test_features_forget_too():
    X, y = data(100)
    make = lambda: GP(Gaussian(0.7), via="features", random_state=0)
    m = make().partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:]).forget(X[70:], y[70:])
    np.testing.assert_allclose(m.predict(X), make().partial_fit(X[:70], y[:70]).predict(X), atol=1e-4)


# plans and files
def test_the_plan_says_which_way():
    X, y = data(60)
    assert GP(Gaussian(), 0.1).fit(X, y).plan_.way == "exact"
    few = GP(Gaussian(), 0.1, memory_limit=20_000, random_state=0).fit(X, y)
    assert few.plan_.way == "landmarks"
    assert few.plan_.rejected[0][0] == "exact"
    assert GP(Gaussian(), 0.1, memory_limit=20_000).fit(X, np.column_stack([y, y])).plan_.way == "iterative"
    with pytest.raises(ValueError, match="beyond memory_limit"):
        GP(Gaussian(), 0.1, "exact", memory_limit=20_000).fit(X, y)
    with pytest.raises(ValueError, match="via must be"):
        GP(via="guess").fit(X, y)


def test_a_column_of_y_is_answered_by_a_column(monkeypatch):
    """Whichever way "auto" takes."""
    X, y = data(60)
    exact = GP(Gaussian(0.7), 0.1).fit(X, y[:, None])
    monkeypatch.setattr("mercer.models.gp.problem.MAX_EXACT_ROWS", 50)
    large = GP(Gaussian(0.7), 0.1, random_state=0).fit(X, y[:, None])
    assert (exact.plan_.way, large.plan_.way) == ("exact", "landmarks")
    for a, b in zip(exact.predict(X[:3], return_cov=True), large.predict(X[:3], return_cov=True), strict=True):
        assert a.shape == b.shape
    assert large.predict(X).shape == large.partial_fit(X[:5], y[:5, None]).predict(X, return_std=True)[1].shape == (60, 1)
    with pytest.raises(ValueError, match="fit one model a column"):
        large.partial_fit(X[:5], np.column_stack([y, y])[:5])


def test_landmarks_learn_the_kernel():
    (X, y), (Z, z) = data(250, d=3), data(200, 1, d=3)
    m = GP(Gaussian((1.0,) * 3), via=Landmarks(100), n_restarts=0, random_state=0).fit(X, y)
    exact = GP(Gaussian((1.0,) * 3), n_restarts=0, random_state=0).fit(X, y)
    assert m.score(Z, z) > exact.score(Z, z) - 0.01
    assert m.calibration(Z, z)[0.9] == pytest.approx(exact.calibration(Z, z)[0.9], abs=0.03)
    assert m.predict(np.full((1, 3), 50.0), return_std=True, of="f")[1] ** 2 == pytest.approx(m.scale_, rel=1e-3)


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_saved_models(via, tmp_path):
    X, y = data(50)
    m = GP(Gaussian(0.7), via=via, random_state=0).fit(X, y)
    save(m, tmp_path / "m.mercer")
    back = load(tmp_path / "m.mercer")
    for a, b in zip(m.predict(X, return_std=True), back.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    assert clone(back).fit(X, y).kernel_ == m.kernel_


@pytest.mark.parametrize(("options", "match"), [
    (dict(noise=-1.0), "noise must be"), (dict(noise=[0.1]), "X has 60 rows"), (dict(kernel=Gaussian((1.0,) * 3)), "2 columns"),
    (dict(fixed=("width",)), "not a parameter"), (dict(n_restarts=-1), "n_restarts"), (dict(n_restarts=True), "n_restarts"),
    (dict(restore_variance="no"), "restore_variance must be True or False"),
    (dict(kernel=Laplace(), tied=[("a", "b")]), "not a parameter"),
])  # fmt: skip
def test_one_sentence_errors(options, match):
    with pytest.raises(ValueError, match=match):
        GP(**options).fit(*data())


def test_questions_are_checked():
    X, y = data()
    m = GP(Constant() + Linear(), 0.1).fit(X, y)
    for ask, match in (
        (lambda: m.predict(X, of="z"), "of must be"), (lambda: m.predict(X, return_std=True, return_cov=True), "not both"),
        (lambda: m.predict_quantiles(X, [0.0]), "between 0 and 1"), (lambda: m.predict_interval(X, 1.0), "between 0 and 1"),
        (lambda: m.merge(m), "do not merge"), (lambda: m.forget(X, y), "leave at least one"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            ask()
    with pytest.raises(AttributeError, match="via='exact'"):
        GP(Linear(), 0.1, "features").fit(X, y).loo_predictions_  # noqa: B018


# rows that are learnt from
@pytest.mark.parametrize("via", ["iterative", Landmarks(40), "exact"], ids=["iterative", "landmarks", "exact"])
def test_learning_from_all_rows(via):
    """From fewer rows to all of them the evidence of all rows rises, and the plan says what was done."""
    X, y = data(400, d=3)
    k = Gaussian((1.0,) * 3)
    make = lambda rows: GP(k, via=via, learn_rows=rows, n_restarts=0, random_state=0).fit(X, y)
    few, all_ = make(100), make("all")
    key = "kernel learnt from" if isinstance(via, Landmarks) else "learnt from"
    assert few.plan_.settings[key] == 100
    assert all_.plan_.settings[key] == 400
    slack = 4 * all_.log_marginal_likelihood_error_ + 1.0
    assert all_.log_marginal_likelihood_ > few.log_marginal_likelihood_ - slack
    (Z, z) = data(300, 1, d=3)
    assert all_.score(Z, z) > few.score(Z, z) - 0.02


@pytest.mark.parametrize("options", [dict(fixed=("factor",)), dict(bounds={"factor": (2.0, 2.5)}), dict(bounds={"noise": (0.2, 0.3)})])
def test_the_last_rescaling_keeps_what_was_said(options, monkeypatch):
    monkeypatch.setattr("mercer.models.gp.problem.MAX_SEARCH_ROWS", 60)  # so that noise and scale are of a subset, and rescaled
    X, y = data(150)
    m = GP(2.0 * Gaussian(0.7), via="iterative", n_restarts=0, **options).fit(X, y)
    assert m.plan_.settings["learnt from"] == 60
    if "factor" in (*options.get("fixed", ()), *options.get("bounds", ())):
        assert 2.0 - 1e-9 <= m.kernel_.factor <= 2.5 + 1e-9
        assert m.scale_ == pytest.approx(1.0)
    else:
        assert 0.2 - 1e-9 <= m.noise_ <= 0.3 + 1e-9


def test_steps_by_products_go_towards_the_exact_optimum(monkeypatch):
    monkeypatch.setattr("mercer.models.gp.problem.MAX_SEARCH_ROWS", 60)  # the subset that the search starts from
    X, y = data(400, d=3)
    few, all_ = (GP(Gaussian((1.0,) * 3), via="iterative", learn_rows=r, n_restarts=0, random_state=0).fit(X, y) for r in (None, "all"))
    exact = GP(Gaussian((1.0,) * 3), n_restarts=0, random_state=0).fit(X, y)
    at = lambda m: plain(m.kernel_, X, y - m.prior_mean_, X[:1], m.noise_)[2]
    assert few.plan_.settings["learnt from"] == 60
    assert at(exact) - at(all_) < 0.7 * (at(exact) - at(few))


@pytest.mark.parametrize("restores", [True, False])
def test_the_better_kernel_by_all_rows_is_kept(restores, monkeypatch):
    """Over seeds: never less evidence than the kernel of the few rows has, and often more."""
    monkeypatch.setattr("mercer.models.gp.problem.MAX_SEARCH_ROWS", 80)
    gained, kept = [], set()
    for seed in range(4):
        X, y = data(500, seed, d=3)
        few, all_ = (
            GP(Gaussian((1.0,) * 3), via=Landmarks(50), learn_rows=r, restore_variance=restores, n_restarts=0, random_state=seed).fit(X, y)
            for r in (80, None)
        )
        gained.append(all_.log_marginal_likelihood_ - few.log_marginal_likelihood_)
        kept.add(all_.plan_.settings["kernel learnt from"])
        assert few.plan_.settings["kernel learnt from"] == 80
    assert min(gained) >= -1e-6
    assert max(gained) > 1
    assert kept <= {80, 500}
    assert 500 in kept


@pytest.mark.parametrize("rows", [0, -1, 1.5, "some", True])
def test_learn_rows_is_checked(rows):
    with pytest.raises(ValueError, match="learn_rows must be"):
        GP(learn_rows=rows).fit(*data())


# what landmarks leave out
def rough(n, seed):
    """A function that few landmarks cannot follow."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 2))
    return X, np.sin(9 * X[:, 0]) * np.cos(8 * X[:, 1]) + 0.1 * rng.normal(size=n)


def test_what_is_left_out_is_not_counted_twice():
    """Over seeds: intervals that cover what they say, where noise of all rows alike would be too wide, and a better density."""
    found = []
    for seed in range(3):
        (X, y), (Z, z) = rough(1500, seed), rough(800, 100 + seed)
        m = GP(Gaussian(0.15), via=Landmarks(60), fixed="all", random_state=seed).fit(X, y)
        assert "leave out" in m.plan_.settings["noise of a row"]
        alike = GP(Gaussian(0.15), via=Landmarks(60), fixed="all", random_state=seed).partial_fit(X, y)
        log = [norm.logpdf(z, *model.predict(Z, return_std=True)).mean() for model in (m, alike)]
        found.append([*log, m.calibration(Z, z)[0.5], alike.calibration(Z, z)[0.5]])
    ours, theirs, inside, wide = np.mean(found, axis=0)
    assert ours > theirs
    assert abs(inside - 0.5) < 0.08
    assert wide > inside


def test_the_evidence_over_landmarks_is_a_gaussian_density():
    X, y = rough(200, 0)
    m = GP(Gaussian(0.3), via=Landmarks(20), fixed="all", random_state=0).fit(X, y)
    F = m.lift_.transform(X)
    left = 1 - np.square(F).sum(1)
    law = multivariate_normal(np.full(200, m.prior_mean_), m.scale_ * (F @ F.T + np.diag(left)) + m.noise_ * np.eye(200))
    assert m.log_marginal_likelihood_ == pytest.approx(law.logpdf(y), rel=1e-6)
    assert m.prior_mean_ == pytest.approx(y.mean())
    mean = m.prior_mean_ + m.scale_ * F @ F.T @ np.linalg.solve(law.cov, y - m.prior_mean_)
    np.testing.assert_allclose(m.predict(X), mean, atol=1e-6)


def test_rows_over_landmarks_come_and_go(tmp_path):
    """Later rows weigh by the ratio of noise to scale that was found, also in a model from a file."""
    X, y = rough(400, 0)
    m = GP(Gaussian(0.3), via=Landmarks(20), fixed="all", random_state=0).fit(X[:300], y[:300])
    before, log = m.predict(X, return_std=True), m.log_marginal_likelihood_
    ratio = m.noise_ / m.scale_
    save(m, tmp_path / "m.mercer")
    m = load(tmp_path / "m.mercer").partial_fit(X[300:], y[300:])
    assert m.noise_ / m.scale_ == pytest.approx(ratio)
    F = m.lift_.transform(X)
    cov = m.scale_ * (F @ F.T + np.diag(1 - np.square(F).sum(1))) + m.noise_ * np.eye(400)
    assert m.log_marginal_likelihood_ == pytest.approx(multivariate_normal(np.full(400, m.prior_mean_), cov).logpdf(y), rel=1e-6)
    with pytest.raises(ValueError, match="cannot forget"):
        m.forget(np.vstack([X, X]), np.append(y, y))
    m.forget(X[300:], y[300:])
    np.testing.assert_allclose(m.predict(X, return_std=True), before, rtol=1e-5)
    assert m.log_marginal_likelihood_ == pytest.approx(log, rel=1e-6)
    with pytest.raises(ValueError, match="give the rows to partial_fit"):
        m.merge(load(tmp_path / "m.mercer"))


def test_the_first_batch_of_a_stream_may_be_small():
    X, y = data(300)
    m = GP(Gaussian(0.7), via="features", random_state=0).partial_fit(X[:10], y[:10])
    assert m.n_features_lifted_ == 2048


@pytest.mark.parametrize("via", ["exact", "iterative", Landmarks(20)], ids=["exact", "iterative", "landmarks"])
def test_a_failed_fit_leaves_the_old_model(via):
    X, y = data(60)
    m = GP(Gaussian(0.6), via=via, n_restarts=0, random_state=0).fit(X, y)
    before = m.predict(X, return_std=True)
    with pytest.raises(ValueError, match="NaN"):
        m.fit(np.full((5, 2), np.nan), y[:5])
    with pytest.raises(ValueError, match="no floating-point number"):
        m.fit(X[:5], 1e160 * y[:5])
    np.testing.assert_array_equal(m.predict(X, return_std=True), before)
