"""Training points that vote on queries: logarithms of kernel values, tile by tile, and whether a
kernel can vote at all."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Is, Whole
from mercer.kernels.algebra import (
    Exp,
    Normalized,
    OnColumns,
    Power,
    Product,
    Scale,
    Series,
    Sum,
    Warped,
)
from mercer.kernels.base import Kernel
from mercer.kernels.dot import ArcCosine, Constant, Polynomial
from mercer.kernels.histograms import AdditiveChi2, Chi2
from mercer.kernels.maps import Mapped
from mercer.kernels.stationary import Sinc, Stationary
from mercer.models.expansion import Expansion
from mercer.models.settings import FittedKernel
from mercer.operators import GivenOperator
from mercer.operators.products import times
from mercer.ops import tiles
from mercer.ops.threads import parallel_map
from mercer.pairs import Side, centre_of
from mercer.pairs.logs import LogTile, log
from mercer.pairs.side import Bandwidth
from mercer.store import register

COLUMNS = 256  # of a tile
CLOSED = (
    Sum,
    Product,
    Scale,
    Power,
    Exp,
    Series,
    Normalized,
    OnColumns,
    Mapped,
    Warped,
)  # nonnegative parts give a nonnegative whole


class QueryKernel(Protocol):
    """The training points as seen from queries: by logarithms of kernel values, where an operator's
    values would underflow."""

    @property
    def kernel(self) -> Kernel | None:
        """None where values are given."""

    def __len__(self) -> int: ...
    def products(self, X: Table, V: Array, gpu: str | None = None) -> Array: ...
    def no_gpu(self, X: Table) -> str | None: ...
    def logs(
        self, X: Table, kernels: Sequence[Kernel | None], *, exact: bool = False
    ) -> Iterator[tuple[slice, Iterable[Array]]]: ...


class ExactTile(LogTile):
    """Distances by differences only, whose rounding is relative: which of two far points is nearer
    stays to be seen."""

    def _measured(self, b: Bandwidth) -> tuple[Array, float]:
        return self._by_differences(b), math.inf


@register("smoothing.Points")
@dataclass(frozen=True, eq=False)
class Points:
    """Training rows, compared by a kernel."""

    kernel: Kernel
    rows: Table

    must = dict(kernel=Is("Kernel"), rows=Is("Table"))

    def __len__(self) -> int:
        return len(self.rows)

    def no_gpu(self, X: Table) -> str | None:
        """Why votes on these rows are counted on the CPU; None where a GPU can."""
        if not nonnegative(self.kernel):
            return "values of this kernel must be looked at first"
        return Expansion(self.kernel, self.rows).no_tile(X)

    def products(self, X: Table, V: Array, gpu: str | None = None) -> Array:
        """K @ V, on a torch device to about 1e-6; where the form of the kernel allows negative
        values, they are looked at first."""
        if gpu is not None:
            made = import_module("mercer.gpu.operator").GPUOperator
            return np.asarray(made(self.kernel, X, self.rows, device=gpu) @ V)
        if not nonnegative(self.kernel):
            parallel_map(
                lambda rows: [bool(list(L)) for _, L in self.logs(X[rows], [self.kernel])],
                tiles.cuts(len(X), tiles.TILE_ROWS),
            )
        return times(self.kernel, X, self.rows.astype(X.dtype).data, V)

    def logs(
        self, X: Table, kernels: Sequence[Kernel | None], *, exact: bool = False
    ) -> Iterator[tuple[slice, Iterable[Array]]]:
        """log k(x, z) tile by tile for each kernel, None its own; distances are computed once for
        all their bandwidths, least first."""
        asked = [self.kernel if k is None else k for k in kernels]
        left, right = self.kernel.tables(X, self.rows)
        centre = centre_of(left, right)
        x = Side(left, centre)
        for cols in tiles.cuts(len(right), COLUMNS):
            tile = (ExactTile if exact else LogTile)(x, Side(right[cols], centre))
            yield (
                cols,
                (_of_shape(log(k.on(tile)), (len(x), cols.stop - cols.start)) for k in asked),
            )


@register("smoothing.GivenGram")
@dataclass(frozen=True, eq=False)
class GivenVotes:
    """Training points known by rows of a kernel matrix alone."""

    n: int

    must = dict(n=Whole(1))

    @property
    def kernel(self) -> None:
        return None

    def __len__(self) -> int:
        return self.n

    def no_gpu(self, X: Table) -> str | None:
        return "the matrix was given"

    def products(self, X: Table, V: Array, gpu: str | None = None) -> Array:
        """K @ V; negative values are refused first."""
        K = GivenOperator(X.data).block()
        log(K)
        return np.asarray(K @ V.astype(K.dtype))

    def logs(
        self, X: Table, kernels: Sequence[Kernel | None], *, exact: bool = False
    ) -> Iterator[tuple[slice, Iterable[Array]]]:
        yield slice(0, self.n), [log(GivenOperator(X.data).block())]


def _of_shape(L: Any, shape: tuple[int, int]) -> Array:
    return L if np.shape(L) == shape else np.broadcast_to(L, shape)


def nonnegative(kernel: FittedKernel) -> bool:
    """Whether the form of an expression shows that it is nowhere negative.

    >>> from mercer.kernels import Gaussian, Linear
    >>> nonnegative(2 * Gaussian() + 1), nonnegative(Linear()), nonnegative(Linear() ** 2)
    (True, False, True)
    """
    if (isinstance(kernel, Power) and kernel.degree % 2 == 0) or isinstance(
        kernel, Exp | Constant | ArcCosine | AdditiveChi2 | Chi2
    ):
        return True
    if isinstance(kernel, Polynomial):
        return kernel.degree % 2 == 0
    if isinstance(kernel, Stationary):
        return not isinstance(kernel, Sinc)
    parts = (
        [v for v in kernel.get_params().values() if isinstance(v, Kernel)]
        if isinstance(kernel, CLOSED)
        else []
    )
    return bool(parts) and all(map(nonnegative, parts))
