"""Values against scikit-learn's kernels, against plain formulas, and the slips of the notes."""
import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import gamma, kv
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer.kernels import (
    AllSubsets,
    Anova,
    ArcCosine,
    Callable,
    Cauchy,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Sinc,
)
from mercer.ops import distances
from tests.market import rows

X, Z = rows(8), rows(5, seed=1)

OURS = {
    "linear": Linear(),
    "polynomial": Polynomial(degree=4, bias=0.5),
    "gaussian": Gaussian(bandwidth=0.7),
    "gaussian ard": Gaussian(bandwidth=(0.5, 1.0, 2.0)),
    "laplace 1": Laplace.of(gamma=0.4, norm=1),
    "laplace 2": Laplace(bandwidth=0.7),
    "matern 1.5": Matern(bandwidth=0.7, nu=1.5),
    "matern 2.5": Matern(bandwidth=0.7, nu=2.5),
    "matern 0.9": Matern(bandwidth=0.7, nu=0.9),
    "matern inf": Matern(bandwidth=0.7, nu=math.inf),
    "rational": RationalQuadratic(bandwidth=0.7, mixture=1.3),
}
THEIRS = {
    "linear": pairwise.linear_kernel,
    "polynomial": lambda X, Z: pairwise.polynomial_kernel(X, Z, degree=4, gamma=1, coef0=0.5),
    "gaussian": lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=1 / (2 * 0.7**2)),
    "gaussian ard": gp.RBF([0.5, 1.0, 2.0]),
    "laplace 1": lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.4),
    "laplace 2": gp.Matern(0.7, nu=0.5),
    "matern 1.5": gp.Matern(0.7, nu=1.5),
    "matern 2.5": gp.Matern(0.7, nu=2.5),
    "matern 0.9": gp.Matern(0.7, nu=0.9),
    "matern inf": gp.Matern(0.7, nu=math.inf),
    "rational": gp.RationalQuadratic(0.7, alpha=1.3),
}


@pytest.mark.parametrize("name", OURS)
def test_twins_of_scikit_learn(name):
    np.testing.assert_allclose(OURS[name](X, Z), THEIRS[name](X, Z), rtol=1e-9, atol=1e-12)


def test_periodic_is_scikit_learns_in_one_column():
    x, z = X[:, :1], Z[:, :1]
    np.testing.assert_allclose(Periodic(0.7, 1.3)(x, z), gp.ExpSineSquared(0.7, 1.3)(x, z), rtol=1e-9)


def test_formulas_written_out():
    r = cdist(X, Z)
    np.testing.assert_allclose(Cauchy(0.7)(X, Z), 1 / (1 + r**2 / 0.49), rtol=1e-10)
    np.testing.assert_allclose(Sinc(0.7)(X, Z), np.sinc(r / 0.7 / np.pi), rtol=1e-9)
    columns = [np.exp(-2 * np.sin(np.pi * (X[:, [j]] - Z[:, j]) / 1.3) ** 2 / 0.49) for j in range(3)]
    np.testing.assert_allclose(Periodic(0.7, 1.3)(X, Z), np.prod(columns, axis=0), rtol=1e-9)
    np.testing.assert_allclose(AllSubsets()(X, Z), distances.reference_prod1p(X, Z), rtol=1e-12)
    for order in (1, 2, 3):
        np.testing.assert_allclose(Anova(order)(X, Z), distances.reference_elementary(X, Z, order), rtol=1e-10, atol=1e-14)
    A = np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(Linear(A)(X, Z), X @ A @ Z.T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_arc_cosine_is_an_expectation_of_units(order):
    W = np.random.default_rng(0).normal(size=(400_000, 3))
    x, z = X[:3], Z[:3]
    units = [np.where(V > 0, V, 0) ** order * (V > 0) for V in (W @ x.T, W @ z.T)]
    np.testing.assert_allclose(ArcCosine(order)(x, z), 2 * units[0].T @ units[1] / len(W), atol=0.03)


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


def test_fast_tiles_equal_their_plain_references():
    b = np.array([0.5, 1.0, 3.0])
    for dtype, rtol in ((np.float64, 1e-12), (np.float32, 2e-5)):
        A, B = X.astype(dtype), Z.astype(dtype)
        np.testing.assert_allclose(distances.by_differences(A, B, b), distances.reference_sqdist(A, B, b), rtol=rtol)
        np.testing.assert_allclose(distances.absdist(A, B, b), distances.reference_absdist(A, B, b), rtol=rtol)
        np.testing.assert_allclose(distances.prod1p(A, B), distances.reference_prod1p(A, B), rtol=rtol)


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


def test_slip_the_quadratic_kernel_has_both_linear_terms():
    (a, b), (c, d) = (0.3, -0.7), (1.1, 0.4)
    right = 1 + a * a * c * c + b * b * d * d + 2 * a * c + 2 * b * d + 2 * a * b * c * d
    value = Polynomial(degree=2)([[a, b]], [[c, d]])[0, 0]
    assert value == pytest.approx(right)
    assert value != pytest.approx(right - 2 * a * c)


def test_slip_fractional_powers_are_not_kernels():
    points = np.random.default_rng(0).uniform(0, 2, size=(40, 2))
    assert smallest((1 + points @ points.T) ** 0.5) < -1e-3
    with pytest.raises(ValueError, match="must be an integer"):
        Polynomial(degree=0.5)
    with pytest.raises(ValueError, match="must be an integer"):
        (Linear() + 1) ** 0.5


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


def test_kernel_distance_takes_the_root():
    for k in (Gaussian(), Polynomial(2), Linear()):
        square = k.diag(X)[:, None] + k.diag(Z) - 2 * k(X, Z)
        np.testing.assert_allclose(k.distance(X, Z), np.sqrt(square), rtol=1e-7)
    np.testing.assert_allclose(Linear().distance(X, Z), cdist(X, Z), rtol=1e-7)
    assert (np.diag(Gaussian().distance(X)) == 0).all()


def test_callable_takes_numbers_or_any_list():
    words = ["tree", "three", "two"]
    common = Callable(lambda A, B: np.array([[len(set(a) & set(b)) for b in B] for a in A], float))
    np.testing.assert_array_equal(common(words), [[3, 3, 1], [3, 4, 1], [1, 1, 3]])
    np.testing.assert_array_equal(common.diag(words), [3, 4, 3])
    assert (2 * common + 1)(words)[0, 0] == 7
    with pytest.raises(ValueError, match="must return an array of shape"):
        Callable(lambda A, B: np.zeros(3))(X)
