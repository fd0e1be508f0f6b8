"""Plain functions as kernels: of matrices or of rows, which is found out."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.inputs import Table
from mercer.kernels import Callable
from mercer.kernels.defaults import resolve
from mercer.kernels.functions import OfRows


def least(x, z):
    return np.minimum(x, z).sum()


def gauss(x, z):
    return np.exp(-np.sum((x - z) ** 2))


def dots(X, Z):
    return X @ Z.T


def all_least(X, Z):
    return np.minimum(X[:, None], Z).sum(-1)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 3), (3, 2), (5, 1), (5, 5), (9, 3)])
def test_both_are_told_apart_at_every_shape(shape):
    X = np.random.default_rng(0).uniform(size=shape)
    for of_rows, of_all in ((least, all_least), (np.dot, dots), (gauss, None), (np.vdot, dots)):
        plain = np.array([[of_rows(x, z) for z in X] for x in X])
        k = resolve(of_rows, X)
        np.testing.assert_allclose(k(X), plain, rtol=1e-12)
        np.testing.assert_allclose(k.diag(X), np.diag(plain), rtol=1e-12)
        np.testing.assert_allclose(k(X[:1], X), plain[:1], rtol=1e-12)
        if of_all is not None:
            assert resolve(of_all, X) == Callable(of_all)
            np.testing.assert_allclose(resolve(of_all, X)(X), plain, rtol=1e-12)


def test_sparse_rows_are_dense_ones_for_a_function_of_rows():
    X = np.random.default_rng(0).uniform(size=(6, 4))
    X[X < 0.5] = 0
    k = resolve(least, sp.csr_array(X))
    np.testing.assert_allclose(k(sp.csr_array(X)), all_least(X, X))


def test_values():
    X = np.eye(3)
    assert resolve(least, X) == resolve(least, X) == Callable(OfRows(least))
    assert repr(resolve(least, X)) == repr(Callable(least))
    assert resolve(gauss, X.astype(np.float32))(Table(X.astype(np.float32))).dtype == np.float32


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: 1.0, "but it failed on two rows: .* takes 1 positional argument"),
        (lambda x, z: np.ones(3), r"of two rows it gives an array of shape \(3,\)"),
        (lambda X, Z: X, r"of two rows it gives an array of shape \(4,\)"),
    ],
)
def test_what_is_no_kernel_is_said(f, said):
    with pytest.raises(ValueError, match=f"kernel=<lambda> must be a function of two .*{said}"):
        resolve(f, np.ones((5, 4)))
