"""The compiled loops of the monomials: products along the tables of a plan, for dense and for
sparse rows."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

BLOCK_ROWS = 32


@njit
def expand_rows(first: Array, parent: Array, skip: int, X: Array, w: Array, F: Array) -> None:
    """F[i] = the monomials of X[i], times w where it is not empty."""
    for i in range(X.shape[0]):
        _products(first, parent, skip, X[i], w, F[i])


@njit
def expand_columns(first: Array, parent: Array, skip: int, X: Array, w: Array, F: Array) -> None:
    """The same where the loops along a row would be short: down a few rows, which stay in the
    fastest cache."""
    for i in range(0, X.shape[0], BLOCK_ROWS):
        _products_down(first, parent, skip, X[i : i + BLOCK_ROWS], w, F[i : i + BLOCK_ROWS])


@njit
def count_csr(
    degree: int,
    caps: Array,
    skip: int,
    ordered: bool,
    pointers: Array,
    columns: Array,
    values: Array,
    begin: int,
    end: int,
    indptr: Array,
) -> None:
    """indptr[i + 1] = the number of monomials of row i, for the rows from begin to end."""
    first, parent, cols, x = _buffers(degree, pointers[begin : end + 1], values)
    for i in range(begin, end):
        m = _nonzeros(pointers[i], pointers[i + 1], columns, values, cols, x)
        indptr[i + 1] = _plan_row(caps, ordered, cols[:m], first, parent) - skip


@njit
def expand_csr_rows(
    first: Array,
    parent: Array,
    caps: Array,
    skip: int,
    ordered: bool,
    pointers: Array,
    columns: Array,
    values: Array,
    begin: int,
    end: int,
    w: Array,
    indptr: Array,
    indices: Array,
    data: Array,
) -> None:
    """The monomials of the rows from begin to end, between the places that indptr gives them."""
    none = w[:0]
    row_first, row_parent, cols, x = _buffers(first.shape[0] - 1, pointers[begin : end + 1], values)
    for i in range(begin, end):
        m = _nonzeros(pointers[i], pointers[i + 1], columns, values, cols, x)
        _plan_row(caps, ordered, cols[:m], row_first, row_parent)
        f, at = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        _products(row_first, row_parent, skip, x[:m], none, f)
        _positions(row_first, row_parent, skip, first, parent, cols[:m], at)
        for t in range(f.shape[0] if w.shape[0] > 0 else 0):
            f[t] *= w[at[t]]


@njit
def _products(first: Array, parent: Array, skip: int, x: Array, w: Array, f: Array) -> None:
    degree = first.shape[0] - 1
    if skip == 0:
        f[0] = 1
    for a in range(x.shape[0] if degree > 0 else 0):
        if first[1, a] < first[1, a + 1]:
            f[first[1, a] - skip] = x[a]
    for k in range(2, degree + 1):
        for a in range(x.shape[0]):
            start, stop, source = first[k, a] - skip, first[k, a + 1] - skip, parent[k, a] - skip
            if (
                k == degree and w.shape[0] > 0
            ):  # no other monomial needs these without their weights
                _times_weights(
                    x[a], f[source : source + stop - start], w[start:stop], f[start:stop]
                )
            elif start < stop:
                _times(x[a], f[source : source + stop - start], f[start:stop])
    for j in range(min(w.shape[0], _below_top(first, skip))):
        f[j] *= w[j]


@njit
def _products_down(first: Array, parent: Array, skip: int, X: Array, w: Array, F: Array) -> None:
    for i in range(X.shape[0] if skip == 0 else 0):
        F[i, 0] = 1
    for a in range(X.shape[1] if first.shape[0] > 1 else 0):
        for i in range(X.shape[0] if first[1, a] < first[1, a + 1] else 0):
            F[i, first[1, a] - skip] = X[i, a]
    for k in range(2, first.shape[0]):
        for a in range(X.shape[1]):
            for j in range(first[k, a], first[k, a + 1]):
                source = parent[k, a] + j - first[k, a] - skip
                for i in range(X.shape[0]):
                    F[i, j - skip] = X[i, a] * F[i, source]
    for i in range(X.shape[0]):
        for j in range(w.shape[0]):
            F[i, j] *= w[j]


@njit
def _below_top(first: Array, skip: int) -> int:
    """The number of outputs below the highest degree, or all of them where no product is formed."""
    degree = first.shape[0] - 1
    return first[degree, 0 if degree > 1 else -1] - skip if degree > 0 else 1 - skip


@njit
def _positions(
    first: Array, parent: Array, skip: int, to: Array, to_parent: Array, cols: Array, at: Array
) -> None:
    """Where a row's monomials are among all: those that begin with a column are all equally far
    from their parents."""
    degree = first.shape[0] - 1
    if skip == 0:
        at[0] = 0
    for a in range(cols.shape[0] if degree > 0 else 0):
        if first[1, a] < first[1, a + 1]:
            at[first[1, a] - skip] = to[1, cols[a]] - skip
    for k in range(2, degree + 1):
        for a in range(cols.shape[0]):
            start, stop, source = first[k, a] - skip, first[k, a + 1] - skip, parent[k, a] - skip
            if start < stop:
                _plus(
                    to[k, cols[a]] - to_parent[k, cols[a]],
                    at[source : source + stop - start],
                    at[start:stop],
                )


@njit
def _times(x: float, source: Array, target: Array) -> None:
    for t in range(target.shape[0]):  # from 0, so that Numba vectorises it
        target[t] = x * source[t]


@njit
def _times_weights(x: float, source: Array, w: Array, target: Array) -> None:
    for t in range(target.shape[0]):
        target[t] = x * source[t] * w[t]


@njit
def _plus(shift: int, source: Array, target: Array) -> None:
    step = target.dtype.type(shift)
    for t in range(target.shape[0]):
        target[t] = source[t] + step


@njit
def _plan_row(caps: Array, ordered: bool, cols: Array, first: Array, parent: Array) -> int:
    """Fill the tables of `monomials.plan` for the columns of one row; the number of monomials."""
    m, stop = cols.shape[0], 1  # so far the constant, which is in every suffix of degree 0
    for k in range(1, first.shape[0]):
        first[k, 0] = stop
        for a in range(m):
            rest = k - 1 - caps[cols[a]]
            parent[k, a] = first[k - 1, 0 if ordered else a]
            if rest >= 0 and not ordered:
                parent[k, a] += (first[rest, m] if rest > 0 else 1) - first[rest, a + 1]
            first[k, a + 1] = first[k, a] + stop - parent[k, a]
        stop = first[k, m]
    return stop


@njit
def _nonzeros(begin: int, end: int, columns: Array, values: Array, cols: Array, x: Array) -> int:
    m = 0
    for t in range(begin, end):
        if values[t] != 0:
            cols[m], x[m] = columns[t], values[t]
            m += 1
    return m


@njit
def _buffers(degree: int, pointers: Array, values: Array) -> tuple[Array, Array, Array, Array]:
    """Room for the plan, the columns and the values of the longest row."""
    longest = 0
    for i in range(pointers.shape[0] - 1):
        longest = max(longest, pointers[i + 1] - pointers[i])
    first, parent = (
        np.zeros((degree + 1, longest + 1), np.int64),
        np.zeros((degree + 1, longest), np.int64),
    )
    return first, parent, np.empty(longest, np.int64), np.empty(longest, values.dtype)
