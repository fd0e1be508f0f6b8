"""Maps of stationary kernels do not see where the rows are: phi(X + c) phi(Z + c)' is phi(X)
phi(Z)' to the rounding of X + c."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import Cauchy, Gaussian, Laplace, Matern, Periodic, RationalQuadratic
from mercer.lifts import Grid, Hermite, KernelLift, Nystrom, RandomFourier, Taylor

MAPS = {
    "taylor": Taylor(Gaussian(1.5), 8),
    "taylor default": Taylor(degree=5),
    "hermite": Hermite(8, 1.5),
    "grid": Grid(1.5),
    "fourier pairs": RandomFourier(Gaussian(1.5), 64, random_state=0),
    "cauchy": RandomFourier(Cauchy(2.0), 64, random_state=0),
    "structured": RandomFourier(Gaussian(1.5), 64, frequencies="structured", random_state=0),
    "matern": RandomFourier(Matern(1.5), 64, random_state=0),
    "laplace": KernelLift(Laplace(2.0), 64, random_state=0),
    "sum": RandomFourier(Gaussian(), 32, random_state=0)
    + RandomFourier(RationalQuadratic(), 32, random_state=0),
    "product": KernelLift(Gaussian() * Periodic(period=4.0), 64, random_state=0),
    "landmarks": Nystrom(Gaussian(1.5), 20, random_state=0),
    "laplace landmarks": Nystrom(Laplace(1.5), 20, landmarks="uniform", random_state=0),
}


def gram(phi, X, Z):
    phi = phi.fit(X)
    return phi.transform(X).astype(np.float64) @ phi.transform(Z).astype(np.float64).T


@pytest.mark.parametrize(
    ("c", "dtype"),
    [(50, np.float64), (1e3, np.float64), (1e6, np.float64), (50, np.float32), (1e3, np.float32)],
)
@pytest.mark.parametrize("name", MAPS)
def test_offsets_change_nothing(name, c, dtype):
    rng = np.random.default_rng(1)
    step = 2.0 ** np.ceil(
        np.log2(c * np.finfo(dtype).eps)
    )  # so that X + c is X + c, without rounding
    X, Z = ((rng.uniform(-1, 1, (n, 2)) // step * step).astype(dtype) for n in (30, 20))
    here, there = gram(MAPS[name], X, Z), gram(MAPS[name], X + dtype(c), Z + dtype(c))
    rounding = 64 * c * np.finfo(dtype).eps  # of w'(x + c), some frequencies w being large
    np.testing.assert_allclose(there, here, atol=rounding + 64 * np.finfo(dtype).eps)
    assert np.abs(there).max() > 0.1


def test_taylor_takes_sparse_rows_about_a_centre():
    X = np.random.default_rng(0).uniform(-1, 1, (9, 3)) + 50
    phi = Taylor(Gaussian(), 6).fit(X)
    np.testing.assert_array_equal(phi.transform(sp.csr_array(X)), phi.transform(X))
    assert (
        np.abs(phi.transform(X) @ phi.transform(X).T - Gaussian()(X)).max()
        <= phi.tail_bound(X) + 1e-12
    )
