"""Rows to forget are known by their y."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.models import GaussianProcessRegressor as GP


@pytest.mark.parametrize("size", [1e-13, 1.0, 1e13])
def test_rows_to_forget_are_known_by_their_y_at_any_size(size):
    X = np.zeros((3, 1))
    y = size * np.array([1.0, 2.0, 3.0])
    m = GP(Gaussian(), 0.1).fit(X, y).forget(X[:1], y[:1])
    np.testing.assert_array_equal(m.posterior_.Y[:, 0], y[1:])
    with pytest.raises(ValueError, match="was not taken in"):
        m.forget(X[:1], y[:1])
