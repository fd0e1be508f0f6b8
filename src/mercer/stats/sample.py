"""A uniform sample of rows that does not depend on their order or on how they were split: the k
rows of least hash."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix

_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0x9E3779B97F4A7C15))


def mix(h: Array) -> Array:
    """A bijection of 64-bit words that leaves no pattern (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        h = (h ^ (h >> np.uint64(30))) * _MIX[0]
        h = (h ^ (h >> np.uint64(27))) * _MIX[1]
    return h ^ (h >> np.uint64(31))


def row_hashes(rows: Matrix, seed: int = 0) -> Array:
    """A 64-bit hash of every row's values; equal rows have equal hashes, dense or sparse, in
    float32 or float64.

    >>> bool(row_hashes(np.ones((1, 3)))[0] == row_hashes(np.ones((1, 3), np.float32))[0])
    True
    """
    if not sp.issparse(rows):
        total = np.zeros(len(rows), np.uint64)
        for j, column in enumerate(np.asarray(rows).T):
            total += _entries(np.full(len(column), j), column)
        return mix(total ^ np.uint64(seed))
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    sums = np.concatenate(
        [np.zeros(1, np.uint64), np.cumsum(_entries(rows.indices, rows.data), dtype=np.uint64)]
    )
    return mix((sums[rows.indptr[1:]] - sums[rows.indptr[:-1]]) ^ np.uint64(seed))


def _entries(columns: Array, values: Array) -> Array:
    """A hash of each entry and its column; 0 for zeros, so that dense and sparse rows have the same
    sum."""
    words = np.ascontiguousarray(values, np.float64).view(np.uint64)
    with np.errstate(over="ignore"):
        return np.where(
            values == 0, np.uint64(0), mix(mix(columns.astype(np.uint64) + _MIX[2]) ^ words)
        )


@dataclass(eq=False)
class Sample:
    """The k rows of least key, a hash: neither order nor splits matter.

    By default the key is that of the row's values, so equal rows count once: a sample of the
    distinct rows. Give `keys` (row numbers) to tell copies apart.

    >>> A = np.arange(10.0).reshape(-1, 1)
    >>> whole, parts = Sample.of(A, 3), Sample.of(A[5:], 3) + Sample.of(A[:5], 3)
    >>> np.array_equal(whole.rows, parts.rows)
    True
    """

    k: int
    keys: Array
    rows: Array

    @classmethod
    def of(cls, rows: Array, k: int, keys: Array | None = None, seed: int = 0) -> Sample:
        moved = np.uint64(
            seed * int(_MIX[2]) % (1 << 64)
        )  # as integers of any size: NumPy's warn where they wrap
        h = (
            row_hashes(rows, seed)
            if keys is None
            else mix(np.asarray(keys).astype(np.uint64) + moved)
        )
        return cls(k, h, np.asarray(rows))._least()

    def _least(self) -> Sample:
        keys, first = np.unique(self.keys, return_index=True)
        return Sample(self.k, keys[: self.k], self.rows[first[: self.k]])

    def __add__(self, o: Sample) -> Sample:
        if self.k != o.k:
            raise ValueError(
                f"samples of {self.k} and of {o.k} rows cannot merge; give both the same k."
            )
        return Sample(
            self.k, np.concatenate([self.keys, o.keys]), np.concatenate([self.rows, o.rows])
        )._least()
