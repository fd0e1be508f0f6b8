"""Products and solutions with one side of a diagonal: those of whole matrices."""

import numpy as np
import pytest

from mercer.ops import symmetric
from mercer.ops.triangles import multiplied, solved


def matrix(n, dtype=np.float64):
    A = np.random.default_rng(n).normal(size=(n, n))
    return (A @ A.T + np.eye(n)).astype(dtype)


@pytest.mark.parametrize("lane_bytes", [0, 1 << 40], ids=["lanes", "BLAS"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtypes", ["dd", "ff", "fd", "df"])
@pytest.mark.parametrize(("n", "q"), [(1, 1), (7, 2), (150, 4), (90, 5)])
def test_products(monkeypatch, n, q, dtypes, order, lane_bytes):
    monkeypatch.setattr(symmetric, "LANE_BYTES", lane_bytes)
    whole = matrix(n, dtypes[0])
    A = np.where(np.tri(n, k=-1), np.nan, whole).astype(dtypes[0], order=order)
    V = np.random.default_rng(1).normal(size=(n, q)).astype(dtypes[1])
    found = multiplied(A, V)
    assert found.dtype == np.result_type(A, V)
    eps = max(np.finfo(dtype).eps for dtype in dtypes)
    np.testing.assert_allclose(found, whole @ V, atol=20 * eps * np.abs(whole @ V).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("q", [1, 4, 5])
def test_solutions(q, dtype):
    A, B = matrix(60), np.random.default_rng(2).normal(size=(60, q)).astype(dtype)
    L = np.linalg.cholesky(A)
    L[np.triu_indices(60, 1)] = np.nan
    X = solved(np.asfortranarray(L.astype(dtype)), B)
    np.testing.assert_allclose(A @ X, B, atol=1e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("q", [1, 7])
def test_what_is_not_read_is_not_told_of(q):
    A = np.eye(3, dtype=np.float32)
    A.view(np.uint32)[2, 0] = 0x7FA00000  # a NaN that casts warn of
    assert np.array_equal(multiplied(A, np.ones((3, q))), np.ones((3, q)))
