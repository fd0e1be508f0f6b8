"""Ridge regression over the features of rows in partitions: moments by a fixed tree, one pass for
every penalty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader, RowReader
from mercer.engines.sample import Sampler
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.folds import Folds
from mercer.models.maps import FittedMap
from mercer.models.partitions.maps import MapRecipe, learnt_map
from mercer.models.partitions.moments import GatherMoments
from mercer.models.ridge import dual
from mercer.models.ridge.fit import FittedRidge, map_of
from mercer.models.ridge.fit import fit as fit_rows
from mercer.models.ridge.moments import MomentRidge, begin
from mercer.models.ridge.problem import RidgeSettings, TrainingRows, choose
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


def summed(stream: MomentRidge, data: Partitions, reader: RowReader) -> MomentRidge:
    """The model of the rows in partitions, over the map and by the settings of a stream."""
    recipe, shift = MapRecipe.of(stream.phi, data.columns), stream.moments[0].shift
    found = fold(data, GatherMoments(reader, recipe, shift, stream.folds))
    model = replace(stream, moments=found.moments, why=WHY)
    if not model.total.n > 0:
        raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
    model.weights  # noqa: B018 (a penalty that cannot be chosen is refused in `fit`)
    return model


def gathered(s: RidgeSettings, X: Any, y: Any, weight: Any, cv: Any) -> FittedRidge:
    """Over the rows themselves, which the model is a sum over and so holds: they come to the client,
    and the workers make the products of conjugate gradients."""
    if s.precomputed:
        raise ValueError(
            "a Gram matrix of dask collections needs all rows in one place; give rows and a kernel, or X.compute()."
        )
    flat = getattr(y, "ndim", 1) == 1
    outputs = 1 if flat else int(y.shape[1])
    settings = s.of_model(outputs)  # refuses what is none, before a pass
    data = Partitions.of(X, y, weight)
    held = 8.0 * data.rows * (data.columns.width + outputs)
    if held > s.memory:
        raise ValueError(
            f"via={s.way!r} keeps all {data.rows:,} rows in one place, and they exceed memory_limit; raise it, or use via='features'."
        )
    reader = PartitionReader(data.columns, s.kernel, outputs)
    some = fold(data, Sampler(reader, 0, 0, stop=data.rows))
    if not len(some.X):
        raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
    rows = TrainingRows.of(some.table(data.columns), some.Y, some.weight, cv, gram=False)
    rows = rows if s.cv is not None else replace(rows, folds=Folds(1))
    plan = choose(len(rows), s)

    def refit(settings: RidgeSettings, part: TrainingRows) -> Any:
        return fit_rows(settings, part, flat)

    found = dual.fit(s, rows, plan, flat, refit, spread_out=True)
    return FittedRidge.of(found, rows, settings)


def check(s: RidgeSettings) -> None:
    """Refuse what needs all rows in one place."""
    if s.precomputed:
        raise ValueError(
            "a Gram matrix of dask collections needs all rows in one place; give rows and a kernel, or X.compute()."
        )
    if s.bandwidths is not None or s.loo:
        raise ValueError(
            "left-out rows are not kept of dask collections; give cv as a number of folds, and one kernel."
        )
