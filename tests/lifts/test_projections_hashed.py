"""Hashed features: by name, as counts, and sparse where there are many."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.lifts import HashedFeatures, SparseProjection


def rows(n=15, d=40, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    X[X < -0.4] = 0
    return X


def test_dicts_are_hashed_by_name():
    phi = HashedFeatures(32).fit([{"a": 1}])
    F = phi.transform(
        [{"a": 2.0, "city": "Oslo"}, {"city": "Oslo", "a": 2}, {"city": "Bergen"}, {}]
    )
    np.testing.assert_array_equal(F[0], F[1])
    assert np.abs(F).sum(1).tolist() == [3, 3, 1, 0]
    assert len(phi.get_feature_names_out()) == 32
    with pytest.raises(ValueError, match="'a' must be a finite number or a string, got None"):
        phi.transform([{"a": None}])


def test_unsigned_hashes_keep_counts():
    X = rows()
    F = HashedFeatures(16, signed=False).fit_transform(np.abs(X))
    assert (F >= 0).all()
    np.testing.assert_allclose(F.sum(1), np.abs(X).sum(1))


def test_many_features_come_as_canonical_csr():
    F = HashedFeatures(2**15, random_state=3).fit_transform(rows(d=3000))
    copy = F.copy()
    copy.has_canonical_format = False
    copy.sum_duplicates()
    np.testing.assert_array_equal(F.indices, copy.indices)
    assert sp.issparse(SparseProjection(64).fit_transform(sp.csr_array(rows())))
    assert not sp.issparse(
        SparseProjection(64, dense_output=True).fit_transform(sp.csr_array(rows()))
    )
