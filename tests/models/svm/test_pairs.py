"""Pairs of classes judged at once: as each of them alone, on rows that are hard."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear
from mercer.models.svm.gram import GramMatrix
from mercer.models.svm.multiclass import HingeSettings, OneVsOne
from mercer.models.svm.solver import solve
from mercer.operators import TileOperator
from mercer.ops import smo
from mercer.ops.threads import limit

K = 5


def hard(kind, n=150):
    rng = np.random.default_rng(3)
    X, codes = rng.normal(size=(n, 3)), rng.integers(0, K, n)
    codes[:K] = range(K)
    if kind == "near-copies":
        X = X[rng.integers(0, 10, n)] + 1e-7 * X
    elif kind == "copies":
        X = X[rng.integers(0, 10, n)]
    elif kind == "lines":
        X = np.outer(X[:, 0], [1.0, 2.0, -1.0])
    elif kind == "far":
        X = X + 1e6
    elif kind == "nearly empty":
        codes = np.where(codes == 4, 3, codes)
        codes[7] = 4
    return X, codes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [0.1, 30.0])
@pytest.mark.parametrize("kind", ["plain", "near-copies", "copies", "lines", "far", "nearly empty"])
def test_pairs_at_once_are_those_one_by_one(kind, C, dtype):
    X, codes = hard(kind)
    how, op = HingeSettings(), TileOperator(Gaussian(1.5), Table(X), dtype)
    pairs = OneVsOne(op, codes, np.full(len(X), C), how)
    assert pairs.K is not None
    exact = Gaussian(1.5)(X)
    for (a, b), rule in zip(pairs.pairs, pairs.solve(), strict=True):
        index, m = rule.index, rule.solution
        np.testing.assert_array_equal(index, np.concatenate([pairs.of[a], pairs.of[b]]))
        y = np.where(codes[index] == a, 1.0, -1.0)
        problem = how.problem(y, np.full(len(index), C))
        alone = solve(op.wide.restrict(index), problem, 1e-6)
        value = 0.5 * m.b @ exact[np.ix_(index, index)] @ m.b - y @ m.b
        assert m.relative <= how.tol
        assert abs(m.b.sum()) <= 1e-9 * C * len(index)
        assert ((m.b >= problem.lo) & (m.b <= problem.hi)).all()
        # the gap bounds what is left, whatever rounding does to kernel values
        assert value <= alone.objective + m.gap + 1e-9 * abs(value)
        h = exact[np.ix_(index, index)] @ m.b - y + m.intercept
        assert smo.reference_shares(h, m.b, problem.lo, problem.hi, 0.0, 0 * h).sum() <= m.gap * (
            1 + 1e-6
        ) + 1e-9 * abs(value)


@pytest.mark.parametrize("way", ["squared_hinge", "no bias", "no room"])
def test_pairs_that_are_not_judged_at_once(way):
    X, codes = hard("plain")
    how = {
        "squared_hinge": HingeSettings(loss="squared_hinge"),
        "no bias": HingeSettings(bias=False),
        "no room": HingeSettings(memory=1e4),
    }[way]
    op, c = TileOperator(Linear(), Table(X)), np.ones(len(X))
    pairs = OneVsOne(op, codes, c, how)
    assert (pairs.K is None) == (way == "no room")
    for rule in pairs.solve():
        assert rule.solution.converged
        assert rule.solution.relative <= how.tol


def test_shares_in_few_passes_are_the_plain_ones():
    rng = np.random.default_rng(0)
    lo, hi = -rng.random(200) * (rng.random(200) < 0.5), rng.random(200)
    b, h = rng.uniform(lo, hi), rng.normal(size=200)
    h[:5] = 0
    for e in (0.0, 0.3):
        np.testing.assert_allclose(
            smo.shares(h, b, lo, hi, e),
            smo.reference_shares(h, b, lo, hi, e, np.zeros(200)),
            atol=1e-15,
        )


def test_a_pair_that_does_not_end_goes_alone(monkeypatch):
    """Steps that run out leave it to what takes single problems further."""
    monkeypatch.setattr("mercer.models.svm.pairs.STEPS", 1)
    X, codes = hard("plain")
    op = TileOperator(Gaussian(1.5), Table(X))
    pairs = OneVsOne(op, codes, np.full(len(X), 1e4), HingeSettings())
    assert all(r.solution.relative <= 1e-3 for r in pairs.solve())


def test_large_pairs_side_by_side_are_those_alone(monkeypatch):
    """The same bits whatever the number of threads, and of the same worth as one at a time."""
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 64)
    X, codes = hard("plain", 600)
    op, c = TileOperator(Gaussian(1.5), Table(X)), np.full(600, 3.0)
    found = {}
    for threads, memory in ((1, 1e9), (2, 1e9), (2, 3e6)):
        with limit(threads):
            found[threads, memory] = OneVsOne(op, codes, c, HingeSettings(memory=memory)).solve()
    for one, two, alone in zip(*found.values(), strict=True):
        np.testing.assert_array_equal(one.solution.b, two.solution.b)
        objective = alone.solution.objective
        assert abs(one.solution.objective - objective) <= 2e-3 * abs(objective)
        assert one.solution.relative <= 1e-3


@pytest.mark.parametrize("apart", [0.0, 4.0])
def test_pairs_that_ask_for_few_rows_are_those_with_all_values(apart, monkeypatch):
    """Where half of the memory holds no matrix of a pair, easy ones go side by side all the same,
    and the others have all of it."""
    monkeypatch.setattr("mercer.models.svm.blocks.ONE_BLOCK", 64)
    X, codes = hard("plain", 900)
    X = X + apart * np.eye(K, 3)[codes] * 4
    op, c = TileOperator(Gaussian(2.0), Table(X)), np.full(900, 3.0)
    memory = 1.3 * (GramMatrix.bytes(400, 8) + 8 * 256**2)
    few, most = (
        OneVsOne(op, codes, c, HingeSettings(memory=memory)).solve(),
        OneVsOne(op, codes, c, HingeSettings()).solve(),
    )
    for one, alone in zip(few, most, strict=True):
        objective = alone.solution.objective
        assert abs(one.solution.objective - objective) <= 2e-3 * abs(objective)
        assert one.solution.relative <= 1e-3


def test_few_kernel_rows_are_computed_where_few_are_asked_for():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3000) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(3000, 3)) + 3 * y[:, None]
    op, problem = TileOperator(Gaussian(2.0), Table(X)), HingeSettings().problem(y, np.ones(3000))
    easy = solve(op, problem, 1e-4)
    whole = solve(op, problem, 1e-4, columns=GramMatrix.of(op))
    assert easy.made < 1000 < whole.made
    assert abs(easy.objective - whole.objective) <= easy.gap + whole.gap
    mixed = solve(op, HingeSettings().problem(rng.permutation(y), np.ones(3000)), 1e-3)
    assert mixed.made == 1500  # of one triangle
