"""What a search makes small."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from mercer.models.feature_machine.losses import classification_loss, squared_error


def plain(F, hot, weight):
    """Log loss at the best slope, and the share of errors, by SciPy."""
    if F.shape[1] == 1:
        F, hot = (np.column_stack([-A, A]) for A in (F, hot))
    right = hot.argmax(1)
    mine = F[np.arange(len(F)), right]

    def log_loss(t):
        z = np.exp(t)
        return float(np.average(logsumexp(z * F, axis=1) - z * mine, weights=weight))

    found = minimize_scalar(log_loss, bounds=(-2, 5), method="bounded", options=dict(xatol=0.05))
    return found.fun + np.average(F.argmax(1) != right, weights=weight)


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e9])
@pytest.mark.parametrize("columns", [1, 2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_log_loss_is_the_plain_one(size, columns, weighted, dtype):
    rng = np.random.default_rng(columns)
    for n in (1, 2, 90):
        codes = rng.integers(0, max(2, columns), n)
        hot = codes[:, None] - 0.5 if columns == 1 else np.eye(columns)[codes]
        weight = rng.uniform(0.1, 2, n) if weighted else None
        noise = rng.normal(size=hot.shape)
        for F in (noise, hot + noise, hot, np.zeros_like(hot), np.round(noise)):
            F = (size * F).astype(dtype)
            loss = classification_loss(F, hot, weight)
            assert loss == pytest.approx(plain(F, hot, weight), rel=1e-12, abs=1e-15)


def test_squares():
    F, Y = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [2.0, 0.0]])
    assert squared_error(F, Y, None) == 2.25
    assert squared_error(F, Y, np.array([0.0, 1.0])) == 2.0
