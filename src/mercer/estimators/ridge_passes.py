"""KernelRidge over so many features that D x D statistics do not fit: conjugate gradients that pass over the rows."""
from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.estimators.base import bytes_of
from mercer.estimators.folds import Folds
from mercer.estimators.ridge_dual import DualRidge, Found
from mercer.estimators.streams import HEAD, TOO_LARGE
from mercer.inputs import Array, Matrix
from mercer.learners.passes import NONE, Passes, Sums
from mercer.learners.ridge import FoldErrors, Solution


class PassesRidge(DualRidge):
    """The same model and folds as by moments; what is kept is the coefficients alone."""

    def _fit_by_passes(self, X: Matrix, Y: Array, w: Array | None) -> Self:
        if self.cv == "loo":
            raise ValueError("cv='loo' over features needs their D x D statistics, beyond memory_limit; raise it, or give cv=5.")
        p, origin = self._passes(X, Y, w, self._folds)
        with np.errstate(over="ignore", invalid="ignore"):
            sums, alpha = p.sums(), self._penalty(Y.shape[1])
        if not all(np.isfinite(v).all() for v in (sums.squares, sums.y2, sums.b)):
            raise ValueError(TOO_LARGE)
        if self.cv is not None:
            alpha = self._best_alpha(self._errors_by_passes(p, sums, self._grid()), len(Y))
        s, passes, self.residual_ = self._solved_by_passes(p, sums, alpha)
        D = self.n_features_lifted_
        why = f"{D:,} features: D x D moments exceed the memory limit, so conjugate gradients pass over the rows"
        self.plan_ = self._features_plan(len(Y), "conjugate gradients", why, passes + 1)
        self._found, self.n_iter_ = Found(alpha, s.coef, s.intercept + origin), passes + 1
        return self

    def _solved_by_passes(self, p: Passes, sums: Sums, alpha: Any) -> tuple[Solution, int, float]:
        alphas = np.broadcast_to(alpha, (1, p.Y.shape[1]))
        s, passes, residual = p.solve(sums, np.array([NONE]), alphas, self.tol, self.max_iter)
        if residual > self.tol:
            text = f"conjugate gradients stopped at a residual of {residual:.1e} (tol={self.tol:g}); raise max_iter, tol or alpha."
            warnings.warn(text, ConvergenceWarning, stacklevel=6)
        return s, passes, residual

    def _passes(self, X: Matrix, Y: Array, w: Array | None, folds: Folds) -> tuple[Passes, Array]:
        """The problem about the means of the first rows, and what was taken off y."""
        origin = Y[:HEAD].mean(0) * self.fit_intercept
        u, fold = np.ones(len(Y)) if w is None else w, folds.of(X).astype(np.intp)
        return Passes(lambda: self._lifted(X), Y - origin, u, fold, folds.k, self._shift(X), self.fit_intercept), origin

    def _errors_by_passes(self, p: Passes, sums: Sums, alphas: Array) -> FoldErrors:
        width = int(max(1, bytes_of(self.memory_limit) // (64 * self.n_features_lifted_ * p.Y.shape[1])))
        return p.errors(sums, alphas, self.tol, self.max_iter, width)

    def _of_the_rest(self, held: Array) -> tuple[Any, Array | None]:
        if self._is_dual or hasattr(self, "moments_"):
            return super()._of_the_rest(held)
        Xt, Y, w = self._at_hand()
        p, origin = self._passes(Xt[~held], Y[~held], None if w is None else w[~held], Folds(1))
        s, _, _ = self._solved_by_passes(p, p.sums(), self.alpha_)
        return self._with_solution(s.coef, s.intercept + origin), None
