"""Exact SVMs: one block for few rows, rounds of blocks for many, from the duals of some of them, and a path where these are not enough."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.learners import smo_blocks
from mercer.learners.smo_blocks import Solver
from mercer.learners.smo_box import Box, Duals, started
from mercer.learners.smo_certify import certified
from mercer.learners.smo_columns import Columns
from mercer.learners.smo_interior import RANK, inner_start
from mercer.learners.smo_path import by_path
from mercer.learners.smo_rows import KernelRows
from mercer.learners.smo_whole import whole
from mercer.ops.philox import Stream, permutation
from mercer.ops.threads import n_threads

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
    if rows.n <= smo_blocks.WHOLE:
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
    return int(np.clip(np.sqrt(limit / (8 * itemsize)), FEWEST, smo_blocks.MOST))


def block_bytes(limit: float, itemsize: int) -> float:
    """Of two blocks: that of a round, and what it takes from the last one."""
    return 2.0 * itemsize * block_size(limit, itemsize) ** 2


def cache(rows: KernelRows, limit: float) -> Columns:
    """The kernel rows that are kept beside the blocks."""
    return Columns(rows, max(limit - block_bytes(limit, rows.dtype.itemsize), 0.0))


def held(n: int, made: float, problems: int, limit: float, itemsize: int) -> float:
    """Bytes of kernel values: one matrix a thread up to 2,048 rows, else blocks and the rows that were made and kept."""
    if n <= smo_blocks.WHOLE:
        return float(itemsize) * n * n * min(problems, n_threads() + 1)
    return min(block_bytes(limit, itemsize) + made * itemsize, max(limit, block_bytes(limit, itemsize)))
