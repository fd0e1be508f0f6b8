"""Moments of the features of rows in partitions, by fold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.engines.partitions import Place
from mercer.engines.reader import RowReader
from mercer.inputs import Array
from mercer.models.folds import ONE_FOLD, Folds
from mercer.models.partitions.maps import MapRecipe
from mercer.stats import Moments

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

    reader: RowReader
    map: MapRecipe
    shift: Array
    folds: Folds = ONE_FOLD
    origin: float = 0.0  # of y, and its unit
    unit: float = 1.0

    kind = FoldMoments

    @property
    def identity(self) -> str:
        shift, units = self.shift.tobytes().hex(), (self.origin, self.unit)
        of = self.reader.identity, self.map.fingerprint, self.folds.k
        return repr(("moments", *of, shift, units))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> FoldMoments:
        rows, Y, w = self.reader(X, y, weight)
        phi, k = self.map.map(), self.folds.k
        fold = self.folds.of_table(rows)
        Y = None if Y is None else (Y - self.origin) / self.unit
        return FoldMoments(phi.fold_moments(rows, self.shift, Y, w, fold, k))
