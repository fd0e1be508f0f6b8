"""The variance of slopes is the mixed second derivative of the kernel where a row meets itself."""

import numpy as np
import pytest
from hypothesis import given

from mercer.inputs import Table
from mercer.kernels import (
    ArcCosine,
    Cauchy,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
)
from mercer.pairs.mixed import slope_variances
from tests.market import KERNELS, WITH_FUNCTIONS, rows, trees

ROUGH = {
    "step",
    "laplace",
    "laplace ard",
    "laplace 1-norm",
    "laplace 1-norm ard",
    "matern 1/2",
    "matern bessel",
    "laplace rough",
    "laplace smooth ard",
    "laplace 1-norm rough",
    "laplace 1-norm rough ard",
    "mapped to one",
    "mapped up",
    "mapped by factors",
    "zero",
}
BARELY = {  # differences approach them slowly
    "ramp",
    "matern 3/2",
    "matern 5/2 ard",
    "matern bessel ard",
    "mapped dots",
    "mapped twice",
}
ROUNDED = {"matern high"}  # to 1e-9, which differences magnify; by formula, below
SMOOTH = [name for name in KERNELS if name not in ROUGH | BARELY | ROUNDED | WITH_FUNCTIONS.keys()]


def by_differences(k, X, h=1e-3):
    out = np.empty(X.shape)

    def mixed(e):
        P, M = X + e, X - e
        return k.diag(P) + k.diag(M) - k.paired(P, M) - k.paired(M, P)

    for c, e in enumerate(h * np.eye(X.shape[1])):
        out[:, c] = (16 * mixed(e) - mixed(2 * e)) / (48 * h * h)
    return out


@pytest.mark.parametrize("name", SMOOTH)
def test_central_differences(name):
    X = rows(9)
    X[-2] = 0.3, -0.2, 0.5  # a row of zeros is where an angle jumps
    found, expected = slope_variances(KERNELS[name].on, Table(X)), by_differences(KERNELS[name], X)
    np.testing.assert_allclose(found, expected, atol=1e-7 * max(1, np.abs(expected).max()))


def approached(k, X):
    """Smaller steps are nearer, up to rounding."""
    found = slope_variances(k.on, Table(X))
    size = max(1.0, float(np.abs(found).max()), float(k.diag(X).max()))
    far, near = (float(np.abs(by_differences(k, X, h) - found).max()) for h in (1e-2, 1e-3))
    return near <= max(0.8 * far, 1e-7 * size)


@pytest.mark.parametrize("name", sorted(BARELY))
def test_central_differences_approach(name):
    X = np.random.default_rng(1).uniform(0.2, 1, size=(4, 3))
    assert approached(KERNELS[name], X)


def refused(k, X):
    try:
        slope_variances(k.on, Table(X))
    except ValueError:
        return True
    return False


@given(trees)
def test_trees_have_them_or_say_that_they_do_not(k):
    X = np.random.default_rng(1).uniform(0.2, 1, size=(4, 3))
    if refused(k, X):  # infinite in the limit: smaller steps add as much again, or more
        far, near, nearer = (by_differences(k, X, h) for h in (1e-3, 1e-4, 1e-5))
        assert np.abs(nearer - near).max() > 0.95 * np.abs(near - far).max()
    else:
        assert approached(k, X)


@pytest.mark.parametrize("nu", [1.2, 1.5, 2.5, 3.5, 6.5, 7.5, 55.0, np.inf])
def test_matern(nu):
    b = np.array([0.5, 2.0])
    found = slope_variances(Matern(tuple(b), nu=nu).on, Table(np.ones((1, 2))))[0]
    np.testing.assert_allclose(found, (1.0 if nu == np.inf else nu / (nu - 1)) / b**2, rtol=1e-9)


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (Gaussian((1.0, 2.0)), [1.0, 0.25]),
        (Cauchy(2.0), [0.5, 0.5]),
        (RationalQuadratic(2.0, 3.0), [0.25, 0.25]),
        (ArcCosine(1), [1.0, 1.0]),
        (ArcCosine(2), [8 * 9 + 4 * 25, 8 * 16 + 4 * 25]),
        (3 * Linear() + Polynomial(2), [3 + 2 * 26 + 2 * 9, 3 + 2 * 26 + 2 * 16]),
        (Gaussian().on_columns([1, 1]), [0.0, 2.0]),
        (Laplace(2.0, exponent=2.0), [0.5, 0.5]),
        (Gaussian().mapped([[2.0, 1.0], [0.0, 3.0]]), [4.0, 10.0]),
    ],
    ids=repr,
)
def test_formulas(k, expected):
    np.testing.assert_allclose(slope_variances(k.on, Table(np.array([[3.0, 4.0]])))[0], expected)


@pytest.mark.parametrize(
    "k", [*(KERNELS[n] for n in sorted(ROUGH)), Matern(nu=1.0), Laplace(exponent=1.9)], ids=repr
)
def test_kinks_are_refused(k):
    with pytest.raises(ValueError, match="no finite variance under that, which has a kink"):
        slope_variances(k.on, Table(rows(3)), "that")


def test_an_angle_at_zero_is_refused():
    with pytest.raises(ValueError, match="no finite variance"):
        slope_variances(Linear().normalized().on, Table(np.zeros((1, 2))))


def test_a_rough_kernel_of_other_columns_is_refused_too():
    with pytest.raises(ValueError, match="no finite variance"):
        slope_variances((Gaussian() + Laplace().on_columns([1])).on, Table(np.ones((1, 2))))


@pytest.mark.parametrize("name", WITH_FUNCTIONS)
def test_python_code_is_refused(name):
    with pytest.raises(ValueError, match="no derivative by the inputs"):
        slope_variances(KERNELS[name].on, Table(rows(3)))
