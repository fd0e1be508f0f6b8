import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mercer.kernels import Callable, Cauchy, Gaussian, Laplace, Linear, Matern, Periodic, Polynomial
from mercer.operators import KernelOperator, kernel
from mercer.ops import threads, tiles
from tests.market import KERNELS, rows, trees

rng = np.random.default_rng(0)
V = rng.normal(size=(1100, 3))
SOME = (
    "of the design",
    "gaussian ard",
    "laplace 1-norm",
    "matern 3/2",
    "normalized",
    "columns",
    "weighted",
    "warped",
    "callable",
)


@pytest.mark.parametrize("name", [*SOME, "constant"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_products_equal_those_of_the_matrix(name, dtype):
    k, X, Z = KERNELS[name], rows(1100).astype(dtype), rows(700, seed=1).astype(dtype)
    rtol = 1e-4 if dtype == "f4" else 1e-9
    for K, full in ((KernelOperator(k, X), k(X)), (KernelOperator(k, X, Z), k(X, Z))):
        v = V[: K.shape[1]].astype(dtype)
        for w in (v, v[:, 0], v[:, :0]):
            out = K @ w
            assert out.shape == (full @ w).shape
            assert out.dtype == dtype
            np.testing.assert_allclose(
                out, full @ w, rtol=rtol, atol=rtol * max(np.abs(full @ v).max(), 1)
            )
        np.testing.assert_allclose(K.block(slice(0, 5)), full[:5], rtol=rtol, atol=1e-6)
    np.testing.assert_allclose(KernelOperator(k, X).diag(), np.diag(k(X)), rtol=rtol)


def test_without_the_symmetric_way(monkeypatch):
    X = rows(1100)
    halved = KernelOperator(Matern(), X) @ V
    monkeypatch.setattr(kernel, "LANE_BYTES", 0)
    np.testing.assert_allclose(KernelOperator(Matern(), X) @ V, halved, rtol=1e-10, atol=1e-10)


def test_surface():
    X, Z = rows(30), rows(20, seed=1)
    K = Gaussian().operator(X, Z)
    assert (K.shape, K.dtype) == ((30, 20), np.float64)
    np.testing.assert_allclose(K.T @ V[:30], Gaussian()(Z, X) @ V[:30])
    np.testing.assert_allclose(K.block([3, 5], slice(2, 4)), Gaussian()(X[[3, 5]], Z[2:4]))
    np.testing.assert_allclose(K.block(4, 7), Gaussian()(X[[4]], Z[[7]]))
    np.testing.assert_allclose(K.block(np.arange(30) % 2 == 0), Gaussian()(X[::2], Z))
    np.testing.assert_allclose(
        KernelOperator(Gaussian(), X[:20], Z).diag(), np.diag(Gaussian()(X[:20], Z))
    )
    assert repr(K) == "KernelOperator(Gaussian(), shape=(30, 20), dtype=float64)"
    with pytest.raises(ValueError, match="diag needs as many rows as columns"):
        K.diag()
    with pytest.raises(
        ValueError, match=r"V must be numbers of shape \(20,\) or \(20, q\), got shape \(30, 3\)"
    ):
        K @ V[:30]
    with pytest.raises(ValueError, match="U and V must have as many columns"):
        K.pullback(V[:30], V[:20, 0])


def test_lists_of_items():
    words = ["tree", "three", "two"] * 3
    k = Callable(lambda A, B: np.array([[len(set(a) & set(b)) for b in B] for a in A], float))
    np.testing.assert_allclose(KernelOperator(k, words) @ np.ones(9), k(words).sum(1))


@pytest.mark.parametrize(
    "k", [Gaussian(), Polynomial(2), Laplace(norm=1), Matern(), Periodic()], ids=repr
)
def test_sparse_rows(k):
    A = sp.random_array((800, 50), density=0.1, random_state=np.random.default_rng(0)).tocsr()
    np.testing.assert_allclose(
        KernelOperator(k, A) @ V[:800], k(A.toarray()) @ V[:800], rtol=1e-6, atol=1e-6
    )


@given(trees, st.integers(1, 2))
def test_pullback_is_the_gradient_of_the_bilinear_form(k, q):
    X, Z, U, W = rows(9), rows(6, seed=1), rng.normal(size=(9, q)), rng.normal(size=(6, q))
    K = KernelOperator(k, X, Z)
    np.testing.assert_allclose(K.pullback(U, W), k.gradient(X, U @ W.T, Z), rtol=1e-9, atol=1e-9)


def test_pullback_over_many_tiles():
    X, u, v = rows(1100), rng.normal(size=1100), rng.normal(size=1100)
    k = 0.5 * Gaussian((0.5, 1.0, 2.0)) + Matern()
    np.testing.assert_allclose(
        KernelOperator(k, X).pullback(u, v), k.gradient(X, np.outer(u, v)), rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize(
    "k", [Gaussian(), Matern(), Laplace(), Laplace(norm=1), Cauchy()], ids=repr
)
@pytest.mark.parametrize(
    ("offset", "spread"),
    [(1e4, 1.0), (0.0, 1.0), (1e6, 1.0), (1e2, 1e-3), (0.0, 1e-4), (3e4, 10.0)],
)
def test_float32_keeps_its_digits_at_any_offset(k, offset, spread):
    """Two clusters, at +offset and -offset in every column: centring alone cannot help."""
    X = (
        np.repeat([[1.0], [-1.0]], 300, axis=0) * offset + spread * rng.normal(size=(600, 6))
    ).astype(np.float32)
    v = rng.normal(size=600).astype(np.float32)
    k = k.clone().set_params(bandwidth=float(spread))
    exact = k(X.astype(np.float64))
    assert np.abs(k(X) - exact).max() < 1e-4
    assert np.abs(k(X[:400], X[200:]) - exact[:400, 200:]).max() < 1e-4
    assert np.abs(KernelOperator(k, X) @ v - exact @ v).max() < 1e-4 * np.abs(exact @ v).max()


def test_float64_keeps_its_digits_against_plain_differences():
    X = np.repeat([[1.0], [-1.0]], 20, axis=0) * 1e7 + rng.normal(size=(40, 3))
    plain = np.exp(-np.square(X[:, None] - X).sum(-1) / 2)
    np.testing.assert_allclose(Gaussian()(X), plain, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_same_bits_for_any_number_of_threads(dtype):
    X, u, v = rows(1500, 5).astype(dtype), *rng.normal(size=(2, 1500)).astype(dtype)
    K = KernelOperator(0.5 * Gaussian() + Linear() * Polynomial(2) + Matern(), X)
    results = []
    for n in (1, 2, 3, 2):
        with threads.limit(n):
            results.append(
                (K @ v, K.pullback(u, v), K.kernel(X), KernelOperator(K.kernel, X, X.copy()) @ v)
            )
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n", [30_000, 60_000])
def test_memory_does_not_grow_with_n(n):
    """Above input and output; a Gram matrix of 60,000 rows would take 14 GB."""
    X = rng.normal(size=(n, 20)).astype(np.float32)
    K, v = KernelOperator(Gaussian(), X, X[:2000].copy()), rng.normal(size=(2000, 2))
    small = KernelOperator(Matern(), X[:3000])
    K @ v
    tracemalloc.start()
    try:
        for product in (
            lambda: K @ v,
            lambda: K.T @ v.repeat(n // 2000, axis=0),
            lambda: small @ np.ones(3000),
        ):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            out = product()
            assert tracemalloc.get_traced_memory()[1] - before - out.nbytes < 64e6
    finally:
        tracemalloc.stop()


def test_tiles_fit_the_cache():
    for itemsize in (4, 8):
        assert tiles.TILE_ROWS * tiles.columns(itemsize) * itemsize <= tiles.TILE_BYTES
        assert tiles.square(itemsize) ** 2 * itemsize <= tiles.TILE_BYTES


def test_import_works_without_a_folder_for_the_cache(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    env = os.environ | {"NUMBA_CACHE_DIR": str(blocked / "cache"), "HOME": str(blocked)}
    code = "import numpy as np, mercer; print(mercer.kernels.Laplace(norm=1)(np.eye(3)).shape)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "(3, 3)", done.stderr


@pytest.mark.parametrize("case", ["many bandwidths", "wide rows", "wide and rectangular"])
def test_memory_does_not_grow_with_terms_or_columns(case):
    ten = sum(Gaussian(tuple((1 + i + rng.random(20)).tolist())) for i in range(10))
    k, X, Z = {
        "many bandwidths": (
            ten,
            rng.normal(size=(300, 20)).astype("f4"),
            rng.normal(size=(30_000, 20)).astype("f4"),
        ),
        "wide rows": (Gaussian(100.0), rng.normal(size=(400, 10_000)), None),
        "wide and rectangular": (
            Gaussian(100.0),
            rng.normal(size=(400, 10_000)),
            rng.normal(size=(300, 10_000)),
        ),
    }[case]
    K = KernelOperator(k, X, Z)
    u, v = np.ones(K.shape[0], X.dtype), np.ones(K.shape[1], X.dtype)
    tracemalloc.start()
    try:
        for product in (lambda: K @ v, lambda: K.pullback(u, v)):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            product()
            assert tracemalloc.get_traced_memory()[1] - before < 64e6
    finally:
        tracemalloc.stop()


def test_operators_serve_scipys_solvers():
    from scipy.sparse.linalg import aslinearoperator

    K = KernelOperator(Gaussian(), rows(30), rows(20, seed=1))
    A, full = aslinearoperator(K), Gaussian()(rows(30), rows(20, seed=1))
    np.testing.assert_allclose(A @ np.ones(20), full.sum(1))
    np.testing.assert_allclose(A.rmatvec(np.ones(30)), full.sum(0))
    np.testing.assert_allclose(np.ones((2, 30)) @ K, np.ones((2, 30)) @ full)
    assert K.block([]).shape == (0, 20)


def test_wide_rows_take_small_tiles():
    K = KernelOperator(Gaussian(100.0), rng.normal(size=(400, 10_000)))
    assert K._step(256) == 32
    np.testing.assert_allclose(K @ np.ones(400), Gaussian(100.0)(K.X).sum(1), rtol=1e-10)
