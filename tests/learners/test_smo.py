"""Exact dual solvers: fast loops against plain ones, blocks and shrinking against one block, and the gap against the optimum."""
from dataclasses import replace

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Constant, Gaussian, Linear, Polynomial
from mercer.models.svm import blocks
from mercer.models.svm import solver as dual
from mercer.models.svm.calibration import probabilities, sigmoid
from mercer.models.svm.compression import project
from mercer.models.svm.interior import inner_start
from mercer.models.svm.problem import Box, balance, certified, relative, soft_balance, started
from mercer.models.svm.solver import begun, block_bytes, block_size, held, path, solve, solved
from mercer.operators.cache import Columns
from mercer.operators.products import times
from mercer.operators.tiled import WIDTH, GivenRows, KernelRows, certain, room
from mercer.operators.tiles import BitTiles, tiles_of
from mercer.ops import kernel_rows, smo
from mercer.ops.bits import lookup, packed, reference_lookup
from mercer.ops.distances import half_exp, reference_half_exp
from mercer.ops.smo import singles, sweep
from mercer.ops.threads import limit


def problem(n=200, d=3, C=2.0, e=0.0, seed=0, bias=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    if e:
        return X, Box(np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n), np.full(n, -C), np.full(n, C), e, bias=bias)
    c = C * rng.uniform(0.5, 1.5, n)
    return X, Box(y, np.minimum(y, 0) * c, np.maximum(y, 0) * c, bias=bias)


def value(K, box, b):
    ridge = 0 if box.ridge is None else box.ridge
    return b @ K @ b / 2 + np.sum(ridge * b**2) / 2 - box.t @ b + box.e * np.abs(b).sum()


def in_lanes(K, box, loop, tol, most=10**6):
    n = len(K)
    b, G = np.zeros(n), np.zeros(smo.lanes(n) * smo.LANE)
    G[:n] = -box.t
    padded = room(n, K.dtype)
    padded[:, :n] = K
    loop(padded.reshape(n, -1, smo.LANE), G.reshape(-1, smo.LANE), b, box.lo, box.hi, box.e, tol, most)
    return b, G[:n]


@pytest.mark.parametrize("n", [3, 64, 65, 150])
@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_in_lanes_are_the_plain_ones(n, e, dtype):
    X, box = problem(n, e=e, seed=n)
    K = Gaussian()(X).astype(dtype)
    b, G = in_lanes(K, box, smo.pairs, 1e-6)
    plain = smo.reference_pairs(K.astype(np.float64), box.t, box.lo, box.hi, e, 1e-6)
    assert value(K, box, b) == pytest.approx(value(K, box, plain), rel=1e-6)
    np.testing.assert_allclose(G, K.astype(np.float64) @ b - box.t, atol=1e-9)
    assert abs(b.sum()) < 1e-12 * n
    assert (b >= box.lo).all()
    assert (b <= box.hi).all()


@pytest.mark.parametrize("e", [0.0, 0.1])
def test_steps_of_one_dual_end_where_every_slope_is_flat(e):
    X, box = problem(130, e=e, bias=False)
    K = Gaussian()(X)
    b, G = in_lanes(K, box, singles, 1e-6)
    rise, fall = np.empty(130), np.empty(130)
    smo.gates(b, box.lo, box.hi, e, rise, fall)
    assert (G + rise).min() >= -1e-6
    assert (G + fall).max() <= 1e-6
    assert value(K, box, b) <= value(K, box, in_lanes(K, box, smo.pairs, 1e-6)[0]) + 1e-9  # the sum may be anything here


def test_steps_of_one_dual_do_not_end_at_a_short_row_while_a_long_one_is_steep():
    box = Box(np.array([1e-3, 0.02]), np.full(2, -1e9), np.full(2, 1e9), bias=False)
    K = np.diag([1e-6, 1.0])  # the first gains more, and is flat enough
    b, G = in_lanes(K, box, singles, 1e-2)
    assert np.abs(G).max() <= 1e-2
    assert b[1] != 0


def test_gates_say_what_may_move_and_at_what_slope():
    up, down = np.empty(5), np.empty(5)
    smo.gates(np.array([0.0, 1.0, -1.0, 0.5, -0.5]), -np.ones(5), np.ones(5), 0.1, up, down)
    np.testing.assert_array_equal(up, [0.1, smo.FAR, -0.1, 0.1, -0.1])
    np.testing.assert_array_equal(down, [-0.1, 0.1, -smo.FAR, 0.1, -0.1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 4, 9])
def test_rows_are_added_in_float64(dtype, m):
    rng = np.random.default_rng(m)
    K, index, delta, out = rng.normal(size=(12, 37)).astype(dtype), rng.permutation(12)[:m], rng.normal(size=m), rng.normal(size=37)
    expected = out + delta @ K[index].astype(np.float64)
    kernel_rows.add_rows(K, index, delta, out)
    np.testing.assert_allclose(out, expected, atol=1e-14)


def test_entries_are_picked_and_repacked():
    rng = np.random.default_rng(0)
    K, rows, cols = rng.normal(size=(9, 12)), rng.permutation(9)[:4], rng.permutation(12)[:5]
    out = np.full((4, 5), np.nan)
    kernel_rows.pick(K, rows, cols, out)
    np.testing.assert_array_equal(out, K[np.ix_(rows, cols)])
    out[:] = np.nan
    kernel_rows.repack(K.reshape(9, 3, 4).transpose(1, 0, 2).copy(), rows, *np.divmod(cols, 4), out)
    np.testing.assert_array_equal(out, K[np.ix_(rows, cols)])


def test_the_exponential_in_place():
    D = np.concatenate([[0.0, -1e-7, 1e-6], np.linspace(0, 170, 5000), [1e4, 1e30]]).astype(np.float32)[None]
    expected, K = reference_half_exp(D), D.copy()
    half_exp(K)
    assert (np.abs(K - expected) <= 2e-7 * (1 + np.abs(D)) * expected + 2e-38).all()  # rounding of D itself is relative to D
    assert K[0, 0] == 1


def test_a_sweep_is_the_plain_loop():
    rng = np.random.default_rng(0)
    F, y, c = rng.normal(size=(50, 4)), np.where(rng.random(50) < 0.5, 1.0, -1.0), np.ones(50)
    results = []
    for run in (sweep, sweep.__wrapped__):
        a, coef, active = np.zeros(50), np.zeros(4), np.ones(50, bool)
        total = run(F, y, a, c, (F**2).sum(1), active, np.arange(50), coef, np.array([0.1, 1.0, 0.0, np.inf, -np.inf]))
        results.append(np.concatenate([a, coef, active, total]))
    np.testing.assert_allclose(*results, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_the_gap_bounds_what_is_left(e, ridge, bias):
    X, box = problem(120, e=e, bias=bias)
    if ridge:
        box = Box(box.t, np.where(box.t > 0, 0, -np.inf), np.where(box.t > 0, np.inf, 0), e, np.full(120, 0.5), bias)
    K, rows = Gaussian()(X), KernelRows(Gaussian(), Table(X))
    best = solve(rows, box, 1e-9)
    assert best.relative < 1e-8
    for tol in (1.0, 0.3, 0.1, 1e-2):
        m = solve(rows, box, tol)
        left = value(K, box, m.b) - value(K, box, best.b)
        assert m.objective == pytest.approx(value(K, box, m.b), abs=1e-9)
        assert -1e-8 * abs(best.objective) <= left <= m.gap + 1e-9
        assert m.violation <= tol or m.relative <= 0.1 * tol


@pytest.fixture
def small_blocks(monkeypatch):
    for name, size in {"WHOLE": 60, "LEAST": 64, "MOST": 128}.items():
        monkeypatch.setattr(blocks, name, size)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("e", [0.0, 0.05])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("memory", [1e9, 2e5, 0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_shrinking_end_where_one_block_does(monkeypatch, e, bias, memory, dtype):
    X, box = problem(700, e=e, bias=bias, C=5.0)
    shrunk, widened = [], []
    for name, seen in (("_shrink", shrunk), ("_widen", widened)):
        monkeypatch.setattr(blocks.Solver, name, counted(getattr(blocks.Solver, name), seen))
    m = solve(KernelRows(Gaussian(), Table(X), dtype), box, 1e-4, limit=memory)
    monkeypatch.setattr(blocks, "WHOLE", 1000)
    whole = solve(KernelRows(Gaussian(), Table(X)), box, 1e-4)
    assert m.converged
    assert m.objective == pytest.approx(whole.objective, rel=1e-4)
    assert m.intercept == pytest.approx(whole.intercept, abs=5e-3)
    K = Gaussian()(X)
    assert m.objective == pytest.approx(value(K, box, m.b), rel=1e-5)
    assert abs(m.b.sum()) < 1e-9 or not bias
    assert shrunk
    assert widened


def counted(method, seen):
    """A method that notes when it changed who takes part."""

    def call(self):
        before = len(self.part.b)
        method(self)
        if len(self.part.b) != before:
            seen.append(before)

    return call


@pytest.mark.usefixtures("small_blocks")
def test_threads_change_nothing():
    X, box = problem(500)
    found = []
    for n in (1, 3):
        with limit(n):
            found.append(solve(KernelRows(Gaussian(), Table(X.astype(np.float32)), np.float32), box, 1e-3))
    np.testing.assert_array_equal(found[0].b, found[1].b)


@pytest.mark.usefixtures("small_blocks")
def test_a_start_near_the_end_needs_fewer_steps():
    X, box = problem(500)
    rows = KernelRows(Gaussian(), Table(X))
    cold = solve(rows, box, 1e-4)
    warm = solve(rows, box, 1e-4, start=cold.b)
    assert warm.steps < cold.steps / 10
    assert warm.objective == pytest.approx(cold.objective, rel=1e-5)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Gaussian((1.0, 2.0, 0.5)), Linear(), Constant() + Polynomial(2)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_products_are_those_of_the_kernel(kernel, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * WIDTH + 11, 3)) + 3
    K, rows = kernel(X), KernelRows(kernel, Table(X.astype(dtype)), dtype)
    tol = 1e-4 if dtype == np.float32 else 1e-12
    i, j = rng.permutation(len(X))[:40], rng.permutation(len(X))[:300]
    np.testing.assert_allclose(rows.block(i, j), K[np.ix_(i, j)], rtol=tol, atol=tol)
    G, delta, columns = np.zeros(len(X)), rng.normal(size=40), Columns(rows, 1e8)
    for _ in range(2):  # computed, then kept
        columns.add(G, i, delta)
    np.testing.assert_allclose(G, 2 * K[:, i] @ delta, rtol=1e-4, atol=100 * tol)
    assert columns.made == 40
    keep = rng.random(len(X)) < 0.4
    part, some = columns.only(keep), np.zeros(keep.sum())
    part.add(some, i, delta)
    np.testing.assert_allclose(some, G[keep] / 2, rtol=1e-4, atol=100 * tol)
    np.testing.assert_allclose(times(kernel, Table(X[:99].astype(dtype)), X.astype(dtype)[i], delta[:, None])[:, 0], K[:99, i] @ delta,
                               rtol=1e-4, atol=100 * tol)  # fmt: skip


def test_the_cache_stays_within_its_limit():
    X, _ = problem(600)
    rows = KernelRows(Gaussian(), Table(X), np.float32)
    columns, room = Columns(rows, 100 * 3 * WIDTH * 4.0), np.zeros(600)
    for first in range(0, 600, 50):
        columns.add(room, np.arange(first, first + 50), np.ones(50))
        assert columns.held <= columns.limit
    np.testing.assert_allclose(room, Gaussian()(X).sum(1), rtol=1e-5)
    assert (columns.block_of >= 0).sum() == 100


def test_a_given_matrix_is_read_like_a_kernel():
    X, box = problem(100)
    K = Gaussian()(X)
    given, own = solve(GivenRows(K), box, 1e-6), solve(KernelRows(Gaussian(), Table(X)), box, 1e-6)
    np.testing.assert_allclose(given.b, own.b, atol=1e-9)
    np.testing.assert_array_equal(GivenRows(K).pick(np.array([3, 1])).K, K[np.ix_([3, 1], [3, 1])])


def test_too_large_values_are_refused():
    with pytest.raises(ValueError, match="scale the columns"):
        KernelRows(Linear(), Table(np.full((3, 2), 1e80)))
    with pytest.raises(ValueError, match="scale the columns"):
        KernelRows(Polynomial(3), Table(np.full((3, 2), 1e10, np.float32)))
    assert KernelRows(Linear(), Table(np.full((3, 2), 1e10, np.float32)), np.float32).dtype == np.float64


def test_sigmoids_find_the_probabilities_that_made_the_labels():
    errors = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        f = rng.normal(size=4000) * 3
        a, b = sigmoid(f, rng.random(4000) < 1 / (1 + np.exp(-(0.8 * f - 0.5))), np.ones(4000))
        errors.append([a - 0.8, b + 0.5])
    assert np.abs(np.mean(errors, axis=0)).max() < 0.05
    assert probabilities(np.array([0.0]), np.array([1.0]), np.array([0.0])).tolist() == [[0.5, 0.5]]
    np.testing.assert_allclose(probabilities(np.eye(3), np.ones(3), np.zeros(3)).sum(1), 1)


def test_a_projection_with_all_vectors_loses_nothing_and_fewer_lose_more():
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(80, 2)), rng.normal(size=(2, 80))
    losses = []
    for m in (80, 40, 10):
        keep, new, error = project(Gaussian(0.5), Table(X), coef, m, 0)
        assert len(keep) <= m
        f, g = coef @ Gaussian(0.5)(X), new @ Gaussian(0.5)(X[keep], X)
        square = np.einsum("ij,ij->i", f, coef)
        measured = square - 2 * np.einsum("ij,ij->i", g, coef) + np.einsum("ij,ij->i", g[:, keep], new)
        assert error == pytest.approx(np.sqrt(np.max(np.maximum(measured, 0) / square)), abs=1e-3)
        losses.append(error)
    assert losses[0] < 1e-2
    assert losses[0] < losses[1] < losses[2] < 1


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


@pytest.mark.parametrize("C", [1e8, 1e13, 1e20])
def test_bounds_far_beyond_all_duals_change_nothing(C):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    rows = KernelRows(Gaussian(0.1), Table(X))
    near, far = (solve(rows, Box(y, np.minimum(y, 0) * c, np.maximum(y, 0) * c), 1e-6, 100) for c in (1e4, C))
    assert far.objective == pytest.approx(near.objective, rel=1e-4)
    np.testing.assert_allclose(far.b, near.b, atol=1e-2 * np.abs(near.b).max())


@pytest.mark.parametrize("n", [200, 700])
@pytest.mark.usefixtures("small_blocks")
def test_a_start_that_no_step_could_mend_is_refused(monkeypatch, n):
    X, box = problem(n)
    monkeypatch.setattr(blocks, "WHOLE", 300)
    rows = KernelRows(Gaussian(), Table(X))
    with pytest.raises(ValueError, match="sum to 0"):
        solve(rows, box, 1e-3, start=box.hi)
    beyond = np.zeros(n)
    beyond[[0, 1]] = 100 * np.where(box.hi[:2] > 0, 1.0, -1.0)
    with pytest.raises(ValueError, match="start must lie within the bounds"):
        solve(rows, box, 1e-3, start=beyond - beyond.mean())
    assert started(Box(box.t, box.lo, box.hi, bias=False), box.hi).sum() > 0  # without a bias any sum will do


def test_gaps_relative_to_nothing():
    assert relative(0.5, 0.0) == np.inf
    assert relative(-1e-20, 0.0) == relative(0.0, 0.0) == 0
    assert relative(0.5, -2.0) == 0.25


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("hopeless", [True, False])
def test_hard_problems_end_by_a_path(monkeypatch, C, ridge, bias, hopeless):
    monkeypatch.setattr(blocks, "WHOLE", 1000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where((rng.random(200) < 0.5) if hopeless else (X[:, 0] > 0.3), 1.0, -1.0)
    box = Box(y, np.minimum(y, 0) * C, np.maximum(y, 0) * C, bias=bias)
    if ridge:
        box = Box(y, np.where(y > 0, 0, -np.inf), np.where(y > 0, np.inf, 0), ridge=np.full(200, 0.5 / C), bias=bias)
    m = solve(KernelRows(Linear(), Table(X)), box, 1e-3, 100)
    assert m.converged
    assert m.relative <= 1e-3
    assert m.objective == pytest.approx(value(X @ X.T, box, m.b), rel=1e-6)
    assert (m.b >= box.lo).all()
    assert (m.b <= box.hi).all()


@pytest.mark.usefixtures("small_blocks")
def test_hard_problems_end_by_a_path_of_blocks(monkeypatch):
    monkeypatch.setattr(dual, "PATIENCE", 5)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    box = Box(y, np.minimum(y, 0) * 1e3, np.maximum(y, 0) * 1e3)
    m = solve(KernelRows(Linear(), Table(X)), box, 1e-3)
    assert m.relative <= 1e-3
    monkeypatch.setattr(blocks, "WHOLE", 1000)
    assert m.objective == pytest.approx(solve(KernelRows(Linear(), Table(X)), box, 1e-3).objective, rel=1e-3)


def test_paths_rise_to_the_problem_itself():
    _, box = problem(50, C=1.0)
    assert path(box, np.full(50, 1e-3)) == []
    assert path(Box(0 * box.t, box.lo, box.hi, total=3.0), np.full(50, 1e9)) == []
    shares = path(box, np.full(50, 1e40))
    assert shares[-1] == 1
    assert shares[0] < 1e-39
    assert (np.diff(shares) > 0).all()


def test_flat_slopes_end_it_only_where_the_gap_is_closed_too():
    X, box = problem(150, C=1e5)
    y = box.t
    rows = KernelRows(Gaussian(0.05), Table(X))  # every row is alone: the objective is n/2, and C n tol is far more
    m = solve(rows, box, 1e-3)
    assert m.relative <= 1e-3
    assert m.ended in ("gap", "slopes")
    assert value(Gaussian(0.05)(X), box, m.b) == pytest.approx(-0.5 * y @ np.linalg.solve(Gaussian(0.05)(X), y), rel=0.02)


def test_blocks_are_as_large_as_memory_allows():
    assert 2 * block_size(4e7, 4) ** 2 * 4 <= 1e7
    assert block_bytes(1e9, 4) == 2 * 4 * 4096**2
    assert held(100, 1.0, 1, 1e3, 8) == 8e4  # one matrix, which no limit makes smaller
    assert held(10**5, 1e4, 1, 1e9, 4) == block_bytes(1e9, 4) + 4e4
    assert held(10**5, 1e12, 1, 1e9, 4) == 1e9


def test_given_matrices_are_looked_at():
    X, _ = problem(80)
    K = Gaussian()(X)
    assert certain(K, bias=False)
    assert certain(K - 1, bias=True)  # duals that sum to zero see no constant
    assert not certain(K - 1, bias=False)
    assert not certain(-K, bias=True)
    K[0, 1] += 0.1
    with pytest.raises(ValueError, match="symmetric"):
        certain(K, bias=True)


# starting from some of the rows
@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
def test_duals_of_some_rows_are_a_start_nearer_to_the_optimum(e, bias):
    X, box = problem(3000, C=5.0, e=e, bias=bias)
    rows = KernelRows(Gaussian(), Table(X))
    start = begun(rows, box, 0.1, 1e9)
    K, zero = Gaussian()(X), np.zeros(3000)
    assert 0 < (start != 0).sum() <= 1000
    assert value(K, box, start) < value(K, box, zero)
    assert started(box, start) is not None  # within the bounds, and with the sum that is asked for
    with_start, without = solve(rows, box, 1e-4), solve(rows, box, 1e-4, start=zero)
    assert with_start.objective == pytest.approx(without.objective, rel=1e-4)
    assert with_start.rounds < without.rounds


def test_a_sum_that_is_told_has_no_start_from_some_rows():
    X, box = problem(3000)
    assert begun(KernelRows(Gaussian(), Table(X)), replace(box, total=1.0), 0.1, 1e9) is None


# tiles of bits
@pytest.mark.parametrize("d", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_are_counted_as_plainly(d, dtype):
    rng = np.random.default_rng(d)
    X, Z, values = rng.random((17, d)) < 0.3, rng.random((9, d)) < 0.6, rng.normal(size=d + 1).astype(dtype)
    out = np.empty((17, 9), dtype)
    lookup(packed(X), np.ascontiguousarray(packed(Z).T), values, out)
    np.testing.assert_array_equal(out, reference_lookup(X, Z, values))


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (3.0, 3.25)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_two_values_a_column_have_the_kernel_values_of_any_rows(low, high, dtype):
    rng = np.random.default_rng(3)
    X, Z = (np.where(rng.random((n, 70)) < 0.2, high, low).astype(dtype) for n in (30, 12))
    X[:, 5] = Z[:, 5] = high
    k, out = Gaussian(1.3), np.empty((30, 12), dtype)
    tiles = tiles_of(k, Table(X), Table(Z), dtype)
    assert isinstance(tiles, BitTiles)
    tiles.fill(tiles.side(Table(X), left=True), tiles.side(Table(Z), left=False), out)
    np.testing.assert_allclose(out, k(X.astype(float), Z.astype(float)), rtol=2e-6 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize(
    ("rows", "bandwidth", "apart"),
    [([1 + 2.0**-52, 1 + 2.0**-51], 2.0**-52, np.exp(-0.5)), ([-1.7e308, 1.7e308], 1.0, 0.0), ([0.0, 5e-324], 1.0, 1.0)],
)
def test_two_values_at_the_ends_of_floating_point(rows, bandwidth, apart):
    X, out = Table(np.array(rows)[:, None]), np.empty((2, 2))
    tiles = tiles_of(Gaussian(bandwidth), X, X, float)
    assert isinstance(tiles, BitTiles)
    tiles.fill(tiles.side(X, left=True), tiles.side(X, left=False), out)
    np.testing.assert_allclose(out, [[1, apart], [apart, 1]], rtol=1e-12)


def test_bits_are_used_only_where_distances_are_counts():
    bits = np.random.default_rng(0).integers(0, 2, (40, 6)).astype(float)
    other, wider = bits.copy(), bits.copy()
    other[17, 2] = 0.5
    wider[:, 3] *= 2
    assert isinstance(tiles_of(Gaussian(), Table(bits), Table(bits), float), BitTiles)
    assert isinstance(tiles_of(Gaussian((2.0,) * 6), Table(bits), Table(bits), float), BitTiles)
    assert isinstance(tiles_of(Gaussian(1e-200), Table(bits), Table(bits), float), BitTiles)
    for k, X, Z in ((Gaussian(), other, bits), (Gaussian(), bits, other), (Gaussian(), wider, wider), (Gaussian((1.0, 2) * 3), bits, bits)):
        assert not isinstance(tiles_of(k, Table(X), Table(Z), float), BitTiles)
    assert not isinstance(tiles_of(Linear(), Table(bits), Table(bits), float), BitTiles)


# from inside, and the gap that counts rounding
@pytest.mark.parametrize("e", [0.0, 0.1])
@pytest.mark.parametrize("ridge", [False, True])
@pytest.mark.parametrize("bias", [True, False])
def test_the_interior_point_method_ends_where_steps_do(e, ridge, bias):
    if e and ridge:
        pytest.skip("no loss is both")
    X, box = problem(120, e=e, bias=bias)
    if ridge:
        box = Box(box.t, np.where(box.t > 0, 0, -np.inf), np.where(box.t > 0, np.inf, 0), e, np.full(120, 0.5), bias)
    K = Polynomial(2)(X)
    b, exact = inner_start(lambda j: K[:, j], K.diagonal(), box)
    best = solve(KernelRows(Polynomial(2), Table(X)), box, 1e-9)
    assert exact
    assert value(K, box, b) == pytest.approx(best.objective, rel=1e-6)
    assert (b >= box.lo).all()
    assert (b <= box.hi).all()
    assert abs(b.sum()) < 1e-12 * np.abs(b).sum() or not bias
    assert inner_start(lambda j: np.eye(600)[:, j], np.ones(600), problem(600)[1]) is None  # of too high a rank


@pytest.mark.parametrize("ridge", [False, True])
def test_the_best_multiplier_has_the_least_gap(ridge):
    X, box = problem(60)
    r = np.full(60, 0.5 if ridge else 0.0)
    if ridge:
        box = Box(box.t, np.where(box.t > 0, 0, -np.inf), np.where(box.t > 0, np.inf, 0), 0.0, r)
    b = np.where(box.t > 0, 0.1, -0.1)
    G = Gaussian()(X) @ b + r * b - box.t
    best = soft_balance(G, b, box) if ridge else balance(G, box, float(b.sum()))
    least = min(smo.gap(G, b, box.lo, box.hi, 0.0, r, nu) for nu in np.linspace(-2, 2, 2001))
    assert smo.gap(G, b, box.lo, box.hi, 0.0, r, best) <= least + 1e-9


def test_a_gap_within_errors_is_the_largest_of_them():
    X, box = problem(80)
    m = solve(KernelRows(Gaussian(), Table(X)), box, 1e-3)
    rng, none = np.random.default_rng(0), np.zeros(80)
    G, error = Gaussian()(X) @ m.b - box.t, 0.01 * rng.random(80)
    bound = smo.gap_within(G, m.b, box.lo, box.hi, 0.0, none, -m.intercept, error)
    assert smo.gap_within(G, m.b, box.lo, box.hi, 0.0, none, -m.intercept, none) == smo.gap(G, m.b, box.lo, box.hi, 0.0, none, -m.intercept)
    for _ in range(50):
        assert smo.gap(G + error * rng.uniform(-1, 1, 80), m.b, box.lo, box.hi, 0.0, none, -m.intercept) <= bound


def test_rounding_of_stored_values_is_counted_and_solved_away_where_it_shows():
    X, box = problem(300, C=300.0, e=0.01)
    narrow = KernelRows(Gaussian(), Table(X.astype(np.float32)), np.float32)
    rough = certified(narrow, box, solved(narrow, box, 1e-3, 1000, 1e9))
    K = Gaussian()(X.astype(np.float32).astype(float))
    G = K @ rough.b - box.t
    true = smo.gap(G, rough.b, box.lo, box.hi, box.e, np.zeros(300), -rough.intercept)
    assert rough.rounding > 0
    assert true <= rough.gap
    assert solve(narrow, box, 1e-3).relative <= 1e-3
