"""Sparse rows as learners read them: the same matrix, whatever its columns are called."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.models.sparse_rows import Compressed, SparseRows
from mercer.ops.threads import limit


def rows(n=40, D=100, density=0.05, seed=0, dtype=np.float64, intercept=False):
    X = sp.random(n, D, density, "csr", dtype=np.float64, random_state=seed).astype(dtype)
    return X, SparseRows.of(X, intercept=intercept)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "D"), [(1, 50), (40, 100), (100, 9)])
def test_products_are_those_of_the_matrix(n, D, dtype):
    X, S = rows(n, D, 0.1, dtype=dtype)
    A, rng = X.toarray().astype(np.float64)[:, S.columns], np.random.default_rng(1)
    for shape in ((), (1,), (3,)):
        V, R = rng.normal(size=(S.p, *shape)), rng.normal(size=(n, *shape))
        np.testing.assert_allclose(S.scores(V), A @ V, atol=1e-12)
        np.testing.assert_allclose(S.back(R), A.T @ R, atol=1e-12)
        np.testing.assert_allclose(S.times(V), A @ V, atol=1e-12)
    np.testing.assert_allclose(S.summed(R[:, 0]), A.T @ R[:, 0], atol=1e-12)
    np.testing.assert_allclose(S.squares, np.square(A).sum(1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_some_rows_with_each_other(dtype):
    X, S = rows(30, 50, 0.1, dtype=dtype)
    A, some = X.toarray().astype(np.float64), np.array([0, 3, 29])
    np.testing.assert_allclose(S.gram(some), A[some] @ A[some].T, atol=1e-12)


def test_only_occupied_columns_are_numbered_the_most_frequent_first():
    X, S = rows()
    count = np.diff(X.tocsc().indptr)
    assert S.p == np.count_nonzero(count) < 100
    assert (np.diff(count[S.columns]) <= 0).all()
    coef, b = S.unshifted(np.arange(1.0, 2 * S.p + 1).reshape(S.p, 2), np.array([5.0, 6.0]))
    assert coef.shape == (2, 100)
    np.testing.assert_array_equal(coef[0, S.columns], np.arange(1.0, 2 * S.p + 1, 2))
    assert not coef[:, count == 0].any()
    np.testing.assert_array_equal(b, [5.0, 6.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_full_columns_far_from_zero_are_shifted_where_there_is_an_intercept(dtype):
    rng = np.random.default_rng(0)
    X = sp.random(40, 20, 0.1, "csr", random_state=0)
    far, near = 1e4 + rng.normal(size=(40, 1)), rng.normal(size=(40, 1))
    X = sp.hstack([sp.csr_array(near), X, sp.csr_array(far)], format="csr").astype(dtype)
    S, plain = SparseRows.of(X, intercept=True), SparseRows.of(X, intercept=False)
    assert plain.shift is None
    assert np.flatnonzero(S.shift).tolist() == np.flatnonzero(S.columns == 21).tolist()
    V = rng.normal(size=(S.p, 2))
    coef, b = S.unshifted(V, np.zeros(2))
    A = X.toarray().astype(np.float64)
    np.testing.assert_allclose(A @ coef.T + b, S.times(V), atol=1e-8)
    assert np.abs(S.times(V)).max() < 100 < np.abs(A).max()


def test_threads_change_no_bit():
    X = sp.random(300, 4000, 0.1, "csr", random_state=0)
    found = []
    for threads in (1, 2, 7):
        S = SparseRows.of(X, intercept=True)
        v, r = np.linspace(-1, 1, S.p), np.linspace(1, 2, S.n)
        with limit(threads):
            found.append((S.times(v), S.back(r), S.times(v), S.squares))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_transposing_twice_is_the_matrix():
    X, S = rows()
    again = S.by_column.transposed()
    assert isinstance(again, Compressed)
    v = np.linspace(0, 1, S.p)
    np.testing.assert_allclose(again.times(v), S.times(v), atol=1e-14)
    assert S.by_column.nbytes <= X.data.nbytes + X.indices.nbytes + 8 * (S.p + 1)


def test_values_too_large_to_square_are_refused():
    X, _ = rows()
    with pytest.raises(ValueError, match="too large"), np.errstate(all="ignore"):
        SparseRows.of(X * 1e200, intercept=True)
