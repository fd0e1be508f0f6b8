"""Random bases as products of reflections: orthogonal, of the law of Haar, in both precisions."""

import numpy as np
import pytest

from mercer.ops.philox import Stream
from mercer.ops.reflections import reference_turned, turn, turned

SIZES = [(1, 1), (1, 5), (5, 5), (31, 33), (33, 70), (70, 70), (3, 100)]


@pytest.mark.parametrize("size", SIZES)
def test_as_one_reflection_after_the_other(size):
    Q, plain = turned(*size, Stream(3)), reference_turned(*size, Stream(3))
    np.testing.assert_allclose(Q, plain, atol=1e-14)
    np.testing.assert_allclose(Q @ Q.T, np.eye(len(Q)), atol=1e-14)
    narrow = turned(*size, Stream(3), np.float32)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, Q, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", SIZES)
def test_products_are_those_of_the_rows(size, dtype):
    A = np.random.default_rng(0).normal(size=(size[1], 4)).astype(dtype)
    found = turn(A.copy(), size[0], Stream(3))
    assert found.dtype == dtype
    allowed = {np.float64: 1e-13, np.float32: 1e-5}[dtype]
    np.testing.assert_allclose(found, turned(*size, Stream(3)) @ A, atol=allowed)


def test_the_law_is_that_of_haar():
    """Second and fourth moments of entries in one row, one column and neither; both determinants."""
    d, draws = 3, 4000
    Q = np.array([turned(d, d, Stream(s)) for s in range(draws)])
    square = np.square(Q)
    tell = 5 / np.sqrt(draws)
    assert np.abs(Q.mean(0)).max() < tell * 0.6
    np.testing.assert_allclose(square.mean(0), 1 / d, atol=tell * 0.3)
    np.testing.assert_allclose(np.square(square).mean(0), 3 / (d * (d + 2)), atol=tell * 0.27)
    same_row = square[:, 0, 0] * square[:, 0, 1]
    apart = square[:, 0, 0] * square[:, 1, 1]
    assert abs(same_row.mean() - 1 / 15) < tell * same_row.std()
    assert abs(apart.mean() - 2 / 15) < tell * apart.std()
    assert abs(np.mean(np.linalg.det(Q) > 0) - 0.5) < tell * 0.5
