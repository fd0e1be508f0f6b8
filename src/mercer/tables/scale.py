"""Numbers to mean 0 and deviation 1, after a signed log where their tails are heavy; or by their
ranks to a normal law."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from mercer.inputs import Array

# standard deviations at which numbers are cut off, so that no wild value can throw a prediction off
FAR = 10.0
LARGEST = float(np.finfo(np.float64).max)
# beyond either, tails are heavy
SKEW = 3.0
KURTOSIS = 20.0
N_KNOTS = 129  # quantiles by which ranks are told
LEAST_RANK = 0.002  # of a normal law, that the smallest and the largest value have


@dataclass(frozen=True)
class Standardizer:
    """z = (t(x) - mean) / std; t(x) = x, or sign(x - centre) log(1 + |x - centre| / spread) where
    spread > 0.

    >>> Standardizer(mean=1.0, std=2.0)(np.array([1.0, 3.0])).tolist()
    [0.0, 1.0]
    """

    mean: float = 0.0
    std: float = 1.0
    centre: float = 0.0
    spread: float = 0.0

    def bent(self, x: Array) -> Array:
        """Before the standardisation."""
        if not self.spread:
            return x
        with np.errstate(over="ignore", divide="ignore"):
            moved = np.clip(x - self.centre, -LARGEST, LARGEST)
            return np.sign(moved) * np.logaddexp(0, np.log(np.abs(moved)) - np.log(self.spread))

    def __call__(self, x: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.clip((self.bent(x) - self.mean) / self.std, -FAR, FAR)

    @classmethod
    def of(cls, x: Array) -> Standardizer:
        """Fitted to a sample without NaN; bent where the tails are heavy and the bend makes them
        lighter."""
        bends = cls._bends(x) if _heavy(x) else []
        best = min([cls(), *bends], key=lambda bend: max(tails(bend.bent(x))))
        return cls.standard(x, best)

    @classmethod
    def _bends(cls, x: Array) -> list[Standardizer]:
        """About 0 where all have one sign, else about the median; the log sets in at a typical or
        at a small size."""
        centre = 0.0 if x.min() >= 0 or x.max() <= 0 else float(np.median(x))
        with np.errstate(over="ignore"):
            size = np.abs(x - centre)
        size = size[(size > 0) & np.isfinite(size)]
        return (
            [cls(centre=centre, spread=float(np.quantile(size, q))) for q in (0.5, 0.05)]
            if len(size)
            else []
        )

    @classmethod
    def standard(cls, x: Array, bend: Standardizer | None = None) -> Standardizer:
        """To mean 0 and deviation 1, after the bend."""
        bend = bend or cls()
        t = bend.bent(x)
        unit = float(np.abs(t).max()) or 1.0  # huge values overflow when squared, tiny ones vanish
        mean, std = float(np.mean(t / unit)) * unit, float(np.std(t / unit)) * unit
        return cls(mean, std or 1.0, bend.centre, bend.spread)


@dataclass(frozen=True)
class RankNormalizer:
    """z = (t(x) - mean) / std with t(x) = Phi^-1(rank of x among the knots), equal knots taken at
    the middle of their ranks.

    Beyond the first and the last knot t goes on as log(1 + excess / spread), so that a value
    beyond all of training is told from the largest of them, and none is far.

    >>> r = RankNormalizer.of(np.arange(1001.0) ** 3)
    >>> [round(float(z), 2) for z in r(np.array([0.0, 500.0**3, 1000.0**3]))]
    [-2.88, 0.0, 2.88]
    """

    knots: tuple[float, ...]  # quantiles at even levels, rising
    spread: float = 1.0
    mean: float = 0.0
    std: float = 1.0

    def __post_init__(self) -> None:
        k = np.asarray(self.knots, np.float64)
        if len(k) < 2 or not np.isfinite(k).all() or np.any(np.diff(k) < 0):
            raise ValueError("RankNormalizer needs at least two finite knots that never fall.")
        if not (self.spread > 0 and self.std > 0 and np.isfinite([self.spread, self.std]).all()):
            raise ValueError("RankNormalizer needs a spread and a std that are finite and > 0.")

    def bent(self, x: Array) -> Array:
        """Before the standardisation."""
        k, levels = np.asarray(self.knots), np.linspace(0, 1, len(self.knots))
        rank = (np.interp(x, k, levels) - np.interp(-x, -k[::-1], -levels[::-1])) / 2
        with np.errstate(over="ignore"):
            beyond = np.maximum(np.maximum(x - k[-1], k[0] - x), 0) / self.spread
        inside = ndtri(np.clip(rank, LEAST_RANK, 1 - LEAST_RANK))
        return np.asarray(inside + np.sign(x - k[0]) * np.log1p(np.minimum(beyond, LARGEST)))

    def __call__(self, x: Array) -> Array:
        return np.clip((self.bent(x) - self.mean) / self.std, -FAR, FAR)

    @classmethod
    def of(cls, x: Array) -> RankNormalizer:
        """Fitted to a sample without NaN."""
        knots = np.quantile(x, np.linspace(0, 1, N_KNOTS), method="inverted_cdf")
        low, high = np.quantile(knots, (0.1, 0.9))
        with np.errstate(over="ignore"):
            spread = float(np.nan_to_num(high - low, posinf=LARGEST)) or float(
                min(knots[-1] / 2 - knots[0] / 2, LARGEST / 2)
            )
        made = cls(tuple(knots.tolist()), spread or 1.0)
        t = made.bent(x)
        return cls(made.knots, made.spread, float(t.mean()), float(t.std()) or 1.0)


def _heavy(x: Array) -> bool:
    skew, kurtosis = tails(x)
    return skew > SKEW or kurtosis > KURTOSIS


def tails(x: Array) -> tuple[float, float]:
    """The absolute skewness and the excess kurtosis of a sample.

    >>> [round(t, 1) for t in tails(np.array([0.0, 0.0, 0.0, 10.0]))]
    [1.2, -0.7]
    """
    unit = float(np.abs(x).max(initial=0)) or 1.0
    z = x / unit - np.mean(x / unit)
    z = z / (float(np.abs(z).max(initial=0)) or 1.0)
    square = z * z
    var = float(np.mean(square)) if len(z) else 0.0
    return (
        (abs(float(np.mean(square * z))) / var**1.5, float(np.mean(square * square)) / var**2 - 3)
        if var > 0
        else (0.0, 0.0)
    )
