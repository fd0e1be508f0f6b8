"""N-grams of texts in partitions: vocabularies and document frequencies add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from mercer.engines.partitions import Partitions, Place
from mercer.engines.reader import PartitionReader
from mercer.engines.tree import fold
from mercer.text.fitted import FittedGrams


@dataclass(frozen=True, eq=False)
class GramSum:
    """What was learnt from some texts."""

    grams: Any

    def __add__(self, o: GramSum) -> GramSum:
        both = clone(self.grams)
        both.fitted_ = self.grams.fitted_
        return GramSum(both.merge(o.grams))


@dataclass(frozen=True, eq=False)
class GatherGrams:
    """The n-grams of a partition."""

    grams: Any
    reader: PartitionReader
    kind = None
    identity = ""

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> GramSum:
        return GramSum(clone(self.grams).partial_fit(self.reader.rows(X).data))


def fit_partitions(grams: Any, X: Any) -> FittedGrams:
    """What all partitions have learnt, before rare or frequent n-grams are cut."""
    if grams.weight == "ratio":
        raise ValueError("weight='ratio' learns from classes; it is not made of dask collections.")
    data = Partitions.of(X, texts=True)
    reader = PartitionReader(data.columns, supervised=False)
    found: FittedGrams = fold(data, GatherGrams(clone(grams), reader)).grams.fitted_
    return found
