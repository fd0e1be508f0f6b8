"""Hinge losses over features: the square by Newton's rounds, the hinge by its dual in coordinates,
with a certified gap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer.inputs import Array, Table
from mercer.models.linear import FeatureRows, Problem, feature_rows, unshifted
from mercer.models.maps import FittedMap
from mercer.models.newton import Minimum, minimise, rounds_plan
from mercer.models.svm.machine import FitSummary
from mercer.models.svm.multiclass import HingeSettings
from mercer.ops.smo import sweep
from mercer.plans import Plan

CHECK, PATIENCE = (
    10,
    60,
)  # sweeps between two looks at the duality gap, and before multipliers take over
SLOW = 0.95  # a look that leaves more of the gap than this asks for the other way
STALE = 5  # looks without a better gap after which rounding, not work, is what is left
SHARPEST = {4: 8.0, 8: 64.0}  # by the size of a float: beyond it the rounding of scores shows in a


def fit(
    phi: FittedMap, X: Table, signs: Sequence[Array], c: Array, how: HingeSettings
) -> tuple[Array, Array, FitSummary]:
    """One rule for each vector of signs: coef (k, D), intercept (k,), and how it went."""
    rows = feature_rows(phi, X, intercept=how.bias, limit=how.memory)
    found: Sequence[Minimum]
    if how.loss == "hinge":
        gapped = [HingeDual(rows, y, c, how.bias).solve(how.tol, how.max_iter) for y in signs]
        gap: float | None = max(m.gap for m in gapped)
        found, plan = gapped, _dual_plan(phi, rows, gapped)
    else:
        found = [
            minimise(
                Problem(rows, SquaredHinge(), y[:, None], c, 1.0, how.bias), how.tol, how.max_iter
            )
            for y in signs
        ]
        gap, plan = None, rounds_plan(phi.lift, rows, found)
    _warn_if_open(found, how.max_iter)
    coef, intercept = unshifted(
        rows, np.concatenate([m.theta for m in found], axis=1), intercept=how.bias
    )
    return (
        coef,
        intercept,
        FitSummary(plan, sum(m.value for m in found), max(m.rounds for m in found), gap),
    )


def _warn_if_open(found: Sequence[Minimum], most: int) -> None:
    if not all(m.converged for m in found):
        rounded = "what is left is rounding: give X in float64, raise tol, or lower C"
        remedy = (
            rounded
            if any(isinstance(m, Gapped) and m.stale for m in found)
            else "raise max_iter or tol, or lower C"
        )
        text = f"KernelSVC stopped after {max(m.rounds for m in found)} rounds (max_iter={most}) before tol was reached; {remedy}."
        warnings.warn(text, ConvergenceWarning, stacklevel=6)


def _dual_plan(phi: FittedMap, rows: FeatureRows, found: Sequence[Gapped]) -> Plan:
    gap, passes = max(m.gap for m in found), sum(m.passes for m in found)
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


class SquaredHinge:
    """w max(0, 1 - y f)^2, y in {-1, 1}; rows inside the margin have curvature 2 w."""

    def value(self, f: Array, Y: Array, w: Array) -> float:
        return float(w @ np.square(np.maximum(1 - Y * f, 0))[:, 0])

    def slope(self, f: Array, Y: Array, w: Array) -> Array:
        return -2 * w[:, None] * Y * np.maximum(1 - Y * f, 0)

    def curvature(self, f: Array, Y: Array, w: Array) -> Array:
        return 2 * w * (Y * f < 1)[:, 0]


class Proximal:
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


@dataclass(frozen=True, eq=False)
class Gapped(Minimum):
    """A minimum with its relative duality gap, and whether rounding, not work, is what is left of
    it."""

    gap: float = 0.0
    stale: bool = False


class HingeDual:
    """max_a sum a - |F'(a y)|^2/2, 0 <= a <= c, and sum a y = 0 where there is an intercept: by
    coordinates.

    The intercept b is the multiplier of that sum: coordinates see the augmented term scale (sum a
    y)^2/2, and b moves by scale (sum a y) after every sweep. For the gap, a is first made to meet
    the sum, and b is the best one for F'(a y).
    """

    def __init__(self, rows: FeatureRows, y: Array, c: Array, intercept: bool) -> None:
        self.rows, self.y, self.c, self.intercept = rows, y, c, intercept
        self.square = per_row(rows, lambda F: np.einsum("ij,ij->i", F, F, dtype=np.float64))
        self.scale = float(self.square.mean()) or 1.0
        self.a, self.b, self.sharpness = np.zeros(rows.n), 0.0, 0.25
        self.random = np.random.Generator(np.random.Philox(0))

    def solve(self, tol: float, most: int) -> Gapped:
        """Sweeps while they close the gap, else the method of multipliers (for few rows after 60
        sweeps), until neither helps."""
        few = len(self.rows.sample()) == self.rows.n
        rounds, passes, stale, best, sweeping = 0, 4, 0, self._look(), True
        while best[-1] > tol and rounds < most and stale < STALE:
            a, b = self.a.copy(), self.b
            took = (
                self._sweeps(min(CHECK, most - rounds))
                if sweeping
                else self._multiply(min(tol, 1e-5), most - rounds)
            )
            found, before = self._look(), best[-1]
            rounds, passes, best = (
                rounds + took,
                passes + took + 3,
                min(best, found, key=lambda v: v[-1]),
            )
            if not (few or sweeping or found is best):
                self.a, self.b = a, b  # worse than what the sweeps had
            stale = 0 if found is best or rounds < PATIENCE else stale + 1
            sweeping = rounds < PATIENCE or (not few and (best[-1] < SLOW * before) == sweeping)
        value, theta, f, gap = best
        return Gapped(
            theta,
            f,
            value,
            rounds,
            passes,
            self.rows.n,
            False,
            gap <= tol,
            gap,
            gap > tol and stale >= STALE,
        )

    def _multiply(self, tol: float, most: int) -> int:
        """One smooth problem, exact to the proximal term |a - a_now|^2/(2 s c): few rows lie
        between the bounds of a."""
        s = self.sharpness = min(4 * self.sharpness, SHARPEST[self.rows.dtype.itemsize])
        w = np.stack([s * self.c, self.a / (s * self.c), np.full(self.rows.n, 1 / s)], axis=1)
        start = self._theta(self._back(self.a), self.b)
        m = minimise(
            Problem(self.rows, Proximal(), self.y[:, None], w, 1.0, self.intercept),
            tol,
            most,
            start,
        )
        self.a, self.b = (
            w[:, 0] * np.clip(1 + w[:, 1] - self.y * m.f[:, 0], 0, 1 / s),
            float(m.theta[-1, 0]),
        )
        return m.rounds

    def _theta(self, coef: Array, b: float) -> Array:
        return np.append(coef, b)[:, None] if self.intercept else coef[:, None]

    def _sweeps(self, steps: int) -> int:
        """So many sweeps over rows in an order of their own; rows that stay at a bound are left out
        until the next look."""
        coef = self._back(self.a).astype(self.rows.dtype)
        active, bounds = np.ones(self.rows.n, bool), (np.inf, -np.inf)
        for _ in range(steps):
            total, seen = float(self.a @ self.y), (-np.inf, np.inf)
            for rows, F in self.rows.batches():
                order = self.random.permutation(np.flatnonzero(active[rows]))
                scale = self.scale if self.intercept else 0.0
                total, high, low = sweep(
                    F,
                    self.y[rows],
                    self.a[rows],
                    self.c[rows],
                    self.square[rows],
                    active[rows],
                    order,
                    coef,
                    np.array([self.b, scale, total, *bounds]),
                )
                seen = max(seen[0], high), min(seen[1], low)
            bounds = (seen[0] if seen[0] > 0 else np.inf, seen[1] if seen[1] < 0 else -np.inf)
            self.b += scale * total
        return steps

    def _back(self, a: Array) -> Array:
        """F'(a y) in float64."""
        ay = a * self.y
        return self.rows.fold(
            lambda t, F: (ay[t].astype(F.dtype) @ F).astype(np.float64), np.zeros(self.rows.D)
        )

    def _look(self) -> tuple[float, Array, Array, float]:
        """The objective of the model of a, that model, its scores and its relative gap."""
        a = balanced(self.a, self.y) if self.intercept else self.a
        coef = self._back(a)
        narrow = coef.astype(self.rows.dtype)
        f = per_row(self.rows, lambda F: F @ narrow)
        b = best_intercept(f, self.y, self.c) if self.intercept else 0.0
        half = float(coef @ coef) / 2
        value = half + float(self.c @ np.maximum(1 - self.y * (f + b), 0))
        return value, self._theta(coef, b), f + b, (value - float(a.sum()) + half) / value


def per_row(rows: FeatureRows, of: Callable[[Array], Array]) -> Array:
    """of(F), one number a row, over one pass."""
    out = np.zeros(rows.n)

    def fill(t: slice, F: Array) -> float:
        out[t] = of(F)
        return 0.0

    rows.fold(fill, 0.0)
    return out


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
