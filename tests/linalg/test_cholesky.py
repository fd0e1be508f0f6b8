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


def test_products_with_the_kept_triangle_are_those_of_the_kernel():
    from mercer.linalg.cg import System

    rng = np.random.default_rng(0)
    for n, d in ((1, 1), (7, 300), (200, 3)):
        X = np.repeat(rng.normal(size=(-(-n // 2), d)), 2, axis=0)[:n] + 1e3
        op, ridge, V = (
            KernelOperator(Gaussian(), X),
            rng.uniform(0.1, 1, n),
            rng.normal(size=(n, 2)),
        )
        handle = Cholesky().init(op, ridge)
        assert handle.diagonal is not None
        np.testing.assert_allclose(handle.product(V), System(op, ridge) @ V, atol=1e-10)
        B = (op.block() + np.diag(ridge)) @ V
        np.testing.assert_allclose(handle.solve(B).x, V, atol=1e-8)
