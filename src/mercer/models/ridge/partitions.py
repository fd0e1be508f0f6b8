"""Ridge regression over the features of rows in partitions: moments by a fixed tree, one pass for
every penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader, Reader
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.folds import Folds
from mercer.models.maps import FittedMap
from mercer.models.partitions.maps import MapRecipe, learnt_map
from mercer.models.partitions.moments import GatherMoments
from mercer.models.ridge.fit import map_of
from mercer.models.ridge.moments import MomentRidge, begin
from mercer.models.ridge.problem import RidgeSettings, TrainingRows
from mercer.models.settings import takes_text

WHY = "of partitions, whose moments add"


def fit(s: RidgeSettings, X: Any, y: Any, weight: Any) -> MomentRidge:
    """One pass of moments, after a look at some rows."""
    check(s)
    folds, seed = Folds.by_hash(s.cv), seed_of(s.random_state)
    s = replace(s, random_state=seed)
    flat = getattr(y, "ndim", 1) == 1
    outputs = 1 if flat else int(y.shape[1])
    s.penalties(outputs)  # refuses what is none, before a pass
    data = Partitions.of(X, y, weight, texts=takes_text(s.lift))
    reader = PartitionReader(data.columns, s.kernel if s.lift is None else None, outputs)

    def make(rows: Table, Y: Array | None, w: Array | None) -> FittedMap:
        assert Y is not None
        return map_of(s, TrainingRows(rows, Y, w, folds), count=data.rows)

    phi, some = learnt_map(data, reader, seed, make)
    assert some.Y is not None
    return summed(begin(s, phi, folds, some.table(data.columns), some.Y, flat), data, reader)


def summed(stream: MomentRidge, data: Partitions, reader: Reader) -> MomentRidge:
    """The model of the rows in partitions, over the map and by the settings of a stream."""
    recipe, shift = MapRecipe.of(stream.phi, data.columns), stream.moments[0].shift
    found = fold(data, GatherMoments(reader, recipe, shift, stream.folds))
    model = replace(stream, moments=found.moments, why=WHY)
    if not model.total.n > 0:
        raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
    model.weights  # noqa: B018 (a penalty that cannot be chosen is refused in `fit`)
    return model


def check(s: RidgeSettings) -> None:
    """Refuse what needs all rows in one place."""
    if s.precomputed or s.way in ("exact", "iterative"):
        raise ValueError(
            "dask collections are fitted over features, and via='exact', 'iterative' or a Gram matrix need all rows in one place; "
            "use via='features', 'landmarks' or a value such as Fourier(1000), or X.compute()."
        )
    if s.bandwidths is not None or s.loo:
        raise ValueError(
            "left-out rows are not kept of dask collections; give cv as a number of folds, and one kernel."
        )
