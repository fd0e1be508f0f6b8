"""Ridge regression over the features of rows in partitions: moments by a fixed tree, one pass for
every penalty."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mercer.engines.partitions import Partitions, Place
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.folds import Folds
from mercer.models.maps import FittedMap
from mercer.models.partitioned import MapRecipe, Reader, learnt_map
from mercer.models.ridge.fit import map_of
from mercer.models.ridge.moments import MomentRidge, begin
from mercer.models.ridge.problem import RidgeSettings, TrainingRows, fold_of
from mercer.stats import Moments

WHY = "of partitions, whose moments add"
FIELDS = ("shift", "n", "s", "S", "count", "peak", "held", "eps")


@dataclass(frozen=True, eq=False)
class FoldMoments:
    """The moments of every fold, which add fold by fold."""

    moments: list[Moments]

    def __add__(self, o: FoldMoments) -> FoldMoments:
        return FoldMoments([a + b for a, b in zip(self.moments, o.moments, strict=True)])

    def arrays(self) -> dict[str, Array]:
        return {name: np.stack([getattr(m, name) for m in self.moments]) for name in FIELDS}

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Self:
        each = zip(*(arrays[name] for name in FIELDS), strict=True)
        return cls(
            [
                Moments(shift, float(n), s, S, int(count), float(peak), int(held), float(eps))
                for shift, n, s, S, count, peak, held, eps in each
            ]
        )


@dataclass(frozen=True, eq=False)
class GatherMoments:
    """The moments of [phi] or [phi, y] of a partition, by fold."""

    reader: Reader
    map: MapRecipe
    shift: Array
    folds: Folds

    kind = FoldMoments

    @property
    def identity(self) -> str:
        shift = self.shift.tobytes().hex()
        return repr(("moments", self.reader.identity, self.map.fingerprint, shift, self.folds.k))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> FoldMoments:
        rows, Y, w = self.reader(X, y, weight)
        phi = self.map.map()
        fold = fold_of(self.folds, rows)
        return FoldMoments(phi.fold_moments(rows, self.shift, Y, w, fold, self.folds.k))


def fit(s: RidgeSettings, X: Any, y: Any, weight: Any) -> MomentRidge:
    """One pass of moments, after a look at some rows."""
    check(s)
    folds, seed = Folds.by_hash(s.cv), seed_of(s.random_state)
    s = replace(s, random_state=seed)
    flat = getattr(y, "ndim", 1) == 1
    outputs = 1 if flat else int(y.shape[1])
    s.penalties(outputs)  # refuses what is none, before a pass
    data = Partitions.of(X, y, weight)
    reader = Reader(data.columns, s.kernel if s.lift is None else None, outputs)

    def make(rows: Table, Y: Array | None, w: Array | None) -> FittedMap:
        assert Y is not None
        return map_of(s, TrainingRows(rows, Y, w, folds), count=data.rows)

    phi, some = learnt_map(data, reader, seed, make)
    assert some.Y is not None
    stream = begin(s, phi, folds, some.table(data.columns), some.Y, flat)
    recipe = MapRecipe.of(phi, data.columns)
    found = fold(data, GatherMoments(reader, recipe, stream.moments[0].shift, folds))
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
