"""Minimising a smooth loss over sparse rows: Newton's rounds, each solved by conjugate gradients
that pass over the entries; no array is larger than they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.models.linear import Loss, Point, searched
from mercer.models.maps import TOO_LARGE
from mercer.models.newton import Minimum
from mercer.models.sparse_rows import SparseRows
from mercer.plans import Plan

LOG = logger("newton")

FORCING = 0.25  # of the gradient that the conjugate gradients of a round may leave at most
PRODUCTS = 500  # of conjugate gradients, in one round
FLAT = 1e-30  # of the curvature that was expected: with less there is none, and a line is searched
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class SparseProblem:
    """loss(X coef + intercept) + alpha/2 |coef|^2 over the occupied columns, the intercept being the
    last row of theta; all in float64, whatever the rows are in."""

    rows: SparseRows
    loss: Loss
    Y: Array
    w: Array
    alpha: float
    intercept: bool

    @property
    def zero(self) -> Array:
        return np.zeros((self.rows.p + self.intercept, self.Y.shape[1]))

    def at(self, theta: Array) -> Point:
        """Scores, value and gradient."""
        f = self.times(theta)
        value = self.loss.value(f, self.Y, self.w) + self.penalty(theta)
        return Point(theta, f, value, self._back(self.loss.slope(f, self.Y, self.w), theta))

    def penalty(self, theta: Array) -> float:
        """alpha/2 |coef|^2"""
        coef = theta[: self.rows.p]
        return self.alpha / 2 * float(np.vdot(coef, coef))

    def times(self, theta: Array) -> Array:
        """[X, 1] theta"""
        p = self.rows.p
        f = self.rows.times(theta[:p])
        return f + theta[p] if self.intercept else f

    def _back(self, r: Array, theta: Array) -> Array:
        """[X, 1]'r + alpha theta, the intercept without penalty."""
        out, p = self.alpha * theta, self.rows.p
        out[:p] += self.rows.back(r)
        out[p:] = r.sum(0)
        return out

    def curvature(self, x: Point) -> Callable[[Array], Array]:
        """The product with the second derivative at x."""
        return lambda V: self._back(self.loss.bend(x.f, self.Y, self.w, self.times(V)), V)

    def inverse(self, x: Point) -> Callable[[Array], Array]:
        """About the inverse of the same: exact for the intercept, and for the columns' squares
        about their means."""
        q, p = self.loss.curvature(x.f, self.Y, self.w), self.rows.p
        square, total = self.rows.by_column.times_squares(q)[:, None], float(q.sum())
        if not self.intercept or total <= 0:
            diagonal = square + self.alpha
            return lambda r: np.concatenate([r[:p] / diagonal, r[p:]])
        h = self.rows.back(q)[:, None] / total
        diagonal = np.maximum(square - total * h**2, EPS * square) + self.alpha

        def solve(r: Array) -> Array:
            z = (r[:p] - h * r[p:]) / diagonal
            return np.concatenate([z, r[p:] / total - (h * z).sum(0, keepdims=True)])

        return solve


def minimise(p: SparseProblem, tol: float, max_iter: int, start: Array | None = None) -> Minimum:
    """Rounds until the next one promises to lower the objective by less than tol^2 of it.

    Of Lin, Weng and Keerthi, Trust region Newton method for large-scale logistic regression
    (2008), with a search along the line instead of the region.
    """
    x, done, k, products = p.at(p.zero if start is None else start), False, 0, 1
    if not (np.isfinite(x.value) and np.isfinite(x.gradient).all()):
        raise ValueError(TOO_LARGE)
    first, least = None, max(tol**2, EPS)
    while not done and k < max_iter:
        k, M = k + 1, p.inverse(x)
        z = M(x.gradient)
        size = float(np.vdot(x.gradient, z)) ** 0.5
        first = first or size
        d, took = directions(p.curvature(x), x.gradient, M, _forced(size, first))
        slope = float(np.vdot(x.gradient, d))
        done = -slope / 2 <= least * abs(x.value)
        new = searched(p, x, d, slope, EPS) if slope < 0 else x
        products += took + 2
        LOG.info("round %d: objective %.8g", k, new.value)
        if new is x:
            break
        x = new
    return Minimum(x.theta, x.f, x.value, k, products, p.rows.n, False, done)


def _forced(size: float, first: float) -> float:
    """How much of the gradient a round may leave: less as it falls, so that rounds converge faster
    than by a factor."""
    return min(FORCING, (size / first) ** 0.5) if first > 0 else FORCING


def directions(
    product: Callable[[Array], Array], g: Array, M: Callable[[Array], Array], part: float
) -> tuple[Array, int]:
    """d with product(d) = -g up to this part of g, by conjugate gradients; and their products.

    They end where there is no curvature, as of an intercept while no row is inside its margin; the
    first of them is then as long as M makes it.
    """
    d, r = np.zeros_like(g), -g
    z = M(r)
    v, gamma = z, float(np.vdot(r, z))
    goal = part**2 * gamma
    for k in range(PRODUCTS):
        if not gamma > max(goal, 1e-300):
            return d, k
        Hv = product(v)
        curve = float(np.vdot(v, Hv))
        if not curve > FLAT * gamma:
            return d if k else v, k + 1
        a = gamma / curve
        d += a * v
        r -= a * Hv
        z = M(r)
        gamma, old = float(np.vdot(r, z)), gamma
        v = z + gamma / old * v
    return d, PRODUCTS


def sparse_plan(
    way: str, how: str, rows: SparseRows, outputs: int, passes: int, **settings: object
) -> Plan:
    """That of a model over sparse rows as they are."""
    held = float(rows.by_row.places.nbytes) + 8.0 * outputs * (rows.D + 8 * rows.p)
    held += rows.by_column.nbytes if "by_column" in vars(rows) else 0
    shape = {"n_features": rows.D, "rows": rows.n, "nonzeros": rows.nonzeros}
    return Plan(
        way,
        f"sparse rows as they are, {rows.nonzeros:,} nonzeros in {rows.p:,} of {rows.D:,} columns; {how}",
        {**shape, **settings},
        bytes=held,
        flops=4.0 * rows.nonzeros * outputs * passes,
        passes=passes,
    )


def newton_plan(rows: SparseRows, found: Sequence[Minimum]) -> Plan:
    """How the rounds of `minimise` went."""
    passes = sum(m.passes for m in found)
    how = "Newton's rounds by conjugate gradients, no D x D array"
    return sparse_plan(
        "sparse newton",
        how,
        rows,
        found[0].theta.shape[1],
        passes,
        rounds=sum(m.rounds for m in found),
    )
