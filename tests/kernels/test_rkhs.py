import numpy as np
import pytest

from mercer import RKHSFunction
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial
from tests.market import rows

X = rows(20)
rng = np.random.default_rng(0)


@pytest.mark.parametrize("k", [Gaussian(), Polynomial(2), Matern()], ids=repr)
def test_a_vector_space_with_an_inner_product(k):
    f = RKHSFunction(k, rows(4, seed=2), rng.normal(size=4))
    g = RKHSFunction(k, rows(3, seed=3), rng.normal(size=3))
    np.testing.assert_allclose((2 * f + g)(X), 2 * f(X) + g(X), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose((f - g)(X), f(X) - g(X), rtol=1e-10, atol=1e-12)
    assert f.inner(g) == pytest.approx(g.inner(f))
    assert (f + g).norm() ** 2 == pytest.approx(f.norm() ** 2 + 2 * f.inner(g) + g.norm() ** 2)
    assert abs(f.inner(g)) <= f.norm() * g.norm() + 1e-12


def test_the_reproducing_property():
    f = RKHSFunction(Gaussian(), rows(4, seed=2), rng.normal(size=4))
    for x in X[:3]:
        assert f.inner(RKHSFunction(Gaussian(), [x], [1.0])) == pytest.approx(f([x])[0])


def test_linear_functions_have_the_norm_of_their_weights():
    f = RKHSFunction(Linear(), X, rng.normal(size=20))
    assert f.norm() == pytest.approx(np.linalg.norm(X.T @ f.weights))


@pytest.mark.parametrize("k", [Gaussian(0.05), Laplace(0.3), Matern(0.2)], ids=repr)
@pytest.mark.parametrize(
    "f",
    [lambda X: np.abs(X[:, 0] - 0.4), lambda X: np.sign(X[:, 0] - 0.5) * (X[:, 0] - 0.5) ** 2],
    ids=["corner", "smooth"],
)
def test_universality_on_a_compact_set(k, f):
    """Any continuous function on [0, 1] is met to the tolerance, also between the points that were
    given."""
    grid = np.linspace(0, 1, 150)[:, None]
    between = np.linspace(0, 1, 997)[:, None]
    g = RKHSFunction.approximate(k, f, grid, tol=0.03)
    assert np.abs(g(between) - f(between)).max() < 0.06
    assert len(g.weights) < 150


def test_a_kernel_of_few_features_is_not_universal():
    with pytest.raises(ValueError, match="no function of Linear"):
        RKHSFunction.approximate(
            Linear(), lambda X: np.cos(9 * X[:, 0]), np.linspace(0, 1, 50)[:, None], tol=0.01
        )


def test_refusals():
    with pytest.raises(ValueError, match="weights has 2 numbers for 3 points"):
        RKHSFunction(Gaussian(), X[:3], [1.0, 2.0])
    with pytest.raises(ValueError, match="different kernels"):
        RKHSFunction(Gaussian(), X[:1], [1.0]) + RKHSFunction(Linear(), X[:1], [1.0])


def test_rkhs_functions_add_up_and_know_their_width():
    f = RKHSFunction(Gaussian(), rows(3), [1.0, 2.0, 3.0])
    assert sum([f, f]).norm() == pytest.approx(2 * f.norm())
    with pytest.raises(ValueError, match="of 3 and of 2 columns"):
        f + RKHSFunction(Gaussian(), rows(4, 2), np.ones(4))
    with pytest.raises(ValueError, match="Z has 3 columns, 2 expected"):
        f(rows(4, 2))


def test_gradient_is_that_of_central_differences():
    rng = np.random.default_rng(0)
    f = RKHSFunction(
        Gaussian((1.0, 2.0)) + Polynomial(2), rng.normal(size=(7, 2)), rng.normal(size=7)
    )
    X, h = rng.normal(size=(5, 2)), 1e-5
    expected = np.stack([(f(X + e) - f(X - e)) / (2 * h) for e in h * np.eye(2)], axis=1)
    np.testing.assert_allclose(f.gradient(X), expected, atol=1e-8)
    np.testing.assert_allclose((2 * f).gradient(X), 2 * f.gradient(X), rtol=1e-12)
