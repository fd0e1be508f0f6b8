"""The determinant by quadrature: within its error, which falls as probes are added."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian, Linear, Matern, Periodic
from mercer.linalg.precondition import Woodbury
from mercer.models.gp.likelihood import marginal_likelihood
from mercer.models.gp.quadrature import estimated_likelihood, log_determinant
from mercer.models.gp.sparse import BLOCK_ROWS


def data(n=40, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack(
        [np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)]
    )


def test_the_determinant_is_within_its_error():
    """Over preconditioners: four standard errors, and the better the preconditioner the smaller
    they are."""
    X, _ = data(300)
    A = Gaussian(0.8)(X) + 0.05 * np.eye(300)
    values, vectors = np.linalg.eigh(A - 0.05 * np.eye(300))
    exact, errors = np.linalg.slogdet(A)[1], []
    for rank in (0, 20, 100):
        F = vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], 0))
        found = [
            log_determinant(lambda V: A @ V, Woodbury.of(F.copy(), np.full(300, 0.05)), seed=s)
            for s in range(5)
        ]
        assert np.mean([d.log for d in found]) == pytest.approx(
            exact, abs=4 * np.mean([d.error for d in found]) / np.sqrt(5)
        )
        errors.append(np.mean([d.error for d in found]))
    assert errors[0] > errors[1] > 2 * errors[2]


def test_probes_are_taken_until_the_error_is_small():
    """Over seeds: where the preconditioner is poor, more probes, and the estimate as near as its
    error says."""
    A = np.diag(np.geomspace(1.0, 1e4, 200))
    P, product = Woodbury.of(np.zeros((200, 0)), np.full(200, 100.0)), lambda V: A @ V
    few = [log_determinant(product, P, seed=s) for s in range(5)]
    more = [log_determinant(product, P, seed=s, error=5.0) for s in range(5)]
    assert min(d.error for d in few) > 5 >= max(d.error for d in more)
    assert np.mean([abs(d.log - np.log(A.diagonal()).sum()) < 2 * d.error for d in more]) >= 0.8
    assert log_determinant(product, P, error=0.0).error > 0  # there is an end to it


def test_a_length_of_probes_adds_no_spread():
    """A = c P: the directions tell all, and every probe the same."""
    d = log_determinant(lambda V: 7.0 * V, Woodbury.of(np.zeros((50, 0)), np.ones(50)))
    assert d.error < 1e-9
    assert d.log == pytest.approx(50 * np.log(7.0))


KERNELS = {
    "gaussian": Gaussian((0.5, 1.0, 2.0)),
    "matern": 0.7 * Matern(1.2, nu=2.5),
    "sum": Gaussian(0.4) + 0.3 * Periodic(1.0, 2.0),
    "not stationary": Linear() * Gaussian(1.5) + 2.0,
}


def blocks(n=2 * BLOCK_ROWS + 88, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack(
        [np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)]
    )


# on the operator
@pytest.mark.parametrize("name", ["gaussian", "matern", "sum"])
@pytest.mark.parametrize("scale", [None, pytest.param(1.7, marks=pytest.mark.long)])
@pytest.mark.parametrize("memory", [1e9, 80_000.0], ids=["good", "poor"])
def test_slopes_by_products_are_the_exact_ones(name, scale, memory):
    """The mean over seeds is within four standard errors, which are no larger than the slopes, or
    sqrt(n)."""
    (X, Y), k = blocks(500), KERNELS[name]
    exact = marginal_likelihood(k, Table(X), Y, 0.05, scale)
    found = [
        estimated_likelihood(k, Table(X), Y, 0.05, scale, seed=s, memory=memory) for s in range(6)
    ]
    slopes = np.array([f.gradient for f in found])
    each = slopes.std(0, ddof=1)
    assert (
        each <= np.maximum(np.abs(exact.gradient), np.sqrt(500)) * (0.6 if memory == 1e9 else 1.5)
    ).all()
    assert (np.abs(slopes.mean(0) - exact.gradient) <= 4 * each / np.sqrt(6) + 0.05).all()
    assert np.mean([f.log for f in found]) == pytest.approx(exact.log, abs=0.01 * 500)
    assert found[0].scale == pytest.approx(exact.scale, rel=1e-3)
