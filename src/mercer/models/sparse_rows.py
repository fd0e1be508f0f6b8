"""Sparse rows as learners pass over them: their occupied columns alone, the most frequent first, by
row and by column."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, sound
from mercer.models.linear import offset
from mercer.models.maps import TOO_LARGE
from mercer.ops import csr
from mercer.ops.threads import n_threads, parallel_map

SMALL = 1 << 16  # entries for which a second thread is not worth its start
PARTS = 8  # sums of their own, whatever the number of threads


@dataclass(frozen=True, eq=False)
class Compressed:
    """Entries by row: those of row i are values[pointers[i]:pointers[i + 1]], at these places."""

    pointers: Array  # uint64, as loops need not ask whether a place counts from the end
    places: Array  # uint32
    values: Array
    width: int

    def __len__(self) -> int:
        return len(self.pointers) - 1

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return self.pointers, self.places, self.values

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self.arrays)

    def times(self, V: Array) -> Array:
        """The product with a vector or a matrix of float64; every row is one sum, so that threads
        change no bit."""
        if V.ndim == 2 and V.shape[1] == 1:
            return self.times(V[:, 0])[:, None]
        V = np.ascontiguousarray(V, np.float64)
        out = np.empty((len(self), *V.shape[1:]))
        loop: Any = csr.times_vector if V.ndim == 1 else csr.times_matrix
        parallel_map(lambda at: loop(*self.arrays, V, out, *at), self._shares())
        return out

    def times_transposed(self, R: Array) -> Array:
        """The product of the transposed with a vector or a matrix, added row after row within a
        fixed number of parts: for many rows over few columns, which then stay in cache."""
        if R.ndim == 2 and R.shape[1] == 1:
            return self.times_transposed(R[:, 0])[:, None]
        R, shares = np.ascontiguousarray(R, np.float64), self._shares(PARTS)
        loop: Any = csr.add_rows if R.ndim == 1 else csr.add_outer
        sums = np.zeros((len(shares), self.width, *R.shape[1:]))
        parallel_map(lambda k: loop(*self.arrays, R, sums[k], *shares[k]), list(range(len(shares))))
        return np.asarray(sums.sum(0))

    def times_squares(self, q: Array) -> Array:
        """The product of the squared entries with a vector."""
        out = np.empty(len(self))
        parallel_map(lambda at: csr.times_squares(*self.arrays, q, out, *at), self._shares())
        return out

    def _shares(self, parts: int = 0) -> list[tuple[int, int]]:
        """Rows of about as many entries, in so many parts, or some for each thread."""
        total = int(self.pointers[-1])
        if total < SMALL:
            return [(0, len(self))]
        parts = parts or (4 * n_threads() if n_threads() > 1 else 1)
        ends = np.searchsorted(self.pointers, np.linspace(0, total, parts + 1)[1:-1])
        return [(a, b) for a, b in pairwise([0, *ends.tolist(), len(self)]) if b > a]

    def transposed(self) -> Compressed:
        """The same entries by column."""
        count = np.zeros(self.width, np.int64)
        csr.counts(self.places, count)
        pointers = np.concatenate([np.zeros(1, np.uint64), np.cumsum(count, dtype=np.uint64)])
        rows, values = np.empty(len(self.places), np.uint32), np.empty_like(self.values)
        csr.transpose(*self.arrays, pointers[:-1].copy(), rows, values)
        return Compressed(pointers, rows, values, len(self))


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows (n, D) of which only the occupied columns are numbered, the most frequent first: so the
    coefficients that most entries ask for lie side by side.

    Of the entries only the numbers of their columns are copied; `by_column` holds them a second
    time, for the learners that ask.
    """

    by_row: Compressed
    columns: Array  # (p,) where the numbered columns stand among the D
    shift: Array | None  # (p,) what was taken off columns without a zero that are far from it
    D: int

    @classmethod
    def of(cls, F: Matrix, *, intercept: bool) -> Self:
        """Of a CSR matrix of floats; an intercept lets columns be shifted."""
        F = sound(F)
        count = np.zeros(F.shape[1], np.int64)
        csr.counts(F.indices, count)
        columns, places = _numbered(F.indices, count)
        entries = Compressed(F.indptr.astype(np.uint64), places, F.data, len(columns))
        shift = None
        if intercept:
            entries, shift = _moved(entries, int(np.count_nonzero(count == F.shape[0])))
        rows = cls(entries, columns, shift, int(F.shape[1]))
        if not np.isfinite(rows.squares.sum()):
            raise ValueError(TOO_LARGE)
        return rows

    @property
    def n(self) -> int:
        return len(self.by_row)

    @property
    def p(self) -> int:
        """Occupied columns."""
        return len(self.columns)

    @property
    def nonzeros(self) -> int:
        return len(self.by_row.values)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.by_row.values.dtype)

    @cached_property
    def by_column(self) -> Compressed:
        return self.by_row.transposed()

    @cached_property
    def squares(self) -> Array:
        """|x_i|^2, (n,)."""
        return self.by_row.times_squares(np.ones(self.p))

    def times(self, V: Array) -> Array:
        """X V, (n,) or (n, k), of V over the occupied columns: by whichever way is shorter, for
        learners that have the entries by column anyway."""
        return self.by_column.times_transposed(V) if self.n < self.p else self.by_row.times(V)

    def scores(self, coef: Array) -> Array:
        """X coef, (n,), row after row: the same bits whether or not another thread has asked for the
        entries by column."""
        return self.by_row.times(coef)

    def gram(self, some: Array) -> Array:
        """X X' of some rows, few of them, in float64."""
        e = self.by_row
        X = sp.csr_array((e.values, e.places, e.pointers.astype(np.int64)), shape=(self.n, self.p))
        X = X[some].astype(np.float64)
        return np.asarray((X @ X.T).toarray())

    def back(self, R: Array) -> Array:
        """X'R, (p,) or (p, k)."""
        return self.by_column.times(R)

    def summed(self, r: Array) -> Array:
        """X'r, row after row: without the entries by column, and of few rows at their cost."""
        out = np.zeros(self.p)
        csr.add_rows(*self.by_row.arrays, np.asarray(r, np.float64), out, 0, self.n)
        return out

    def unshifted(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients (p, k) and intercepts (k,) as those of all columns as they were: (k, D), (k,)."""
        out = np.zeros((coef.shape[1], self.D))
        out[:, self.columns] = coef.T
        return out, intercept if self.shift is None else intercept - self.shift @ coef


def _numbered(places: Array, count: Array) -> tuple[Array, Array]:
    """The occupied columns, the most frequent first, and the numbers of those of all entries."""
    columns = np.argsort(-count, kind="stable")[: int(np.count_nonzero(count))]
    names, out = np.zeros(len(count), np.uint32), np.empty(len(places), np.uint32)
    names[columns] = np.arange(len(columns), dtype=np.uint32)
    csr.renamed(places, names, out)
    return columns, out


def _moved(entries: Compressed, full: int) -> tuple[Compressed, Array | None]:
    """The first columns, `full` of them, which every row has, less their means where these are far
    from zero: sums about zero would lose their digits. Values are copied only then."""
    if not full or not len(entries):
        return entries, None
    mask = entries.places < full
    at, x = entries.places[mask], entries.values[mask]
    head = np.empty((len(entries), full), x.dtype)
    head[np.repeat(np.arange(len(entries)), full), at] = x
    if (far := offset(head)) is None:
        return entries, None
    values, shift = entries.values.copy(), np.zeros(entries.width)
    values[mask] = x - far[at]
    shift[:full] = far
    return replace(entries, values=values), shift
