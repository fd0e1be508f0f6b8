"""Linear classifiers over the features of rows in partitions: the classes, the map, then rounds for
each score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer import methods
from mercer.engines.partitions import Partitions
from mercer.engines.reader import PartitionReader, RowReader
from mercer.inputs import Array, Table
from mercer.lifts.base import seed_of
from mercer.models.linear import Loss
from mercer.models.maps import FittedMap, fitted_map
from mercer.models.newton import Minimum, minimise, rounds_plan
from mercer.models.partitions.classes import ClassTotals, classes_of
from mercer.models.partitions.maps import learnt_map
from mercer.models.partitions.rounds import Coding, PartitionedProblem
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
        self,
        loss: Callable[[], Loss],
        class_weight: Any,
        *,
        C: float = 1.0,
        alpha: float,
        intercept: bool,
        tol: float,
        max_iter: int,
        jointly: bool,
        start: tuple[Array, Array] | None = None,
    ) -> Scores:
        """One score of two classes; of more, all in one loss (`jointly`), or each against the
        rest. `start` is coef (k, D) and intercept (k,) of a model to begin from."""
        factors, K = C * self.totals.factors(class_weight), len(self.totals.classes)
        places: list[int | None] = [1] if K == 2 else [None] if jointly else list(range(K))
        found: list[Minimum] = []
        problem = None
        for positive in places:
            problem = PartitionedProblem.of(
                self.data,
                self.reader,
                self.phi,
                self.some,
                loss(),
                Coding(factors, positive),
                alpha=alpha,
                intercept=intercept,
            )
            found.append(minimise(problem, tol, max_iter, _theta(start, len(found), problem)))
        assert problem is not None
        theta = np.concatenate([m.theta for m in found], axis=1)
        D, shift = self.phi.width, problem.rows.shift
        b = theta[D] if intercept else np.zeros(theta.shape[1])
        b = b if shift is None else b - shift @ theta[:D]
        plan = rounds_plan(self.phi.lift, problem.rows, found)
        plan = replace(plan, why=f"{plan.why}; slopes of {len(self.data)} partitions add")
        return Scores(self.totals.classes, self.phi, theta[:D].T.copy(), b, plan, found)


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
