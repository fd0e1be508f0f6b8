"""Folds and left-out rows of kernel ridge regression, without refits: what A^-1 = (K + diag(alpha / w))^-1 tells of them."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve

from mercer.inputs import Array
from mercer.learners.kernel_ridge import LEAST
from mercer.learners.ridge import FoldErrors, spread
from mercer.operators import Operator, dense


@dataclass(frozen=True, eq=False)
class Inverses:
    """A^-1 for any penalty, from one eigendecomposition of W^1/2 K W^1/2; all weights are positive."""

    values: Array
    Q: Array  # with rows scaled by sqrt(w)
    intercept: bool

    @classmethod
    def of(cls, op: Operator, w: Array, *, intercept: bool) -> Inverses:
        s, K = np.sqrt(w), dense(op, np.float64)
        K *= s[:, None]
        K *= s
        values, Q = eigh(K, overwrite_a=True, check_finite=False)
        return cls(np.maximum(values, LEAST * max(float(values[-1]), 1e-300)), Q * s[:, None], intercept)

    def at(self, alpha: float, Y: Array) -> Inverse:
        e = 1 / (self.values + alpha)
        coef, one = self.Q @ (e[:, None] * (self.Q.T @ Y)), self.Q @ (e * self.Q.sum(0))
        total = float(one.sum()) if self.intercept else np.inf
        return Inverse(self.Q, e, coef - np.outer(one, coef.sum(0) / total), one, total)


@dataclass(frozen=True, eq=False)
class Inverse:
    """G = A^-1 - A^-1 1 1'A^-1 / 1'A^-1 1 (without the second part where there is no intercept), and coef = G Y."""

    Q: Array
    e: Array
    coef: Array
    one: Array
    total: float

    def block(self, rows: Array) -> Array:
        """G[rows, rows]"""
        P = self.Q[rows]
        return np.asarray((P * self.e) @ P.T - np.outer(self.one[rows], self.one[rows] / self.total))

    def left_out(self, rows: Array) -> Array:
        """y - f without these rows, at these rows."""
        return np.asarray(solve(self.block(rows), self.coef[rows], assume_a="sym"))

    def change(self, K: Array) -> Array:
        """How coefficients of unit rows move f at rows whose kernel values (m, n) are given: (m, n)."""
        G = (K @ self.Q * self.e) @ self.Q.T
        return np.asarray(G - np.outer(K @ self.one, self.one / self.total) + self.one / self.total)

    def alone(self) -> Array:
        """y_i - f_-i(x_i) = coef_i / G_ii; nan where G_ii is rounding: one row, without itself, is no row."""
        whole = np.square(self.Q) @ self.e
        diag = whole - self.one**2 / self.total
        return np.asarray(self.coef / np.where(diag > 1e-12 * whole, diag, np.nan)[:, None])


def loo_errors(inverses: Inverses, Y: Array, w: Array, alphas: Array) -> Array:
    """The mean squared left-out residual (a, q) for every penalty; nan where one row is all there is."""
    return np.stack([np.average(np.square(inverses.at(float(a), Y).alone()), axis=0, weights=w) for a in alphas])


def fold_errors(op: Operator, Y: Array, w: Array, alphas: Array, fold: Array, k: int, *, intercept: bool) -> FoldErrors:
    """Squared errors on every fold without it, for every penalty: r_S = (G_SS)^-1 coef_S."""
    inverses, members = Inverses.of(op, w, intercept=intercept), [np.flatnonzero(fold == j) for j in range(k)]
    error, within = np.full((len(alphas), k, Y.shape[1]), np.nan), np.full((k, Y.shape[1]), np.nan)
    used = [j for j in range(k) if 0 < len(members[j]) < len(Y)]
    for i, a in enumerate(alphas):
        found = inverses.at(float(a), Y)
        for j in used:
            error[i, j] = w[members[j]] @ np.square(found.left_out(members[j]))
    for j in used:
        within[j] = spread(Y[members[j]], w[members[j]])
    return FoldErrors(error, within, spread(Y, w))
