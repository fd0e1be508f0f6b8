"""Distances between rows of bits."""
import numpy as np
import pytest

from mercer.ops.distances import lookup, packed, reference_lookup


@pytest.mark.parametrize("d", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_are_counted_as_plainly(d, dtype):
    rng = np.random.default_rng(d)
    X, Z, values = rng.random((17, d)) < 0.3, rng.random((9, d)) < 0.6, rng.normal(size=d + 1).astype(dtype)
    out = np.empty((17, 9), dtype)
    lookup(packed(X), np.ascontiguousarray(packed(Z).T), values, out)
    np.testing.assert_array_equal(out, reference_lookup(X, Z, values))
