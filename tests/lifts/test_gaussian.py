"""Taylor, Hermite and grid features converge to the Gaussian kernel within the bounds they state."""
from math import factorial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from mercer.kernels import Gaussian, Laplace, Linear, exp
from mercer.lifts import Grid, Hermite, Taylor
from mercer.testing import check_lift

KERNELS = {
    "gaussian": Gaussian(1.3),
    "per column": Gaussian((0.8, 1.0, 3.0)),
    "exp": exp(Linear()),
    "scaled exp": exp(0.5 * Linear()),
    "exp of a metric": exp(Linear(metric=[[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.2]])),
}


def rows(n=20, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, d))


def error(phi, X):
    F = phi.fit(X).transform(X)
    return np.abs(F @ F.T - phi.kernel_(X))


@pytest.mark.parametrize("name", KERNELS)
def test_taylor_of_a_high_degree_is_exact(name):
    check_lift(Taylor(KERNELS[name], degree=20))


@pytest.mark.parametrize("name", KERNELS)
def test_taylor_converges_within_its_tail_bound(name):
    X, bounds = rows(), []
    for degree in range(0, 9, 2):
        phi = Taylor(KERNELS[name], degree)
        largest = error(phi, X).max()
        bounds.append(phi.tail_bound(X))
        assert largest <= bounds[-1] + 1e-12
        np.testing.assert_allclose(largest, bounds[-1], rtol=1e-6)  # it is attained by the longest row with itself
    assert (np.diff(bounds) < 0).all()


def test_tail_bound_is_below_the_textbook_one():
    X, s = rows(), 0.9
    for degree in (1, 3, 6):
        t = (X**2).sum(1).max() / s**2
        bound = Taylor(Gaussian(s), degree).fit(X).tail_bound(X)
        assert 0 < bound <= t ** (degree + 1) / factorial(degree + 1)
        assert bound < 1


def test_slip_of_the_coefficient():
    """Note 003 divides by j!, where phi(x)'phi(z) needs the square root of it."""
    x, z, j = 1.4, 1.1, np.arange(30)
    factorials = np.array([float(factorial(i)) for i in j])
    damped = [np.exp(-(v**2) / 2) * v**j for v in (x, z)]
    right = (damped[0] / np.sqrt(factorials)) @ (damped[1] / np.sqrt(factorials))
    noted = (damped[0] / factorials) @ (damped[1] / factorials)
    k = Gaussian()(np.array([x]), np.array([z]))
    np.testing.assert_allclose(right, k)
    assert abs(noted - k) > 0.1
    np.testing.assert_allclose(Taylor(Gaussian(), 29).fit([[0.0]]).transform([[x]])[0], damped[0] / np.sqrt(factorials), rtol=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian((0.5, 1.0, 2.0, 1.0)), exp(Linear())], ids=repr)
def test_taylor_of_sparse_rows(kernel):
    X = sp.random_array((9, 4), density=0.4, format="csr", rng=0)
    phi = Taylor(kernel, 4).fit(X)
    F = phi.transform(X)
    assert sp.issparse(F)
    np.testing.assert_allclose(F.toarray(), phi.transform(X.toarray()), atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("phi", [Taylor(Gaussian(0.1), 30), Hermite(30, 0.3, 0.3)], ids=repr)
def test_far_rows_vanish(phi, dtype):
    huge = float(np.finfo(dtype).max)
    F = phi.fit(np.zeros((1, 2), dtype)).transform(np.array([[huge, 0], [-huge, huge], [1e30, 1], [0, 40], [0, 0]], dtype))
    assert F.dtype == dtype
    assert (F[:3] == 0).all()
    assert np.abs(F[3]).max() < 1e-30
    np.testing.assert_allclose((F[4] ** 2).sum(), 1, rtol=1e-5)


def test_far_sparse_rows_vanish():
    X = sp.csr_array([[1e308, 0.0], [0.0, 1.0]])
    assert (Taylor(Gaussian(0.1), 30).fit_transform(X).toarray()[0] == 0).all()


@pytest.mark.parametrize("phi", [Taylor(), Hermite()], ids=repr)
def test_fit_on_huge_rows(phi):
    assert np.isfinite(phi.fit_transform([[1e308, -1e308], [1e308, 1e308], [1e308, 0.0]])).all()


def test_taylor_names_and_refusals():
    frame = pd.DataFrame({"age": [0.1, 0.2], "income": [0.3, 0.4]})
    assert Taylor(Gaussian(), 2).fit(frame).get_feature_names_out().tolist() == [
        "gauss", "gauss*age", "gauss*income", "gauss*age^2", "gauss*age*income", "gauss*income^2",
    ]  # fmt: skip
    assert Taylor(exp(Linear()), 1).fit(frame).get_feature_names_out().tolist() == ["1", "age", "income"]
    assert isinstance(Taylor().fit(frame).kernel_, Gaussian)
    with pytest.raises(ValueError, match="kernel must be a Gaussian or exp"):
        Taylor(Laplace()).fit(frame)
    with pytest.raises(ValueError, match="metric is 3 x 3"):
        Taylor(KERNELS["exp of a metric"]).fit(frame)
    with pytest.raises(NotFittedError):
        Taylor().tail_bound(frame)
    with pytest.raises(ValueError, match="bandwidth has 3 values"):
        Taylor(Gaussian((1.0, 1.0, 1.0))).fit(frame)
    with pytest.raises(ValueError, match="degree must be"):
        Taylor(Gaussian(), 1.5).fit(frame)


def test_hermite_of_a_high_degree_is_exact():
    check_lift(Hermite(40, bandwidth=(1.5, 2.0), scale=0.7), rows(12, 2))
    check_lift(Hermite(60, bandwidth=1.0), rows(12, 1) + 5)


def test_hermite_converges_within_its_tail_bound():
    X, bounds = rows(d=2), []
    for degree in (2, 5, 8, 12):
        phi = Hermite(degree, bandwidth=1.0, scale=0.6)
        assert error(phi, X).max() <= phi.tail_bound(X) + 1e-12
        bounds.append(phi.tail_bound(X))
    assert (np.diff(bounds) < 0).all()


def test_hermite_functions_are_the_eigenfunctions():
    """Orthogonal under the measure, with eigenvalues (1 - rho) rho^k; what is left out is their tail."""
    s, scale = 0.8, 1.3
    t, w = np.polynomial.hermite_e.hermegauss(120)
    x, w = scale * t[:, None], w / w.sum()
    phi = Hermite(6, bandwidth=s, scale=scale).fit([[-1.0], [1.0]])
    F, rho = phi.transform(x), phi.rho_[0]
    np.testing.assert_allclose(F.T @ (w[:, None] * F), np.diag((1 - rho) * rho ** np.arange(7)), atol=1e-10)
    np.testing.assert_allclose(Gaussian(s)(x) @ (w[:, None] * F), F * (1 - rho) * rho ** np.arange(7), atol=1e-9)
    np.testing.assert_allclose(phi.mean_tail_, rho**7, rtol=1e-9)


def test_hermite_does_better_than_taylor_in_the_mean():
    X = np.random.default_rng(0).normal(size=(300, 2))
    by_hermite, by_taylor = error(Hermite(8, 1.0, 1.0), X), error(Taylor(Gaussian(1.0), 8), X)
    assert np.trace(by_hermite) < np.trace(by_taylor)
    assert abs(np.trace(by_hermite) / 300 - Hermite(8, 1.0, 1.0).fit(X).mean_tail_) < 0.02


def test_hermite_names():
    assert Hermite(2).fit(rows(d=2)).get_feature_names_out().tolist() == [
        "H0", "H1(x0)", "H1(x1)", "H2(x0)", "H1(x0)*H1(x1)", "H2(x1)",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="scale must be a number > 0"):
        Hermite(scale=-1.0).fit(rows())


@pytest.mark.parametrize("tol", [0.5, 1e-2, 1e-4])
@pytest.mark.parametrize("d", [1, 2])
def test_grid_keeps_its_promise(tol, d):
    X = np.concatenate([rows(30, d), [[-1.0] * d, [1.0] * d]]) * 3
    phi = Grid(bandwidth=1.2, tol=tol)
    found = error(phi, X).max()
    assert tol / 100 < found <= tol
    assert phi.kernel_ == Gaussian(1.2)


def test_grid_is_the_integral_of_the_note():
    """phi_t(x) = (4 / (pi b))^(d/4) exp(-2 |x - t|^2 / b), for exp(-|x - z|^2 / b)."""
    b, x = 1.7, np.array([[0.2, -0.4]])
    phi = Grid(bandwidth=np.sqrt(b / 2)).fit(x)
    t = np.stack(np.meshgrid(*phi.centres_, indexing="ij"), axis=-1).reshape(-1, 2)
    bumps = (4 / (np.pi * b)) ** (2 / 4) * np.exp(-2 * ((x - t) ** 2).sum(1) / b)
    np.testing.assert_allclose(phi.transform(x)[0], bumps * np.sqrt(np.prod(phi.spacing_)))
    assert phi.kernel_ == Gaussian.of(b=b)


def test_grid_is_exact_for_a_small_tolerance():
    check_lift(Grid((0.9, 2.0), tol=1e-9), rows(12, 2))
    check_lift(Grid(0.9, tol=1e-9, columns=[1]), rows(12, 3))


def test_grid_refuses_many_columns_and_names_its_centres():
    with pytest.raises(ValueError, match="centres for 8 columns, more than max_features=20000"):
        Grid().fit(rows(d=8))
    with pytest.raises(ValueError, match="more than max_features"):
        Grid(1.0).fit([[-1e300], [1e300]])
    with pytest.raises(ValueError, match="tol must be"):
        Grid(tol=0.0).fit(rows(d=1))
    frame = pd.DataFrame({"age": [0.0, 1.0], "income": [0.0, 1.0]})
    phi = Grid(1.0, columns=["income"]).fit(frame)
    assert phi.get_feature_names_out()[0] == f"bump(income={phi.centres_[0][0]:.4g})"
    far = phi.transform(pd.DataFrame({"age": [0.0], "income": [1e200]}))
    assert (far == 0).all()
