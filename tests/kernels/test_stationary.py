"""Stationary kernels: scikit-learn's periodic one, Matern of any order, and the slips of the
notes."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import gamma, kv
from sklearn.gaussian_process import kernels as gp

from mercer.kernels import Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, Sinc
from tests.market import rows

X, Z = rows(8), rows(5, seed=1)


def test_periodic_is_scikit_learns_in_one_column():
    x, z = X[:, :1], Z[:, :1]
    np.testing.assert_allclose(
        Periodic(0.7, 1.3)(x, z), gp.ExpSineSquared(0.7, 1.3)(x, z), rtol=1e-9
    )


@pytest.mark.parametrize("nu", [0.3, 1.0, 3.3, 12.0, 39.0, 41.0, 60.0])
def test_matern_of_any_order(nu):
    r = np.array([0.2, 0.7, 1.5, 3.0])
    t = math.sqrt(2 * nu) * r
    expected = 2 ** (1 - nu) / gamma(nu) * t**nu * kv(nu, t)
    np.testing.assert_allclose(Matern(nu=nu)([[0.0]], r[:, None])[0], expected, rtol=2e-8)


@pytest.mark.parametrize("nu", [0.01, 0.5, 3.3, 30.0, 300.0, 1e4, 1e9])
def test_matern_is_finite_from_zero_to_infinity(nu):
    K = Matern(nu=nu)([[0.0]], [[0.0], [1e-12], [1e-3], [1.0], [1e3], [1e150]])[0]
    assert np.isfinite(K).all()
    assert K[0] == 1
    assert (np.diff(K) <= 1e-9).all()


# The slips of the notes that concern kernels: the form in the note is wrong, ours is right.
def smallest(K):
    return float(np.linalg.eigvalsh(K)[0])


def test_slip_sinc_needs_three_dimensions():
    points = np.random.default_rng(0).normal(size=(400, 4)) * 4
    assert smallest(np.sinc(cdist(points, points) / np.pi)) < -1
    assert smallest(Sinc()(points[:, :3])) > -1e-9
    with pytest.raises(ValueError, match="only for d <= 3; X has 4 columns"):
        Sinc()(points)


def test_slip_sinc_has_the_sign_of_sin():
    assert Sinc()([[0.0]], [[1.0]])[0, 0] == pytest.approx(math.sin(1))
    assert Sinc()([[0.0]], [[1.0]])[0, 0] != pytest.approx(math.sin(-1))


def test_slip_euclidean_exp_sine_squared_is_not_a_kernel():
    points = np.random.default_rng(0).normal(size=(300, 2)) * 3
    assert smallest(gp.ExpSineSquared(1.0, 1.0)(points)) < -1
    assert smallest(Periodic()(points)) > -1e-9


def test_bandwidth_conventions_of_the_notes():
    r2 = np.square(X[:1] - Z).sum(1)
    for ours, note in [
        (Gaussian.of(b=0.49), np.exp(-r2 / 0.49)),  # exp(-r2/s2), note 000
        (Gaussian.of(variance=0.7), np.exp(-r2 / (2 * 0.7))),  # exp(-r2/(2g)), note 001
        (Gaussian(0.7), np.exp(-r2 / (2 * 0.49))),
        (Gaussian.of(gamma=0.7), np.exp(-0.7 * r2)),
        (Laplace(0.7), np.exp(-np.sqrt(r2) / 0.7)),
        (Laplace.of(variance=0.49), np.exp(-np.sqrt(r2) / (2 * 0.49))),  # exp(-r/(2s2)), note 003
    ]:
        np.testing.assert_allclose(ours(X[:1], Z)[0], note, rtol=1e-10)
    with pytest.raises(ValueError, match="exactly one of gamma, b, variance"):
        Gaussian.of(gamma=1.0, b=1.0)


rng = np.random.default_rng(0)
CLUSTERS = np.repeat([[1.0], [-1.0]], 20, axis=0)


@pytest.mark.parametrize("kind", [Gaussian, Cauchy, Matern])
def test_gradients_keep_their_digits_at_offsets(kind):
    X, G = CLUSTERS * 1e7 + rng.normal(size=(40, 2)), rng.normal(size=(40, 40))
    near = (
        X - CLUSTERS * 1e7 + CLUSTERS * 50
    )  # the same clusters, apart enough that pairs across them count for nothing
    moved, plain = (
        kind((1.0, 2.0)).gradient(A, G) for A in (np.round(X * 64) / 64, np.round(near * 64) / 64)
    )
    np.testing.assert_allclose(moved, plain, rtol=0.02, atol=0.05)


def test_periodic_gradients_in_float32():
    X, G = (CLUSTERS * 1e3 + rng.normal(size=(40, 1))).astype(np.float32), np.ones((40, 40))
    k = Periodic(1.0, period=3.0)
    np.testing.assert_allclose(k.gradient(X, G), k.gradient(X.astype(float), G), rtol=1e-3)


@pytest.mark.parametrize(
    "k", [Gaussian(1e-50), Laplace(1e-50), Matern(1e-50), Laplace(1e-50, norm=1)], ids=repr
)
def test_bandwidths_below_float32(k):
    np.testing.assert_array_equal(k(np.array([[0, 1], [0, 2]], np.float32)), np.eye(2))


def test_distances_in_float32_have_digits():
    X = (1e4 + rng.normal(size=(5, 3))).astype(np.float32)
    np.testing.assert_allclose(Linear().distance(X), Linear().distance(X.astype(float)), rtol=1e-4)
