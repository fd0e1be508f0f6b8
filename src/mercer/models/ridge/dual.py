"""Ridge regression over the rows themselves, f = sum_i coef_i k(., x_i) + b: by a Cholesky factor
or conjugate gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.costs import MAX_CHOLESKY_ROWS, systems
from mercer.costs.systems import NARROW, STEPS, WIDE
from mercer.gpu.devices import told, without
from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is, Number, Whole
from mercer.kernels import Linear, Scale
from mercer.kernels.defaults import bandwidths, scaled
from mercer.kernels.ways import value_ways
from mercer.linalg.cholesky import Cholesky
from mercer.linalg.formed import MAX_CONDITION, Formed
from mercer.linalg.least_squares import RidgeSolution, exact
from mercer.linalg.solvers import CG, AutoSolver
from mercer.models.expansion import Expansion, kernel_at
from mercer.models.ridge.cross_validation import (
    FoldErrors,
    Inverses,
    dual_fold_errors,
    dual_loo_errors,
    spread,
)
from mercer.models.ridge.leave_one_out import ByInverse
from mercer.models.ridge.problem import SQUARES, Refit, RidgeSettings, TrainingRows, Weights
from mercer.models.settings import FittedKernel, grid
from mercer.operators.partitioned import PartitionedOperator
from mercer.plans import Plan, quantity
from mercer.store import register

EPS = float(np.finfo(float).eps)
OFF_CENTRE = 0.01  # of k(x, x) is left about the mean, where columns are far from zero
_SAID = {  # of a matrix that is formed
    STEPS: "few products with it suffice",
    NARROW: "it is factored in float32, with residuals in float64",
    WIDE: "it is factored in float64",
}


@register("ridge.Dual")
@dataclass(frozen=True, eq=False)
class DualRidge:
    """Coefficients of an expansion over the rows of `fit`, or over landmarks."""

    plan: Plan
    over: Expansion
    weights: Weights
    flat: bool
    residual: float
    steps: int
    loo_scores: Array | None = None

    must = dict(
        plan=Is("Plan"),
        over=Is("Expansion"),
        weights=Is("Weights"),
        residual=Number(0),
        steps=Whole(),
        loo_scores=Floats(None, finite=False) | Floats(None, None, finite=False) | None,
    )

    def _laws(self) -> str | None:
        points = self.over.points
        return self.weights.misfit(self.weights.size if points is None else len(points), self.flat)

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        points = self.over.points
        return self.weights.size if points is None else None if points.items else points.width

    @property
    def kernel(self) -> FittedKernel:
        return self.over.kernel

    def predict(self, X: Table, gpu: str | None = None) -> Array:
        return self.over.combined(X, *self.weights.shaped(self.flat), gpu, wide=self._cancels)

    @cached_property
    def _cancels(self) -> bool:
        return self.over.cancels(self.weights.coef)

    def gradient(self, X: Table) -> Array:
        """(n, q, d)"""
        return self.over.gradient(X, self.weights.coef)

    def fold_errors(
        self, s: RidgeSettings, rows: TrainingRows, alphas: Array, refit: Refit
    ) -> FoldErrors:
        return fold_errors(s, self.over, rows, alphas, refit)

    def left_out(self, s: RidgeSettings, rows: TrainingRows) -> ByInverse:
        if self.plan.way == "landmarks":
            raise ValueError(
                "leave-one-out is in closed form over all rows or over features; use via='exact', or few landmarks on the CPU."
            )
        s.check_square_fits(len(rows))
        return ByInverse(self.over.gram, rows, s.intercept)

    def without(self, s: RidgeSettings, rows: TrainingRows, held: Array, refit: Refit) -> Any:
        """The model of the rows that are not held out."""
        return refit(
            s.without_choices(self.kernel, self.weights.alpha), rows.some(np.flatnonzero(~held))
        )


def fit(
    s: RidgeSettings,
    rows: TrainingRows,
    plan: Plan,
    flat: bool,
    refit: Refit,
    spread_out: bool = False,
) -> DualRidge:
    """(K + alpha / w) coef = y - b, in units of the largest y: squares of y may be no numbers. Where
    it is spread out, the workers of the current client make the products."""
    if s.bandwidths is not None and (not s.loo or plan.way != "exact" or s.precomputed):
        raise ValueError(
            "bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them."
        )
    over, op = expansion(s, rows)
    unit = np.maximum(np.abs(rows.Y).max(axis=0), np.finfo(float).tiny)
    scaled_rows = replace(rows, Y=rows.Y / unit)
    alpha, best, scores = penalty(s, over, scaled_rows, plan, refit)
    if best is not over:
        over, op = best, best.operator(rows.X)
    mild = float(op.diag().sum()) * rows.weights.max() <= MAX_CONDITION * float(np.min(alpha))
    solver, reason = solver_for(s, over, rows.X, plan.way, rows.Y.shape[1], mild=mild)
    if spread_out and isinstance(solver, CG) and not isinstance(over.kernel, str):
        op, reason = PartitionedOperator(over.kernel, rows.X), f"{reason}, by blocks of rows"
    found = exact(
        op,
        scaled_rows.Y,
        alpha,
        rows.weight,
        intercept=s.intercept,
        solver=solver,
    )
    if not found.definite:
        text = "K + alpha / weight has eigenvalues below zero, so K is of no kernel: f solves the equations and minimises nothing"
        warnings.warn(f"{text}; raise alpha.", stacklevel=5)
    made = written(plan, len(rows), solver, found, reason, s.memory)
    settings = {**made.settings, **value_ways(over.kernel, rows.X)}
    made = replace(made, why=made.why + without(s.device), settings=settings)
    off = s.intercept and found.residual > s.tol and is_off_centre(over.kernel, rows.X)
    warn_if_open(made.way, found.residual, s.tol, off_centre=off)
    weights = Weights(alpha, found.coef * unit, found.intercept * unit)
    return DualRidge(made, over, weights, flat, found.residual, max(found.steps, 1), scores)


def expansion(s: RidgeSettings, rows: TrainingRows) -> tuple[Expansion, Any]:
    """The kernel that was meant, at these rows, and its operator; values there must be numbers."""
    kernel = "precomputed" if s.precomputed else kernel_at(s.kernel, rows.X, rows.weight)
    over = Expansion(kernel, None if s.precomputed else rows.X)
    op = over.operator(rows.X)
    with np.errstate(over="ignore"):
        own = op.diag()
        if not np.isfinite(own).all():
            raise ValueError(
                "k(x, x) of some rows is not a finite number; scale the columns of X first."
            )
    # below this, values have few digits or are zero; beside a larger alpha that changes nothing
    least = np.finfo(own.dtype).tiny
    tiny = own.max() < least and np.min(s.alpha) < len(rows) * least / EPS
    if tiny and not (rows.X.items or s.precomputed) and (rows.X.data != 0).sum():
        raise ValueError(
            f"k(x, x) of all rows is too small for {own.dtype}, beside alpha={s.alpha!r}; scale the columns of X first."
        )
    return over, op


def solver_for(
    s: RidgeSettings, over: Expansion, X: Table, way: str, outputs: int = 1, *, mild: bool = False
) -> tuple[Cholesky | Formed | CG | Any, str]:
    """The solver, and the reason for it; `mild` where no eigenvalue is far above the ridge."""
    n = len(X)
    if s.gpu is not None and (way == "iterative" or n > MAX_CHOLESKY_ROWS):
        made = import_module("mercer.gpu.solve").GPUSolver(s.tol / 2, s.max_iter, device=s.gpu)
        why = over.no_tile(X) or made.no_room(n, X.width, outputs + 1, s.gpu)
        if why is None:
            return made, _told_of_gpu(s, n, made.rank_at(n, s.gpu))
        return _cpu_solver(s, n, X.width, way, f"; on the CPU, as {why}", mild=mild)
    return _cpu_solver(s, n, X.width, way, mild=mild)


def _told_of_gpu(s: RidgeSettings, n: int, rank: int) -> str:
    """Where equations are solved, and to how many digits."""
    digits = f"products to about 1e-6, residuals in float64, at most {rank:,} pivots"
    return f"{n:,} rows: conjugate gradients {told(s.device)}, {digits}"


def _cpu_solver(
    s: RidgeSettings, n: int, width: int, way: str, note: str = "", *, mild: bool
) -> tuple[Cholesky | Formed | CG, str]:
    solver: Cholesky | Formed | CG
    if way == "exact":
        solver, why = AutoSolver(s.memory).choose(n)
        rows = systems.formed_rows(width, mild=mild)
        if not s.precomputed and n in rows and Formed().bytes(n) <= s.memory:
            solver, why = Formed(), f"{n:,} rows: one {quantity(8.0 * n * n, 'B')} matrix is formed"
    else:
        solver, why = CG(memory=s.memory), f"{n:,} rows: conjugate gradients on the operator"
    if isinstance(
        solver, CG
    ):  # the intercept is found from two columns, so each gets half the tolerance
        solver = replace(solver, tol=s.tol / 2, max_steps=s.max_iter)
    return solver, why + note


def written(plan: Plan, n: int, solver: Any, found: RidgeSolution, why: str, memory: float) -> Plan:
    """The plan, as it was carried out."""
    formed = isinstance(solver, Cholesky | Formed)
    held = 16.0 * n * n if formed else min(2.0 * n * n, memory)
    settings = {"rows": n, "residual": found.residual, "steps": found.steps}
    way = "cholesky" if formed and found.way != STEPS else STEPS
    if found.way:
        why = f"{why}; {_SAID[found.way]}"
    return Plan(way, f"{why} ({plan.why})", settings, held, passes=found.steps)


def is_off_centre(kernel: FittedKernel, X: Table) -> bool:
    """Whether k(x, x) tells mostly where the mean of the rows is, and the kernel is linear: an
    intercept makes up for that."""
    while isinstance(kernel, Scale):
        kernel = kernel.kernel
    if not isinstance(kernel, Linear) or X.sparse:
        return False
    rows = np.asarray(X.data, np.float64)
    about_mean = kernel.diag(rows - rows.mean(axis=0)).max()
    return bool(about_mean < OFF_CENTRE * kernel.diag(rows).max())


def warn_if_open(way: str, residual: float, tol: float, *, off_centre: bool = False) -> None:
    """Where the equations are not solved to the tolerance."""
    if residual > tol:
        remedy = "raise max_iter, tol or alpha"
        if way == "cholesky":
            remedy = "raise alpha; K is singular to rounding"
        if off_centre:
            remedy = "centre the columns of X, which changes nothing else: they are so far from zero that K is singular to rounding"
        text = (
            f"KernelRidge ({way}) stopped at a residual of {residual:.1e} (tol={tol:g}); {remedy}."
        )
        warnings.warn(text, ConvergenceWarning, stacklevel=6)


# choosing
def penalty(
    s: RidgeSettings, over: Expansion, rows: TrainingRows, plan: Plan, refit: Refit
) -> tuple[Any, Expansion, Array | None]:
    """The penalty given, or that of the best folds or left-out rows; with bandwidths also the
    kernel. And the scores of left-out rows."""
    p = s.penalties(rows.Y.shape[1])
    if s.cv is None:
        return p.alpha, over, None
    if not s.loo:
        return p.best_by_folds(fold_errors(s, over, rows, s.grid(), refit), len(rows)), over, None
    if plan.way != "exact":
        raise ValueError(
            f"cv='loo' needs a factor of K, which via={s.way!r} has not; give cv=5, or via='exact'."
        )
    kernels = candidates(s, over.kernel)
    scores = np.stack([loo_scores(s, replace(over, kernel=k), rows) for k in kernels])
    alpha = p.best_by_loo(
        scores.max(axis=0) if len(kernels) == 1 else np.nanmax(scores, axis=0), len(rows)
    )
    best = kernels[int(np.nanargmax(np.nanmax(scores, axis=1)))]
    return alpha, replace(over, kernel=best), scores if s.bandwidths is not None else scores[0]


def candidates(s: RidgeSettings, kernel: FittedKernel) -> list[FittedKernel]:
    """The kernel at every bandwidth to choose from."""
    if s.bandwidths is None:
        return [kernel]
    if isinstance(kernel, str) or not bandwidths(kernel):
        raise ValueError(f"{kernel!r} has no bandwidth to choose; give bandwidths=None.")
    if 0.0 in (factors := grid(s.bandwidths, "bandwidths")):
        raise ValueError(f"bandwidths must be numbers > 0, got {s.bandwidths!r}.")
    return [scaled(kernel, float(f)).clone() for f in factors]


def loo_scores(s: RidgeSettings, over: Expansion, rows: TrainingRows) -> Array:
    """R^2 of left-out rows for every penalty."""
    s.check_square_fits(len(rows))
    inverses = Inverses.of(over.operator(rows.X), rows.weights, intercept=s.intercept)
    return rows.scores(dual_loo_errors(inverses, rows.Y, rows.weights, s.grid()))


def fold_errors(
    s: RidgeSettings, over: Expansion, rows: TrainingRows, alphas: Array, refit: Refit
) -> FoldErrors:
    """By the inverse of the equations where it fits, else by refits."""
    fold = rows.fold().astype(np.intp)
    if s.way in ("auto", "exact") and SQUARES * len(rows) ** 2 <= s.memory:
        op = over.operator(rows.X)
        return dual_fold_errors(
            op, rows.Y, rows.weights, alphas, fold, rows.folds.k, intercept=s.intercept
        )
    return FoldErrors(
        *_by_refits(s.without_choices(over.kernel, 1.0), rows, alphas, fold, refit),
        spread(rows.Y, rows.weights),
    )


def _by_refits(
    s: RidgeSettings, rows: TrainingRows, alphas: Array, fold: Array, refit: Refit
) -> tuple[Array, Array]:
    """A refit for every fold and penalty: squared errors (a, k, q), and spreads of y within folds
    (k, q)."""
    k, q = rows.folds.k, rows.Y.shape[1]
    error, within = np.full((len(alphas), k, q), np.nan), np.full((k, q), np.nan)
    for j, rest, test in _parts(fold, k):
        u, Y, X = rows.weights[test], rows.Y[test], rows.between(test, rest)
        within[j] = spread(Y, u)
        for i, a in enumerate(alphas):
            f = refit(replace(s, alpha=float(a)), rows.some(rest)).predict(X)
            error[i, j] = u @ np.square(Y - f.reshape(len(test), -1))
    return error, within


def _parts(fold: Array, k: int) -> Iterator[tuple[int, Array, Array]]:
    for j in range(k):
        rest, test = np.flatnonzero(fold != j), np.flatnonzero(fold == j)
        if len(rest) and len(test):
            yield j, rest, test
