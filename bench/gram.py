"""Gram matrices that are wanted whole, against scikit-learn's."""

import numpy as np
from sklearn.gaussian_process.kernels import Matern as TheirMatern
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from bench.harness import Case
from bench.operator import near, rows
from mercer.kernels import Gaussian, Laplace, Matern


def gaussian(n, d, dtype, *, rectangular=False):
    X, Z, b = (
        rows(n, d, dtype),
        rows(n // 2, d, dtype, seed=1) if rectangular else None,
        float(np.sqrt(d)),
    )
    m = n // 2 if rectangular else n
    return Case(
        f"Gaussian, {n:,} x {m:,}, d={d}, {np.dtype(dtype)}",
        ours=lambda: Gaussian(b)(X, Z),
        peer=lambda: rbf_kernel(X, Z, gamma=1 / (2 * b * b)),
        check=near(1e-4 if dtype == np.float32 else 1e-10),
        target=2.0,
    )


def cases():
    yield gaussian(8_000, 32, np.float32)
    yield gaussian(8_000, 32, np.float64)
    yield gaussian(9_000, 10, np.float32, rectangular=True)
    yield gaussian(9_000, 10, np.float64, rectangular=True)
    X = rows(4_000, 12, np.float64)
    matern = TheirMatern(3.0, nu=1.5)
    yield Case(
        "Matern(1.5), 4,000, d=12, float64",
        lambda: Matern(3.0)(X),
        lambda: matern(X),
        near(1e-9),
        target=2.0,
    )
    peer = lambda: laplacian_kernel(X, gamma=0.1)
    yield Case(
        "Laplace(norm=1), 4,000, d=12, float64",
        lambda: Laplace(10.0, norm=1)(X),
        peer,
        near(1e-9),
        target=2.0,
    )
