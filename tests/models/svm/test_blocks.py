"""Blocks of rows: with shrinking they end where one block does, as large as memory allows."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear
from mercer.models.svm import blocks
from mercer.models.svm import solver as dual
from mercer.models.svm.problem import DualProblem
from mercer.models.svm.solver import block_bytes, block_size, kernel_bytes, solve
from mercer.operators import TileOperator
from mercer.ops.threads import limit
from tests.models.svm.examples import example, value


@pytest.fixture
def small_blocks(monkeypatch):
    for name, size in {"ONE_BLOCK": 60, "MIN_BLOCK": 64, "MAX_BLOCK": 128}.items():
        monkeypatch.setattr(blocks, name, size)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("e", [0.0, 0.05])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("memory", [1e6, 2e5, 0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_shrinking_end_where_one_block_does(monkeypatch, e, bias, memory, dtype):
    X, problem = example(700, e=e, bias=bias, C=5.0)
    shrunk, widened = [], []
    for name, seen in (("_shrink", shrunk), ("_widen", widened)):
        monkeypatch.setattr(
            blocks.BlockSolver, name, counted(getattr(blocks.BlockSolver, name), seen)
        )
    m = solve(TileOperator(Gaussian(), Table(X), dtype), problem, 1e-4, memory=memory)
    monkeypatch.setattr(blocks, "ONE_BLOCK", 1000)
    whole = solve(TileOperator(Gaussian(), Table(X)), problem, 1e-4)
    assert m.converged
    assert m.objective == pytest.approx(whole.objective, rel=1e-4)
    assert m.intercept == pytest.approx(whole.intercept, abs=5e-3)
    K = Gaussian()(X)
    assert m.objective == pytest.approx(value(K, problem, m.b), rel=1e-5)
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
    X, problem = example(500)
    found = []
    for n in (1, 3):
        with limit(n):
            found.append(
                solve(
                    TileOperator(Gaussian(), Table(X.astype(np.float32)), np.float32), problem, 1e-3
                )
            )
    np.testing.assert_array_equal(found[0].b, found[1].b)


@pytest.mark.usefixtures("small_blocks")
def test_hard_problems_end_by_a_path_of_blocks(monkeypatch):
    monkeypatch.setattr(dual, "PATIENCE", 5)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    problem = DualProblem(y, np.minimum(y, 0) * 1e3, np.maximum(y, 0) * 1e3)
    m = solve(TileOperator(Linear(), Table(X)), problem, 1e-3)
    assert m.relative <= 1e-3
    monkeypatch.setattr(blocks, "ONE_BLOCK", 1000)
    assert m.objective == pytest.approx(
        solve(TileOperator(Linear(), Table(X)), problem, 1e-3).objective, rel=1e-3
    )


def test_blocks_are_as_large_as_memory_allows():
    assert 2 * block_size(4e7, 4) ** 2 * 4 <= 1e7
    assert block_bytes(1e9, 4) == 2 * 4 * 4096**2
    assert kernel_bytes(100, 1.0, 1, 1e3, 8) == 8e4  # one matrix, which no limit makes smaller
    assert kernel_bytes(10**5, 1e4, 1, 1e9, 4) == block_bytes(1e9, 4) + 4e4
    assert kernel_bytes(10**5, 1e12, 1, 1e9, 4) == 1e9
