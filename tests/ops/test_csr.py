"""Loops over compressed rows: as SciPy's products, and sweeps as those of dense rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.ops import csr
from mercer.ops.smo import sweep

RNG = np.random.default_rng(0)


def entries(X):
    return X.indptr.astype(np.uint64), X.indices.astype(np.uint32), X.data


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 30), (40, 5), (3, 1)])
def test_products(shape, dtype):
    X = sp.random(*shape, 0.3, "csr", dtype=np.float64, random_state=1).astype(dtype)
    n, d = shape
    A, v, V = X.toarray().astype(np.float64), RNG.normal(size=d), RNG.normal(size=(d, 3))
    r, R = RNG.normal(size=n), RNG.normal(size=(n, 3))
    r[0] = 0
    found = {
        "vector": (csr.times_vector, v, np.full(n, np.nan), A @ v),
        "matrix": (csr.times_matrix, V, np.full((n, 3), np.nan), A @ V),
        "squares": (csr.times_squares, v, np.full(n, np.nan), A**2 @ v),
        "rows": (csr.add_rows, r, np.ones(d), 1 + A.T @ r),
        "outer": (csr.add_outer, R, np.ones((d, 3)), 1 + A.T @ R),
    }
    for loop, given, out, expected in found.values():
        loop(*entries(X), given, out, 0, n)
        np.testing.assert_allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize("since", [0, 3, 8])
def test_products_of_pairs(since):
    X, h = sp.random(30, 9, 0.3, "csr", random_state=2), RNG.normal(size=30)
    X.sort_indices()
    out, A = np.zeros((9 - since, 9)), X.toarray()
    csr.add_pairs(*entries(X), h, since, out)
    want = (A.T @ (A * h[:, None]))[since:]
    low = np.arange(9) <= np.arange(since, 9)[:, None]
    np.testing.assert_allclose(out, np.where(low, want, 0), atol=1e-12)


def test_only_the_rows_asked_for():
    X, out = sp.eye_array(5, format="csr"), np.full(5, np.nan)
    csr.times_vector(*entries(X), np.arange(5.0), out, 1, 3)
    np.testing.assert_array_equal(out, [np.nan, 1, 2, np.nan, np.nan])


def test_transposition_and_names():
    X = sp.random(6, 9, 0.4, "csr", random_state=2)
    count = np.zeros(9, np.int64)
    csr.counts(X.indices, count)
    np.testing.assert_array_equal(count, (X.toarray() != 0).sum(0))
    starts = np.concatenate([[0], np.cumsum(count)]).astype(np.uint64)
    rows, moved = np.full(X.nnz, 99, np.uint32), np.full(X.nnz, np.nan)
    csr.transpose(*entries(X), starts[:-1].copy(), rows, moved)
    T = X.T.tocsr()
    np.testing.assert_array_equal(rows, T.indices)
    np.testing.assert_array_equal(moved, T.data)
    out = np.full(X.nnz, 99, np.uint32)
    csr.renamed(X.indices, np.arange(9, dtype=np.uint32)[::-1].copy(), out)
    np.testing.assert_array_equal(out, 8 - X.indices)


def test_a_sweep_is_that_of_dense_rows():
    n, d = 50, 20
    X = sp.random(n, d, 0.2, "csr", random_state=3)
    F, y = X.toarray(), np.where(RNG.random(n) < 0.5, 1.0, -1.0)
    both = []
    for sparse in (True, False):
        a, c, active, coef = np.zeros(n), np.full(n, 0.7), np.ones(n, bool), np.zeros(d)
        square, told = np.square(F).sum(1), None
        for k in range(4):
            order = np.random.default_rng(k).permutation(np.flatnonzero(active))
            state = np.array([0.1, 0.5, float(a @ y), 0.8, -0.8])
            args = (y, a, c, square, active, order, coef, state)
            told = csr.sweep(*entries(X), *args) if sparse else sweep(F, *args)
        both.append((a, coef, active, np.array(told)))
    for found, expected in zip(*both, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (both[0][0] > 0).any()
