"""How clusters are found: the settings, and the ways, among points, over features that do not fit,
and by the kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from mercer import methods
from mercer.gpu.devices import device_of, told, without
from mercer.inputs import Array, Table
from mercer.kernels import Linear, Scale
from mercer.kernels.defaults import is_precomputed, kernel_of
from mercer.kernels.named import NamedKernel
from mercer.lifts import Identity, KernelLift
from mercer.lifts.base import stream_of
from mercer.models.base import bytes_of, check_finite
from mercer.models.expansion import Expansion, kernel_at
from mercer.models.kmeans.clusters import FeatureMeans, KernelMeans, Run, about
from mercer.models.kmeans.lloyd import Clusters, FeatureSpace, KernelSpace, RowSpace, kmeans
from mercer.models.kmeans.points import PointClusters, points
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.settings import (
    FittedKernel,
    KernelSetting,
    LiftSetting,
    Seed,
    number,
    way_of,
    whole,
)
from mercer.plans import Plan

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
    tol: float
    memory: float
    random_state: Seed
    device: str = "cpu"

    @classmethod
    def of(cls, m: Any) -> Self:
        """Of an estimator; ValueError where one of its parameters is none."""
        k, runs, steps = (
            whole(getattr(m, name), name) for name in ("n_clusters", "n_init", "max_iter")
        )
        if (tol := number(m.tol)) is None or tol < 0:
            raise ValueError(f"tol must be a number >= 0, got {m.tol!r}.")
        kernel, memory = kernel_of(m), bytes_of(m.memory_limit)
        name = kernel.name if isinstance(kernel, NamedKernel) else kernel
        if isinstance(name, str) and name == "linear":
            kernel = Linear()  # which rows need not be seen for
        way, method = way_of(m.via, kernel, m.lift)
        device_of(m.device)
        return cls(
            k, kernel, m.lift, way, method, runs, steps, tol, memory, m.random_state, m.device
        )

    @property
    def most_rows(self) -> int:
        """That via="auto" compares with each other."""
        return MOST_ROWS if device_of(self.device) is None else MOST_GPU_ROWS

    @property
    def precomputed(self) -> bool:
        return is_precomputed(self.kernel)


def choose(n: int, s: KMeansSettings) -> Plan:
    """The way of n rows, "exact" or "features", and why; of rows that are their own features see
    `fit`."""
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


Found = Clusters | PointClusters
Fitted = tuple[
    KernelMeans | FeatureMeans, Found, int
]  # the value, the run, and how many of the means differ


def fit(s: KMeansSettings, X: Table, weight: Array | None) -> Fitted:
    """Seeds, and steps until no row changes its cluster, or next to nothing, by the way that
    settings and rows ask for."""
    if _itself(s, X) or choose(len(X), s).way == "features":
        return over_features(s, X, weight)
    return exactly(s, X, weight)


def _itself(s: KMeansSettings, X: Table) -> bool:
    """Whether the features of via="auto" are the rows themselves."""
    return s.lift is None and s.way == "auto" and _points(s, s.kernel, X)


def exactly(s: KMeansSettings, X: Table, weight: Array | None) -> Fitted:
    """By tiles of the kernel matrix, one sweep a step; of a linear kernel among points."""
    w = np.ones(len(X)) if weight is None else weight
    over = (
        Expansion("precomputed", None)
        if s.precomputed
        else Expansion(kernel_at(s.kernel, X, weight), _own(X))
    )
    if _points(s, over.kernel, X):
        seen = _among_points(s, X.data, w)
        inner, coef = seen.centers @ seen.centers.T, seen.coef(w)
        plan = _plan("exact", "points of a linear kernel", seen, len(coef), s)
        return (
            KernelMeans(plan, _kept(seen, inner), over, coef, seen.origin),
            seen,
            distinct(inner, X.dtype),
        )
    origin: float | Array = 0.0
    if _moves(over.kernel) and not X.sparse:  # in the digits of rows, which then lose none
        origin = mean_of([(slice(None), X.data)], w).astype(X.dtype).astype(np.float64)
    op, where, digits = _operator(s, over, about(X, origin))
    space = KernelSpace(op)
    found = _run(s, space, X, w)
    inner = space.inner(found.coef)
    how = f"compared with each other, tile by tile{where}"
    plan = _plan("exact", how, found, len(X), s)
    return (
        KernelMeans(plan, _kept(found, inner), over, found.coef, origin),
        found,
        distinct(inner, digits),
    )


def _points(s: KMeansSettings, kernel: KernelSetting, X: Table) -> bool:
    """Whether rows are the points of their kernel, which are then seen as such."""
    plain = isinstance(kernel, Linear) and kernel.metric is None
    return plain and not X.items and not X.sparse and device_of(s.device) is None


def _among_points(s: KMeansSettings, X: Array, w: Array) -> PointClusters:
    stream = stream_of(s.random_state)
    return points(X, w, s.n_clusters, stream, n_init=s.n_init, max_iter=s.max_iter, tol=s.tol)


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
    phi = (
        FittedMap.fit(Identity(), X[:1], s.memory)
        if _itself(s, X)
        else fitted_map(s.kernel, s.lift, s.method, X, weight, seed=s.random_state, memory=s.memory)
    )
    if _is_identity(phi) and not X.sparse:
        found, C, origin = _of_points(_among_points(s, X.data, w))
    elif len(X) * phi.width * X.dtype.itemsize <= s.memory / 2:
        F = np.concatenate([F for _, F in phi.batches(X)])
        found, C, origin = _of_points(_among_points(s, F, w))
    else:
        found, C, origin = _in_batches(s, phi, X, w)
    inner = C @ C.T
    plan = _plan("features", f"{phi.width:,} features of each", found, len(X), s)
    return (
        FeatureMeans(plan, _kept(found, inner), phi, C + origin, origin),
        found,
        distinct(inner, X.dtype),
    )


def _is_identity(phi: FittedMap) -> bool:
    """Whether features are the rows themselves."""
    lift = phi.lift.map_ if isinstance(phi.lift, KernelLift) else phi.lift
    return isinstance(lift, Identity) and lift.root_ is None


def _of_points(found: PointClusters) -> tuple[Found, Array, Array]:
    """A run, its means about an origin, and that."""
    return found, found.centers, np.zeros(found.centers.shape[1]) + found.origin


def _in_batches(
    s: KMeansSettings, phi: FittedMap, X: Table, w: Array
) -> tuple[Found, Array, Array]:
    """The same of features that are computed anew for every step."""
    origin = mean_of(phi.batches(X), w).astype(X.dtype).astype(np.float64)
    space = FeatureSpace(lambda: phi.batches(X), len(X), origin)
    found = _run(s, space, X, w)
    return found, space.points(found.coef), origin


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
    return np.argsort(X.data @ np.cos(np.arange(X.width)), kind="stable")


def _kept(found: Found, inner: Array) -> Run:
    return Run(found.labels, found.inertia, found.steps, np.diag(inner).copy())


def _plan(way: str, how: str, found: Found, n: int, s: KMeansSettings) -> Plan:
    k = s.n_clusters
    size = (
        24.0 * n * k if isinstance(found, Clusters) else 8.0 * n * (4 if way != "exact" else k + 4)
    )
    return Plan(
        way,
        f"{n:,} rows: {how}{without(s.device)}",
        {"rows": n, "n_clusters": k},
        bytes=size,
        passes=found.steps,
    )


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
