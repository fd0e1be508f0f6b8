"""Posteriors by Laplace's approximation: logarithms, rounding that is mended."""

import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.models.gp.laplace import mode, probability
from mercer.models.gp.laplace_posterior import LaplacePosterior


def test_a_matrix_that_cannot_be_factored_is_refused():
    y = np.array([1.0, -1.0])
    for K in (np.diag([-10.0, 1.0]), np.full((2, 2), np.nan)):
        with pytest.raises(ValueError, match="positive semidefinite"), np.errstate(all="ignore"):
            mode(K, y)


def test_rounding_is_mended():
    """A rank-one matrix so large that its rounding is more than the identity."""
    x = np.linspace(1, 2, 30)
    m = mode(1e20 * np.outer(x, x), np.where(x > 1.5, 1.0, -1.0))
    assert np.isfinite([m.log, *m.f]).all()


def test_logs_of_a_process():
    X = np.random.default_rng(0).normal(size=(30, 2))
    p = LaplacePosterior.at_mode(Gaussian(), Table(X), np.where(X[:, 0] > 0, 1.0, -1.0), 4.0)
    logs = p.logs(Table(X))
    np.testing.assert_allclose(np.exp(logs).sum(1), 1)
    np.testing.assert_allclose(np.exp(logs[:, 1]), probability(*p.latent(Table(X))))
