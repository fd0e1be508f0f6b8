"""Cosine and sine at once: as exact as NumPy's, at all sizes of angles, wherever the output
lies."""

import numpy as np
import pytest

from mercer.ops.trig import FAR32, FAR64, reference_sincos, sincos

dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def angles(size, dtype, shape=(16, 1031)):
    return np.random.default_rng(0).uniform(-size, size, shape).astype(dtype)


def poisoned(P):
    return np.full_like(P, np.nan), np.full_like(P, np.nan)


def units(found, exact, dtype):
    return np.abs(found - exact) / np.spacing(np.abs(exact).astype(dtype))


@dtypes
@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0, 1e4])
def test_right_to_two_units_in_the_last_place(size, dtype):
    P = angles(size, dtype)
    C, S = poisoned(P)
    sincos(P, 1.0, C, S)
    wide = P.astype(np.longdouble)
    for found, exact in ((C, np.cos(wide)), (S, np.sin(wide))):
        assert np.abs(found - exact).max() <= np.finfo(dtype).eps
        assert np.quantile(units(found, exact, dtype), 0.999) <= 2


@pytest.mark.parametrize(("dtype", "far"), [(np.float32, FAR32), (np.float64, FAR64)])
def test_beyond_the_reduction_the_library_takes_over(dtype, far):
    P = angles(100 * far, dtype)
    C, S, c, s = *poisoned(P), *poisoned(P)
    P[0, :4] = 0.0, -0.0, far, -far
    sincos(P, 3.0, C, S)
    reference_sincos(P, 3.0, c, s)
    np.testing.assert_allclose(C, c, atol=5 * np.finfo(dtype).eps)
    np.testing.assert_allclose(S, s, atol=5 * np.finfo(dtype).eps)


@dtypes
@pytest.mark.parametrize("shape", [(0, 5), (1, 1), (3, 7), (2, 1024), (2, 2500)])
def test_in_place_in_halves_of_one_array(shape, dtype):
    P, m = angles(10, dtype, shape), shape[1]
    F = np.full((shape[0], 2 * m), np.nan, dtype)
    F[:, :m] = P
    sincos(F[:, :m], 0.5, F[:, :m], F[:, m:])
    np.testing.assert_allclose(
        F, np.hstack([0.5 * np.cos(P), 0.5 * np.sin(P)]), atol=2 * np.finfo(dtype).eps
    )


@dtypes
def test_nan_stays_nan(dtype):
    P = np.array([[np.nan, 1.0]], dtype)
    C, S = np.zeros_like(P), np.zeros_like(P)
    sincos(P, 1.0, C, S)
    assert np.isnan(C[0, 0])
    assert np.isnan(S[0, 0])
    assert np.isfinite([C[0, 1], S[0, 1]]).all()


def test_strided_rows_are_refused():
    P = np.zeros((4, 6))
    with pytest.raises(ValueError, match="rows of the array must be contiguous"):
        sincos(P[:, ::2], 1.0, P[:, ::2], P[:, ::2])
