"""Smoothing by kernel votes: weighted means of targets, their shares, and the leave-one-out choice of a bandwidth."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels.algebra import Exp, Normalized, OnColumns, Power, Product, Scale, Series, Sum, Warped
from mercer.kernels.base import Kernel
from mercer.kernels.dot import ArcCosine, Constant, Polynomial
from mercer.kernels.stationary import Sinc, Stationary
from mercer.kernels.stretch import bandwidths, scaled
from mercer.operators import KernelOperator
from mercer.ops import tiles
from mercer.ops.threads import parallel_map
from mercer.pairs import Side, centre_of
from mercer.pairs.logs import LogTile, log

COLUMNS = 256  # of a tile
LOST, SHARP = 1e13, 10**9  # differences of larger logarithms are rounding; what makes the nearest win alone
CLOSED = (Sum, Product, Scale, Power, Exp, Series, Normalized, OnColumns, Warped)  # nonnegative parts give a nonnegative whole


class Voters(Protocol):
    """The training points as seen from queries."""

    def __len__(self) -> int: ...
    def products(self, X: Table, V: Array) -> Array: ...
    def logs(self, X: Table, kernels: Sequence[Any], rows: slice) -> Iterator[tuple[slice, Iterable[Array]]]: ...


@dataclass(frozen=True, eq=False)
class Points:
    """Training rows, compared by a kernel."""

    kernel: Kernel
    rows: Table

    def __len__(self) -> int:
        return len(self.rows)

    def products(self, X: Table, V: Array) -> Array:
        """K @ V; where the form of the kernel allows negative values, they are looked at first."""
        if not nonnegative(self.kernel):
            parallel_map(lambda rows: [bool(list(L)) for _, L in self.logs(X, [self.kernel], rows)], tiles.cuts(len(X), tiles.ROWS))
        return np.asarray(KernelOperator(self.kernel, X, self.rows.astype(X.dtype)) @ V.astype(X.dtype))

    def logs(self, X: Table, kernels: Sequence[Kernel], rows: slice) -> Iterator[tuple[slice, Iterable[Array]]]:
        """log k(x, z) tile by tile for each kernel; distances are computed once for all their bandwidths, least first."""
        left, right = self.kernel.tables(X, self.rows)
        centre = centre_of(left, right)
        x = Side(left[rows], centre)
        for cols in tiles.cuts(len(right), COLUMNS):
            tile = LogTile(x, Side(right[cols], centre))
            yield cols, (_of_shape(log(k.on(tile)), (len(x), cols.stop - cols.start)) for k in kernels)


@dataclass(frozen=True, eq=False)
class Given:
    """Training points known by rows of a kernel matrix alone."""

    n: int

    def __len__(self) -> int:
        return self.n

    def products(self, X: Table, V: Array) -> Array:
        log(X.data)
        return np.asarray(X.data @ V.astype(X.dtype))

    def logs(self, X: Table, kernels: Sequence[Any], rows: slice) -> Iterator[tuple[slice, Iterable[Array]]]:
        yield slice(0, self.n), [log(X.data[rows])]


@dataclass(eq=False)
class Smoother:
    """sum_i w_i k(x, x_i) y_i / sum_i w_i k(x, x_i), for targets Y (n, q) kept about their mean and in units of their range."""

    voters: Voters
    Y: Array
    weight: Array | None = None

    @cached_property
    def w(self) -> Array:
        return np.ones(len(self.Y)) if self.weight is None else self.weight

    @cached_property
    def centre(self) -> Array:
        top = np.abs(self.Y).max(axis=0)
        top[top == 0] = 1.0
        return (self.w @ (self.Y / top) / self.w.sum()) * top

    @cached_property
    def scale(self) -> Array:
        with np.errstate(over="ignore"):
            size = np.abs(self.Y - self.centre).max(axis=0)
        return np.where((size > 0) & np.isfinite(size), size, np.where(size > 0, np.finfo(float).max, 1.0))

    @cached_property
    def V(self) -> Array:
        """(n, q + 1): the weighted targets, and the weights."""
        return np.column_stack([self.w[:, None] * ((self.Y / 2 - self.centre / 2) / self.scale * 2), self.w])

    def targets(self, sums: Array) -> Array:
        """Means in the units of Y from sums (..., q + 1); equal votes where every vote is zero."""
        total = sums[..., -1:]
        mean = np.divide(sums[..., :-1], total, out=np.zeros_like(sums[..., :-1]), where=total > 0)
        return mean * self.scale + self.centre

    def smooth(self, X: Table) -> tuple[Array, Array]:
        """The smoothed targets, and which rows are so far that their votes underflow; those are answered by logarithms."""
        sums = self._sums(X, self.V)
        far, out = self._far(sums[:, -1], X.dtype), self.targets(sums)
        again = far | ~np.isfinite(sums).all(axis=1)
        if again.any():
            out[again] = self._by_logs(X.astype(np.float64)[again])
        if np.isnan(out).any():
            raise ValueError("the kernel values of X are too large for floating-point numbers; scale the columns first.")
        return out, far

    def _by_logs(self, X: Table) -> Array:
        """Means by votes relative to the largest; where even distances lose their digits, by the nearest points alone."""
        sums, top = self.sweep(X)
        out, lost = self.targets(sums[0]), top[0] < -LOST
        c = 1e10
        kernel: Any = getattr(self.voters, "kernel", None)
        while lost.any() and bandwidths(kernel) and c < 1e300:
            wide = Power(scaled(kernel, c), SHARP)  # far apart in shares, as near ones in these bandwidths are far in theirs
            sums, top = self.sweep(X[lost], [wide])
            out[lost], c = self.targets(sums[0]), c * 1e10
            lost[lost] = top[0] < -LOST * SHARP
        return out

    def _sums(self, X: Table, V: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.voters.products(X, V), np.float64)

    def _far(self, total: Array, dtype: Any) -> Array:
        info = np.finfo(dtype)
        return np.asarray(total <= self.w.sum() * float(info.tiny / info.eps))

    def far(self, X: Table) -> Array:
        """Which rows are so far that every kernel value underflows, or nearly."""
        return self._far(self._sums(X, self.V[:, -1:])[:, 0], X.dtype)

    def sweep(self, X: Table, kernels: Sequence[Any] | None = None, without: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
        """Sums (kernels, n, q + 1) relative to the largest vote of each row, so that none underflows, and its logarithm (kernels, n).

        All kernels in one sweep over tiles.

        `without` gives a group to every row and every training point: a row is not voted on by its own group.
        """
        kernels = [getattr(self.voters, "kernel", None)] if kernels is None else kernels
        out, top = np.zeros((len(kernels), len(X), self.V.shape[1])), np.full((len(kernels), len(X), 1), -np.inf)

        def add(rows: slice) -> None:
            for cols, logs in self.voters.logs(X, kernels, rows):
                hidden = None if without is None else _hidden(without[0][rows], without[1][cols])
                for i, L in enumerate(logs):
                    out[i, rows], top[i, rows] = _joined(out[i, rows], top[i, rows], L, self.V[cols], hidden)

        tiles.settle_allocator()
        parallel_map(add, tiles.cuts(len(X), tiles.ROWS))
        return out, top[..., 0]

    def votes(self, X: Table, k: int) -> tuple[Array, Array]:
        """The k training points with the largest shares p_i(x) and these shares, largest first, (n, k) each."""
        index, shares = np.zeros((len(X), k), np.intp), np.zeros((len(X), k))
        with np.errstate(divide="ignore"):
            log_w = np.log(self.w)

        def find(rows: slice) -> None:
            total = np.full(rows.stop - rows.start, -np.inf)
            at, best = np.zeros((len(total), 0), np.intp), np.zeros((len(total), 0))
            for cols, (L,) in self.voters.logs(X, [getattr(self.voters, "kernel", None)], rows):
                L = L + log_w[cols]
                total = np.logaddexp(total, np.logaddexp.reduce(L, axis=1))
                both = np.concatenate([best, L], axis=1)
                names = np.concatenate([at, np.broadcast_to(np.arange(cols.start, cols.stop), L.shape)], axis=1)
                order = np.argsort(-both, axis=1, kind="stable")[:, :k]
                best, at = np.take_along_axis(both, order, 1), np.take_along_axis(names, order, 1)
            none = np.isneginf(total)
            index[rows] = at
            shares[rows] = np.where(none[:, None], self.w[at] / self.w.sum(), np.exp(best - np.where(none, 0, total)[:, None]))

        parallel_map(find, tiles.cuts(len(X), tiles.ROWS))
        return index, shares


def _joined(sums: Array, top: Array, L: Array, V: Array, hidden: Array | None) -> tuple[Array, Array]:
    """Sums of exp(L - top) V with a tile more, top the largest L so far."""
    if hidden is not None:
        L = np.where(hidden, -np.inf, L)
    new = np.maximum(top, L.max(axis=1, keepdims=True).astype(np.float64))
    safe = np.where(np.isneginf(new), 0.0, new)
    votes = np.subtract(L, safe.astype(L.dtype))
    np.exp(votes, out=votes)
    return sums * np.exp(top - safe) + votes @ V.astype(L.dtype, copy=False), new


def _of_shape(L: Any, shape: tuple[int, int]) -> Array:
    return L if np.shape(L) == shape else np.broadcast_to(L, shape)


def _hidden(rows: Array, cols: Array) -> Array | None:
    """The pairs of one group, or None where a tile has none."""
    return rows[:, None] == cols if np.isin(rows, cols).any() else None


def nonnegative(kernel: Any) -> bool:
    """Whether the form of an expression shows that it is nowhere negative.

    >>> from mercer.kernels import Gaussian, Linear
    >>> nonnegative(2 * Gaussian() + 1), nonnegative(Linear()), nonnegative(Linear() ** 2)
    (True, False, True)
    """
    if (isinstance(kernel, Power) and kernel.degree % 2 == 0) or isinstance(kernel, Exp | Constant | ArcCosine):
        return True
    if isinstance(kernel, Polynomial):
        return kernel.degree % 2 == 0
    if isinstance(kernel, Stationary):
        return not isinstance(kernel, Sinc)
    parts = [v for v in kernel.get_params().values() if isinstance(v, Kernel)] if isinstance(kernel, CLOSED) else []
    return bool(parts) and all(map(nonnegative, parts))
