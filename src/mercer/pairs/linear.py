"""Maps of rows: linear ones, u = S x for a matrix (d', d) or a vector of d factors, one a column, and
functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, Table, table
from mercer.ops.frozen import FrozenArray

BLOCK_ROWS = 16  # of a product, of which every one is summed alike


def full(S: FrozenArray) -> Array:
    """The matrix, also of a diagonal.

    >>> full(FrozenArray([2.0, 3.0]))
    array([[2., 0.],
           [0., 3.]])
    """
    return S.values if S.values.ndim == 2 else np.diag(S.values)


def width_in(S: FrozenArray) -> int:
    """The columns of the rows that it maps."""
    return int(S.shape[-1])


def through(rows: Matrix, S: FrozenArray, centre: Array | None = None) -> Matrix:
    """S (x - centre) of every row, summed in float64 and as precise as the rows; sparse rows stay
    so under factors."""
    if rows.shape[1] != width_in(S):
        raise ValueError(
            f"the map has {width_in(S)} columns, but X has {rows.shape[1]}; give a matrix with one column for each column of X."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        out = _applied(rows if centre is None else rows - centre, S).astype(rows.dtype, copy=False)
    if not np.isfinite(out.data if sp.issparse(out) else out).all():
        raise ValueError(
            f"the map sends rows beyond all numbers of {rows.dtype}; scale X or the matrix down."
        )
    return out


def _applied(rows: Matrix, S: FrozenArray) -> Matrix:
    rows = rows.astype(np.float64, copy=False)
    if S.values.ndim == 1:
        return (rows @ sp.diags_array(S.values)).tocsr() if sp.issparse(rows) else rows * S.values
    if sp.issparse(rows):
        return np.ascontiguousarray(rows @ S.values.T)
    # BLAS sums the last rows of an odd number in another order: equal rows shall stay equal
    n, spare = len(rows), -len(rows) % BLOCK_ROWS
    rows = np.concatenate([rows, np.zeros((spare, rows.shape[1]))]) if spare else rows
    return np.ascontiguousarray((rows @ S.values.T)[:n])


def mapped_rows(rows: Table, S: FrozenArray, centre: Array | None = None) -> Table:
    """The same as a table, whose columns have no names."""
    if rows.items:
        raise ValueError("mapped(S) takes rows of numbers, got items; use warped(f) for these.")
    return Table(through(rows.data, S, centre))


def after(S: FrozenArray, first: FrozenArray) -> FrozenArray:
    """The map `first` and then S, as one.

    >>> after(FrozenArray([[1.0, 1.0]]), FrozenArray([2.0, 3.0]))
    [[2.0, 3.0]]
    """
    if width_in(S) != len(first):
        raise ValueError(
            f"the map has {width_in(S)} columns, but the one inside it gives {len(first)}; give a matrix with one column for each."
        )
    if S.values.ndim == 1:
        return FrozenArray((S.values * first.values.T).T)
    return FrozenArray(
        S.values * first.values if first.values.ndim == 1 else S.values @ first.values
    )


def picked(S: FrozenArray, columns: Sequence[int | str]) -> FrozenArray:
    """Some columns of what the map gives, by position.

    >>> picked(FrozenArray([2.0, 3.0]), [1])
    [[0.0, 3.0]]
    """
    at = Table(np.empty((0, len(S))))
    return FrozenArray(full(S)[[at.position(c) for c in columns]])


def mapped(rows: Table, f: Callable[[Any], Any]) -> Table:
    """f(rows) as a table; one column where f gives one number a row."""
    out = f(rows.data)
    if len(out) != len(rows) if not sp.issparse(out) else out.shape[0] != len(rows):
        raise ValueError(
            f"warped's f must return one row for each of {len(rows)} rows; it returned {np.shape(out)}."
        )
    return table(
        np.reshape(out, (len(rows), -1)) if isinstance(out, np.ndarray) and out.ndim == 1 else out,
        "f(X)",
    )
