"""Predictors: a fitted estimator with what turns its output into numbers in the target's units, or probabilities of all classes."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Each, Is, Number, Whole
from mercer.ops.tiles import cuts
from mercer.product.targets import Target
from mercer.store import register

STEP = 1 << 13


@register("automl.Constant")
@dataclass(frozen=True, eq=False)
class Constant:
    """The mean of the target, or the share of every class."""

    values: tuple[float, ...]
    n_classes: int = 0

    must = dict(values=Each(Number()), n_classes=Whole())

    def _laws(self) -> str | None:
        return None if len(self.values) == max(1, self.n_classes) else f"has {len(self.values)} values for {self.n_classes} classes"

    @classmethod
    def of(cls, y: Array, w: Array, n_classes: int) -> Constant:
        w = w if w.any() else np.ones(len(w))
        if not n_classes:
            return cls((float(np.average(y, weights=w)),))
        shares = np.bincount(y, w, minlength=n_classes)
        return cls(tuple((shares / shares.sum()).tolist()), n_classes)

    @classmethod
    def streamed(cls, parts: Iterable[tuple[Array, Array]], n_classes: int) -> Constant:
        """The same of targets and weights that come in parts."""
        sums = np.zeros((2, max(n_classes, 1)))  # of weights, and as if all were 1
        totals = np.zeros(2)
        for y, w in parts:
            for i, v in enumerate((w, np.ones(len(y)))):
                sums[i] += np.bincount(y, v, minlength=n_classes) if n_classes else v @ y
                totals[i] += v.sum()
        i = 0 if totals[0] > 0 else 1
        return cls(tuple((sums[i] / totals[i]).tolist()), n_classes)

    def __call__(self, X: Array) -> Array:
        one = np.asarray(self.values)
        return np.tile(one, (len(X), 1)) if self.n_classes else np.full(len(X), one[0])


@register("automl.Regressor")
@dataclass(frozen=True, eq=False)
class Regressor:
    """estimator(X) back in the units of the target, kept within what was seen by half its range."""

    estimator: Any
    target: Target
    low: float
    high: float

    must = dict(estimator=Is("BaseEstimator", "Machine"), target=Is("targets.Identity", "targets.Log"))

    def __call__(self, X: Array) -> Array:
        return np.clip(self.target.back(in_steps(self.estimator.predict, X)), self.low, self.high)


@register("automl.Classifier")
@dataclass(frozen=True, eq=False)
class Classifier:
    """Probabilities (n, K); a class that the training rows lack has probability 0."""

    estimator: Any
    n_classes: int

    must = dict(estimator=Is("BaseEstimator", "Machine"), n_classes=Whole(2))

    def _laws(self) -> str | None:
        return codes_law([self.estimator.classes_], self.n_classes)

    def __call__(self, X: Array) -> Array:
        return spread_out(self.estimator, in_steps(self.estimator.predict_proba, X), self.n_classes)


Predictor = Constant | Regressor | Classifier


def codes_law(codes: Iterable[Any], n_classes: int) -> str | None:
    """What is wrong with the classes of some estimators, which are places among all classes."""
    for c in map(np.asarray, codes):
        if c.dtype.kind not in "iu" or c.ndim != 1 or not len(c) or c.min() < 0 or c.max() >= n_classes:
            return f"has classes {c!r:.60}, which are not numbers below {n_classes}"
    return None


def spread_out(estimator: Any, P: Array, n_classes: int) -> Array:
    """Probabilities with a column for every class, which sum to 1 in float64 too."""
    out = np.zeros((len(P), n_classes))
    out[:, np.asarray(estimator.classes_, np.int64)] = P / P.sum(1, keepdims=True, dtype=np.float64)
    return out


def in_steps(f: Any, X: Array) -> Array:
    """f of the rows, as many at a time as keeps memory small."""
    return np.concatenate([np.asarray(f(X[s]), np.float64) for s in cuts(len(X), STEP)])


def bounds(y: Array) -> tuple[float, float]:
    """What a prediction is kept within: the targets seen, and half their range beyond on both sides; never negative where none was.

    >>> bounds(np.array([-1.0, 1.0])), bounds(np.array([0.0, 2.0]))
    ((-2.0, 2.0), (0.0, 3.0))
    """
    low, high = float(y.min()), float(y.max())
    least = 0.0 if low >= 0 else -np.inf
    return max(low - (high - low) / 2, least), high + (high - low) / 2
