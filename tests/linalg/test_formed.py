"""K formed once: all ways solve the same equations, whatever the rows are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer.costs.choice import forced
from mercer.costs.systems import NARROW, STEPS, WIDE
from mercer.kernels import Gaussian, Kernel, Linear
from mercer.linalg.cholesky import Cholesky
from mercer.linalg.formed import Formed, columns_of, is_mild, low_rank, spread
from mercer.linalg.least_squares import exact
from mercer.operators import KernelOperator
from mercer.ops.threads import limit
from mercer.ops.triangles import multiplied, solved

RNG = np.random.default_rng(0)
N = 300
PLAIN = RNG.normal(size=(N, 4))
ROWS = {
    "plain": PLAIN,
    "float32": PLAIN.astype(np.float32),
    "duplicates": PLAIN[RNG.integers(0, 40, N)],
    "near-copies": PLAIN[RNG.integers(0, 40, N)] + 1e-9 * RNG.normal(size=(N, 4)),
    "a line": np.outer(np.sort(RNG.normal(size=N)), np.ones(4)),
    "an offset": PLAIN + 1e6,
    "sorted, in a rhythm": PLAIN[np.arange(N) % 12],
    "wide": RNG.normal(size=(N, 300)) / 5,
    "huge and tiny": PLAIN * np.array([1e8, 1.0, 1e-8, 0.0]),
}
RIDGE = RNG.uniform(0.05, 2, N)


@pytest.mark.parametrize("way", [STEPS, NARROW, WIDE])
@pytest.mark.parametrize("columns", [1, 2, 9])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS.keys())
def test_every_way_solves(rows, columns, way):
    k, B = Gaussian(1.5), RNG.normal(size=(N, columns))
    B[:, columns // 2] = 0 if columns > 1 else B[:, 0]
    with forced(ridge_system=way):
        s = Formed().init(KernelOperator(k, rows), RIDGE, columns).solve(B)
    A = k(rows.astype(np.float64)) + np.diag(RIDGE)
    assert s.residual <= 1e-10
    assert_allclose(s.x, np.linalg.solve(A, B), atol=1e-9 * np.abs(s.x).max())
    assert_allclose(s.remainder, B - A @ s.x, atol=1e-11)
    assert s.way == way or way == STEPS


SCALES = [1e-300, 1e-150, 1e-45, 1e-38, 1e-30, 1e30, 1e38, 1e39, 1e150, 1e300]


@pytest.mark.parametrize("way", [STEPS, NARROW, WIDE])
@pytest.mark.parametrize("columns", [1, 40])
@pytest.mark.parametrize("c", SCALES)
def test_the_unit_of_kernel_and_ridge_changes_nothing(c, columns, way):
    k, B = Gaussian(1.5), RNG.normal(size=(N, columns))
    with forced(ridge_system=way):
        plain = Formed().init(KernelOperator(k, PLAIN), RIDGE, columns).solve(B)
        s = Formed().init(KernelOperator(c * k, PLAIN), c * RIDGE, columns).solve(B)
    assert s.way == plain.way
    assert s.residual <= 1e-12
    assert_allclose(c * s.x, plain.x, atol=1e-10)


@pytest.mark.parametrize("way", [STEPS, NARROW, WIDE])
def test_a_row_of_huge_ridge(way):
    """Beside it, the others are below what float32 tells."""
    ridge, B = RIDGE.copy(), RNG.normal(size=(N, 2))
    ridge[7] = 1e60
    op = KernelOperator(Gaussian(1.5), PLAIN)
    with forced(ridge_system=way):
        s = Formed().init(op, ridge).solve(B)
    assert s.residual <= 1e-10
    rest = np.delete(np.arange(N), 7)
    A = op.block()[np.ix_(rest, rest)] + np.diag(RIDGE[rest])
    assert_allclose(s.x[rest], np.linalg.solve(A, B[rest]), atol=1e-9)


def test_a_weak_ridge_is_left_to_float64():
    X = np.linspace(0, 1, N)[:, None]
    k, ridge, B = Gaussian(), np.full(N, 1e-9), np.sin(9 * X)
    s = Formed().init(KernelOperator(k, X), ridge).solve(B)
    plain = Cholesky().init(KernelOperator(k, X), ridge).solve(B)
    assert s.way == WIDE
    assert s.residual <= 2 * plain.residual + 1e-10
    assert_allclose(k(X) @ s.x, k(X) @ plain.x, atol=1e-6)


def test_steps_that_lead_nowhere_end_in_a_factor():
    X = RNG.uniform(size=(600, 2))
    with forced(ridge_system=STEPS):
        hard = Formed().init(KernelOperator(Gaussian(0.05), X), np.full(600, 1e-3))
        s = hard.solve(RNG.normal(size=(600, 1)))
    assert s.way in (NARROW, WIDE)
    assert s.steps < 12
    assert s.residual <= 1e-10


def test_few_steps_where_the_spectrum_falls():
    X = RNG.uniform(size=(800, 1))
    s = Formed().init(KernelOperator(Gaussian(0.5), X), np.full(800, 0.5)).solve(np.sin(9 * X))
    assert s.way == STEPS
    assert s.steps < 12
    assert s.residual <= 1e-12


class Cut(Kernel):
    """Linear, less a constant: of no kernel."""

    def on(self, p):
        return p.dot - 3.0


def test_equations_of_no_kernel_are_solved_and_told():
    X, y = RNG.normal(size=(N, 2)), RNG.normal(size=(N, 1))
    s = exact(KernelOperator(Cut(), X), y, 1.0, intercept=False, solver=Formed())
    assert not s.definite
    assert_allclose(Cut()(X) @ s.coef + s.coef, y, atol=1e-8)


@pytest.mark.parametrize("c", [1e-150, 1e150])
def test_equations_of_no_kernel_in_any_unit(c):
    X, y = RNG.normal(size=(N, 2)), RNG.normal(size=(N, 1))
    s = exact(KernelOperator(c * Cut(), X), y, c, intercept=False, solver=Formed())
    assert not s.definite
    assert_allclose(c * (Cut()(X) @ s.coef + s.coef), y, atol=1e-8)


def test_outputs_of_two_penalties_and_rows_of_weight_zero():
    X, Y, w = PLAIN, RNG.normal(size=(N, 2)), RNG.uniform(0, 1, N)
    w[:5] = 0
    op = KernelOperator(Gaussian(), X)
    ours, plain = (exact(op, Y, [0.1, 3.0], w, solver=s) for s in (Formed(), Cholesky()))
    assert_allclose(ours.coef, plain.coef, atol=1e-9)
    assert_allclose(ours.intercept, plain.intercept, atol=1e-9)


def test_threads_change_no_bit_of_steps():
    X = RNG.normal(size=(700, 3))
    found = []
    for threads in (1, 3):
        with limit(threads), forced(ridge_system=STEPS):
            handle = Formed().init(KernelOperator(Gaussian(3.0), X), np.full(700, 1.0))
            found.append(handle.solve(np.sin(X[:, :1])))
    assert found[0].way == found[1].way == STEPS
    np.testing.assert_array_equal(found[0].x, found[1].x)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Linear(), Gaussian() + Linear()])
@pytest.mark.parametrize("n", [1, 70, 300, 800])
def test_the_upper_triangle(kernel, n):
    X = RNG.normal(size=(n, 5))
    op = KernelOperator(kernel, X)
    assert_allclose(np.triu(op.upper()), np.triu(op.block()), rtol=1e-14)


# pieces
def one_sided(n, order, dtype=np.float64):
    """A symmetric positive matrix, and its upper triangle with anything below."""
    F = RNG.normal(size=(n, n + 2))
    A = (F @ F.T / n + np.eye(n)).astype(dtype)
    half = np.triu(A) + np.tril(np.full((n, n), np.nan), -1)
    return A, np.array(half, dtype, order=order)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("columns", [0, 1, 4, 5, 20])
def test_products_and_solutions_read_one_side(columns, order):
    A, half = one_sided(30, order)
    V = RNG.normal(size=(30, columns))
    assert_allclose(multiplied(half, V), A @ V, atol=1e-12)
    L = np.linalg.cholesky(A)
    lower = np.asfortranarray(L + np.triu(np.full((30, 30), np.nan), 1))
    assert_allclose(solved(lower, V), np.linalg.solve(A, V), atol=1e-12)


def test_the_preconditioner_is_woodburys():
    A, half = one_sided(40, "C")
    ridge, at = RNG.uniform(0.5, 1, 40), spread(40, 6)
    K = A - np.diag(ridge)
    assert_allclose(columns_of(half, at), A[:, at])
    T, s = low_rank(half, ridge, at)
    P = K[:, at] @ np.linalg.solve(K[np.ix_(at, at)], K[at]) + np.diag(ridge)
    assert_allclose(s[:, None] * (np.eye(40) - T @ T.T) * s, np.linalg.inv(P), atol=1e-9)


@pytest.mark.parametrize(("n", "r"), [(1, 1), (24, 1), (24, 24), (1000, 41), (1001, 500)])
def test_positions_differ_and_ascend(n, r):
    at = spread(n, r)
    assert len(at) == r
    assert (np.diff(at) > 0).all()
    assert at[0] >= 0
    assert at[-1] < n


def test_mild_equations():
    A = np.diag([1.0, 2.0, 5000.0] + 50 * [1.0])
    assert is_mild(A, 1e4)
    assert not is_mild(A, 1e3)
    assert not is_mild(np.full((3, 3), np.inf), 1e300)
