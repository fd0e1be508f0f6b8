"""What the learners fit in place of the target: a number or its logarithm, or one indicator a class."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mercer.inputs import Array
from mercer.product.metrics import METRICS, Metric, portions
from mercer.store import register

SKEWED = 1.0  # skewness beyond which a logarithm is tried
FENCE = 3.0  # interquartile ranges beyond the quartiles, from which on a residual is that of a dirty row (Tukey, 1977: "far out")


@register("automl.Identity")
@dataclass(frozen=True)
class Identity:
    """The target itself, z = (y - centre) / scale, so that float32 keeps its digits wherever it lies.

    >>> Identity(1e9, 2.0).to(np.array([1e9 + 4]))
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


@register("automl.Log")
@dataclass(frozen=True)
class Log:
    """z = log(y + shift), and back: exp(z) `smear` - shift.

    Without a smear that is the median of y where residuals are symmetric. The smear that makes it the mean is the mean of
    exp(residual) (Duan, 1983), here without those beyond Tukey's far fences: with them, three dirty rows among 40,000, whose
    fitted z is off by ten, double every prediction. Which of the two is used is chosen by the metric.

    >>> Log(1.0).back(Log(1.0).to(np.array([0.0, 3.0])))
    array([0., 3.])
    """

    shift: float = 0.0
    smear: float = 1.0
    top: float = float("inf")  # of z: nothing is predicted far beyond what was seen

    def to(self, y: Array) -> Array:
        return np.log(y + self.shift)

    def back(self, z: Array) -> Array:
        return np.exp(np.minimum(z, self.top)) * self.smear - self.shift

    def smeared(self, y: Array, z: Array, w: Array | None = None, metric: Metric = METRICS["r2"]) -> Log:
        """With the smear, or none, of the better score on these targets and the z that were predicted of them."""
        seen = self.to(y)
        plain = Log(self.shift, 1.0, float(seen.max() + seen.std()))
        with_smear = replace(plain, smear=robust_smear(seen - np.minimum(z, plain.top), w))
        scores = [metric.gain(metric(y, option.back(z), w).value) for option in (with_smear, plain)]
        return plain if scores[1] > scores[0] else with_smear

    def __str__(self) -> str:
        return "log of the target" if self.shift == 0 else f"log of the target + {self.shift:g}"


def robust_smear(residuals: Array, w: Array | None = None) -> float:
    """The weighted mean of exp(residual), over the residuals within three interquartile ranges of their quartiles.

    >>> r = np.tile([-0.1, 0.0, 0.1], 1000)
    >>> clean, dirty = robust_smear(r), robust_smear(np.append(r, [12.0, 15.0, 20.0]))
    >>> bool(abs(dirty - clean) < 0.002), bool(np.exp(np.append(r, 12.0)).mean() > 50)
    (True, True)
    """
    low, high = np.quantile(residuals, (0.25, 0.75))
    reach = FENCE * (high - low)
    near = (residuals >= low - reach) & (residuals <= high + reach)
    return float(portions(np.ones(int(near.sum())) if w is None else w[near]) @ np.exp(residuals[near]))


Target = Identity | Log


def candidates(y: Array) -> list[Target]:
    """Identity, and a logarithm where the target is skewed and not negative.

    >>> candidates(np.exp(np.linspace(0, 5, 100)))
    [Identity(centre=..., scale=...), Log(shift=0.0, smear=1.0, top=inf)]
    """
    deviation = float(y.std()) or 1.0
    plain = Identity(float(y.mean()), deviation)
    if float(y.min()) < 0 or np.mean(((y - y.mean()) / deviation) ** 3) < SKEWED:
        return [plain]
    return [plain, Log(0.0 if y.min() > 0 else float(np.median(y[y > 0])) if (y > 0).any() else 1.0)]


def indicators(codes: Array, k: int) -> Array:
    """One column a class, (n, k)."""
    return np.eye(k, dtype=np.float32)[codes]
