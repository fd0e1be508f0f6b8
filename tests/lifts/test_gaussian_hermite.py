"""Hermite features converge to the Gaussian kernel within the bounds they state."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.lifts import Hermite, Taylor
from mercer.testing import check_lift


def rows(n=20, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, d))


def error(phi, X):
    F = phi.fit(X).transform(X)
    return np.abs(F @ F.T - phi.kernel_(X))


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
    """Orthogonal under the measure, with eigenvalues (1 - rho) rho^k; what is left out is their
    tail."""
    s, scale = 0.8, 1.3
    t, w = np.polynomial.hermite_e.hermegauss(120)
    x, w = scale * t[:, None], w / w.sum()
    phi = Hermite(6, bandwidth=s, scale=scale).fit([[-1.0], [1.0]])
    F, rho = phi.transform(x), phi.rho_[0]
    np.testing.assert_allclose(
        F.T @ (w[:, None] * F), np.diag((1 - rho) * rho ** np.arange(7)), atol=1e-10
    )
    np.testing.assert_allclose(
        Gaussian(s)(x) @ (w[:, None] * F), F * (1 - rho) * rho ** np.arange(7), atol=1e-9
    )
    np.testing.assert_allclose(phi.mean_tail_, rho**7, rtol=1e-9)


def test_hermite_does_better_than_taylor_in_the_mean():
    X = np.random.default_rng(0).normal(size=(300, 2))
    by_hermite, by_taylor = error(Hermite(8, 1.0, 1.0), X), error(Taylor(Gaussian(1.0), 8), X)
    assert np.trace(by_hermite) < np.trace(by_taylor)
    assert abs(np.trace(by_hermite) / 300 - Hermite(8, 1.0, 1.0).fit(X).mean_tail_) < 0.02


def test_hermite_names():
    assert Hermite(2).fit(rows(d=2)).get_feature_names_out().tolist() == [
        "H0",
        "H1(x0)",
        "H1(x1)",
        "H2(x0)",
        "H1(x0)*H1(x1)",
        "H2(x1)",
    ]
    with pytest.raises(ValueError, match="scale must be a number > 0"):
        Hermite(scale=-1.0).fit(rows())
