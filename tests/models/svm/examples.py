"""Dual problems to solve, and what duals are worth in them."""

import numpy as np

from mercer.models.svm.problem import DualProblem


def example(n=200, d=3, C=2.0, e=0.0, seed=0, bias=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    if e:
        return X, DualProblem(
            np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n),
            np.full(n, -C),
            np.full(n, C),
            e,
            bias=bias,
        )
    c = C * rng.uniform(0.5, 1.5, n)
    return X, DualProblem(y, np.minimum(y, 0) * c, np.maximum(y, 0) * c, bias=bias)


def value(K, problem, b):
    ridge = 0 if problem.ridge is None else problem.ridge
    return b @ K @ b / 2 + np.sum(ridge * b**2) / 2 - problem.t @ b + problem.e * np.abs(b).sum()
