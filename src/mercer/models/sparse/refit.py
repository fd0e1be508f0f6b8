"""Refits: the features that a path keeps, fitted anew under a ridge penalty, where folds prefer it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.inputs import Array
from mercer.models.linear import FeatureRows, Logistic, Problem, Softmax
from mercer.models.newton import minimise
from mercer.models.sparse.folds import FoldModel, mean_losses
from mercer.models.sparse.problem import WeighedRows

# of features of unit variance, beside a loss a row
PENALTIES = (1e-8, 1e-4, 1e-3, 1e-2, 1e-1)
LOGISTIC_PENALTIES = PENALTIES[1:]  # classes that can be parted have no end without one
STEPS = 200


def refits(F: Array, p: WeighedRows, penalties: Sequence[float]) -> list[tuple[Array, Array]]:
    """Coefficients (C, k) and intercepts (C,) of features F (n, k) under |b|^2 penalty/2, for each
    penalty, the features taken at unit variance."""
    mean = p.w @ F
    A = F - mean
    scale = np.sqrt(p.w @ np.square(A))
    scale = np.where(scale > 0, scale, 1.0)
    A /= scale
    found = [_logistic(A, p, v) for v in penalties] if p.classes else _ridge(A, p, penalties)
    return [(b / scale, b0 - b / scale @ mean) for b, b0 in found]


def _ridge(A: Array, p: WeighedRows, penalties: Sequence[float]) -> list[tuple[Array, Array]]:
    """By the eigenvectors of the Gram matrix, or of fewer rows by singular vectors."""
    mean, root = p.w @ p.y, np.sqrt(p.w)
    A, r = A * root[:, None], root * (p.y - mean)
    if A.shape[1] <= A.shape[0]:
        values, V = np.linalg.eigh(A.T @ A)
        along = V.T @ (A.T @ r)
    else:
        U, s, T = np.linalg.svd(A, full_matrices=False)
        values, V, along = s * s, T.T, s * (U.T @ r)
    values = np.maximum(values, 0.0)
    return [((V @ (along / (values + v)))[None], np.array([mean])) for v in penalties]


def _logistic(A: Array, p: WeighedRows, penalty: float) -> tuple[Array, Array]:
    n, k = A.shape
    rows = FeatureRows(
        n, k, A.dtype, None, True, lambda: [(slice(0, n), A)], lambda i: A[i], float(A.nbytes)
    )
    two = p.classes == 2
    Y = 2.0 * p.y[:, None] - 1 if two else np.eye(p.classes)[p.y]
    found = minimise(
        Problem(rows, Logistic() if two else Softmax(), Y, n * p.w, n * penalty, True), 1e-5, STEPS
    )
    return found.theta[:k].T.copy(), found.theta[k]


def preferred(folds: Sequence[FoldModel], i: int, loss: float) -> tuple[float | None, float]:
    """The ridge penalty whose refits of path model i have the least mean loss over folds, and that
    loss; None where the path's own loss is not larger."""
    penalties = LOGISTIC_PENALTIES if folds[0].fitted.classes else PENALTIES
    values = np.zeros((len(penalties), len(folds)))
    for j, fold in enumerate(folds):
        ids, coef, b0 = fold.path.at(i)
        F, left = fold.map.columns(fold.fitted.rows, ids), fold.map.columns(fold.left.rows, ids)
        found = refits(F, fold.fitted, penalties) if len(ids) else [(coef, b0)] * len(penalties)
        for row, (b, at) in enumerate(found):
            values[row, j] = mean_losses(fold.left, (left @ b.T + at)[:, None])[0]
    means = values.mean(1)
    best = int(np.argmin(means))
    return (penalties[best], float(means[best])) if means[best] < loss else (None, loss)
