"""Spectral measures with independent coordinates, at unit bandwidth: of kernels that are products over columns."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ive

from mercer.inputs import Array
from mercer.ops.measures import Measure
from mercer.store import register


class Columns(Measure):
    """A measure with independent coordinates; rotations change it, so that it has no orthogonal frequencies."""


@register("ops.CauchyColumns")
@dataclass(frozen=True)
class CauchyColumns(Columns):
    """Independent Cauchy coordinates, of the 1-norm Laplace kernel exp(-sum_j |x_j - z_j|).

    >>> CauchyColumns().rows(np.array([[0.25, 0.5, 0.75]]), 3).round(12) + 0.0
    array([[-1.,  0.,  1.]])
    """

    def rows(self, U: Array, d: int) -> Array: return -1 / np.tan(np.pi * U)


@register("ops.LaplaceColumns")
@dataclass(frozen=True)
class LaplaceColumns(Columns):
    """Independent Laplace coordinates, of the product Cauchy kernel prod_j 1/(1 + (x_j - z_j)^2).

    >>> LaplaceColumns().rows(np.array([[0.25, 0.5]]), 2).round(3) + 0.0
    array([[-0.693,  0.   ]])
    """

    def rows(self, U: Array, d: int) -> Array: return np.where(U < 0.5, np.log(2 * U), -np.log(2 - 2 * U))


@register("ops.PeriodicColumns")
@dataclass(frozen=True)
class PeriodicColumns(Columns):
    """2 pi j / period with P(j) = I_|j|(1/b^2) exp(-1/b^2), of prod_j exp(-2 sin^2(pi (x_j - z_j)/period_j) / b_j^2).

    The sign of j is drawn too: with two columns the kernel is a mean of cosines only over both signs.

    >>> PeriodicColumns(1.0, 0.5).rows(np.array([[0.1], [0.5], [0.9]]), 1) / (4 * np.pi)
    array([[-1.], [ 0.], [ 1.]])
    """

    bandwidth: float | tuple[float, ...]
    period: float | tuple[float, ...] = 1.0

    def rows(self, U: Array, d: int) -> Array:
        bandwidths = np.broadcast_to(self.bandwidth, d)
        j = [_bessel_quantile(b, u) for b, u in zip(bandwidths, U.T, strict=True)]
        return 2 * np.pi * np.stack(j, axis=1) / np.asarray(self.period)


def _bessel_quantile(b: float, u: Array) -> Array:
    top = int(np.ceil(9 / b)) + 20  # the law is near N(0, 1/b^2) for small b; its tail falls faster than geometrically
    j = np.arange(-top, top + 1)
    return j[np.minimum(np.searchsorted(np.cumsum(ive(abs(j), b**-2.0)), u), 2 * top)]
