"""Dual problems solved: as one block for few rows, by rounds of blocks for many, and along a path
where these are not enough."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.models.svm import blocks
from mercer.models.svm.blocks import BlockSolver, KernelRows
from mercer.models.svm.device import DeviceRows
from mercer.models.svm.gram import GramMatrix, square
from mercer.models.svm.interior import RANK, interior_start
from mercer.models.svm.problem import (
    BLOCKS,
    FEW_ROWS,
    ON_GPU,
    WHOLE,
    DualProblem,
    DualSolution,
    certified,
    evaluate,
    feasible_start,
)
from mercer.operators import TiledOperator
from mercer.operators.cache import RowCache
from mercer.ops import kernel_rows, smo
from mercer.ops.philox import Stream, permutation
from mercer.ops.threads import n_threads, single_blas

LOG = logger("svm")

SMALLEST_BLOCK = 256  # duals of a block, however little memory there is
PATIENCE = 60  # rounds before a path
PART, ROUGH = 3, 0.1  # one row in so many is solved first, to this tolerance
FEW = 8  # rows for each dual that a third of them found, from which on not all values are computed
STEPS = 20_000  # of one block, between two looks at the gap, at least
LOOKS = 5  # such looks before a path
# of C from one problem of a path to the next, and the most that rise so, before the last
RISE, LONGEST = math.sqrt(10.0), 30


def solve(
    op: TiledOperator,
    problem: DualProblem,
    tol: float,
    most: int = 1000,
    *,
    memory: float = 1e9,
    start: Array | None = None,
    columns: KernelRows | None = None,
) -> DualSolution:
    """The duals of a problem; `columns` may hold the kernel rows of other problems over the same
    rows.

    >>> from mercer.inputs import Table
    >>> from mercer.kernels import Linear
    >>> from mercer.operators import TileOperator
    >>> X, y = np.array([[0.0], [1.0], [3.0], [4.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> m = solve(TileOperator(Linear(), Table(X)), DualProblem(y, np.minimum(y, 0), np.maximum(y, 0)), 1e-6)
    >>> m.b, round(m.intercept, 6)
    (array([ 0. , -0.5,  0.5,  0. ]), -2.0)
    """
    found = solve_uncertified(op, problem, tol, most, memory, start, columns)
    return refined(op, problem, found, tol, most, memory)


def solve_uncertified(
    op: TiledOperator,
    problem: DualProblem,
    tol: float,
    most: int,
    memory: float,
    start: Array | None = None,
    columns: KernelRows | None = None,
) -> DualSolution:
    """The same with a gap that does not count rounding."""
    if op.shape[0] <= blocks.ONE_BLOCK:
        K = columns.K if isinstance(columns, GramMatrix) else square(op)
        return solve_one_block(K, problem, tol, most, start)
    own, largest, few = columns is None, block_size(memory, op.dtype.itemsize), False
    if own and start is None and not op.gpu and gram_fits(op.shape[0], memory, op.dtype.itemsize):
        start = initial_duals(op, problem, max(tol, ROUGH), memory)
        few = start is not None and few_rows(start)
    kept = kernel_rows_of(op, memory, few=few) if columns is None else columns
    gram = not isinstance(kept, RowCache)  # all values are there, or cost nothing to speak of
    if start is None and (own or gram):
        start = initial_duals(op, problem, max(tol, ROUGH), memory, kept)

    def run(problem: DualProblem, b: Array, most: int) -> DualSolution:
        return BlockSolver(
            op, problem, tol, columns=kept, start=b, shrinks=own and not gram, largest=largest
        ).run(most)

    def inner(problem: DualProblem) -> tuple[Array, bool] | None:
        every, rank = np.arange(op.shape[0]), int(np.clip(memory / (32.0 * op.shape[0]), 1, RANK))
        return interior_start(
            lambda j: op.wide.block(every, np.array([j]))[:, 0], op.diag(), problem, rank
        )

    found = solve_by_path(
        run, problem, op.diag(), feasible_start(problem, start), most, PATIENCE, inner
    )
    way = WHOLE if isinstance(kept, GramMatrix) else ON_GPU
    return replace(found, way=way if gram else FEW_ROWS if few else BLOCKS)


def refined(
    op: TiledOperator,
    problem: DualProblem,
    found: DualSolution,
    tol: float,
    most: int,
    memory: float,
    index: Array | None = None,
) -> DualSolution:
    """With a gap that counts rounding; where that of float32 is what keeps it open, solved on in
    float64."""
    found = certified(op, problem, found, index)
    if found.relative <= tol or found.rounding < 0.5 * found.gap or op.wide is op:
        return found
    return solve(
        op.wide if index is None else op.wide.restrict(index),
        problem,
        tol,
        most,
        memory=memory,
        start=found.b,
    )


def initial_duals(
    op: TiledOperator,
    problem: DualProblem,
    tol: float,
    memory: float,
    kept: KernelRows | None = None,
) -> Array | None:
    """Duals to start from: those of some of the rows, which find most of what matters at a small
    part of the price.

    None where the sum of all duals is fixed: that of some would be another.
    """
    if problem.total:
        return None
    some, b = (
        np.sort(permutation(Stream(0), op.shape[0])[: op.shape[0] // PART]),
        np.zeros(op.shape[0]),
    )
    columns = None if kept is None or isinstance(kept, RowCache) else kept.restrict(some)
    b[some] = solve_uncertified(
        op.restrict(some), problem.part(some), tol, PATIENCE, memory, columns=columns
    ).b
    return b


def block_size(memory: float, itemsize: int) -> int:
    """The most duals of a block: two of them take at most a quarter of the limit, but they are
    never fewer than 256.

    >>> block_size(1e9, 4), block_size(1e8, 8), block_size(0, 8)
    (4096, 1250, 256)
    """
    return int(np.clip(np.sqrt(memory / (8 * itemsize)), SMALLEST_BLOCK, blocks.MAX_BLOCK))


def block_bytes(memory: float, itemsize: int) -> float:
    """Of two blocks: that of a round, and what it takes from the last one."""
    return 2.0 * itemsize * block_size(memory, itemsize) ** 2


def gram_fits(n: int, memory: float, itemsize: int) -> bool:
    """Whether all kernel values of n rows are computed once and kept, beside the block of a round.

    >>> gram_fits(12_000, 1e9, 4), gram_fits(12_000, 1e9, 8)
    (True, False)
    """
    return GramMatrix.bytes(n, itemsize) + block_bytes(memory, itemsize) / 2 <= memory


def few_rows(start: Array) -> bool:
    """Whether duals found on a third of the rows let expect that few kernel rows are asked for at
    all: some 2.4 for each of them that is not zero, at two thirds of the speed of a triangle.

    >>> few_rows(np.r_[np.ones(100), np.zeros(900)]), few_rows(np.ones(1000))
    (True, False)
    """
    return FEW * int(np.count_nonzero(start)) <= len(start)


def kernel_rows_of(op: TiledOperator, memory: float, *, few: bool = False) -> KernelRows:
    """The kernel rows that are kept beside the blocks: all of them where they fit, unless few are
    expected; none of them where products are taken on a GPU."""
    if op.gpu:
        return DeviceRows(op)
    itemsize = op.dtype.itemsize
    if not few and gram_fits(op.shape[0], memory, itemsize):
        return GramMatrix.of(op)
    return RowCache(op, max(memory - block_bytes(memory, itemsize), 0.0))


def kernel_bytes(n: int, made: float, problems: int, memory: float, itemsize: int) -> float:
    """Bytes of kernel values: one matrix a thread up to 2,048 rows, all of it and a block where
    that fits, else blocks and the rows that were made and kept."""
    if n <= blocks.ONE_BLOCK:
        return float(itemsize) * n * n * min(problems, n_threads() + 1)
    rows = block_bytes(memory, itemsize) + made * itemsize
    if gram_fits(n, memory, itemsize):
        return min(GramMatrix.bytes(n, itemsize) + block_bytes(memory, itemsize) / 2, rows)
    return min(rows, max(memory, block_bytes(memory, itemsize)))


@single_blas()
def solve_one_block(
    K: Array, problem: DualProblem, tol: float, most: int, start: Array | None = None
) -> DualSolution:
    """The duals of few rows as one block: K (n, n) with its columns padded to lanes, whose diagonal
    gets the ridge."""
    diagonal = K.diagonal().astype(np.float64)

    def run(problem: DualProblem, b: Array, most: int) -> DualSolution:
        return _descend(K, diagonal, problem, tol, most, b)

    def inner(problem: DualProblem) -> tuple[Array, bool] | None:
        K[np.arange(len(K)), np.arange(len(K))] = diagonal
        return interior_start(
            lambda j: K[:, j].astype(np.float64),
            diagonal,
            problem,
            eps=float(np.finfo(K.dtype).eps),
        )

    m = solve_by_path(run, problem, diagonal, feasible_start(problem, start), most, LOOKS, inner)
    return replace(m, way=WHOLE)


def _descend(
    K: Array, diagonal: Array, problem: DualProblem, tol: float, most: int, b: Array
) -> DualSolution:
    """Steps from these duals, with a look at the gap after every so many."""
    n, shape, every, ridge = (
        len(K),
        (-1, smo.LANE),
        np.arange(len(K)),
        np.zeros(len(K)) if problem.ridge is None else problem.ridge,
    )
    K[every, every] = diagonal + ridge
    b, G, change, slack = b.copy(), np.zeros(K.shape[1]), np.empty(n), tol * problem.unit
    G[:n] = -problem.t
    given = np.flatnonzero(b)
    if len(given):  # a loop that is not called is not compiled
        kernel_rows.add_rows(K, given, b[given], G)
    problem, r, steps, up, down = replace(problem, ridge=ridge), 0, 0, np.empty(n), np.empty(n)
    root = np.sqrt(np.maximum(diagonal, 0.0))
    go, shape3 = smo.pairs if problem.bias else smo.singles, (n, *shape)
    bounds = problem.lo, problem.hi, problem.e
    if most and not len(given):  # nothing is known of duals that are all zero
        r = 1
        steps = go(K.reshape(shape3), G.reshape(shape), b, *bounds, slack, max(10 * n, STEPS))
    while True:
        if smo.snap(b, problem.lo, problem.hi, change):
            kernel_rows.add_rows(K, np.flatnonzero(change), change[change != 0], G)
        smo.gates(b, problem.lo, problem.hi, problem.e, up, down)
        result = evaluate(
            problem,
            b,
            G[:n],
            up + G[:n],
            down + G[:n],
            tol=tol,
            slack=slack,
            work=(r, steps, n),
            root=root,
        )
        LOG.info("look %d at %d duals: relative gap %.1e", r, n, result.relative)
        if result.converged or r >= most:
            return result
        slack, r = slack / 10 if result.violation <= slack else slack, r + 1
        steps += go(K.reshape(shape3), G.reshape(shape), b, *bounds, slack, max(10 * n, STEPS))


# hard problems
# a problem, duals to start from, and rounds
Run = Callable[[DualProblem, Array, int], DualSolution]
# the duals of an interior-point method, and whether its kernel was exact
Inner = Callable[[DualProblem], "tuple[Array, bool] | None"]


def solve_by_path(
    run: Run,
    problem: DualProblem,
    diagonal: Array,
    start: Array,
    most: int,
    patience: int,
    inner: Inner,
) -> DualSolution:
    """`run`, and where it has not ended after `patience` rounds, from inside, or over a path that
    ends at the same problem.

    From far away, steps of two duals zigzag where C k(x, x) is large, as in a linear kernel of few
    columns. Kernels of low rank are then solved by an interior-point method; else, from the duals
    of a smaller C, which are nearly in proportion, steps do not.
    """
    found = run(problem, start, min(most, patience))
    if found.converged or found.rounds >= most:
        return found
    if (within := inner(problem)) is not None:
        found, exact = (
            _from_inside(run, problem, found, within[0], min(most - found.rounds, patience)),
            within[1],
        )
        if found.converged or found.rounds >= most:
            return found
        if exact:  # all that is left is the rounding of K
            return replace(found, ended="rounding")
    shares = path(problem, diagonal)
    last = (
        _along_path(run, problem, shares, most - found.rounds, patience)
        if shares
        else run(problem, found.b, most - found.rounds)
    )
    best = last if last.converged or last.gap <= found.gap else found
    return replace(
        best,
        rounds=found.rounds + last.rounds,
        steps=found.steps + last.steps,
        made=max(found.made, last.made),
    )


def _from_inside(
    run: Run, problem: DualProblem, before: DualSolution, b: Array, patience: int
) -> DualSolution:
    """The best of what was found before, of the duals from inside, and of steps from these."""
    first = run(problem, b, 0)
    after = first if first.converged else run(problem, b, patience)
    close = any(
        m.gap < abs(m.objective) for m in (before, first, after)
    )  # else no gap says anything
    best = (
        after
        if after.converged
        else min(before, first, after, key=lambda m: m.gap if close else m.objective)
    )
    rounds, steps = before.rounds + after.rounds + 1, before.steps + after.steps
    return replace(best, rounds=rounds, steps=steps, made=max(before.made, after.made))


def path(problem: DualProblem, diagonal: Array) -> list[float]:
    """The shares of C that lead to 1, from where C k(x, x) is of the size of the targets; none
    where that sum is fixed.

    >>> problem = DualProblem(np.array([1.0, -1.0]), np.array([0.0, -10.0]), np.array([10.0, 0.0]))
    >>> [round(s, 3) for s in path(problem, np.ones(2))]
    [0.1, 0.316, 1.0]
    """
    size = float(np.abs(problem.t).max())
    if size == 0 or problem.total != 0:
        return []
    steep = problem.C * float(np.abs(diagonal).max()) / size
    k = math.ceil(2 * math.log10(steep) - 1e-9) if steep > 1 else 0
    return [RISE**-i for i in range(k, max(k - LONGEST, 0), -1)] + [1.0] if k else []


def _along_path(
    run: Run, problem: DualProblem, shares: list[float], most: int, patience: int
) -> DualSolution:
    """The last problem of a path; every other has `patience` rounds."""
    now, b, rounds, steps = problem.scaled(shares[0]), np.zeros(len(problem.t)), 0, 0
    for share, following in zip(shares, [*shares[1:], None], strict=True):
        room = most - rounds if following is None else min(patience, (most - rounds) // 2)
        found = run(now, b, room)
        rounds, steps = rounds + found.rounds, steps + found.steps
        if following is not None:
            after = problem.scaled(following)
            b = np.clip(found.b * stretch(found, now, after, following / share), after.lo, after.hi)
            now = after
    return replace(found, rounds=rounds, steps=steps)


def stretch(found: DualSolution, now: DualProblem, after: DualProblem, most: float) -> float:
    """The factor from 1 to `most` by which duals best meet the next problem: its objective along
    them is a parabola.

    Duals at their bounds rise with C; those of separated rows stay.
    """
    b = found.b
    gain = float(now.t @ b) - now.e * float(np.abs(b).sum())
    bend = 2 * (found.objective + gain)
    if now.ridge is not None and after.ridge is not None:
        bend -= float((now.ridge - after.ridge) @ np.square(b))
    return min(max(gain / bend, 1.0), most) if bend > 0 else most
