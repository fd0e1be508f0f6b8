"""Relevance: how steep a fitted function is along every column, so that one bandwidth a column can follow it."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from mercer.inputs import Array
from mercer.linalg import least_squares
from mercer.ops.threads import single_blas
from mercer.product.crossval import dense
from mercer.product.recipes import Recipe, rounded
from mercer.stats import Moments

ROWS = 2_000  # at which slopes are measured
STEP = 0.1  # standard deviations
LEAST = 0.05  # of the mean relevance: no column is switched off for good


def slopes(lift: Any, X: Array, Y: Array, alpha: float, w: Array | None = None) -> Array:
    """The mean square of df/dx_j over rows and outputs, for the ridge regression f of Y on the features; (p,).

    The diagonal of the expected outer product of gradients, of which Radhakrishnan, Beaglehole, Pandit and Belkin
    (Science, 2024) show that it is what networks learn about their inputs.
    """
    with single_blas():
        phi = clone(lift).fit(X)
        F = dense(phi.transform(X))
        m = Moments.of(np.concatenate([F, Y.astype(np.float32)], axis=1), w, shift=np.concatenate([F.mean(0), Y.mean(0)]))
        coef = least_squares.solve(m, F.shape[1], alpha).coef.astype(np.float32)
    few = X[:ROWS]
    base = F[: len(few)] @ coef
    return np.array([_slope(phi, few, j, base, coef) for j in range(X.shape[1])])


def _slope(phi: Any, X: Array, j: int, base: Array, coef: Array) -> float:
    moved = X.copy()
    moved[:, j] += STEP
    return float(np.square((dense(phi.transform(moved)) @ coef - base) / STEP).sum(1).mean())


def followed(recipe: Recipe, relevance: Array, power: float) -> Recipe:
    """The same kernel with bandwidths that are shorter where f is steeper: b_j in proportion to relevance_j^(-power).

    Their scale is such that the mean of 1/b_j^2 stays as it is.
    """
    kernel: Any = recipe.kernel
    r = np.maximum(relevance / max(float(relevance.mean()), 1e-300), LEAST) ** power
    r = r / np.sqrt(np.mean(r**2))
    bandwidth = np.broadcast_to(np.asarray(kernel.bandwidth, np.float64), r.shape)
    return replace(recipe, kernel=type(kernel)(tuple(rounded(b) for b in (bandwidth / r).tolist())))
