"""Fewer support vectors: what a projection loses."""
import numpy as np
import pytest

from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.models.svm.machine import project


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
