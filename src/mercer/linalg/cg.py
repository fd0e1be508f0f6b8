"""Conjugate gradients for many right-hand sides at once, and refinement: cheap solves, residuals
that are true."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.operators import Operator

LOG = logger("cg")

Map = Callable[[Array], Array]
BITS = 32  # of a diagonal's exponent up to which neither squares nor float32 need another unit
MAX_ROUNDS = 20  # of refinement
MAX_REMAINDER = (
    0.5  # a round that leaves more than this of the residual is not worth another of its kind
)


@dataclass(frozen=True, eq=False)
class Solved:
    """x with A x = b (n, q); `remainder` is b - A x computed with A itself, `residual` the largest
    |b - A x| / |b|."""

    x: Array
    remainder: Array
    residual: float
    steps: int
    way: str = ""  # the last that was taken, where there are several
    last: int = 0  # its place among them


def conjugate_gradients(
    product: Map,
    B: Array,
    precondition: Map,
    tol: Array,
    max_steps: int,
    hopeless: Callable[[Array, Array], bool] | None = None,
) -> tuple[Array, int]:
    """Solve A X = B (n, q), A positive definite, each column to |r| <= tol (q,); columns leave when
    they are done. `hopeless(|r|, tol)` of those that are left is asked after every step, and ends
    the search where it says so.

    A direction in which A is not positive (rounding) ends the search there.

    >>> A = np.diag([1.0, 2.0, 3.0])
    >>> X, steps = conjugate_gradients(lambda P: A @ P, np.ones((3, 1)), lambda R: R, np.array([1e-9]), 10)
    >>> X[:, 0].round(6), steps
    (array([1.      , 0.5     , 0.333333]), 3)
    """
    X, steps = np.zeros_like(B), 0
    on = np.flatnonzero(np.linalg.norm(B, axis=0) > tol)
    R, P, gamma = B[:, on], np.empty((len(B), 0)), np.ones(len(on))
    while len(on) and steps < max_steps:
        Z = precondition(R)
        new = np.einsum("ij,ij->j", R, Z)
        if (
            bad := new <= 0
        ).any():  # rounding made the preconditioner indefinite there: go on without it
            Z[:, bad], new[bad] = R[:, bad], np.square(R[:, bad]).sum(0)
        P = Z + new / gamma * P if steps else Z
        AP = product(P)
        steps += 1
        curve = np.einsum("ij,ij->j", P, AP)
        fine = (curve > 0) & (new > 0)
        step = np.where(fine, new / np.where(fine, curve, 1), 0)
        X[:, on] += step * P
        R = R - step * AP
        gamma = new
        size = np.linalg.norm(R, axis=0)
        LOG.info("step %d: residual %.1e of %.1e allowed", steps, size.max(), tol[on].min())
        left = fine & (size > tol[on])
        if not left.all():
            on, R, P, gamma = on[left], R[:, left], P[:, left], gamma[left]
        if hopeless is not None and len(on) and hopeless(size[left], tol[on]):
            break
    return X, steps


def unit_of(diagonal: Array) -> float:
    """A power of two about its largest entry; 1 where that is near enough to 1.

    >>> unit_of(np.array([3.0, 1000.0])), unit_of(np.array([0.0, 1e30])) == 2.0**99
    (1.0, True)
    """
    exponent = math.frexp(float(np.abs(diagonal).max()))[1] - 1
    return math.ldexp(1.0, exponent) if abs(exponent) > BITS else 1.0


def refined(
    product: Map,
    B: Array,
    solvers: list[Callable[[Array, Array], tuple[Array, int]]],
    tol: float,
    enough: float = 0.0,
) -> Solved:
    """Solve A X = B to |b - A x| <= tol |b| by rounds of X += solve(B - A X), the residual taken by
    `product`. Where a round gains little more, `enough` in place of tol will do.

    solvers: from cheap to exact; `solve(R, goal)` works on A as it sees it until |r| <= goal (q,),
    and the next takes over where one no longer gains, or finds what is no number.
    """
    size = np.linalg.norm(B, axis=0)
    goal = tol * np.where(size > 0, size, 1)
    X, R, norm, steps, which, last = np.zeros_like(B), B, size, 0, 0, 0
    for _ in range(MAX_ROUNDS):
        if (norm <= goal).all() or which == len(solvers):
            break
        last = which
        change, more = solvers[which](R, 0.5 * goal)
        steps += more
        with np.errstate(over="ignore", invalid="ignore"):
            R_new = B - product(X + change)
            norm_new = np.linalg.norm(R_new, axis=0)
        better = norm_new < norm  # which NaN is not
        little = not (norm_new <= np.maximum(MAX_REMAINDER * norm, goal)).all()
        X = np.where(better, X + change, X)
        R, norm = np.where(better, R_new, R), np.where(better, norm_new, norm)
        if little and (norm <= enough * size).all():
            break
        which += little
    residual = float((norm / np.where(size > 0, size, 1)).max(initial=0))
    return Solved(X, R, residual, steps, last=last)


@dataclass(frozen=True, eq=False)
class System:
    """A = K + diag(ridge) as it is: the kernel in float64 at the rows given, whatever a solver does
    inside."""

    op: Operator
    ridge: Array

    def __matmul__(self, V: Array) -> Array:
        return np.asarray(self.exact @ V + self.ridge[:, None] * V)

    @cached_property
    def exact(self) -> Operator:
        return self.op.astype(np.float64)


def gradients_by_column(
    product: Callable[[Array], Array], b: Array, diagonal: Array, tol: float, steps: int
) -> tuple[Array, int]:
    """Conjugate gradients for a matrix of its own for every column of b (D, S), with their
    diagonals as preconditioner."""
    x, r, tiny = np.zeros_like(b), b.copy(), np.finfo(float).tiny
    goal, z, step = tol * np.linalg.norm(b, axis=0), b / diagonal, 0
    p, gamma = z, np.sum(r * z, axis=0)
    while step < steps and (np.linalg.norm(r, axis=0) > goal).any():
        Ap, step = product(p), step + 1
        a = gamma / np.maximum(np.sum(p * Ap, axis=0), tiny)
        x, r = x + a * p, r - a * Ap
        z = r / diagonal
        LOG.info("step %d: residual %.1e", step, np.linalg.norm(r, axis=0).max(initial=0))
        gamma, old = np.sum(r * z, axis=0), gamma
        p = z + gamma / np.maximum(old, tiny) * p
    return x, step
