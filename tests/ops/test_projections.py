"""Projections: the least dimension, and normals in slices of one matrix."""

import numpy as np
import pytest
from scipy import stats

from mercer.ops.philox import Stream
from mercer.ops.projections import Normals, projection_dim


def test_dimension_is_the_least():
    for n, eps, delta in [(2, 0.1, 0.01), (1000, 0.3, 0.05), (10**6, 1.0, 0.5)]:
        m, t = projection_dim(n, eps, delta), np.log(4 * (n * (n - 1) / 2) / delta)
        error = lambda m, t=t: 2 * np.sqrt(t / m) + 2 * t / m
        assert error(m) <= eps < error(m - 1)
    with pytest.raises(ValueError, match="eps > 0"):
        projection_dim(10, 0.0)


def test_normals_are_normal_and_slices_of_one_matrix():
    A = Normals(50, Stream(3))
    Z = A.matrix(2000).T * np.sqrt(50)
    assert stats.kstest(Z.ravel(), "norm").pvalue > 1e-3
    assert abs(np.corrcoef(Z[:, 0], Z[:, 1])[0, 1]) < 4 / np.sqrt(2000)
    for start, stop in [(0, 1), (63, 65), (130, 700)]:
        np.testing.assert_array_equal(A.rows(start, stop, np.float64) * np.sqrt(50), Z[start:stop])
