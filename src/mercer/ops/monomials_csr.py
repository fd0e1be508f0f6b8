"""The monomials of sparse rows: only the products of a row's nonzeros, planned in each row as
across all columns."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.monomials import MAX_MONOMIALS, Program, fitting, reference_expand
from mercer.ops.monomials_loops import count_csr, expand_csr_rows
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

TILE_ENTRIES = 1 << 17  # of output for one task
COUNTED_ROWS = 1 << 12  # to count in one task


def expand_csr(program: Program, X: Any, weights: Array | None = None) -> Any:
    """F (n, D), CSR with sorted indices: the monomials of each row of the CSR matrix X, each times
    its weight.

    A zero of X, stored or not, makes no entry.

    >>> import scipy.sparse as sp
    >>> from mercer.ops.monomials import plan
    >>> expand_csr(plan(3, 2), sp.csr_array([[0.0, 2.0, 3.0]])).toarray()
    array([[1., 0., 2., 3., 0., 0., 0., 4., 6., 9.]])
    """
    w, rows = fitting(program, X, weights), _rows(X)
    indptr = _indptr(program, rows)
    index = np.int32 if max(program.D, indptr[-1]) <= np.iinfo(np.int32).max else np.int64
    data, indices = np.empty(indptr[-1], X.dtype), np.empty(indptr[-1], index)
    given = program.first, program.parent, program.caps, program.skip, program.ordered, *rows
    results = w, indptr, indices, data
    parallel_map(
        lambda tile: expand_csr_rows(*given, tile.start, tile.stop, *results), _tiles(indptr)
    )
    return _canonical(type(X), data, indices, indptr.astype(index), (X.shape[0], program.D))


def reference_expand_csr(program: Program, X: Any, weights: Array | None = None) -> Any:
    """`expand_csr` through dense arrays; products that underflow make no entry."""
    return type(X)(reference_expand(program, X.toarray(), weights))


def _rows(X: Any) -> tuple[Array, Array, Array]:
    """Row pointers, sorted columns and values; in 64 bits, so that Numba compiles few
    signatures."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int64, copy=False), X.data


def _indptr(program: Program, rows: tuple[Array, Array, Array]) -> Array:
    indptr = np.zeros(len(rows[0]), np.int64)
    given = program.degree, program.caps, program.skip, program.ordered, *rows
    parallel_map(
        lambda tile: count_csr(*given, tile.start, tile.stop, indptr),
        cuts(len(indptr) - 1, COUNTED_ROWS),
    )
    if indptr.sum(dtype=float) > MAX_MONOMIALS:
        raise MemoryError(
            "The monomials of these rows have more than 2^62 nonzeros: lower the degree."
        )
    return np.cumsum(indptr, out=indptr)


def _tiles(indptr: Array) -> list[slice]:
    """The rows, in runs of about equal output."""
    stops = np.searchsorted(indptr, np.arange(TILE_ENTRIES, indptr[-1], TILE_ENTRIES))
    edges = np.unique(np.concatenate([[0], stops, [len(indptr) - 1]]))
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


def _canonical(
    kind: Any, data: Array, indices: Array, indptr: Array, shape: tuple[int, int]
) -> Any:
    F = kind((data, indices, indptr), shape=shape)
    F.has_canonical_format = True  # known, so that SciPy need not look
    return F
