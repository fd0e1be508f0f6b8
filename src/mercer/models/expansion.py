"""A function as a sum over points, f(x) = sum_i coef_i k(x, x_i): the kernel that was meant, and
the points or the matrix given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

import numpy as np

from mercer.gpu.quantities import TileLayout
from mercer.inputs import Array, Items, Matrix, Table
from mercer.invariants import Is, Text
from mercer.kernels import Kernel, positioned
from mercer.kernels.defaults import is_open, is_precomputed, resolve
from mercer.models.base import checked
from mercer.models.settings import FittedKernel, KernelSetting
from mercer.operators import KernelOperator
from mercer.operators.stored import GivenOperator
from mercer.ops.tiles import cuts
from mercer.store import register

EPS = float(np.finfo(np.float32).eps)
SEEN = 64  # points at which it is seen how large sums are
MOST_ROUNDING = 1e-4  # of them, by float32 values
PIECE = 1 << 22  # numbers of rows that are read as float64 at a time


@register("models.Expansion")
@dataclass(frozen=True, eq=False)
class Expansion:
    """x -> k(x, X): a kernel and the rows it is expanded over; of a kernel matrix (None) the values
    themselves."""

    kernel: FittedKernel
    points: Table | None

    must = dict(kernel=Is("Kernel") | Text("precomputed"), points=Is("Table") | None)

    def _laws(self) -> str | None:
        return (
            None
            if isinstance(self.kernel, str) == (self.points is None)
            else "has a kernel without points, or points without one"
        )

    @classmethod
    def of_file(
        cls, kernel: FittedKernel, rows: Matrix | None, names: Sequence[str] | None
    ) -> Expansion:
        """Of the kernel and rows that a file of before held."""
        points = (
            None if rows is None else checked(Table(rows, None if names is None else tuple(names)))
        )
        return checked(cls(kernel, points))

    def operator(self, X: Table, Z: Table | None = None) -> KernelOperator | GivenOperator:
        """k(X, Z); a given matrix is that already."""
        if isinstance(self.kernel, str):
            return GivenOperator(np.asarray(X.data))
        return KernelOperator(self.kernel, X, Z)

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items, and where the values themselves are
        given."""
        return None if self.points is None or self.points.items else self.points.width

    @property
    def rows(self) -> Matrix | None:
        """The points, as a user gave them."""
        if self.points is None:
            return None
        return Items(self.points.data) if self.points.items else self.points.data

    def gram(self, X: Table, Z: Table) -> Array:
        """k(X, Z) in float64."""
        return np.asarray(self.operator(X, Z).block(), np.float64)

    def no_tile(self, X: Table) -> str | None:
        """Why products of these rows cannot be taken on a GPU; None where they can."""
        if isinstance(self.kernel, str) or X.items or X.sparse:
            return "the GPU takes dense rows of numbers"
        try:
            TileLayout.of(self.kernel.source(), "matrix")
        except NotImplementedError as e:
            return str(e).removesuffix(".")
        return None

    def combined(
        self,
        X: Table,
        coef: Array,
        intercept: float | Array,
        gpu: str | None = None,
        *,
        wide: bool = False,
    ) -> Array:
        """sum_i coef_i k(x, x_i) + intercept, in the precision of the rows; on a GPU where one is
        given and the kernel has a tile. `wide` where `cancels`: values are float64 then."""
        if gpu is None or not len(X) or self.no_tile(X) is not None:

            def sums(rows: Table) -> Array:  # in float64: large coefficients cancel
                return np.asarray(self.operator(rows, self.points) @ coef + intercept)

            return widened(sums, X) if wide else sums(X).astype(X.dtype)
        made = import_module("mercer.gpu.operator").GPUOperator
        digits = "float64" if wide else str(X.dtype)
        K = made(self.kernel, X, self.points, precision=digits, device=gpu)
        return np.asarray(K @ np.asarray(coef, np.float64) + intercept).astype(X.dtype)

    def cancels(self, coef: Array) -> bool:
        """Whether sum_i coef_i k(x, x_i) of float32 rows needs values in float64, as with little
        ridge: where their rounding, about eps |coef_i sqrt(k(x_i, x_i))|_2 sqrt(k(x, x)), is over a
        ten-thousandth of what the sums are at some of the points.

        coef : (m,) or (m, q)
        """
        if isinstance(self.kernel, str) or self.points is None or self.points.items:
            return False
        points = self.points
        if points.dtype != np.float32 or not len(points):
            return False
        coef = coef.reshape(len(coef), -1).astype(np.float64)
        some = points[:: -(-len(points) // SEEN)].astype(np.float64)
        size = np.sqrt(np.mean(np.square(self.operator(some, points) @ coef), axis=0))
        roots = np.sqrt(np.abs(self.kernel.diag(points.data).astype(np.float64)))
        rounding = EPS * roots.max() * np.linalg.norm(roots[:, None] * coef, axis=0)
        return bool((rounding > MOST_ROUNDING * size).any())

    def gradient(self, X: Table, coef: Array) -> Array:
        """d sum_i coef_iq k(x, x_i) / dx, (n, q, d), in the precision of the rows."""
        if isinstance(self.kernel, str):
            raise ValueError(
                "a model of kernel='precomputed' sees no columns, so there is no gradient by them; fit it with a kernel."
            )
        return np.asarray(
            KernelOperator(self.kernel, X, self.points).input_gradients(coef), X.dtype
        )


def widened(f: Callable[[Table], Array], X: Table) -> Array:
    """f of rows that are read as float64 a piece at a time, in the precision of the rows."""
    parts = cuts(len(X), max(1, PIECE // max(X.width, 1))) or [slice(0, 0)]
    return np.concatenate([f(X[p].astype(np.float64)).astype(X.dtype) for p in parts])


def kernel_at(kernel: KernelSetting, rows: Table, weight: Array | None = None) -> Kernel:
    """The kernel that was meant, for these rows.

    >>> kernel_at("linear", Table(np.eye(2)))
    Linear()
    """
    return positioned(resolve(kernel, rows, weight, given=True), rows)


def scaled_kernel_at(
    kernel: KernelSetting, rows: Table, weight: Array | None = None
) -> Kernel | str:
    """The same, or "precomputed"; refused where a bandwidth is to be scaled to rows that are too
    large to square."""
    if is_precomputed(kernel):
        return "precomputed"
    if is_open(kernel) and not _squarable(rows):
        raise ValueError(
            "X is too large to square, so no bandwidth can be scaled to it; scale the columns first."
        )
    return kernel_at(kernel, rows, weight)


def _squarable(rows: Table) -> bool:
    values = rows.data.data if rows.sparse else rows.data
    return rows.items or not values.size or float(np.abs(values).max()) < 1e150
