"""Probabilities from scores: a sigmoid for every score, cross-fitted on scores of rows that their
model did not see."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit

from mercer.inputs import Array

FOLDS = 5


def sigmoid(f: Array, positive: Array, w: Array) -> tuple[float, float]:
    """(a, b) of P(positive | f) = 1 / (1 + exp(-(a f + b))), with targets drawn in from 0 and 1 as
    if one more row of each were seen.

    Platt, Probabilistic outputs for support vector machines (1999), by Newton steps (Lin, Lin and
    Weng, 2007).

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
        g, H = (
            Z.T @ (w * (p - target)),
            (Z * (w * p * (1 - p))[:, None]).T @ Z + 1e-12 * w.sum() * np.eye(2),
        )
        step, t = np.linalg.solve(H, g), 1.0
        while (new := _loss(Z @ (x - t * step), target, w)) > value - 1e-4 * t * float(
            g @ step
        ) and t > 1e-10:
            t /= 2
        x, done, value = x - t * step, value - new <= 1e-10 * abs(value), new
        if done:
            break
    return float(x[0] / scale), float(x[1])


def _loss(f: Array, target: Array, w: Array) -> float:
    return float(w @ (np.logaddexp(0, f) - target * f))


def probabilities(f: Array, a: Array, b: Array) -> Array:
    """(n, K): of one score, two classes; of one a class, sigmoids that are made to sum to 1; of the
    precision of f."""
    a, b = a.astype(f.dtype), b.astype(f.dtype)
    if f.ndim == 1:
        p = expit(a[0] * f + b[0])
        return np.stack([1 - p, p], axis=1)
    p = np.maximum(expit(a * f + b), 1e-15)
    return p / p.sum(1, keepdims=True)


def enough_rows(codes: Array) -> int:
    """The size of the smallest class, which folds must be able to share."""
    least = int(np.bincount(codes).min())
    if least < 2:
        raise ValueError(
            "probability=True needs two rows of every class, as each fold must leave some; give more rows."
        )
    return least


def cross_fitted(
    codes: Array, w: Array, scores: Callable[[Array, Array], Array]
) -> tuple[Array, Array]:
    """(a, b), one of each a score; `scores(train, test)` are those of the test rows by a model of
    the others. All weights are positive."""
    from sklearn.model_selection import StratifiedKFold  # it takes a tenth of a first use

    least, K = enough_rows(codes), int(codes.max()) + 1
    weight = w * (len(w) / w.sum())  # as many as there are rows, whatever the unit of weights
    f = np.empty((len(codes),) if K == 2 else (len(codes), K))
    folds = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=0)
    for train, test in folds.split(codes, codes):
        f[test] = scores(train, test)
    f = f.reshape(len(codes), -1)
    found = [sigmoid(f[:, k], codes == (1 if K == 2 else k), weight) for k in range(f.shape[1])]
    return np.array([a for a, _ in found]), np.array([b for _, b in found])
