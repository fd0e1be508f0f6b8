"""Values against scikit-learn's kernels and against plain formulas."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics import pairwise

from mercer.kernels import (
    AllSubsets,
    Anova,
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


def test_formulas_written_out():
    r = cdist(X, Z)
    np.testing.assert_allclose(Cauchy(0.7)(X, Z), 1 / (1 + r**2 / 0.49), rtol=1e-10)
    np.testing.assert_allclose(Sinc(0.7)(X, Z), np.sinc(r / 0.7 / np.pi), rtol=1e-9)
    columns = [
        np.exp(-2 * np.sin(np.pi * (X[:, [j]] - Z[:, j]) / 1.3) ** 2 / 0.49) for j in range(3)
    ]
    np.testing.assert_allclose(Periodic(0.7, 1.3)(X, Z), np.prod(columns, axis=0), rtol=1e-9)
    np.testing.assert_allclose(AllSubsets()(X, Z), distances.reference_prod1p(X, Z), rtol=1e-12)
    for order in (1, 2, 3):
        np.testing.assert_allclose(
            Anova(order)(X, Z), distances.reference_elementary(X, Z, order), rtol=1e-10, atol=1e-14
        )
    A = np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(Linear(A)(X, Z), X @ A @ Z.T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [2, 25, 130, 300])
@pytest.mark.parametrize("kernel", [Gaussian(1e-2), Matern(1.5, 1e-2), Cauchy(1e-2) + Linear()])
def test_of_rows_with_themselves_both_halves_are_the_same_bits(kernel, n, dtype):
    rng = np.random.default_rng(n)
    near = 100 + rng.normal(size=7) + 1e-3 * rng.normal(size=(n, 7))
    K = kernel(near.astype(dtype))
    assert np.array_equal(K, K.T)


def test_sums_of_sparse_float32_rows_lose_no_digits():
    X = sp.random(40, 900, 0.5, format="csr", random_state=0)
    X.data = np.random.default_rng(0).normal(size=X.nnz)
    X = X.astype(np.float32)
    K = Gaussian(1.8)(X, X.copy())
    assert np.abs(K.diagonal() - 1).max() < 1e-6
