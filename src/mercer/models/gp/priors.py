"""What is thought of a hyper-parameter before the data: densities over (0, inf), with their slopes
in log v."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from mercer.methods import Settings
from mercer.store import register


@dataclass(frozen=True)
class Prior(Settings):
    """A density of a parameter v > 0, up to a constant.

    A prior of your own is a frozen dataclass of numbers > 0 with `log` and `slope`.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Exponential(Prior):
    ...     rate: float = 1.0
    ...     def log(self, v):
    ...         return -self.rate * v
    ...     def slope(self, v):
    ...         return -self.rate * v
    >>> Exponential(2.0).slope(3.0)
    -6.0
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            v = getattr(self, f.name)
            if not (isinstance(v, int | float) and math.isfinite(v) and v > 0):
                raise ValueError(
                    f"{f.name} of {type(self).__name__} must be a number > 0, got {v!r}."
                )

    def log(self, v: float) -> float:
        """log p(v), less a constant."""
        raise NotImplementedError

    def slope(self, v: float) -> float:
        """d log p(v) / d log v"""
        raise NotImplementedError


@register("gp.LogNormal")
@dataclass(frozen=True)
class LogNormal(Prior):
    """log v ~ N(log median, spread^2)

    Parameters
    ----------
    median : float, default=1.0
        The median of v, > 0.
    spread : float, default=1.0
        The standard deviation of log v, > 0.

    Examples
    --------
    >>> LogNormal(median=2.0, spread=1.0).slope(2.0)
    -1.0
    """

    median: float = 1.0
    spread: float = 1.0

    def log(self, v: float) -> float:
        return -0.5 * (math.log(v / self.median) / self.spread) ** 2 - math.log(v)

    def slope(self, v: float) -> float:
        return -math.log(v / self.median) / self.spread**2 - 1


@register("gp.Gamma")
@dataclass(frozen=True)
class Gamma(Prior):
    """p(v) ~ v^(shape - 1) exp(-rate v)

    Parameters
    ----------
    shape : float, default=2.0
        The shape, > 0.
    rate : float, default=1.0
        The rate, > 0; the mean is shape / rate.

    Examples
    --------
    >>> Gamma(shape=3.0, rate=2.0).slope(1.0)  # the mode is (shape - 1) / rate
    0.0
    """

    shape: float = 2.0
    rate: float = 1.0

    def log(self, v: float) -> float:
        return (self.shape - 1) * math.log(v) - self.rate * v

    def slope(self, v: float) -> float:
        return self.shape - 1 - self.rate * v


@register("gp.InverseGamma")
@dataclass(frozen=True)
class InverseGamma(Prior):
    """p(v) ~ v^(-shape - 1) exp(-scale / v): keeps bandwidths off zero

    Parameters
    ----------
    shape : float, default=3.0
        The shape, > 0.
    scale : float, default=1.0
        The scale, > 0; the mean is scale / (shape - 1) where shape > 1.

    Examples
    --------
    >>> InverseGamma(shape=3.0, scale=4.0).slope(1.0)  # the mode is scale / (shape + 1)
    0.0
    """

    shape: float = 3.0
    scale: float = 1.0

    def log(self, v: float) -> float:
        return -(self.shape + 1) * math.log(v) - self.scale / v

    def slope(self, v: float) -> float:
        return self.scale / v - self.shape - 1


def check(prior: object, name: str) -> Prior:
    """A prior, or the sentence on what it must be."""
    if isinstance(prior, Prior):
        return prior
    raise ValueError(
        f"the prior of {name!r} must be LogNormal(...), Gamma(...) or InverseGamma(...), got {prior!r}."
    )
