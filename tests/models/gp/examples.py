"""Rows to learn from, with noise."""

import numpy as np


def data(n=60, seed=0, noise=0.3, d=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
