"""Numbers to mean 0 and deviation 1, after a signed log where their tails are heavy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array

# standard deviations at which numbers are cut off, so that no wild value can throw a prediction off
FAR = 10.0
LARGEST = float(np.finfo(np.float64).max)
# beyond either, tails are heavy
SKEW = 3.0
KURTOSIS = 20.0


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
