"""The noise of Gaussian processes at its least: a floor that copies cannot undercut in any way, and
none at all."""

import warnings

import numpy as np
import pytest
from scipy.linalg import LinAlgWarning

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear, Matern, Scale
from mercer.methods import Landmarks
from mercer.models import GaussianProcessRegressor as GP
from mercer.models.gp import likelihood, quadrature, sparse
from mercer.models.gp.points import PointPosterior
from mercer.models.gp.sources import KernelPoints
from mercer.models.gp.systems import IterativeSystem
from mercer.priors import LogNormal

FLOOR = 1e-9  # of var(y), as documented
WAYS = ["exact", "iterative", "landmarks", Landmarks(10), "features"]


def copies(seed, other, size=1.0, times=4):
    """Rows that are there several times, with the same y or with others that hardly differ."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(15, 2)), times, axis=0)
    return X, size * (np.sin(2 * X[:, 0]) + other * rng.normal(size=len(X)) + 3)


@pytest.mark.parametrize("other", [0.0, 1e-7])
@pytest.mark.parametrize("size", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("via", WAYS, ids=str)
def test_learnt_noise_keeps_its_floor(via, size, other):
    X, y = copies(int(size > 1), other, size)
    m = GP(Gaussian(), via=via, prior_mean="y", random_state=0).fit(X, y)
    assert m.noise_ >= FLOOR * y.var() * (1 - 1e-9)
    assert np.isfinite(m.log_marginal_likelihood_)
    assert m.log_marginal_likelihood_ < len(y) * (
        12 - np.log(y.std())
    )  # no density of y beyond what the floor allows


@pytest.mark.parametrize("other", [0.0, 1e-7])
def test_learnt_noise_of_a_gram_matrix_keeps_its_floor(other):
    X, y = copies(0, other)
    m = GP("precomputed").fit(Gaussian()(X), y)
    assert m.noise_ >= FLOOR * y.var() * (1 - 1e-9)
    assert np.isfinite(m.log_marginal_likelihood_)


def test_floor_in_a_stream():
    X, y = copies(0, 0.0)
    m = (
        GP(Gaussian(), via="features", prior_mean="y", random_state=0)
        .partial_fit(X[:30], y[:30])
        .partial_fit(X[30:], 5 * y[30:])
    )
    assert m.noise_ >= FLOOR * np.concatenate([y[:30], 5 * y[30:]]).var() * (1 - 1e-9)


def test_floor_holds_at_every_output_and_under_priors():
    X, y = copies(0, 0.0)
    Y = np.column_stack([y, 1e4 * y**2])
    m = GP(Gaussian(), via="exact", random_state=0).fit(X, Y)
    assert (m.noise_ >= FLOOR * Y.var(0) * (1 - 1e-9)).all()
    m = GP(Gaussian(), via="exact", priors={"noise": LogNormal(1e-20, 1.0)}, random_state=0).fit(
        X, y
    )
    assert m.noise_ >= FLOOR * y.var() * (1 - 1e-9)


@pytest.mark.filterwarnings("ignore:the likelihood grows beyond the bounds")
def test_bounds_of_ones_own_may_be_lower():
    X, y = copies(0, 0.0)
    m = GP(Gaussian(), via="exact", bounds={"noise": (1e-12, 1e-10)}, random_state=0).fit(X, y)
    assert 1e-12 * (1 - 1e-9) <= m.noise_ <= 1e-10 * (1 + 1e-9)


def test_the_floor_holds_where_all_rows_rescale():
    X, y = copies(0, 0.0)
    Y = (y - y.mean())[:, None]
    system = IterativeSystem(KernelPoints(Gaussian(), Table(X)), np.full(len(y), 1e-6), 1.0)
    p = PointPosterior.of(system, Y).rescaled(least=0.5)
    assert p.system.noise.min() == pytest.approx(0.5)
    assert p.scale == pytest.approx(0.5e6)


def measures(X):
    yield likelihood.marginal_likelihood, 1e-6
    yield lambda *a, **k: sparse.vfe(*a, points=X[:8], **k), 1e-6
    yield lambda *a, **k: sparse.fitc(*a, points=X[:8], **k), 1e-6
    yield lambda *a, **k: quadrature.estimated_likelihood(*a, tol=1e-10, probes=400, **k), 0.5


@pytest.mark.parametrize("least", [0.0, 0.5])
def test_slopes_at_the_floor(least):
    """Of the evidence at its best scale, which the least noise holds up: by differences."""
    rng = np.random.default_rng(0)
    X, Y = Table(rng.normal(size=(30, 1))), rng.normal(size=(30, 1))
    at = lambda measure, u, v: measure(Gaussian(np.exp(u)), X, Y, np.exp(v), None, least=least)
    for measure, tol in measures(X):
        e, h = at(measure, 0.1, -2.0), 1e-5
        by_bandwidth = (at(measure, 0.1 + h, -2.0).log - at(measure, 0.1 - h, -2.0).log) / (2 * h)
        by_ratio = (at(measure, 0.1, -2.0 + h).log - at(measure, 0.1, -2.0 - h).log) / (2 * h)
        assert np.exp(-2.0) * e.scale >= least * (1 - 1e-12)
        np.testing.assert_allclose(e.gradient[:2], [by_bandwidth, by_ratio], rtol=1e-4, atol=tol)
        assert e.gradient[2] == 0


LINE = np.linspace(0, 1, 30)[:, None]


@pytest.mark.parametrize("via", ["exact", "iterative"])
@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear()], ids=repr)
@pytest.mark.parametrize(
    "noise",
    [0, 1e-15, np.where(np.arange(30) < 10, 0.0, 0.1)],
    ids=["0", "less than rounding", "some"],
)
def test_no_noise_where_the_kernel_is_singular(kernel, via, noise):
    y = np.random.default_rng(0).normal(size=30)
    with pytest.warns(LinAlgWarning, match="kernel is singular at the rows.*misses y by up to"):
        GP(kernel, noise=noise, via=via).fit(LINE, y)


def test_no_noise_at_copies_that_disagree():
    X, y = copies(0, 0.1)
    with pytest.warns(LinAlgWarning, match="singular"):
        GP(Matern(nu=0.5), noise=0).fit(X, y)
    with pytest.warns(LinAlgWarning, match="singular"):
        GP("precomputed", noise=0).fit(Gaussian()(X), y)
    m = GP(Gaussian(), noise=0, via="exact").fit(X[::4], y[::4])
    with pytest.warns(LinAlgWarning, match="singular"):
        m.partial_fit(X[::4], y[::4] + 1)


@pytest.mark.parametrize("via", ["exact", "iterative"])
def test_no_noise_interpolates(via):
    X = np.random.default_rng(0).uniform(size=(40, 2))
    y = np.sin(6 * X[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = (
            GP(Matern(nu=0.5), 0, via).fit(X, y),
            GP(Gaussian(0.3), 0, via).fit(LINE, y[:1] + np.sin(5 * LINE[:, 0])),
        )
        GP(Matern(nu=0.5), 0, via).fit(
            np.repeat(X, 2, axis=0), np.repeat(y, 2)
        )  # copies that agree
    np.testing.assert_allclose(models[0].predict(X), y, atol=1e-6)
    np.testing.assert_allclose(models[1].predict(LINE), y[:1] + np.sin(5 * LINE[:, 0]), atol=1e-5)


@pytest.mark.parametrize("via", ["exact", "iterative", "landmarks"])
@pytest.mark.parametrize("size", [1e-8, 1e-3, 1e4, 1e8])
def test_noise_and_scale_at_any_size_of_the_kernel(via, size):
    """k(x, x) of dot products is of any size, and so is the ratio of noise to scale."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=60)
    one, other = (GP(Linear(), via=via, random_state=0).fit(s * X, y) for s in (1.0, size))
    assert other.noise_ == pytest.approx(one.noise_, rel=0.02)
    assert other.scale_ * size**2 == pytest.approx(one.scale_, rel=0.1)
    assert other.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_, abs=0.05)


def test_the_ratio_over_landmarks_at_any_size_of_the_kernel():
    X, y = copies(0, 0.3)
    one, other = (
        GP(
            Scale(by, Gaussian()), via=Landmarks(4), fixed=("kernel__bandwidth",), random_state=0
        ).fit(X, y)
        for by in (1.0, 1e12)
    )
    assert other.noise_ == pytest.approx(one.noise_, rel=0.02)
    assert other.scale_ * 1e12 == pytest.approx(one.scale_, rel=0.05)
