"""Gaussians of tiles against their plain references, on hard rows too."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.kernels import Gaussian
from mercer.operators import KernelOperator, StoredOperator
from mercer.ops import gaussian
from mercer.pairs.gaussian import GaussianPairs, RowsWithNorms

DIGITS = {np.float32: 4e-5, np.float64: 2e-9}


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_in_one_pass(dtype, half):
    rng, eps = np.random.default_rng(0), np.finfo(dtype).eps
    x, z = (np.square(rng.normal(size=n) * 9).astype(dtype) for n in (40, 70))
    P = rng.normal(size=(40, 70)).astype(dtype)
    x[0], z[:3], P[0, :3] = 0, [0, 1e4, 1e30], 0  # a value of 1, and some that are as good as 0
    out, expected = np.full((2, 50, 80), np.nan, dtype)
    gaussian.values(P, x, z, 0.5, out, 5, 7, half)
    gaussian.reference_values(P, x, z, 0.5, expected, 5, 7, half)
    np.testing.assert_array_equal(np.isnan(out), np.isnan(expected))  # nothing beside the tile
    assert np.nanmax(np.abs(out - expected)) <= 10 * eps
    assert out[5, 7] == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [(0, 0, 0, 0), (0, 1, 0, 1), (3, 40, 3, 40), (3, 24, 24, 61)])
def test_mirror_images(dtype, place):
    K = np.random.default_rng(4).normal(size=(64, 64)).astype(dtype)
    expected = K.copy()
    gaussian.mirror(K, *place)
    gaussian.reference_mirror(expected, *place)
    np.testing.assert_array_equal(K, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(257, 3), (700, 9), (600, 300)])
def test_symmetric_with_a_blas_that_is_not(monkeypatch, dtype, n, d):
    products = GaussianPairs._products

    def rounded(self, rows, cols, P, half):
        P[:] = 0  # what is not asked for is not written
        products(self, rows, cols, P, half)
        P *= 1 + np.finfo(dtype).eps * np.random.default_rng(5).integers(0, 3, P.shape)

    X = np.random.default_rng(n).normal(size=(n, d)).astype(dtype)
    monkeypatch.setattr(GaussianPairs, "_products", rounded)
    K = Gaussian(np.sqrt(d))(X)
    np.testing.assert_array_equal(K, K.T)
    monkeypatch.undo()
    np.testing.assert_allclose(K, Gaussian(np.sqrt(d))(X), atol=20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (7, 40), (33, 5)])
def test_rows_in_one_pass(dtype, shape):
    rng = np.random.default_rng(1)
    X, centre, scale = rng.normal(size=shape) + 1e6, np.full(shape[1], 1e6), np.arange(1.0, 41)
    results = []
    for f in (gaussian.moved, gaussian.reference_moved):
        A, norms = np.empty(shape, dtype), np.empty(shape[0])
        f(X.astype(np.float64), centre, scale[: shape[1]], A, norms)
        results.append((A, norms))
    for ours, plain in zip(*results, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-6 if dtype == np.float32 else 1e-12)
    norms = np.empty(shape[0])
    gaussian.squares(results[0][0], norms)
    np.testing.assert_allclose(norms, results[0][1], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("density", [0.0, 0.03, 0.5])
@pytest.mark.parametrize(("n", "m", "d"), [(300, 301, 60), (700, 120, 7)])
def test_sparse_rows(dtype, density, n, m, d):
    rng = np.random.default_rng(3)
    X, Z = (
        sp.random_array((r, d), density=density, random_state=rng, dtype=dtype).tocsr()
        for r in (n, m)
    )
    left, right = (RowsWithNorms.sparse(rows, 1.0) for rows in (X, Z))
    P, S = np.full((n - 5, m), np.nan), np.full((n, n), np.nan)
    GaussianPairs(left, right, 0.5)._products(slice(5, n), slice(0, m), P, half=False)
    expected = gaussian.reference_sparse_products(X.astype(float), Z.astype(float))[5:]
    np.testing.assert_allclose(P, expected, rtol=1e-12)
    GaussianPairs(left, left, 0.5)._products(slice(0, n), slice(0, n), S, half=True)
    expected = gaussian.reference_sparse_products(left.A, left.A)
    np.testing.assert_allclose(S, np.triu(expected), rtol=1e-12)  # what is below stays zero
    for k in (Gaussian(0.8), Gaussian(tuple(rng.uniform(1, 2, d)))):
        assert k.fast(*k.tables(X, Z)) is not None
        np.testing.assert_allclose(k(X, Z), k(X.toarray(), Z.toarray()), atol=DIGITS[dtype])
        np.testing.assert_allclose(k(X), k(X.toarray()), atol=DIGITS[dtype])
        v = rng.normal(size=n).astype(dtype)
        np.testing.assert_allclose(
            KernelOperator(k, X) @ v, k(X.toarray()) @ v, atol=n * DIGITS[dtype]
        )


def plainly(X, Z, bandwidth):
    b = np.broadcast_to(bandwidth, X.shape[1:])
    D = [np.square((x.astype(np.float64) - Z.astype(np.float64)) / b).sum(1) for x in X]
    return np.exp(-np.array(D) / 2)


def hard(kind, n, d, rng):
    X = rng.normal(size=(n, d))
    match kind:
        case "offset":
            return X + 1e6
        case "duplicates":
            return X[rng.integers(0, 5, n)]
        case "near":
            return X[rng.integers(0, 5, n)] + 1e-7 * rng.normal(size=(n, d))
        case "line":
            return np.outer(np.linspace(-1, 1, n), np.ones(d))
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "offset", "duplicates", "near", "line"])
@pytest.mark.parametrize("bandwidth", [1.5, 0.01, "columns"])
@pytest.mark.parametrize(
    ("n", "m", "d"), [(601, 130, 1), (530, 301, 9), (270, 290, 300), (140, 130, 1000)]
)
def test_matrices_on_hard_rows(dtype, kind, bandwidth, n, m, d):
    rng = np.random.default_rng([n, d])
    X, Z = (hard(kind, rows, d, rng).astype(dtype) for rows in (n, m))
    b = tuple(rng.uniform(1, 3, d)) if bandwidth == "columns" else bandwidth
    k, v = Gaussian(b), rng.normal(size=m).astype(dtype)
    K, plain = k(X, Z), plainly(X, Z, b)
    S, square = k(X), plainly(X, X, b)
    # as precise as the formula read by tiles: products of equal columns are rounded one way
    off, own = allowed(k, X, Z, plain), allowed(k, X, X, square)
    assert K.dtype == dtype
    np.testing.assert_allclose(K, plain, atol=off)
    np.testing.assert_allclose(KernelOperator(k, X, Z) @ v, plain @ v, atol=m * off)
    np.testing.assert_allclose(S, square, atol=own)
    np.testing.assert_array_equal(np.diag(S), 1)
    np.testing.assert_array_equal(S, S.T)
    w = rng.normal(size=n).astype(dtype)
    np.testing.assert_allclose(KernelOperator(k, X) @ w, square @ w, atol=n * own)


def allowed(k, X, Z, plain):
    """Twice the error of the formula over tiles in the same precision, or the digits of one."""
    return max(DIGITS[X.dtype.type], 2 * np.abs((1.0 * k)(X, Z) - plain).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "q"), [(257, 3, 1), (700, 9, 2), (1200, 200, 7)])
def test_of_rows_with_themselves_one_half_is_read(monkeypatch, dtype, n, d, q):
    fill, halves = GaussianPairs.fill, []

    def poisoned(self, rows, cols, out, row, col, room, half=False):
        out[row : row + rows.stop - rows.start, col : col + cols.stop - cols.start] = np.nan
        fill(self, rows, cols, out, row, col, room, half)
        halves.append(half)

    rng = np.random.default_rng(n)
    X, V = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(n, q)).astype(dtype)
    k = Gaussian(np.sqrt(d))
    monkeypatch.setattr(GaussianPairs, "fill", poisoned)
    K, found = plainly(X, X, k.bandwidth), KernelOperator(k, X) @ V
    assert any(halves)
    np.testing.assert_allclose(found, K @ V, atol=n * DIGITS[dtype])
    halves.clear()
    stored, T = StoredOperator(k, X), KernelOperator(k, X, X.copy()) @ V
    assert not any(halves)
    np.testing.assert_allclose(stored @ V, K @ V, atol=n * DIGITS[dtype])
    np.testing.assert_allclose(T, K @ V, atol=n * DIGITS[dtype])


def test_which_rows_have_loops_of_their_own():
    X = np.random.default_rng(0).normal(size=(600, 4))
    k, few = Gaussian(2.0), np.ones((3, 4))
    tables = k.tables(X)
    assert isinstance(k.fast(*tables), GaussianPairs)
    assert k.fast(*k.tables(few)) is None  # so few are taken plainly
    assert Gaussian(1e-9).fast(*tables) is None  # digits would be lost
    assert (k + 1).fast(*tables) is None

    class Other(Gaussian):
        def on(self, p):
            return p.xp.exp(-p.sqdist(self.bandwidth))

    assert Other(2.0).fast(*tables) is None
    np.testing.assert_allclose(Other(2.0)(X), k(X) ** 2)


@pytest.mark.parametrize("n", [700, 1025])
def test_products_do_not_depend_on_threads(n):
    from mercer.ops.threads import limit

    X = np.random.default_rng(0).normal(size=(n, 6))
    found = []
    for threads in (1, 3):
        with limit(threads):
            found.append(KernelOperator(Gaussian(2.0), X) @ X)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("size", [1e-25, 1e25])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_whose_squares_float32_does_not_hold(size, sparse):
    X = np.random.default_rng(0).normal(size=(300, 5))
    A = (X * size).astype(np.float32)
    K = Gaussian(1.5 * size)(sp.csr_array(A) if sparse else A)
    np.testing.assert_allclose(K, plainly(X, X, 1.5), atol=DIGITS[np.float32])
