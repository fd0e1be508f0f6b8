"""The exact ways of KernelRidge: Cholesky, conjugate gradients on the operator, and sums over landmarks."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from mercer import methods
from mercer.estimators.base import asked, bytes_of
from mercer.estimators.dual import OverKernel
from mercer.estimators.folds import Folds
from mercer.estimators.left_out import LeaveOneOut
from mercer.estimators.settings import grid, whole
from mercer.inputs import Array, Matrix
from mercer.invariants import Each, Floats, Ints, Is, Number, Samples, Whole
from mercer.kernels.stretch import bandwidths, scaled
from mercer.learners import dual_folds, kernel_ridge
from mercer.learners.cholesky import Cholesky
from mercer.learners.falkon import Batch, LandmarkSolution, falkon
from mercer.learners.ridge import FoldErrors, spread
from mercer.learners.solvers import CG, Auto
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.operators import KernelOperator
from mercer.ops.tiles import cuts
from mercer.plan import Plan

BATCH = 1 << 16
MOMENTS = 2048  # landmarks up to which one pass of moments costs less than several of products
SQUARES = 40.0  # bytes an entry of K that leave-one-out holds at most: eigenvectors, workspace, pieces of queries


@dataclass(frozen=True, eq=False)
class Found:
    """A model: the penalty, and coefficients (D, q) of features or (n, q) of rows, with the intercept (q,)."""

    alpha: Any
    coef: Array
    intercept: Array

    must = dict(alpha=Number(0) | Floats() | Floats("q"), coef=Floats("D", "q"), intercept=Floats("q"))


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
    _found: Found | None

    must = dict(
        X_fit_=Samples(None, None), _found=Is("ridge_dual.Found") | None, moments_=Each(Is("Moments"), size="_folds.k"), _folds=Is("Folds"),
        _kept=Ints("kept", below="n_features_in_", distinct=True) | None, _n_outputs=Whole(1),
        _split=Each(Is("KernelRidge"), Ints(None, below="n_features_in_", distinct=True) | None, Floats(None, low=0)) | None,
    )  # fmt: skip

    def _way(self, n: int) -> tuple[str, str]:
        """features, exact, iterative or landmarks, and why."""
        if self.lift is not None or self.via == "features":
            return "features", ""
        if self.via in ("exact", "iterative"):
            return self.via, "asked for"
        if self._pairwise and self.via != "auto":
            raise ValueError("a Gram matrix has no features or landmarks; use via='exact' or 'iterative' with kernel='precomputed'.")
        if self.via == "landmarks" or isinstance(self.via, methods.Landmarks):
            return "features" if self._n_landmarks(n) <= MOMENTS else "landmarks", ""
        if self._pairwise:
            return "exact", "a Gram matrix was given"
        if self.via != "auto" or (self.cv is not None and self.cv != "loo"):
            return "features", ""
        held, limit = (SQUARES if self.cv == "loo" else 2.0) * n * n, bytes_of(self.memory_limit)
        return ("exact", "half of K in float32 fits the memory limit") if held <= limit else ("features", "")

    def _n_landmarks(self, n: int) -> int:
        m = asked(self._method())
        return min(n, MOMENTS if m is None else whole(m, "n_landmarks"))

    @property
    def _is_dual(self) -> bool:
        return hasattr(self, "X_fit_")

    # fitting
    def _fit_dual(self, X: Matrix, Y: Array, w: Array | None, way: str, why: str) -> Self:
        self._set_kernel(X, w)
        self.X_fit_ = np.empty((0, 0)) if self._pairwise else X
        if self.bandwidths is not None and (self.cv != "loo" or way != "exact" or self._pairwise):
            raise ValueError("bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them.")
        with np.errstate(over="ignore"):
            if not np.isfinite(self._operator(X).diag()).all():
                raise ValueError("k(x, x) of some rows is not a finite number; scale the columns of X first.")
        unit = np.maximum(np.abs(Y).max(axis=0), np.finfo(float).tiny)  # squares of y may be no numbers
        scaled = Y / unit
        alpha = self._penalty(Y.shape[1]) if self.cv is None else self._choose(X, scaled, w, way)
        found, residual, steps = (self._fit_landmarks if way == "landmarks" else self._fit_rows)(X, scaled, w, alpha, way, why)
        return self._keep_dual(replace(found, coef=found.coef * unit, intercept=found.intercept * unit), residual, steps)

    def _fit_rows(self, X: Matrix, Y: Array, w: Array | None, alpha: Any, way: str, why: str) -> tuple[Found, float, int]:
        n, memory = len(Y), bytes_of(self.memory_limit)
        iterative = CG(memory=memory), f"{n:,} rows: conjugate gradients on the operator"
        solver, reason = Auto(memory).choose(n) if way == "exact" else iterative
        if isinstance(solver, CG):  # the intercept is found from two columns, so each gets half the tolerance
            solver = replace(solver, tol=self.tol / 2, max_steps=self.max_iter)
        s = kernel_ridge.exact(self._operator(X), Y, alpha, w, intercept=self.fit_intercept, solver=solver)
        if not s.definite:
            text = "K + alpha / weight has eigenvalues below zero, so K is of no kernel: f solves the equations and minimises nothing"
            warnings.warn(f"{text}; raise alpha.", stacklevel=5)
        factored = isinstance(solver, Cholesky)
        held = 16.0 * n * n if factored else min(2.0 * n * n, memory)
        settings = {"rows": n, "residual": s.residual, "steps": s.steps}
        self.plan_ = Plan("cholesky" if factored else "conjugate gradients", f"{reason} ({why})", settings, held, passes=s.steps)
        return Found(alpha, s.coef, s.intercept), s.residual, max(s.steps, 1)

    def _keep_dual(self, found: Found, residual: float, steps: int) -> Self:
        self._found, self.residual_, self.n_iter_ = found, residual, steps
        if residual > self.tol:
            remedy = "raise alpha; K is singular to rounding" if self.plan_.way == "cholesky" else "raise max_iter, tol or alpha"
            text = f"KernelRidge ({self.plan_.way}) stopped at a residual of {residual:.1e} (tol={self.tol:g}); {remedy}."
            warnings.warn(text, ConvergenceWarning, stacklevel=4)
        return self

    def _fit_landmarks(self, X: Matrix, Y: Array, w: Array | None, alpha: Any, way: str, why: str) -> tuple[Found, float, int]:
        m, memory = self._n_landmarks(len(Y)), bytes_of(self.memory_limit)
        points, how = self._landmarks(X, w, m, memory)
        penalties = np.broadcast_to(alpha, (Y.shape[1],))
        parts = [(penalties == a, self._over_landmarks(X, Y[:, penalties == a], w, points, float(a))) for a in np.unique(penalties)]
        kept = parts[0][1].kept
        coef, b = np.empty((len(kept), Y.shape[1])), np.empty(Y.shape[1])
        for at, s in parts:
            coef[:, at], b[at] = s.coef, s.intercept
        self.X_fit_ = points[kept]
        steps, residual = sum(s.steps for _, s in parts), max(s.residual for _, s in parts)
        settings = {"rows": len(Y), "landmarks": len(coef), "choice": how, "residual": residual, "steps": steps}
        why = f"{m:,} landmarks: passes of products cost less than their m x m moments"
        self.plan_ = Plan("landmarks", why, settings, 24.0 * m * m + memory, 4.0 * len(Y) * m * steps, steps + 2)
        return Found(alpha, coef, b), residual, steps

    def _over_landmarks(self, X: Matrix, Y: Array, w: Array | None, points: Matrix, alpha: float) -> LandmarkSolution:
        def batches() -> Iterator[Batch]:
            return ((X[rows], Y[rows], None if w is None else w[rows]) for rows in cuts(len(Y), BATCH))

        return falkon(
            self.kernel_, points, batches, alpha, intercept=self.fit_intercept, tol=self.tol, max_steps=self.max_iter,
            memory=bytes_of(self.memory_limit), seed=seed_of(self.random_state),
        )  # fmt: skip

    def _landmarks(self, X: Matrix, w: Array | None, m: int, memory: float) -> tuple[Matrix, str]:
        """m rows, chosen as asked where that fits, else with equal chances."""
        select = self.via.select if isinstance(self.via, methods.Landmarks) else "rpcholesky"
        if select == "rpcholesky" and 8.0 * m * X.shape[0] > memory:
            select = "uniform"
        phi = Nystrom(self.kernel_, m, select, random_state=self.random_state).fit(X, sample_weight=w)
        return phi.landmarks_, select

    # choosing
    def _choose(self, X: Matrix, Y: Array, w: Array | None, way: str) -> float:
        """The penalty, and with bandwidths also kernel_, by left-out rows or folds."""
        if self.cv != "loo":
            return self._best_alpha(self._dual_errors(X, Y, w, self._grid(), way), len(Y))
        if way != "exact":
            raise ValueError(f"cv='loo' needs a factor of K, which via={self.via!r} has not; give cv=5, or via='exact'.")
        kernels = [self.kernel_]
        if self.bandwidths is not None:
            if not bandwidths(self.kernel_):
                raise ValueError(f"{self.kernel_!r} has no bandwidth to choose; give bandwidths=None.")
            if 0.0 in (factors := grid(self.bandwidths, "bandwidths")):
                raise ValueError(f"bandwidths must be numbers > 0, got {self.bandwidths!r}.")
            kernels = [scaled(self.kernel_, float(f)).clone() for f in factors]
        scores = np.stack([self._loo_scores(self._operator(X) if self._pairwise else KernelOperator(k, X), Y, w) for k in kernels])
        alpha = self._best_by_loo(scores.max(axis=0) if len(kernels) == 1 else np.nanmax(scores, axis=0), len(Y))
        self.kernel_ = kernels[int(np.nanargmax(np.nanmax(scores, axis=1)))]
        self.loo_scores_ = scores if self.bandwidths is not None else scores[0]
        return alpha

    def _loo_scores(self, op: Any, Y: Array, w: Array | None) -> Array:
        """R^2 of left-out rows for every penalty."""
        self._check_square_fits(len(Y))
        u = np.ones(len(Y)) if w is None else w
        inverses = dual_folds.Inverses.of(op, u, intercept=self.fit_intercept)
        return self._as_scores(dual_folds.loo_errors(inverses, Y, u, self._grid()), Y, u)

    def _check_square_fits(self, n: int) -> None:
        if SQUARES * n * n > bytes_of(self.memory_limit):
            raise ValueError(f"leave-one-out of {n:,} rows needs n x n arrays beyond memory_limit; raise it, or give via='features'.")

    def _dual_errors(self, X: Matrix, Y: Array, w: Array | None, alphas: Array, way: str) -> FoldErrors:
        fold, u = self._folds.of(X).astype(np.intp), np.ones(len(Y)) if w is None else w
        if way == "exact" and SQUARES * len(Y) ** 2 <= bytes_of(self.memory_limit):
            return dual_folds.fold_errors(self._operator(X), Y, u, alphas, fold, self._folds.k, intercept=self.fit_intercept)
        return self._refit_errors(X, Y, u, alphas, fold)

    def _refit_errors(self, X: Matrix, Y: Array, u: Array, alphas: Array, fold: Array) -> FoldErrors:
        """A refit for every fold and penalty."""
        k = self._folds.k
        error, within = np.full((len(alphas), k, Y.shape[1]), np.nan), np.full((k, Y.shape[1]), np.nan)
        for j in range(k):
            rest, test = np.flatnonzero(fold != j), np.flatnonzero(fold == j)
            if not len(rest) or not len(test):
                continue
            within[j] = spread(Y[test], u[test])
            for i, a in enumerate(alphas):
                f = self._refitted(rest, float(a), Y).predict(self._some(X, test, rest))
                error[i, j] = u[test] @ np.square(Y[test] - f.reshape(len(test), -1))
        return FoldErrors(error, within, spread(Y, u))

    def _refitted(self, rows: Array, alpha: Any, Y: Array) -> Self:
        """The model of some rows, with this kernel and a given penalty; Y may be in other units than that of `fit`."""
        X, _, w = self._at_hand()
        model = clone(self).set_params(kernel=self.kernel_, alpha=alpha, cv=None, bandwidths=None)
        y = Y[rows, 0] if self._flat else Y[rows]
        return model.fit(self._some(X, rows, rows), y, None if w is None else w[rows])

    # left-out rows
    @property
    def _by_inverse(self) -> bool:
        if not self._is_dual:
            return super()._by_inverse
        if self.plan_.way == "landmarks":
            raise ValueError("leave-one-out is in closed form over all rows or over features; use via='exact', or fewer landmarks.")
        self._check_square_fits(len(self._at_hand()[1]))
        return True

    def _gram(self, X: Matrix, Z: Matrix) -> Array:
        if not self._is_dual:
            return super()._gram(X, Z)
        return np.asarray(self._operator(X, Z).block(), np.float64)

    def _answer_at(self, X: Matrix) -> Array:
        return self._expansion(X, self.dual_coef_, self.intercept_) if self._is_dual else super()._answer_at(X)

    def _of_the_rest(self, held: Array) -> tuple[Any, Array | None]:
        if not self._is_dual:
            return super()._of_the_rest(held)
        rest = np.flatnonzero(~held)
        model = self._refitted(rest, self.alpha_, self._at_hand()[1])
        model._rows = model._idle = None
        return model, rest if self._pairwise else None

    def _with_solution(self, coef: Array, intercept: Array) -> Any:
        model = type(self).__new__(type(self))  # a plain copy: copy.copy asks for what travels, which is made of this
        left = ("moments_", "_split", "_rows", "_idle", "loo_scores_")
        model.__dict__.update({name: v for name, v in vars(self).items() if name not in left})
        model._found = Found(self.alpha_, coef, intercept)
        return model

    @property
    def dual_coef_(self) -> Array:
        """(n,) or (n, q); AttributeError over features."""
        if not self._is_dual or self._found is None:
            raise AttributeError("dual_coef_ is there for models over rows (via='exact', 'iterative') or many landmarks.")
        return self._found.coef[:, 0] if self._flat else self._found.coef

