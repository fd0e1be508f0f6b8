"""Randomly pivoted Cholesky factors: rows of a kernel matrix, drawn by what those before them leave
untold.

No draw depends on how many pivots are wanted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dger

from mercer.inputs import Array
from mercer.kernels import Gaussian
from mercer.lifts.residual import Look, Residual
from mercer.operators import GivenOperator, Operator
from mercer.ops.philox import Stream, bits, uniforms
from mercer.ops.tiles import cuts

# proposals of one round: a constant, so that the pivots do not depend on how many are wanted
PROPOSALS = 128
POOL_ROWS, POOL_SHARE = 1024, 4  # the least rows that pivots are drawn from, and rows a pivot
# The pool after one of which all is told has so many times its rows, where the pivots have more
# values with all rows than these; else it is all rows.
LEAP, LEAP_VALUES = 4, 1 << 20
ROUND, SURE = 64, 0.05  # rows proposed at a time, and the share untold from which one is taken
LEAST_TAKEN = 0.125  # of those proposed, or nothing is proposed without a look at the residual
EXACT_ROWS = 256  # of which all pivots have the law of one at a time
CANDIDATES, LEAST_LEFT = 128, 0.01  # rows that the first pivots are the best of, and untold of them
LAST_ROWS = 256  # that are not told, from which pivots are drawn one at a time
# multiplications, of a Gaussian or not, for all values
CHEAP = {True: 200_000_000, False: 2_000_000}
COLUMNS = 32  # multiplications that a value takes beside those of its rows
POOL = 1 << 40  # the child of a stream that pools are drawn by, beyond those of all rounds
PROPOSED, SINGLY, OPENING = 2 << 40, 3 << 40, 4 << 40  # and others by which rows are drawn
NONE = np.empty(0, np.intp)
# the kept row of a kernel that is zero at all, and its root: one feature, zero too
ZERO_PIVOT = np.zeros(1, dtype=np.intp), np.full((1, 1), np.inf)


def rpcholesky(op: Operator, m: int, stream: Stream, weight: Array, cut: float) -> Array:
    """The rows that `rpcholesky_factor` has drawn."""
    return rpcholesky_factor(op, m, stream, weight, cut)[0]


def rpcholesky_factor(
    op: Operator, m: int, stream: Stream, weight: Array, cut: float, look: Look | None = None
) -> tuple[Array, Array]:
    """Pivots of a Cholesky factorisation, drawn in proportion to the residual's diagonal: E tr(K -
    Q) is near the best of rank m.

    At first nothing is eliminated from other rows: see `opened` and `proposed`. Once most of what
    is proposed is told by the pivots, they are drawn from the residual, one at a time or in rounds
    of that law.

    Rows of one weight are drawn from a pool of some of them: the pivots and random ones, at least
    four rows a pivot, ever more as pivots grow, in O(m^3) time and O(m^2) memory whatever n is.
    Where pivots tell all of a pool, the next one has four times its rows or is all rows, in
    O(n m^2) and O(n m), less where most rows are told as well; so it is for rows of several
    weights. What pivots tell of all rows may be found by `look`.

    Chen, Epperly, Tropp and Webber, Randomly pivoted Cholesky (2025); Epperly, Tropp and Webber,
    Embrace rejection (2024).

    Returns the pivots in the order in which they were drawn, and the factor of their block.
    """
    n, state, rounds = len(weight), None, 0
    before, root, rough = NONE, np.empty((0, 0)), True
    if n > EXACT_ROWS:
        before, root, rough = opened(op, m, stream, weight)
    if not cheap(op, n) and (rough or not cheap(op, min(n, POOL_ROWS))):
        before, root, rounds = proposed(op, m, stream, weight, cut, before, root)
    if len(before) >= m:
        return before, root
    for pool in pools(weight, m, stream, before):
        if state is not None and not state.diag.any() and not pool.follows(state, n):
            continue
        rows = pool.rows()
        own = known(op if pool.size == n else op.restrict(rows))
        at = np.searchsorted(rows, before)
        if state is None:
            state = Residual.told(own, m, cut, at, root, rounds)
        else:
            told = pool.size == n and not state.diag.any()
            state = state.grown(own, at, look if told else None)
        draw(state, weight[rows], min(m, pool.most), stream)
        before = rows
        if len(state.pivots) >= m:
            break
    if state is None or not state.pivots:  # a kernel that is zero has no pivot
        return np.array([weight.argmax()]), ZERO_PIVOT[1]
    return before[state.pivots], state.root


def cheap(op: Operator, n: int) -> bool:
    """Whether all values between so many rows take no longer than a few rounds."""
    if isinstance(op, GivenOperator):
        return n <= POOL_ROWS
    products = n * n * (op.X.width + COLUMNS)
    return (
        not op.X.items
        and n <= POOL_ROWS
        and products <= CHEAP[type(getattr(op, "kernel", None)) is Gaussian]
    )


def known(op: Operator) -> Operator:
    """The same with all its values, where they are cheap."""
    if not cheap(op, op.shape[0]):
        return op
    return GivenOperator(np.asarray(op.astype(np.float64).block(), np.float64))


def opened(op: Operator, m: int, stream: Stream, weight: Array) -> tuple[Array, Array, bool]:
    """The best of some rows that are drawn in proportion to k(x, x), one after the other, each told
    by how much of all of them the pivots then tell; the factor of their block, and whether much was
    left untold.

    Of few pivots these leave up to a tenth less than rows drawn at random do.
    """
    total = sums(op, weight)
    if not total[-1] > 0:
        return NONE, np.empty((0, 0)), False
    u = uniforms(stream.child(OPENING), 0, CANDIDATES, 1)
    rows = drawn(total, u[:, 0])
    K = np.asarray(op.restrict(rows).astype(np.float64).block(), np.float64)
    size = np.sqrt(K.diagonal())
    kept, left = greedy(K / size / size[:, None], min(m, ROUND), LEAST_LEFT)
    return rows[kept], np.linalg.cholesky(K[np.ix_(kept, kept)]), left > LEAST_LEFT


def greedy(C: Array, most: int, least: float) -> tuple[list[int], float]:
    """Rows of a correlation matrix, next the one whose elimination takes most from the diagonal of
    the others, while more than `least` of it is left on average and of that row; what is left."""
    R, kept, left = C.copy(order="F"), list[int](), C.diagonal().copy()
    squares = np.square(C).sum(0)
    while len(kept) < most and left.sum() > least * (len(left) - len(kept)):
        gain = (squares - left * left) / np.maximum(left, least)
        gain[left <= least] = -1
        j = int(gain.argmax())
        c = R[:, j] / np.sqrt(R[j, j])
        squares -= c * (2 * (R @ c) - c * (c @ c))
        R = dger(-1.0, c, c, a=R, overwrite_a=1)
        left -= c * c
        kept.append(j)
    return kept, float(left.sum() / max(len(left) - len(kept), 1))


def sums(op: Operator, weight: Array) -> Array:
    """Of the weighted diagonal, up to each row."""
    return np.cumsum(weight * np.maximum(np.asarray(op.diag(), np.float64), 0))


def proposed(
    op: Operator,
    m: int,
    stream: Stream,
    weight: Array,
    cut: float,
    pivots: Array = NONE,
    root: Array = NONE,
) -> tuple[Array, Array, int]:
    """More pivots by rejection, while an eighth or more of the rows that are proposed are taken; the
    factor of their block, and how many rounds there were. Rows that are pivots count as not taken.

    Rows are proposed in proportion to k(x, x), and taken with the share of it that the pivots leave
    untold, or of more than 1,024 rows surely where that is more than a twentieth: nothing is known of any
    other row. Without that "surely" it is the law of one at a time, which on rough kernels goes for
    rows far out, and of many rows leaves a few per cent more than uniform ones do.
    """
    total = sums(op, weight)
    sure = SURE if len(total) > POOL_ROWS else 1.0  # few rows are soon all told
    L, rounds, batch = np.zeros((m, m)), 0, 2
    L[: len(pivots), : len(pivots)] = root
    while len(pivots) < m and total[-1] > 0:
        few = -(-(m - len(pivots)) // ROUND)  # rounds that there may be
        u = uniforms(stream.child(PROPOSED), rounds * ROUND, (rounds + min(batch, few)) * ROUND, 2)
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
    H = (H + H.T) / 2
    with suppress(np.linalg.LinAlgError):  # all, where kernels are rough
        root = np.linalg.cholesky(H)
        if len(H) <= room and (np.square(root.diagonal()) > least).all():
            return list(range(len(H))), root
    L, kept = np.zeros(H.shape), list[int]()
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
    """Rounds until there are so many pivots, or nothing is left; one pivot at a time once few rows
    are not told."""
    stale = 0
    while len(state.pivots) < most and (weight * state.diag).any() and stale < 8:
        there = at_hand(state.op)
        live = np.arange(len(weight)) if there else np.flatnonzero(state.diag)
        if there or (len(live) <= LAST_ROWS and cheap(state.op, len(live))):
            singly(state, live, weight[live], most, stream)
            return
        before = len(state.pivots)
        pivots, root = accepted(state, weight, stream.child(state.rounds))
        state.rounds += 1
        state.take(pivots, root)
        stale = 0 if len(state.pivots) > before else stale + 1


def singly(state: Residual, live: Array, weight: Array, most: int, stream: Stream) -> None:
    """The same one at a time, from all values of the rows that are not told."""
    K, done = values_of(state.op, live), len(state.pivots)
    left, floor, pivots = state.diag[live], state.floor[live], list[int]()
    F = np.empty((most, len(K)))  # by pivots: products read it from end to end
    F[:done] = state.F[live, :done].T
    u = uniforms(stream.child(SINGLY), done, most, 1)[:, 0]
    while done + len(pivots) < most:
        k, total = done + len(pivots), np.cumsum(weight * left)
        if not total[-1] > 0:
            break
        i = int(drawn(total, u[len(pivots)]))
        new = np.subtract(K[i], F[:k, i] @ F[:k], out=F[k])
        if new[i] > floor[i]:
            new /= np.sqrt(new[i])
            left -= new * new
            pivots.append(i)
        left[i] = 0
        left[~(left > floor)] = 0
    last = done + len(pivots)
    state.F[live, done:last], state.diag[live] = F[done:last].T, left
    state.pivots += live[pivots].tolist()


def at_hand(op: Operator) -> bool:
    """Whether all values are there, as `known` has left them."""
    return isinstance(op, GivenOperator) and op.shape[0] <= POOL_ROWS


def values_of(op: Operator, rows: Array) -> Array:
    """All values between some rows."""
    if isinstance(op, GivenOperator) and at_hand(op):
        return np.asarray(op.K)
    return np.asarray(op.restrict(rows).block(), np.float64)


@dataclass(frozen=True)
class Pool:
    """Rows of the smallest keys, and how many pivots may be drawn from them."""

    keys: Array
    size: int
    most: int

    def rows(self) -> Array:
        """In their order.

        >>> Pool(np.array([5, 0, 9, 3]), 2, 1).rows()
        array([1, 3])
        """
        if self.size == len(self.keys):
            return np.arange(self.size)
        return np.sort(np.argpartition(self.keys, self.size)[: self.size])

    def follows(self, told: Residual, n: int) -> bool:
        """Whether it may follow a pool of which all is told: it is all n rows; or it has many more
        rows, but few of all of them, at which a look takes long."""
        long = n * len(told.pivots) > LEAP_VALUES
        return self.size == n or (long and LEAP * len(told.diag) <= self.size <= n // LEAP)


def pools(weight: Array, m: int, stream: Stream, first: Array = NONE) -> Iterator[Pool]:
    """Rows that pivots are drawn from, ever more of them, and how many pivots each may have, the
    `first` ones among them, which are there.

    Every pool is part of the next, and none depends on how many pivots are wanted.

    >>> [(pool.size, pool.most) for pool in pools(np.ones(5000), 300, Stream(0))]
    [(1024, 256), (2048, 512), (4096, 1024), (5000, 300)]
    """
    some, size = np.flatnonzero(weight), POOL_ROWS
    while size <= POOL_SHARE * len(first):
        size *= 2
    keys = np.zeros(len(weight), np.uint64)
    if len(some) > size and np.ptp(weight[some]) == 0:
        keys = bits(stream.child(POOL), 0, -(-len(weight) // 4), 4).ravel()[: len(weight)]
        keys[weight == 0], keys[first] = np.iinfo(np.uint64).max, 0
        while size < len(some):
            yield Pool(keys, size, size // POOL_SHARE)
            size *= 2
    yield Pool(keys, len(weight), m)


def accepted(state: Residual, weight: Array, stream: Stream) -> tuple[Array, Array]:
    """Proposals by the residual's diagonal, thinned to the law of one at a time, and the root of
    their block."""
    total = np.cumsum(weight * state.diag)
    u = uniforms(stream, 0, PROPOSALS, 2)
    rows = drawn(total, u[:, 0])
    least = np.maximum(u[:, 1] * state.diag[rows], state.floor[rows])
    kept, root = above(state.block(rows), least, state.F.shape[1] - len(state.pivots))
    return rows[kept], root
