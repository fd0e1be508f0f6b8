"""Penalties of classifiers by folds of rows in partitions: rounds over the rows of all folds but one,
penalty after penalty, and one pass in the end for the scores of all rows held out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.engines.partitions import Place
from mercer.engines.reader import RowReader
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.models.folds import Folds
from mercer.models.partitions.maps import MapRecipe
from mercer.models.partitions.rounds import features
from mercer.models.penalties import PenaltyPath

Score = Callable[[Array, Array, Array], float]  # a mean by weight, of scores, codes and weights


@dataclass(frozen=True, eq=False)
class ArraySum:
    """Numbers that add."""

    values: Array

    def __add__(self, o: ArraySum) -> ArraySum:
        return ArraySum(self.values + o.values)

    def arrays(self) -> dict[str, Array]:
        return {"values": self.values}

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Self:
        return cls(arrays["values"])


@dataclass(frozen=True, eq=False)
class OtherFolds:
    """The rows of all folds but one."""

    reader: RowReader
    folds: Folds
    held: int

    @property
    def identity(self) -> str:
        return repr(("other folds", self.reader.identity, self.folds.k, self.held))

    def __call__(self, X: Any, y: Any, weight: Any) -> tuple[Table, Array | None, Array | None]:
        rows, codes, w = self.reader(X, y, weight)
        on = np.flatnonzero(self.folds.of_table(rows) != self.held)
        return rows[on], None if codes is None else codes[on], None if w is None else w[on]


@dataclass(frozen=True, eq=False)
class GatherFoldTotals:
    """The weight of the rows of each fold and class, (k, K)."""

    reader: RowReader
    folds: Folds
    classes: int

    kind = ArraySum

    @property
    def identity(self) -> str:
        return repr(("fold totals", self.reader.identity, self.folds.k, self.classes))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> ArraySum:
        rows, codes, w = self.reader(X, y, weight)
        assert codes is not None
        shape = self.folds.k, self.classes
        at = np.ravel_multi_index((self.folds.of_table(rows).astype(np.intp), codes), shape)
        return ArraySum(np.bincount(at, w, shape[0] * shape[1]).reshape(shape))


@dataclass(frozen=True, eq=False)
class GatherHeldScores:
    """The sums (a, k) of the scores of rows held out, times their weights, at the models `thetas`
    (a, D + intercept, s) of each fold."""

    reader: RowReader
    map: MapRecipe
    shift: Array | None
    folds: Folds
    thetas: dict[int, Array]
    score: Score

    kind = ArraySum

    @property
    def identity(self) -> str:
        shift = None if self.shift is None else self.shift.tobytes().hex()
        models = [(j, v.tobytes().hex()) for j, v in self.thetas.items()]
        of = self.reader.identity, self.map.fingerprint, self.folds.k
        return repr(("held scores", *of, shift, models, self.score.__name__))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> ArraySum:
        rows, codes, w = self.reader(X, y, weight)
        assert codes is not None
        w, held = np.ones(len(rows)) if w is None else w, self.folds.of_table(rows)
        found = np.zeros((len(next(iter(self.thetas.values()))), self.folds.k))
        for at, F in features(self.map.map(), rows, self.shift).batches():
            for j, thetas in self.thetas.items():
                # rows of weight 0 score nothing, and have no mean
                if (on := (held[at] == j) & (w[at] > 0)).any():
                    told = F[on], codes[at][on], w[at][on]
                    found[:, j] += [self._sum(theta, *told) for theta in thetas]
        return ArraySum(found)

    def _sum(self, theta: Array, F: Array, codes: Array, w: Array) -> float:
        f = F @ theta[: F.shape[1]].astype(F.dtype) + theta[F.shape[1] :].sum(0)
        return self.score(f[:, 0] if f.shape[1] == 1 else f, codes, w) * float(w.sum())


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """Rows of classes in partitions, by fold: the weights (k, K) of their classes."""

    data: Any
    reader: RowReader
    folds: Folds
    totals: Array

    @classmethod
    def of(cls, data: Any, reader: RowReader, folds: Folds, classes: int) -> FoldedRows:
        found: ArraySum = fold(data, GatherFoldTotals(reader, folds, classes))
        return cls(data, reader, folds, found.values)

    def path(
        self,
        values: Array,
        along: Callable[[int, Array], Iterator[Array]],
        phi: MapRecipe,
        shift: Array | None,
        score: Score,
    ) -> PenaltyPath:
        """By `along(j, totals of the other folds)`, which yields a model of these, penalty after
        penalty."""
        others = {j: np.delete(self.totals, j, axis=0).sum(0) for j in range(self.folds.k)}
        usable = [j for j, v in others.items() if self.totals[j].any() and (v > 0).all()]
        if not usable:
            raise ValueError(
                f"no fold has rows while the others have every class (n_samples = {self.data.rows}); "
                "give cv=None, or more rows that differ."
            )
        thetas = {j: np.stack(list(along(j, others[j]))) for j in usable}
        gather = GatherHeldScores(self.reader, phi, shift, self.folds, thetas, score)
        weight = self.totals.sum(1)
        scores = np.full((len(values), self.folds.k), np.nan)
        scores[:, usable] = fold(self.data, gather).values[:, usable] / weight[usable]
        return PenaltyPath(values, scores, weight)
