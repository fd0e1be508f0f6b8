"""Ridge regression over so many features that D x D moments do not fit: conjugate gradients that pass over the rows."""
from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.invariants import Is, Number, Whole
from mercer.learners.passes import NONE, Passes, Sums
from mercer.learners.ridge import FoldErrors, Solution
from mercer.models.folds import Folds
from mercer.models.maps import HEAD, TOO_LARGE, FittedMap
from mercer.models.ridge.leave_one_out import ByInverse
from mercer.models.ridge.problem import Settings, TrainingRows, Weights
from mercer.plan import Plan
from mercer.store import register


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
    must = dict(plan=Is("Plan"), phi=Is("FittedMap"), weights=Is("Weights"), residual=Number(0), steps=Whole())

    def _laws(self) -> str | None:
        return self.weights.misfit(self.phi.width, self.flat)

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def kernel(self) -> Any:
        return self.phi.lift.kernel_

    def predict(self, X: Table) -> Array:
        return self.phi.linear(X, *self.weights.shaped(self.flat))

    def fold_errors(self, s: Settings, rows: TrainingRows, alphas: Array, refit: Any) -> FoldErrors:
        p, _ = passes(s, rows, self.phi)
        return errors(s, p, p.sums(), alphas)

    def left_out(self, s: Settings, rows: TrainingRows) -> ByInverse:
        if len(rows) > self.phi.width:
            raise AttributeError("leave-one-out over features needs their D x D statistics; raise memory_limit, or use fewer features.")
        return ByInverse(self.phi.gram, rows, s.intercept)

    def without(self, s: Settings, rows: TrainingRows, held: Array, refit: Any) -> FeatureRidge:
        """The model of the rows that are not held out."""
        p, taken = passes(s, replace(rows.some(np.flatnonzero(~held)), folds=Folds(1)), self.phi)
        found, _, _ = solved(s, p, p.sums(), self.weights.alpha)
        return replace(self, weights=Weights(self.weights.alpha, found.coef, found.intercept + taken))


def fit(s: Settings, rows: TrainingRows, phi: FittedMap, flat: bool) -> FeatureRidge:
    """All folds and penalties side by side, then the model of the best."""
    if s.loo:
        raise ValueError("cv='loo' over features needs their D x D statistics, beyond memory_limit; raise it, or give cv=5.")
    p, taken = passes(s, rows, phi)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = p.sums()
    if not all(np.isfinite(v).all() for v in (sums.squares, sums.y2, sums.b)):
        raise ValueError(TOO_LARGE)
    among = s.penalties(rows.Y.shape[1])
    alpha = among.best_by_folds(errors(s, p, sums, among.grid), len(rows)) if among.by else among.alpha
    found, steps, residual = solved(s, p, sums, alpha)
    why = f"{phi.width:,} features: D x D moments exceed the memory limit, so conjugate gradients pass over the rows"
    plan = phi.plan(len(rows), "conjugate gradients", why, steps + 1)
    return FeatureRidge(plan, phi, Weights(alpha, found.coef, found.intercept + taken), flat, residual, steps + 1)


def passes(s: Settings, rows: TrainingRows, phi: FittedMap) -> tuple[Passes, Array]:
    """The problem about the means of the first rows, and what was taken off y."""
    taken, fold = rows.Y[:HEAD].mean(0) * s.intercept, rows.fold().astype(np.intp)
    shift = phi.shift(rows.X)
    return Passes(lambda: phi.batches(rows.X), rows.Y - taken, rows.weights, fold, rows.folds.k, shift, s.intercept), taken


def errors(s: Settings, p: Passes, sums: Sums, alphas: Array) -> FoldErrors:
    """Of every fold and penalty, as many problems at a time as fit."""
    width = int(max(1, s.memory // (64 * len(p.shift) * p.Y.shape[1])))
    return p.errors(sums, alphas, s.tol, s.max_iter, width)


def solved(s: Settings, p: Passes, sums: Sums, alpha: Any) -> tuple[Solution, int, float]:
    """The model of all rows, its passes and its residual."""
    alphas = np.broadcast_to(alpha, (1, p.Y.shape[1]))
    found, steps, residual = p.solve(sums, np.array([NONE]), alphas, s.tol, s.max_iter)
    if residual > s.tol:
        text = f"conjugate gradients stopped at a residual of {residual:.1e} (tol={s.tol:g}); raise max_iter, tol or alpha."
        warnings.warn(text, ConvergenceWarning, stacklevel=7)
    return found, steps, residual
