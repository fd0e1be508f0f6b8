"""Linear classifiers over the features of rows in partitions: the classes, the map, then rounds for
each score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import methods
from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader, RowReader
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.folds import Folds
from mercer.models.linear import Loss
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.newton import Minimum, minimise, rounds_plan
from mercer.models.partitions.classes import ClassTotals, classes_of
from mercer.models.partitions.held_out import FoldedRows, OtherFolds, Score
from mercer.models.partitions.maps import learnt_map
from mercer.models.partitions.rounds import Coding, PartitionedProblem
from mercer.models.penalties import PenaltyPath
from mercer.models.settings import KernelSetting, LiftSetting, Seed, takes_text
from mercer.plans import Plan


@dataclass(frozen=True)
class MapSetting:
    """The map that a classifier asks for."""

    kernel: KernelSetting
    lift: LiftSetting
    method: methods.Method
    memory: float
    random_state: Seed


@dataclass(frozen=True)
class Rounds:
    """What is minimised: one score of two classes; of more, all in one loss (`jointly`), or each
    against the rest."""

    loss: Callable[[], Loss]
    alpha: float
    intercept: bool
    tol: float
    max_iter: int
    jointly: bool
    C: float = 1.0

    def places(self, K: int) -> list[int | None]:
        """The class that is positive in each score; None where all are in one."""
        return [1] if K == 2 else [None] if self.jointly else list(range(K))


@dataclass(frozen=True, eq=False)
class Scores:
    """coef (k, D), intercept (k,), the minima that they are, and how it went."""

    classes: Array
    phi: FittedMap
    coef: Array
    intercept: Array
    plan: Plan
    found: Sequence[Minimum]


@dataclass(frozen=True, eq=False)
class ClassPartitions:
    """Partitions of classes, their map, and a sample of their rows."""

    data: Partitions
    totals: ClassTotals
    reader: RowReader
    phi: FittedMap
    some: Any

    @classmethod
    def of(cls, s: MapSetting, X: Any, y: Any, weight: Any) -> ClassPartitions:
        if y is None:
            raise ValueError(
                "y is missing; give the classes of the rows as a dask array or series."
            )
        data = Partitions.of(X, y, weight, texts=takes_text(s.lift))
        totals = classes_of(data)
        kernel = s.kernel if s.lift is None else None
        reader = PartitionReader(data.columns, kernel, 1, totals.classes)
        seed = seed_of(s.random_state)

        def make(rows: Table, codes: Array | None, w: Array | None) -> FittedMap:
            return fitted_map(
                s.kernel,
                s.lift,
                s.method,
                rows,
                w,
                seed=seed,
                memory=s.memory,
                y=codes,
                count=data.rows,
            )

        phi, some = learnt_map(data, reader, seed, make, sample=True)
        return cls(data, totals, reader, phi, some)

    def scores(
        self, how: Rounds, class_weight: Any, start: tuple[Array, Array] | None = None
    ) -> Scores:
        """The scores of all rows; `start` is coef (k, D) and intercept (k,) of a model to begin
        from."""
        factors = how.C * self.totals.factors(class_weight)
        places, found = how.places(len(factors)), []
        for i, place in enumerate(places):
            problem = self._problem(how, Coding(factors, place))
            found.append(minimise(problem, how.tol, how.max_iter, _theta(start, i, problem)))
        theta = np.concatenate([m.theta for m in found], axis=1)
        D, shift = self.phi.width, problem.rows.shift
        b = theta[D] if how.intercept else np.zeros(theta.shape[1])
        b = b if shift is None else b - shift @ theta[:D]
        plan = rounds_plan(self.phi.lift, problem.rows, found)
        plan = replace(plan, why=f"{plan.why}; slopes of {len(self.data)} partitions add")
        return Scores(self.totals.classes, self.phi, theta[:D].T.copy(), b, plan, found)

    def _problem(
        self, how: Rounds, coding: Coding, reader: RowReader | None = None, some: Any = None
    ) -> PartitionedProblem:
        return PartitionedProblem.of(
            self.data,
            self.reader if reader is None else reader,
            self.phi,
            self.some if some is None else some,
            how.loss(),
            coding,
            alpha=how.alpha,
            intercept=how.intercept,
        )

    def path(
        self, ways: Sequence[Rounds], values: Array, cv: Any, class_weight: Any, score: Score
    ) -> PenaltyPath:
        """By folds, of models as `ways` tells for each of the values, each begun at the last."""
        folds = Folds.by_hash(cv)
        if self.phi.learns:
            raise ValueError(
                "a map that learns from classes needs one for each fold of cv, which dask collections do not get; give the penalty alone."
            )
        rows = FoldedRows.of(self.data, self.reader, folds, len(self.totals.classes))
        of_some = folds.of_table(self.some.table(self.data.columns))
        w = np.ones(len(of_some)) if self.some.weight is None else self.some.weight
        any_problem = self._problem(ways[0], Coding(self.totals.factors(class_weight)))

        def along(j: int, totals: Array) -> Iterator[Array]:
            reader = OtherFolds(self.reader, folds, j)
            some = replace(self.some, weight=np.where(of_some == j, 0.0, w))
            factors = replace(self.totals, totals=totals).factors(class_weight)
            last: list[Array | None] = [None] * len(ways[0].places(len(factors)))
            for how in ways:
                for i, place in enumerate(how.places(len(factors))):
                    problem = self._problem(how, Coding(how.C * factors, place), reader, some)
                    last[i] = minimise(problem, how.tol, how.max_iter, last[i]).theta
                yield np.concatenate(last, axis=1)  # type: ignore[arg-type]

        return rows.path(values, along, any_problem.map, any_problem.rows.shift, score)


def _theta(start: tuple[Array, Array] | None, at: int, problem: PartitionedProblem) -> Array | None:
    """The scores of a model as a problem has them, whose features are moved."""
    if start is None:
        return None
    coef, b = (v if problem.Y.shape[1] > 1 else v[at : at + 1] for v in start)
    theta = coef.T.astype(np.float64)
    if not problem.intercept:
        return theta
    b = b if problem.rows.shift is None else b + problem.rows.shift @ theta
    return np.concatenate([theta, b[None, :]])
