"""A Gram matrix that was given: the operator protocol over values that nobody computes again, dense
or CSR."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.operators.stored import GivenOperator

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


def test_what_is_no_matrix_is_refused():
    with pytest.raises(ValueError, match="two dimensions"):
        GivenOperator(np.ones(3))
