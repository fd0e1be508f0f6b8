"""Ridge regression over so many features that D x D moments do not fit: conjugate gradients that
pass over the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.invariants import Is, Number, Whole
from mercer.linalg.cg import gradients_by_column
from mercer.linalg.least_squares import PrimalSolution
from mercer.models.folds import Folds
from mercer.models.maps import HEAD, TOO_LARGE, FittedMap
from mercer.models.ridge.cross_validation import FoldErrors
from mercer.models.ridge.leave_one_out import ByInverse
from mercer.models.ridge.problem import Refit, RidgeSettings, TrainingRows, Weights
from mercer.models.ridge.sparse import SparsePasses
from mercer.models.settings import FittedKernel
from mercer.models.sparse_newton import sparse_plan
from mercer.models.sparse_rows import SparseRows
from mercer.plans import Plan
from mercer.store import register

NONE = -1  # no fold is left out
FEW_ROWS = 512  # whose n x n arrays are small whatever the limit
SPARSE_WAY = "sparse conjugate gradients"


@register("ridge.Features")
@dataclass(frozen=True, eq=False)
class FeatureRidge:
    """The coefficients of features alone, as passes find them or as moments leave them."""

    plan: Plan
    phi: FittedMap
    weights: Weights
    flat: bool
    residual: float
    steps: int

    loo_scores = None
    must = dict(
        plan=Is("Plan"),
        phi=Is("FittedMap"),
        weights=Is("Weights"),
        residual=Number(0),
        steps=Whole(),
    )

    def _laws(self) -> str | None:
        return self.weights.misfit(self.phi.width, self.flat)

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.phi.kernel

    def predict(self, X: Table) -> Array:
        return self.phi.linear(X, *self.weights.shaped(self.flat))

    def gradient(self, X: Table) -> Array:
        """(n, q, d)"""
        return self.phi.gradient(X, self.weights.coef)

    def fold_errors(
        self, s: RidgeSettings, rows: TrainingRows, alphas: Array, refit: Refit
    ) -> FoldErrors:
        p, _ = passes(s, rows, self.phi)
        return errors(s, p, alphas)

    def left_out(self, s: RidgeSettings, rows: TrainingRows) -> ByInverse:
        if len(rows) > self.phi.width:
            raise AttributeError(
                "leave-one-out over features needs their D x D statistics; raise memory_limit, or use fewer features."
            )
        if len(rows) > FEW_ROWS and not s.square_fits(len(rows)):
            raise AttributeError(
                f"leave-one-out of {len(rows):,} rows needs n x n arrays beyond memory_limit; raise it, or use folds."
            )
        return ByInverse(self.phi.gram, rows, s.intercept)

    def without(
        self, s: RidgeSettings, rows: TrainingRows, held: Array, refit: Refit
    ) -> FeatureRidge:
        """The model of the rows that are not held out."""
        p, taken = passes(s, replace(rows.some(np.flatnonzero(~held)), folds=Folds(1)), self.phi)
        found, _, _ = solved(s, p, self.weights.alpha)
        return replace(
            self, weights=Weights(self.weights.alpha, found.coef, found.intercept + taken)
        )


def fit(s: RidgeSettings, rows: TrainingRows, phi: FittedMap, flat: bool) -> FeatureRidge:
    """All folds and penalties side by side, then the model of the best."""
    if s.loo:
        raise ValueError(
            "cv='loo' over features needs their D x D statistics, beyond memory_limit; raise it, or give cv=5."
        )
    p, taken = passes(s, rows, phi)
    if not p.finite:
        raise ValueError(TOO_LARGE)
    among = s.penalties(rows.Y.shape[1])
    alpha = among.best_by_folds(errors(s, p, among.grid), len(rows)) if among.by else among.alpha
    found, steps, residual = solved(s, p, alpha)
    weights = Weights(alpha, found.coef, found.intercept + taken)
    return FeatureRidge(_plan(p, phi, steps + 1), phi, weights, flat, residual, steps + 1)


def _plan(p: FoldPasses | SparsePasses, phi: FittedMap, steps: int) -> Plan:
    if isinstance(p, SparsePasses):
        how = "conjugate gradients about the means, no D x D array"
        return sparse_plan(SPARSE_WAY, how, p.rows, p.Y.shape[1], 2 * steps)
    why = f"{phi.width:,} features: D x D moments exceed the memory limit, so conjugate gradients pass over the rows"
    return phi.plan(len(p.Y), "conjugate gradients", why, steps)


def passes(
    s: RidgeSettings, rows: TrainingRows, phi: FittedMap
) -> tuple[FoldPasses | SparsePasses, Array]:
    """The problem about the means of the first rows, or over sparse features, and what was taken off
    y."""
    taken, fold = rows.Y[:HEAD].mean(0) * s.intercept, rows.fold().astype(np.intp)
    Y, w, k = rows.Y - taken, rows.weights, rows.folds.k
    if (F := phi.sparse_features(rows.X)) is not None:
        return SparsePasses(
            SparseRows.of(F, intercept=s.intercept), Y, w, fold, k, s.intercept
        ), taken
    shift = phi.shift(rows.X)
    return FoldPasses(lambda: phi.batches(rows.X), Y, w, fold, k, shift, s.intercept), taken


def errors(s: RidgeSettings, p: FoldPasses | SparsePasses, alphas: Array) -> FoldErrors:
    """Of every fold and penalty, as many problems at a time as fit."""
    width = int(max(1, s.memory // (64 * p.width * p.Y.shape[1])))
    return p.errors(alphas, s.tol, s.max_iter, width)


def solved(
    s: RidgeSettings, p: FoldPasses | SparsePasses, alpha: float | Array
) -> tuple[PrimalSolution, int, float]:
    """The model of all rows, its passes and its residual."""
    alphas = np.broadcast_to(alpha, (1, p.Y.shape[1]))
    found, steps, residual = p.solve(np.array([NONE]), alphas, s.tol, s.max_iter)
    if residual > s.tol:
        text = f"conjugate gradients stopped at a residual of {residual:.1e} (tol={s.tol:g}); raise max_iter, tol or alpha."
        warnings.warn(text, ConvergenceWarning, stacklevel=7)
    return p.spread(found), steps, residual


# all folds and penalties side by side
@dataclass(frozen=True, eq=False)
class FoldSums:
    """Of weights (k,), features (k, D), their squares (k, D), y (k, q), y^2 (k, q) and features
    times y (k, D, q), by fold."""

    n: Array
    s: Array
    squares: Array
    y: Array
    y2: Array
    b: Array

    def without(self, fold: int) -> FoldSums:
        keep = np.arange(len(self.n)) != fold
        return FoldSums(
            *(v[keep].sum(0) for v in (self.n, self.s, self.squares, self.y, self.y2, self.b))
        )


@dataclass(frozen=True, eq=False)
class FoldPasses:
    """sum w (y - f)^2 + alpha |coef|^2 without some fold: problems that share every pass over the
    rows.

    `batches()` gives (rows, features) again and again; `shift` is near the mean of the features,
    about which sums are taken.
    """

    batches: Callable[[], Iterable[tuple[slice, Array]]]
    Y: Array  # (n, q)
    weight: Array  # (n,)
    fold: Array  # (n,)
    k: int
    shift: Array  # (D,)
    intercept: bool

    @property
    def width(self) -> int:
        """D"""
        return len(self.shift)

    @property
    def finite(self) -> bool:
        """Whether all sums are numbers."""
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self.sums
        return all(bool(np.isfinite(v).all()) for v in (sums.squares, sums.y2, sums.b))

    def spread(self, found: PrimalSolution) -> PrimalSolution:
        """Coefficients of all features, which those of dense ones are."""
        return found

    @cached_property
    def sums(self) -> FoldSums:
        """One pass."""
        k, D, q = self.k, len(self.shift), self.Y.shape[1]
        out = FoldSums(
            np.zeros(k),
            np.zeros((k, D)),
            np.zeros((k, D)),
            np.zeros((k, q)),
            np.zeros((k, q)),
            np.zeros((k, D, q)),
        )
        for rows, F in self.batches():
            G, Y, w = self._centred(F), self.Y[rows], self.weight[rows]
            for j in np.unique(self.fold[rows]):
                u = np.where(self.fold[rows] == j, w, 0.0)
                out.n[j] += u.sum()
                out.s[j] += u @ G
                out.squares[j] += u @ np.square(G)
                out.y[j] += u @ Y
                out.y2[j] += u @ np.square(Y)
                out.b[j] += G.T @ (u[:, None] * Y)
        return out

    def _centred(self, F: Array) -> Array:
        return np.asarray(
            F.astype(np.float64) - self.shift if self.intercept else F.astype(np.float64)
        )

    def solve(
        self, left_out: Array, alphas: Array, tol: float, steps: int
    ) -> tuple[PrimalSolution, int, float]:
        """The models without fold `left_out[s]`, for penalty `alphas[s]`; output by output, (D, S
        q). Also passes and residual."""
        rest = [self.sums.without(j) for j in left_out]
        q = self.Y.shape[1]
        n = np.repeat([r.n for r in rest], q)
        mean = (
            np.repeat(np.stack([r.s / r.n for r in rest], axis=1), q, axis=1) * self.intercept
        )  # (D, S q)
        mean_y = np.concatenate([r.y / r.n for r in rest]) * self.intercept
        b = np.concatenate([r.b for r in rest], axis=1) - n * mean * mean_y
        penalty, out = (
            np.repeat(alphas, q) if alphas.ndim == 1 else alphas.ravel(),
            np.repeat(left_out, q),
        )
        square = np.repeat(np.stack([r.squares for r in rest], axis=1), q, axis=1) - n * mean**2

        def product(P: Array) -> Array:
            return self._pass(P, out) - n * mean * np.sum(mean * P, axis=0) + penalty * P

        diagonal = np.maximum(square, 0) + penalty + np.finfo(float).tiny
        coef, passes = gradients_by_column(product, b, diagonal, 0.5 * tol, steps)
        size = np.linalg.norm(b, axis=0)
        residual = float(
            (np.linalg.norm(b - product(coef), axis=0) / np.where(size > 0, size, 1)).max(initial=0)
        )
        return (
            PrimalSolution(
                coef, mean_y - np.sum((mean + self.shift[:, None] * self.intercept) * coef, axis=0)
            ),
            passes + 1,
            residual,
        )

    def _pass(self, P: Array, left_out: Array) -> Array:
        """sum_i w_i g_i g_i'P over the rows that each problem has."""
        total = np.zeros_like(P)
        for rows, F in self.batches():
            G = self._centred(F)
            U = G @ P
            U *= self.weight[rows, None] * (self.fold[rows, None] != left_out)
            total += G.T @ U
        return total

    def errors(self, alphas: Array, tol: float, steps: int, width: int) -> FoldErrors:
        """Every fold and penalty, `width` problems at a time."""
        q, k, sums = self.Y.shape[1], self.k, self.sums
        error, spread = np.full((len(alphas), k, q), np.nan), np.full((k, q), np.nan)
        used = [j for j in range(k) if sums.n[j] > 0 and sums.without(j).n > 0]
        spread[used] = np.maximum(sums.y2[used] - sums.y[used] ** 2 / sums.n[used, None], 0)
        problems = [(i, j) for j in used for i in range(len(alphas))]
        for start in range(0, len(problems), width):
            at, folds = map(np.array, zip(*problems[start : start + width], strict=True))
            s, _, _ = self.solve(folds, alphas[at], tol, steps)
            error[at, folds] = self._squared_errors(s, folds)
        every = sums.without(NONE)
        return FoldErrors(error, spread, np.maximum(every.y2 - every.y**2 / every.n, 0))

    def _squared_errors(self, s: PrimalSolution, folds: Array) -> Array:
        """Of each model on the fold that it has not seen, (S, q)."""
        total = np.zeros((len(folds), self.Y.shape[1]))
        for rows, F in self.batches():
            f = (F.astype(np.float64) @ s.coef + s.intercept).reshape(len(F), len(folds), -1)
            u = self.weight[rows, None] * (self.fold[rows, None] == folds)
            total += np.einsum("is,isq->sq", u, np.square(self.Y[rows, None] - f))
        return total
