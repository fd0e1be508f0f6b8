"""Ridge regression over many landmarks, f = sum_j coef_j k(., z_j) + b: the landmarks, the place
and the plan."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import cast

import numpy as np

from mercer import methods
from mercer.gpu.devices import device_of, free_bytes, told, without
from mercer.inputs import Array, Matrix, Table
from mercer.kernels.base import Kernel
from mercer.lifts import Nystrom
from mercer.lifts.base import Seed, seed_of, stream_of
from mercer.lifts.digits import least_share
from mercer.lifts.landmarks import all_rows, pivoted, without_replacement
from mercer.models.expansion import Expansion
from mercer.models.ridge.dual import DualRidge, expansion, penalty, warn_if_open
from mercer.models.ridge.falkon import (
    BATCH,
    CUT,
    SAMPLE,
    WORTH,
    Batch,
    LandmarkSolution,
    SampledRows,
    falkon,
    searched,
)
from mercer.models.ridge.problem import Refit, RidgeSettings, TrainingRows, Weights
from mercer.ops.philox import Stream
from mercer.ops.tiles import cuts
from mercer.plans import Plan, quantity


def fit(s: RidgeSettings, rows: TrainingRows, plan: Plan, flat: bool, refit: Refit) -> DualRidge:
    """Landmarks by the method that was asked for, then conjugate gradients for every penalty."""
    if s.bandwidths is not None:
        raise ValueError(
            "bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them."
        )
    over, _ = expansion(s, rows)
    unit = np.maximum(np.abs(rows.Y).max(axis=0), np.finfo(float).tiny)
    scaled = replace(rows, Y=rows.Y / unit)
    alpha, _, _ = penalty(s, over, scaled, plan, refit)
    kernel = cast(Kernel, over.kernel)
    points, how = chosen(s, kernel, rows)
    why = None if s.gpu is None else no_gpu(s, over, rows)
    solve = solved if s.gpu is None or why is not None else solved_there
    parts = [
        (at, solve(s, kernel, scaled, at, points, a)) for a, at in outputs(alpha, rows.Y.shape[1])
    ]
    kept = parts[0][1].kept
    coef, b = np.empty((len(kept), rows.Y.shape[1])), np.empty(rows.Y.shape[1])
    for at, part in parts:
        coef[:, at], b[at] = part.coef, part.intercept
    steps, residual = sum(part.steps for _, part in parts), max(part.residual for _, part in parts)
    made = written(s, len(rows), len(coef), how, residual, steps, why)
    warn_if_open(made.way, residual, s.tol)
    return DualRidge(
        made,
        Expansion(over.kernel, points[kept]),
        Weights(alpha, coef * unit, b * unit),
        flat,
        residual,
        steps,
    )


def outputs(alpha: float | Array, q: int) -> Iterator[tuple[float, Array]]:
    """Every penalty, and the outputs that have it."""
    penalties = np.broadcast_to(alpha, (q,))
    return ((float(a), penalties == a) for a in np.unique(penalties))


def chosen(s: RidgeSettings, kernel: Kernel, rows: TrainingRows) -> tuple[Table, str]:
    """Rows, chosen as asked where that fits, else with equal chances."""
    m = s.landmarks(len(rows))
    select = s.method.select if isinstance(s.method, methods.Landmarks) else "rpcholesky"
    if select == "rpcholesky" and 8.0 * m * len(rows) > s.memory:
        select = "uniform"
    if select == "uniform" and s.gpu is not None and not rows.X.items:
        return Table(rows.X.data[_drawn(rows, m, s.random_state)]), select
    phi = Nystrom(kernel, m, select, random_state=s.random_state).fit(
        _bare(rows.X), sample_weight=rows.weight
    )
    return Table(phi.landmarks_), select


def _drawn(rows: TrainingRows, m: int, random_state: Seed) -> Array:
    """Those that `Nystrom` draws with equal chances, which it would factor on one thread."""
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    if m >= np.count_nonzero(weight):
        return all_rows(rows.X, weight)
    return without_replacement(weight, m, stream_of(random_state))


def _bare(X: Table) -> Matrix:
    return X if X.items else X.data


def solved(
    s: RidgeSettings, kernel: Kernel, rows: TrainingRows, at: Array, points: Table, alpha: float
) -> LandmarkSolution:
    """The outputs of one penalty."""
    X, Y, w = rows.X, rows.Y[:, at], rows.weight

    def batches() -> Iterator[Batch]:
        return ((X[part], Y[part], None if w is None else w[part]) for part in cuts(len(Y), BATCH))

    return falkon(
        kernel,
        points,
        batches,
        alpha,
        intercept=s.intercept,
        tol=s.tol,
        max_steps=s.max_iter,
        memory=s.memory,
        seed=seed_of(s.random_state),
    )


def no_gpu(s: RidgeSettings, over: Expansion, rows: TrainingRows) -> str | None:
    """Why passes are not made on the device of these settings, in words; None where they are."""
    n, q = rows.Y.shape
    if (why := over.no_tile(rows.X)) is not None:
        return why
    there = import_module("mercer.gpu.landmarks")
    needed, free = (
        there.bytes_needed(n, rows.X.width, s.landmarks(n), q),
        free_bytes(device_of(s.device) or "cpu"),
    )
    if needed <= free:
        return None
    return f"it needs {quantity(needed, 'B')}, and the GPU has {quantity(free, 'B')} free"


def solved_there(
    s: RidgeSettings, kernel: Kernel, rows: TrainingRows, at: Array, points: Table, alpha: float
) -> LandmarkSolution:
    """The same as `solved` on a GPU, every sum and factor in float64."""
    there, X, Y, w = import_module("mercer.gpu.landmarks"), rows.X, rows.Y[:, at], rows.weights
    cut = least_share(kernel, points, CUT)
    kept, inverse = there.whitening(kernel, points, s.gpu, lambda K: pivoted(K, cut))
    sums, total = there.LandmarkSums(kernel, points[kept], inverse, X, w), float(w.sum())
    found = sums.against(np.column_stack([Y, np.ones(len(Y))]))
    mean = found[:, -1] / total * s.intercept
    mean_y = (w @ Y) / total * s.intercept
    some, weight = sampled(rows, len(kept), Stream(seed_of(s.random_state)))
    precondition = sums.preconditioner(some, weight, mean, total / float(weight.sum()), alpha)

    def product(V: Array) -> Array:
        return np.asarray(sums.times(V, mean) + alpha * V)

    right = found[:, :-1] - np.outer(found[:, -1], mean_y)
    m = searched(product, right, precondition, s.tol, s.max_iter)
    return LandmarkSolution(sums.coefficients(m.x), mean_y - mean @ m.x, kept, m.residual, m.steps)


def sampled(rows: TrainingRows, m: int, stream: Stream) -> tuple[Table, Array]:
    """The rows that the preconditioner of m landmarks sees, and their weights."""
    sample = SampledRows(SAMPLE[1] * m, stream)
    for part in cuts(len(rows), BATCH):
        sample.add(rows.X[part], rows.weights[part], part.start)
    sample.keep(max(SAMPLE[0] * m, WORTH * len(rows) // m))
    some = [X.data for X, _ in sample.rows]
    return Table(np.concatenate(some), rows.X.columns), np.concatenate([w for _, w in sample.rows])


def written(
    s: RidgeSettings, n: int, used: int, how: str, residual: float, steps: int, no_gpu: str | None
) -> Plan:
    m = s.landmarks(n)
    settings = {"rows": n, "landmarks": used, "choice": how, "residual": residual, "steps": steps}
    why = f"{m:,} landmarks: passes of products cost less than their m x m moments"
    if s.gpu is not None:
        where = f"{told(s.device)}, in float64" if no_gpu is None else f"on the CPU, as {no_gpu}"
        why = f"{why}; {where}"
    why += without(s.device)
    return Plan("landmarks", why, settings, 24.0 * m * m + s.memory, 4.0 * n * m * steps, steps + 2)
