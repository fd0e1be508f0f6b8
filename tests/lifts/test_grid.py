"""Grid features converge to the Gaussian kernel within the tolerance they are given."""

import numpy as np
import pandas as pd
import pytest

from mercer.kernels import Gaussian
from mercer.lifts import Grid
from mercer.testing import check_lift


def rows(n=20, d=3, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, size=(n, d))


def error(phi, X):
    F = phi.fit(X).transform(X)
    return np.abs(F @ F.T - phi.kernel_(X))


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
