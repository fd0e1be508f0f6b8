"""Operators that are read by tiles: blocks, products and rows kept are those of the kernel."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Table
from mercer.kernels import Constant, Gaussian, Linear, Polynomial
from mercer.operators import AboutOperator, CentredOperator, KernelOperator, TileOperator
from mercer.operators.cache import RowCache
from mercer.operators.exact import exact
from mercer.operators.products import times
from mercer.operators.tiles import TILE_COLUMNS


@pytest.mark.parametrize(
    "kernel",
    [Gaussian(0.7), Gaussian((1.0, 2.0, 0.5)), Linear(), Constant() + Polynomial(2)],
    ids=repr,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_products_are_those_of_the_kernel(kernel, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * TILE_COLUMNS + 11, 3)) + 3
    K, rows = kernel(X), TileOperator(kernel, Table(X.astype(dtype)), dtype)
    tol = 1e-4 if dtype == np.float32 else 1e-12
    i, j = rng.permutation(len(X))[:40], rng.permutation(len(X))[:300]
    np.testing.assert_allclose(rows.block(i, j), K[np.ix_(i, j)], rtol=tol, atol=tol)
    G, delta, columns = np.zeros(len(X)), rng.normal(size=40), RowCache(rows, 1e8)
    for _ in range(2):  # computed, then kept
        columns.add(G, i, delta)
    np.testing.assert_allclose(G, 2 * K[:, i] @ delta, rtol=1e-4, atol=100 * tol)
    assert columns.made == 40
    keep = rng.random(len(X)) < 0.4
    part, some = columns.only(keep), np.zeros(keep.sum())
    part.add(some, i, delta)
    np.testing.assert_allclose(some, G[keep] / 2, rtol=1e-4, atol=100 * tol)
    np.testing.assert_allclose(
        times(kernel, Table(X[:99].astype(dtype)), X.astype(dtype)[i], delta[:, None])[:, 0],
        K[:99, i] @ delta,
        rtol=1e-4,
        atol=100 * tol,
    )


def test_too_large_values_are_refused():
    with pytest.raises(ValueError, match="scale the columns"):
        TileOperator(Linear(), Table(np.full((3, 2), 1e80)))
    with pytest.raises(ValueError, match="scale the columns"):
        TileOperator(Polynomial(3), Table(np.full((3, 2), 1e10, np.float32)))
    assert (
        TileOperator(Linear(), Table(np.full((3, 2), 1e10, np.float32)), np.float32).dtype
        == np.float64
    )


def rows(n=300, offset=0.0, seed=0):
    return Table(np.random.default_rng(seed).normal(size=(n, 3)) + offset)


OPERATORS = {
    "tiles": lambda: (TileOperator(Gaussian(), rows()), Gaussian()(rows().data)),
    "float32": lambda: (
        TileOperator(Gaussian(), rows().astype(np.float32), np.float32),
        Gaussian()(rows().data),
    ),
    "about": lambda: (
        TileOperator(Linear(), rows(offset=50.0)).balanced(),
        centred(rows(offset=50.0).data),
    ),
    "given": lambda: (CentredOperator(Gaussian()(rows().data)), Gaussian()(rows().data)),
    "centred": lambda: (
        CentredOperator(Gaussian()(rows().data) + 9.0).balanced(),
        without_means(Gaussian()(rows().data)),
    ),
}


def centred(X):
    return (X - X.mean(0)) @ (X - X.mean(0)).T


def without_means(K):
    return K - K.mean(0) - K.mean(1)[:, None] + K.mean()


@pytest.mark.parametrize("name", OPERATORS)
def test_one_protocol(name):
    op, K = OPERATORS[name]()
    tol = dict(rtol=1e-4, atol=1e-4) if op.dtype == np.float32 else dict(rtol=1e-9, atol=1e-9)
    V, i, j = np.random.default_rng(1).normal(size=(300, 2)), np.array([7, 3, 299]), slice(10, 20)
    assert op.shape == (300, 300)
    np.testing.assert_allclose(op.block(), K, **tol)
    np.testing.assert_allclose(op.block(i, j), K[i][:, j], **tol)
    np.testing.assert_allclose(op.diag(), np.diag(K), **tol)
    np.testing.assert_allclose(
        op @ V, K @ V, rtol=1e-3, atol=1e-3 if op.dtype == np.float32 else 1e-8
    )
    np.testing.assert_array_equal((op @ V[:, 0]).shape, (300,))
    np.testing.assert_allclose(op.restrict(i).block(), K[np.ix_(i, i)], **tol)
    np.testing.assert_allclose(op.astype(np.float32).block(i), K[i], rtol=1e-4, atol=1e-4)
    assert op.wide.dtype == np.float64
    assert op.wide.wide is op.wide


def test_products_need_as_many_rows_as_columns():
    with pytest.raises(ValueError, match="V must have 300 rows"):
        TileOperator(Gaussian(), rows()) @ np.ones(4)


def test_operators_of_two_sets_of_rows():
    X, Z, k = rows(40), rows(30, seed=3), Gaussian(0.8)
    op = TileOperator(k, X, Z=Z)
    np.testing.assert_allclose(op.block(), k(X.data, Z.data), rtol=1e-9)
    np.testing.assert_allclose(op @ np.ones(30), k(X.data, Z.data).sum(1), rtol=1e-9)
    np.testing.assert_allclose(
        op.restrict([1, 2], [5]).block(), k(X.data, Z.data)[[1, 2]][:, [5]], rtol=1e-9
    )
    np.testing.assert_allclose(
        TileOperator(k, X).restrict([1, 2], [5]).block(), k(X.data)[[1, 2]][:, [5]], rtol=1e-9
    )
    about = TileOperator(Linear(), rows(40, 50.0)).balanced()
    assert isinstance(about, AboutOperator)
    np.testing.assert_allclose(
        about.restrict([1, 2], [5]).block(), about.block([1, 2], [5]), rtol=1e-9
    )
    for alone in (op, about.restrict([1], [5])):
        with pytest.raises(ValueError, match="diag is that of rows with themselves"):
            alone.diag()
    with pytest.raises(ValueError, match="take a block"):
        CentredOperator(k(X.data)).restrict([1], [2])


def test_pullbacks_are_those_of_the_kernel():
    k, X = Gaussian(1.5) + Linear(), rows(60)
    U, V = np.random.default_rng(0).normal(size=(2, 60, 2))
    np.testing.assert_allclose(
        TileOperator(k, X).pullback(U, V), KernelOperator(k, X).pullback(U, V)
    )
    assert CentredOperator(k(X.data)).pullback(U, V).shape == (0,)
    far = rows(60, 50.0)
    about, zero = (
        TileOperator(Polynomial(2, bias=9.0), far).balanced(),
        [W - W.mean(0) for W in (U, V)],
    )
    assert isinstance(about, AboutOperator)
    expected = KernelOperator(Polynomial(2, bias=9.0), far).pullback(*zero)
    np.testing.assert_allclose(
        about.pullback(*zero), expected, rtol=1e-6
    )  # weights that sum to zero see no point


@pytest.mark.parametrize("density", [0.0, 0.03, 0.3])
def test_exact_values_are_those_of_the_sparse_rows_that_were_given(density):
    rng = np.random.default_rng(5)
    S = sp.random_array((90, 40), density=density, random_state=rng, format="csr")
    given, X = Table(S), Table(S.toarray())
    op = TileOperator(Gaussian(1.3), X, np.float32, given=given)
    rows, cols, some = np.array([3, 44, 0]), np.arange(2, 45), np.arange(0, 90, 2)
    K, at = Gaussian(1.3)(X), np.array([2, 0])
    within, between = op.restrict(some), op.restrict(some, rows)
    for found, expected in (
        (exact(op, rows, cols), K[np.ix_(rows, cols)]),
        (exact(op.astype(np.float64), rows, cols), K[np.ix_(rows, cols)]),
        (exact(within, rows, cols), K[np.ix_(some[rows], some[cols])]),
        (exact(between, rows, at), K[np.ix_(some[rows], rows[at])]),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert op.astype(np.float64).given is given
    assert between.given is None


@pytest.mark.parametrize("bandwidth", [1e-320, 1e-170, 1e-9, 1e160])
def test_exact_values_of_bandwidths_whose_squares_have_no_digits(bandwidth):
    X = np.array([[0.0], [0.0], [3 * bandwidth]])
    K = exact(TileOperator(Gaussian(bandwidth), Table(X)), np.arange(2), np.arange(3))
    assert np.allclose(K, [[1, 1, np.exp(-4.5)]] * 2, rtol=1e-3)
