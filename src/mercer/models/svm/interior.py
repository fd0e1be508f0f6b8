"""An interior-point method for dual problems where steps of two duals stall: kernels of low rank,
or far from scaled, at a large C.

Fine and Scheinberg, Efficient SVM training using low-rank kernel representations (2001), with the
steps of Mehrotra (1992).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from mercer.inputs import Array
from mercer.models.svm.problem import EPS, DualProblem
from mercer.ops import smo

RANK, CUT = (
    512,
    4.0,
    # columns of a factor at most, and the residual, in roundings of the largest diagonal entry, that
    # ends it
)
DONE, STALE = (
    1e-8,
    12,
)  # the gap, relative to the objective, and the steps without a better one that end it
HOPELESS, CLOSE = (
    0.1,
    1e-6,
)  # of the trace after 64 columns, and of the diagonal at the end: a rank that is too high
BEYOND = 1e16  # times the dual of a row that is alone: as good as no bound
TINY = 1e-20  # of a bound: the least room beside it, where rounding would leave none
INSIDE = 0.995  # of the way to the nearest bound

State = tuple[
    Array, Array, Array, float
]  # v, the slopes of its two bounds, and the multiplier of its sum


def factor(
    column: Callable[[int], Array], diagonal: Array, most: int = RANK, eps: float = EPS
) -> tuple[Array, Array]:
    """F (n, r) and d (n,): K = FF' + diag(d) up to what the last pivots left off the diagonal.

    >>> K = np.array([[4.0, 2.0], [2.0, 1.0]])
    >>> F, d = factor(lambda j: K[:, j], K.diagonal())
    >>> F.ravel().tolist(), d.tolist()
    ([2.0, 1.0], [0.0, 0.0])
    """
    left, n = np.maximum(diagonal, 0.0), len(diagonal)
    F, cut = np.zeros((n, min(most, n)), order="F"), CUT * eps * float(left.max(initial=0))
    for k in range(F.shape[1]):
        j = int(left.argmax())
        if k == 64 and left.sum() > HOPELESS * float(diagonal.sum()):
            return F[:, :k], left
        if not left[j] > cut:
            return F[:, :k], left
        F[:, k] = (column(j) - F[:, :k] @ F[j, :k]) / np.sqrt(left[j])
        left = np.maximum(left - np.square(F[:, k]), 0.0)
        left[j] = 0.0
    return F, left


def interior_start(
    column: Callable[[int], Array],
    diagonal: Array,
    problem: DualProblem,
    most: int = RANK,
    eps: float = EPS,
) -> tuple[Array, bool] | None:
    """Duals within their bounds and of the sum asked for, and whether the kernel is known to
    rounding; None where its rank is high."""
    F, left = factor(column, diagonal, most, eps)
    if left.max(initial=0) > CLOSE * float(diagonal.max(initial=0)):
        return None
    b = np.clip(Interior(F, left, problem).solve(), problem.lo, problem.hi)
    if problem.bias:
        b = shifted(b, problem.lo, problem.hi, problem.total)
    return b, F.shape[1] < min(most, len(diagonal)) or len(diagonal) <= most


def shifted(b: Array, lo: Array, hi: Array, total: float) -> Array:
    """The same duals with this sum: what rounding left goes to those that have the most room for
    it.

    >>> shifted(np.array([0.25, -0.5]), np.array([0.0, -1.0]), np.array([1.0, 0.0]), 0.0)
    array([ 0.25, -0.25])
    """
    for _ in range(3):
        miss = total - float(b.sum())
        room = np.where(b != 0, np.minimum(np.minimum(hi - b, b - lo), np.abs(b)), 0.0)
        k = int(room.argmax())
        b = b.copy()
        b[k] = min(max(b[k] + miss, lo[k]), hi[k])
    return b


class Interior:
    """min_v |G'v|^2/2 + d v^2/2 + g'v, 0 <= v <= u, s'v = total: one v for every side of a dual
    that may leave zero."""

    def __init__(self, F: Array, d: Array, problem: DualProblem) -> None:
        self.problem = problem
        up, down = np.flatnonzero(problem.hi > 0), np.flatnonzero(problem.lo < 0)
        self.row, self.sign = (
            np.concatenate([up, down]),
            np.repeat([1.0, -1.0], [len(up), len(down)]),
        )
        u = np.concatenate([problem.hi[up], -problem.lo[down]])
        ridge = d if problem.ridge is None else d + problem.ridge
        alone = (
            float(
                (np.abs(problem.t) + problem.e).max()
                / max(float((np.square(F).sum(1) + ridge).mean()), 1e-300)
            )
            or 1.0
        )
        u = np.where(u > BEYOND * alone, np.inf, u)  # no dual goes there
        finite = u[np.isfinite(u)]
        self.unit = float(finite.max()) if len(finite) else alone
        self.u, self.total, self.bias, self.n = (
            u / self.unit,
            problem.total / self.unit,
            problem.bias,
            len(problem.t),
        )
        self.G, self.d = (
            (F[self.row] * self.sign[:, None]) * np.sqrt(self.unit),
            ridge[self.row] * self.unit,
        )
        self.g = problem.e - self.sign * problem.t[self.row]

    def duals(self, v: Array) -> Array:
        b = np.zeros(self.n)
        np.add.at(b, self.row, self.sign * v * self.unit)
        return b

    def slope(self, v: Array) -> Array:
        return self.G @ (self.G.T @ v) + self.d * v + self.g

    def _gap(self, v: Array, nu: float) -> tuple[float, float]:
        """The duality gap of these duals, and the size of their objective; bounds far beyond them
        would only magnify rounding."""
        problem, b = self.problem, self.duals(v)
        far = 10 * self.unit * float(v.max(initial=0))
        G = np.zeros(self.n)
        G[self.row] = self.sign * (self.slope(v) - problem.e)
        ridge = np.zeros(self.n) if problem.ridge is None else problem.ridge
        gap = float(
            smo.gap(
                G,
                b,
                np.maximum(problem.lo, -far),
                np.minimum(problem.hi, far),
                problem.e,
                ridge,
                -nu,
            )
        )
        return gap, abs(0.5 * float(b @ (G - problem.t)) + problem.e * float(np.abs(b).sum()))

    @np.errstate(all="ignore")  # numbers that are not finite end it
    def solve(self) -> Array:
        """The duals of the best step: rounding ends what is gained, and may undo it, where bounds
        are met too closely."""
        bounded = np.isfinite(self.u)
        v = np.where(bounded, 0.5 * self.u, 0.5)
        size = max(1.0, float(np.abs(self.slope(v)).max()))
        z, w, nu = np.full(len(v), size), np.where(bounded, size, 0.0), 0.0
        best, least, since = v, np.inf, 0
        while since < STALE:
            gap, value = self._gap(v, nu)
            best, least, since = (v, gap, 0) if gap < least else (best, least, since + 1)
            room = np.where(bounded, np.maximum(self.u - v, TINY * self.u), 1.0)
            step = (
                None
                if gap <= DONE * value
                else self._step(v, z, w, nu, room, bounded, float(z @ v + w @ room))
            )
            if step is None:
                break
            v, z, w, nu = step
        return self.duals(best)

    def _step(
        self, v: Array, z: Array, w: Array, nu: float, room: Array, bounded: Array, apart: float
    ) -> State | None:
        count = len(v) + int(bounded.sum())
        try:
            solve = self._solver(z / v + np.where(bounded, w / room, 0.0))
        except (np.linalg.LinAlgError, ValueError):
            return None
        base = -(self.slope(v) + nu * self.sign)

        def direction(low: Array, high: Array) -> tuple[Array, Array, Array, float]:
            dv, dnu = solve(base + low / v - high / room), 0.0
            if self.bias:
                across = solve(self.sign)
                dnu = float((self.sign @ (v + dv) - self.total) / (self.sign @ across))
                dv = dv - dnu * across
            dz = (low - z * dv) / v - z
            return dv, dz, np.where(bounded, (high + w * dv) / room - w, 0.0), dnu

        dv, dz, dw, _ = direction(np.zeros(len(v)), np.zeros(len(v)))
        long = (
            min(_longest(v, dv), _longest(room, -dv, bounded)),
            min(_longest(z, dz), _longest(w, dw, bounded)),
        )
        after = float(
            (z + long[1] * dz) @ (v + long[0] * dv)
            + np.where(bounded, (w + long[1] * dw) * (room - long[0] * dv), 0).sum()
        )
        mu = (apart / count) * max(after / apart, 1e-6) ** 3
        dv, dz, dw, dnu = direction(mu - dv * dz, np.where(bounded, mu + dv * dw, 0.0))
        a = min(INSIDE * min(_longest(v, dv), _longest(room, -dv, bounded)), 1.0)
        c = min(INSIDE * min(_longest(z, dz), _longest(w, dw, bounded)), 1.0)
        out = v + a * dv, z + c * dz, w + c * dw, nu + c * dnu
        return out if all(np.isfinite(x).all() for x in out) and max(a, c) > 1e-10 else None

    def _solver(self, theta: Array) -> Callable[[Array], Array]:
        """(GG' + diag(H))^-1, by the r x r matrix I + G'H^-1 G, with one refinement."""
        H = theta + self.d
        scaled = self.G / H[:, None]
        inner = scipy.linalg.cho_factor(
            np.eye(self.G.shape[1]) + self.G.T @ scaled, check_finite=True
        )

        def once(r: Array) -> Array:
            return np.asarray(
                r / H - scaled @ scipy.linalg.cho_solve(inner, scaled.T @ r, check_finite=False)
            )

        def refined(r: Array) -> Array:
            x = once(r)
            return x + once(r - (self.G @ (self.G.T @ x) + H * x))

        return refined


def _longest(v: Array, step: Array, among: Array | None = None) -> float:
    """How far a step may go until some v is zero."""
    falls = step < 0 if among is None else (step < 0) & among
    return float(np.min(-v[falls] / step[falls], initial=1.0 / INSIDE))
