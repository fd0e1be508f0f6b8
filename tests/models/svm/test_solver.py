"""Exact dual solvers: blocks and shrinking against one block, starts, and paths of hard
problems."""

from dataclasses import replace

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear
from mercer.models.svm import blocks
from mercer.models.svm.problem import DualProblem, feasible_start
from mercer.models.svm.solver import initial_duals, path, solve
from mercer.operators import TileOperator
from tests.models.svm.examples import example, value


@pytest.fixture
def small_blocks(monkeypatch):
    for name, size in {"ONE_BLOCK": 60, "MIN_BLOCK": 64, "MAX_BLOCK": 128}.items():
        monkeypatch.setattr(blocks, name, size)


@pytest.mark.usefixtures("small_blocks")
def test_a_start_near_the_end_needs_fewer_steps():
    X, problem = example(500)
    rows = TileOperator(Gaussian(), Table(X))
    cold = solve(rows, problem, 1e-4)
    warm = solve(rows, problem, 1e-4, start=cold.b)
    assert warm.steps < cold.steps / 10
    assert warm.objective == pytest.approx(cold.objective, rel=1e-5)


@pytest.mark.parametrize("C", [1e8, 1e13, 1e20])
def test_bounds_far_beyond_all_duals_change_nothing(C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    rows = TileOperator(Gaussian(0.1), Table(X))
    near, far = (
        solve(rows, DualProblem(y, np.minimum(y, 0) * c, np.maximum(y, 0) * c), 1e-6, 100)
        for c in (1e4, C)
    )
    assert far.objective == pytest.approx(near.objective, rel=1e-4)
    np.testing.assert_allclose(far.b, near.b, atol=1e-2 * np.abs(near.b).max())


@pytest.mark.parametrize("n", [200, 700])
@pytest.mark.usefixtures("small_blocks")
def test_a_start_that_no_step_could_mend_is_refused(monkeypatch, n):
    X, problem = example(n)
    monkeypatch.setattr(blocks, "ONE_BLOCK", 300)
    rows = TileOperator(Gaussian(), Table(X))
    with pytest.raises(ValueError, match="sum to 0"):
        solve(rows, problem, 1e-3, start=problem.hi)
    beyond = np.zeros(n)
    beyond[[0, 1]] = 100 * np.where(problem.hi[:2] > 0, 1.0, -1.0)
    with pytest.raises(ValueError, match="start must lie within the bounds"):
        solve(rows, problem, 1e-3, start=beyond - beyond.mean())
    assert (
        feasible_start(DualProblem(problem.t, problem.lo, problem.hi, bias=False), problem.hi).sum()
        > 0
    )  # any sum will do


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("hopeless", [True, False])
def test_hard_problems_end_by_a_path(monkeypatch, C, ridge, bias, hopeless):
    monkeypatch.setattr(blocks, "ONE_BLOCK", 1000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where((rng.random(200) < 0.5) if hopeless else (X[:, 0] > 0.3), 1.0, -1.0)
    problem = DualProblem(y, np.minimum(y, 0) * C, np.maximum(y, 0) * C, bias=bias)
    if ridge:
        problem = DualProblem(
            y,
            np.where(y > 0, 0, -np.inf),
            np.where(y > 0, np.inf, 0),
            ridge=np.full(200, 0.5 / C),
            bias=bias,
        )
    m = solve(TileOperator(Linear(), Table(X)), problem, 1e-3, 100)
    assert m.converged
    assert m.relative <= 1e-3
    assert m.objective == pytest.approx(value(X @ X.T, problem, m.b), rel=1e-6)
    assert (m.b >= problem.lo).all()
    assert (m.b <= problem.hi).all()


def test_paths_rise_to_the_problem_itself():
    _, problem = example(50, C=1.0)
    assert path(problem, np.full(50, 1e-3)) == []
    assert (
        path(DualProblem(0 * problem.t, problem.lo, problem.hi, total=3.0), np.full(50, 1e9)) == []
    )
    shares = path(problem, np.full(50, 1e40))
    assert shares[-1] == 1
    assert shares[0] < 1e-39
    assert (np.diff(shares) > 0).all()


def test_flat_slopes_end_it_only_where_the_gap_is_closed_too():
    X, problem = example(150, C=1e5)
    y = problem.t
    rows = TileOperator(
        Gaussian(0.05), Table(X)
    )  # every row is alone: the objective is n/2, and C n tol is far more
    m = solve(rows, problem, 1e-3)
    assert m.relative <= 1e-3
    assert m.ended in ("gap", "slopes")
    assert value(Gaussian(0.05)(X), problem, m.b) == pytest.approx(
        -0.5 * y @ np.linalg.solve(Gaussian(0.05)(X), y), rel=0.02
    )


@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
def test_duals_of_some_rows_are_a_start_nearer_to_the_optimum(monkeypatch, e, bias):
    # where kernel values are not all kept: there every round costs new ones
    monkeypatch.setattr("mercer.models.svm.solver.gram_fits", lambda *sizes: False)
    X, problem = example(3000, C=5.0, e=e, bias=bias)
    rows = TileOperator(Gaussian(), Table(X))
    start = initial_duals(rows, problem, 0.1, 1e9)
    K, zero = Gaussian()(X), np.zeros(3000)
    assert 0 < (start != 0).sum() <= 1000
    assert value(K, problem, start) < value(K, problem, zero)
    assert (
        feasible_start(problem, start) is not None
    )  # within the bounds, and with the sum that is asked for
    with_start, without = solve(rows, problem, 1e-4), solve(rows, problem, 1e-4, start=zero)
    assert with_start.objective == pytest.approx(without.objective, rel=1e-4)
    assert with_start.rounds < without.rounds


def test_a_sum_that_is_told_has_no_start_from_some_rows():
    X, problem = example(3000)
    assert (
        initial_duals(TileOperator(Gaussian(), Table(X)), replace(problem, total=1.0), 0.1, 1e9)
        is None
    )
