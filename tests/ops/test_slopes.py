"""Sums of slopes over pairs are those of the plain references, in every shape and precision."""

import numpy as np
import pytest

from mercer.ops import slopes

SHAPES = [(1, 1, 1, 1), (5, 1, 3, 1), (1, 7, 2, 4), (17, 33, 5, 2), (9, 65, 8, 5)]
TOLERANCE = {np.float32: 2e-5, np.float64: 1e-13}


def drawn(shape, dtype):
    """T, A, X, Z with equal values in some columns and rows."""
    n, m, d, t = shape
    rng = np.random.default_rng(n * m + d * t)
    X, Z = rng.integers(-2, 3, size=(n, d)) / 2, rng.integers(-2, 3, size=(m, d)) / 2
    T, A = rng.normal(size=(n, m)), rng.normal(size=(m, t))
    return tuple(np.ascontiguousarray(v, dtype) for v in (T, A, X, Z))


def same(found, expected, dtype):
    assert found.shape == expected.shape
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, atol=TOLERANCE[dtype] * size, rtol=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_signs(shape, dtype):
    args = drawn(shape, dtype)
    found = slopes.signs(*args)
    assert found.dtype == dtype
    same(found, slopes.reference_signs(*args), dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_over_columns(shape, dtype):
    args = drawn(shape, dtype)
    same(slopes.prod1p_slopes(*args), slopes.reference_prod1p_slopes(*args), dtype)
    for order in (1, 2, 4):
        same(
            slopes.elementary_slopes(*args, order),
            slopes.reference_elementary_slopes(*args, order),
            dtype,
        )


@pytest.mark.parametrize("least", [0.0, 1.0, np.inf])
@pytest.mark.parametrize("shape", SHAPES)
def test_pairs_that_are_near(shape, least):
    T, A, X, Z = drawn(shape, np.float64)
    near = T > 0.3
    scale, out = np.linspace(0.5, 2.0, X.shape[1]), np.ones((len(X), A.shape[1], X.shape[1]))
    slopes.add_differences(T, near, A, (X, Z, scale), least, out)
    chosen = np.where(near, T, 0)
    same(out, 1 + slopes.reference_differences(chosen, A, X, Z, scale, least), np.float64)


def test_a_factor_of_zero_is_not_divided_by():
    X, Z, one = np.array([[1.0, 2.0]]), np.array([[-1.0, 3.0]]), np.ones((1, 1))
    np.testing.assert_array_equal(slopes.prod1p_slopes(one, one, X, Z)[0, 0], [-7.0, 0.0])
