"""Who votes: shares, votes that may not be, and votes of none."""

import numpy as np
import pytest

from mercer.kernels import Gaussian, Linear, exp
from mercer.models.smoothing import FarAwayWarning, NadarayaWatson


def data(n=150, seed=0, q=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], X[:, 2] ** 2]) + 0.1 * rng.normal(
        size=(n, 2)
    )
    return X, Y if q else Y[:, 0]


def plainly(K, y, w=1.0):
    return (K * w) @ y / (K * w).sum(1)[(...,) + (None,) * (np.ndim(y) - 1)]


def test_negative_votes_are_refused():
    X, y = data(30)
    for model, rows in (
        (NadarayaWatson(Linear()), X),
        (NadarayaWatson("precomputed"), Linear()(X)),
    ):
        with pytest.raises(ValueError, match="negative for some pairs"):
            model.fit(rows, y).predict(rows)
    np.testing.assert_allclose(
        NadarayaWatson(Linear()).fit(np.abs(X), y).predict(np.abs(X)),
        plainly(Linear()(np.abs(X)), y),
        atol=1e-9,
    )


@pytest.mark.parametrize("precomputed", [False, True])
def test_votes_of_zero_are_told_as_such(precomputed):
    X, y, Z = (
        np.array([[1.0, 0, 0], [2.0, 0, 0]]),
        np.array([1.0, 3.0]),
        np.array([[0.0, 1.0, 0], [1.0, 0, 0], [0, 0, 5.0]]),
    )
    k = Linear() ** 2
    m = NadarayaWatson("precomputed").fit(k(X), y) if precomputed else NadarayaWatson(k).fit(X, y)
    with pytest.warns(FarAwayWarning) as told:
        out = m.predict(k(Z, X) if precomputed else Z)
    assert (
        str(told[0].message)
        == "2 of 3 queries have only votes of zero; they are answered by all training points equally."
    )
    np.testing.assert_allclose(out, [2.0, 2.6, 2.0])
    np.testing.assert_allclose(
        m.votes(k(Z, X) if precomputed else Z, 2)[1], [[0.5, 0.5], [0.8, 0.2], [0.5, 0.5]]
    )


def test_votes_of_none_go_by_weight():
    m = NadarayaWatson("precomputed").fit(np.eye(3), [1.0, 2.0, 6.0], [1.0, 3.0, 2.0])
    index, shares = m.votes(np.zeros((1, 3)), 2)
    assert index.tolist() == [[1, 2]]
    np.testing.assert_allclose(shares, [[1 / 2, 1 / 3]])


def test_values_too_large_for_votes_are_refused():
    m = NadarayaWatson(exp(Linear())).fit([[1.0], [2.0]], [1.0, 2.0])
    for ask in (m.predict, m.votes):
        with pytest.raises(ValueError, match="too large"):
            ask([[1.7e308]])
    with pytest.raises(ValueError, match="too large"):
        NadarayaWatson(exp(Linear()) * Gaussian(1e200), bandwidth="loo").fit(
            [[1e200], [2e200]], [1.0, 2.0]
        )
