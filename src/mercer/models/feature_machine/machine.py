"""Fitted feature machines: kernel expansions under learnt metrics, in cells where there are many
rows, and their mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType

import numpy as np
from scipy.special import softmax

from mercer.inputs import Array, Table
from mercer.invariants import Each, Floats, Is, Number, Whole
from mercer.kernels import Laplace, Linear
from mercer.linalg.cholesky import Cholesky
from mercer.linalg.solvers import AutoSolver, float32_serves
from mercer.models.cells import CellTree
from mercer.models.feature_machine.dense import (
    ONE_THREAD_ROWS,
    PathRows,
    distances,
    kernel_values,
    median_distance,
    one_thread,
    solved_linear,
    under,
)
from mercer.models.feature_machine.paths import (
    GRADIENT_ROWS,
    MetricPath,
    PathSetting,
    outer_product,
    pulled_back,
    walked,
)
from mercer.models.feature_machine.scaling import InputScaling
from mercer.operators import KernelOperator
from mercer.ops.threads import limit, n_threads, parallel_map
from mercer.store import register

TOLERANCE = 1e-4  # of the equations: what is beyond it is far below the noise of held-out rows
MAX_FACTOR_ROWS = 12_000  # beyond which conjugate gradients are quicker
PAIR_BYTES = 12.0  # of a round, for every pair of rows: distances, values, a factor
METRIC_ROWS = 8_000  # on which a metric is learnt


@register("feature_machine.CellFunction")
@dataclass(frozen=True, eq=False)
class CellFunction:
    """f(u) = sum_i coef_i k(u, u_i) + intercept, of rows u in one cell; a linear function has the
    unit vectors as its points."""

    kernel: Laplace | Linear
    points: Array
    coef: Array
    intercept: Array

    must = dict(
        kernel=Is("Laplace", "Linear"),
        points=Floats("n", "d"),
        coef=Floats("n", "q"),
        intercept=Floats("q"),
    )

    @property
    def d(self) -> int:
        return int(self.points.shape[1])

    @property
    def q(self) -> int:
        return len(self.intercept)

    @property
    def length(self) -> float:
        assert isinstance(self.kernel, Laplace)
        return float(np.max(self.kernel.bandwidth))  # there is one

    def __call__(self, U: Array, gpu: str | None = None) -> Array:
        """(n, q)"""
        if gpu is not None and isinstance(self.kernel, Laplace):
            return on_gpu().times(self.kernel, U, self.points, self.coef, gpu) + self.intercept
        return np.asarray(self._operator(U) @ self.coef + self.intercept)

    def gradients(self, U: Array) -> Array:
        """By u, (n, q, d)."""
        return np.asarray(self._operator(U).input_gradients(self.coef))

    def squared_slopes(self, s: PathSetting, metric: Array | None, rows: Array) -> Array:
        """The mean over some of its own points of the squared gradients by the inputs, (d,)."""
        if s.form == "linear":
            return np.square(self.coef).sum(axis=1)
        length, full = self.length, metric is not None and metric.ndim == 2
        R = distances(self.points[rows], self.points, s.norm)
        K = kernel_values(R, length, s.exponent)
        form = replace(s, form="full" if full else "diagonal")
        M = outer_product(form, R, K, rows, self.points, self.coef.astype(np.float32), length)
        back = pulled_back(M, metric)
        return back.diagonal() if full else back

    def _operator(self, U: Array) -> KernelOperator:
        """In float64, as coefficients of small penalties cancel."""
        return KernelOperator(self.kernel, U.astype(np.float64), self.points.astype(np.float64))


def on_gpu() -> ModuleType:
    """The same on a GPU, loaded when it is asked for."""
    return import_module("mercer.models.feature_machine.on_gpu")


def solve_cell(kernel: Laplace, rows: PathRows, penalty: float, memory: float) -> CellFunction:
    """The coefficients at these rows, an intercept beside them."""
    n = len(rows)
    ridge = np.full(n, penalty) if rows.weight is None else penalty / rows.weight
    op = KernelOperator(kernel, Table(rows.U.astype(np.float64)))
    solver = _solver(op, ridge, memory)
    B = np.column_stack([rows.Y, np.ones(n)])
    with one_thread(n):
        X = solver.init(op, ridge, B.shape[1]).solve(B).x
    ones = X[:, -1]
    b = X[:, :-1].sum(axis=0) / ones.sum()
    return CellFunction(kernel, rows.U, X[:, :-1] - ones[:, None] * b, b)


def _solver(op: KernelOperator, ridge: Array, memory: float) -> Cholesky | AutoSolver:
    """A factor in float32, mended by residuals in float64, where that serves and is quicker."""
    narrow = Cholesky("float32", TOLERANCE)
    fits = len(ridge) <= MAX_FACTOR_ROWS and 2 * narrow.bytes(len(ridge)) <= memory
    if fits and float32_serves(op, ridge):
        return narrow
    return AutoSolver(memory=memory, tol=TOLERANCE)


@register("feature_machine.Member")
@dataclass(frozen=True, eq=False)
class Member:
    """One machine: inputs, a metric S of them (identity, diagonal or full), and a function of u = S
    x in every cell."""

    path: MetricPath
    inputs: InputScaling
    metric: Array | None
    tree: CellTree
    cells: tuple[CellFunction, ...]

    must = dict(
        path=Is("MetricPath"),
        inputs=Is("InputScaling", width="d"),
        metric=Floats("d") | Floats("d", "d") | None,
        tree=Is("CellTree", d="d"),
        cells=Each(Is("CellFunction", d="d", q="q"), size="tree.n_cells"),
    )

    @property
    def q(self) -> int:
        return self.cells[0].q

    def __call__(self, X: Array, gpu: str | None = None) -> Array:
        """(n, q) of rows of numbers, in units of the targets."""
        U = under(self.inputs(X), self.metric)
        out = np.empty((len(X), self.q))
        for c, rows in self._parts(U):
            out[rows] = self.cells[c](U[rows], gpu)
        return out

    def gradients(self, X: Array) -> Array:
        """By the columns of X, (n, q, d); borders of cells aside."""
        U = under(self.inputs(X), self.metric)
        G = np.empty((len(X), self.q, U.shape[1]))
        for c, rows in self._parts(U):
            G[rows] = self.cells[c].gradients(U[rows])
        if self.metric is not None:
            G = G * self.metric if self.metric.ndim == 1 else G @ self.metric
        return np.asarray(G[:, :, : X.shape[1]] * self.inputs.slopes(X)[:, None])

    def _parts(self, U: Array) -> list[tuple[int, Array]]:
        cell = self.tree.cell(U)
        return [(c, np.flatnonzero(cell == c)) for c in np.unique(cell).tolist()]

    def importances(self, d: int) -> Array:
        """Mean squared gradients by the inputs, which have about unit spread, summed by columns of
        X, (d,)."""
        total = np.zeros(self.inputs.width)
        share = max(1, GRADIENT_ROWS // len(self.cells))
        for f in self.cells:
            some = np.linspace(0, len(f.points) - 1, min(share, len(f.points))).astype(int)
            total += len(f.points) * f.squared_slopes(self.path.setting, self.metric, some)
        return np.bincount(self.inputs.origins, weights=np.maximum(total, 0), minlength=d)


def fit_member(
    path: MetricPath,
    X: Array,
    Y: Array,
    weight: Array | None,
    *,
    seed: int,
    most: int,
    memory: float,
    metric_rows: int = METRIC_ROWS,
    gpu: str | None = None,
) -> Member:
    """The metric on some of the rows by the path's rounds, then the equations on all, in cells of at
    most so many."""
    s = path.setting
    inputs = InputScaling.of(X, s.inputs)
    rows = PathRows(inputs(X), Y, weight)
    if s.form == "linear":
        return Member(path, inputs, None, CellTree.of(rows.U, len(X))[0], (linear(path, rows),))
    some = np.random.default_rng(seed).permutation(len(X))[:metric_rows]
    sample = rows.take(some)
    metric = walked(path, sample, seed) if gpu is None else on_gpu().walked(path, sample, seed, gpu)
    U = under(rows.U, metric)
    length = s.factor * median_distance(U[some], s.norm, np.random.default_rng(seed))
    kernel = s.kernel(length)
    tree, parts = CellTree.of(U, most)
    moved = PathRows(U, Y, weight)

    def one(i: Array) -> CellFunction:
        if gpu is not None:
            coef, b = on_gpu().coefficients(kernel, s, moved.take(i), path.penalties[-1], gpu)
            return CellFunction(kernel, U[i], coef, b)
        return solve_cell(kernel, moved.take(i), path.penalties[-1], memory / min(2, len(parts)))

    side_by_side = len(parts) > 1 and gpu is None
    cells = parallel_map(one, parts) if side_by_side else [one(i) for i in parts]
    return Member(path, inputs, metric, tree, tuple(cells))


def linear(path: MetricPath, rows: PathRows) -> CellFunction:
    """A linear function of all rows."""
    coef, b = solved_linear(rows, path.penalties[-1], path.setting.factor)
    return CellFunction(Linear(), np.eye(rows.U.shape[1], dtype=np.float32), coef, b)


def fit_members(
    paths: Sequence[MetricPath],
    X: Array,
    Y: Array,
    weight: Array | None,
    *,
    seed: int,
    most: int,
    memory: float,
    metric_rows: int = METRIC_ROWS,
    gpu: str | None = None,
) -> tuple[Member, ...]:
    """Several machines side by side, where rows are so few that each is solved in one thread."""

    def one(path: MetricPath) -> Member:
        return fit_member(
            path,
            X,
            Y,
            weight,
            seed=seed,
            most=most,
            memory=memory / 2,
            metric_rows=metric_rows,
            gpu=gpu,
        )

    if gpu is not None or len(paths) == 1 or len(X) > ONE_THREAD_ROWS:
        return tuple(map(one, paths))
    with limit(min(n_threads(), max(1, int(memory / (PAIR_BYTES * len(X) ** 2))))):
        return tuple(parallel_map(one, paths))


@register("feature_machine.FeatureEnsemble")
@dataclass(frozen=True, eq=False)
class FeatureEnsemble:
    """The weighted mean of machines, in the units of the targets: centre + scale times it."""

    members: tuple[Member, ...]
    weights: tuple[float, ...]
    centre: Array
    scale: Array

    must = dict(
        members=Each(Is("Member", q="q"), least=1, size="k"),
        weights=Each(Number(0), size="k"),
        centre=Floats("q"),
        scale=Floats("q", low=0),
    )

    @property
    def d(self) -> int:
        """Columns of X."""
        return len(self.members[0].inputs.fill)

    def __call__(self, X: Array, gpu: str | None = None) -> Array:
        """(n, q)"""
        return np.asarray(self.centre + self.scale * self._mean([m(X, gpu) for m in self.members]))

    def gradients(self, X: Array) -> Array:
        return np.asarray(self.scale[:, None] * self._mean([m.gradients(X) for m in self.members]))

    def importances(self, d: int) -> Array:
        """Shares of the columns, (d,), that add to 1; equal ones where the function is constant."""
        parts = [m.importances(d) for m in self.members]
        parts = [v / v.sum() if v.sum() > 0 else np.full(d, 1 / d) for v in parts]
        return self._mean(parts)

    def _mean(self, parts: list[Array]) -> Array:
        return np.asarray(sum(w * v for w, v in zip(self.weights, parts, strict=True)))


@register("feature_machine.Probabilities")
@dataclass(frozen=True)
class Probabilities:
    """P(k | x) in proportion to exp(slope s_k(x))."""

    slope: float
    n_classes: int

    must = dict(slope=Number(0), n_classes=Whole(2))

    def __call__(self, scores: Array) -> Array:
        return np.asarray(softmax(self.slope * scores, axis=1))
