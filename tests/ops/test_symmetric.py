"""Products with symmetric matrices from one of their triangles: those of the whole matrix."""

import numpy as np
import pytest

from mercer.ops import symmetric
from mercer.ops.symmetric import add_rows, reference_add_rows, times
from mercer.ops.threads import limit


def matrix(n, dtype, seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n))
    return (A + A.T).astype(dtype), np.random.default_rng(seed + 1).normal(size=n).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 63, 130])
def test_rows_add_what_the_reference_adds(n, dtype):
    K, v = matrix(n, dtype)
    K[np.tril_indices(n, -1)] = np.nan  # is never read
    for start, stop in ((0, n), (n // 3, n), (n // 3, n // 2), (n, n)):
        found, want = np.ones(n, dtype), np.ones(n, dtype)
        add_rows(K, v, start, stop, found)
        reference_add_rows(K, v, start, stop, want)
        np.testing.assert_allclose(found, want, rtol=0, atol=8 * n * np.finfo(dtype).eps)
        assert found.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("lane_bytes", [0, 1 << 40], ids=["lanes", "one"])
@pytest.mark.parametrize("n", [1, 3, 9, 257])
def test_products_are_those_of_the_matrix_in_any_number_of_threads(
    n, lane_bytes, dtype, monkeypatch
):
    monkeypatch.setattr(symmetric, "LANE_BYTES", lane_bytes)
    K, v = matrix(n, dtype)
    found = [np.full(n, np.nan, dtype) for _ in range(3)]
    for out, threads in zip(found, (1, 2, 3), strict=True):
        with limit(threads):
            times(K, v, out)
    np.testing.assert_allclose(found[0], K @ v, rtol=0, atol=8 * n * np.finfo(dtype).eps)
    np.testing.assert_array_equal(found[1], found[0])
    np.testing.assert_array_equal(found[2], found[0])
