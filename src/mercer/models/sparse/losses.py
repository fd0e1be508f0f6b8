"""Losses of scores f (n, C) as a sparse learner reads them: residuals, curvatures, and what a dual
point is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, logsumexp, softmax, xlogy

from mercer.inputs import Array


class SparseLoss(Protocol):
    """sum_i w_i l(f_i) of rows of weights w that sum to 1."""

    Y: Array  # (n, C)
    w: Array

    @property
    def constant(self) -> bool:
        """Whether the curvature is the same everywhere."""
        ...

    @property
    def start(self) -> Array:
        """The best scores without any feature, (C,)."""
        ...

    def value(self, f: Array) -> float: ...
    def residuals(self, f: Array) -> Array:
        """-dl/df, (n, C)."""
        ...

    def curvature(self, f: Array, c: int, d: int) -> Array:
        """d^2l / df_c df_d, (n,)."""
        ...

    def dual(self, R: Array, s: float) -> float:
        """What s times the residuals are worth as a dual point."""
        ...


@dataclass(frozen=True, eq=False)
class SquaredLoss:
    """(y - f)^2 / 2"""

    Y: Array
    w: Array
    constant = True

    @property
    def start(self) -> Array:
        return np.asarray(self.w @ self.Y)

    def value(self, f: Array) -> float:
        return float(self.w @ np.square(self.Y - f)[:, 0]) / 2

    def residuals(self, f: Array) -> Array:
        return self.Y - f

    def curvature(self, f: Array, c: int, d: int) -> Array:
        return np.ones(len(f))

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

    def value(self, f: Array) -> float:
        return float(self.w @ (np.logaddexp(0, f) - self.Y * f)[:, 0])

    def residuals(self, f: Array) -> Array:
        return np.where(self.Y > 0.5, expit(-f), -expit(f))

    def curvature(self, f: Array, c: int, d: int) -> Array:
        return (expit(f) * expit(-f))[:, 0]

    def dual(self, R: Array, s: float) -> float:
        size = np.minimum(s * np.abs(R), 1.0)  # 1 - p of the row's own class
        return -float(self.w @ (xlogy(size, size) + xlogy(1 - size, 1 - size))[:, 0])


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

    def value(self, f: Array) -> float:
        return float(self.w @ (logsumexp(f, axis=1) - (self.Y * f).sum(1)))

    def residuals(self, f: Array) -> Array:
        return self.Y - softmax(f, axis=1)

    def curvature(self, f: Array, c: int, d: int) -> Array:
        P = softmax(f, axis=1)
        return P[:, c] * (float(c == d) - P[:, d])

    def dual(self, R: Array, s: float) -> float:
        P = np.maximum(self.Y - s * R, 0.0)
        return -float(self.w @ xlogy(P, P).sum(1))
