"""Maclaurin features: coefficients, low orders that are exact, and centring that pays."""

import numpy as np
import pytest

from mercer.kernels import Linear, Polynomial, exp
from mercer.lifts import Maclaurin, PositiveFeatures
from mercer.lifts.maclaurin import coefficients


# Maclaurin
@pytest.mark.parametrize(
    "k",
    [Polynomial(4, 0.5), exp(0.7 * Linear()), Linear() ** 3 + 2, 2 * (Linear() + 1) * Linear()],
    ids=repr,
)
def test_coefficients(k):
    t = np.linspace(0, 1.5, 7)
    np.testing.assert_allclose(
        np.polynomial.polynomial.polyval(t, coefficients(k)), k([[1.0]], t[:, None])[0], rtol=1e-12
    )


def test_low_orders_are_exact():
    X = np.random.default_rng(0).normal(size=(20, 3))
    phi = Maclaurin(Linear() + 1, 50, random_state=0).fit(X)
    F = phi.transform(X)
    assert phi.n_features_out_ == 4
    np.testing.assert_allclose(F @ F.T, X @ X.T + 1)
    small = Maclaurin(exp(Linear()), 50, random_state=0).fit_transform(X / 100)
    np.testing.assert_allclose(small @ small.T, exp(Linear())(X / 100), atol=1e-5)


# positive features
def test_centring_pays():
    """Rows about a far mean: with the mean taken out the relative error is that of centred rows."""
    X = np.random.default_rng(0).normal(size=(40, 3)) / 2
    far = X + 3
    k = exp(Linear())
    F = PositiveFeatures(k, 512, random_state=0).fit_transform(far)
    plain = (
        PositiveFeatures(k, 512, random_state=0).fit(far - far.mean(0)).transform(far)
    )  # centred at zero
    K = k(far)
    assert (F > 0).all()
    assert np.abs(F @ F.T / K - 1).mean() < 0.2 < np.abs(plain @ plain.T / K - 1).mean()
