"""Factors that grow and shrink, and roots with as much jitter as rounding asks for."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.models.gp.factor import (
    appended,
    inverse,
    put_back,
    reference_put_back,
    removed,
    root,
)


@pytest.mark.parametrize("n", [1, 2, 17])
def test_rotations_are_a_fresh_factor(n):
    rng = np.random.default_rng(n)
    R = np.triu(rng.normal(size=(n, n)) + 3 * np.eye(n))
    R[np.diag_indices(n)] = np.abs(R.diagonal())
    v, plain = rng.normal(size=n), R.copy()
    reference_put_back(plain, v)
    fast = R.copy()
    put_back(fast, v.copy())
    np.testing.assert_allclose(np.triu(fast), np.triu(plain), atol=1e-12)


@pytest.mark.parametrize("index", [[0], [6], [3, 0, 6], [1, 2, 3, 4]], ids=str)
def test_rows_come_and_go(index):
    A = Gaussian()(np.random.default_rng(0).normal(size=(7, 2))) + 0.1 * np.eye(7)
    L = np.asfortranarray(np.linalg.cholesky(A))
    before, keep = L.copy(), np.setdiff1d(np.arange(7), index)
    smaller = removed(L, np.array(index))
    np.testing.assert_allclose(
        np.tril(smaller), np.linalg.cholesky(A[np.ix_(keep, keep)]), atol=1e-12
    )
    np.testing.assert_array_equal(L, before)
    order = np.append(keep, index)
    larger = appended(smaller, A[np.ix_(index, keep)], A[np.ix_(index, index)])
    np.testing.assert_allclose(
        np.tril(larger), np.linalg.cholesky(A[np.ix_(order, order)]), atol=1e-12
    )


def test_a_root_ends():
    np.testing.assert_allclose(
        root(np.ones((3, 3)), 1.0, 1e-14) @ root(np.ones((3, 3)), 1.0, 1e-14).T, 1.0, atol=1e-10
    )
    wrong = (
        (-np.eye(2), "not positive semidefinite"),
        (np.full((2, 2), np.nan), "too large"),
        (np.diag([np.inf, 1.0]), "too large"),
    )
    for C, match in wrong:
        with pytest.raises(ValueError, match=match):
            root(C, 1.0, 1e-14)
    with pytest.raises(ValueError, match="too large"), np.errstate(all="ignore"):
        appended(np.eye(1), np.array([[1e200]]), np.array([[np.inf]]))


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130, 257])
def test_the_inverse_by_halves_is_lapacks(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    A = A @ A.T + np.eye(n)
    L = np.asfortranarray(np.linalg.cholesky(A))
    R = inverse(L.copy(order="F"))
    np.testing.assert_allclose(np.tril(R), np.tril(np.linalg.inv(A)), rtol=1e-8, atol=1e-10)
    assert not np.triu(R, 1).any()  # what was zero above stays so
