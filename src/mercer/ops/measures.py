"""Spectral measures at unit bandwidth, radial or of independent columns: how uniform and normal
numbers become frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.special import (
    betainccinv,
    betaincinv,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    gammaln,
    ive,
    ndtri,
)

from mercer.inputs import Array
from mercer.invariants import Number
from mercer.ops.stable import MAX_ODDS, log_stable, log_stable_radius
from mercer.store import register

MIN_TAIL = 1e-18  # probability below which the tails of a tabulated law are left out
# what a quotient divides by at least, where a law is so heavy-tailed that its quantiles underflow
MIN_DIVISOR = 1e-250
# frequencies beyond this are equally high: cosines of them are as good as random, and float32 has
# room for their sums
MAX = 1e30
LOG_MAX = float(np.log(MAX))


class Measure:
    """The law of one frequency, drawn by turning `width(d)` uniform numbers into its d
    coordinates."""

    def width(self, d: int) -> int:
        """How many uniform numbers a frequency takes."""
        return d

    def rows(self, U: Array, d: int) -> Array:
        """Frequencies (n, d) from uniform numbers U (n, width)."""
        raise NotImplementedError


class Radial(Measure):
    """A measure that rotations leave as it is: a norm times a uniform direction."""

    def ambient(self, d: int) -> int:
        """Dimension in which the directions are drawn; the first d coordinates are kept."""
        return d

    def radius(self, u: Array, d: int) -> Array:
        """Norm of a frequency in d dimensions at probability u: the inverse of its distribution
        function."""
        raise NotImplementedError

    def scaled(self, N: Array, u: Array) -> Array:
        """Frequencies from rows of normals N (n, d) and one uniform number each, u (n, 1)."""
        raise NotImplementedError

    def width(self, d: int) -> int:
        return self.ambient(d) + 1

    def rows(self, U: Array, d: int) -> Array:
        return self.scaled(ndtri(U[:, :-1]), U[:, -1:])[:, :d]


@register("ops.Normal")
@dataclass(frozen=True)
class Normal(Radial):
    """N(0, I), of the Gaussian kernel exp(-r^2/2); norms are chi with d degrees of freedom.

    >>> Normal().radius(np.array([0.5]), 2) ** 2 / 2 - np.log(2) < 1e-15
    array([ True])
    """

    def radius(self, u: Array, d: int) -> Array:
        return np.sqrt(2 * gammaincinv(d / 2, u))

    def scaled(self, N: Array, u: Array) -> Array:
        return N


@register("ops.Student")
@dataclass(frozen=True)
class Student(Radial):
    """Multivariate t, N / sqrt(chi2_df / df): of Matern(nu) for df = 2 nu, of Laplace exp(-r) for
    df = 1.

    >>> Student(1.0).radius(np.array([0.5]), 1).round(12)  # |Cauchy|
    array([1.])
    """

    df: float

    def radius(self, u: Array, d: int) -> Array:
        a, b = d / 2, self.df / 2
        return np.sqrt(
            self.df * betaincinv(a, b, u) / np.maximum(betainccinv(b, a, u), MIN_DIVISOR)
        )  # B / (1 - B), B ~ Beta

    def scaled(self, N: Array, u: Array) -> Array:
        return N * np.sqrt(self.df / np.maximum(2 * gammaincinv(self.df / 2, u), MIN_DIVISOR))


@register("ops.GammaMixture")
@dataclass(frozen=True)
class GammaMixture(Radial):
    """N sqrt(scale Gamma(shape)), of the kernel (1 + scale r^2/2)^-shape.

    Rational quadratic (1 + r^2/(2a))^-a: shape a, scale 1/a. Radial Cauchy 1/(1 + r^2): shape 1,
    scale 2.

    >>> r = GammaMixture(1.0, 2.0).radius(np.array(0.5), 2) / 2      # P(radius > 2r) = 2r K_1(2r)
    >>> from scipy.special import kv
    >>> float(abs(2 * r * kv(1, 2 * r) - 0.5)) < 1e-9
    True
    """

    shape: float
    scale: float

    def radius(self, u: Array, d: int) -> Array:
        return np.sqrt(self.scale) * np.exp(
            _log_mixture_radius(self.shape, d)(np.log(u) - np.log1p(-u))
        )

    def scaled(self, N: Array, u: Array) -> Array:
        return N * np.sqrt(self.scale * gammaincinv(self.shape, u))


@lru_cache(maxsize=64)
def _log_mixture_radius(shape: float, d: int) -> Any:
    """log sqrt(Gamma(shape) chi2_d) as a spline of log(u/(1-u)), right to 1e-6 in u, mostly to
    1e-9."""
    t, weight = _gamma_nodes(shape, d)
    least, most = (2 * inverse(d / 2, MIN_TAIL) for inverse in (gammaincinv, gammainccinv))
    x = np.linspace(
        np.log(t[0]) + np.log(least), np.log(t[-1]) + np.log(most), 512
    )  # log of the squared radius
    z = np.exp(x)[:, None] / (2 * t)
    odds = np.log(gammainc(d / 2, z) @ weight) - np.log(gammaincc(d / 2, z) @ weight)
    return make_interp_spline(odds, x / 2, k=5)


def _gamma_nodes(shape: float, d: int) -> tuple[Array, Array]:
    """Nodes and weights of Gamma(shape): the trapezoidal rule in log t, which for analytic
    integrands is exact."""
    h = 0.5 / np.sqrt(max(shape, d / 2, 4))
    low, high = (
        np.log(max(gammaincinv(shape, MIN_TAIL), MIN_DIVISOR)),
        np.log(gammainccinv(shape, MIN_TAIL)),
    )
    x = np.arange(low, high + h, h)
    weight = np.exp(shape * x - np.exp(x) - gammaln(shape))
    return np.exp(x), weight / weight.sum()


@register("ops.Sphere")
@dataclass(frozen=True)
class Sphere(Radial):
    """Uniform on the unit sphere of R^3, first d coordinates: of the kernel sin(r)/r, for d <= 3
    only.

    >>> Sphere().scaled(np.array([[3.0, 0.0, 4.0]]), np.array([[0.5]]))
    array([[0.6, 0. , 0.8]])
    """

    def ambient(self, d: int) -> int:
        if d > 3:
            advice = "Use Gaussian, or Sinc on chosen columns."
            raise ValueError(
                f"Sinc is positive definite only for d <= 3; X has {d} columns. {advice}"
            )
        return 3

    def radius(self, u: Array, d: int) -> Array:
        return np.ones_like(u)

    def scaled(self, N: Array, u: Array) -> Array:
        return N / np.sqrt((N * N).sum(1, keepdims=True))


def _between(exponent: float, most: int) -> str | None:
    return None if 0 < exponent < most else f"has an exponent of {exponent}, not in (0, {most})"


@register("ops.Stable")
@dataclass(frozen=True)
class Stable(Radial):
    """N sqrt(2 A) with A positive (exponent/2)-stable, of the kernel exp(-r^exponent), 0 < exponent
    < 2: E exp(-A r^2) = exp(-r^exponent).

    >>> Stable(1.0).radius(np.array([0.5]), 1).round(6)  # |Cauchy|
    array([1.])
    """

    exponent: float

    must = dict(exponent=Number(0))

    def _laws(self) -> str | None:
        return _between(self.exponent, 2)

    def radius(self, u: Array, d: int) -> Array:
        odds = np.clip(np.log(u) - np.log1p(-u), -MAX_ODDS, MAX_ODDS)
        log = log_stable_radius(self.exponent / 2, d)(odds)
        return np.exp(np.minimum(log, LOG_MAX))

    def width(self, d: int) -> int:
        return d + 2

    def rows(self, U: Array, d: int) -> Array:
        return self.scaled(ndtri(U[:, :-2]), U[:, -2:])

    def scaled(self, N: Array, u: Array) -> Array:
        log = (np.log(2) + log_stable(self.exponent / 2, u)) / 2
        return N * np.exp(np.minimum(log, LOG_MAX))[:, None]


class ColumnMeasure(Measure):
    """A measure drawn column by column; rotations change it, so that it has no orthogonal
    frequencies."""


@register("ops.CauchyColumns")
@dataclass(frozen=True)
class CauchyColumns(ColumnMeasure):
    """Independent Cauchy coordinates, of the 1-norm Laplace kernel exp(-sum_j |x_j - z_j|).

    >>> CauchyColumns().rows(np.array([[0.25, 0.5, 0.75]]), 3).round(12) + 0.0
    array([[-1.,  0.,  1.]])
    """

    def rows(self, U: Array, d: int) -> Array:
        return -1 / np.tan(np.pi * U)


@register("ops.StableColumns")
@dataclass(frozen=True)
class StableColumns(ColumnMeasure):
    """A times independent Cauchy coordinates, one A for all of them, positive exponent-stable: of
    the kernel exp(-(sum_j |x_j - z_j|)^exponent), 0 < exponent < 1.

    >>> W = StableColumns(0.5).rows(np.array([[0.5, 0.5, 0.25, 0.75]]), 2)
    >>> bool(abs(W[0, 0] + W[0, 1]) < 1e-12)  # the A they share
    True
    """

    exponent: float

    must = dict(exponent=Number(0))

    def _laws(self) -> str | None:
        return _between(self.exponent, 1)

    def width(self, d: int) -> int:
        return d + 2

    def rows(self, U: Array, d: int) -> Array:
        A = np.exp(np.minimum(log_stable(self.exponent, U[:, :2]), LOG_MAX))
        with np.errstate(over="ignore"):
            return np.clip(A[:, None] * CauchyColumns().rows(U[:, 2:], d), -MAX, MAX)


@register("ops.LaplaceColumns")
@dataclass(frozen=True)
class LaplaceColumns(ColumnMeasure):
    """Independent Laplace coordinates, of the product Cauchy kernel prod_j 1/(1 + (x_j - z_j)^2).

    >>> LaplaceColumns().rows(np.array([[0.25, 0.5]]), 2).round(3) + 0.0
    array([[-0.693,  0.   ]])
    """

    def rows(self, U: Array, d: int) -> Array:
        return np.where(U < 0.5, np.log(2 * U), -np.log(2 - 2 * U))


@register("ops.PeriodicColumns")
@dataclass(frozen=True)
class PeriodicColumns(ColumnMeasure):
    """2 pi j / period with P(j) = I_|j|(1/b^2) exp(-1/b^2), of prod_j exp(-2 sin^2(pi (x_j -
    z_j)/period_j) / b_j^2).

    The sign of j is drawn too: with two columns the kernel is a mean of cosines only over both
    signs.

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
    top = (
        int(np.ceil(9 / b)) + 20
    )  # the law is near N(0, 1/b^2) for small b; its tail falls faster than geometrically
    j = np.arange(-top, top + 1)
    return j[np.minimum(np.searchsorted(np.cumsum(ive(abs(j), b**-2.0)), u), 2 * top)]
