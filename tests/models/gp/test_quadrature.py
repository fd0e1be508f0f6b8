"""The determinant by quadrature: within its error, which falls as probes are added."""

import numpy as np
import pytest

from mercer.kernels import Gaussian
from mercer.linalg.precondition import Woodbury
from mercer.models.gp.quadrature import log_determinant


def data(n=40, q=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.column_stack([np.sin(X[:, :1] + j) + 0.1 * rng.normal(size=(n, 1)) for j in range(q)])


def test_the_determinant_is_within_its_error():
    """Over preconditioners: four standard errors, and the better the preconditioner the smaller they are."""
    X, _ = data(300)
    A = Gaussian(0.8)(X) + 0.05 * np.eye(300)
    values, vectors = np.linalg.eigh(A - 0.05 * np.eye(300))
    exact, errors = np.linalg.slogdet(A)[1], []
    for rank in (0, 20, 100):
        F = vectors[:, ::-1][:, :rank] * np.sqrt(np.maximum(values[::-1][:rank], 0))
        found = [log_determinant(lambda V: A @ V, Woodbury.of(F.copy(), np.full(300, 0.05)), seed=s) for s in range(5)]
        assert np.mean([d.log for d in found]) == pytest.approx(exact, abs=4 * np.mean([d.error for d in found]) / np.sqrt(5))
        errors.append(np.mean([d.error for d in found]))
    assert errors[0] > errors[1] > 2 * errors[2]


def test_probes_are_taken_until_the_error_is_small():
    """Over seeds: where the preconditioner is poor, more probes, and the estimate as near as its error says."""
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
