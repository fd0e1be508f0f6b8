"""Compiled chi-squared distances, harmonic means and their slopes are those of the plain formulas."""

import numpy as np
import pytest

from mercer.ops.chisquare import (
    chisq,
    chisquare_slopes,
    harmonic,
    reference_chisq,
    reference_harmonic,
    reference_slopes,
)


def hostile(n, m, d, seed, dtype=np.float64):
    """Rows >= 0 of many sizes, with zeros, copies and a zero row."""
    rng = np.random.default_rng(seed)
    X, Z = (rng.gamma(0.3, size=(k, d)) * 10.0 ** rng.integers(-5, 5, (k, d)) for k in (n, m))
    X[rng.uniform(size=X.shape) < 0.3] = 0
    Z[rng.uniform(size=Z.shape) < 0.3] = 0
    Z[0], Z[-1] = X[0], 0
    return X.astype(dtype), Z.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 3), (20, 33, 11), (3, 1, 40)])
def test_values(shape, dtype):
    X, Z = hostile(*shape, seed=sum(shape), dtype=dtype)
    close = {"rtol": 30 * np.finfo(dtype).eps, "atol": 0}
    for fast, plain in ((chisq, reference_chisq), (harmonic, reference_harmonic)):
        K = fast(X, Z)
        assert K.dtype == dtype
        np.testing.assert_allclose(K, plain(X.astype(float), Z.astype(float)), **close)
        np.testing.assert_allclose(fast(Z, X).T, K, **close)


def test_equal_rows_and_the_ends_of_the_scale():
    X = np.array([[1e307, 1e-300, 0.0, 5e-324, 3.0]])
    assert chisq(X, X)[0, 0] == 0
    assert harmonic(X, X)[0, 0] == X.sum()
    tiny = np.array([[1e-300, 1.0, 0.0, 1e-320, 2.0]])
    np.testing.assert_allclose(harmonic(X, tiny), 2e-300 + 2.4)
    np.testing.assert_allclose(chisq(X, tiny), 1e307)
    for dtype in (np.float32, np.float64):
        x, z = (np.array([[c * np.finfo(dtype).max]], dtype) for c in (0.9, 0.6))
        np.testing.assert_allclose(harmonic(x, z), 0.72 * np.finfo(dtype).max, rtol=1e-6)
        np.testing.assert_allclose(chisq(x, z), 0.06 * np.finfo(dtype).max, rtol=1e-6)
        assert harmonic(x, x) == x


def test_near_rows_keep_their_digits():
    X = np.array([[1e6, 2.0]])
    gap = 2.0**-20
    np.testing.assert_allclose(chisq(X, X + gap), gap**2 / 2e6 + gap**2 / 4, rtol=1e-6)


@pytest.mark.parametrize("outputs", [1, 3, 7])
@pytest.mark.parametrize("distance", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes(outputs, distance, dtype):
    X, Z = hostile(9, 13, 4, seed=outputs, dtype=dtype)
    rng = np.random.default_rng(0)
    T, A = rng.normal(size=(9, 13)).astype(dtype), rng.normal(size=(13, outputs)).astype(dtype)
    ours = chisquare_slopes(T, A, X, Z, distance=distance)
    plain = reference_slopes(*(V.astype(float) for V in (T, A, X, Z)), distance=distance)
    np.testing.assert_allclose(ours, plain, atol=1e3 * np.finfo(dtype).eps)


def test_slopes_of_near_rows_keep_their_digits():
    """1 - 4 z^2 / (x + z)^2 would not."""
    one, gap = np.ones((1, 1)), 2.0**-40
    found = chisquare_slopes(one, one, one + gap, one, distance=True)
    np.testing.assert_allclose(found, gap, rtol=1e-9)
