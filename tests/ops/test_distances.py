"""Exponentials of squared distances, and distances between rows of bits."""

import numpy as np
import pytest

from mercer.ops import distances
from mercer.ops.distances import half_exp, lookup, packed, reference_half_exp, reference_lookup


def test_the_exponential_in_place():
    D = np.concatenate([[0.0, -1e-7, 1e-6], np.linspace(0, 170, 5000), [1e4, 1e30]]).astype(
        np.float32
    )[None]
    none, x, z = np.zeros_like(D), np.zeros(1, np.float32), D[0]
    expected, K = reference_half_exp(none, x, z), none.copy()
    half_exp(K, x, z)
    assert (
        np.abs(K - expected) <= 2e-7 * (1 + np.abs(D)) * expected + 2e-38
    ).all()  # rounding of D itself is relative to D
    assert K[0, 0] == 1


@pytest.mark.parametrize("apart", [1e-3, 1.0, 5.0])
def test_the_exponential_of_products_and_norms(apart):
    rng = np.random.default_rng(0)
    X, Z = (apart * rng.normal(size=(n, 7)).astype(np.float32) for n in (300, 250))
    P, x, z = X @ Z.T, np.square(X).sum(1), np.square(Z).sum(1)
    K = P.copy()
    half_exp(K, x, z)
    np.testing.assert_allclose(K, reference_half_exp(P, x, z), atol=2e-7 * (1 + x.max() + z.max()))
    half_exp(S := X @ X.T, x, x)
    assert np.abs(S.diagonal() - 1).max() <= 2e-7 * (1 + x.max())


@pytest.mark.parametrize("d", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_are_counted_as_plainly(d, dtype):
    rng = np.random.default_rng(d)
    X, Z, values = (
        rng.random((17, d)) < 0.3,
        rng.random((9, d)) < 0.6,
        rng.normal(size=d + 1).astype(dtype),
    )
    out = np.empty((17, 9), dtype)
    lookup(packed(X), np.ascontiguousarray(packed(Z).T), values, out)
    np.testing.assert_array_equal(out, reference_lookup(X, Z, values))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (5, 3, 200), (40, 40, 130)])
def test_distances_by_norms_are_those_by_differences(n, m, d, dtype):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(m, d)).astype(dtype)
    norms = [np.einsum("ij,ij->i", A, A, dtype=np.float64) for A in (X, Z)]
    D = distances.by_norms(X, Z, *norms)
    assert D.dtype == dtype
    right = distances.reference_sqdist(X, Z, np.ones(d))
    np.testing.assert_allclose(D, right, atol=5e-4 if dtype == np.float32 else 1e-10)
    same = distances.by_norms(X, X, norms[0], norms[0])
    np.testing.assert_allclose(same, same.T, rtol=1e-6, atol=1e-3 if dtype == np.float32 else 1e-10)
