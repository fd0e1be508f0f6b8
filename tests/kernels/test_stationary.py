"""Stationary kernels: scikit-learn's periodic one, Matern of any order, and the slips of the
notes."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import gamma, kv
from sklearn.gaussian_process import kernels as gp

from mercer.kernels import Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, Sinc
from mercer.store import decode, encode
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


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("q", [0.7, 1.0, 1.3, 2.0])
def test_laplace_of_an_exponent(norm, q):
    b = (0.5, 1.0, 3.0)
    if q > norm:
        with pytest.raises(ValueError, match=r"exponent must be at most the norm, 1, .* got"):
            Laplace(b, norm, q)
        return
    k = Laplace(b, norm, q)
    r = np.linalg.norm((X[:, None] - Z) / b, ord=norm, axis=-1)
    np.testing.assert_allclose(k(X, Z), np.exp(-(r**q)), rtol=1e-10)
    hostile = np.concatenate([X, X, X + 1e-8, 1e6 + X, np.linspace(0, 1, 20)[:, None] * X[0]])
    assert smallest(k(hostile)) > -1e-9
    K32 = k(hostile.astype(np.float32))
    np.testing.assert_allclose(K32, k(hostile.astype(np.float32).astype(float)), atol=3e-4)


def test_laplace_of_exponent_two_is_a_gaussian():
    for b in (0.7, (0.5, 1.0, 3.0)):
        k, g = Laplace(b, exponent=2.0), Gaussian(tuple(np.atleast_1d(b) / math.sqrt(2)))
        g = g if isinstance(b, tuple) else Gaussian(b / math.sqrt(2))
        np.testing.assert_allclose(k(X, Z), g(X, Z), rtol=1e-13)
        np.testing.assert_allclose(k.distance(X, Z), g.distance(X, Z), rtol=1e-12)


def test_slip_an_exponent_above_the_norm_is_no_kernel():
    """exp(-r_1^1.1) in two columns and exp(-r_2^2.1) have negative eigenvalues."""
    points = np.stack(np.meshgrid(*[np.arange(8.0) / 4] * 2), -1).reshape(-1, 2)
    for p, q in ((1, 1.1), (2, 2.1)):
        D = np.linalg.norm(points[:, None] - points, ord=p, axis=-1)
        assert smallest(np.exp(-(D**q))) < -1e-4
        assert smallest(Laplace(norm=p, exponent=float(p))(points)) > -1e-9


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf, "1", True, None])
def test_exponents_that_are_none(wrong):
    with pytest.raises(ValueError, match="exponent must be a number > 0, got"):
        Laplace(exponent=wrong)


def test_the_exponent_is_no_parameter_of_gradients():
    assert Laplace(2.0, 1, 0.7).parameters() == {"bandwidth": 2.0}
    assert Laplace(exponent=1) == Laplace()
    assert repr(Laplace(norm=1, exponent=0.5)) == "Laplace(norm=1, exponent=0.5)"
    assert "Schoenberg" in str(Laplace(exponent=0.5).proof())


@pytest.mark.parametrize("q", [0.05, 0.3, 0.7, 1.3])
def test_near_copies_keep_the_digits_of_small_exponents(q):
    """By r^q an error of a distance near zero is magnified: near pairs are by differences."""
    x = np.random.default_rng(0).normal(size=(40, 3)) * 10
    z = x + 10.0 ** -np.arange(1, 15).repeat(3)[:40, None] * rng.normal(size=(40, 3))
    r = np.linalg.norm(x - z, axis=1)
    np.testing.assert_allclose(
        np.diag(Laplace(exponent=q)(x, z)), np.exp(-(r**q)), rtol=1e-6 if q > 0.1 else 1e-5
    )


def test_laplace_of_files_of_before():
    tree, arrays = encode(Laplace((1.0, 2.0), norm=1))
    del tree["value"][1]["exponent"]
    assert decode(tree, arrays) == Laplace((1.0, 2.0), norm=1)
