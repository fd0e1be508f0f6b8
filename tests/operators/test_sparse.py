"""Kernel matrices of sparse rows as they are, and which rows are told to be apart."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Table
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.models.svm.gram import square
from mercer.operators import TileOperator
from mercer.operators.exact import exact
from mercer.operators.sparse import SparseTiles
from mercer.operators.tiles import PairTiles, tiles_about, tiles_of, told_apart
from mercer.ops.threads import limit


def plainly(X, Z, b):
    """exp(-|x - z|^2 / (2 b^2)) by differences, in float64."""
    X, Z = (np.asarray(A.toarray() if sp.issparse(A) else A, np.float64) for A in (X, Z))
    return np.exp(-np.square((X[:, None] - Z) / b).sum(-1) / 2)


def rows(kind, n, d, dtype, seed=0):
    """Sparse ones, hard in one way or another."""
    rng = np.random.default_rng([seed, n, d])
    X = sp.random_array((n, d), density=0.1, random_state=rng, data_sampler=rng.normal).toarray()
    match kind:
        case "empty":
            X[rng.random(n) < 0.3] = 0
            X[0] = X[-1] = 0
        case "duplicates":
            X = X[rng.integers(0, min(n, 7), n)]
        case "near":
            X = X[rng.integers(0, min(n, 7), n)] * (1 + 1e-7 * rng.normal(size=(n, 1)))
        case "offset":
            X[:, 0] += 1e4
        case "tiny":
            X *= 1e-30
        case "huge":
            X *= 1e15
        case "one column":
            X[:, 1:] = 0
    X = X.astype(dtype)
    return X, float(np.sqrt(np.square(X.astype(float)).sum() / n)) or 1.0


KINDS = ["plain", "empty", "duplicates", "near", "offset", "tiny", "huge", "one column"]
DIGITS = {np.float32: 2e-7, np.float64: 2e-13}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(1, 5), (33, 70), (300, 40), (515, 131)])
def test_symmetric_matrices(kind, dtype, n, d):
    X, b = rows(kind, n, d, dtype)
    for values in (np.float32, np.float64):
        op = TileOperator(Gaussian(b), Table(sp.csr_array(X)), values)
        K, expected = square(op)[:, :n], plainly(X, X, b)
        assert K.dtype == values
        np.testing.assert_allclose(K, expected, atol=10 * DIGITS[values])
        np.testing.assert_array_equal(K, K.T)
        some = np.random.default_rng(1).permutation(n)[: max(1, n // 2)]
        np.testing.assert_allclose(
            square(op, some)[:, : len(some)], expected[np.ix_(some, some)], atol=10 * DIGITS[values]
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bandwidth", ["one", "columns"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [True, False])
def test_few_values_are_exact(kind, dtype, bandwidth, sparse):
    X, b = rows(kind, 90, 50, dtype)
    b = b if bandwidth == "one" else tuple(b * np.random.default_rng(2).uniform(1, 2, 50))
    expected = plainly(X, X, b)
    table = Table(sp.csr_array(X) if sparse else X)
    op = TileOperator(Gaussian(b), table, np.float32)
    for cols in (np.arange(90), np.random.default_rng(3).permutation(90)[:31]):
        some = np.array([5, 0, 89, 40])
        K = exact(op, some, cols)
        np.testing.assert_allclose(K, expected[np.ix_(some, cols)], atol=1e-9)


@pytest.mark.parametrize("bandwidth", [1.3, (0.5, *np.linspace(1, 2, 39))])
@pytest.mark.parametrize(("n", "m"), [(40, 7), (300, 260)])
def test_tiles(bandwidth, n, m):
    X, Z = (sp.csr_array(rows("empty", r, 40, np.float32, r)[0]) for r in (n, m))
    left, right, out = Table(X), Table(Z), np.full((n, m), np.nan, np.float32)
    tiles = tiles_of(Gaussian(bandwidth), left, right, np.float32)
    assert isinstance(tiles, SparseTiles)
    tiles.fill(tiles.side(left, left=True), tiles.side(right, left=False), out)
    np.testing.assert_allclose(out, plainly(X, Z, np.asarray(bandwidth)), atol=1e-6)
    far = Table(X * np.float32(1e9))
    assert isinstance(tiles_of(Gaussian(1.0), far, far, np.float32), PairTiles)
    assert isinstance(tiles_of(Laplace(1.0), left, right, np.float32), PairTiles)


def test_the_same_on_one_thread_and_on_many():
    X, b = rows("plain", 1100, 900, np.float32)
    found = []
    for threads in (1, 3):
        with limit(threads):
            found.append(square(TileOperator(Gaussian(b), Table(sp.csr_array(X)), np.float32)))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_share_most_are_told(sparse):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) * (rng.random((500, 6)) < 0.5)
    for offset, near, apart in ((0.0, 1.0, True), (1e8, 1.0, True), (0.0, 1e-4, False)):
        A = offset + near * X
        table = Table(sp.csr_array(A) if sparse else A)
        assert told_apart(Gaussian(1.0), table) is apart
        if not sparse:
            assert (tiles_about(Gaussian(1.0), table, np.float32) is None) is apart
    assert not told_apart(Linear(), Table(X))
    assert not told_apart(Gaussian(), Table(X[:1]))
