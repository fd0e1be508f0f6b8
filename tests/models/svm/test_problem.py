"""What duals are worth: gaps, multipliers, and the rounding that a gap counts."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.models.svm.problem import DualProblem, balance, certified, relative, soft_balance
from mercer.models.svm.solver import solve, solve_uncertified
from mercer.operators import TileOperator
from mercer.ops import smo
from tests.models.svm.examples import example, value


@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_the_gap_bounds_what_is_left(e, ridge, bias):
    X, problem = example(120, e=e, bias=bias)
    if ridge:
        t = problem.t
        problem = DualProblem(
            t, np.where(t > 0, 0, -np.inf), np.where(t > 0, np.inf, 0), e, np.full(120, 0.5), bias
        )
    K, rows = Gaussian()(X), TileOperator(Gaussian(), Table(X))
    best = solve(rows, problem, 1e-9)
    assert best.relative < 1e-8
    for tol in (1.0, 0.3, 0.1, 1e-2):
        m = solve(rows, problem, tol)
        left = value(K, problem, m.b) - value(K, problem, best.b)
        assert m.objective == pytest.approx(value(K, problem, m.b), abs=1e-9)
        assert -1e-8 * abs(best.objective) <= left <= m.gap + 1e-9
        assert m.violation <= tol or m.relative <= 0.1 * tol


def test_gaps_relative_to_nothing():
    assert relative(0.5, 0.0) == np.inf
    assert relative(-1e-20, 0.0) == relative(0.0, 0.0) == 0
    assert relative(0.5, -2.0) == 0.25


@pytest.mark.parametrize("ridge", [False, True])
def test_the_best_multiplier_has_the_least_gap(ridge):
    X, problem = example(60)
    r = np.full(60, 0.5 if ridge else 0.0)
    if ridge:
        problem = DualProblem(
            problem.t,
            np.where(problem.t > 0, 0, -np.inf),
            np.where(problem.t > 0, np.inf, 0),
            0.0,
            r,
        )
    b = np.where(problem.t > 0, 0.1, -0.1)
    G = Gaussian()(X) @ b + r * b - problem.t
    best = soft_balance(G, b, problem) if ridge else balance(G, problem, float(b.sum()))
    least = min(
        smo.gap(G, b, problem.lo, problem.hi, 0.0, r, nu) for nu in np.linspace(-2, 2, 2001)
    )
    assert smo.gap(G, b, problem.lo, problem.hi, 0.0, r, best) <= least + 1e-9


def test_a_gap_within_errors_is_the_largest_of_them():
    X, problem = example(80)
    m = solve(TileOperator(Gaussian(), Table(X)), problem, 1e-3)
    rng, none = np.random.default_rng(0), np.zeros(80)
    G, error = Gaussian()(X) @ m.b - problem.t, 0.01 * rng.random(80)
    bound = smo.gap_within(G, m.b, problem.lo, problem.hi, 0.0, none, -m.intercept, error)
    exact = smo.gap(G, m.b, problem.lo, problem.hi, 0.0, none, -m.intercept)
    assert smo.gap_within(G, m.b, problem.lo, problem.hi, 0.0, none, -m.intercept, none) == exact
    for _ in range(50):
        assert (
            smo.gap(
                G + error * rng.uniform(-1, 1, 80),
                m.b,
                problem.lo,
                problem.hi,
                0.0,
                none,
                -m.intercept,
            )
            <= bound
        )


def test_rounding_of_stored_values_is_counted_and_solved_away_where_it_shows():
    X, problem = example(300, C=300.0, e=0.01)
    narrow = TileOperator(Gaussian(), Table(X.astype(np.float32)), np.float32)
    rough = certified(narrow, problem, solve_uncertified(narrow, problem, 1e-3, 1000, 1e9))
    K = Gaussian()(X.astype(np.float32).astype(float))
    G = K @ rough.b - problem.t
    true = smo.gap(G, rough.b, problem.lo, problem.hi, problem.e, np.zeros(300), -rough.intercept)
    assert rough.rounding > 0
    assert true <= rough.gap
    assert solve(narrow, problem, 1e-3).relative <= 1e-3
