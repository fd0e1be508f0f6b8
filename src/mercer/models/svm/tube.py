"""The epsilon-insensitive loss over sparse rows as they are: its dual in coordinates, with a
certified gap."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.models import sparse_newton
from mercer.models.linear import OneScore
from mercer.models.maps import FittedMap
from mercer.models.sparse_newton import SparseProblem, sparse_plan
from mercer.models.sparse_rows import SparseRows
from mercer.models.svm.descent import CoordinateDual, Look, MinimumWithGap
from mercer.models.svm.machine import FeatureMachine, FitSummary
from mercer.models.svm.problem import DualProblem, DualSolution, balance, relative
from mercer.ops import csr


@dataclass(frozen=True)
class TubeSettings:
    """What a problem of a tube is asked for; `tol` is of its relative gap."""

    epsilon: float = 0.1
    bias: bool = True
    tol: float = 1e-4
    max_iter: int = 1000


def over_sparse_rows(
    phi: FittedMap, X: Table, t: Array, c: Array, how: TubeSettings
) -> FeatureMachine:
    """The model of rows that are their own features, of targets t and weights c."""
    rows = SparseRows.of(phi.transform(X), intercept=how.bias)
    found = TubeDual(rows, t, c, how.epsilon, how.bias).solve(how.tol, how.max_iter)
    _warn_if_open(found, how.max_iter)
    gap = max(found.gap or 0.0, 0.0)
    plan = sparse_plan(
        "sparse dual coordinate descent",
        f"the dual of the tube, until its gap is {gap:.1e}",
        rows,
        1,
        found.passes,
        sweeps=found.rounds,
        duality_gap=gap,
    )
    b = found.theta[rows.p] if how.bias else np.zeros(1)
    coef, intercept = rows.unshifted(found.theta[: rows.p], b)
    return FeatureMachine(phi, coef, intercept, FitSummary(plan, found.value, found.rounds, gap))


def _warn_if_open(found: MinimumWithGap, most: int) -> None:
    if not found.converged:
        left = "what is left is rounding: centre and scale the columns of X, raise tol"
        remedy = left if found.stale else "raise max_iter or tol"
        text = f"KernelSVR stopped after {found.rounds} rounds (max_iter={most}) at a relative gap of {found.gap:.1e}"
        warnings.warn(f"{text}; {remedy}, or lower C.", ConvergenceWarning, stacklevel=5)


@dataclass(frozen=True)
class TubeAbout(OneScore):
    """max_a a (t - f) - e |a| - (a - a_now)^2/(2 q), |a| <= c: the tube smoothed about a_now; w holds
    q, a_now/q and c/q."""

    epsilon: float

    def duals(self, f: Array, t: Array, w: Array) -> tuple[Array, Array]:
        """a/q before and after its bounds."""
        free = soft(w[:, 1] + (t - f)[:, 0], self.epsilon)
        return free, np.clip(free, -w[:, 2], w[:, 2])

    def value(self, f: Array, Y: Array, w: Array) -> float:
        _, z = self.duals(f, Y, w)
        gain = z * (Y - f)[:, 0] - self.epsilon * np.abs(z)
        return float(w[:, 0] @ (gain - np.square(z - w[:, 1]) / 2))

    def slope(self, f: Array, Y: Array, w: Array) -> Array:
        return -(w[:, 0] * self.duals(f, Y, w)[1])[:, None]

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        free, z = self.duals(f, Y, w)
        return w[:, 0] * ((free == z) & (free != 0))


class TubeDual(CoordinateDual):
    """max_a t'a - e |a|_1 - |X'a|^2/2, -c <= a <= c, and sum a = 0 where there is an intercept.

    As `HingeDual`: the intercept is the multiplier of that sum. Targets are taken from their
    weighted median, so that offsets cost no digits.
    """

    rows: SparseRows

    def __init__(
        self, rows: SparseRows, t: Array, c: Array, epsilon: float, intercept: bool
    ) -> None:
        super().__init__(rows, c, intercept)
        self.e, self.a, self.b = epsilon, np.zeros(rows.n), 0.0
        self.centre = self._intercept(-t, 0.0) if intercept else 0.0
        self.t = t - self.centre
        self.unit = float(np.abs(self.t[self.on]).mean()) or 1.0

    def _intercept(self, G: Array, e: float) -> float:
        """argmin_b sum c max(0, |G + b| - e)"""
        on = self.on
        problem = DualProblem(np.zeros(int(on.sum())), -self.c[on], self.c[on], e)
        return -balance(G[on], problem, 0.0)

    def _problem(self, on: Array) -> DualProblem:
        c = self.c[on]
        unit = min(1.0, self.unit)
        return DualProblem(self.t[on], -c, c, self.e, bias=self.intercept, unit=unit)

    def _take(self, on: Array, found: DualSolution) -> None:
        self.a[on] = np.clip(found.b, -self.c[on], self.c[on])
        self.b = float(found.intercept)

    def _sweeps(self, steps: int) -> int:
        coef, active, slack = self.rows.summed(self.a), self.on.copy(), np.inf
        scale = self.scale if self.intercept else 0.0
        entries, sizes = self.rows.by_row.arrays, (self.t, self.a, self.c, self.square)
        for _ in range(steps):
            order = self.random.permutation(np.flatnonzero(active))
            state = np.array([self.b, scale, float(self.a.sum()), self.e, slack])
            total, worst = csr.tube_sweep(*entries, *sizes, active, order, coef, state)
            slack = worst if worst > 0 else np.inf
            self.b += scale * total
        return steps

    def _multiply(self, tol: float, most: int) -> int:
        """One smooth problem, exact to the proximal term (a - a_now)^2 unit/(2 s c)."""
        s = self.sharpness / self.unit
        q = s * self.c
        now = np.divide(self.a, q, out=np.zeros_like(q), where=self.on)
        w, loss = np.stack([q, now, np.full(self.rows.n, 1 / s)], axis=1), TubeAbout(self.e)
        p = SparseProblem(self.rows, loss, self.t[:, None], w, 1.0, self.intercept)
        start = self._theta(self.rows.summed(self.a), self.b)
        m = sparse_newton.minimise(p, tol, most, start)
        self.a = q * loss.duals(m.f, p.Y, w)[1]
        self.b = float(m.theta[-1, 0]) if self.intercept else 0.0
        return m.rounds

    def _look(self) -> Look:
        a = balanced(self.a) if self.intercept else self.a
        coef = self.rows.summed(a)
        f = self.rows.scores(coef) if coef.any() else np.zeros(self.rows.n)
        b = self._intercept(f - self.t, self.e) if self.intercept else 0.0
        half = float(coef @ coef) / 2
        loss = np.maximum(np.abs(self.t - f - b) - self.e, 0)
        value = half + float(self.c @ loss)
        gap = value + half - float(self.t @ a) + self.e * float(np.abs(a).sum())
        b += self.centre
        return value, self._theta(coef, b), f + b, relative(gap, value)


def soft(v: Array, e: float) -> Array:
    """v, nearer to zero by e.

    >>> soft(np.array([-3.0, 0.5, 2.0]), 1.0)
    array([-2.,  0.,  1.])
    """
    return np.maximum(v - e, 0) + np.minimum(v + e, 0)


def balanced(a: Array) -> Array:
    """The same a, less on the heavier side, so that it sums to zero.

    >>> balanced(np.array([1.0, 3.0, -2.0]))
    array([ 0.5,  1.5, -2. ])
    """
    up, down = float(a[a > 0].sum()), -float(a[a < 0].sum())
    if up == down:
        return a
    least = min(up, down)
    return a * np.where(a > 0, least / up if up else 0.0, least / down if down else 0.0)
