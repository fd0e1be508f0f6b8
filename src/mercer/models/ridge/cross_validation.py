"""Folds and left-out rows of ridge regression without refits: from moments of features, or from
A^-1 = (K + diag(alpha / w))^-1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve

from mercer.inputs import Array
from mercer.linalg.least_squares import MIN_PENALTY, PrimalSolution, parts, penalised, solve_normal
from mercer.operators import Operator, dense
from mercer.stats import Moments


def squared_error(m: Moments, D: int, s: PrimalSolution) -> tuple[Array, Array]:
    """sum w (y - f)^2 and sum w (y - mean y)^2 of the rows in these moments, for every output: no
    row is needed."""
    lead = np.vstack([-s.coef, np.eye(s.coef.shape[1])])  # y - f = z'lead + offset
    offset = m.shift @ lead - s.intercept
    error = (
        np.einsum("iq,ij,jq->q", lead, m.S, lead, optimize=True)
        + 2 * offset * (m.s @ lead)
        + m.n * offset**2
    )
    return np.maximum(error, 0), np.maximum(np.diag(m.centred())[D:], 0)


@dataclass(frozen=True, eq=False)
class FoldErrors:
    """What the model without each fold does on it, for every penalty: squared errors (a, k, q), and
    spreads of y (k, q), total (q,).

    A fold without rows, or that has all of them, is nan.
    """

    error: Array
    spread: Array
    total: Array

    def scores(self) -> Array:
        """R^2 on each fold, (a, k); nan where y does not vary within the fold."""
        with np.errstate(all="ignore"):
            return np.asarray(
                np.where(self.spread > 0, 1 - self.error / self.spread, np.nan).mean(axis=2)
            )

    def pooled(self) -> Array:
        """R^2 of all folds together, (a,): what to choose a penalty by, also where folds are
        small."""
        return np.asarray(
            np.mean(
                1 - np.nansum(self.error, axis=1) / np.where(self.total > 0, self.total, 1), axis=1
            )
        )

    @property
    def used(self) -> int:
        return int(np.isfinite(self.error[0]).all(axis=1).sum())


def moment_fold_errors(
    folds: list[Moments], D: int, alphas: Array, *, intercept: bool
) -> FoldErrors:
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
            error[i, j], spread[j] = squared_error(
                fold, D, solve_normal(rest, A, B, a, intercept=intercept)
            )
    return FoldErrors(error, spread, np.maximum(np.diag(total.centred())[D:], 0))


@dataclass(frozen=True, eq=False)
class Leverage:
    """h_i = w_i (1/W + (phi_i - mean)'(A + alpha I)^-1 (phi_i - mean)): what row i contributes to
    its own prediction."""

    solver: Callable[[Array], Array]
    mean: Array
    base: float

    @classmethod
    def of(cls, m: Moments, D: int, alpha: float, *, intercept: bool) -> Leverage:
        A, _ = parts(m, D, intercept=intercept)
        return cls(
            penalised(A, alpha),
            m.mean[:D] if intercept else np.zeros(D),
            1 / m.n if intercept else 0.0,
        )

    def directions(self, F: Array) -> Array:
        """(A + alpha I)^-1 (phi - mean), (D, n)."""
        return self.solver((F - self.mean).T.astype(np.float64))

    def __call__(self, F: Array, weight: Array | None = None) -> Array:
        h = self.base + np.einsum("ij,ji->i", F - self.mean, self.directions(F))
        return h if weight is None else weight * h


def known(left: Array, eps: float) -> Array:
    """1 - h, or nan where rounding is all that is left: a model that goes through a row tells
    nothing of it without the row."""
    return np.where(left > 100 * math.sqrt(eps), left, np.nan)


def spread(Y: Array, w: Array | None) -> Array:
    """sum w (y - mean y)^2 of every output."""
    u = np.ones(len(Y)) if w is None else w
    return np.asarray(u @ np.square(Y - np.average(Y, axis=0, weights=u)))


def moment_loo_errors(
    m: Moments,
    D: int,
    lifted: Iterable[tuple[slice, Array]],
    Y: Array,
    weight: Array | None,
    alphas: Array,
    *,
    intercept: bool,
) -> Array:
    """The mean squared left-out residual (a, q) for every penalty, in one pass over (rows,
    features); nan where not known."""
    A, B = parts(m, D, intercept=intercept)
    values, V = np.linalg.eigh(A)
    E = 1 / (
        np.maximum(values, 0)[:, None]
        + np.maximum(alphas, np.finfo(float).eps * max(float(values[-1]), 1e-300))
    )  # (D, a)
    lever, q = (V.T @ B), Y.shape[1]
    mean, level, base = (
        (m.mean[:D], m.mean[D:], 1 / m.n) if intercept else (np.zeros(D), np.zeros(q), 0.0)
    )
    total, w = np.zeros((len(alphas), q)), np.ones(len(Y)) if weight is None else weight
    for rows, F in lifted:
        P = (F - mean) @ V
        left = known(1 - w[rows, None] * (base + np.square(P) @ E), m.eps)  # (b, a)
        fitted = np.einsum("id,da,dq->iaq", P, E, lever, optimize=True) + level
        total += np.einsum(
            "i,iaq->aq", w[rows], np.square((Y[rows, None] - fitted) / left[:, :, None])
        )
    return np.asarray(total / w.sum())


# in the dual
@dataclass(frozen=True, eq=False)
class Inverses:
    """A^-1 for any penalty, from one eigendecomposition of W^1/2 K W^1/2; all weights are
    positive."""

    values: Array
    Q: Array  # with rows scaled by sqrt(w)
    intercept: bool

    @classmethod
    def of(cls, op: Operator, w: Array, *, intercept: bool) -> Inverses:
        s, K = np.sqrt(w), dense(op, np.float64)
        K *= s[:, None]
        K *= s
        values, Q = eigh(K, overwrite_a=True, check_finite=False)
        return cls(
            np.maximum(values, MIN_PENALTY * max(float(values[-1]), 1e-300)),
            Q * s[:, None],
            intercept,
        )

    def at(self, alpha: float, Y: Array) -> Inverse:
        e = 1 / (self.values + alpha)
        coef, one = self.Q @ (e[:, None] * (self.Q.T @ Y)), self.Q @ (e * self.Q.sum(0))
        total = float(one.sum()) if self.intercept else np.inf
        return Inverse(self.Q, e, coef - np.outer(one, coef.sum(0) / total), one, total)


@dataclass(frozen=True, eq=False)
class Inverse:
    """G = A^-1 - A^-1 1 1'A^-1 / 1'A^-1 1 (without the second part where there is no intercept),
    and coef = G Y."""

    Q: Array
    e: Array
    coef: Array
    one: Array
    total: float

    def block(self, rows: Array) -> Array:
        """G[rows, rows]"""
        P = self.Q[rows]
        return np.asarray(
            (P * self.e) @ P.T - np.outer(self.one[rows], self.one[rows] / self.total)
        )

    def left_out(self, rows: Array) -> Array:
        """y - f without these rows, at these rows."""
        return np.asarray(solve(self.block(rows), self.coef[rows], assume_a="sym"))

    def change(self, K: Array) -> Array:
        """How coefficients of unit rows move f at rows whose kernel values (m, n) are given: (m,
        n)."""
        G = (K @ self.Q * self.e) @ self.Q.T
        return np.asarray(G - np.outer(K @ self.one, self.one / self.total) + self.one / self.total)

    def alone(self) -> Array:
        """y_i - f_-i(x_i) = coef_i / G_ii; nan where G_ii is rounding: one row, without itself, is
        no row."""
        whole = np.square(self.Q) @ self.e
        diag = whole - self.one**2 / self.total
        return np.asarray(self.coef / np.where(diag > 1e-12 * whole, diag, np.nan)[:, None])


def dual_loo_errors(inverses: Inverses, Y: Array, w: Array, alphas: Array) -> Array:
    """The mean squared left-out residual (a, q) for every penalty; nan where one row is all there
    is."""
    return np.stack(
        [np.average(np.square(inverses.at(float(a), Y).alone()), axis=0, weights=w) for a in alphas]
    )


def dual_fold_errors(
    op: Operator, Y: Array, w: Array, alphas: Array, fold: Array, k: int, *, intercept: bool
) -> FoldErrors:
    """Squared errors on every fold without it, for every penalty: r_S = (G_SS)^-1 coef_S."""
    inverses, members = (
        Inverses.of(op, w, intercept=intercept),
        [np.flatnonzero(fold == j) for j in range(k)],
    )
    error, within = np.full((len(alphas), k, Y.shape[1]), np.nan), np.full((k, Y.shape[1]), np.nan)
    used = [j for j in range(k) if 0 < len(members[j]) < len(Y)]
    for i, a in enumerate(alphas):
        found = inverses.at(float(a), Y)
        for j in used:
            error[i, j] = w[members[j]] @ np.square(found.left_out(members[j]))
    for j in used:
        within[j] = spread(Y[members[j]], w[members[j]])
    return FoldErrors(error, within, spread(Y, w))
