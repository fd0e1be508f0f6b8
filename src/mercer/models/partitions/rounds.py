"""Smooth losses over the features of rows in partitions: each round sums values and slopes by the
tree, and takes its curvature from a sample of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.engines.partitions import Partitions, Place
from mercer.engines.reader import RowReader
from mercer.engines.sample import PartitionSample
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.models.linear import FEW, MANY, SHORT, FeatureRows, Loss, Point, Problem, moved, offset
from mercer.models.maps import FittedMap
from mercer.models.partitions.maps import MapRecipe


@dataclass(frozen=True, eq=False)
class LossSum:
    """A sum of losses and its slope at one model."""

    value: float
    gradient: Array

    def __add__(self, o: LossSum) -> LossSum:
        return LossSum(self.value + o.value, self.gradient + o.gradient)

    def arrays(self) -> dict[str, Array]:
        return {"value": np.array(self.value), "gradient": self.gradient}

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Self:
        return cls(float(arrays["value"]), arrays["gradient"])


@dataclass(frozen=True, eq=False)
class Coding:
    """Targets of classes as a loss reads them: +-1 of the class `positive`, or rows of the identity
    of K classes; and the factor of every class."""

    factors: Array
    positive: int | None = None

    def __call__(self, codes: Array) -> Array:
        K = len(self.factors)
        if self.positive is None:
            return np.eye(K)[codes]
        return np.where(codes == self.positive, 1.0, -1.0)[:, None]

    def weights(self, codes: Array, w: Array | None) -> Array:
        return self.factors[codes] * (1.0 if w is None else w)


@dataclass(frozen=True, eq=False)
class GatherSlopes:
    """Value and slope of the losses of a partition, at theta."""

    reader: RowReader
    map: MapRecipe
    shift: Array | None
    loss: Loss
    coding: Coding
    theta: Array
    intercept: bool

    kind = LossSum

    @property
    def identity(self) -> str:
        shift = None if self.shift is None else self.shift.tobytes().hex()
        coding = self.coding.factors.tobytes().hex(), self.coding.positive
        of = self.reader.identity, self.map.fingerprint, type(self.loss).__name__
        return repr(("slopes", *of, shift, coding, self.theta.tobytes().hex(), self.intercept))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> LossSum:
        rows, codes, w = self.reader(X, y, weight)
        assert codes is not None
        F = features(self.map.map(), rows, self.shift)
        Y, each = self.coding(codes), self.coding.weights(codes, w)
        with np.errstate(over="ignore", invalid="ignore"):  # refused by a sentence
            at = Problem(F, self.loss, Y, each, 0.0, self.intercept).at(self.theta)
        return LossSum(at.value, at.gradient)


def features(phi: FittedMap, X: Table, shift: Array | None) -> FeatureRows:
    """The features of a partition, computed as they are summed."""

    def pick(i: Array) -> Array:
        return moved(phi.features(X[i]), shift)

    def batches() -> Any:
        return ((rows, moved(F, shift)) for rows, F in phi.batches(X))

    return FeatureRows(len(X), phi.width, X.dtype, shift, False, batches, pick, 0.0)


@dataclass(frozen=True, eq=False)
class SampledFeatures:
    """The features of sampled rows, of n: what rounds ask of rows beside the sums."""

    F: Array
    n: int
    shift: Array | None
    kept = False

    @property
    def D(self) -> int:
        return int(self.F.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.F.dtype

    def sample(self) -> Array:
        return np.arange(len(self.F))

    def pick(self, i: Array) -> Array:
        return self.F[i]


@dataclass(frozen=True, eq=False)
class PartitionedProblem:
    """loss(F coef + intercept) + alpha/2 |coef|^2 over all partitions; Y, w and the scores of points
    are those of sampled rows."""

    data: Partitions
    reader: RowReader
    map: MapRecipe
    rows: SampledFeatures
    loss: Loss
    coding: Coding
    Y: Array
    w: Array
    alpha: float
    intercept: bool

    @classmethod
    def of(
        cls,
        data: Partitions,
        reader: RowReader,
        phi: FittedMap,
        some: PartitionSample,
        loss: Loss,
        coding: Coding,
        *,
        alpha: float,
        intercept: bool,
    ) -> Self:
        some = some.least(MANY if phi.width <= SHORT else FEW, 1)
        F = phi.features(some.table(data.columns))
        shift = offset(F) if intercept else None
        codes = np.asarray(some.Y, np.intp)
        rows = SampledFeatures(moved(F, shift), data.rows, shift)
        Y, w = coding(codes), coding.weights(codes, some.weight)
        recipe = MapRecipe.of(phi, data.columns)
        return cls(data, reader, recipe, rows, loss, coding, Y, w, alpha, intercept)

    @property
    def zero(self) -> Array:
        return np.zeros((self.rows.D + self.intercept, self.Y.shape[1]))

    def at(self, theta: Array) -> Point:
        """One pass over all partitions."""
        D, shift = self.rows.D, self.rows.shift
        gather = GatherSlopes(
            self.reader, self.map, shift, self.loss, self.coding, theta, self.intercept
        )
        found = fold(self.data, gather)
        f = self.rows.F @ theta[:D].astype(self.rows.dtype) + theta[D:].sum(0)
        pull = self.alpha * theta
        pull[D:] = 0
        return Point(theta, f, found.value + self.penalty(theta), found.gradient + pull)

    def penalty(self, theta: Array) -> float:
        """alpha/2 |coef|^2"""
        return self.alpha / 2 * float(np.square(theta[: self.rows.D]).sum())

    def step(self, x: Point, d: Array, slope: float) -> Point:
        """x + t d with t = 1, or halved until the objective falls enough; a pass for each."""
        t, rounding = 1.0, float(np.finfo(self.rows.dtype).eps) * abs(x.value)
        while True:
            new = self.at(x.theta + t * d)
            if new.value <= x.value + 1e-4 * t * slope + rounding:
                return new
            t /= 2
            if t < 1e-9:
                return x
