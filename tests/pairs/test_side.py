"""Sides of pairs: sparse rows stay sparse."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import Matern
from mercer.pairs.side import product, square_norms


def test_sparse_near_pairs_stay_sparse():
    A = sp.random_array((300, 100_000), density=1e-4, random_state=np.random.default_rng(0)).tocsr()
    B = sp.vstack([A, A * 1.0001]).tocsr()
    full = Matern()(B)
    assert np.isfinite(full).all()
    assert full[0, 300] > 0.99


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(30, 7, 20), (7, 30, 20), (1, 1, 1), (5, 6, 900), (0, 4, 3)])
def test_products_of_sparse_rows_are_those_of_dense_ones(shape, dtype):
    """Also where columns are so many that no side is made dense, and where rows are empty."""
    n, m, d = shape
    rng = np.random.default_rng(n)
    A, B = (
        sp.random_array((k, d), density=0.2, random_state=rng, dtype=dtype, format="csr")
        for k in (n, m)
    )
    P = product(A, B)
    assert isinstance(P, np.ndarray)
    assert P.dtype == dtype
    np.testing.assert_allclose(P, A.toarray() @ B.toarray().T, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(P, product(B, A).T)
    np.testing.assert_allclose(square_norms(A), square_norms(A.toarray()), rtol=1e-12)
