"""The positive stable law, E exp(-s A) = exp(-s^alpha) with 0 < alpha < 1: draws by Kanter's formula,
and the norms of normal vectors that it scales."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.special import digamma, expit, gammainc, gammaincc, gammainccinv, gammaincinv, polygamma

from mercer.inputs import Array

MIN_TAIL, TAIL = 1e-18, 42.0  # probability below which tails are left out, and about -log of it
MAX_ODDS = TAIL - 3  # log-odds that the table of norms reaches
MIN_LOG = 1e-300  # what logarithms are taken of at least
POINTS = 768  # of a table of norms


def log_kanter(alpha: float, u: Array, rest: Array) -> Array:
    """log of a(u) = sin((1 - alpha) u) sin(alpha u)^(alpha / (1 - alpha)) / sin(u)^(1 / (1 -
    alpha)), where u + rest = pi, and each has all its digits."""
    power = 1 / (1 - alpha)
    out: Array = (
        np.log(np.sin((1 - alpha) * u))
        + alpha * power * np.log(np.sin(alpha * u))
        - power * np.log(np.sin(np.minimum(u, rest)))
    )
    return out


def log_stable(alpha: float, U: Array) -> Array:
    """log A (n,) of two uniform numbers each, U (n, 2): A = (a(pi U_1) / E)^((1 - alpha) / alpha)
    with E exponential.

    Kanter, Stable densities under change of scale and total variation inequalities (1975).

    >>> U = (np.stack(np.meshgrid(*[np.arange(400)] * 2), -1).reshape(-1, 2) + 0.5) / 400
    >>> A = np.exp(log_stable(0.5, U))
    >>> bool(abs(np.exp(-A).mean() - np.exp(-1)) < 1e-3)
    True
    """
    U = np.clip(U, MIN_TAIL, 1 - 2.0**-53)
    exponential = -np.log1p(-U[:, 1])
    angle = log_kanter(alpha, np.pi * (1 - U[:, 0]), np.pi * U[:, 0])
    return (1 - alpha) / alpha * (angle - np.log(exponential))


@lru_cache(maxsize=64)
def log_stable_radius(alpha: float, d: int) -> Any:
    """log sqrt(2 A chi2_d) as a spline of log(u / (1 - u)).

    Its square is 2 a(u)^k E^-k chi2_d with k = (1 - alpha) / alpha: the law of E^-k chi2_d is
    tabulated, and its mean taken over u by the trapezoidal rule in the logit of u / pi.
    """
    k = (1 - alpha) / alpha
    h = 0.4 / np.sqrt(max(d / 2, 4))
    t = np.arange(-TAIL, TAIL + h, h)
    weight = h * expit(t) * expit(-t)
    shift = k * log_kanter(alpha, np.pi * expit(-t), np.pi * expit(t))
    v, tables = _scaled_chi(k, d)
    mean = digamma(d / 2) + np.log(2) + k * np.euler_gamma
    width = np.sqrt(polygamma(1, d / 2) + np.pi**2 / 6 * (alpha**-2 - 1))
    x = _crowded(mean, width, v[0] + shift.min(), v[-1] + TAIL / alpha)
    sums = np.array(
        [[np.exp(f(np.clip(y - shift, v[0], v[-1]))) @ weight for f in tables] for y in x]
    )
    odds = np.log(sums[:, 0]) - np.log(sums[:, 1])
    kept = np.abs(odds) < MAX_ODDS + 1
    return make_interp_spline(odds[kept], (x[kept] + np.log(2)) / 2, k=5)


def _scaled_chi(k: float, d: int) -> tuple[Array, tuple[Any, Any]]:
    """Points v, and log P(Y <= v) and log P(Y > v) about them, of Y = log(E^-k chi2_d): a mean over
    whichever of the two makes the smoother function."""
    least, most = (2 * float(f(d / 2, MIN_TAIL)) for f in (gammaincinv, gammainccinv))
    h = 0.4 / np.sqrt(max(d / 2, 4))
    mean = digamma(d / 2) + np.log(2) + k * np.euler_gamma
    width = np.sqrt(polygamma(1, d / 2) + k**2 * np.pi**2 / 6)
    v = _crowded(
        mean, width, np.log(max(least, MIN_LOG)) - k * np.log(TAIL), np.log(most) + k * TAIL
    )
    if k < 1:
        y = np.arange(-TAIL, np.log(TAIL) + h, h)  # log E
        weight = np.exp(y - np.exp(y))
        z = np.exp(np.minimum(v[:, None] + k * y, 600)) / 2
        sums = [f(d / 2, z) @ weight for f in (gammainc, gammaincc)]
    else:
        y = np.arange(np.log(max(least, MIN_LOG)), np.log(most) + h, h)  # log chi2
        weight = np.exp(d / 2 * y - np.exp(y) / 2 - _peak(d))
        z = np.exp(np.minimum((y - v[:, None]) / k, 600))
        sums = [np.exp(-z) @ weight, -np.expm1(-z) @ weight]
    logs = [np.log(np.maximum(s / weight.sum(), MIN_LOG)) for s in sums]
    return v, tuple(make_interp_spline(v, log, k=3) for log in logs)


def _peak(d: int) -> float:
    """The largest exponent of chi2_d in its logarithm."""
    return d / 2 * float(np.log(d)) - d / 2


def _crowded(mean: float, width: float, low: float, high: float) -> Array:
    """Points from low to high, close where most of a law is."""
    ends = np.arcsinh((np.array([low, high]) - mean) / width)
    return np.asarray(mean + width * np.sinh(np.linspace(ends[0], ends[1], POINTS)))
