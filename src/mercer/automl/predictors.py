"""Predictors: a transformation of the target, and a fitted estimator with what turns its output
into numbers or probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.automl.boosted import BoostedTrees
from mercer.automl.metrics import METRICS, Metric, normalised
from mercer.inputs import Array
from mercer.invariants import Each, Is, Number, Whole
from mercer.ops.tiles import cuts
from mercer.store import register

MIN_SKEWNESS = 1.0  # skewness beyond which a logarithm is tried
# interquartile ranges beyond the quartiles, from which on a residual is that of a dirty row (Tukey,
# 1977: "far out")
TUKEY_FENCE = 3.0
BLOCK_ROWS = 1 << 13
ESTIMATORS = Is("BaseEstimator", "Machine", "ReadableModel")
MAX_LOG_STEP = 0.4  # of a logarithm beyond the largest seen: half as much again


@register("automl.IdentityTarget")
@dataclass(frozen=True)
class IdentityTarget:
    """The target itself, z = (y - centre) / scale, so that float32 keeps its digits wherever it
    lies.

    >>> IdentityTarget(1e9, 2.0).to(np.array([1e9 + 4]))
    array([2.])
    """

    centre: float = 0.0
    scale: float = 1.0

    def to(self, y: Array) -> Array:
        return (y - self.centre) / self.scale

    def back(self, z: Array) -> Array:
        return z * self.scale + self.centre

    def __str__(self) -> str:
        return "the target as it is"


@register("automl.LogTarget")
@dataclass(frozen=True)
class LogTarget:
    """z = log(y + shift), and back: exp(z) `retransformation` - shift.

    Without the factor that is the median of y where residuals are symmetric. The factor that makes
    it the mean is the mean of exp(residual), the smearing estimate of retransformation (Duan,
    1983), here without those beyond Tukey's far fences: with them, three dirty rows among 40,000,
    whose fitted z is off by ten, double every prediction. Which of the two is used is chosen by the
    metric.

    >>> LogTarget(1.0).back(LogTarget(1.0).to(np.array([0.0, 3.0])))
    array([0., 3.])
    """

    shift: float = 0.0
    retransformation: float = 1.0
    top: float = float("inf")  # of z: nothing is predicted far beyond what was seen

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Files of before call the factor by another name."""
        return {
            "retransformation" if name == "smear" else name: value for name, value in state.items()
        }

    def to(self, y: Array) -> Array:
        return np.log(y + self.shift)

    def back(self, z: Array) -> Array:
        return np.exp(np.minimum(z, self.top)) * self.retransformation - self.shift

    def retransformed(
        self, y: Array, z: Array, w: Array | None = None, metric: Metric = METRICS["r2"]
    ) -> LogTarget:
        """With the factor of retransformation, or none, of the better score on these targets and
        the z that were predicted of them."""
        seen = self.to(y)
        plain = LogTarget(self.shift, 1.0, float(seen.max() + min(seen.std(), MAX_LOG_STEP)))
        with_factor = replace(
            plain, retransformation=robust_retransformation(seen - np.minimum(z, plain.top), w)
        )
        scores = [
            metric.gain(metric(y, option.back(z), w).value) for option in (with_factor, plain)
        ]
        return plain if scores[1] > scores[0] else with_factor

    def __str__(self) -> str:
        return "log of the target" if self.shift == 0 else f"log of the target + {self.shift:g}"


def robust_retransformation(residuals: Array, w: Array | None = None) -> float:
    """The weighted mean of exp(residual), over the residuals within three interquartile ranges of
    their quartiles.

    >>> r = np.tile([-0.1, 0.0, 0.1], 1000)
    >>> clean, dirty = robust_retransformation(r), robust_retransformation(np.append(r, [12.0, 15.0, 20.0]))
    >>> bool(abs(dirty - clean) < 0.002), bool(np.exp(np.append(r, 12.0)).mean() > 50)
    (True, True)
    """
    low, high = np.quantile(residuals, (0.25, 0.75))
    reach = TUKEY_FENCE * (high - low)
    near = (residuals >= low - reach) & (residuals <= high + reach)
    return float(
        normalised(np.ones(int(near.sum())) if w is None else w[near]) @ np.exp(residuals[near])
    )


TargetTransform = IdentityTarget | LogTarget


def transformations(y: Array) -> list[TargetTransform]:
    """Identity, and a logarithm where the target is skewed and not negative.

    >>> transformations(np.exp(np.linspace(0, 5, 100)))
    [IdentityTarget(centre=..., scale=...), LogTarget(shift=0.0, retransformation=1.0, top=inf)]
    """
    deviation = float(y.std()) or 1.0
    plain = IdentityTarget(float(y.mean()), deviation)
    if float(y.min()) < 0 or np.mean(((y - y.mean()) / deviation) ** 3) < MIN_SKEWNESS:
        return [plain]
    return [
        plain,
        LogTarget(0.0 if y.min() > 0 else float(np.median(y[y > 0])) if (y > 0).any() else 1.0),
    ]


def indicators(codes: Array, k: int) -> Array:
    """One column a class, (n, k)."""
    return np.eye(k, dtype=np.float32)[codes]


@register("automl.ConstantPredictor")
@dataclass(frozen=True, eq=False)
class ConstantPredictor:
    """The mean of the target, or the share of every class."""

    values: tuple[float, ...]
    n_classes: int = 0

    must = dict(values=Each(Number()), n_classes=Whole())

    def _laws(self) -> str | None:
        return (
            None
            if len(self.values) == max(1, self.n_classes)
            else f"has {len(self.values)} values for {self.n_classes} classes"
        )

    @classmethod
    def of(cls, y: Array, w: Array, n_classes: int) -> ConstantPredictor:
        w = w if w.any() else np.ones(len(w))
        if not n_classes:
            return cls((float(np.average(y, weights=w)),))
        shares = np.bincount(y, w, minlength=n_classes)
        return cls(tuple((shares / shares.sum()).tolist()), n_classes)

    @classmethod
    def streamed(cls, parts: Iterable[tuple[Array, Array]], n_classes: int) -> ConstantPredictor:
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
    target: TargetTransform
    low: float
    high: float

    must = dict(estimator=ESTIMATORS, target=Is("IdentityTarget", "LogTarget"))

    def __call__(self, X: Array) -> Array:
        return np.clip(self.target.back(in_blocks(self.estimator.predict, X)), self.low, self.high)


@register("automl.Classifier")
@dataclass(frozen=True, eq=False)
class Classifier:
    """Probabilities (n, K); a class that the training rows lack has probability 0."""

    estimator: Any
    n_classes: int

    must = dict(estimator=ESTIMATORS, n_classes=Whole(2))

    def _laws(self) -> str | None:
        return class_codes_law([self.estimator.classes_], self.n_classes)

    def __call__(self, X: Array) -> Array:
        return all_classes(
            self.estimator, in_blocks(self.estimator.predict_proba, X), self.n_classes
        )


@register("automl.WeightedMean")
@dataclass(frozen=True, eq=False)
class WeightedMean:
    """The weighted mean of what two or three predictors say: numbers, or probabilities."""

    members: tuple[Regressor | Classifier | ConstantPredictor | BoostedTrees, ...]
    weights: tuple[float, ...]

    must = dict(
        members=Each(Is("Regressor", "Classifier", "ConstantPredictor", "BoostedTrees")),
        weights=Each(Number(0)),
    )

    def __post_init__(self) -> None:
        if not 1 < len(self.members) == len(self.weights) or abs(sum(self.weights) - 1) > 1e-6:
            raise ValueError(
                f"WeightedMean needs a weight for each of at least two members, which add up to 1, got {self.weights}."
            )

    def _laws(self) -> str | None:
        classes = {getattr(m, "n_classes", 0) for m in self.members}
        return None if len(classes) == 1 else f"has members of {sorted(classes)} classes"

    def __call__(self, X: Array) -> Array:
        out = self.weights[0] * self.members[0](X)
        for w, member in zip(self.weights[1:], self.members[1:], strict=True):
            out = out + w * member(X)
        return np.asarray(out)


Predictor = ConstantPredictor | Regressor | Classifier | WeightedMean


def class_codes_law(codes: Iterable[Array], n_classes: int) -> str | None:
    """What is wrong with the classes of some estimators, which are places among all classes."""
    for c in map(np.asarray, codes):
        if (
            c.dtype.kind not in "iu"
            or c.ndim != 1
            or not len(c)
            or c.min() < 0
            or c.max() >= n_classes
        ):
            return f"has classes {c!r:.60}, which are not numbers below {n_classes}"
    return None


def all_classes(estimator: Any, P: Array, n_classes: int) -> Array:
    """Probabilities with a column for every class, which sum to 1 in float64 too."""
    out = np.zeros((len(P), n_classes))
    out[:, np.asarray(estimator.classes_, np.int64)] = P / P.sum(1, keepdims=True, dtype=np.float64)
    return out


def in_blocks(f: Callable[[Array], Array], X: Array) -> Array:
    """f of the rows, as many at a time as keeps memory small."""
    return np.concatenate([np.asarray(f(X[s]), np.float64) for s in cuts(len(X), BLOCK_ROWS)])


def prediction_bounds(y: Array) -> tuple[float, float]:
    """What a prediction is kept within: the targets seen, and half their range beyond on both
    sides; never negative where none was.

    >>> prediction_bounds(np.array([-1.0, 1.0])), prediction_bounds(np.array([0.0, 2.0]))
    ((-2.0, 2.0), (0.0, 3.0))
    """
    low, high = float(y.min()), float(y.max())
    least = 0.0 if low >= 0 else -np.inf
    return max(low - (high - low) / 2, least), high + (high - low) / 2
