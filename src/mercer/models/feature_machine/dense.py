"""Dense kernel ridge regression in float32, as paths need it: distances, kernel values, factors, and
a climb to the best penalty."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from mercer.inputs import Array
from mercer.ops.absolute import absdist
from mercer.ops.threads import single_blas

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 3.0)
FIRST_PENALTY = 2  # from where the climb begins
# a penalty beside the best that loses so much more is left aside in the next round
SIDE_WORSE = 1.03
MEDIAN_ROWS = 400  # by whose pairs the length is taken
ONE_THREAD_ROWS = 8_000  # of a factor for which BLAS has one thread


@dataclass(frozen=True, eq=False)
class PathRows:
    """Inputs (n, d), targets (n, q) about zero, and weights of mean 1 or none."""

    U: Array
    Y: Array
    weight: Array | None = None

    def __len__(self) -> int:
        return len(self.U)

    def take(self, rows: Array) -> PathRows:
        return PathRows(
            self.U[rows], self.Y[rows], None if self.weight is None else self.weight[rows]
        )


# kernel values
def under(U: Array, metric: Array | None) -> Array:
    """Rows u as S u: no metric, a diagonal one (d,), or a symmetric one (d, d)."""
    if metric is None:
        return U
    S = metric.astype(np.float32)
    return np.ascontiguousarray(U * S if S.ndim == 1 else U @ S)


def distances(U: Array, V: Array, norm: int) -> Array:
    """|u - v|_norm of float32 rows, (n, m)."""
    if norm == 1:
        return absdist(U, V, np.ones(U.shape[1]))
    D = U @ V.T
    D *= -2
    D += np.einsum("ij,ij->i", U, U)[:, None]
    D += np.einsum("ij,ij->i", V, V)
    np.maximum(D, 0, out=D)
    return np.asarray(np.sqrt(D, out=D))


def kernel_values(R: Array, length: float, exponent: float) -> Array:
    """exp(-(R / length)^exponent)"""
    T = R * np.float32(1 / length)
    if exponent == 2:
        T *= T
    elif exponent != 1:
        T **= np.float32(exponent)
    np.negative(T, out=T)
    return np.asarray(np.exp(T, out=T))


def median_distance(U: Array, norm: int, rng: np.random.Generator) -> float:
    """Of pairs of some rows; 1 where most of them are equal."""
    some = U[rng.permutation(len(U))[:MEDIAN_ROWS]]
    R = distances(some, some, norm)
    pairs = R[np.triu_indices(len(R), 1)]
    median = float(np.median(pairs)) if len(pairs) else 0.0
    return median if median > 0 else float(pairs.mean() or 1.0) if len(pairs) else 1.0


# equations
def solved(K: Array, rows: PathRows, penalty: float) -> tuple[Array, Array] | None:
    """(A, b) of K A + b with an intercept that is not penalised; None where K + penalty has no
    factor."""
    with one_thread(len(K)):
        return _solved(K, rows, penalty)


def one_thread(n: int) -> AbstractContextManager[None]:
    """BLAS in one thread for factors of so many rows: two that share a busy machine wait for each
    other longer than they work."""
    return single_blas() if n <= ONE_THREAD_ROWS else nullcontext()


def _solved(K: Array, rows: PathRows, penalty: float) -> tuple[Array, Array] | None:
    n = len(K)
    ridge = penalty if rows.weight is None else penalty / rows.weight
    for dtype, factor, solve in (
        (np.float32, lapack.spotrf, lapack.spotrs),
        (np.float64, lapack.dpotrf, lapack.dpotrs),
    ):
        M: Array = np.array(K, dtype, order="F")
        M[np.diag_indices(n)] += np.asarray(ridge, dtype)
        L, failed = factor(M, lower=1, overwrite_a=1)
        if not failed:
            X = solve(L, np.asfortranarray(np.column_stack([rows.Y, np.ones(n)]), dtype), lower=1)[
                0
            ]
            ones = X[:, -1]
            b = X[:, :-1].sum(axis=0) / ones.sum()
            A = X[:, :-1] - ones[:, None] * b
            if np.isfinite(A).all() and np.isfinite(b).all():
                return A.astype(np.float32), b.astype(np.float32)
    return None


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients at a penalty, and what they say of held-out rows."""

    loss: float
    penalty: int
    A: Array
    b: Array
    held_out: Array


@dataclass(frozen=True)
class PenaltyClimb:
    """From which penalty the next round begins, and to which sides of it it looks."""

    start: int = FIRST_PENALTY
    sides: tuple[int, ...] = (1, -1)

    @classmethod
    def after(cls, losses: dict[int, float], best: int) -> PenaltyClimb:
        """Sides that were tried and much worse are not looked at again; untried ones are."""
        sides = [
            step for step in (1, -1) if losses.get(best + step, 0.0) < SIDE_WORSE * losses[best]
        ]
        return cls(best, tuple(sides))


def best_fit(
    K: Array, K_out: Array, rows: PathRows, out: PathRows, climb: PenaltyClimb
) -> tuple[Fit, PenaltyClimb] | None:
    """At the best penalty by held-out rows, and how the next round goes on from it."""
    return climbed(lambda i: _fit_at(K, K_out, rows, out, i), climb)


def climbed(
    fit_at: Callable[[int], Fit | None], climb: PenaltyClimb
) -> tuple[Fit, PenaltyClimb] | None:
    """The same, of fits at penalties by their place."""
    tried: dict[int, Fit | None] = {}

    def at(i: int) -> float:
        if i not in tried:
            tried[i] = fit_at(i)
        found = tried[i]
        return np.inf if found is None else found.loss

    best = climb.start
    for step in climb.sides:
        i = climb.start + step
        while 0 <= i < len(PENALTIES) and at(i) < at(best):
            best, i = i, i + step
        if best != climb.start:
            break
    losses = {i: at(i) for i in (*tried, best)}
    fit = tried[best]
    return None if fit is None else (fit, PenaltyClimb.after(losses, best))


def _fit_at(K: Array, K_out: Array, rows: PathRows, out: PathRows, i: int) -> Fit | None:
    found = solved(K, rows, PENALTIES[i])
    if found is None:
        return None
    A, b = found
    F = K_out @ A + b
    loss = float(np.average(np.square(F - out.Y).mean(axis=1), weights=out.weight))
    return Fit(loss, i, A, b, F) if np.isfinite(loss) else None


# linear functions
def solved_linear(rows: PathRows, penalty: float, factor: float) -> tuple[Array, Array]:
    """(coef (d, q), b) of the least sum w (y - u'coef - b)^2 + penalty d/factor^2 |coef|^2: that of
    the kernel factor^2 u'v/d, in float64."""
    U, Y = rows.U.astype(np.float64), rows.Y.astype(np.float64)
    w = np.ones(len(U)) if rows.weight is None else rows.weight
    u, y = (np.average(A, axis=0, weights=w) for A in (U, Y))
    centred = (U - u) * np.sqrt(w)[:, None]
    G = centred.T @ centred
    G[np.diag_indices(len(G))] += penalty * max(1, len(G)) / factor**2
    coef = np.linalg.solve(G, centred.T @ ((Y - y) * np.sqrt(w)[:, None]))
    return coef, y - u @ coef


def best_linear(rows: PathRows, out: PathRows, factor: float) -> Fit | None:
    """At the best penalty by held-out rows."""
    best: Fit | None = None
    for i, penalty in enumerate(PENALTIES):
        coef, b = solved_linear(rows, penalty, factor)
        F = (out.U @ coef + b).astype(np.float32)
        loss = float(np.average(np.square(F - out.Y).mean(axis=1), weights=out.weight))
        if np.isfinite(loss) and (best is None or loss < best.loss):
            best = Fit(loss, i, coef, b, F)
    return best
