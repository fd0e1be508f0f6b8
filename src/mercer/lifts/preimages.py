"""The way back from a linear map: the shortest rows whose images are nearest to given ones, by
pieces of its matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import pinvh

from mercer.inputs import Array, Matrix
from mercer.ops.tiles import cuts

Columns = Callable[[int, int], Matrix]  # B[:, start:stop], of a matrix B (m, d)

PIECE_BYTES = 32 << 20  # of B at a time, were it dense
MAX_UNKNOWNS = 1 << 15  # of the system, whose matrix takes 8 GB then


def preimages(columns: Columns, d: int, F: Matrix) -> Array:
    """F pinv(B)' (n, d) for rows F (n, m), by (B B')^+ (m, m) or (B'B)^+ (d, d), the smaller.

    >>> B = np.array([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    >>> preimages(lambda start, stop: B[:, start:stop], 3, np.array([[2.0, 4.0]]))
    array([[1., 2., 2.]])
    """
    m = F.shape[1]
    if min(m, d) > MAX_UNKNOWNS:
        raise ValueError(
            f"inverse_transform solves a system of min(m, d) unknowns, here {min(m, d)}, and has room for {MAX_UNKNOWNS}; lower n_features."
        )
    pieces = cuts(d, max(1, PIECE_BYTES // (8 * m)))
    F = F.astype(np.float64)
    return _over_rows(columns, pieces, F) if m <= d else _over_columns(columns, pieces, F, d)


def _over_rows(columns: Columns, pieces: list[slice], F: Matrix) -> Array:
    """F (B B')^+ B."""
    gram = np.zeros((F.shape[1], F.shape[1]))
    for p in pieces:
        B = columns(p.start, p.stop)
        gram += _dense(B @ B.T)
    V = _dense(F @ pinvh(gram))
    return np.hstack([_dense(V @ columns(p.start, p.stop)) for p in pieces])


def _over_columns(columns: Columns, pieces: list[slice], F: Matrix, d: int) -> Array:
    """F B (B'B)^+."""
    gram, mixed = np.zeros((d, d)), np.zeros((F.shape[0], d))
    for i, p in enumerate(pieces):
        B = columns(p.start, p.stop)
        mixed[:, p] = _dense(F @ B)
        for q in pieces[i:]:
            gram[p, q] = _dense(B.T @ columns(q.start, q.stop))
            gram[q, p] = gram[p, q].T
    return mixed @ pinvh(gram)


def _dense(A: Matrix) -> Array:
    return np.asarray(A.toarray() if sp.issparse(A) else A)
