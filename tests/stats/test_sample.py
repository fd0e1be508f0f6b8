"""Samples by hashes: uniform, and the same in any order and splits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mercer.stats import Sample, row_hashes

rng = np.random.default_rng(0)
A = rng.normal(size=(300, 4)) + 3


@given(st.permutations(range(6)))
def test_a_sample_does_not_depend_on_order_or_splits(order):
    whole = Sample.of(A, 20)
    parts = [Sample.of(A[50 * i : 50 * i + 50], 20) for i in order]
    np.testing.assert_array_equal(sum(parts[1:], parts[0]).rows, whole.rows)


def test_a_sample_is_uniform():
    means = [Sample.of(np.arange(200.0)[:, None], 20, seed=s).rows.mean() for s in range(200)]
    assert np.mean(means) == pytest.approx(99.5, abs=4)


def test_hashes_of_sparse_rows():
    X = sp.random_array((50, 30), density=0.2, random_state=rng).tocsr()
    assert len(set(row_hashes(X).tolist())) > 45
    np.testing.assert_array_equal(row_hashes(X)[10:20], row_hashes(X[10:20]))
    np.testing.assert_array_equal(
        row_hashes(np.array([[0.0, 1.0]])), row_hashes(np.array([[-0.0, 1.0]]))
    )
    np.testing.assert_array_equal(row_hashes(X), row_hashes(X.toarray()))
    assert row_hashes(np.array([[1.0, 2.0]]))[0] != row_hashes(np.array([[2.0, 1.0]]))[0]


@pytest.mark.parametrize("seed", [0, 1, 2, 12345, 2**40])
def test_no_seed_of_a_sample_warns(seed):
    found = Sample.of(np.arange(50.0)[:, None], 10, keys=np.arange(50), seed=seed)
    assert len(found.rows) == 10


def test_hashes_of_sparse_rows_with_entries_given_twice():
    A = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 3))
    assert row_hashes(A)[0] == row_hashes(A.toarray())[0]
