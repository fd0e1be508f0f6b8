"""Stability: the share of half-samples in which each feature survives (Meinshausen and Buehlmann,
Stability selection, 2010)."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.models.sparse.maps import SparseMap, again
from mercer.models.sparse.problem import SparseSettings, WeighedRows
from mercer.models.sparse.solve import Solver

PENALTIES = 8  # on the way down to the one asked about


def survivals(
    s: SparseSettings, m: SparseMap, p: WeighedRows, alphas: Array, ids: Array
) -> Array | None:
    """The share of `stability` halves of the rows, of features `ids`, whose coefficients at the
    last penalty are not zero; None where none are asked for or there are no two rows."""
    if not s.stability or len(p) < 2:
        return None
    rng, counts = np.random.default_rng([s.seed, 1]), np.zeros(len(ids))
    steps = alphas[np.unique(np.linspace(0, len(alphas) - 1, PENALTIES).astype(int))]
    drawn = 0
    while drawn < s.stability:
        half = p[np.sort(halved(rng, p))]
        path, _ = Solver.of(again(s, m, half), half.loss(), s.tol).path(steps, s.l1_ratio)
        counts += np.isin(ids, path.at(len(path) - 1)[0])
        drawn += 1
    return counts / s.stability


def halved(rng: np.random.Generator, p: WeighedRows) -> Array:
    """Half of the rows, of every class at least one."""
    if not p.classes:
        return rng.permutation(len(p))[: max(1, len(p) // 2)]
    by_class = [rng.permutation(np.flatnonzero(p.y == c)) for c in range(p.classes)]
    return np.concatenate([rows[: max(1, len(rows) // 2)] for rows in by_class])
