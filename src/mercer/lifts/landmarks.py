"""The choice of landmarks: which rows of a kernel matrix stand for all of them, and the Cholesky
factor of those that count.

Every choice is a sequence that does not depend on how many landmarks are asked for: a larger number
under the same seed adds landmarks to the smaller one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from mercer.inputs import Array, Table
from mercer.lifts.pivots import ZERO_PIVOT, rpcholesky
from mercer.lifts.residual import in_float64
from mercer.operators import Operator
from mercer.ops.philox import Stream, uniforms
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

TASK_ROWS = 1024  # of one task
PILOT_ROWS = 1000  # rows that leverage scores are estimated from


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
