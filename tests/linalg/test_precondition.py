"""Preconditioners: the inverse that they say, positive, of a rank that pays."""

import numpy as np
import pytest

from mercer.kernels import Gaussian, Linear
from mercer.linalg.precondition import NoPreconditioner, RPCholesky, Woodbury
from mercer.linalg.solvers import CG
from mercer.operators import KernelOperator


def data(n=200, d=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[n // 2] = X[0]  # a duplicate
    X[n // 2 + 1] = X[1] + X[2]
    return X.astype(dtype), rng.normal(size=(n, 3))


@pytest.mark.parametrize("d", [1e-6, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_woodbury_is_the_inverse_and_stays_positive(d, scale):
    rng = np.random.default_rng(0)
    F = scale * rng.normal(size=(200, 30)) * np.logspace(0, -6, 30)
    P = F @ F.T + d * np.eye(200)
    W = Woodbury.of(F.copy(), np.full(200, d))
    if scale**2 / d < 1e13:
        inverse = W.solve(np.eye(200))
        np.testing.assert_allclose(
            P @ inverse, np.eye(200), atol=1e-9 * max(1, np.linalg.norm(P) / d) ** 0.9
        )
        assert np.linalg.eigvalsh(inverse + inverse.T).min() > 0
    V = rng.normal(size=(200, 5))
    assert (np.sum(V * W.solve(V), axis=0) > 0).all()


def test_a_preconditioner_saves_most_steps():
    X, B = data(800, 3)
    ridge = np.full(800, 0.1)
    op = KernelOperator(Gaussian(1.5), X)
    with_it, without = (
        CG(preconditioner=p).init(op, ridge).solve(B) for p in (RPCholesky(), NoPreconditioner())
    )
    assert max(with_it.residual, without.residual) <= 1e-6
    assert 4 * with_it.steps < without.steps


def test_the_rank_is_bounded_by_memory_and_by_need():
    X, _ = data(500)
    op = KernelOperator(Gaussian(2.0), X)
    assert RPCholesky(100).init(op, np.full(500, 1e-2), memory=8 * 500 * 20).rank == 20
    assert RPCholesky(400).init(op, np.full(500, 1e5)).rank < 10
    assert RPCholesky(400).init(KernelOperator(Linear(), X), np.full(500, 1e-6)).rank == 4


def test_pivots_end_where_they_no_longer_pay():
    """Fewer where the ridge is large or the kernel has no leading directions, more where steps are
    dear, all where they are hard."""
    X = np.random.default_rng(0).normal(size=(1500, 8))
    rank = lambda bandwidth, alpha, step: (
        RPCholesky()
        .init(KernelOperator(Gaussian(bandwidth), X), np.full(1500, alpha), step=step)
        .rank
    )
    dear = [rank(3.0, 1e-2, step) for step in (1.0, 4.0, 20.0, np.inf)]
    assert dear == sorted(dear)
    assert dear[0] < 400 < dear[-1] == 1000
    assert rank(3.0, 10.0, 1.0) < dear[0]
    assert rank(0.3, 1e-2, 1.0) < 250  # nearly the identity
    assert rank(1.0, 1e-5, 1.0) == 1000
    op = KernelOperator(Gaussian(3.0), X)
    assert (
        RPCholesky(400).init(op, np.full(1500, 1e-2), step=1.0).rank == 400
    )  # what is asked for is given
    assert CG().init(op, np.full(1500, 1e-2), 1).solve(X[:, :1]).residual <= 1e-6
