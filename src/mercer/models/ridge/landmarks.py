"""Ridge regression over many landmarks, f = sum_j coef_j k(., z_j) + b, by passes of products (Falkon)."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from mercer import methods
from mercer.inputs import Array, Table
from mercer.learners.falkon import Batch, LandmarkSolution, falkon
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.models.expansion import Expansion
from mercer.models.ridge.dual import DualRidge, Refit, expansion, penalty, warn_if_open
from mercer.models.ridge.problem import Settings, TrainingRows, Weights
from mercer.ops.tiles import cuts
from mercer.plan import Plan

BATCH = 1 << 16


def fit(s: Settings, rows: TrainingRows, plan: Plan, flat: bool, refit: Refit) -> DualRidge:
    """Landmarks by the method that was asked for, then conjugate gradients for every penalty."""
    if s.bandwidths is not None:
        raise ValueError("bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them.")
    over, unit = expansion(s, rows), np.maximum(np.abs(rows.Y).max(axis=0), np.finfo(float).tiny)
    scaled = replace(rows, Y=rows.Y / unit)
    alpha, _, _ = penalty(s, over, scaled, plan, refit)
    points, how = chosen(s, over.kernel, rows)
    parts = [(at, solved(s, over.kernel, scaled, at, points, a)) for a, at in outputs(alpha, rows.Y.shape[1])]
    kept = parts[0][1].kept
    coef, b = np.empty((len(kept), rows.Y.shape[1])), np.empty(rows.Y.shape[1])
    for at, part in parts:
        coef[:, at], b[at] = part.coef, part.intercept
    steps, residual = sum(part.steps for _, part in parts), max(part.residual for _, part in parts)
    made = written(s, len(rows), len(coef), how, residual, steps)
    warn_if_open(made.way, residual, s.tol)
    return DualRidge(made, Expansion(over.kernel, points[kept]), Weights(alpha, coef * unit, b * unit), flat, residual, steps)


def outputs(alpha: Any, q: int) -> Iterator[tuple[float, Array]]:
    """Every penalty, and the outputs that have it."""
    penalties = np.broadcast_to(alpha, (q,))
    return ((float(a), penalties == a) for a in np.unique(penalties))


def chosen(s: Settings, kernel: Any, rows: TrainingRows) -> tuple[Table, str]:
    """Rows, chosen as asked where that fits, else with equal chances."""
    m = s.landmarks(len(rows))
    select = s.method.select if isinstance(s.method, methods.Landmarks) else "rpcholesky"
    if select == "rpcholesky" and 8.0 * m * len(rows) > s.memory:
        select = "uniform"
    phi = Nystrom(kernel, m, select, random_state=s.random_state).fit(_bare(rows.X), sample_weight=rows.weight)
    return Table(phi.landmarks_), select


def _bare(X: Table) -> Any:
    return X if X.items else X.data


def solved(s: Settings, kernel: Any, rows: TrainingRows, at: Array, points: Table, alpha: float) -> LandmarkSolution:
    """The outputs of one penalty."""
    X, Y, w = rows.X, rows.Y[:, at], rows.weight

    def batches() -> Iterator[Batch]:
        return ((X[part], Y[part], None if w is None else w[part]) for part in cuts(len(Y), BATCH))

    return falkon(
        kernel, points, batches, alpha, intercept=s.intercept, tol=s.tol, max_steps=s.max_iter, memory=s.memory,
        seed=seed_of(s.random_state),
    )  # fmt: skip


def written(s: Settings, n: int, used: int, how: str, residual: float, steps: int) -> Plan:
    m = s.landmarks(n)
    settings = {"rows": n, "landmarks": used, "choice": how, "residual": residual, "steps": steps}
    why = f"{m:,} landmarks: passes of products cost less than their m x m moments"
    return Plan("landmarks", why, settings, 24.0 * m * m + s.memory, 4.0 * n * m * steps, steps + 2)
