"""Clusters about means in the space of a kernel: the means as sums over the rows, or as points
among features."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from mercer import methods
from mercer.gpu.devices import device_of, told
from mercer.inputs import Array, Table
from mercer.invariants import Floats, Ints, Is, Number, Whole
from mercer.kernels import Kernel, Linear, Scale
from mercer.kernels.defaults import is_precomputed, kernel_of
from mercer.lifts.base import stream_of
from mercer.models.base import bytes_of, check_finite
from mercer.models.expansion import Expansion, kernel_at
from mercer.models.kmeans.lloyd import Clusters, FeatureSpace, KernelSpace, RowSpace, kmeans
from mercer.models.kmeans.points import PIECE, PointSpace
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.settings import FittedKernel, KernelSetting, LiftSetting, Seed, way_of, whole
from mercer.ops.threads import parallel_map, single_blas
from mercer.ops.tiles import cuts
from mercer.plans import Plan
from mercer.store import register

EXACT = ("auto", "exact", "iterative")
MOST_ROWS, MOST_GPU_ROWS = 20_000, 200_000  # that via="auto" compares with each other
ROUNDING = 512  # units in the last place by which means that are the same may differ
LARGE = (
    64 << 20
)  # bytes of rows that are kept as they are, not copied: leave them so while you use the model


@dataclass(frozen=True, eq=False)
class KMeansSettings:
    """The parameters of `KernelKMeans`, checked: `way` and `method` are what `via` says, `memory`
    is in bytes."""

    n_clusters: int
    kernel: KernelSetting
    lift: LiftSetting
    way: str
    method: methods.Method
    n_init: int
    max_iter: int
    memory: float
    random_state: Seed
    device: str = "cpu"

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        k, runs, steps = (
            whole(getattr(m, name), name) for name in ("n_clusters", "n_init", "max_iter")
        )
        kernel, memory = kernel_of(m), bytes_of(m.memory_limit)
        way, method = way_of(m.via, kernel, m.lift)
        device_of(m.device)
        return cls(k, kernel, m.lift, way, method, runs, steps, memory, m.random_state, m.device)

    @property
    def most_rows(self) -> int:
        """That via="auto" compares with each other."""
        return MOST_ROWS if device_of(self.device) is None else MOST_GPU_ROWS

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)


def choose(n: int, s: KMeansSettings) -> Plan:
    """The way of n rows, "exact" or "features", and why."""
    if s.precomputed and s.way not in EXACT:
        raise ValueError("kernel='precomputed' has no features; give via='exact' or 'auto'.")
    if s.lift is not None or s.way not in EXACT:
        return Plan("features", "asked for")
    if s.precomputed or s.way != "auto":
        return Plan("exact", "a Gram matrix was given" if s.precomputed else "asked for")
    return (
        Plan("exact", f"at most {s.most_rows:,} rows")
        if n <= s.most_rows
        else Plan("features", f"more than {s.most_rows:,} rows")
    )


@register("kmeans.Run")
@dataclass(frozen=True, eq=False)
class Run:
    """What the steps came to: the cluster of each row, sum_i w_i |x_i - mean|^2, the steps, and
    |mean|^2 of every cluster."""

    labels: Array
    inertia: float
    steps: int
    squares: Array

    must = dict(labels=Ints("n", below="k"), inertia=Number(), steps=Whole(), squares=Floats("k"))


@register("kmeans.KernelMeans")
@dataclass(frozen=True, eq=False)
class KernelMeans:
    """Means m_c = sum_i coef_ic phi(x_i); a linear kernel is taken about an origin, so that a large
    offset costs no digits."""

    plan: Plan
    run: Run
    over: Expansion
    coef: Array  # (n, k)
    origin: float | Array = 0.0

    must = dict(
        plan=Is("Plan"),
        run=Is("Run"),
        over=Is("Expansion"),
        coef=Floats("n", "k"),
        origin=Number() | Floats(None),
    )
    phi, centers = None, None

    def _laws(self) -> str | None:
        points, (n, k) = self.over.points, self.coef.shape
        if len(self.run.labels) != n or (points is not None and len(points) != n):
            return (
                f"has coefficients of {n} rows, labels of {len(self.run.labels)}, and other points"
            )
        return (
            None
            if len(self.run.squares) == k
            else f"has {k} means, and squares of {len(self.run.squares)}"
        )

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return len(self.coef) if self.over.points is None else self.over.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.over.kernel

    def dots(self, X: Table) -> Array:
        """<phi(x), m_c>, (n, k)."""
        points = self.over.points
        return (
            self.over.operator(
                about(X, self.origin), None if points is None else about(points, self.origin)
            )
            @ self.coef
        )

    def norms(self, X: Table) -> Array:
        """|phi(x)|^2"""
        return np.asarray(cast(Kernel, self.kernel).diag(about(X, self.origin)), np.float64)


@register("kmeans.FeatureMeans")
@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """Means m_c (k, D) among features, which are taken about an origin near them."""

    plan: Plan
    run: Run
    phi: FittedMap
    centers: Array
    origin: Array

    must = dict(
        plan=Is("Plan"),
        run=Is("Run"),
        phi=Is("FittedMap"),
        centers=Floats("k", "D"),
        origin=Floats("D"),
    )
    over, coef = None, None

    def _laws(self) -> str | None:
        k, D = self.centers.shape
        fits = self.phi.width == D and len(self.run.squares) == k
        return (
            None
            if fits
            else f"has {k} means among {D} features, not {len(self.run.squares)} among {self.phi.width}"
        )

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.phi.kernel

    def dots(self, X: Table) -> Array:
        """<phi(x), m_c>, (n, k)."""
        return np.vstack([F @ (self.centers - self.origin).T for F in self._about_origin(X)])

    def norms(self, X: Table) -> Array:
        """|phi(x)|^2"""
        return np.concatenate([np.square(F).sum(1) for F in self._about_origin(X)])

    def _about_origin(self, X: Table) -> Iterator[Array]:
        return (F.astype(np.float64) - self.origin for _, F in self.phi.batches(X))


Fitted = tuple[
    KernelMeans | FeatureMeans, Clusters, int
]  # the value, the run, and how many of the means differ


def fit(s: KMeansSettings, X: Table, weight: Array | None) -> Fitted:
    """Seeds, and steps until no row changes its cluster, by the way that settings and rows ask
    for."""
    return (exactly if choose(len(X), s).way == "exact" else over_features)(s, X, weight)


def exactly(s: KMeansSettings, X: Table, weight: Array | None) -> Fitted:
    """By tiles of the kernel matrix, one sweep a step."""
    w = np.ones(len(X)) if weight is None else weight
    over = (
        Expansion("precomputed", None)
        if s.precomputed
        else Expansion(kernel_at(s.kernel, X, weight), _own(X))
    )
    origin: float | Array = 0.0
    if _moves(over.kernel) and not X.sparse:  # in the digits of rows, which then lose none
        origin = _mean(X, w).astype(X.dtype).astype(np.float64)
    moved = about(X, origin)
    space: RowSpace
    digits: Any
    if _points(s, over.kernel, X):
        space, how, digits = PointSpace(moved.data), "points of a linear kernel", X.dtype
    else:
        op, where, digits = _operator(s, over, moved)
        space, how = KernelSpace(op), f"compared with each other, tile by tile{where}"
    found = _run(s, space, X, w)
    inner = space.inner(found.coef)
    plan = _plan("exact", how, found)
    return (
        KernelMeans(plan, _kept(found, inner), over, found.coef, origin),
        found,
        distinct(inner, digits),
    )


def _points(s: KMeansSettings, kernel: FittedKernel, X: Table) -> bool:
    """Whether rows are the points of their kernel, which are then seen as such."""
    plain = isinstance(kernel, Linear) and kernel.metric is None
    return plain and not X.items and not X.sparse and device_of(s.device) is None


def _operator(s: KMeansSettings, over: Expansion, X: Table) -> tuple[Any, str, DTypeLike]:
    """K of these rows, on the GPU where one is asked for and has a tile; what the plan says, and
    the digits of products."""
    gpu = device_of(s.device)
    if gpu is None:
        return over.operator(X), "", X.dtype
    if (why := over.no_tile(X)) is not None:
        return over.operator(X), f"; on the CPU, as {why}", X.dtype
    there = import_module("mercer.gpu.operator")
    op = there.GPUOperator(over.kernel, X, device=gpu)
    return there.HostOperator(op), f"; {told(s.device)}, to about 1e-6", np.float32


def over_features(s: KMeansSettings, X: Table, weight: Array | None) -> Fitted:
    """By features, kept between the steps where they fit."""
    w = np.ones(len(X)) if weight is None else weight
    phi = fitted_map(s.kernel, s.lift, s.method, X, weight, seed=s.random_state, memory=s.memory)
    batches = _batches(phi, X, s.memory)
    origin = mean_of(batches(), w).astype(X.dtype).astype(np.float64)
    kept = len(X) * phi.width * X.dtype.itemsize <= s.memory / 2
    space = (
        PointSpace(np.concatenate([F - origin.astype(F.dtype) for _, F in batches()]))
        if kept
        else FeatureSpace(batches, len(X), origin)
    )
    found = _run(s, space, X, w)
    points = space.points(found.coef)
    inner = points @ points.T
    plan = _plan("features", f"{phi.width:,} features of each", found)
    return (
        FeatureMeans(plan, _kept(found, inner), phi, points + origin, origin),
        found,
        distinct(inner, X.dtype),
    )


def _batches(
    phi: FittedMap, X: Table, memory: float
) -> Callable[[], Iterable[tuple[slice, Array]]]:
    if len(X) * phi.width * X.dtype.itemsize > memory:
        return lambda: phi.batches(X)
    kept = list(phi.batches(X))
    return lambda: kept


def _run(s: KMeansSettings, space: RowSpace, X: Table, w: Array) -> Clusters:
    found = kmeans(
        space,
        s.n_clusters,
        w,
        _order(s, X),
        stream_of(s.random_state),
        n_init=s.n_init,
        max_iter=s.max_iter,
    )
    check_finite(found.inertia)
    return found


def _order(s: KMeansSettings, X: Table) -> Array:
    """By values, so that draws do not depend on the order of the rows, or on a row that comes twice
    instead of weighing two."""
    if s.precomputed or X.items:
        return np.arange(len(X))
    along = np.cos(np.arange(X.width))
    step = max(64, PIECE // max(X.width, 1))
    parts = parallel_map(lambda at: X.data[at] @ along, cuts(len(X), step))
    return np.argsort(np.concatenate(parts), kind="stable")


def _kept(found: Clusters, inner: Array) -> Run:
    return Run(found.labels, found.inertia, found.steps, np.diag(inner).copy())


def _plan(way: str, how: str, found: Clusters) -> Plan:
    n, k = found.coef.shape
    return Plan(
        way,
        f"{n:,} rows: {how}",
        {"rows": n, "n_clusters": k},
        bytes=24.0 * n * k,
        passes=found.steps,
    )


def about(X: Table, origin: float | Array) -> Table:
    """Rows about an origin, where there is one."""
    if not isinstance(origin, np.ndarray):
        return X
    data = (X.data.toarray() if X.sparse else X.data) - origin.astype(X.dtype)
    return Table(data, X.columns)


def _mean(X: Table, w: Array) -> Array:
    pieces = cuts(len(X), max(64, PIECE // X.width))
    with single_blas():
        return mean_of(((at, X.data[at]) for at in pieces), w)


def mean_of(batches: Iterable[tuple[slice, Array]], w: Array) -> Array:
    """Of the rows, by their weights; 0 in columns where it overflows."""
    mean = (
        np.asarray(sum(w[rows] @ F.astype(np.float64, copy=False) for rows, F in batches)) / w.sum()
    )
    return np.where(np.isfinite(mean), mean, 0.0)


def distinct(inner: Array, dtype: DTypeLike) -> int:
    """How many points differ by more than rounding, from their inner products."""
    square = np.diag(inner)
    same = square[:, None] + square - 2 * inner <= ROUNDING * np.finfo(dtype).eps * (
        square[:, None] + square
    )
    return int((~np.tril(same, -1).any(axis=1)).sum())


def _moves(kernel: FittedKernel) -> bool:
    """Whether distances of this kernel's are the same for rows that are all moved, though its
    values are not."""
    return _moves(kernel.kernel) if isinstance(kernel, Scale) else isinstance(kernel, Linear)


def _own(X: Table) -> Table:
    """A copy, where X is not large."""
    if X.items:
        return Table(X.data.copy())
    large = (X.data.data if sp.issparse(X.data) else X.data).nbytes > LARGE
    return X if large else Table(X.data.copy(), X.columns)
