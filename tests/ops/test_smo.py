"""Steps of duals in lanes against plain ones."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.models.svm.blocks import padded
from mercer.models.svm.problem import DualProblem
from mercer.ops import smo
from tests.models.svm.examples import example, value


def in_lanes(K, problem, loop, tol, most=10**6):
    n = len(K)
    b, G = np.zeros(n), np.zeros(smo.lanes(n) * smo.LANE)
    G[:n] = -problem.t
    room = padded(n, K.dtype)
    room[:, :n] = K
    loop(
        room.reshape(n, -1, smo.LANE),
        G.reshape(-1, smo.LANE),
        b,
        problem.lo,
        problem.hi,
        problem.e,
        tol,
        most,
    )
    return b, G[:n]


@pytest.mark.parametrize("n", [3, 64, 65, 150])
@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_in_lanes_are_the_plain_ones(n, e, dtype):
    X, problem = example(n, e=e, seed=n)
    K = Gaussian()(X).astype(dtype)
    b, G = in_lanes(K, problem, smo.pairs, 1e-6)
    plain = smo.reference_pairs(K.astype(np.float64), problem.t, problem.lo, problem.hi, e, 1e-6)
    assert value(K, problem, b) == pytest.approx(value(K, problem, plain), rel=1e-6)
    np.testing.assert_allclose(G, K.astype(np.float64) @ b - problem.t, atol=1e-9)
    assert abs(b.sum()) < 1e-12 * n
    assert (b >= problem.lo).all()
    assert (b <= problem.hi).all()


@pytest.mark.parametrize("e", [0.0, 0.1])
def test_steps_of_one_dual_end_where_every_slope_is_flat(e):
    X, problem = example(130, e=e, bias=False)
    K = Gaussian()(X)
    b, G = in_lanes(K, problem, smo.singles, 1e-6)
    up, down = np.empty(130), np.empty(130)
    smo.gates(b, problem.lo, problem.hi, e, up, down)
    assert (G + up).min() >= -1e-6
    assert (G + down).max() <= 1e-6
    assert (
        value(K, problem, b) <= value(K, problem, in_lanes(K, problem, smo.pairs, 1e-6)[0]) + 1e-9
    )  # the sum may be anything here


def test_steps_of_one_dual_do_not_end_at_a_short_row_while_a_long_one_is_steep():
    problem = DualProblem(np.array([1e-3, 0.02]), np.full(2, -1e9), np.full(2, 1e9), bias=False)
    K = np.diag([1e-6, 1.0])  # the first gains more, and is flat enough
    b, G = in_lanes(K, problem, smo.singles, 1e-2)
    assert np.abs(G).max() <= 1e-2
    assert b[1] != 0


def test_gates_say_what_may_move_and_at_what_slope():
    up, down = np.empty(5), np.empty(5)
    smo.gates(np.array([0.0, 1.0, -1.0, 0.5, -0.5]), -np.ones(5), np.ones(5), 0.1, up, down)
    np.testing.assert_array_equal(up, [0.1, smo.MAX_GRADIENT, -0.1, 0.1, -0.1])
    np.testing.assert_array_equal(down, [-0.1, 0.1, -smo.MAX_GRADIENT, 0.1, -0.1])


def test_a_sweep_is_the_plain_loop():
    rng = np.random.default_rng(0)
    F, y, c = rng.normal(size=(50, 4)), np.where(rng.random(50) < 0.5, 1.0, -1.0), np.ones(50)
    results = []
    for run in (smo.sweep, smo.sweep.__wrapped__):
        a, coef, active = np.zeros(50), np.zeros(4), np.ones(50, bool)
        total = run(
            F,
            y,
            a,
            c,
            (F**2).sum(1),
            active,
            np.arange(50),
            coef,
            np.array([0.1, 1.0, 0.0, np.inf, -np.inf]),
        )
        results.append(np.concatenate([a, coef, active, total]))
    np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-12)


def test_duals_beside_a_bound_go_onto_it():
    near = 1e-16
    b = np.array([1 - near, near, -1 + near, -near, 0.5, 1 - 1e-6, 3.0])
    lo, hi, change = np.array([-1.0] * 6 + [0.0]), np.array([1.0] * 6 + [np.inf]), np.empty(7)
    before = b.copy()
    assert smo.snap(b, lo, hi, change) == 4
    np.testing.assert_array_equal(b, [1, 0, -1, 0, 0.5, 1 - 1e-6, 3])
    np.testing.assert_array_equal(change, b - before)
    small = np.array([0.5, 1e-3])  # far from bounds of 1e20
    assert smo.snap(small, np.full(2, -1e20), np.full(2, 1e20), np.empty(2)) == 0


@pytest.mark.parametrize("loop", [smo.pairs, smo.singles])
def test_of_equal_steps_the_first_is_taken(loop):
    """Copies of rows in several lanes: the choice does not hang on how lanes are compared."""
    n = 200
    t = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    problem = DualProblem(t, np.minimum(t, 0.0), np.maximum(t, 0.0), bias=loop is smo.pairs)
    b, _ = in_lanes(np.eye(n), problem, loop, 1e-3, most=1)
    moved = np.flatnonzero(b)
    assert moved.tolist() == ([0, 1] if problem.bias else [0])
