"""Solvers of K + diag(ridge): the stated residual is the true one and is met, from tiny to huge
penalties, in float32 too."""

import numpy as np
import pytest

from mercer.kernels import Callable, Gaussian, Laplace, Linear, Matern
from mercer.linalg import solvers
from mercer.linalg.cg import System
from mercer.linalg.cholesky import Cholesky
from mercer.linalg.precondition import NoPreconditioner, RPCholesky
from mercer.linalg.solvers import CG, AutoSolver
from mercer.operators import KernelOperator
from mercer.operators.stored import GivenOperator, StoredOperator

KERNELS = {
    "gaussian": Gaussian(2.0),
    "laplace": Laplace(3.0),
    "sum": 0.5 * Matern(2.0, nu=2.5) + Linear(),
    "scaled": 1e6 * Gaussian(2.0),
}


def data(n=200, d=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[n // 2] = X[0]  # a duplicate
    X[n // 2 + 1] = X[1] + X[2]
    return X.astype(dtype), rng.normal(size=(n, 3))


def true_residual(kernel, X, ridge, B, x):
    A = kernel(X.astype(np.float64)) + np.diag(ridge)
    return (np.linalg.norm(B - A @ x, axis=0) / np.linalg.norm(B, axis=0)).max()


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize(
    "solver", [Cholesky(), CG(), CG(tol=1e-9)], ids=["cholesky", "cg", "cg 1e-9"]
)
def test_the_stated_residual_is_true_and_met(name, alpha, solver):
    X, B = data()
    ridge = alpha * np.random.default_rng(1).uniform(0.5, 2, size=len(X))
    s = solver.init(KernelOperator(KERNELS[name], X), ridge).solve(B)
    found = true_residual(KERNELS[name], X, ridge, B, s.x)
    rounding = (
        np.finfo(float).eps * len(X) * KERNELS[name].diag(X).max() / ridge.min()
    )  # of K, below which nothing can be met
    assert found == pytest.approx(s.residual, rel=1e-3, abs=1e-12 + 10 * rounding)
    assert found <= max(solver.tol, 10 * rounding)
    left = B - (KERNELS[name](X) + np.diag(ridge)) @ s.x
    np.testing.assert_allclose(s.remainder, left, atol=(1e-12 + 10 * rounding) * np.linalg.norm(B))


@pytest.mark.parametrize(
    ("solver", "alpha"),
    [
        (Cholesky(), 1e-6),
        (Cholesky(), 1e2),
        (CG(), 1e-6),
        (CG(), 1e-2),
        (CG(), 1e2),
        (Cholesky(dtype="float32", tol=1e-6), 1e-2),
        (Cholesky(dtype="float32", tol=1e-6), 1e2),
    ],
    ids=lambda p: f"{p:g}" if isinstance(p, float) else type(p).__name__ + getattr(p, "dtype", ""),
)
def test_float32_rows_are_solved_as_float64_would(solver, alpha):
    X, B = data(dtype=np.float32)
    s = solver.init(KernelOperator(Gaussian(2.0), X), np.full(len(X), alpha)).solve(B)
    assert true_residual(Gaussian(2.0), X, np.full(len(X), alpha), B, s.x) <= 1e-6


@pytest.mark.parametrize("memory", [1e9, 2e5], ids=["kept triangle", "matrix-free"])
def test_float32_products_serve_where_the_ridge_is_large(memory):
    X, B = data(700)
    handle = CG(memory=memory).init(KernelOperator(Gaussian(2.0), X), np.full(700, 0.05))
    assert handle.cheap.dtype == np.float32
    assert isinstance(handle.cheap, StoredOperator) == (memory == 1e9)
    assert handle.solve(B).residual <= 1e-6
    assert CG().init(KernelOperator(Gaussian(2.0), X), np.full(700, 1e-7)).cheap is None


def test_the_handle_solves_again_without_work():
    X, B = data()
    for solver in (Cholesky(), CG()):
        handle = solver.init(KernelOperator(Gaussian(2.0), X), np.full(len(X), 0.1))
        np.testing.assert_allclose(
            handle.solve(B).x[:, 1:], handle.solve(B[:, 1:]).x, rtol=1e-4, atol=1e-5
        )


def test_log_determinants():
    X, _ = data(120)
    ridge = np.random.default_rng(0).uniform(0.1, 1, size=120)
    exact = np.linalg.slogdet(Gaussian(2.0)(X) + np.diag(ridge))[1]
    op = KernelOperator(Gaussian(2.0), X)
    assert Cholesky().init(op, ridge).logdet == pytest.approx(exact)
    assert CG(preconditioner=RPCholesky(120)).init(op, ridge).logdet == pytest.approx(
        exact, abs=0.2
    )
    assert CG(preconditioner=NoPreconditioner()).init(op, ridge).logdet == pytest.approx(
        np.log(ridge).sum()
    )


@pytest.mark.parametrize("name", ["repeated", "clusters", "one far", "linear"])
def test_few_columns_are_met_in_any_design(name):
    """Spectra with cliffs and plateaus, where what the last pivots saved says little of the
    next."""
    rng = np.random.default_rng(0)
    few = rng.normal(size=(150, 5))
    X = {
        "repeated": np.repeat(few, 6, axis=0),
        "clusters": np.repeat(3 * few, 6, axis=0) + 1e-3 * rng.normal(size=(900, 5)),
        "one far": np.vstack([np.repeat(few[:1], 899, axis=0), 100 * few[1:2]]),
        "linear": rng.normal(size=(900, 5)),
    }[name]
    for alpha in (1e-3, 1e-1):
        op = KernelOperator(Linear() if name == "linear" else Gaussian(), X)
        s = CG().init(op, np.full(900, alpha), 1).solve(rng.normal(size=(900, 1)))
        assert s.residual <= 1e-6
        assert s.steps < 200


def test_given_matrices_and_any_kernel():
    X, B = data()
    for K in (Gaussian(2.0)(X), Gaussian(2.0)(X.astype(np.float32))):
        for solver in (Cholesky(), CG()):
            before = K.copy()
            s = solver.init(GivenOperator(K), np.full(200, 0.1)).solve(B)
            np.testing.assert_allclose(K.astype(float) @ s.x + 0.1 * s.x, B, atol=1e-5)
            np.testing.assert_array_equal(K, before)
    own = KernelOperator(Callable(lambda X, Z: X @ Z.T), X)
    np.testing.assert_allclose(
        X @ X.T @ (x := CG().init(own, np.ones(200)).solve(B).x) + x, B, atol=1e-4
    )


def test_the_rule_is_by_shapes_and_memory():
    assert isinstance(AutoSolver().choose(3000)[0], Cholesky)
    assert isinstance(AutoSolver().choose(3001)[0], CG)
    assert isinstance(AutoSolver(memory=1e6).choose(1000)[0], CG)
    assert AutoSolver(memory=5e8).choose(10**5)[0].memory == 5e8


def test_helpers_on_operators():
    X, _ = data(50)
    op = KernelOperator(Gaussian(), X)
    assert op.astype(np.float32).dtype == np.float32
    assert op.astype(np.float64) is op
    rows = np.array([3, 1, 4])
    np.testing.assert_allclose(op.restrict(rows).block(), Gaussian()(X[rows]))
    np.testing.assert_allclose(
        GivenOperator(Gaussian()(X)).restrict(rows).block(), Gaussian()(X[rows])
    )
    np.testing.assert_allclose(System(op, np.ones(50)) @ np.eye(50), Gaussian()(X) + np.eye(50))
    assert not solvers.float32_serves(KernelOperator(Linear(), 1e20 * X), np.full(50, 1e60))


def test_results_do_not_depend_on_threads():
    from mercer.ops.threads import limit

    X, B = data(900)
    found = []
    for n in (1, 2):
        with limit(n):
            found.append(CG().init(KernelOperator(Gaussian(2.0), X), np.full(900, 0.05)).solve(B).x)
    np.testing.assert_allclose(*found, rtol=0, atol=1e-12 * np.abs(found[0]).max())
