"""The choice of landmarks: which rows of a kernel matrix stand for all of them, and the Cholesky
factor of those that count.

Every choice is a sequence that does not depend on how many landmarks are asked for: a larger number
under the same seed adds landmarks to the smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from mercer.inputs import Array, Rows, Table
from mercer.operators import Operator
from mercer.ops.philox import Stream, permutation, uniforms
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

# proposals of one round: a constant, so that the pivots do not depend on how many are wanted
PROPOSALS = 128
TASK_ROWS, TASK_VALUES = 1024, 1 << 17  # least rows of one task, and values where pivots are few
POOL_ROWS, POOL_SHARE = 1024, 4  # the least rows that pivots are drawn from, and rows a pivot
ROUND, SURE = 64, 0.05  # rows proposed at a time, and the share untold from which one is taken
LEAST_TAKEN = 0.25  # of those proposed, or nothing is proposed without a look at the residual
OPENING = 2 << 40  # the child of a stream that they are drawn by
POOL = 1 << 40  # the child of a stream that pools are drawn by, beyond those of all rounds
FACTOR_COLUMNS = 64  # of a triangular factor that are multiplied at a time
PILOT_ROWS = 1000  # rows that leverage scores are estimated from
NONE = np.empty(0, np.intp)
ZERO_PIVOT = (
    np.zeros(1, dtype=np.intp),
    np.full((1, 1), np.inf),
)  # kept rows of a kernel that is zero at all: one feature, zero too


def in_float64(op: Operator, rows: Rows, cols: Rows) -> Array:
    """K[rows, cols] in float64."""
    return np.asarray(op.block(rows, cols), np.float64)


def uniform(op: Operator, m: int, stream: Stream, weight: Array, cut: float) -> Array:
    """Rows without replacement, with probability proportional to their weights (Efraimidis and
    Spirakis, 2006)."""
    return without_replacement(weight, m, stream)


def leverage(op: Operator, m: int, stream: Stream, weight: Array, cut: float) -> Array:
    r"""Rows without replacement, by their ridge leverage scores (K (K + a I)^-1)_ii estimated from
    a uniform pilot.

    a is the mean of the diagonal. Musco and Musco, Recursive sampling for the Nystrom method
    (2017).
    """
    pilot = without_replacement(weight, PILOT_ROWS, stream.child(0))
    op = op.astype(np.float64)
    diag = np.asarray(op.diag(), np.float64)
    ridge = (diag.mean() or 1.0) * len(pilot) / len(diag)  # a kernel may be zero at all rows
    root = np.linalg.cholesky(in_float64(op, pilot, pilot) + ridge * np.eye(len(pilot)))

    def explained(rows: slice) -> Array:
        return np.square(solve_triangular(root, in_float64(op, rows, pilot).T, lower=True)).sum(0)

    scores = diag - np.concatenate(parallel_map(explained, cuts(len(diag), TASK_ROWS)))
    share = weight * np.maximum(scores, cut * diag)
    return without_replacement(share if share.any() else weight, m, stream.child(1))


def without_replacement(weight: Array, m: int, stream: Stream) -> Array:
    """The first m of a sequence drawn without replacement in proportion to the weights: the
    smallest of Exp(weight) times."""
    with np.errstate(divide="ignore"):
        times = -np.log(uniforms(stream, 0, len(weight), 1)[:, 0]) / weight
    return np.argsort(times, kind="stable")[: min(m, np.count_nonzero(weight))]


def rpcholesky(op: Operator, m: int, stream: Stream, weight: Array, cut: float) -> Array:
    """The rows that `rpcholesky_factor` has drawn."""
    return rpcholesky_factor(op, m, stream, weight, cut)[0]


def rpcholesky_factor(
    op: Operator, m: int, stream: Stream, weight: Array, cut: float
) -> tuple[Array, Array]:
    """Pivots of a Cholesky factorisation, drawn in proportion to the residual's diagonal: E tr(K -
    Q) is near the best of rank m.

    At first nothing is eliminated: see `proposed`. Once most of what is proposed is told by the
    pivots, blocks are drawn from the residual they start at, and each proposal is kept with the
    share of its residual that the ones before it left: the pivots have the law of one-at-a-time
    sampling, at the speed of matrix products. Rows of one weight are drawn from a pool of some of
    them, the pivots and random ones, at least four rows a pivot, which grows as pivots do: O(m^3)
    time, O(m^2) memory, whatever n is, unless pivots tell all of a pool; then, and of other
    weights, from all rows: O(n m^2) and O(n m), less where most rows are told as well. Chen,
    Epperly, Tropp and Webber, Randomly pivoted Cholesky (2025); Epperly, Tropp and Webber, Embrace
    rejection (2024).

    Returns the pivots in the order in which they were drawn, and the factor of their block.
    """
    state, (before, root, rounds) = None, proposed(op, m, stream, weight, cut)
    if len(before) >= m:
        return before, root
    pivots = before
    for rows, most in pools(weight, m, stream, pivots):
        if state is not None and not state.diag.any() and len(rows) < len(weight):
            continue  # told by its pivots, as the next one nearly is: straight to all rows
        own = op if len(rows) == len(weight) else op.restrict(rows)
        at = np.searchsorted(rows, before)
        state = (
            Residual.told(own, m, cut, at, root, rounds) if state is None else state.grown(own, at)
        )
        draw(state, weight[rows], min(m, most), stream)
        before = rows
        if len(state.pivots) >= m:
            break
    if state is None or not state.pivots:  # a kernel that is zero has no pivot
        return np.array([weight.argmax()]), ZERO_PIVOT[1]
    return before[state.pivots], state.root


def proposed(
    op: Operator, m: int, stream: Stream, weight: Array, cut: float
) -> tuple[Array, Array, int]:
    """Pivots by rejection, while a quarter or more of the rows that are proposed are taken; the factor
    of their block, and how many rounds there were. Rows that are pivots count as not taken.

    Rows are proposed in proportion to k(x, x), and taken with the share of it that the pivots leave
    untold, or of more than 1,024 rows surely where that is more than a twentieth: nothing is known of any
    other row. Without that "surely" it is the law of one at a time, which on rough kernels goes for
    rows far out, and of many rows leaves a few per cent more than uniform ones do.
    """
    total = np.cumsum(weight * np.maximum(np.asarray(op.diag(), np.float64), 0))
    sure = SURE if len(total) > POOL_ROWS else 1.0  # few rows are soon all told
    pivots, L, rounds, batch = NONE, np.zeros((m, m)), 0, 2
    while len(pivots) < m and total[-1] > 0:
        few = -(-(m - len(pivots)) // ROUND)  # rounds that there may be
        u = uniforms(stream.child(OPENING), rounds * ROUND, (rounds + min(batch, few)) * ROUND, 2)
        rows = drawn(total, u[:, 0])
        K = op.restrict(np.concatenate([pivots, rows]), rows).astype(np.float64).block()
        old, kept = len(pivots), NONE  # the places of those taken among the rows
        for part in cuts(len(rows), ROUND):
            here, k = np.arange(part.start, part.stop), old + len(kept)
            new = here[~np.isin(rows[here], pivots)]
            above_them = np.concatenate([K[:old, new], K[old + kept][:, new]])
            told = told_by(L[:k, :k], above_them).T
            H = K[old + new][:, new]
            least = np.maximum(sure * u[new, 1], cut) * H.diagonal()
            taken, root = above(H - told @ told.T, least, m - k)
            last, rounds = k + len(taken), rounds + 1
            L[k:last, :k], L[k:last, k:last] = told[taken], root
            kept, pivots = np.append(kept, new[taken]), np.append(pivots, rows[new[taken]])
            if last == m or len(taken) < LEAST_TAKEN * len(here):
                return pivots, L[:last, :last], rounds
        batch = rounds
    return pivots, L[: len(pivots), : len(pivots)], rounds


def told_by(L: Array, K: Array) -> Array:
    """L^-1 K; of no rows too, which LAPACK of older SciPy refuses."""
    return solve_triangular(L, K, lower=True, check_finite=False) if K.size else K


def drawn(total: Array, u: Array) -> Array:
    """Places in proportion to the steps of their sums `total`, by uniform numbers."""
    return np.minimum(np.searchsorted(total, u * total[-1], side="right"), len(total) - 1)


def above(H: Array, least: Array, room: int) -> tuple[list[int], Array]:
    """Those rows of a matrix whose residual, after the kept ones before them, is larger than
    `least`; the root of their block."""
    H, L, kept = (H + H.T) / 2, np.zeros(H.shape), list[int]()
    left, bounds = H.diagonal().copy(), least.tolist()
    for i in range(len(H)):
        if left[i] > bounds[i]:
            told = L[i:, : len(kept)] @ L[i, : len(kept)]
            L[i:, len(kept)] = column = (H[i:, i] - told) / np.sqrt(left[i])
            left[i:] -= np.square(column)
            kept.append(i)
            if len(kept) == room:
                break
    try:  # LAPACK's factor is the more precise; pivots near the floor may not survive its rounding
        root = np.linalg.cholesky(H[np.ix_(kept, kept)])
    except np.linalg.LinAlgError:
        root = L[kept, : len(kept)]
    return kept, root


def draw(state: Residual, weight: Array, most: int, stream: Stream) -> None:
    """Rounds until there are so many pivots, or nothing is left."""
    stale = 0
    while len(state.pivots) < most and (weight * state.diag).any() and stale < 8:
        before = len(state.pivots)
        pivots, root = accepted(state, weight, stream.child(state.rounds))
        state.rounds += 1
        state.take(pivots, root)
        stale = 0 if len(state.pivots) > before else stale + 1


def pools(
    weight: Array, m: int, stream: Stream, first: Array = NONE
) -> Iterator[tuple[Array, int]]:
    """Rows that pivots are drawn from, ever more of them, and how many pivots each may have, the
    `first` ones among them, which are there.

    Every pool is part of the next, and none depends on how many pivots are wanted.

    >>> [(len(rows), most) for rows, most in pools(np.ones(5000), 300, Stream(0))]
    [(1024, 256), (2048, 512), (4096, 1024), (5000, 300)]
    """
    some, size = np.flatnonzero(weight), POOL_ROWS
    while size <= POOL_SHARE * len(first):
        size *= 2
    if len(some) > size and np.ptp(weight[some]) == 0:
        order = some[permutation(stream.child(POOL), len(some))]
        order = np.concatenate([first, order[~np.isin(order, first)]])
        while size < len(some):
            yield np.sort(order[:size]), size // POOL_SHARE
            size *= 2
    yield np.arange(len(weight)), m


def accepted(state: Residual, weight: Array, stream: Stream) -> tuple[Array, Array]:
    """Proposals by the residual's diagonal, thinned to the law of one at a time, and the root of
    their block."""
    total = np.cumsum(weight * state.diag)
    u = uniforms(stream, 0, PROPOSALS, 2)
    rows = drawn(total, u[:, 0])
    least = np.maximum(u[:, 1] * state.diag[rows], state.floor[rows])
    kept, root = above(state.block(rows), least, state.F.shape[1] - len(state.pivots))
    return rows[kept], root


def pivoted(K: Array, cut: float) -> tuple[Array, Array]:
    """Rows of K, next the one whose k(x, x) those before it tell the smallest share of, and the
    Cholesky factor of their block.

    It ends where no more than `cut` of any k(x, x) is untold. Rows in any other order may each tell
    a little more than `cut` and be dependent all the same, which rounding then makes anything of:
    near-copies, lines under a smooth kernel.

    >>> K = np.exp(-0.5 * np.subtract.outer(x := np.linspace(0, 1, 50), x) ** 2)
    >>> kept, root = pivoted(K, 1e-11)
    >>> F = np.linalg.solve(root, K[kept]).T
    >>> len(kept) < 15, bool(np.abs(F @ F.T - K).max() < 1e-10)
    (True, True)
    """
    some = np.flatnonzero(K.diagonal() > 0)
    size = np.sqrt(K.diagonal()[some])
    C = K[np.ix_(some, some)] / size
    C /= size[:, None]
    np.fill_diagonal(C, 1)  # equal ones to the bit, so that ties go to the first
    L, order, rank, _ = dpstrf(C.T, tol=cut, lower=1, overwrite_a=1)
    if not rank:
        return ZERO_PIVOT
    order = order[:rank] - 1
    return some[order], np.tril(L[:rank, :rank]) * size[order, None]


def times_upper(C: Array, root: Array, out: Array) -> None:
    """out = C @ root for an upper triangular root, at about half the work."""
    for cols in cuts(len(root), FACTOR_COLUMNS):
        np.matmul(C[:, : cols.stop], root[: cols.stop, cols], out=out[:, cols])


def task_rows(columns: int) -> int:
    return max(TASK_ROWS, TASK_VALUES // columns)


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

    def grown(self, op: Operator, at: Array) -> Residual:
        """The same pivots over more rows, the ones here being at these places of them: what is known
        of those stays as it is, and the others are told by the factor of the pivots' block.

        Were the pivots eliminated anew, each time with a factor read from the last one, rounding
        would grow by a power of 1 / sqrt(cut) from pool to pool.
        """
        more, k = Residual(op, self.F.shape[1], self.cut), len(self.pivots)
        more.pivots, more.rounds = at[self.pivots].tolist(), self.rounds
        more.F[at, :k], more.diag[at] = self.F[:, :k], self.diag
        more.tell(np.delete(np.arange(len(more.diag)), at), self.root)
        return more

    def tell(self, new: Array, root: Array) -> None:
        """What the pivots, whose block has this root, tell of new rows: how much, by a product,
        which is as precise as that needs be; and by substitution, what it is of the others."""
        pivots, inverse = np.array(self.pivots, np.intp), np.linalg.inv(root).T

        def piece(part: slice) -> None:
            rows = new[part]
            K = in_float64(self.op, rows, pivots)
            told = np.empty_like(K)
            times_upper(K, inverse, told)
            self.leave(rows, np.square(told).sum(1))
            some = self.diag[rows] > 0
            rows = rows[some]
            told = solve_triangular(root, K[some].T, lower=True, check_finite=False).T
            self.F[rows, : len(pivots)] = told

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


CHOICES: dict[str, Callable[[Operator, int, Stream, Array, float], Array]] = {
    "rpcholesky": rpcholesky,
    "uniform": uniform,
    "leverage": leverage,
}


def all_rows(rows: Table, weight: Array) -> Array:
    """All rows of positive weight, in an order of their values: the map then does not depend on the
    order of the rows."""
    index = np.flatnonzero(weight)
    return (
        index
        if rows.items
        else index[np.argsort(rows.data[index] @ np.cos(np.arange(rows.width)), kind="stable")]
    )
