"""Exponentials of squared distances, and distances between rows of bits."""

import numpy as np
import pytest

from mercer.ops.distances import half_exp, lookup, packed, reference_half_exp, reference_lookup


def test_the_exponential_in_place():
    D = np.concatenate([[0.0, -1e-7, 1e-6], np.linspace(0, 170, 5000), [1e4, 1e30]]).astype(
        np.float32
    )[None]
    expected, K = reference_half_exp(D), D.copy()
    half_exp(K)
    assert (
        np.abs(K - expected) <= 2e-7 * (1 + np.abs(D)) * expected + 2e-38
    ).all()  # rounding of D itself is relative to D
    assert K[0, 0] == 1


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
