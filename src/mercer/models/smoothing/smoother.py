"""Smoothing by kernel votes: weighted means of targets, their shares, and the leave-one-out errors
of bandwidths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import DTypeLike

from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is
from mercer.kernels import Kernel
from mercer.kernels.algebra import Power
from mercer.kernels.defaults import bandwidths, scaled
from mercer.models.base import fields_alone
from mercer.models.smoothing.voters import QueryKernel
from mercer.ops import tiles
from mercer.ops.threads import parallel_map
from mercer.store import register

HELD = 8 << 20  # bytes of sums that a task holds
# Differences of larger logarithms are rounding. Bandwidths are then widened step by step, until
# squares are numbers again; the
# power takes one step of a squared distance back, so that the nearest wins alone there as it does
# without widening.
LOST, WIDER, SHARP = 1e13, 1e10, 10**20
Groups = tuple[
    Array, Array
    # one number for every row and one for every training point; those of its own do not vote on a row
]


@register("smoothing.Smoother")
@dataclass(frozen=True, eq=False)
class Smoother:
    """sum_i w_i k(x, x_i) y_i / sum_i w_i k(x, x_i), for targets Y (n, q) kept about their mean and
    in units of their range."""

    voters: QueryKernel
    Y: Array
    weight: Array | None = None

    must = dict(
        voters=Is("Points", "GivenVotes"), Y=Floats("n", "q"), weight=Floats("n", low=0) | None
    )

    __getstate__ = fields_alone

    def _laws(self) -> str | None:
        return (
            None
            if len(self.voters) == len(self.Y)
            else f"has {len(self.Y)} targets of {len(self.voters)} points"
        )

    @cached_property
    def w(self) -> Array:
        return np.ones(len(self.Y)) if self.weight is None else self.weight

    @cached_property
    def centre(self) -> Array:
        top = np.abs(self.Y).max(axis=0)
        top[top == 0] = 1.0
        return (self.w @ (self.Y / top) / self.w.sum()) * top

    @cached_property
    def half(self) -> Array:
        """Half the largest distance of a target to the centre: the whole may be too large for a
        number."""
        size = np.abs(self.Y / 2 - self.centre / 2).max(axis=0)
        return np.where(size > 0, size, 1.0)

    @cached_property
    def range(self) -> tuple[Array, Array]:
        return self.Y.min(axis=0), self.Y.max(axis=0)

    @cached_property
    def T(self) -> Array:
        """(n, q + 1): the targets, and ones."""
        return np.column_stack([self.relative(self.Y), np.ones(len(self.Y))])

    def relative(self, Y: Array) -> Array:
        """Targets about their centre, in [-1, 1]."""
        return np.asarray((Y / 2 - self.centre / 2) / self.half)

    def targets(self, sums: Array) -> Array:
        """Means in the units of Y from sums (..., q + 1); equal votes where every vote is zero."""
        total = sums[..., -1:]
        mean = np.divide(
            sums[..., :-1], total, out=np.zeros_like(sums[..., :-1]), where=~(total <= 0)
        )
        with np.errstate(over="ignore"):
            return np.clip((mean * self.half + self.centre / 2) * 2, *self.range)

    @np.errstate(over="ignore", invalid="ignore")
    def smooth(self, X: Table, gpu: str | None = None) -> tuple[Array, Array, Array]:
        """The smoothed targets; which rows are so far that their votes underflow, which are
        answered by logarithms; which have none. On a torch device where one is given and can."""
        gpu = gpu if len(X) and self.voters.no_gpu(X) is None else None
        sums = self._products(X, self.w[:, None] * self.T, gpu)
        far, none, out = self._far(sums[:, -1], X.dtype), np.zeros(len(X), bool), self.targets(sums)
        lost = far if gpu is None else self._far(sums[:, -1], np.float32)
        again = lost | ~np.isfinite(sums).all(axis=1)
        if again.any():
            far[again] = far[again] if gpu is None else self.far(X[again])
            sums = self.sums(X.astype(np.float64)[again])
            out[again], none[again] = self.targets(sums), sums[:, -1] == 0
        return out, far, none

    def far(self, X: Table) -> Array:
        """Which rows are so far that every kernel value underflows, or nearly."""
        return self._far(self._products(X, self.w[:, None])[:, 0], X.dtype)

    def _products(self, X: Table, V: Array, gpu: str | None = None) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.voters.products(X, V, gpu), np.float64)

    def _far(self, total: Array, dtype: DTypeLike) -> Array:
        info = np.finfo(dtype)
        return np.asarray(total <= self.w.sum() * float(info.tiny / info.eps))

    # by logarithms
    @property
    def kernel(self) -> Kernel | None:
        return self.voters.kernel

    @np.errstate(over="ignore", invalid="ignore")
    def sums(self, X: Table, without: Groups | None = None) -> Array:
        """Sums (n, q + 1) relative to the largest vote of each row, so that none underflows."""

        def of(rows: slice) -> Array:
            return self._swept(X[rows], [self.kernel], without and (without[0][rows], without[1]))[
                0
            ]

        tiles.settle_allocator()
        return _numbers(np.concatenate(parallel_map(of, tiles.cuts(len(X), tiles.TILE_ROWS))))

    @np.errstate(over="ignore", invalid="ignore")
    def errors(self, X: Table, kernels: Sequence[Kernel], index: Array, groups: Array) -> Array:
        """The mean squared error with each kernel of rows left out with their group, in units of
        the range; all in one sweep."""

        def of(part: slice) -> Array:
            at = index[part]
            gaps = (
                self.relative(self.targets(s)) - self.T[at, :-1]
                for s in self._swept(X[at], kernels, (groups[at], groups))
            )
            return np.array([self.w[at] @ np.square(gap).mean(axis=1) for gap in gaps])

        tiles.settle_allocator()
        step = max(16, min(tiles.TILE_ROWS, HELD // (8 * len(kernels) * self.T.shape[1])))
        return _numbers(
            np.sum(parallel_map(of, tiles.cuts(len(index), step)), axis=0) / self.w[index].sum()
        )

    def _swept(self, X: Table, kernels: Sequence[Kernel | None], without: Groups | None) -> Array:
        """Sums (kernels, n, q + 1) of a tile of rows."""
        out, top = self._tallied(X, kernels, without)
        for i, kernel in enumerate(kernels):

            def ask(lost: Array, wide: Kernel) -> tuple[Array, Array]:
                group = without and (without[0][lost], without[1])
                sums, best = self._tallied(X[lost].astype(np.float64), [wide], group, exact=True)
                return sums[0], best[0]

            _mend(kernel, out[i], top[i], ask)
        return out

    def _tallied(
        self,
        X: Table,
        kernels: Sequence[Kernel | None],
        without: Groups | None,
        *,
        exact: bool = False,
    ) -> tuple[Array, Array]:
        """Sums and the logarithm of the largest vote (kernels, n), all kernels in one sweep over
        training points."""
        out, top = (
            np.zeros((len(kernels), len(X), self.T.shape[1])),
            np.full((len(kernels), len(X), 1), -np.inf),
        )
        for cols, logs in self.voters.logs(X, kernels, exact=exact):
            hidden = None if without is None else _hidden(without[0], without[1][cols])
            for i, L in enumerate(logs):
                out[i], top[i] = _joined(
                    out[i], top[i], self._weighed(L, cols, hidden), self.T[cols]
                )
        return out, top[..., 0]

    def _weighed(self, L: Array, cols: slice, hidden: Array | None = None) -> Array:
        L = L if self.weight is None else L + self._log_w[cols].astype(L.dtype)
        return L if hidden is None else np.where(hidden, -np.inf, L)

    @cached_property
    def _log_w(self) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self.w)

    @np.errstate(over="ignore", invalid="ignore")
    def votes(self, X: Table, k: int) -> tuple[Array, Array]:
        """The k training points with the largest shares p_i(x) and these shares, largest first, (n,
        k) each."""
        found = np.concatenate(
            parallel_map(lambda rows: self._voted(X[rows], k), tiles.cuts(len(X), tiles.TILE_ROWS))
        )
        index, shares = found[:, 0].astype(np.intp), _numbers(found[:, 1])
        none = shares[:, 0] == 0
        index[none] = np.argsort(-self.w, kind="stable")[:k]
        shares[none] = self.w[index[none]] / self.w.sum()
        return index, shares

    def _voted(self, X: Table, k: int) -> Array:
        found, top = self._largest(X, self.kernel, k)
        _mend(
            self.kernel, found, top, lambda lost, wide: self._largest(X[lost], wide, k, exact=True)
        )
        return found

    def _largest(
        self, X: Table, kernel: Kernel | None, k: int, *, exact: bool = False
    ) -> tuple[Array, Array]:
        """Names and shares of the k largest votes, (n, 2, k), and the logarithm of the largest."""
        best, at = np.zeros((len(X), 0)), np.zeros((len(X), 0), np.intp)
        total, top = np.zeros((len(X), 1)), np.full((len(X), 1), -np.inf)
        for cols, (L,) in self.voters.logs(X, [kernel], exact=exact):
            L = self._weighed(L, cols)
            total, top = _joined(total, top, L, np.ones((L.shape[1], 1)))
            both = np.concatenate([best, L], axis=1)
            names = np.concatenate(
                [at, np.broadcast_to(np.arange(cols.start, cols.stop), L.shape)], axis=1
            )
            order = np.argsort(-both, axis=1, kind="stable")[:, :k]
            best, at = np.take_along_axis(both, order, 1), np.take_along_axis(names, order, 1)
        shares = np.exp(best - np.where(np.isneginf(top), 0.0, top)) / np.where(
            total == 0, 1.0, total
        )
        return np.stack([at, shares], axis=1), top[:, 0]


def _mend(
    kernel: Kernel | None,
    found: Array,
    top: Array,
    ask: Callable[[Array, Kernel], tuple[Array, Array]],
) -> None:
    """Answers again, by the nearest points alone, for the rows where even logarithms of votes have
    lost their digits."""
    lost = np.flatnonzero(top < -LOST)
    for wide in _wider(kernel) if len(lost) else ():
        found[lost], top = ask(lost, wide)
        lost = lost[top < -LOST * SHARP]
        if not len(lost):
            return


def _wider(kernel: Kernel | None) -> Iterator[Kernel]:
    """The kernel with larger and larger bandwidths, sharpened."""
    if kernel is None:
        return
    sizes, c = [kernel.parameters()[path] for path in bandwidths(kernel)], WIDER
    while sizes and c * max(1.0, *sizes) < 1e300:
        yield Power(scaled(kernel, c), SHARP)
        c *= WIDER


def _numbers(out: Array) -> Array:
    if np.isnan(out).any():
        raise ValueError(
            "the kernel values of X are too large for floating-point numbers; scale the columns first."
        )
    return out


def _joined(sums: Array, top: Array, L: Array, V: Array) -> tuple[Array, Array]:
    """Sums of exp(L - top) V with a tile more, top the largest L so far."""
    new = np.maximum(top, L.max(axis=1, keepdims=True).astype(np.float64))
    safe = np.where(np.isneginf(new), 0.0, new)
    votes = np.subtract(L, safe.astype(L.dtype))
    np.exp(votes, out=votes)
    return sums * np.exp(top - safe) + votes @ V.astype(L.dtype, copy=False), new


def _hidden(rows: Array, cols: Array) -> Array | None:
    """The pairs of one group, or None where a tile has none."""
    return rows[:, None] == cols if np.isin(rows, cols).any() else None
