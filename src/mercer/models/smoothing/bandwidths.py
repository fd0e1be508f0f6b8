"""A smoother at the bandwidth given, or at the one that is best for the rows left out, all of them
tried in one sweep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_random_state

from mercer.gpu.devices import device_of, told, without
from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is
from mercer.kernels import Kernel
from mercer.kernels.base import positive
from mercer.kernels.defaults import bandwidths, is_precomputed, kernel_of, scaled
from mercer.models.base import fields_alone
from mercer.models.expansion import scaled_kernel_at
from mercer.models.settings import FittedKernel, KernelSetting, Seed, shown
from mercer.models.smoothing.smoother import HELD, Smoother
from mercer.models.smoothing.voters import COLUMNS, GivenVotes, Points
from mercer.ops.tiles import TILE_ROWS
from mercer.plans import Plan
from mercer.stats import row_hashes
from mercer.store import register

SCALES = 2.0 ** np.arange(-7, 2.5, 0.5)
LOO_PAIRS, LOO_ROWS = (
    10**8,
    1000,
)  # with more pairs, bandwidths are tried on some of the rows; on so many at least
COPIED = 64 << 20  # bytes of rows up to which a model keeps a copy of its own


@dataclass(frozen=True, eq=False)
class SmoothingSettings:
    """The parameters of a smoother, checked: `how` is the way to a bandwidth, `scales` are those to
    choose from."""

    kernel: KernelSetting
    how: str
    scales: Array
    random_state: Seed
    device: str = "cpu"

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        if not (isinstance(m.bandwidth, str) and m.bandwidth in ("auto", "loo", "fixed")):
            raise ValueError(
                f"bandwidth must be 'auto', 'loo' or 'fixed', got {shown(m.bandwidth)!r}."
            )
        scales = (
            SCALES
            if m.scales is None
            else np.unique([positive(shown(s), "scales") for s in _listed(m.scales)])
        )
        if not len(scales):
            raise ValueError(
                "scales is empty; give one factor or more, or None for the usual ones."
            )
        device_of(m.device)
        return cls(kernel_of(m), m.bandwidth, scales, m.random_state, m.device)

    def where(self, smoother: Smoother, rows: Table) -> str:
        """Where votes are counted, for the plan."""
        if device_of(self.device) is None:
            return without(self.device)
        why = smoother.voters.no_gpu(rows)
        return f"; {told(self.device)}, to about 1e-6" if why is None else f"; on the CPU, as {why}"


def _listed(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return list(values.ravel().tolist())
    return (
        list(values) if isinstance(values, Iterable) and not isinstance(values, str) else [values]
    )


def choose(kernel: KernelSetting, s: SmoothingSettings) -> Plan:
    """The way to the bandwidth of this kernel, "loo" by left-out rows or "fixed" as given, and
    why."""
    if s.how == "loo" and not bandwidths(kernel):
        raise ValueError(
            f"bandwidth='loo' needs a kernel with a bandwidth, got {kernel!r}; use bandwidth='fixed'."
        )
    if s.how != "auto":
        return Plan(s.how, "asked for")
    if not (s.kernel is None or isinstance(s.kernel, str)):
        return Plan("fixed", "a kernel was given, with its bandwidth")
    return (
        Plan("loo", "the bandwidth was left open")
        if bandwidths(kernel)
        else Plan("fixed", "there is no bandwidth")
    )


@register("smoothing.FittedSmoother")
@dataclass(frozen=True, eq=False)
class FittedSmoother:
    """A smoother, the rows that it was fitted to, and the errors of the bandwidths that were
    tried."""

    plan: Plan
    smoother: Smoother
    rows: Table
    scales: Array | None = None
    errors: Array | None = None

    must = dict(
        plan=Is("Plan"),
        smoother=Is("Smoother"),
        rows=Is("Table"),
        scales=Floats("s") | None,
        errors=Floats("s", finite=False) | None,
    )
    __getstate__ = fields_alone

    def _laws(self) -> str | None:
        n = len(self.smoother.Y)
        return None if len(self.rows) == n else f"has {len(self.rows)} rows and {n} targets"

    @property
    def kernel(self) -> FittedKernel:
        kernel = self.smoother.kernel
        return "precomputed" if kernel is None else kernel

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return None if self.rows.items else self.rows.width

    @cached_property
    def groups(self) -> Array:
        """Equal rows have equal numbers: a point is left out with its copies, so that a weight of 2
        is two rows."""
        return groups_of(self.rows, is_precomputed(self.kernel))

    def left_out(self) -> Array:
        """Every training row's answer without it and its copies, (n, q)."""
        s = self.smoother
        return s.targets(s.sums(self.rows, (self.groups, self.groups)))


def groups_of(rows: Table, given: bool) -> Array:
    """A number for each row, the same for copies; rows of matrices and items have none."""
    return (
        np.arange(len(rows))
        if given or rows.items
        else np.unique(row_hashes(rows.data), return_inverse=True)[1]
    )


def fit(s: SmoothingSettings, X: Table, Y: Array, weight: Array | None) -> FittedSmoother:
    """Keep the rows; choose the bandwidth."""
    kernel = scaled_kernel_at(s.kernel, X, weight)
    tried = choose(kernel, s).way == "loo"
    rows = _own(X)
    smoother = Smoother(
        Points(kernel, rows) if isinstance(kernel, Kernel) else GivenVotes(len(rows)), Y, weight
    )
    if not (tried and isinstance(kernel, Kernel)):
        return FittedSmoother(_plan(rows, Y.shape[1], s.where(smoother, rows)), smoother, rows)
    some = _left_out_rows(s, smoother)
    kernels = [scaled(kernel, c) for c in s.scales]
    errors = smoother.errors(rows, kernels, some, groups_of(rows, False))
    best = kernels[
        int(np.flatnonzero(errors <= errors.min() * (1 + 1e-9))[-1])
    ].clone()  # of equals the smoothest
    plan = _plan(rows, Y.shape[1], s.where(smoother, rows), len(s.scales), len(some))
    return FittedSmoother(
        plan, replace(smoother, voters=Points(best, rows)), rows, s.scales.copy(), errors
    )


def _left_out_rows(s: SmoothingSettings, smoother: Smoother) -> Array:
    some, most = np.flatnonzero(smoother.w), max(LOO_ROWS, LOO_PAIRS // len(smoother.Y))
    return (
        some
        if len(some) <= most
        else np.sort(check_random_state(s.random_state).choice(some, most, replace=False))
    )


def _plan(rows: Table, q: int, where: str, scales: int = 0, left_out: int = 0) -> Plan:
    n = len(rows)
    tile = 8.0 * TILE_ROWS * COLUMNS * 4 + (HELD if scales else 0)
    settings = {"rows": n, "outputs": q, "bandwidth": "by leave-one-out" if scales else "as given"}
    if scales:
        settings |= {"scales": scales, "rows left out": left_out}
    why = f"every answer is one sweep over {n:,} training points in tiles, whatever the number of queries{where}"
    return Plan(
        "tiles",
        why,
        settings,
        tile + 8.0 * n * (2 * q + 1 + (1 if rows.items else rows.width)),
        None,
        1 if scales else 0,
    )


def _own(rows: Table) -> Table:
    """A copy of rows that are not many: what the caller does to his own then changes nothing."""
    if rows.items or (rows.data.data if rows.sparse else rows.data).nbytes > COPIED:
        return rows
    return Table(rows.data.copy(), rows.columns)
