"""Probabilities from scores: a sigmoid for every score, fitted on scores of rows that its model did not see."""
from __future__ import annotations

import numpy as np
from scipy.special import expit

from mercer.inputs import Array


def sigmoid(f: Array, positive: Array, w: Array) -> tuple[float, float]:
    """(a, b) of P(positive | f) = 1 / (1 + exp(-(a f + b))), with targets drawn in from 0 and 1 as if one more row of each were seen.

    Platt, Probabilistic outputs for support vector machines (1999), by Newton steps (Lin, Lin and Weng, 2007).

    >>> a, b = sigmoid(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]), np.ones(4))
    >>> a > 0, abs(b) < 1e-6
    (True, True)
    """
    up, down = w[positive].sum(), w[~positive].sum()
    target = np.where(positive, (up + 1) / (up + 2), 1 / (down + 2))
    scale = float(np.abs(f).max()) or 1.0
    Z = np.stack([f / scale, np.ones(len(f))], axis=1)
    x = np.array([0.0, np.log((up + 1) / (down + 1))])
    value = _loss(Z @ x, target, w)
    for _ in range(100):
        p = expit(Z @ x)
        g, H = Z.T @ (w * (p - target)), (Z * (w * p * (1 - p))[:, None]).T @ Z + 1e-12 * w.sum() * np.eye(2)
        step, t = np.linalg.solve(H, g), 1.0
        while (new := _loss(Z @ (x - t * step), target, w)) > value - 1e-4 * t * float(g @ step) and t > 1e-10:
            t /= 2
        x, done, value = x - t * step, value - new <= 1e-10 * abs(value), new
        if done:
            break
    return float(x[0] / scale), float(x[1])


def _loss(f: Array, target: Array, w: Array) -> float:
    return float(w @ (np.logaddexp(0, f) - target * f))


def probabilities(f: Array, a: Array, b: Array) -> Array:
    """(n, K): of one score, two classes; of one a class, sigmoids that are made to sum to 1; of the precision of f."""
    a, b = a.astype(f.dtype), b.astype(f.dtype)
    if f.ndim == 1:
        p = expit(a[0] * f + b[0])
        return np.stack([1 - p, p], axis=1)
    p = np.maximum(expit(a * f + b), 1e-15)
    return p / p.sum(1, keepdims=True)
