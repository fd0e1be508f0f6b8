"""Hinge losses over features, dense or sparse: the square by Newton's rounds, the hinge by its dual
in coordinates, with a certified gap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.models import newton, sparse_newton
from mercer.models.linear import FeatureRows, Loss, OneScore, Problem, feature_rows, unshifted
from mercer.models.maps import FittedMap
from mercer.models.newton import Minimum, rounds_plan
from mercer.models.sparse_newton import SparseProblem, newton_plan, sparse_plan
from mercer.models.sparse_rows import SparseRows
from mercer.models.svm.descent import CoordinateDual, HingeRows, Look, MinimumWithGap
from mercer.models.svm.machine import FeatureMachine, FitSummary
from mercer.models.svm.multiclass import HingeSettings
from mercer.models.svm.problem import DualProblem, DualSolution
from mercer.ops import csr
from mercer.ops.smo import sweep
from mercer.ops.threads import parallel_map
from mercer.plans import Plan


def features_of(phi: FittedMap, X: Table, how: HingeSettings) -> HingeRows:
    """The features of rows, as they are where they are sparse."""
    if (F := phi.sparse_features(X)) is None:
        return feature_rows(phi, X, intercept=how.bias, limit=how.memory)
    rows = SparseRows.of(F, intercept=how.bias)
    if how.loss != "hinge":
        rows.by_column  # noqa: B018 (made once, before the threads that share it)
    return rows


def fit(
    phi: FittedMap, rows: HingeRows, signs: Sequence[Array], c: Array, how: HingeSettings
) -> tuple[Array, Array, FitSummary]:
    """One rule for each vector of signs: coef (k, D), intercept (k,), and how it went."""
    each: Any = parallel_map if isinstance(rows, SparseRows) else map
    found = list(each(lambda y: rule(rows, y, c, how), signs))
    _warn_if_open(found, how.max_iter)
    theta = np.concatenate([m.theta for m in found], axis=1)
    if isinstance(rows, SparseRows):
        intercept = theta[rows.p] if how.bias else np.zeros(len(signs))
        plan = _sweeps_plan(rows, found) if how.loss == "hinge" else newton_plan(rows, found)
        return *rows.unshifted(theta[: rows.p], intercept), _summary(plan, found)
    dual = how.loss == "hinge"
    plan = _dual_plan(phi, rows, found) if dual else rounds_plan(phi.lift, rows, found)
    return *unshifted(rows, theta, intercept=how.bias), _summary(plan, found)


def machine(
    phi: FittedMap,
    coef: Array,
    intercept: Array,
    plan: Plan,
    found: Sequence[MinimumWithGap],
    most: int,
) -> FeatureMachine:
    """Of rules that rounds have found, with a warning where they did not reach their tolerance."""
    _warn_if_open(found, most)
    return FeatureMachine(phi, coef, intercept, _summary(plan, found))


def along(
    rows: HingeRows, signs: Sequence[Array], c: Array, Cs: Array, how: HingeSettings
) -> Iterator[Array]:
    """Scores (n,) or (n, k) of all rows at one C after another, each from where the last ended; rows
    of c = 0 have no part in it."""
    lasts: list[Array | None] = [None] * len(signs)
    before = float(Cs[0])
    for C in Cs.tolist():
        factor = C / before if how.loss == "hinge" else 1.0
        starts = [None if v is None else scaled_duals(v, factor) for v in lasts]
        found = [rule(rows, y, C * c, how, v) for y, v in zip(signs, starts, strict=True)]
        lasts, before = [m.last for m in found], C
        f = np.stack([m.f.reshape(-1) for m in found], axis=1)
        yield f[:, 0] if len(signs) == 1 else f


def scaled_duals(last: Array, factor: float) -> Array:
    """Duals, the intercept last, at bounds that grow by a factor; of 1 a model stays as it is."""
    return last if factor == 1 else np.append(factor * last[:-1], last[-1])


def rule(
    rows: HingeRows, y: Array, c: Array, how: HingeSettings, start: Array | None = None
) -> MinimumWithGap:
    """One rule, which may start from duals (the hinge) or a model (its square) of before."""
    if how.loss == "hinge":
        return HingeDual(rows, y, c, how.bias, start).solve(how.tol, how.max_iter)
    m = smooth(rows, SquaredHinge(), y, c, how, start)
    return MinimumWithGap(**vars(m), last=m.theta)


def smooth(
    rows: HingeRows, loss: Loss, y: Array, w: Array, how: HingeSettings, start: Array | None
) -> Minimum:
    """A smooth loss of one score, by the rounds of its rows."""
    if isinstance(rows, SparseRows):
        p = SparseProblem(rows, loss, y[:, None], w, 1.0, how.bias)
        return sparse_newton.minimise(p, how.tol, how.max_iter, start)
    return newton.minimise(
        Problem(rows, loss, y[:, None], w, 1.0, how.bias), how.tol, how.max_iter, start
    )


def _summary(plan: Plan, found: Sequence[MinimumWithGap]) -> FitSummary:
    gaps = [m.gap for m in found if m.gap is not None]
    return FitSummary(
        plan,
        sum(m.value for m in found),
        max(m.rounds for m in found),
        max(gaps) if gaps else None,
    )


def _warn_if_open(found: Sequence[MinimumWithGap], most: int) -> None:
    if not all(m.converged for m in found):
        rounded = "what is left is rounding: give X in float64, raise tol, or lower C"
        remedy = rounded if any(m.stale for m in found) else "raise max_iter or tol, or lower C"
        text = f"KernelSVC stopped after {max(m.rounds for m in found)} rounds (max_iter={most}) before tol was reached; {remedy}."
        warnings.warn(text, ConvergenceWarning, stacklevel=6)


def _dual_plan(phi: FittedMap, rows: FeatureRows, found: Sequence[MinimumWithGap]) -> Plan:
    gap, passes = _worst(found), sum(m.passes for m in found)
    where = (
        "kept in memory"
        if rows.kept
        else "computed again at every sweep, as they exceed memory_limit"
    )
    why = f"{rows.D:,} features, {where}; the dual of the hinge, until its gap is {gap:.1e}"
    settings = {
        "lift": type(phi.lift).__name__,
        "n_features": rows.D,
        "rows": rows.n,
        "sweeps": sum(m.rounds for m in found),
        "duality_gap": gap,
    }
    held = float(rows.dtype.itemsize) * rows.D * (rows.n if rows.kept else 0)
    return Plan(
        "dual coordinate descent",
        why,
        settings,
        bytes=held,
        flops=4.0 * rows.n * rows.D * passes,
        passes=passes,
    )


def _sweeps_plan(rows: SparseRows, found: Sequence[MinimumWithGap]) -> Plan:
    gap, passes = _worst(found), sum(m.passes for m in found)
    return sparse_plan(
        "sparse dual coordinate descent",
        f"the dual of the hinge, until its gap is {gap:.1e}",
        rows,
        len(found),
        passes,
        sweeps=sum(m.rounds for m in found),
        duality_gap=gap,
    )


def _worst(found: Sequence[MinimumWithGap]) -> float:
    return max(0.0, *(m.gap or 0.0 for m in found))  # below zero by rounding


class SquaredHinge(OneScore):
    """w max(0, 1 - y f)^2, y in {-1, 1}; rows inside the margin have curvature 2 w."""

    def value(self, f: Array, Y: Array, w: Array) -> float:
        return float(w @ np.square(np.maximum(1 - Y * f, 0))[:, 0])

    def slope(self, f: Array, Y: Array, w: Array) -> Array:
        return -2 * w[:, None] * Y * np.maximum(1 - Y * f, 0)

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        return 2 * w * (Y * f < 1)[:, 0]


class Proximal(OneScore):
    """max_a a (1 - y f) - (a - a_now)^2/(2 q), 0 <= a <= c: the hinge smoothed about a_now; w holds
    q, a_now/q and c/q."""

    def _z(self, f: Array, Y: Array, w: Array) -> tuple[Array, Array]:
        free = 1 + w[:, 1] - (Y * f)[:, 0]
        return free, np.clip(free, 0, w[:, 2])

    def value(self, f: Array, Y: Array, w: Array) -> float:
        _, z = self._z(f, Y, w)
        return float(w[:, 0] @ (z * (1 - (Y * f)[:, 0]) - np.square(z - w[:, 1]) / 2))

    def slope(self, f: Array, Y: Array, w: Array) -> Array:
        return -Y * (w[:, 0] * self._z(f, Y, w)[1])[:, None]

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        free, z = self._z(f, Y, w)
        return w[:, 0] * (free == z)


# steps over some rows, of coefficients and [b, scale, sum of a y, above, below]; the sum of a y, and
# the extreme projected gradients
Step = Callable[[Array, Array], tuple[float, float, float]]


class HingeDual(CoordinateDual):
    """max_a sum a - |F'(a y)|^2/2, 0 <= a <= c, and sum a y = 0 where there is an intercept: by
    coordinates.

    The intercept b is the multiplier of that sum: coordinates see the augmented term scale (sum a
    y)^2/2, and b moves by scale (sum a y) after every sweep. For the gap, a is first made to meet
    the sum, and b is the best one for F'(a y). Rows of c = 0 are as absent. `start` holds a of
    before, and b last.
    """

    def __init__(
        self, rows: HingeRows, y: Array, c: Array, intercept: bool, start: Array | None = None
    ) -> None:
        super().__init__(rows, c, intercept)
        self.y = y
        self.a = np.zeros(rows.n) if start is None else np.clip(start[:-1], 0, c)
        self.b = 0.0 if start is None else float(start[-1])

    def _problem(self, on: Array) -> DualProblem:
        return HingeSettings(bias=self.intercept).problem(self.y[on], self.c[on])

    def _take(self, on: Array, found: DualSolution) -> None:
        self.a[on] = np.clip(self.y[on] * found.b, 0, self.c[on])
        self.b = float(found.intercept)

    def _multiply(self, tol: float, most: int) -> int:
        """One smooth problem, exact to the proximal term |a - a_now|^2/(2 s c): few rows lie
        between the bounds of a."""
        s = self.sharpness
        q = s * self.c
        now = np.divide(self.a, q, out=np.zeros_like(q), where=self.on)
        w = np.stack([q, now, np.full(self.rows.n, 1 / s)], axis=1)
        how = HingeSettings(bias=self.intercept, tol=tol, max_iter=most)
        start = self._theta(self.rows.summed(self.a * self.y), self.b)
        m = smooth(self.rows, Proximal(), self.y, w, how, start)
        self.a = q * np.clip(1 + now - self.y * m.f[:, 0], 0, 1 / s)
        self.b = float(m.theta[-1, 0]) if self.intercept else 0.0
        return m.rounds

    def _sweeps(self, steps: int) -> int:
        """So many sweeps over rows in an order of their own; rows that stay at a bound are left out
        until the next look."""
        coef = self.rows.summed(self.a * self.y)
        coef = coef if self.sparse else coef.astype(self.rows.dtype)
        active, bounds = self.on.copy(), (np.inf, -np.inf)
        scale = self.scale if self.intercept else 0.0
        for _ in range(steps):
            total, seen = float(self.a @ self.y), (-np.inf, np.inf)
            for step in self._steps(active):
                total, high, low = step(coef, np.array([self.b, scale, total, *bounds]))
                seen = max(seen[0], high), min(seen[1], low)
            bounds = (seen[0] if seen[0] > 0 else np.inf, seen[1] if seen[1] < 0 else -np.inf)
            self.b += scale * total
        return steps

    def _steps(self, active: Array) -> Iterator[Step]:
        """The parts of one sweep: all sparse rows, or a batch of dense features."""
        y, a, c, square = self.y, self.a, self.c, self.square
        if isinstance(self.rows, SparseRows):
            order = self.random.permutation(np.flatnonzero(active))
            pointers, places, x = self.rows.by_row.arrays
            yield partial(csr.sweep, pointers, places, x, y, a, c, square, active, order)
            return
        for t, F in self.rows.batches():
            order = self.random.permutation(np.flatnonzero(active[t]))
            yield partial(sweep, F, y[t], a[t], c[t], square[t], active[t], order)

    def _look(self) -> Look:
        a = balanced(self.a, self.y) if self.intercept else self.a
        coef, on = self.rows.summed(a * self.y), self.on
        f = self.rows.scores(coef) if coef.any() else np.zeros(self.rows.n)
        b = best_intercept(f[on], self.y[on], self.c[on]) if self.intercept else 0.0
        half = float(coef @ coef) / 2
        value = half + float(self.c @ np.maximum(1 - self.y * (f + b), 0))
        return value, self._theta(coef, b), f + b, (value - float(a.sum()) + half) / value


def balanced(a: Array, y: Array) -> Array:
    """The same a, less on the heavier side, so that sum a y = 0."""
    up, down = float(a[y > 0].sum()), float(a[y < 0].sum())
    if up == down:
        return a
    least = min(up, down)
    return a * np.where(y > 0, least / up if up else 0.0, least / down if down else 0.0)


def best_intercept(f: Array, y: Array, c: Array) -> float:
    """argmin_b sum c max(0, 1 - y (f + b)): its slope rises by c at every y - f, from -sum of the c
    of y = 1.

    >>> best_intercept(np.array([2.0, 0.0]), np.array([1.0, -1.0]), np.ones(2))
    -1.0
    """
    turns = y - f
    order = np.argsort(turns, kind="stable")
    slope = np.cumsum(c[order]) - c[y > 0].sum()
    i = int(np.argmax(slope >= -1e-12 * c.sum()))
    flat = i + 1 < len(order) and abs(slope[i]) <= 1e-12 * c.sum()
    return float(turns[order[i : i + 1 + flat]].mean())
