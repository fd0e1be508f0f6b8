"""Penalised least squares: in the primal from moments of features, in the dual with a kernel
matrix, by any solver."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from mercer.costs.systems import MIN_FORMED
from mercer.inputs import Array
from mercer.linalg.cholesky import Factored
from mercer.linalg.formed import Formed
from mercer.linalg.solvers import AutoSolver, Solver
from mercer.operators import Operator
from mercer.ops.threads import single_blas
from mercer.stats import Moments

MIN_PENALTY = (
    1e-15  # a penalty below this share of K's diagonal is below its rounding, and counts as that
)


# primal
@dataclass(frozen=True, eq=False)
class PrimalSolution:
    """f(x) = phi(x)'coef + intercept; coef (D, q), intercept (q,)."""

    coef: Array
    intercept: Array


def parts(m: Moments, D: int, *, intercept: bool) -> tuple[Array, Array]:
    """(A, B) of the normal equations (A + alpha I) coef = B, about the mean where there is an
    intercept."""
    C = m.centred() if intercept else m.about_zero()
    return C[:D, :D], C[:D, D:]


def solve(m: Moments, D: int, alpha: float | Array, *, intercept: bool = True) -> PrimalSolution:
    """argmin sum w |y - f(x)|^2 + alpha |coef|^2; alpha one number, or one an output.

    >>> rows = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 5.0]])  # phi, y
    >>> s = solve(Moments.of(rows, shift=np.zeros(2)), 1, 1e-12)
    >>> s.coef.round(6), s.intercept.round(6)
    (array([[2.]]), array([1.]))
    """
    A, B = parts(m, D, intercept=intercept)
    return solve_normal(m, A, B, alpha, intercept=intercept)


def solve_normal(
    m: Moments, A: Array, B: Array, alpha: float | Array, *, intercept: bool
) -> PrimalSolution:
    """The same from the parts of the equations."""
    D = len(A)
    penalties = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (B.shape[1],))
    coef = np.empty_like(B)
    for a in np.unique(penalties):
        coef[:, penalties == a] = penalised(A, float(a))(B[:, penalties == a])
    return PrimalSolution(
        coef, m.mean[D:] - m.mean[:D] @ coef if intercept else np.zeros(B.shape[1])
    )


def penalised(A: Array, alpha: float) -> Callable[[Array], Array]:
    """The solver of (A + alpha I) x = b; where rounding makes that indefinite, with the least
    jitter that mends it."""
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
    raise ValueError(
        "the statistics are of no rows (not finite, or of negative variance); scale the columns of X first."
    )


# dual
@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """f(x) = sum_i coef_i k(x, x_i) + intercept; coef (n, q), zero for rows of weight zero.

    residual : the largest |r| / |y - mean y| of the outputs, r the residual of the equations below
        (without an intercept, relative to |y|)
    steps : products with K (refinements, for a Cholesky factor)
    loo : y_i - f_-i(x_i), (n, q), where asked for
    definite : False where a factor showed that the equations are of no kernel, and f so of no
    minimum
    """

    coef: Array
    intercept: Array
    residual: float
    steps: int
    loo: Array | None = None
    definite: bool = True
    way: str = ""  # the last that the solver took, where it has several


def exact(
    op: Operator,
    Y: Array,
    alpha: Any = 1.0,
    weight: Array | None = None,
    *,
    intercept: bool = True,
    solver: Solver | Formed | None = None,
    loo: bool = False,
) -> RidgeSolution:
    """argmin sum_i w_i (y_i - f(x_i))^2 + alpha |f - b|^2: (K + diag(alpha / w)) coef = y - b,
    1'coef = 0.

    alpha is one number, or one an output (each then needs a factor of its own). loo needs a solver
    that factors.

    >>> from mercer.kernels import Gaussian
    >>> from mercer.operators import KernelOperator
    >>> X = np.linspace(0, 6, 100)[:, None]
    >>> s = exact(KernelOperator(Gaussian(), X), np.sin(X), alpha=1e-6)
    >>> bool(np.abs(Gaussian()(X) @ s.coef + s.intercept - np.sin(X)).max() < 1e-3)
    True
    """
    Y = np.asarray(Y, np.float64).reshape(op.shape[0], -1)
    w = np.ones(len(Y)) if weight is None else np.asarray(weight, np.float64)
    on = np.flatnonzero(w)
    if not len(on):
        raise ValueError("weight is zero for every row; give some row a positive weight.")
    inner = op if len(on) == len(Y) else op.restrict(on)
    with single_blas() if len(on) < MIN_FORMED else nullcontext():  # threads would take longer
        found = _groups(inner, Y[on], alpha, w[on], intercept, solver or AutoSolver(), loo)
    return found if inner is op else _spread(found, op, Y, on)


def _groups(
    op: Operator,
    Y: Array,
    alpha: Any,
    w: Array,
    intercept: bool,
    solver: Solver | Formed,
    loo: bool,
) -> RidgeSolution:
    """Outputs of the same penalty are solved together."""
    penalties = np.broadcast_to(np.asarray(alpha, np.float64), (Y.shape[1],))
    coef, b, left = np.empty_like(Y), np.empty(Y.shape[1]), np.empty_like(Y)
    worst, steps, definite, way = 0.0, 0, True, ""
    for a in np.unique(penalties):
        at = penalties == a
        s = _solve(op, Y[:, at], float(a) / w, w, intercept, solver, loo)
        coef[:, at], b[at], worst, steps = (
            s.coef,
            s.intercept,
            max(worst, s.residual),
            steps + s.steps,
        )
        definite, way = definite and s.definite, s.way
        if s.loo is not None:
            left[:, at] = s.loo
    return RidgeSolution(coef, b, worst, steps, left if loo else None, definite, way)


def _solve(
    op: Operator,
    Y: Array,
    ridge: Array,
    w: Array,
    intercept: bool,
    solver: Solver | Formed,
    loo: bool,
) -> RidgeSolution:
    ridge = np.maximum(ridge, MIN_PENALTY * float(np.abs(op.diag()).max()) or MIN_PENALTY)
    handle = solver.init(op, ridge, Y.shape[1] + intercept)
    mean = np.average(Y, axis=0, weights=w) if intercept else np.zeros(Y.shape[1])
    B = Y - mean  # so that the constant to be found is small
    s = handle.solve(np.column_stack([B, np.ones(len(B))]) if intercept else B)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = s.x.sum(axis=0)
    if not np.isfinite(sums).all():
        raise ValueError(
            "the coefficients are beyond the range of float64; raise alpha, or give the kernel a larger factor."
        )
    coef, R, b = s.x, s.remainder, np.zeros(Y.shape[1])
    if intercept:
        one = s.x[:, -1]
        total = float(sums[-1])  # not zero for a kernel; a Gram matrix that is none may give that
        b = sums[:-1] / total if total else b
        coef, R = (
            s.x[:, :-1] - np.outer(one, b),
            s.remainder[:, :-1] - np.outer(s.remainder[:, -1], b),
        )
    size = np.linalg.norm(B, axis=0)
    residual = float((np.linalg.norm(R, axis=0) / np.where(size > 0, size, 1)).max(initial=0))
    left = _left_out(handle, coef, s.x[:, -1] if intercept else None) if loo else None
    definite = getattr(handle, "definite", True)
    return RidgeSolution(coef, mean + b, residual, s.steps, left, definite, s.way)


def _left_out(handle: object, coef: Array, one: Array | None) -> Array:
    """y_i - f_-i(x_i) = coef_i / C_ii, C the block of K in the inverse of the equations: row i and
    its column taken out."""
    if not isinstance(handle, Factored):
        raise ValueError(
            "leave-one-out in closed form needs a Cholesky factor; give solver=Cholesky()."
        )
    C = handle.inverse_diag()
    if one is not None:
        C = C - one**2 / one.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(coef / C[:, None])  # nan where nothing is left to fit


def _spread(s: RidgeSolution, op: Operator, Y: Array, on: Array) -> RidgeSolution:
    """With the rows of weight zero, whose left-out prediction is the plain one."""
    coef = np.zeros_like(Y)
    coef[on] = s.coef
    loo = None
    if s.loo is not None:
        off = np.setdiff1d(np.arange(len(Y)), on)
        loo = np.empty_like(Y)
        loo[on], loo[off] = s.loo, Y[off] - op.restrict(off, on) @ s.coef - s.intercept
    return RidgeSolution(coef, s.intercept, s.residual, s.steps, loo, s.definite)
