"""The exact ways of KernelRidge: Cholesky, conjugate gradients on the operator, and sums over landmarks."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import methods
from mercer.estimators.base import asked, bytes_of
from mercer.estimators.dual import OverKernel
from mercer.estimators.folds import Folds
from mercer.estimators.intervals import LeaveOneOut, jackknife_plus, pieces
from mercer.estimators.settings import positive, whole
from mercer.inputs import Array, Matrix
from mercer.kernels.stretch import stretched
from mercer.learners import dual_folds, kernel_ridge
from mercer.learners.falkon import Batch, LandmarkSolution, falkon
from mercer.learners.ridge import FoldErrors
from mercer.learners.solvers import CG, Auto, Cholesky
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.operators import KernelOperator
from mercer.ops.tiles import cuts
from mercer.plan import Plan

BATCH = 1 << 16
MOMENTS = 2048  # landmarks up to which one pass of moments costs less than several of products


class DualRidge(LeaveOneOut, OverKernel):
    """f(x) = sum_i dual_coef_i k(x, x_i) + intercept, over all rows of `fit` or over landmarks (`X_fit_`)."""

    alpha: Any
    cv: Any
    bandwidths: Any
    tol: float
    max_iter: int
    residual_: float
    plan_: Plan
    _folds: Folds

    def _way(self, n: int) -> tuple[str, str]:
        """features, exact, iterative or landmarks, and why."""
        if self.lift is not None or self.via == "features":
            return "features", ""
        if self.via in ("exact", "iterative"):
            return self.via, "asked for"
        if self.via == "landmarks" or isinstance(self.via, methods.Landmarks):
            return "features" if self._n_landmarks(n) <= MOMENTS else "landmarks", ""
        if self._pairwise:
            return "exact", "a Gram matrix was given"
        if self.via != "auto" or (self.cv is not None and self.cv != "loo"):
            return "features", ""
        fits = 2.0 * n * n <= bytes_of(self.memory_limit)
        return ("exact", "half of K in float32 would fit the memory limit") if fits else ("features", "")

    def _n_landmarks(self, n: int) -> int:
        return min(n, asked(self._method()) or MOMENTS)

    # fitting
    def _fit_dual(self, X: Matrix, Y: Array, w: Array | None, way: str, why: str) -> Self:
        self._set_kernel(X, w)
        self.X_fit_ = np.empty((0, 0)) if self._pairwise else X.copy()  # the caller may change theirs
        if self.bandwidths is not None and (self.cv != "loo" or way != "exact" or self._pairwise):
            raise ValueError("bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them.")
        if self.cv is not None:
            self._choose_penalty(X, Y, w, way)
        return self._fit_landmarks(X, Y, w) if way == "landmarks" else self._fit_rows(X, Y, w, way, why)

    def _fit_rows(self, X: Matrix, Y: Array, w: Array | None, way: str, why: str) -> Self:
        n, memory, tol = len(Y), bytes_of(self.memory_limit), positive(self.tol, "tol")
        cg = CG(tol=tol, max_steps=whole(self.max_iter, "max_iter"), memory=memory)
        solver, reason = (cg, f"{n:,} rows: conjugate gradients on the operator") if way == "iterative" else Auto(memory, tol).choose(n)
        s = kernel_ridge.exact(self._operator(X), Y, self.alpha_, w, intercept=self.fit_intercept, solver=solver)
        factored = isinstance(solver, Cholesky)
        held = 8.0 * n * n if factored else min(2.0 * n * n, memory)
        settings = {"rows": n, "residual": s.residual, "steps": s.steps}
        self.plan_ = Plan("cholesky" if factored else "conjugate gradients", f"{reason} ({why})", settings, held, passes=s.steps)
        return self._keep_dual(s.coef, s.intercept, s.residual, max(s.steps, 1))

    def _keep_dual(self, dual: Array, intercept: Array, residual: float, steps: int) -> Self:
        self.residual_, self.n_iter_ = residual, steps
        self.dual_coef_, self.intercept_ = (dual[:, 0], float(intercept[0])) if self._flat else (dual, intercept)
        if residual > 2 * self.tol:
            text = f"conjugate gradients stopped at a residual of {residual:.1e} (tol={self.tol:g}); raise max_iter, tol or alpha."
            warnings.warn(text, ConvergenceWarning, stacklevel=4)
        return self

    def _fit_landmarks(self, X: Matrix, Y: Array, w: Array | None) -> Self:
        m, memory = self._n_landmarks(len(Y)), bytes_of(self.memory_limit)
        points, how = self._landmarks(X, w, m, memory)
        penalties = np.broadcast_to(self.alpha_, (Y.shape[1],))
        found = [(penalties == a, self._over_landmarks(X, Y[:, penalties == a], w, points, float(a))) for a in np.unique(penalties)]
        kept = found[0][1].kept
        coef, b = np.empty((len(kept), Y.shape[1])), np.empty(Y.shape[1])
        for at, s in found:
            coef[:, at], b[at] = s.coef, s.intercept
        self.X_fit_ = points[kept]
        steps, residual = sum(s.steps for _, s in found), max(s.residual for _, s in found)
        settings = {"rows": len(Y), "landmarks": len(coef), "choice": how, "residual": residual, "steps": steps}
        why = f"{m:,} landmarks: passes of products cost less than their m x m moments"
        self.plan_ = Plan("landmarks", why, settings, 24.0 * m * m + memory, 4.0 * len(Y) * m * steps, steps + 2)
        return self._keep_dual(coef, b, residual, steps)

    def _over_landmarks(self, X: Matrix, Y: Array, w: Array | None, points: Matrix, alpha: float) -> LandmarkSolution:
        def batches() -> Iterator[Batch]:
            return ((X[rows], Y[rows], None if w is None else w[rows]) for rows in cuts(len(Y), BATCH))

        return falkon(
            self.kernel_, points, batches, alpha, intercept=self.fit_intercept, tol=positive(self.tol, "tol"),
            max_steps=whole(self.max_iter, "max_iter"), memory=bytes_of(self.memory_limit), seed=seed_of(self.random_state),
        )  # fmt: skip

    def _landmarks(self, X: Matrix, w: Array | None, m: int, memory: float) -> tuple[Matrix, str]:
        """m rows, chosen as asked where that fits, else with equal chances."""
        select = self.via.select if isinstance(self.via, methods.Landmarks) else "rpcholesky"
        if select == "rpcholesky" and 8.0 * m * X.shape[0] > memory:
            select = "uniform"
        phi = Nystrom(self.kernel_, m, select, random_state=self.random_state).fit(X, sample_weight=w)
        return phi.landmarks_, select

    # choosing
    def _choose_penalty(self, X: Matrix, Y: Array, w: Array | None, way: str) -> None:
        """alpha_, and with bandwidths kernel_, by left-out rows or folds."""
        grid = self._grid()
        if self.cv != "loo":
            self.alpha_ = self._best_alpha(grid, self._dual_errors(X, Y, w, grid, way), len(Y))
        elif way == "exact":
            self._choose_by_loo_grid(X, Y, w, grid)
        else:
            raise ValueError(f"cv='loo' needs a factor of K, which via={self.via!r} has not; give cv=5, or via='exact'.")

    def _choose_by_loo_grid(self, X: Matrix, Y: Array, w: Array | None, grid: Array) -> None:
        self._check_square_fits(len(Y))
        kernels = [self.kernel_] if self.bandwidths is None else [stretched(self.kernel_, float(f)) for f in np.atleast_1d(self.bandwidths)]
        operators = (self._operator(X) if self._pairwise else KernelOperator(k, X) for k in kernels)
        errors = kernel_ridge.loo_grid(operators, Y, grid, w, intercept=self.fit_intercept)  # (b, g, q)
        spread = np.average(np.square(Y - np.average(Y, axis=0, weights=w)), axis=0, weights=w)
        scores = 1 - (errors / np.where(spread > 0, spread, 1)).mean(axis=2)
        i, j = np.unravel_index(int(np.argmax(scores)), scores.shape)
        self.kernel_, self.alpha_, self.loo_scores_ = kernels[i], float(grid[j]), scores if self.bandwidths is not None else scores[0]

    def _check_square_fits(self, n: int) -> None:
        if 16.0 * n * n > bytes_of(self.memory_limit):
            raise ValueError(f"leave-one-out of {n:,} rows needs n x n arrays beyond memory_limit; raise it, or give via='features'.")

    def _dual_errors(self, X: Matrix, Y: Array, w: Array | None, grid: Array, way: str) -> FoldErrors:
        fold = self._folds.of(X).astype(np.intp)
        u = np.ones(len(Y)) if w is None else w
        on = np.flatnonzero(u)
        if way == "exact" and 16.0 * len(on) ** 2 <= bytes_of(self.memory_limit):
            op = self._operator(self._some(X, on, on))
            return dual_folds.fold_errors(op, Y[on], u[on], grid, fold[on], self._folds.k, intercept=self.fit_intercept)
        return self._refit_errors(X, Y, u, grid, fold)

    def _refit_errors(self, X: Matrix, Y: Array, u: Array, grid: Array, fold: Array) -> FoldErrors:
        """A refit for every fold and penalty."""
        k, total = self._folds.k, _spread(Y, u)
        error, spread = np.full((len(grid), k, Y.shape[1]), np.nan), np.full((k, Y.shape[1]), np.nan)
        for j in range(k):
            rest, test = np.flatnonzero((fold != j) & (u > 0)), np.flatnonzero((fold == j) & (u > 0))
            if not len(rest) or not len(test):
                continue
            spread[j] = _spread(Y[test], u[test])
            for i, a in enumerate(grid):
                f = self._refitted(rest, float(a)).predict(self._some(X, test, rest))
                error[i, j] = u[test] @ np.square(Y[test] - f.reshape(len(test), -1))
        return FoldErrors(error, spread, total)

    def _refitted(self, rows: Array, alpha: Any) -> Self:
        """The model of some rows, with this kernel and a given penalty."""
        X, Y, w = self._at_hand()
        model = clone(self).set_params(kernel=self.kernel_, alpha=alpha, cv=None, bandwidths=None)
        y = Y[rows, 0] if self._flat else Y[rows]
        return model.fit(self._some(X, rows, rows), y, None if w is None else w[rows])

    # left-out rows
    @property
    def _is_dual(self) -> bool:
        return hasattr(self, "dual_coef_")

    def _left_out(self) -> Array:
        if not self._is_dual:
            return super()._left_out()
        X, Y, w = self._at_hand()
        self._check_rows_are_all(len(Y))
        s = kernel_ridge.exact(self._operator(X), Y, self.alpha_, w, intercept=self.fit_intercept, solver=Cholesky(), loo=True)
        assert s.loo is not None
        return s.loo

    def _check_rows_are_all(self, n: int) -> None:
        if self.plan_.way == "landmarks":
            raise ValueError("leave-one-out is in closed form over all rows or over features; use via='exact', or fewer landmarks.")
        self._check_square_fits(n)

    def _of_the_rest(self, held: Array, X: Matrix) -> tuple[Array, Array]:
        if not self._is_dual:
            return super()._of_the_rest(held, X)
        Xt, _, _ = self._at_hand()
        rest = np.flatnonzero(~held)
        model = self._refitted(rest, self.alpha_)
        at = X[:, rest] if self._pairwise else X
        return model.predict(self._some(Xt, np.flatnonzero(held), rest)).ravel(), model.predict(at).ravel()

    def _jackknife(self, X: Matrix, coverage: float) -> tuple[Array, Array]:
        """mu_-i(x) = mu(x) - (k(x, X) G_i + g_i) r_i, G and g the inverse of the equations."""
        if not self._is_dual:
            return super()._jackknife(X, coverage)
        Xt, Y, w = self._at_hand()
        self._check_rows_are_all(len(Y))
        on = np.arange(len(Y)) if w is None else np.flatnonzero(w)
        u, center = np.ones(len(on)) if w is None else w[on], np.average(Y, axis=0, weights=w)
        inverses = dual_folds.Inverses.of(self._operator(self._some(Xt, on, on)), u, intercept=self.fit_intercept)
        G = inverses.at(float(np.max(self.alpha_)), Y[on] - (center if self.fit_intercept else 0))
        loo = G.coef[:, 0] / G.diag()
        bounds = [self._jackknife_part(X[rows], Xt, on, G, loo, coverage) for rows in cuts(X.shape[0], pieces(len(Y)))]
        lower, upper = (np.concatenate(b) for b in zip(*bounds, strict=True))
        return lower, upper

    def _jackknife_part(
        self, X: Matrix, Xt: Matrix, on: Array, G: dual_folds.Inverse, loo: Array, coverage: float
    ) -> tuple[Array, Array]:
        K = np.asarray(X[:, on] if self._pairwise else self._operator(X, Xt[on]).block(), np.float64)
        without = self._expansion(X, self.dual_coef_, self.intercept_)[:, None] - G.change(K) * loo  # (m, n)
        return jackknife_plus(without.T, loo, coverage)


def _spread(Y: Array, w: Array) -> Array:
    return np.asarray(w @ np.square(Y - np.average(Y, axis=0, weights=w)))
