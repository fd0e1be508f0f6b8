"""Exact SVMs: one block for few rows, rounds of blocks for many, from the duals of some of them, and a path where these are not enough."""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.models.svm import blocks
from mercer.models.svm.blocks import Solver
from mercer.models.svm.interior import RANK, inner_start
from mercer.models.svm.problem import Box, Duals, certified, found, started
from mercer.operators.cache import Columns
from mercer.operators.tiled import KernelRows
from mercer.ops import kernel_rows, smo
from mercer.ops.philox import Stream, permutation
from mercer.ops.threads import n_threads, single_blas

FEWEST = 256  # duals of a block, however little memory there is
PATIENCE = 60  # rounds before a path
PART, ROUGH = 3, 0.1  # one row in so many is solved first, to this tolerance


def solve(
    rows: KernelRows, box: Box, tol: float, most: int = 1000, *, limit: float = 1e9, start: Array | None = None,
    columns: Columns | None = None,
) -> Duals:  # fmt: skip
    """The duals of a box problem; `columns` may hold the kernel rows of other problems over the same rows.

    >>> from mercer.inputs import Table
    >>> from mercer.kernels import Linear
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> m = solve(KernelRows(Linear(), Table(X)), Box(y, np.minimum(y, 0), np.maximum(y, 0)), 1e-6)
    >>> m.b, round(m.intercept, 6)
    (array([ 0. , -0.5,  0.5,  0. ]), -2.0)
    """
    return settled(rows, box, solved(rows, box, tol, most, limit, start, columns), tol, most, limit)


def solved(
    rows: KernelRows, box: Box, tol: float, most: int, limit: float, start: Array | None = None, columns: Columns | None = None
) -> Duals:  # fmt: skip
    """The same with a gap that does not count rounding."""
    if rows.n <= blocks.WHOLE:
        return whole(rows.square(), box, tol, most, start)
    own, largest = columns is None, block_size(limit, rows.dtype.itemsize)
    start = begun(rows, box, max(tol, ROUGH), limit) if own and start is None else start
    kept = cache(rows, limit) if columns is None else columns

    def run(box: Box, b: Array, most: int) -> Duals:
        return Solver(rows, box, tol, columns=kept, start=b, shrinks=own, largest=largest).run(most)

    def inner(box: Box) -> tuple[Array, bool] | None:
        every, rank = np.arange(rows.n), int(np.clip(limit / (32.0 * rows.n), 1, RANK))
        return inner_start(lambda j: rows.wide.block(every, np.array([j]))[:, 0], rows.diag, box, rank)

    return by_path(run, box, rows.diag, started(box, start), most, PATIENCE, inner)


def settled(rows: KernelRows, box: Box, found: Duals, tol: float, most: int, limit: float, index: Array | None = None) -> Duals:
    """With a gap that counts rounding; where that of float32 is what keeps it open, solved on in float64."""
    found = certified(rows, box, found, index)
    if found.relative <= tol or found.rounding < 0.5 * found.gap or rows.wide is rows:
        return found
    return solve(rows.wide if index is None else rows.wide.pick(index), box, tol, most, limit=limit, start=found.b)


def begun(rows: KernelRows, box: Box, tol: float, limit: float) -> Array | None:
    """Duals to start from: those of some of the rows, which find most of what matters at a small part of the price.

    None where the sum of all duals is told: that of some would be another.
    """
    if box.total:
        return None
    some, b = np.sort(permutation(Stream(0), rows.n)[: rows.n // PART]), np.zeros(rows.n)
    part = replace(box, t=box.t[some], lo=box.lo[some], hi=box.hi[some], ridge=None if box.ridge is None else box.ridge[some])
    b[some] = solved(rows.pick(some), part, tol, PATIENCE, limit).b
    return b


def block_size(limit: float, itemsize: int) -> int:
    """The most duals of a block: two of them take at most a quarter of the limit, but they are never fewer than 256.

    >>> block_size(1e9, 4), block_size(1e8, 8), block_size(0, 8)
    (4096, 1250, 256)
    """
    return int(np.clip(np.sqrt(limit / (8 * itemsize)), FEWEST, blocks.MOST))


def block_bytes(limit: float, itemsize: int) -> float:
    """Of two blocks: that of a round, and what it takes from the last one."""
    return 2.0 * itemsize * block_size(limit, itemsize) ** 2


def cache(rows: KernelRows, limit: float) -> Columns:
    """The kernel rows that are kept beside the blocks."""
    return Columns(rows, max(limit - block_bytes(limit, rows.dtype.itemsize), 0.0))


def held(n: int, made: float, problems: int, limit: float, itemsize: int) -> float:
    """Bytes of kernel values: one matrix a thread up to 2,048 rows, else blocks and the rows that were made and kept."""
    if n <= blocks.WHOLE:
        return float(itemsize) * n * n * min(problems, n_threads() + 1)
    return min(block_bytes(limit, itemsize) + made * itemsize, max(limit, block_bytes(limit, itemsize)))


STEPS = 20_000  # between two looks at the gap, at least
LOOKS = 5  # such looks before a path


@single_blas()
def whole(K: Array, box: Box, tol: float, most: int, start: Array | None = None) -> Duals:
    """The duals of few rows as one block: K (n, n) with its columns padded to lanes, whose diagonal gets the ridge."""
    diagonal = K.diagonal().astype(np.float64)

    def run(box: Box, b: Array, most: int) -> Duals:
        return _descended(K, diagonal, box, tol, most, b)

    def inner(box: Box) -> tuple[Array, bool] | None:
        K[np.arange(len(K)), np.arange(len(K))] = diagonal
        return inner_start(lambda j: K[:, j].astype(np.float64), diagonal, box, eps=float(np.finfo(K.dtype).eps))

    return by_path(run, box, diagonal, started(box, start), most, LOOKS, inner)


def _descended(K: Array, diagonal: Array, box: Box, tol: float, most: int, b: Array) -> Duals:
    """Steps from these duals, with a look at the gap after every so many."""
    n, shape, every, ridge = len(K), (-1, smo.LANE), np.arange(len(K)), np.zeros(len(K)) if box.ridge is None else box.ridge
    K[every, every] = diagonal + ridge
    b, G, change, slack = b.copy(), np.zeros(K.shape[1]), np.empty(n), tol * box.unit
    G[:n] = -box.t
    given = np.flatnonzero(b)
    kernel_rows.add_rows(K, given, b[given], G)
    box, r, steps, rise, fall = replace(box, ridge=ridge), 0, 0, np.empty(n), np.empty(n)
    root = np.sqrt(np.maximum(diagonal, 0.0))
    go = smo.pairs if box.bias else smo.singles
    while True:
        if smo.snap(b, box.lo, box.hi, change):
            kernel_rows.add_rows(K, np.flatnonzero(change), change[change != 0], G)
        smo.gates(b, box.lo, box.hi, box.e, rise, fall)
        result = found(box, b, G[:n], rise + G[:n], fall + G[:n], tol, slack, (r, steps, n), root)
        if result.converged or r >= most:
            return result
        slack, r = slack / 10 if result.violation <= slack else slack, r + 1
        steps += go(K.reshape(n, *shape), G.reshape(shape), b, box.lo, box.hi, box.e, slack, max(10 * n, STEPS))


RISE, LONGEST = math.sqrt(10.0), 30  # of C from one problem to the next, and the most that rise so, before the last

Run = Callable[[Box, Array, int], Duals]  # a problem, duals to start from, and rounds
Inner = Callable[[Box], "tuple[Array, bool] | None"]  # the duals of an interior-point method, and whether its kernel was exact


def by_path(run: Run, box: Box, diagonal: Array, start: Array, most: int, patience: int, inner: Inner) -> Duals:
    """`run`, and where it has not ended after `patience` rounds, from inside, or over a path that ends at the same problem.

    From far away, steps of two duals zigzag where C k(x, x) is large, as in a linear kernel of few columns. Kernels of low rank are
    then solved by an interior-point method; else, from the duals of a smaller C, which are nearly in proportion, steps do not.
    """
    found = run(box, start, min(most, patience))
    if found.converged or found.rounds >= most:
        return found
    if (within := inner(box)) is not None:
        found, exact = _from_inside(run, box, found, within[0], min(most - found.rounds, patience)), within[1]
        if found.converged or found.rounds >= most:
            return found
        if exact:  # all that is left is the rounding of K
            return replace(found, ended="rounding")
    shares = path(box, diagonal)
    last = _risen(run, box, shares, most - found.rounds, patience) if shares else run(box, found.b, most - found.rounds)
    best = last if last.converged or last.gap <= found.gap else found
    return replace(best, rounds=found.rounds + last.rounds, steps=found.steps + last.steps, made=max(found.made, last.made))


def _from_inside(run: Run, box: Box, before: Duals, b: Array, patience: int) -> Duals:
    """The best of what was found before, of the duals from inside, and of steps from these."""
    first = run(box, b, 0)
    after = first if first.converged else run(box, b, patience)
    close = any(m.gap < abs(m.objective) for m in (before, first, after))  # else no gap says anything
    best = after if after.converged else min(before, first, after, key=lambda m: m.gap if close else m.objective)
    rounds, steps = before.rounds + after.rounds + 1, before.steps + after.steps
    return replace(best, rounds=rounds, steps=steps, made=max(before.made, after.made))


def path(box: Box, diagonal: Array) -> list[float]:
    """The shares of C that lead to 1, from where C k(x, x) is of the size of the targets; none where that sum is fixed.

    >>> box = Box(np.array([1.0, -1.0]), np.array([0.0, -10.0]), np.array([10.0, 0.0]))
    >>> [round(s, 3) for s in path(box, np.ones(2))]
    [0.1, 0.316, 1.0]
    """
    size = float(np.abs(box.t).max())
    if size == 0 or box.total != 0:
        return []
    steep = box.C * float(np.abs(diagonal).max()) / size
    k = math.ceil(2 * math.log10(steep) - 1e-9) if steep > 1 else 0
    return [RISE**-i for i in range(k, max(k - LONGEST, 0), -1)] + [1.0] if k else []


def _risen(run: Run, box: Box, shares: list[float], most: int, patience: int) -> Duals:
    """The last problem of a path; every other has `patience` rounds."""
    now, b, rounds, steps = box.scaled(shares[0]), np.zeros(len(box.t)), 0, 0
    for share, following in zip(shares, [*shares[1:], None], strict=True):
        room = most - rounds if following is None else min(patience, (most - rounds) // 2)
        found = run(now, b, room)
        rounds, steps = rounds + found.rounds, steps + found.steps
        if following is not None:
            after = box.scaled(following)
            b = np.clip(found.b * stretch(found, now, after, following / share), after.lo, after.hi)
            now = after
    return replace(found, rounds=rounds, steps=steps)


def stretch(found: Duals, now: Box, after: Box, most: float) -> float:
    """The factor from 1 to `most` by which duals best meet the next problem: its objective along them is a parabola.

    Duals at their bounds rise with C; those of separated rows stay.
    """
    b = found.b
    gain = float(now.t @ b) - now.e * float(np.abs(b).sum())
    bend = 2 * (found.objective + gain)
    if now.ridge is not None and after.ridge is not None:
        bend -= float((now.ridge - after.ridge) @ np.square(b))
    return min(max(gain / bend, 1.0), most) if bend > 0 else most
