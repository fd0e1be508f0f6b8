"""A Gram matrix that was given: the operator protocol over values that nobody computes again, dense
or CSR."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Table
from mercer.kernels import Callable, Gaussian, Linear
from mercer.operators import KernelOperator
from mercer.operators.products import given_scores, scores
from mercer.operators.stored import GivenOperator, StoredOperator
from tests.market import rows

K = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 0.0, 4.0]])


@pytest.mark.parametrize("made", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_given_values_are_read_like_a_kernels(made, dtype):
    op = GivenOperator(made(K.astype(dtype)))
    assert (op.shape, op.dtype) == ((3, 3), dtype)
    np.testing.assert_array_equal(op @ np.arange(3.0), K @ np.arange(3.0))
    np.testing.assert_array_equal(op.diag(), K.diagonal())
    for block in (op.block([2, 0], slice(1, 3)), op.restrict([2, 0], slice(1, 3)).block()):
        assert type(block) is np.ndarray
        assert block.dtype == dtype
        np.testing.assert_array_equal(block, K[[2, 0], 1:3])
    assert op.astype(np.float64) is op  # as precise as it is
    assert op.pullback(K, K).shape == (0,)


@pytest.mark.parametrize("made", [np.asarray, np.asfortranarray, sp.csr_array])
def test_blocks_are_copies_of_any_rows_and_columns(made):
    op, full = GivenOperator(made(K)), np.arange(3)
    some = (slice(None), slice(1, 3), [2, 0], np.array([True, False, True]), np.array([1]), 2)
    for at in some:
        for cols in some:
            block = op.block(at, cols)
            i, j = np.atleast_1d(full[at]), np.atleast_1d(full[cols])
            np.testing.assert_array_equal(block, K[np.ix_(i, j)])
            block[:] = -1.0  # the matrix that was given stays as it is
            np.testing.assert_array_equal(op @ np.eye(3), K)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("made", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_scores_of_a_given_matrix_are_those_of_its_kernel(made, balanced):
    rng = np.random.default_rng(0)
    X, Z, coef = rng.normal(size=(300, 3)), rng.normal(size=(40, 3)), rng.normal(size=(2, 25))
    vectors, parts = rng.permutation(40)[:25], [(slice(0, 25), [0, 1], coef)]
    coef -= coef.mean(1, keepdims=True)
    given = given_scores(made(Gaussian()(X, Z)), vectors, parts, 2, balanced=balanced)
    expected = scores(Gaussian(), Table(X), Z[vectors], parts, 2, balanced=balanced)
    np.testing.assert_allclose(given, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("n", [1, 70, 1100])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_kept_triangle_is_the_operator_that_it_keeps(n, dtype):
    k, X = 2 * Gaussian(1.5) + Linear(), rows(max(n, 2))[:n].astype(dtype)
    kept, computed = StoredOperator(k, X), KernelOperator(k, X)
    V = np.random.default_rng(0).normal(size=(n, 2)).astype(dtype)
    for W in (V, V[:, 0]):
        np.testing.assert_array_equal(kept @ W, computed @ W)
    np.testing.assert_array_equal(kept.pullback(V, V), computed.pullback(V, V))
    np.testing.assert_array_equal(kept.diag(), computed.diag())
    np.testing.assert_array_equal(kept.block([0], slice(None)), computed.block([0], slice(None)))
    np.testing.assert_array_equal(kept.restrict([0]) @ V[:1], computed.restrict([0]) @ V[:1])
    assert kept.astype(dtype) is kept
    assert kept.astype(np.float64).dtype == np.float64
    assert (kept.shape, kept.dtype, kept.T) == (computed.shape, dtype, kept)
    assert repr(kept).startswith("StoredOperator(")


def test_products_do_not_compute_a_kept_triangle_again():
    calls = []
    k = Callable(lambda X, Z: calls.append(1) or X @ Z.T)
    K, X = StoredOperator(k, rows(1100)), rows(1100)
    made = len(calls)
    np.testing.assert_allclose(K @ np.ones(1100), X @ X.sum(0), rtol=1e-9, atol=1e-9)
    assert made
    assert len(calls) == made


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ValueError, match="two dimensions"):
        GivenOperator(np.ones(3))
