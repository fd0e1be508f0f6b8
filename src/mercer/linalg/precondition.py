"""Preconditioners of K + diag(ridge): a low-rank Cholesky factor at random pivots, inverted by
Woodbury's formula."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from mercer.inputs import Array
from mercer.lifts.pivots import PROPOSALS, accepted
from mercer.lifts.residual import Residual
from mercer.operators import Operator
from mercer.ops.philox import Stream
from mercer.ops.threads import single_blas
from mercer.ops.tiles import cuts
from mercer.store import register

WIDE = np.dtype(np.float64)
MIN_RESIDUAL = {
    WIDE: 1e-13,
    np.dtype(np.float32): 3e-6,
}  # of k(x, x): less than this left of it is rounding
CHUNKS = 8  # of the rows, whose moments are added in float64
RANGE = 1e-30, 1e30  # of k(x, x), whose products and pivots float32 holds
MAX_ROUNDING = 0.5  # of I + S'S: where float32 would leave more it is not tried
CHEAP_COLUMNS = 512  # columns up to which float64 costs next to nothing
PROBES, POWERS = (
    8,
    6,
)  # leading directions in which an inverse in float32 is checked, and steps to find them
MIN_REST = (
    0.1  # the rest of K, in units of the ridge, that more pivots would not make worth their price
)
PIVOT_COST = (
    215.0,
    0.3,
    # of pivot r, over n: its column, and the elimination of r others; the unit is a product with a kept
    # float32 K
)
HARD_STEPS = 500.0  # expected steps beyond which no pivots are spared
MANY_COLUMNS = math.inf  # columns to be solved for, where nobody said how many


@register("linalg.RPCholesky")
@dataclass(frozen=True)
class RPCholesky:
    """P = F F' + diag(ridge), F (n, r) the Cholesky factor of K at r pivots drawn by what is left
    of its diagonal.

    F is float32 where its rounding is small beside the ridge, and r is less than asked for where F
    would exceed the memory.

    Parameters
    ----------
    rank : r; None is at most 12 sqrt(n) or 1,000, the larger, and ends where pivots cost more than
    the steps that they save
    seed : of the pivots

    Diaz, Epperly, Frangella, Tropp and Webber, Robust, randomized preconditioning for kernel ridge
    regression (2023).
    """

    rank: int | None = None
    seed: int = 0

    def init(
        self, op: Any, ridge: Array, memory: float = math.inf, step: float = MANY_COLUMNS
    ) -> Woodbury:
        """The preconditioner of op + diag(ridge), with at most `memory` bytes.

        step : what one step of conjugate gradients costs, in products of a kept float32 triangle of
        K with one column
        """
        n, step = len(ridge), MANY_COLUMNS if self.rank else step
        with (
            single_blas()
        ):  # small products between tasks: the same bits whatever the number of threads
            for dtype in (precision(op, ridge), WIDE):
                room = int(max(min(memory, 8.0 * n * n) // (dtype.itemsize * n), 1))
                r = min(n, self.rank or default_rank(n), room)
                if dtype == WIDE or r > CHEAP_COLUMNS:
                    P = Woodbury.of(self.factor(op, r, ridge, dtype, step), ridge)
                    if P.S.dtype == WIDE or P.sound():
                        break
            return P

    def factor(
        self, op: Operator, r: int, ridge: Array, dtype: np.dtype[Any], step: float = MANY_COLUMNS
    ) -> Array:
        """F, in float64 where it has few columns."""
        weight, stream, stale = ridge.min() / ridge, Stream(self.seed), 0
        state = Residual(op, min(r, CHEAP_COLUMNS), MIN_RESIDUAL[WIDE])
        marks = [(0, expected_steps(state.diag, ridge))]
        while (
            len(state.pivots) < r
            and stale < 8
            and marks[-1][1] > expected_steps(MIN_REST, 1.0)
            and worth(marks, op.shape[0], step)
        ):
            before = len(state.pivots)
            if before + PROPOSALS > state.F.shape[1] < r:
                _widen(state, min(r, 2 * state.F.shape[1]), dtype)
            state.eliminate(*accepted(state, weight, stream.child(state.rounds)))
            stale = 0 if len(state.pivots) > before else stale + 1
            marks += [] if stale else [(len(state.pivots), expected_steps(state.diag, ridge))]
        return state.F[:, : len(state.pivots)]


def _widen(state: Residual, r: int, dtype: np.dtype[Any]) -> None:
    """Make room for r columns, of another precision perhaps."""
    F, done = np.empty((len(state.F), r), dtype), len(state.pivots)
    F[:, :done] = state.F[:, :done]
    state.F, state.floor = F, MIN_RESIDUAL[dtype] / MIN_RESIDUAL[state.F.dtype] * state.floor


def expected_steps(rest: Any, ridge: Any) -> float:
    """About how many steps conjugate gradients take where the diagonal of K - F F' is this; fewer
    where its spectrum is flat."""
    return 0.5 * math.sqrt(float(np.sum(np.maximum(rest, 0) / ridge)))


def worth(marks: list[tuple[int, float]], n: int, step: float) -> bool:
    """Whether the pivots of the last two rounds saved more than the next ones cost; marks: pivots,
    and the steps expected.

    >>> worth([(0, 90.0), (100, 60.0)], 6000, 1.0), worth([(900, 20.0), (1000, 19.0)], 6000, 1.0)
    (True, False)
    """
    (before, least), (now, steps) = marks[-min(len(marks), 3)], marks[-1]
    saved = (least - steps) / max(now - before, 1)
    return (
        len(marks) == 1
        or steps > HARD_STEPS
        or math.isinf(step)
        or saved * step * n > PIVOT_COST[0] + PIVOT_COST[1] * now
    )


@register("linalg.Identity")
@dataclass(frozen=True)
class NoPreconditioner:
    """No preconditioner but the ridge itself."""

    def init(
        self, op: Any, ridge: Array, memory: float = math.inf, step: float = MANY_COLUMNS
    ) -> Woodbury:
        return Woodbury.of(np.zeros((len(ridge), 0)), ridge)


def default_rank(n: int) -> int:
    """The most pivots: 12 sqrt(n), at least 1,000, about the work of a few dozen products with K,
    whatever n.

    >>> default_rank(40_000), default_rank(10)
    (2400, 1000)
    """
    return max(1000, int(12 * math.sqrt(n)))


def precision(op: Any, ridge: Array) -> np.dtype[Any]:
    """float32 where an error of its eps in I + S'S, whose norm is at most sum k(x, x) / ridge,
    leaves it well above zero, and products of F are within its range."""
    diagonal = np.abs(op.diag(), dtype=np.float64)
    size = float((diagonal / ridge).sum())
    serves = size * np.finfo(np.float32).eps <= MAX_ROUNDING
    least, most = RANGE
    return np.dtype(np.float32 if serves and least < diagonal.max() < most else np.float64)


@dataclass(frozen=True, eq=False)
class Woodbury:
    """P = F F' + diag(d): P^-1 = s (I - S (I + S'S)^-1 S') s with s = d^-1/2, S = s F; `logdet` is
    log det P.

    >>> F, d = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 3.0])
    >>> P = Woodbury.of(F.copy(), d)
    >>> bool(np.allclose(P.solve(F @ F.T + np.diag(d)), np.eye(3)))
    True
    >>> bool(np.isclose(P.logdet, np.linalg.slogdet(F @ F.T + np.diag(d))[1]))
    True
    """

    S: Array
    s: Array
    root: Array  # of I + S'S

    @classmethod
    def of(cls, F: Array, d: Array) -> Woodbury:
        """From F, which is overwritten, and d > 0."""
        # A ridge below the rounding of F F' cannot be told from it, and would make the inverse
        # indefinite.
        d = np.maximum(d, 1e-14 * np.einsum("ij,ij->", F, F, dtype=np.float64))
        s = 1 / np.sqrt(d)
        F *= s[:, None].astype(F.dtype)
        H = np.eye(F.shape[1])
        for rows in cuts(len(F), -(-len(F) // CHUNKS)):
            H += F[rows].T @ F[rows]
        return cls(F, s, np.linalg.cholesky(H))

    def sound(self) -> bool:
        """Whether P^-1 is right, to a fifth, where it is smallest: along the leading directions of
        S S'.

        In float32 rounding may make it negative there, and then it preconditions nothing.
        """
        H = self.root @ self.root.T
        W = np.linalg.qr(
            np.cos(np.arange(self.rank)[:, None] * (1.0 + np.arange(min(PROBES, self.rank))))
        )[0]
        for _ in range(POWERS):
            W = np.linalg.qr(H @ W)[0]
        U = self.S.astype(np.float64) @ W
        U /= np.linalg.norm(U, axis=0)
        right = np.einsum("ij,ij->j", W, H @ W)  # 1 + sigma^2
        ratio = np.einsum("ij,ij->j", U / self.s[:, None], self.solve(U / self.s[:, None])) * right
        return bool((np.abs(ratio - 1) < 0.2).all())

    @property
    def rank(self) -> int:
        return self.S.shape[1]

    @property
    def logdet(self) -> float:
        return float(2 * np.log(np.diag(self.root)).sum() - 2 * np.log(self.s).sum())

    def correlated(self, E: Array) -> Array:
        """(n, q) with covariance P from independent normals E (rank + n, q)."""
        return np.asarray((self.S @ E[: self.rank] + E[self.rank :]) / self.s[:, None])

    def solve(self, B: Array) -> Array:
        """P^-1 B for (n, q)."""
        V = self.s[:, None] * B
        if self.rank:
            size = np.where(
                (largest := np.abs(V).max(axis=0)) > 0, largest, 1
            )  # float32 has few exponents
            part = self.S.T @ (V / size).astype(self.S.dtype)
            V -= size * (
                self.S
                @ cho_solve((self.root, True), part.astype(np.float64), check_finite=False).astype(
                    self.S.dtype
                )
            )
        return self.s[:, None] * V
