"""Columns to [-1, 1]."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Table
from mercer.models.sparse.frame import UnitFrame

RNG = np.random.default_rng(0)


def test_the_largest_magnitude_is_one_and_products_stay_products():
    X = np.column_stack([RNG.normal(size=50) * 1e9, RNG.random(50) + 1, RNG.random(50) < 0.5])
    frame = UnitFrame.of(Table(X))
    Z = frame(Table(X)).data
    np.testing.assert_array_equal(np.abs(Z).max(0), 1)
    assert (frame.shift == 0).all()
    assert set(np.unique(Z[:, 2])) == {0.0, 1.0}  # so that x^2 is x
    np.testing.assert_allclose(
        Z[:, 0] * Z[:, 1] * frame.scale[0] * frame.scale[1], X[:, 0] * X[:, 1]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_far_from_zero_are_shifted(dtype):
    X = np.column_stack([RNG.random(50) + 1e6, np.full(50, 7.0), np.zeros(50)]).astype(dtype)
    frame = UnitFrame.of(Table(X))
    Z = frame(Table(X)).data
    assert np.abs(Z[:, 0]).max() == 1
    assert Z[:, 0].min() == pytest.approx(-1)
    assert Z[:, 0].max() == pytest.approx(1)
    np.testing.assert_array_equal(Z[:, 1:], np.broadcast_to([1.0, 0.0], (50, 2)))


def test_sparse_rows_are_scaled_and_stay_sparse():
    X = sp.random_array((40, 5), density=0.2, random_state=RNG, format="csr")
    frame = UnitFrame.of(Table(X))
    Z = frame(Table(X)).data
    assert sp.issparse(Z)
    assert Z.nnz == X.nnz
    np.testing.assert_allclose(Z.toarray() * frame.scale, X.toarray())
    assert np.abs(Z.toarray()).max() == 1


def test_a_scale_of_zero_is_refused():
    with pytest.raises(ValueError, match="a scale that is not > 0"):
        UnitFrame(np.zeros(2), np.array([1.0, 0.0]))
