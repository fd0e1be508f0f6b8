"""Gradients of functions over many columns, and their mean outer product: those of every pair, in
one pass, whatever the cuts."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Table
from mercer.kernels import ArcCosine, Constant, Gaussian, Laplace, Linear, Matern, Polynomial
from mercer.operators import KernelOperator, StoredOperator, TileOperator, gradients
from mercer.ops import threads, tiles
from tests.market import COLUMNS, KERNELS, WITH_FUNCTIONS, rows

SMOOTH = [name for name in KERNELS if name not in WITH_FUNCTIONS]
rng = np.random.default_rng(0)


def explicit(k, X, Z, A):
    return np.einsum("ijk,jt->itk", k.input_gradient(X, Z), A)


def close(found, expected, tolerance=1e-9):
    assert found.shape == expected.shape
    size = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(found, expected, atol=tolerance * size, rtol=0)


@pytest.fixture
def small_cuts(monkeypatch):
    """Pieces of few rows, columns and outputs, so that small sets have many."""
    monkeypatch.setattr(tiles, "TILE_ROWS", 8)
    monkeypatch.setattr(tiles, "columns", lambda itemsize: 9)
    monkeypatch.setattr(gradients, "LEAST_ROWS", 5)
    monkeypatch.setattr(gradients, "SUM_BYTES", 3 * 5 * 8 * COLUMNS)


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_sums_over_pairs_however_they_are_cut(name, small_cuts):
    k, X, Z, A = KERNELS[name], rows(19), rows(23, seed=1), rng.normal(size=(23, 4))
    G = explicit(k, X, Z, A)
    close(k.operator(X, Z).input_gradients(A), G)
    close(k.operator(X, Z).input_gradients(A[:, 0], rows=[3, 3, 1]), G[[3, 3, 1], :1])
    close(k.operator(X).input_gradients(A[:19]), explicit(k, X, X, A[:19]))


@pytest.mark.parametrize("name", SMOOTH)
def test_outer_products_are_those_of_the_gradients(name):
    k, X, Z, A = KERNELS[name], rows(19), rows(23, seed=1), rng.normal(size=(23, 4))
    K, G = k.operator(X, Z), explicit(k, X, Z, A)
    M = np.einsum("itj,itk->jk", G, G) / 19
    close(K.gradient_outer_product(A), M)
    close(K.gradient_outer_product(A, diagonal=True), np.diag(M))
    some = np.arange(19) % 3 == 0
    close(
        K.gradient_outer_product(A[:, 1], some),
        np.einsum("ij,ik->jk", G[some, 1], G[some, 1]) / some.sum(),
    )


def test_the_outer_product_does_not_change_when_outputs_are_rotated():
    X, A = rng.normal(size=(60, 4)), rng.normal(size=(60, 5))
    K, Q = Laplace(norm=1).operator(X), np.linalg.qr(rng.normal(size=(5, 5)))[0]
    close(K.gradient_outer_product(A @ Q), K.gradient_outer_product(A), 1e-12)


def test_cuts_change_rounding_only(small_cuts, monkeypatch):
    X, A = rng.normal(size=(30, COLUMNS)), rng.normal(size=(30, 4))
    K = Matern(nu=1.5).operator(X)
    cut = K.gradient_outer_product(A), K.input_gradients(A)
    monkeypatch.undo()
    for a, b in zip(cut, (K.gradient_outer_product(A), K.input_gradients(A)), strict=True):
        close(a, b, 1e-13)


@pytest.mark.parametrize("k", [Gaussian(), Laplace(norm=1), ArcCosine(1)], ids=repr)
def test_the_same_bits_for_any_number_of_threads(k):
    X, A = rng.normal(size=(700, 3)), rng.normal(size=(700, 2))
    X[:, 0] = X[:, 0] > 0
    K, found = k.operator(X), []
    for n in (1, 3):
        with threads.limit(n):
            found.append((K.input_gradients(A), K.gradient_outer_product(A)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("k", [Gaussian(2.0), Laplace(norm=1), Laplace(4.0)], ids=repr)
def test_no_array_of_pairs_and_columns(k):
    """(n, m, d) of the 200 rows would take 80 MB."""
    X = rng.normal(size=(2000, 25))
    X[:, :5] = X[:, :5] > 0
    K, A = k.operator(X[:2000], X.copy()), rng.normal(size=(2000, 160))
    with threads.limit(2):
        K.gradient_outer_product(A[:, :1], rows=slice(10))
        tracemalloc.start()
        try:
            for few, diagonal in ((slice(1), False), (slice(None), True)):
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                K.gradient_outer_product(A[:, few], slice(200), diagonal)
                assert tracemalloc.get_traced_memory()[1] - before < 60e6
        finally:
            tracemalloc.stop()


def test_hostile_rows():
    for X in (
        np.ones((5, 3)),
        rng.normal(size=(1, 3)),
        rng.normal(size=(2, 40)),
        np.repeat(rng.normal(size=(4, 3)), 3, axis=0) + 1e6,
        np.linspace(0, 1, 12)[:, None] * np.ones(3),
    ):
        for k in (Gaussian(), Laplace(), Laplace(norm=1), Polynomial(2), Matern(nu=0.7)):
            A = rng.normal(size=(len(X), 2))
            K, G = k.operator(X), explicit(k, X, X, A)
            close(K.input_gradients(A), G, 1e-8)
            close(K.gradient_outer_product(A), np.einsum("itj,itk->jk", G, G) / len(X), 1e-8)


@pytest.mark.parametrize("k", [Gaussian(), Laplace(norm=1), Linear() + Laplace()], ids=repr)
def test_float32_rows(k):
    X, A = rng.normal(size=(300, 4)).astype(np.float32), rng.normal(size=(300, 2))
    G = k.operator(X.astype(np.float64)).input_gradients(A)
    found = k.operator(X).input_gradients(A.astype(np.float32))
    assert found.dtype == np.float32
    close(found, G, 1e-4)
    M = k.operator(X).gradient_outer_product(A.astype(np.float32))
    assert M.dtype == np.float64
    close(M, np.einsum("itj,itk->jk", G, G) / 300, 1e-4)


def test_sparse_rows_are_made_dense_in_blocks():
    X = sp.random_array((80, 6), density=0.3, random_state=rng, format="csr")
    A = rng.normal(size=(80, 2))
    for k in (Gaussian(), Laplace(norm=1), Polynomial(2)):
        dense = k.operator(X.toarray())
        close(k.operator(X).input_gradients(A), dense.input_gradients(A), 1e-12)
        close(k.operator(X).gradient_outer_product(A), dense.gradient_outer_product(A), 1e-12)
        close(k.input_gradient(X[:5]), k.input_gradient(X[:5].toarray()), 1e-12)


def test_siblings_agree():
    X, A = rng.normal(size=(50, 3)) + 5, rng.normal(size=(50, 2))
    k = Linear() + Gaussian(2.0)
    plain, t = KernelOperator(k, X), Table(X)
    for K in (StoredOperator(k, X), TileOperator(k, t), TileOperator(k, t, Z=t)):
        close(K.input_gradients(A, [1, 7]), plain.input_gradients(A, [1, 7]), 1e-12)
        close(K.gradient_outer_product(A), plain.gradient_outer_product(A), 1e-12)
    about = TileOperator(k, t).balanced()
    assert type(about).__name__ == "AboutOperator"
    p = about._about.p[None]
    expected = plain.input_gradients(A) - k.operator(X, p).input_gradients(A.sum(0)[None])
    close(about.input_gradients(A), expected, 1e-10)
    close(about.gradient_outer_product(A, diagonal=True), (expected**2).sum(1).mean(0), 1e-10)


def test_refusals_are_sentences():
    X = rng.normal(size=(5, 2))
    K = Gaussian().operator(X)
    with pytest.raises(ValueError, match=r"A must be numbers of shape \(5,\) or \(5, t\)"):
        K.input_gradients(np.ones(4))
    with pytest.raises(ValueError, match="rows chooses none"):
        K.gradient_outer_product(np.ones(5), rows=[])
    with pytest.raises(ValueError, match="near must be a number >= 0"):
        K.gradient_outer_product(np.ones(5), near=-1.0)
    with pytest.raises(ValueError, match="items have no derivative"):
        Constant().operator(["a", "b"]).input_gradients(np.ones(2))
    with pytest.raises(ValueError, match=r"warped\(square\) has no derivative"):
        Gaussian().warped(np.square).operator(X).input_gradients(np.ones(5))


def test_no_columns_have_no_slope():
    K = Gaussian().operator(Table(np.ones((2, 3))), Table(np.ones((0, 3))))
    np.testing.assert_array_equal(K.input_gradients(np.ones((0, 4))), np.zeros((2, 4, 3)))


def test_ties_of_mapped_rows_far_from_zero():
    """Equal differences are equal however far from zero the rows are."""
    X = np.array([[0.1, 0.2], [0.1, 0.7], [0.3, 0.2]]) + 1e6
    X[:, 0] = X[0, 0]
    K = Laplace(norm=1).mapped([[0.3, 0.0], [0.0, 0.7]]).operator(X)
    assert (K.input_gradients(rng.normal(size=3))[..., 0] == 0).all()


@pytest.mark.parametrize("norm", [1, 2])
def test_near_pairs_have_no_slope_where_asked(norm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[15:] = X[:15] + 1e-9 * rng.normal(size=(15, 3))
    k = Laplace(1.0, norm=norm, exponent=0.7)
    a = np.repeat([[1.0], [-1.0]], 15, axis=0)  # of a copy the opposite: next to nothing is left
    rough, smooth = (k.operator(X).gradient_outer_product(a, near=near) for near in (0.0, 0.1))
    assert np.abs(smooth).max() < 1e-3 * np.abs(rough).max()
