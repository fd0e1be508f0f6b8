"""What pivots leave of a kernel matrix, through its diagonal and blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import get_blas_funcs, solve_triangular
from scipy.linalg.lapack import dtrtri

from mercer.inputs import Array, Rows
from mercer.operators import Operator
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

TASK_ROWS, TASK_VALUES = 1024, 1 << 17  # least rows of one task, and values where pivots are few


def in_float64(op: Operator, rows: Rows, cols: Rows) -> Array:
    """K[rows, cols] in float64."""
    return np.asarray(op.block(rows, cols), np.float64)


def times_upper(F: Array, root: Array) -> None:
    """F = F @ root in place for an upper triangular root, both contiguous and of one precision: half
    the work of a product."""
    (trmm,) = get_blas_funcs(("trmm",), (F,))
    trmm(1.0, root.T, F.T, side=0, lower=1, overwrite_b=1)


def inverse_of(root: Array) -> Array:
    """R^-1 of a lower triangular R, by columns."""
    inverse, _ = dtrtri(root, lower=1)
    return np.asarray(inverse)


def task_rows(columns: int) -> int:
    return max(TASK_ROWS, TASK_VALUES // columns)


# what pivots, whose block has a root, tell of all rows of a matrix
Look = Callable[[Array, Array], Array]


class Residual:
    """K - F F' through its diagonal and blocks, while columns are eliminated."""

    def __init__(self, op: Operator, m: int, cut: float) -> None:
        self.op, self.pivots, self.rounds = op.astype(np.float64), list[int](), 0
        self.cut = cut
        self.diag = np.array(self.op.diag(), np.float64)
        self.floor = cut * np.maximum(self.diag, 0)
        self.F = np.zeros((len(self.diag), m))

    @property
    def root(self) -> Array:
        """The Cholesky factor of the pivots' block of K."""
        return np.tril(self.F[self.pivots, : len(self.pivots)])

    @classmethod
    def told(
        cls, op: Operator, m: int, cut: float, at: Array, root: Array, rounds: int
    ) -> Residual:
        """With pivots at these places, whose block has this root."""
        state = cls(op, m, cut)
        state.pivots, state.rounds = at.tolist(), rounds
        state.F[at, : len(at)], state.diag[at] = root, 0
        state.tell(np.delete(np.arange(len(state.diag)), at), root)
        return state

    def grown(self, op: Operator, at: Array, look: Look | None = None) -> Residual:
        """The same pivots over more rows, the ones here being at these places of them: what is known
        of those stays as it is, and the others are told by the factor of the pivots' block, where
        nothing is left here only those of which a look finds that something is.

        Were the pivots eliminated anew, each time with a factor read from the last one, rounding
        would grow by a power of 1 / sqrt(cut) from pool to pool.
        """
        more, k = Residual(op, self.F.shape[1], self.cut), len(self.pivots)
        more.pivots, more.rounds = at[self.pivots].tolist(), self.rounds
        more.F[at, :k], more.diag[at] = self.F[:, :k], self.diag
        new, root = np.delete(np.arange(len(more.diag)), at), self.root
        if k and not self.diag.any():
            pivots = np.array(more.pivots, np.intp)
            told = more.glanced(new, pivots, root) if look is None else look(pivots, root)[new]
            new = new[more.diag[new] - told > more.floor[new]]
            left = np.zeros_like(more.diag)
            left[new] = more.diag[new]
            more.diag = left
        more.tell(new, root)
        return more

    def glanced(self, rows: Array, pivots: Array, root: Array) -> Array:
        """What pivots, whose block has this root, tell of rows: how much, by a product, which is as
        precise as that needs be."""
        inverse = inverse_of(root).T

        def piece(part: slice) -> Array:
            K = in_float64(self.op, rows[part], pivots)
            times_upper(K, inverse)
            return np.square(K, out=K).sum(1)

        return np.concatenate(parallel_map(piece, cuts(len(rows), task_rows(len(pivots)))))

    def tell(self, new: Array, root: Array) -> None:
        """What the pivots, whose block has this root, tell of new rows, by substitution."""
        pivots = np.array(self.pivots, np.intp)

        def piece(part: slice) -> None:
            rows = new[part]
            K = in_float64(self.op, rows, pivots)
            told = solve_triangular(root, K.T, lower=True, check_finite=False, overwrite_b=True).T
            self.F[rows, : len(pivots)] = told
            self.leave(rows, np.square(told).sum(1))

        if len(pivots):
            parallel_map(piece, cuts(len(new), task_rows(len(pivots))))

    def leave(self, rows: Rows, told: Array) -> None:
        """Take what is told of k(x, x) from the diagonal: zero where rounding is all that is left."""
        left = self.diag[rows] - told
        self.diag[rows] = np.where(left > self.floor[rows], left, 0)

    def block(self, rows: Array) -> Array:
        """(K - F F')[rows, rows]"""
        F = self.F[rows, : len(self.pivots)]
        return in_float64(self.op, rows, rows) - F @ F.T

    def take(self, pivots: Array, root: Array) -> None:
        """Pivots whose block of the residual has this root: out of the residual of the rows that are
        not told, as no other can be a pivot; or where they are the last ones only into the factor
        of their block."""
        now = slice(len(self.pivots), len(self.pivots) + len(pivots))
        if now.stop < self.F.shape[1]:
            self.eliminate(pivots, root, np.flatnonzero(self.diag))
            return
        self.F[self.pivots, now] = 0
        self.F[pivots, now] = root
        self.pivots += pivots.tolist()

    def eliminate(self, pivots: Array, root: Array, live: Array | None = None) -> None:
        """Take the columns of these pivots, whose block of the residual has this root, out of
        it, at all rows or at the live ones alone."""
        done = len(self.pivots)
        if not len(pivots):
            return
        P = self.F[pivots, :done].copy()
        some = None if live is None or len(live) == len(self.diag) else live

        def piece(part: slice) -> None:
            rows = part if some is None else some[part]
            G = in_float64(self.op, rows, pivots) - self.F[rows, :done] @ P.T
            self.F[rows, done : done + len(pivots)] = new = solve_triangular(
                root, G.T, lower=True, check_finite=False
            ).T
            self.leave(rows, np.square(new).sum(1))

        n = len(self.diag if some is None else some)
        parallel_map(piece, cuts(n, task_rows(len(pivots))))
        self.F[pivots, done : done + len(pivots)] = root
        self.diag[pivots] = 0
        self.pivots += pivots.tolist()
