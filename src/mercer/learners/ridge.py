"""Ridge regression from moments: any penalty, folds by subtraction, leave-one-out in closed form."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercer.inputs import Array
from mercer.stats import Moments


@dataclass(frozen=True, eq=False)
class Solution:
    """f(x) = phi(x)'coef + intercept; coef (D, q), intercept (q,)."""

    coef: Array
    intercept: Array


def parts(m: Moments, D: int, *, intercept: bool) -> tuple[Array, Array]:
    """(A, B) of the normal equations (A + alpha I) coef = B, about the mean where there is an intercept."""
    C = m.centred() if intercept else m.about_zero()
    return C[:D, :D], C[:D, D:]


def solve(m: Moments, D: int, alpha: float | Array, *, intercept: bool = True) -> Solution:
    """argmin sum w |y - f(x)|^2 + alpha |coef|^2; alpha one number, or one an output.

    >>> rows = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])  # phi, y
    >>> s = solve(Moments.of(rows, shift=np.zeros(2)), 1, 1e-12)
    >>> s.coef.round(6), s.intercept.round(6)
    (array([[2.]]), array([1.]))
    """
    A, B = parts(m, D, intercept=intercept)
    return _solved(m, A, B, alpha, intercept=intercept)


def _solved(m: Moments, A: Array, B: Array, alpha: float | Array, *, intercept: bool) -> Solution:
    D = len(A)
    penalties = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (B.shape[1],))
    coef = np.empty_like(B)
    for a in np.unique(penalties):
        coef[:, penalties == a] = penalised(A, float(a))(B[:, penalties == a])
    return Solution(coef, m.mean[D:] - m.mean[:D] @ coef if intercept else np.zeros(B.shape[1]))


def penalised(A: Array, alpha: float) -> Callable[[Array], Array]:
    """The solver of (A + alpha I) x = b; where rounding makes that indefinite, with the least jitter that mends it."""
    jitter, size = 0.0, float(np.abs(np.diag(A)).max(initial=0)) or 1.0
    while np.isfinite(size):
        M = A.copy()
        M[np.diag_indices(len(A))] += alpha + jitter
        try:
            factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
            return lambda b: np.asarray(cho_solve(factor, b, check_finite=False))
        except np.linalg.LinAlgError:
            jitter = max(10 * jitter, np.finfo(np.float64).eps * len(A) * size)
        if not jitter <= size:
            break
    raise ValueError("the statistics are of no rows (not finite, or of negative variance); scale the columns of X first.")


def squared_error(m: Moments, D: int, s: Solution) -> tuple[Array, Array]:
    """sum w (y - f)^2 and sum w (y - mean y)^2 of the rows in these moments, for every output: no row is needed."""
    lead = np.vstack([-s.coef, np.eye(s.coef.shape[1])])  # y - f = z'lead + offset
    offset = m.shift @ lead - s.intercept
    error = np.einsum("iq,ij,jq->q", lead, m.S, lead, optimize=True) + 2 * offset * (m.s @ lead) + m.n * offset**2
    return np.maximum(error, 0), np.maximum(np.diag(m.centred())[D:], 0)


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """What the model without each fold does on it, for every penalty: squared errors (a, k, q), and spreads of y (k, q), total (q,).

    A fold without rows, or that has all of them, is nan.
    """

    error: Array
    spread: Array
    total: Array

    def scores(self) -> Array:
        """R^2 on each fold, (a, k); nan where y does not vary within the fold."""
        with np.errstate(all="ignore"):
            return np.asarray(np.where(self.spread > 0, 1 - self.error / self.spread, np.nan).mean(axis=2))

    def pooled(self) -> Array:
        """R^2 of all folds together, (a,): what to choose a penalty by, also where folds are small."""
        return np.asarray(np.mean(1 - np.nansum(self.error, axis=1) / np.where(self.total > 0, self.total, 1), axis=1))

    @property
    def used(self) -> int:
        return int(np.isfinite(self.error[0]).all(axis=1).sum())


def fold_errors(folds: list[Moments], D: int, alphas: Array, *, intercept: bool) -> FoldErrors:
    """From the moments of the folds alone: total - fold is the refit without the fold."""
    total = sum(folds[1:], folds[0])
    q = len(total.shift) - D
    error, spread = np.full((len(alphas), len(folds), q), np.nan), np.full((len(folds), q), np.nan)
    for j, fold in enumerate(folds):
        rest = total - fold
        if fold.n <= 0 or rest.n <= 0:
            continue  # nothing to score, or to fit
        A, B = parts(rest, D, intercept=intercept)
        for i, a in enumerate(alphas):
            error[i, j], spread[j] = squared_error(fold, D, _solved(rest, A, B, a, intercept=intercept))
    return FoldErrors(error, spread, np.maximum(np.diag(total.centred())[D:], 0))


@dataclass(frozen=True, eq=False)
class Leverage:
    """h_i = w_i (1/W + (phi_i - mean)'(A + alpha I)^-1 (phi_i - mean)): what row i contributes to its own prediction."""

    solver: Callable[[Array], Array]
    mean: Array
    base: float

    @classmethod
    def of(cls, m: Moments, D: int, alpha: float, *, intercept: bool) -> Leverage:
        A, _ = parts(m, D, intercept=intercept)
        return cls(penalised(A, alpha), m.mean[:D] if intercept else np.zeros(D), 1 / m.n if intercept else 0.0)

    def directions(self, F: Array) -> Array:
        """(A + alpha I)^-1 (phi - mean), (D, n)."""
        return self.solver((F - self.mean).T.astype(np.float64))

    def __call__(self, F: Array, weight: Array | None = None) -> Array:
        h = self.base + np.einsum("ij,ji->i", F - self.mean, self.directions(F))
        return h if weight is None else weight * h


def known(left: Array, eps: float) -> Array:
    """1 - h, or nan where rounding is all that is left: a model that goes through a row tells nothing of it without the row."""
    return np.where(left > 100 * math.sqrt(eps), left, np.nan)


def spread(Y: Array, w: Array | None) -> Array:
    """sum w (y - mean y)^2 of every output."""
    u = np.ones(len(Y)) if w is None else w
    return np.asarray(u @ np.square(Y - np.average(Y, axis=0, weights=u)))


def loo_errors(
    m: Moments, D: int, lifted: Iterable[tuple[slice, Array]], Y: Array, weight: Array | None, alphas: Array, *, intercept: bool
) -> Array:
    """The mean squared left-out residual (a, q) for every penalty, in one pass over (rows, features); nan where not known."""
    A, B = parts(m, D, intercept=intercept)
    values, V = np.linalg.eigh(A)
    E = 1 / (np.maximum(values, 0)[:, None] + np.maximum(alphas, np.finfo(float).eps * max(float(values[-1]), 1e-300)))  # (D, a)
    lever, q = (V.T @ B), Y.shape[1]
    mean, level, base = (m.mean[:D], m.mean[D:], 1 / m.n) if intercept else (np.zeros(D), np.zeros(q), 0.0)
    total, w = np.zeros((len(alphas), q)), np.ones(len(Y)) if weight is None else weight
    for rows, F in lifted:
        P = (F - mean) @ V
        left = known(1 - w[rows, None] * (base + np.square(P) @ E), m.eps)  # (b, a)
        fitted = np.einsum("id,da,dq->iaq", P, E, lever, optimize=True) + level
        total += np.einsum("i,iaq->aq", w[rows], np.square((Y[rows, None] - fitted) / left[:, :, None]))
    return np.asarray(total / w.sum())
