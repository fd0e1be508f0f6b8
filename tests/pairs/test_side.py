"""Sides of pairs: sparse rows stay sparse."""

import numpy as np
import scipy.sparse as sp

from mercer.kernels import Matern


def test_sparse_near_pairs_stay_sparse():
    A = sp.random_array((300, 100_000), density=1e-4, random_state=np.random.default_rng(0)).tocsr()
    B = sp.vstack([A, A * 1.0001]).tocsr()
    full = Matern()(B)
    assert np.isfinite(full).all()
    assert full[0, 300] > 0.99
