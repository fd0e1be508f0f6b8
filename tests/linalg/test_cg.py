"""Conjugate gradients: columns that leave when done, refinement, bounded steps."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.linalg.cg import conjugate_gradients, refined
from mercer.linalg.precondition import NoPreconditioner
from mercer.linalg.solvers import CG
from mercer.operators import KernelOperator


def data(n=200, d=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[n // 2] = X[0]  # a duplicate
    X[n // 2 + 1] = X[1] + X[2]
    return X.astype(dtype), rng.normal(size=(n, 3))


def true_residual(kernel, X, ridge, B, x):
    A = kernel(X.astype(np.float64)) + np.diag(ridge)
    return (np.linalg.norm(B - A @ x, axis=0) / np.linalg.norm(B, axis=0)).max()


def test_columns_leave_when_they_are_done():
    A = np.diag(np.linspace(1, 50, 80))
    B = np.random.default_rng(0).normal(size=(80, 3)) * [1, 1e-12, 0]
    widths = []

    def product(P):
        widths.append(P.shape[1])
        return A @ P

    X, steps = conjugate_gradients(product, B, lambda R: R, np.full(3, 1e-10), 500)
    assert widths == [1] * steps
    np.testing.assert_allclose(A @ X[:, 0], B[:, 0], atol=1e-9)


def test_refinement_passes_on_when_a_solver_no_longer_gains():
    A, B = np.diag([1.0, 2.0]), np.ones((2, 1))
    useless = lambda R, goal: (1e3 * R, 1)
    s = refined(lambda V: A @ V, B, [useless, lambda R, goal: (np.linalg.solve(A, R), 1)], 1e-12)
    np.testing.assert_allclose(s.x[:, 0], [1, 0.5])
    assert (s.residual, s.steps) == (0, 2)
    assert refined(lambda V: A @ V, B, [useless], 1e-12).residual == 1  # never worse than nothing


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_refinement_passes_on_from_what_is_no_number(bad):
    A, B = np.diag([1.0, 2.0]), np.array([[1.0, 3.0], [1.0, 2.0]])
    broken = lambda R, goal: (np.linalg.solve(A, R) + np.array([0, bad]), 1)  # of one column
    s = refined(lambda V: A @ V, B, [broken, lambda R, goal: (np.linalg.solve(A, R), 1)], 1e-12)
    np.testing.assert_allclose(s.x, np.linalg.solve(A, B))
    assert (s.residual, s.steps, s.last) == (0, 2, 1)
    s = refined(lambda V: A @ V, B, [broken], 1e-12)
    assert np.isfinite(s.x).all()
    assert s.residual == 1


def test_steps_are_bounded_and_the_residual_says_so():
    X, B = data()
    s = (
        CG(max_steps=3, preconditioner=NoPreconditioner())
        .init(KernelOperator(Gaussian(2.0), X), np.full(200, 1e-6))
        .solve(B)
    )
    assert s.steps <= 3
    assert s.residual > 1e-3
    assert true_residual(Gaussian(2.0), X, np.full(200, 1e-6), B, s.x) == pytest.approx(
        s.residual, rel=1e-6
    )
