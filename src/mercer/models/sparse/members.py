"""The columns of a working set: their products with residuals and with each other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix
from mercer.models.sparse.dictionary import Dictionary
from mercer.ops.csr import add_pairs
from mercer.ops.tiles import cuts

PIECE = 4 << 20  # bytes of columns that are multiplied at a time
MUCH = 2e6  # products of pairs of entries, from which on a loop is worth compiling


@dataclass(eq=False)
class Square:
    """A symmetric matrix (k, k) that gains and loses features in place, in the corner of a larger
    array.

    >>> G = Square.of(np.eye(2))
    >>> G.add(np.array([[3.0, 4.0, 5.0]]))
    >>> G.keep(np.array([0, 2]))
    >>> G.all
    array([[1., 3.],
           [3., 5.]])
    """

    room: Array
    k: int

    @classmethod
    def of(cls, G: Array) -> Square:
        return cls(np.ascontiguousarray(G), len(G))

    @property
    def all(self) -> Array:
        return self.room[: self.k, : self.k]

    def add(self, new: Array) -> None:
        """Rows (m, k + m) of new features."""
        k, size = self.k, new.shape[1]
        if size > len(self.room):
            room = np.empty((size + size // 4, size + size // 4))
            room[:k, :k] = self.all
            self.room = room
        self.room[k:size, :size] = new
        self.room[:k, k:size] = new[:, :k].T
        self.k = size

    def keep(self, at: Array) -> None:
        """Only the features at these places, which rise."""
        for i, j in enumerate(at.tolist()):  # a row is read before it is written over
            self.room[i, : len(at)] = self.room[j, at]
        self.k = len(at)


@dataclass(eq=False)
class Members:
    """Columns less their means in the order in which they came: dense, or CSC that is centred
    implicitly."""

    X: Dictionary
    ids: Array = field(default_factory=lambda: np.zeros(0, np.int64))
    dense: Array | None = None  # (n, room), of which the first len(ids) count
    csc: Matrix = None
    means: Array = field(default_factory=lambda: np.zeros(0))  # that are still to be subtracted

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, ids: Array) -> None:
        """Features that were not among them."""
        new, m = self.X.columns(ids), self.X.means(ids)
        if sp.issparse(new):
            self.csc = new if self.csc is None else sp.hstack([self.csc, new], format="csc")
        else:
            k = len(self)
            self._room(k + len(ids))[:, k : k + len(ids)] = new - m
            m = np.zeros(len(ids))
        self.means = np.concatenate([self.means, m])
        self.ids = np.concatenate([self.ids, ids])

    def _room(self, size: int) -> Array:
        if self.dense is None or self.dense.shape[1] < size:
            room = np.empty((self.X.n, max(16, 2 * size)), order="F")
            if self.dense is not None:
                room[:, : len(self)] = self.dense[:, : len(self)]
            self.dense = room
        return self.dense

    def keep(self, at: Array) -> None:
        """Only those at these places."""
        if self.csc is not None:
            self.csc = self.csc[:, at]
        elif self.dense is not None:
            self.dense[:, : len(at)] = self.dense[:, at]
        self.ids, self.means = self.ids[at], self.means[at]

    @property
    def matrix(self) -> Matrix:
        """(n, k), from which `means` are still to be subtracted."""
        if self.csc is not None:
            return self.csc
        return np.empty((self.X.n, 0)) if self.dense is None else self.dense[:, : len(self)]

    def times(self, b: Array) -> Array:
        """Xb"""
        return np.asarray(self.matrix @ b).ravel() - self.means @ b

    def products(self, V: Array) -> Array:
        """X'V, for V (n,) or (n, C)."""
        A = np.asarray(self.matrix.T @ V)
        return A - np.multiply.outer(self.means, V.sum(0))

    def pairs(self, h: Array, since: int = 0) -> Array:
        """sum_i h_i x_i[since:] x_i', (k - since, k)."""
        A, m = self.matrix, self.means
        if sp.issparse(A):
            s = np.asarray(A.T @ h).ravel()
            here = sparse_pairs(A, h, since) - np.outer(s[since:], m) - np.outer(m[since:], s)
            return here + h.sum() * np.outer(m[since:], m)
        G = np.zeros((len(self) - since, len(self)))
        for rows in cuts(self.X.n, max(512, PIECE // (8 * max(1, len(self))))):
            D = A[rows] * h[rows, None]
            G += D[:, since:].T @ A[rows]
        return G


def sparse_pairs(A: Matrix, h: Array, since: int) -> Array:
    """sum_i h_i a_i[since:] a_i' of CSC columns: one loop over the rows where they hold much, else
    SciPy's product, which needs no compiler.

    >>> sparse_pairs(sp.csc_array(np.array([[1.0, 2.0], [0.0, 3.0]])), np.ones(2), 1)
    array([[ 2., 13.]])
    """
    if A.nnz**2 <= MUCH * A.shape[0]:
        return np.asarray((A[:, since:].T @ (sp.diags_array(h) @ A)).todense())
    rows = A.tocsr()
    rows.sort_indices()
    out = np.zeros((A.shape[1] - since, A.shape[1]))
    entries = rows.indptr.astype(np.uint64), rows.indices.astype(np.uint32), rows.data
    add_pairs(*entries, h, since, out)
    new = out[:, since:]
    new += np.tril(new, -1).T
    return out
