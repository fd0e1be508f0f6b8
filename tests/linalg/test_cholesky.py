"""The inverse of a factor."""

import numpy as np

from mercer.kernels import Gaussian
from mercer.linalg.cholesky import Cholesky
from mercer.operators import KernelOperator


def data(n=200, d=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[n // 2] = X[0]  # a duplicate
    X[n // 2 + 1] = X[1] + X[2]
    return X.astype(dtype), rng.normal(size=(n, 3))


def test_inverse_diagonal():
    X, _ = data()
    handle = Cholesky().init(KernelOperator(Gaussian(2.0), X), np.full(200, 0.1))
    np.testing.assert_allclose(
        handle.inverse_diag(), np.diag(np.linalg.inv(Gaussian(2.0)(X) + 0.1 * np.eye(200)))
    )
