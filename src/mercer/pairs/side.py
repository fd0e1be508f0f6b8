"""One side of a tile: rows, and whatever tiles ask of them, computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, Table
from mercer.listed import bare
from mercer.ops.distances import augmented
from mercer.pairs.items import OfItems

MOST_COLUMNS, DENSE_BYTES = 8, 1 << 24  # a row, and in all, of sparse rows made dense for a product
Bandwidth = float | tuple[float, ...]


def per_column(bandwidth: Bandwidth, d: int, name: str = "bandwidth") -> Array:
    """One value a column, from a scalar or a tuple of the right length."""
    b = np.asarray(bandwidth, dtype=np.float64)
    if b.ndim and len(b) != d:
        raise ValueError(
            f"{name} has {len(b)} values, but X has {d} columns; give one number, or one a column."
        )
    return np.broadcast_to(b, (d,))


def circle(data: Array, period: Array) -> Array:
    """(cos, sin) of every column on the circle of its period: |u - v|^2 = 4 sin^2(pi (x - z) /
    period)."""
    angle = data.astype(np.float64) * (2 * np.pi / period)
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(data.dtype)


def centre_of(X: Table, Z: Table) -> Array | None:
    """The point that distances are measured about, so that a large common offset costs no
    digits."""
    if X.items or X.sparse or not (len(X) and len(Z)):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        c = X.data.mean(0, dtype=np.float64)
        c = c if Z is X else (c + Z.data.mean(0, dtype=np.float64)) / 2
    return np.where(np.isfinite(c), c, 0.0)


def square(A: Array, d: int, dtype: Any) -> Array:
    """The metric of an inner product, checked against the width of the rows."""
    if len(A) != d:
        raise ValueError(
            f"metric is {len(A)} x {len(A)}, but X has {d} columns; give one row and column for each."
        )
    return A.astype(dtype)


@dataclass(eq=False)
class Side:
    """Rows of a table, the point they are centred at for distances, and their caches."""

    rows: Table
    centre: Array | None = None
    _scaled: dict[Any, tuple[Matrix, Array]] = field(default_factory=dict, repr=False)
    _operands: dict[Any, Array] = field(default_factory=dict, repr=False)
    _parts: dict[Any, Table] = field(default_factory=dict, repr=False)
    _read: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def data(self) -> Matrix:
        return self.rows.data

    @cached_property
    def norms(self) -> Array:
        """|x|^2 of the raw rows."""
        return square_norms(self.data).astype(self.data.dtype)

    @cached_property
    def nonnegative(self) -> Side:
        """These rows, which must hold no number below zero; callers that know of which rows they
        are have said it before, see `mercer.kernels.histograms`."""
        values = self.data.data if self.rows.sparse else self.data
        if values.size and values.min() < 0:
            raise ValueError(
                f"rows of chi-squared kernels must hold numbers >= 0, got {values.min():.6g}; shift or clip those columns."
            )
        return self

    def part(self, key: Any, of: Callable[[Table], Table]) -> Table:
        """Other rows made of these, once: a warp, or some columns."""
        if key not in self._parts:
            self._parts[key] = of(self.rows)
        return self._parts[key]

    def read(self, kernel: OfItems) -> Any:
        """The items as a kernel reads them, once."""
        if not self.rows.items:
            raise ValueError(
                f"{kernel!r} compares items, got rows of numbers; give a list of items, such as strings."
            )
        if (key := kernel.reading) not in self._read:
            self._read[key] = kernel.read(bare(self.data))
        return self._read[key]

    def scaled(self, bandwidth: Bandwidth) -> tuple[Matrix, Array]:
        """Centred rows over the bandwidth, and their squared norms in float64."""
        if bandwidth not in self._scaled:
            with np.errstate(over="ignore", divide="ignore", invalid="ignore", under="ignore"):
                A = self._over(bandwidth, self.data.dtype)
                self._scaled[bandwidth] = A, square_norms(A)
        return self._scaled[bandwidth]

    def operand(self, bandwidth: Bandwidth, dtype: Any, *, left: bool) -> Array:
        """The augmented rows whose product is the squared distance, in the asked precision."""
        key = bandwidth, dtype, left
        if key not in self._operands:
            A, norms = self.scaled(bandwidth)
            if A.dtype != dtype:
                A = self._over(bandwidth, dtype)
                norms = square_norms(A)
            self._operands[key] = augmented(A, norms, left=left)
        return self._operands[key]

    def _over(self, bandwidth: Bandwidth, dtype: Any) -> Matrix:
        b = per_column(bandwidth, self.rows.width)
        if self.rows.sparse:
            return over(self.data, b, dtype)
        if self.centre is None:
            return (self.data / b).astype(dtype, copy=False)
        A = self.data - self.centre
        A /= b  # in place: a new array takes as long as the division
        return A.astype(dtype, copy=False)

    def as_dense(self) -> Side:
        """The same side with dense rows."""
        return (
            Side(Table(self.dense(), self.rows.columns), self.centre) if self.rows.sparse else self
        )

    def dense(self, columns: Array | None = None) -> Array:
        """The rows (or some of their columns) as a dense array."""
        A = self.data if columns is None else self.data[:, columns]
        return np.ascontiguousarray(A.toarray() if sp.issparse(A) else A)


class Sides(dict[tuple[int, int], Side]):
    """The pieces of a table as sides of tiles, each made once."""

    def __init__(self, rows: Table, centre: Array | None) -> None:
        super().__init__()
        self.rows, self.centre = rows, centre

    def __getitem__(self, piece: Any) -> Side:
        return self.setdefault((piece.start, piece.stop), Side(self.rows[piece], self.centre))


def product(A: Matrix, B: Matrix) -> Array:
    """A B' of dense or sparse rows, as a dense array; of two sparse sides the one of fewer rows is
    made dense where that costs little beside the result: the same sums, without a sort."""
    if not (sp.issparse(A) and sp.issparse(B)):
        return np.asarray(A @ B.T)
    few, many = (A, B) if A.shape[0] < B.shape[0] else (B, A)
    size = few.shape[0] * few.shape[1] * few.dtype.itemsize
    if few.shape[1] > MOST_COLUMNS * many.shape[0] or size > DENSE_BYTES:
        return np.asarray((A @ B.T).toarray())
    P = np.asarray(many @ np.ascontiguousarray(few.toarray().T))
    return P if many is A else P.T


def refine_sparse(D: Array, X: Matrix, Z: Matrix, b: Array, below: float) -> Array:
    """Squared distances of sparse rows over b, those below a bound taken by differences."""
    rows, cols = np.nonzero((below > D) & (D > 0))
    if len(rows):
        apart = X[rows].astype(np.float64) - Z[cols]
        D[rows, cols] = square_norms(over(apart, b, np.float64))
    return D


def over(A: Matrix, b: Array, dtype: Any) -> Matrix:
    """Sparse rows with each column divided by its b."""
    out = A.astype(np.float64)
    with np.errstate(over="ignore", divide="ignore"):
        out.data /= b[out.indices]
    return out.astype(dtype)


def square_norms(A: Matrix) -> Array:
    """sum_j a_j^2 of every row, added up in float64."""
    if sp.issparse(A):
        A = A.astype(np.float64)
        with np.errstate(over="ignore"):
            A.data *= A.data
        return np.asarray(A @ np.ones(A.shape[1]))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.einsum("ij,ij->i", A, A, dtype=np.float64)


def nonzero_columns(A: Matrix) -> Array:
    """The columns in which a CSR matrix has entries."""
    return np.unique(A.indices)


def elementary(squares: Array, order: int) -> Array:
    """The elementary symmetric polynomial of that order of every row."""
    E = np.zeros((order + 1, len(squares)), squares.dtype)
    E[0] = 1
    for column in squares.T:
        E[1:] += column * E[:-1]
    return E[order]
