"""Bayesian linear regression, a Gaussian process over features, of rows in partitions: the moments of
[phi, y] tell mean, variance and evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.gp.features import FeaturePosterior
from mercer.models.gp.fit import begun, map_of
from mercer.models.gp.linear import moments_fit
from mercer.models.gp.problem import ProcessSettings
from mercer.models.maps import FittedMap
from mercer.models.partitions.maps import MapRecipe, learnt_map
from mercer.models.partitions.moments import GatherMoments
from mercer.models.settings import takes_text
from mercer.stats import Moments


def fit(s: ProcessSettings, X: Any, y: Any) -> FeaturePosterior:
    """One pass of moments, after a look at some rows."""
    check(s, y)
    s = replace(s, random_state=seed_of(s.random_state))
    data = Partitions.of(X, y, texts=takes_text(s.lift))
    reader = PartitionReader(data.columns, s.kernel if s.lift is None else None, 1)

    def make(rows: Table, Y: Array | None, w: Array | None) -> FittedMap:
        return map_of(s, rows, None if Y is None else Y[:, 0], count=data.rows)

    phi, some = learnt_map(data, reader, int(s.random_state), make)  # type: ignore[arg-type]
    if not moments_fit(phi.width, s.memory):
        raise ValueError(
            f"the D x D moments of {phi.width:,} features exceed memory_limit; raise it, or use fewer."
        )
    assert some.Y is not None
    rows = some.table(data.columns)
    start = begun(s, phi, rows, some.Y[:, 0], getattr(y, "ndim", 1) == 1)
    if start.residual is not None:
        raise ValueError(
            "landmarks of a Gaussian process weigh every row by what they leave out of it; use via='features' with dask collections."
        )
    origin, unit = start.targets.origin, start.targets.unit
    recipe, shift = MapRecipe.of(phi, data.columns), np.append(phi.shift(rows), 0.0)
    found = fold(data, GatherMoments(reader, recipe, shift, origin=origin, unit=unit))
    return solved(start, found.moments[0], len(data))


def solved(start: FeaturePosterior, moments: Moments, count: int) -> FeaturePosterior:
    """The posterior that moments of so many partitions tell."""
    phi, spread = start.phi, max(float(moments.covariance()[-1, -1]), 0.0)
    why = f"{phi.width:,} features: moments of {count} partitions add, and tell mean, variance and evidence"
    plan = phi.plan(moments.count, "features", why, 1)
    targets = replace(start.targets, spread=spread)
    made = replace(start, targets=targets, moments=moments, plan=plan)
    return replace(made, solved=made.solution)


def check(s: ProcessSettings, y: Any) -> None:
    """Refuse what needs all rows in one place."""
    if s.lift is None and s.way in ("exact", "iterative", "landmarks"):
        raise ValueError(
            f"via={s.way!r} of a Gaussian process needs all rows in one place; use via='features' with dask collections, or X.compute()."
        )
    if s.asks:
        raise ValueError(
            "over features noise and scale alone are learnt; leave out fixed, tied, bounds and priors."
        )
    s.check_noise_over_features()
    if getattr(s.noise, "ndim", 0):
        raise ValueError("noise with one number a row is for rows in memory; give one number.")
    if getattr(y, "ndim", 1) == 2 and y.shape[1] != 1:
        raise ValueError("a Gaussian process over features has one output; fit one an output.")
