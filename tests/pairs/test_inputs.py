"""Derivatives by the left row are those of central differences, whatever the kernel and the
rows."""

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
    Periodic,
    Polynomial,
    RationalQuadratic,
)
from mercer.pairs import Side, Tile, centre_of
from mercer.pairs.inputs import input_gradients
from tests.market import KERNELS, WITH_FUNCTIONS, rows, trees

SMOOTH = {name: k for name, k in KERNELS.items() if name not in WITH_FUNCTIONS}
JUMPS_AT_ZERO = {"step", "cosine", "normalized linear", "mapped angles"}  # as an angle does


def tile(X, Z):
    x, z = Table(X), Table(Z)
    centre = centre_of(x, z)
    return Tile(Side(x, centre), Side(z, centre))


def central(k, X, Z, h=1e-3):
    """The five-point rule, (n, m, d)."""
    out = np.empty((len(X), len(Z), X.shape[1]))
    for c, e in enumerate(np.eye(X.shape[1]) * h):
        near, far = (k(X + s * e, Z) - k(X - s * e, Z) for s in (1, 2))
        out[..., c] = (8 * near - far) / (12 * h)
    return out


def close(found, expected, tolerance):
    assert found.shape == expected.shape
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, atol=tolerance * size, rtol=0)


@pytest.mark.parametrize("name", SMOOTH)
def test_central_differences_of_the_market(name):
    X, Z = rows(9), rows(6, seed=1)
    Z[0] = X[3]  # a row that meets itself
    if name in JUMPS_AT_ZERO:
        X[-2], Z[-2] = (0.5, -0.2, 0.3), 0.4
    found, apart = SMOOTH[name].input_gradient(X, Z), np.ones((9, 6), bool)
    apart[3, 0] = False
    apart[~X.any(1)] = apart[:, ~Z.any(1)] = False
    close(found[apart], central(SMOOTH[name], X, Z, 3e-4)[apart], 2e-9)
    close(found, central(SMOOTH[name], X, Z, 1e-4), 5e-4)  # at kinks: noise of distances over h


@given(trees)
def test_central_differences_of_trees(k):
    rng = np.random.default_rng(1)
    X, Z = rng.uniform(0.2, 1, size=(4, 3)), rng.uniform(-1, -0.1, size=(5, 3))
    close(k.input_gradient(X, Z), central(k, X, Z, 1e-4), 1e-7)


@pytest.mark.parametrize("name", SMOOTH)
def test_weights_are_carried_as_each_pair_alone(name):
    rng = np.random.default_rng(0)
    X, Z, A = rows(9), rows(40, seed=1), rng.normal(size=(40, 5))
    each = SMOOTH[name].input_gradient(X, Z)
    for some in (A, A[:, :1]):
        close(
            input_gradients(SMOOTH[name].on, tile(X, Z), some),
            np.einsum("ijk,jt->itk", each, some),
            1e-9,
        )


@pytest.mark.parametrize("name", SMOOTH)
def test_float32_to_its_tolerance(name):
    X, Z = rows(9).astype(np.float32), rows(6, seed=1).astype(np.float32)
    found = SMOOTH[name].input_gradient(X, Z)
    assert found.dtype == np.float32
    close(found, SMOOTH[name].input_gradient(X.astype(np.float64), Z.astype(np.float64)), 1e-3)


OFFSET = [
    Gaussian(0.7),
    Laplace((0.5, 2.0)),
    Laplace(0.5, norm=1),
    Laplace(0.5, norm=1, exponent=0.6),
    Laplace(0.5, exponent=1.4).mapped([[1.0, 2.0], [0.0, 1.0]]),
    Matern(nu=1.5),
    Matern(nu=0.8),
    Cauchy(),
    RationalQuadratic(),
    Periodic(period=2.0),
]


@pytest.mark.parametrize("k", OFFSET, ids=repr)
def test_an_offset_costs_no_digits_of_differences(k):
    rng = np.random.default_rng(2)
    X, Z = (rng.integers(-64, 65, size=(n, 2)) / 32.0 for n in (6, 7))
    close(k.input_gradient(X + 2.0**20, Z + 2.0**20), k.input_gradient(X, Z), 1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_near_copies_have_the_direction_of_their_difference(gap, offset, dtype):
    """A product of rows would lose it; two clusters, so that no centre is near both."""
    rng = np.random.default_rng(3)
    base = np.repeat([[-30.0, 40.0], [50.0, 10.0]], 4, axis=0) + offset
    X = (base + gap * rng.normal(size=base.shape)).astype(dtype)
    k, b = Laplace((0.5, 3.0)), np.array([0.5, 3.0])
    D = X[:, None].astype(np.float64) - X
    r = np.sqrt(((D / b) ** 2).sum(-1))
    expected = -np.exp(-r)[..., None] * D / b**2 / np.where(r > 0, r, 1)[..., None]
    close(k.input_gradient(X), expected, 1e-4 if dtype == np.float32 else 1e-7)
    A = rng.normal(size=(8, 2))
    close(
        input_gradients(k.on, tile(X, X.copy()), A.astype(dtype)),
        np.einsum("ijk,jt->itk", expected, A),
        1e-4 if dtype == np.float32 else 1e-7,
    )


@pytest.mark.parametrize("k", [Laplace(), Laplace(norm=1), Matern(nu=0.3)], ids=repr)
def test_a_row_adds_nothing_where_it_meets_itself(k):
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
    np.testing.assert_array_equal(k.input_gradient(X), 0.0)
    np.testing.assert_array_equal(k.input_gradient(X, X.copy()), 0.0)


def test_rows_of_one_direction_add_nothing_by_their_angle():
    X = np.array([[1.0, 2.0], [2.0, 4.0], [-1.0, -2.0]])
    np.testing.assert_allclose(ArcCosine(0).input_gradient(X), 0.0, atol=2e-8)


def test_equal_columns_add_nothing_under_the_1_norm():
    X, Z = np.array([[1.0, 2.0]]), np.array([[1.0, 5.0], [3.0, 2.0]])
    G = Laplace(norm=1).input_gradient(X, Z)[0]
    np.testing.assert_allclose(G, [[0.0, np.exp(-3)], [np.exp(-2), 0.0]])


@pytest.mark.parametrize("t", [1, 2, 6])
def test_columns_of_two_values_by_products(t):
    rng = np.random.default_rng(4)
    Z = np.column_stack([rng.integers(0, 2, (50, 3)), rng.normal(size=50), np.ones(50)])
    X = np.column_stack([rng.choice([-1, 0, 0.5, 1, 2], (30, 3)), Z[:30, 3], np.zeros(30)])
    k, A = Laplace((0.5, 1.0, 2.0, 0.3, 4.0), norm=1), rng.normal(size=(50, t))
    each = -k(X, Z)[..., None] * np.sign(X[:, None] - Z) / k.bandwidth
    close(input_gradients(k.on, tile(X, Z), A), np.einsum("ijk,jt->itk", each, A), 1e-12)


def test_fewer_rows_than_columns_and_columns_chosen_twice():
    X, Z = np.random.default_rng(5).normal(size=(2, 1, 9))
    for k in (Gaussian(), Linear() * Laplace(norm=1), Polynomial(2).on_columns([3, 0, 3])):
        close(k.input_gradient(X, Z), central(k, X, Z), 1e-9)


def test_wide_spread_in_units_of_the_bandwidth():
    X = np.array([[0.0], [1e-9], [1.0], [1.0 + 2e-9]])
    D = X - X.T
    close(
        Gaussian(1e-9).input_gradient(X)[..., 0] * 1e-9,
        -(D / 1e-9) * np.exp(-((D / 1e-9) ** 2) / 2),
        1e-6,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [Gaussian(), Laplace(), Cauchy(), Laplace(norm=1)], ids=repr)
def test_rows_too_large_to_square(k, dtype):
    """Pairs so far apart add nothing; near ones add what they would anywhere."""
    big = np.finfo(dtype).max / 8
    X = np.array([[big, 0.0], [-big, 0.0], [big, 0.5]], dtype)
    expected = np.zeros((3, 3, 2))
    near = k.input_gradient(np.array([[0.0, 0.0], [0.0, 0.5]]))
    expected[0, 2], expected[2, 0] = near[0, 1], near[1, 0]
    np.testing.assert_allclose(k.input_gradient(X), expected, atol=1e-6)
    one = k.operator(X).input_gradients(np.ones(3, dtype))
    np.testing.assert_allclose(one[:, 0], expected.sum(1), atol=1e-6)


def test_near_is_the_least_distance_that_slopes_divide_by():
    X, Z, A = np.array([[0.0]]), np.array([[0.01], [2.0]]), np.eye(2)
    for k in (Laplace(), Laplace(2.0), Laplace(exponent=0.7), Laplace(2.0, 1, exponent=0.7)):
        plain, floored = (input_gradients(k.on, tile(X, Z), A, near)[0, :, 0] for near in (0, 0.1))
        share = (0.01 / k.bandwidth / 0.1) ** (2 - k.exponent)  # in both norms
        np.testing.assert_allclose(floored, plain * np.array([share, 1.0]))


@pytest.mark.parametrize("name", WITH_FUNCTIONS)
def test_python_code_is_refused(name):
    with pytest.raises(ValueError, match="no derivative by the inputs"):
        KERNELS[name].input_gradient(rows(4))


def test_items_are_refused():
    from mercer.kernels import Constant

    with pytest.raises(ValueError, match="items have no derivative"):
        Constant().input_gradient(["a", "b"])
