"""The dual problem of few rows, as one block."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from mercer.inputs import Array
from mercer.learners.smo_box import Box, Duals, found, started
from mercer.learners.smo_interior import inner_start
from mercer.learners.smo_path import by_path
from mercer.ops import smo
from mercer.ops.smo_singles import singles
from mercer.ops.threads import single_blas

STEPS = 20_000  # between two looks at the gap, at least
PATIENCE = 5  # such looks before a path


@single_blas()
def whole(K: Array, box: Box, tol: float, most: int, start: Array | None = None) -> Duals:
    """The duals of few rows as one block: K (n, n) with its columns padded to lanes, whose diagonal gets the ridge."""
    diagonal = K.diagonal().astype(np.float64)

    def run(box: Box, b: Array, most: int) -> Duals:
        return _descended(K, diagonal, box, tol, most, b)

    def inner(box: Box) -> tuple[Array, bool] | None:
        K[np.arange(len(K)), np.arange(len(K))] = diagonal
        return inner_start(lambda j: K[:, j].astype(np.float64), diagonal, box, eps=float(np.finfo(K.dtype).eps))

    return by_path(run, box, diagonal, started(box, start), most, PATIENCE, inner)


def _descended(K: Array, diagonal: Array, box: Box, tol: float, most: int, b: Array) -> Duals:
    """Steps from these duals, with a look at the gap after every so many."""
    n, shape, every, ridge = len(K), (-1, smo.LANE), np.arange(len(K)), np.zeros(len(K)) if box.ridge is None else box.ridge
    K[every, every] = diagonal + ridge
    b, G, change, slack = b.copy(), np.zeros(K.shape[1]), np.empty(n), tol * box.unit
    G[:n] = -box.t
    given = np.flatnonzero(b)
    smo.add_rows(K, given, b[given], G)
    box, r, steps, rise, fall = replace(box, ridge=ridge), 0, 0, np.empty(n), np.empty(n)
    root = np.sqrt(np.maximum(diagonal, 0.0))
    go = smo.pairs if box.bias else singles
    while True:
        if smo.snap(b, box.lo, box.hi, change):
            smo.add_rows(K, np.flatnonzero(change), change[change != 0], G)
        smo.gates(b, box.lo, box.hi, box.e, rise, fall)
        result = found(box, b, G[:n], rise + G[:n], fall + G[:n], tol, slack, (r, steps, n), root)
        if result.converged or r >= most:
            return result
        slack, r = slack / 10 if result.violation <= slack else slack, r + 1
        steps += go(K.reshape(n, *shape), G.reshape(shape), b, box.lo, box.hi, box.e, slack, max(10 * n, STEPS))
