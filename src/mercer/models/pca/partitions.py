"""Principal components of the features of rows in partitions, from their moments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.maps import FittedMap
from mercer.models.partitions.maps import MapRecipe, learnt_map
from mercer.models.partitions.moments import GatherMoments
from mercer.models.pca.problem import DUAL, PCASettings
from mercer.models.pca.projections import FeatureProjection
from mercer.models.settings import takes_text


def fit(s: PCASettings, X: Any) -> FeatureProjection:
    """One pass of moments, after a look at some rows."""
    if s.precomputed or s.way in DUAL:
        raise ValueError(
            "the kernel matrix needs all rows in one place; use via='features' or 'landmarks', or X.compute()."
        )
    s = replace(s, random_state=seed_of(s.random_state))
    data = Partitions.of(X, texts=takes_text(s.lift))
    reader = PartitionReader(data.columns, s.kernel if s.lift is None else None, supervised=False)

    def make(rows: Table, Y: Array | None, w: Array | None) -> FittedMap:
        return s.map_of(rows, data.rows)

    phi, some = learnt_map(data, reader, int(s.random_state), make)  # type: ignore[arg-type]
    if s.too_wide(phi.width):
        raise ValueError(
            f"the D x D moments of {phi.width:,} features exceed memory_limit; raise it, or use fewer."
        )
    shift = phi.shift(some.table(data.columns))
    found = fold(data, GatherMoments(reader, MapRecipe.of(phi, data.columns), shift))
    made = FeatureProjection(phi, s.most(phi.width), found.moments[0], trims=s.trims)
    made.components  # noqa: B018 (what cannot be decomposed is refused in `fit`)
    return made
