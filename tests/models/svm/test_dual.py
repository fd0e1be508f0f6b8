"""Given kernel matrices are read like kernels, and looked at."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.models.svm.dual import certain
from mercer.models.svm.solver import solve
from mercer.operators import CentredOperator, TileOperator
from tests.models.svm.examples import example


def test_a_given_matrix_is_read_like_a_kernel():
    X, problem = example(100)
    K = Gaussian()(X)
    given, own = (
        solve(CentredOperator(K), problem, 1e-6),
        solve(TileOperator(Gaussian(), Table(X)), problem, 1e-6),
    )
    np.testing.assert_allclose(given.b, own.b, atol=1e-9)
    np.testing.assert_array_equal(
        CentredOperator(K).restrict(np.array([3, 1])).K, K[np.ix_([3, 1], [3, 1])]
    )


def test_given_matrices_are_looked_at():
    X, _ = example(80)
    K = Gaussian()(X)
    assert certain(K, bias=False)
    assert certain(K - 1, bias=True)  # duals that sum to zero see no constant
    assert not certain(K - 1, bias=False)
    assert not certain(-K, bias=True)
    K[0, 1] += 0.1
    with pytest.raises(ValueError, match="symmetric"):
        certain(K, bias=True)
