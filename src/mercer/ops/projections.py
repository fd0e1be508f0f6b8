"""Random projections that keep an inner product: sparse ones by hashing, Gaussian ones regenerated
from their key."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array
from mercer.invariants import Is, Whole, check
from mercer.ops import hashing
from mercer.ops.philox import Stream
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.ops.trig import flat_rows, sincos
from mercer.store import register

BLOCK_COLUMNS = 64  # columns of a Gaussian projection that are drawn together
CHUNK_BYTES = 16 << 20  # of a Gaussian projection that exist at a time
TASK_ROWS = 512


def projection_dim(n: int, eps: float, delta: float = 0.01) -> int:
    """The least m with 2 sqrt(t/m) + 2t/m <= eps, t = ln(4 pairs/delta): how many dimensions
    Theorem 1 asks for.

    A Gaussian projection to m dimensions then keeps the inner products of all pairs of n unit
    vectors within eps, with probability at least 1 - delta: the theorem is applied to x + z and x -
    z.

    >>> projection_dim(1000, 0.1)
    8393
    """
    if not (eps > 0 and 0 < delta < 1 and n >= 1):
        raise ValueError(
            f"projection_dim needs n >= 1, eps > 0 and 0 < delta < 1, got n={n}, eps={eps}, delta={delta}."
        )
    t = log(4 * max(1, n * (n - 1) // 2) / delta)
    return ceil(t / ((sqrt(1 + 2 * eps) - 1) / 2) ** 2)


@register("ops.Hashed")
@dataclass(frozen=True)
class Hashed:
    """A (m, d), s entries a column: sigma(i, j) / sqrt(s) in row (i - 1) m/s + h(i, j), for i = 1,
    ..., s; h, sigma hashes.

    >>> A = Hashed(6, 2, True, Stream(7))
    >>> (A.matrix(4) != 0).sum(0), A.matrix(4)[:3].any(0)
    (array([2, 2, 2, 2]), array([ True,  True,  True,  True]))
    """

    m: int
    s: int
    signed: bool
    stream: Stream

    must = dict(m=Whole(1), s=Whole(1, "m + 1"), stream=Is("Stream"))

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        return (
            f"has s = {self.s} entries a column, which does not divide m = {self.m}"
            if self.m % self.s
            else None
        )

    def settings(self, dtype: Any) -> tuple[Array, int, int, Any, Any]:
        """What the loops are told: key, s, m/s and the two values of an entry."""
        value = np.dtype(dtype).type(1 / np.sqrt(self.s))
        return self.stream.key(), self.s, self.m // self.s, value, -value if self.signed else value

    def add(self, V: Array, start: int, out: Array) -> None:
        """out (n, m) += V A', where the columns of V are those of A from `start` on."""
        given = (
            V.shape[0],
            V.shape[1],
            *flat_rows(V),
            start,
            *self.settings(V.dtype),
            *flat_rows(self._room(V, out)),
        )
        hashing.add_columns(*given)

    def _room(self, X: Any, out: Array) -> Array:
        """Where the loops write, which look at no bounds."""
        if out.shape != (X.shape[0], self.m) or out.dtype != X.dtype:
            raise ValueError(
                f"out has shape {out.shape} of {out.dtype}, {(X.shape[0], self.m)} of {X.dtype} expected; give such an array."
            )
        return out

    def add_csr(self, X: Any, out: Array) -> None:
        """out (n, m) += X A' for CSR rows."""
        given = *_csr(X), *self.settings(X.dtype), *flat_rows(self._room(X, out))
        hashing.add_csr(0, X.shape[0], *given)

    def sparse(self, X: Any) -> Any:
        """X A' as CSR rows with sorted indices, in threads."""
        (pointers, columns, values), (key, s, width, value, other) = _csr(X), self.settings(X.dtype)
        indptr, tiles = np.zeros(X.shape[0] + 1, np.int64), _tiles(X, self.m)
        parallel_map(
            lambda t: hashing.count_csr(t.start, t.stop, pointers, columns, key, s, width, indptr),
            tiles,
        )
        np.cumsum(indptr, out=indptr)
        index = np.int32 if max(self.m, indptr[-1]) <= np.iinfo(np.int32).max else np.int64
        indices, data = np.empty(indptr[-1], index), np.empty(indptr[-1], X.dtype)
        given = pointers, columns, values, key, s, width, value, other, indptr, indices, data
        parallel_map(lambda t: hashing.fill_csr(t.start, t.stop, *given), tiles)
        F = type(X)((data, indices, indptr.astype(index)), shape=(X.shape[0], self.m))
        F.has_canonical_format = True  # known, so that SciPy need not look
        return F

    def inner(self, X: Any, w: Array) -> Array:
        """(A x, w) of each CSR row, without A x."""
        if w.shape != (self.m,):
            raise ValueError(
                f"w has shape {w.shape}, {(self.m,)} expected; give one number a feature."
            )
        out = np.empty(X.shape[0], X.dtype)
        given = *_csr(X), *self.settings(X.dtype), w, out
        parallel_map(lambda t: hashing.inner_csr(t.start, t.stop, *given), _tiles(X, self.m))
        return out

    def back(self, start: int, stop: int, w: Array) -> Array:
        """Entries start to stop of A'w."""
        at, entry = self._places(start, stop, w.dtype)
        return (w[at] * entry).sum(0)

    def columns(self, start: int, stop: int, dtype: Any) -> sp.csc_array:
        """Columns start to stop of A, sparse."""
        at, entry = self._places(start, stop, dtype)  # row i stands above row i + 1: sorted
        pointers = np.arange(0, at.size + 1, self.s)
        return sp.csc_array((entry.T.ravel(), at.T.ravel(), pointers), shape=(self.m, stop - start))

    def matrix(self, d: int) -> Array:
        """A (m, d), dense, for tests."""
        A, (at, entry) = np.zeros((self.m, d)), self._places(0, d, np.float64)
        np.put_along_axis(A, at, entry, axis=0)
        return A

    def _places(self, start: int, stop: int, dtype: Any) -> tuple[Array, Array]:
        """Where the entries of those columns are, and what they are, (s, stop - start) each."""
        columns, (key, s, width, value, other) = np.arange(start, stop), self.settings(dtype)
        at, entry = np.empty((s, len(columns)), np.int64), np.empty((s, len(columns)), dtype)
        hashing.positions(columns, key, s, width, at.reshape(-1))
        hashing.entries(columns, key, s, value, other, entry.reshape(-1))
        return at, entry


def _csr(X: Any) -> tuple[Array, Array, Array]:
    """Row pointers, columns and values; in 64 bits, so that Numba compiles few signatures."""
    return X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int64, copy=False), X.data


def _tiles(X: Any, m: int) -> list[slice]:
    """Rows in pieces, each worth the m-sized buffers of a task."""
    return cuts(X.shape[0], max(TASK_ROWS, m // max(1, X.nnz // max(1, X.shape[0]))))


@register("ops.Normals")
@dataclass(frozen=True)
class Normals:
    """A = Z / sqrt(m), Z (m, d) of independent normals, drawn anew in blocks of columns whenever it
    is needed.

    >>> A = Normals(50, Stream(7)).matrix(200)
    >>> bool(abs(A.mean()) < 0.01), bool(abs(50 * A.var() - 1) < 0.05)
    (True, True)
    """

    m: int
    stream: Stream

    must = dict(m=Whole(1), stream=Is("Stream"))

    def __post_init__(self) -> None:
        check(self)

    def rows(self, start: int, stop: int, dtype: Any) -> Array:
        """Rows start to stop of A' (d, m): whole blocks are drawn, in threads, and the part that is
        asked for kept."""
        key, first = self.stream.key(), start // BLOCK_COLUMNS
        Z = np.empty((-(-stop // BLOCK_COLUMNS) - first, BLOCK_COLUMNS * self.m), np.float32)
        parallel_map(lambda b: self._draw(key, first + b, Z[b]), range(len(Z)))
        out = Z.reshape(-1, self.m)[start - first * BLOCK_COLUMNS : stop - first * BLOCK_COLUMNS]
        return out.astype(dtype, copy=False)

    def _draw(self, key: Array, block: int, out: Array) -> None:
        half = BLOCK_COLUMNS // 2 * self.m
        radius, angle = np.empty(half, np.float32), np.empty((1, half), np.float32)
        hashing.polar(block * half, key, radius, angle[0])
        cos, sin = out[:half], out[half:]
        sincos(angle, 1 / np.sqrt(self.m), cos[None], sin[None])
        cos *= radius
        sin *= radius

    def add(self, V: Any, start: int, out: Array) -> None:
        """out (n, m) += V A', where the columns of V, dense or CSC, are those of A from `start` on;
        in threads."""
        A = self.rows(start, start + V.shape[1], V.dtype)
        if isinstance(V, np.ndarray):
            parallel_map(lambda r: np.add(out[r], V[r] @ A, out=out[r]), cuts(len(V), TASK_ROWS))
        else:
            out += V @ A

    def back(self, start: int, stop: int, w: Array) -> Array:
        """Entries start to stop of A'w."""
        return self.rows(start, stop, w.dtype) @ w

    def pieces(self, d: int) -> list[slice]:
        """The columns, in pieces of which A can hold one at a time."""
        return cuts(d, max(1, CHUNK_BYTES // (4 * self.m * BLOCK_COLUMNS)) * BLOCK_COLUMNS)

    def columns(self, start: int, stop: int, dtype: Any) -> Array:
        """Columns start to stop of A."""
        return self.rows(start, stop, dtype).T

    def matrix(self, d: int) -> Array:
        """A (m, d), dense, for tests."""
        return self.rows(0, d, np.float64).T
