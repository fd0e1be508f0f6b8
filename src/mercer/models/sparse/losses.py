"""Losses of scores f (n, C) as a sparse learner reads them: values and residuals, curvatures, and
what a dual point is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, xlogy

from mercer.inputs import Array


class SparseLoss(Protocol):
    """sum_i w_i l(f_i) of rows of weights w that sum to 1."""

    @property
    def Y(self) -> Array:
        """Targets, (n, C)."""
        ...

    @property
    def w(self) -> Array: ...
    @property
    def constant(self) -> bool:
        """Whether the curvature is the same everywhere."""
        ...

    @property
    def start(self) -> Array:
        """The best scores without any feature, (C,)."""
        ...

    def at(self, f: Array) -> tuple[float, Array]:
        """The value, and the residuals R = -dl/df, (n, C)."""
        ...

    def curvature(self, R: Array, c: int, d: int) -> Array:
        """d^2l / df_c df_d where the residuals are R, (n,)."""
        ...

    def dual(self, R: Array, s: float) -> float:
        """What s times the residuals are worth as a dual point."""
        ...


def weighted_mean(w: Array, y: Array) -> float:
    """Of weights that sum to 1: never beyond the values, so that equal ones leave nothing.

    >>> weighted_mean(np.full(80, 1 / 80), np.full(80, 7.0))
    7.0
    """
    return float(np.clip(w @ y, y.min(), y.max()))


@dataclass(frozen=True, eq=False)
class SquaredLoss:
    """(y - f)^2 / 2"""

    Y: Array
    w: Array
    constant = True

    @property
    def start(self) -> Array:
        return np.array([weighted_mean(self.w, self.Y[:, 0])])

    def at(self, f: Array) -> tuple[float, Array]:
        R = self.Y - f
        return float(self.w @ (R * R)[:, 0]) / 2, R

    def curvature(self, R: Array, c: int, d: int) -> Array:
        return np.ones(len(R))

    def dual(self, R: Array, s: float) -> float:
        """R sums to zero, so the mean of y may be left out: sums keep their digits."""
        y = self.Y - self.start
        return float(self.w @ (s * R * y - s * s * R * R / 2)[:, 0])


@dataclass(frozen=True, eq=False)
class BinaryLoss:
    """log(1 + exp(f)) - y f, y in {0, 1}"""

    Y: Array
    w: Array
    constant = False

    @property
    def start(self) -> Array:
        share = self.w @ self.Y
        return np.log(share) - np.log1p(-share)

    def at(self, f: Array) -> tuple[float, Array]:
        sign = 2 * self.Y - 1
        margin = sign * f
        return float(self.w @ np.logaddexp(0, -margin)[:, 0]), sign * expit(-margin)

    def curvature(self, R: Array, c: int, d: int) -> Array:
        size = np.abs(R[:, 0])
        return size * (1 - size)

    def dual(self, R: Array, s: float) -> float:
        size = np.minimum(s * np.abs(R[:, 0]), 1.0)  # 1 - p of the row's own class
        return -float(self.w @ (xlogy(size, size) + xlogy(1 - size, 1 - size)))


@dataclass(frozen=True, eq=False)
class SoftmaxLoss:
    """log sum_k exp(f_k) - f_y, Y one row of the identity a row"""

    Y: Array
    w: Array
    constant = False

    @property
    def start(self) -> Array:
        f = np.log(self.w @ self.Y)
        return f - f.mean()

    def at(self, f: Array) -> tuple[float, Array]:
        top = f.max(1, keepdims=True)
        E = np.exp(f - top)
        total = E.sum(1, keepdims=True)
        own = (self.Y * f).sum(1)
        return float(self.w @ (np.log(total) + top)[:, 0] - self.w @ own), self.Y - E / total

    def curvature(self, R: Array, c: int, d: int) -> Array:
        p = self.Y[:, c] - R[:, c]
        return p * (1 - p) if c == d else p * (R[:, d] - self.Y[:, d])

    def dual(self, R: Array, s: float) -> float:
        P = np.maximum(self.Y - s * R, 0.0)
        return -float(self.w @ xlogy(P, P).sum(1))
