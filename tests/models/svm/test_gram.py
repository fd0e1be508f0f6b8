"""All kernel values computed once: those of the plain matrix, whatever the panels and threads, and
the same duals as rows kept within a limit lead to."""

import numpy as np
import pytest

from mercer import KernelSVC
from mercer.inputs import Table
from mercer.kernels import Gaussian, Laplace, Linear
from mercer.models.svm import blocks, gram
from mercer.models.svm.gram import GramMatrix, padded, square
from mercer.models.svm.solver import gram_fits, solve
from mercer.operators import CentredOperator, TileOperator
from mercer.operators import tiles as panel_sizes
from mercer.ops.threads import limit
from tests.models.svm.examples import example, value


@pytest.fixture(autouse=True)
def small_panels(monkeypatch):
    monkeypatch.setattr(panel_sizes, "PANEL_ROWS", 48)
    monkeypatch.setattr(panel_sizes, "WIDE_PANEL_ROWS", 80)
    monkeypatch.setattr(gram, "PART_ROWS", 32)
    for name, size in {"ONE_BLOCK": 60, "MIN_BLOCK": 64, "MAX_BLOCK": 128}.items():
        monkeypatch.setattr(blocks, name, size)


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(1.0), Linear()])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (47, 3), (48, 3), (131, 5), (170, 200)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_value_is_that_of_the_kernel(kernel, n, d, dtype):
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    X[n // 2 :: 7] = X[0]  # copies of a row
    op = TileOperator(kernel, Table(X), dtype)
    K = square(op)
    assert K.dtype == dtype
    np.testing.assert_array_equal(K[:, n:], 0)
    np.testing.assert_array_equal(K[:, :n], K[:, :n].T)
    scale = np.abs(kernel(X)).max()
    np.testing.assert_allclose(
        K[:, :n], kernel(X), rtol=0, atol=3e-5 * scale if dtype == np.float32 else 1e-9 * scale
    )
    np.testing.assert_array_equal(K.diagonal(), op.diag().astype(dtype))


def test_some_rows_and_sums_of_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    K, rows = Gaussian()(X), rng.permutation(150)[:70]
    K = (K + K.T) / 2
    G = GramMatrix.of(CentredOperator(K))
    np.testing.assert_array_equal(G.some(rows)[:, :70], K[np.ix_(rows, rows)])
    room = np.full(10**5, np.nan)
    np.testing.assert_array_equal(G.some(rows, room), G.some(rows))
    np.testing.assert_array_equal(G.restrict(rows).K, G.some(rows))
    delta, out = rng.normal(size=70), np.ones(150)
    G.add(out, rows, delta)
    np.testing.assert_allclose(out, 1 + K[:, rows] @ delta, atol=1e-12)


def test_threads_change_nothing():
    X, problem = example(400)
    op, found = TileOperator(Gaussian(), Table(X), np.float32), []
    for n in (1, 3):
        with limit(n):
            found.append((square(op), solve(op, problem, 1e-3).b))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize("e", [0.0, 0.05])
@pytest.mark.parametrize("bias", [True, False])
def test_the_same_duals_as_by_rows_that_are_kept(e, bias):
    X, problem = example(500, e=e, bias=bias, C=5.0)
    op = TileOperator(Gaussian(), Table(X), np.float32)
    assert gram_fits(500, 1e9, 4)
    assert not gram_fits(500, 1e6, 4)
    once, rows = (solve(op, problem, 1e-4, memory=memory) for memory in (1e9, 1e6))
    assert once.converged
    assert rows.converged
    assert once.objective == pytest.approx(rows.objective, rel=1e-4)
    assert once.objective == pytest.approx(value(Gaussian()(X), problem, once.b), rel=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_classes_share_kernel_values(loss, multiclass):
    rng = np.random.default_rng(3)
    y = rng.choice(4, 400, p=[0.5, 0.3, 0.15, 0.05])
    X = rng.normal(size=(400, 3)) + 1.5 * np.eye(4, 3)[y]
    models = [
        KernelSVC(Gaussian(), via="exact", loss=loss, multiclass=multiclass, memory_limit=m)
        for m in (1e9, 3e5)
    ]
    once, rows = (m.fit(X, y) for m in models)
    assert once.objective_ == pytest.approx(rows.objective_, rel=1e-3)
    assert (once.predict(X) == rows.predict(X)).mean() > 0.99


def test_padding_is_zero_in_memory_that_was_used():
    out = padded(65, np.float64, np.full(70 * 128, np.nan))
    assert out.shape == (65, 128)
    np.testing.assert_array_equal(out[:, 65:], 0)
