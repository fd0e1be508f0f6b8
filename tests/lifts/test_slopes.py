"""Derivatives of functions of features are those of central differences of the features."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Laplace, Linear, Matern
from mercer.lifts import KernelLift, Monomials, Nystrom, RandomFourier
from mercer.lifts.slopes import feature_gradients
from mercer.methods import Fourier

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 3))
MAPS = {
    "pairs": RandomFourier(Gaussian(1.5), 20, random_state=0),
    "shift": RandomFourier(2 * Laplace(1.5), 20, form="shift", random_state=0),
    "structured": RandomFourier(Gaussian(1.5), 32, frequencies="structured", random_state=0),
    "landmarks": Nystrom(Matern(nu=2.5), 12, random_state=0),
    "kernel": KernelLift(Gaussian(2.0) + 0.5 * Linear() + 1, 40, method=Fourier(), random_state=0),
    "columns": KernelLift(Gaussian().on_columns([2, 0]), 20, method=Fourier(), random_state=0),
    "mapped": KernelLift(
        (Gaussian() + Linear()).mapped([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0]]), 30, random_state=0
    ),
    "factors": KernelLift(Linear().mapped([1.0, 0.5, 3.0]), random_state=0),
    "scaled": 3.0 * (RandomFourier(Gaussian(), 10, random_state=1) + Nystrom(Linear(), 3)),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", MAPS)
def test_central_differences(name, dtype):
    phi = MAPS[name].fit(X)
    coef, h = rng.normal(size=(phi.n_features_out_, 2)), 1e-5
    found = feature_gradients(phi, Table(X[:7].astype(dtype)), coef)
    assert found.dtype == dtype
    expected = np.stack(
        [(phi.transform(X[:7] + e) - phi.transform(X[:7] - e)) @ coef for e in h * np.eye(3)], -1
    ) / (2 * h)
    size = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(
        found, expected, atol=size * (1e-4 if dtype == np.float32 else 1e-8), rtol=0
    )


def test_features_without_a_formula_are_refused():
    with pytest.raises(ValueError, match="features of Monomials have no derivative"):
        feature_gradients(Monomials(2).fit(X), Table(X), np.ones((10, 1)))
