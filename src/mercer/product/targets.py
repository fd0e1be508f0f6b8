"""What the learners fit in place of the target: a number or its logarithm, or one indicator a class."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array

SKEWED = 1.0  # skewness beyond which a logarithm is tried


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


@dataclass(frozen=True)
class Log:
    """z = log(y + shift), and back to the mean of y: `smear` is the mean of exp(residual) (Duan, 1983).

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

    def smeared(self, y: Array, z: Array) -> Log:
        """With the smear of these targets and their fitted z."""
        seen = self.to(y)
        top = float(seen.max() + seen.std())
        ratio = np.exp(seen - np.minimum(z, top))
        return Log(self.shift, float(np.clip(np.mean(ratio), 0.5, 2.0)), top)

    def __str__(self) -> str:
        return "log of the target" if self.shift == 0 else f"log of the target + {self.shift:g}"


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
