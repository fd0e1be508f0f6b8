"""Kernel rows that no one keeps: gradients of duals by products on a GPU, and blocks formed there."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.models.expansion import Expansion
from mercer.models.svm.gram import padded
from mercer.operators import AboutOperator, TiledOperator, TileOperator
from mercer.operators.tiles import tiles_about
from mercer.ops.tiles import settle_allocator


class DeviceRows:
    """Kernel rows as solvers of duals ask for them, made anew on a GPU in every product: to about
    1e-6 of the sum of the sizes, or in float64 where the operator is that, or about a point.

    Blocks of rows with themselves are formed there and fetched, as they are solved on the CPU.
    """

    def __init__(self, op: TiledOperator) -> None:
        assert isinstance(op, TileOperator | AboutOperator)  # others have no device
        self.op, self.made = op, 0
        settle_allocator()  # of all duals' slopes

    @cached_property
    def _products(self) -> Any:
        made = import_module("mercer.gpu.row_products").RowProducts
        return made(self.op.kernel, self.op.X, self.op.gpu, precision_of(self.op))

    def add(self, G: Array, rows: Array, delta: Array, again: Array | None = None) -> None:
        """G += K @ delta of these rows, in float64; `again` is for those who keep rows."""
        G += self._products.times(rows, delta)
        if isinstance(self.op, AboutOperator):
            G -= float(self.op.edge[rows] @ delta) + self._beside * float(delta.sum())
        self.made += len(rows)

    @cached_property
    def _beside(self) -> Array:
        """What k(x_i, x_j) has of x_i alone, more than about the point of the operator."""
        return self.op.edge + self._middle

    @cached_property
    def _middle(self) -> float:
        """What all values have more than that."""
        op, own = self.op, self.op.kernel.diag(self.op.X[:1].astype(np.float64))
        return float(own[0]) - float(op.diag()[0]) - 2 * float(op.edge[0])

    def some(self, rows: Array, room: Array | None = None) -> Array:
        """K of some rows with themselves, its columns padded to lanes, in this room."""
        about = isinstance(self.op, AboutOperator)
        out = padded(len(rows), self.op.dtype, room)
        edge = self.op.edge[rows] + self._middle / 2 if about else None
        self._products.square(rows, out, edge)
        return out

    def room(self, size: int) -> Array:
        """Memory for values, which the device writes to by itself."""
        found: Array = self._products.room(size, self.op.dtype)
        return found

    def restrict(self, rows: Array) -> DeviceRows:
        """Those of some rows, among themselves."""
        return DeviceRows(self.op.restrict(rows))


def precision_of(op: TiledOperator) -> str:
    """Of products with its rows: about a point, values cancel."""
    return "float64" if isinstance(op, AboutOperator) else op.dtype.name


def has_products(over: Expansion, X: Table, *, balanced: bool) -> bool:
    """Whether scores of rows are products on a GPU: not those about a point, which keep more digits,
    where coefficients sum to zero (`balanced`)."""
    Z, kernel = over.points, over.kernel
    if Z is None or isinstance(kernel, str) or Z.sparse or not len(Z) or not len(X):
        return False
    if over.no_tile(X) is not None:
        return False
    return not balanced or tiles_about(kernel, Z, np.float64) is None
