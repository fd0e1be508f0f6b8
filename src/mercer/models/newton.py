"""Minimising a smooth loss over passes: Newton's rounds, or L-BFGS that begins from the curvature
of a sample of rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.inputs import Array
from mercer.linalg.least_squares import penalised
from mercer.logs import logger
from mercer.models.linear import Loss, Point
from mercer.models.settings import FittedLift
from mercer.ops.threads import single_blas
from mercer.ops.tiles import cuts
from mercer.plans import Plan
from mercer.stats.sample import mix

LOG = logger("newton")

REFRESH = {
    1,
    4,
    9,
    20,
    40,
    80,
}  # the rounds at which the curvature of the sampled rows is taken again
MEMORY = 20  # rounds that a quasi-Newton step remembers
PIECE = 8 << 20  # bytes of scaled features that are multiplied at a time


class Curvature:
    """The inverse of F'diag(q)F + alpha I, bordered by the intercept, of all rows or of a sample of
    them.

    With fewer rows than features it is (I - A'(A A' + mu I)^-1 A)/mu, A = sqrt(q) F. Directions
    that a sample misses get mu, the harmonic mean of the eigenvalues that it has, instead of alpha.
    Of Frangella, Tropp and Udell, Randomized Nystrom preconditioning (2023), with rows for the
    sketch.
    """

    def __init__(self, F: Array, q: Array, alpha: float, *, every: bool, intercept: bool) -> None:
        root, kind = np.sqrt(q), np.dtype(np.float64) if every else F.dtype
        self.tall = F.shape[1] <= F.shape[0]
        # products of A alone are needed: some rows at a time, and no second array of all features
        if self.tall:
            G, h = _products(F, root, kind)
        else:
            self.A = F.astype(kind)
            self.A *= root.astype(F.dtype)[:, None]
            G, h = (
                (self.A @ self.A.T).astype(np.float64),
                (root.astype(kind) @ self.A).astype(np.float64),
            )
        self.mu = alpha if every or self.tall else harmonic(G, alpha)
        self.solve, self.border = penalised(G, self.mu), None
        if intercept:
            h = h[:, None]
            u = self._inner(h)
            self.border = (u, max(q.sum() - float(np.vdot(h, u)), 1e-12 * q.sum()) or 1.0)

    def _inner(self, r: Array) -> Array:
        if self.tall:
            return self.solve(r)
        back = self.solve((self.A @ r.astype(self.A.dtype)).astype(np.float64))
        return (r - (back.T.astype(self.A.dtype) @ self.A).T) / self.mu

    def __call__(self, r: Array) -> Array:
        if self.border is None:
            return self._inner(r)
        u, schur = self.border
        b = (r[-1:] - u.T @ r[:-1]) / schur
        return np.concatenate([self._inner(r[:-1]) - u * b, b])


def _products(F: Array, root: Array, kind: np.dtype[Any]) -> tuple[Array, Array]:
    """A'A and A'root of A = root F."""
    D = F.shape[1]
    G, h = np.zeros((D, D)), np.zeros(D)
    for rows in cuts(len(F), max(1024, PIECE // (kind.itemsize * D))):
        A = F[rows].astype(kind)
        A *= root[rows].astype(F.dtype)[:, None]
        G += A.T @ A
        h += root[rows].astype(kind) @ A
    return G, h


def harmonic(G: Array, alpha: float) -> float:
    """About m / trace (G + alpha I)^-1, by eight vectors of signs."""
    m = len(G)
    signs = np.where(mix(np.arange(8 * m, dtype=np.uint64)) & np.uint64(1), 1.0, -1.0).reshape(m, 8)
    return max(
        alpha,
        8 * m / float(np.vdot(signs, penalised(G, alpha)(signs))),
        1e-6 * float(np.diag(G).max()),
    )


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where `minimise` arrived, and how."""

    theta: Array
    f: Array
    value: float
    rounds: int
    passes: int
    rows: int
    exact: bool
    converged: bool


class RoundRows(Protocol):
    """What rounds ask of rows of features, of which there are n."""

    @property
    def n(self) -> int: ...
    @property
    def D(self) -> int: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def kept(self) -> bool: ...
    def sample(self) -> Array: ...
    @property
    def pick(self) -> Callable[[Array], Array]: ...


class Objective(Protocol):
    """loss(F coef + intercept) + alpha/2 |coef|^2; Y, w and the scores of points are those of rows
    that `rows.sample` may name."""

    @property
    def rows(self) -> RoundRows: ...
    @property
    def loss(self) -> Loss: ...
    @property
    def Y(self) -> Array: ...
    @property
    def w(self) -> Array: ...
    @property
    def alpha(self) -> float: ...
    @property
    def intercept(self) -> bool: ...
    @property
    def zero(self) -> Array: ...
    def at(self, theta: Array) -> Point: ...
    def step(self, x: Point, d: Array, slope: float) -> Point: ...


# the tiles keep all cores busy; threads of BLAS for the small solves between them would only wait
# for each other
@single_blas()
def minimise(p: Objective, tol: float, max_iter: int, start: Array | None = None) -> Minimum:
    """Newton's rounds where the curvature is that of all rows and of one score, else L-BFGS that
    begins from a sample's."""
    picked, passes = p.rows.sample(), 1
    F, Y, w = p.rows.pick(picked), p.Y[picked], p.w[picked]
    every = len(picked) == p.rows.n
    exact, scale = every and p.Y.shape[1] == 1, p.rows.n / len(picked)
    x, pairs, done, k = (
        p.at(p.zero if start is None else start),
        deque[tuple[Array, Array]](maxlen=MEMORY),
        False,
        0,
    )
    if not (
        np.isfinite(x.value)
        and np.isfinite(x.gradient).all()
        and np.isfinite(np.square(F, dtype=np.float64).sum())
    ):
        raise ValueError(
            "the features of X are too large for sums of floating-point numbers; scale the columns first."
        )
    least = max(tol**2, float(np.finfo(p.rows.dtype).eps))
    while not done and k < max_iter:
        k += 1
        if exact or k in REFRESH:
            H = Curvature(
                F,
                scale * p.loss.curvature(x.f[picked], Y, w),
                p.alpha,
                every=every,
                intercept=p.intercept,
            )
        d = -two_loops(x.gradient, pairs, H)
        slope = float(np.vdot(x.gradient, d))
        done = -slope / 2 <= least * abs(x.value)
        new = p.step(x, d, slope) if slope < 0 else x
        if not exact and new is not x:
            pairs.append((new.theta - x.theta, new.gradient - x.gradient))
        stuck = new is x
        passes, x = passes + 1, new
        LOG.info("round %d: objective %.8g", k, x.value)
        if stuck:
            break
    return Minimum(x.theta, x.f, x.value, k, passes, len(picked), exact, done)


def rounds_plan(lift: FittedLift, rows: RoundRows, found: Sequence[Minimum]) -> Plan:
    """How the rounds of `minimise` went, over the features of this lift."""
    passes, r = sum(m.passes for m in found), found[0].rows
    way = "newton" if found[0].exact else "preconditioned quasi-newton"
    curvature = (
        "all rows at every round"
        if found[0].exact
        else f"{r:,} sampled rows, preconditioning L-BFGS; no D x D array"
    )
    where = (
        "kept in memory"
        if rows.kept
        else "computed again at every pass, as they exceed memory_limit"
    )
    settings = {
        "lift": type(lift).__name__,
        "n_features": rows.D,
        "rows": rows.n,
        "rounds": sum(m.rounds for m in found),
    }
    held = float(rows.dtype.itemsize) * rows.D * (r + (rows.n if rows.kept else 0))
    work = 4.0 * rows.n * rows.D * found[0].theta.shape[1] * passes
    return Plan(
        way,
        f"{rows.D:,} features, {where}; curvature of {curvature}",
        settings,
        bytes=held,
        flops=work,
        passes=passes,
    )


def two_loops(g: Array, pairs: Iterable[tuple[Array, Array]], H: Callable[[Array], Array]) -> Array:
    """The inverse Hessian that starts from H and has seen these steps and changes of gradient,
    times g (Nocedal 1980)."""
    r, seen = g.copy(), [(s, y, float(np.vdot(s, y))) for s, y in pairs]
    seen, took = [v for v in seen if v[2] > 0], []
    for s, y, sy in reversed(seen):
        took.append(float(np.vdot(s, r)) / sy)
        r -= took[-1] * y
    z = H(r)
    for (s, y, sy), a in zip(seen, reversed(took), strict=True):
        z += (a - float(np.vdot(y, z)) / sy) * s
    return z
