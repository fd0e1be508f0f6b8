"""Taylor features converge to the Gaussian kernel within the bounds they state."""

from math import factorial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from mercer.kernels import Gaussian, Laplace, Linear, exp
from mercer.lifts import Hermite, Taylor
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
        np.testing.assert_allclose(
            largest, bounds[-1], rtol=1e-6
        )  # it is attained by the longest row with itself
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
    np.testing.assert_allclose(
        Taylor(Gaussian(), 29).fit([[0.0]]).transform([[x]])[0],
        damped[0] / np.sqrt(factorials),
        rtol=1e-10,
    )


@pytest.mark.parametrize("kernel", [Gaussian((0.5, 1.0, 2.0, 1.0)), exp(Linear())], ids=repr)
def test_taylor_of_sparse_rows(kernel):
    X = sp.random_array((9, 4), density=0.4, format="csr", random_state=np.random.default_rng(0))
    phi = Taylor(kernel, 4).fit(X)
    F = phi.transform(X)
    assert sp.issparse(F)
    np.testing.assert_allclose(F.toarray(), phi.transform(X.toarray()), atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("phi", [Taylor(Gaussian(0.1), 30), Hermite(30, 0.3, 0.3)], ids=repr)
def test_far_rows_vanish(phi, dtype):
    huge = float(np.finfo(dtype).max)
    F = phi.fit(np.zeros((1, 2), dtype)).transform(
        np.array([[huge, 0], [-huge, huge], [1e30, 1], [0, 40], [0, 0]], dtype)
    )
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


def test_taylor_by_the_name_of_the_kernel():
    X = np.random.default_rng(0).normal(size=(20, 2))
    named = Taylor("rbf", degree=5, gamma=0.3).fit(X)
    assert named.kernel_ == Gaussian.of(gamma=0.3)
    assert Taylor(gamma="auto").fit(X).kernel_ == Gaussian.of(gamma=0.5)
    with pytest.raises(ValueError, match="gamma is of kernels given by name"):
        Taylor(Gaussian(), gamma=0.3).fit(X)


def test_taylor_names_and_refusals():
    frame = pd.DataFrame({"age": [0.1, 0.2], "income": [0.3, 0.4]})
    assert Taylor(Gaussian(), 2).fit(frame).get_feature_names_out().tolist() == [
        "gauss",
        "gauss*age",
        "gauss*income",
        "gauss*age^2",
        "gauss*age*income",
        "gauss*income^2",
    ]
    assert Taylor(exp(Linear()), 1).fit(frame).get_feature_names_out().tolist() == [
        "1",
        "age",
        "income",
    ]
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
