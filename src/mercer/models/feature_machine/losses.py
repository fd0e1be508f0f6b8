"""What a search makes small on held-out rows: squares, or log loss and errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from mercer.inputs import Array

Loss = Callable[[Array, Array, Array | None], float]  # of scores (m, q), targets and weights


def squared_error(F: Array, Y: Array, weight: Array | None) -> float:
    return float(np.average(np.square(F - Y).mean(axis=1), weights=weight))


def classification_loss(F: Array, Y: Array, weight: Array | None) -> float:
    """Log loss at the best slope of the scores, and the share of errors; targets are one-hot."""
    F, hot = (_both_classes(A) for A in (F.astype(np.float64), Y))
    first, right, rows = F.argmax(axis=1), hot.argmax(axis=1), np.arange(len(F))
    top, mine = F[rows, first], F[rows, right]
    others = F[np.arange(F.shape[1]) != first[:, None]].reshape(len(F), -1)

    def log_loss(t: float) -> float:  # log sum_c exp(z f_c) - z f_right, the largest term apart
        z = np.exp(t)
        beyond = np.exp(z * others - (z * top)[:, None]).sum(axis=1)
        return float(np.average(np.log1p(beyond) + z * top - z * mine, weights=weight))

    best = minimize_scalar(log_loss, bounds=(-2.0, 5.0), method="bounded", options=dict(xatol=0.05))
    wrong = np.average(first != right, weights=weight)
    return float(best.fun) + float(wrong)


def _both_classes(A: Array) -> Array:
    """Of two classes one column is kept."""
    return np.column_stack([-A, A]) if A.shape[1] == 1 else A
