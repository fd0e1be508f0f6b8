"""The elementary functions of formulas over plain numbers, and those of the Matern family that
NumPy lacks, finite everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import gammaln, kve

from mercer.inputs import Array

LARGE_ORDER = (
    40.0  # from here on the Debye expansion is right to 1e-9, and kve would overflow near zero
)


def bessel(nu: float, r: Array, shift: int = 0) -> Array:
    """2^(1-nu)/Gamma(nu) r^nu K_(nu-shift)(r); for shift 0 the Matern profile, 1 at r = 0, for
    shift 1 minus its slope.

    >>> abs(float(bessel(0.5, np.array([2.0]))[0]) - math.exp(-2)) < 1e-15
    True
    """
    r = np.asarray(r)
    x = np.where(r > 0, np.minimum(r, 1e8), 1).astype(np.float64)  # beyond, it is zero
    log = (1 - nu) * math.log(2) - gammaln(nu) + nu * np.log(x) + _log_k(abs(nu - shift), x)
    return np.where(r > 0, np.exp(np.minimum(log, 700)), 1.0 if shift == 0 else 0.0).astype(r.dtype)


def _log_k(nu: float, x: Array) -> Array:
    """log K_nu(x) for x > 0."""
    if nu >= LARGE_ORDER:
        return _debye(nu, x / nu)
    with np.errstate(over="ignore", divide="ignore"):
        log = np.log(kve(nu, x)) - x
    small = gammaln(nu) - math.log(2) + nu * np.log(2 / x) if nu > 0 else log  # where kve overflows
    return np.where(log == np.inf, small, log)


def _debye(nu: float, z: Array) -> Array:
    """log K_nu(nu z), uniformly in z, by four terms of the Debye expansion."""
    w = np.sqrt(1 + z * z)
    t = 1 / w
    s = t * t
    u = (
        (t / 24) * (3 - 5 * s),
        (s / 1152) * (81 - 462 * s + 385 * s**2),
        (t * s / 414720) * (30375 - 369603 * s + 765765 * s**2 - 425425 * s**3),
        (s**2 / 39813120)
        * (4465125 - 94121676 * s + 349922430 * s**2 - 446185740 * s**3 + 185910725 * s**4),
    )
    series = 1 - u[0] / nu + u[1] / nu**2 - u[2] / nu**3 + u[3] / nu**4
    return (
        0.5 * math.log(math.pi / (2 * nu))
        - nu * (w + np.log(z / (1 + w)))
        - 0.5 * np.log(w)
        + np.log(series)
    )


def half_integer_coefficients(p: int) -> list[float]:
    """Coefficients c_i of the Matern profile exp(-r) sum_i c_i r^i for nu = p + 1/2.

    >>> half_integer_coefficients(1)
    [1.0, 1.0]
    """
    f = math.factorial
    return [f(p) / f(2 * p) * f(2 * p - i) / (f(p - i) * f(i)) * 2.0**i for i in range(p + 1)]


NODES, WEIGHTS = (
    (v + o) / 2 for v, o in zip(np.polynomial.legendre.leggauss(32), (1.0, 0.0), strict=True)
)  # on (0, 1)


def matern_deficit(nu: float, r: Array) -> Array:
    """1 - bessel(nu, r), to relative accuracy: near zero the integral of minus its slope, with
    nodes that crowd there.

    >>> abs(float(matern_deficit(0.5, np.array([1e-12]))[0]) / 1e-12 - 1) < 1e-9
    True
    """
    r = np.asarray(r, np.float64)
    out, close = 1 - bessel(nu, r), (r > 0) & (r * r < max(0.04, 0.2 * (nu - 1)))
    p = max(4.0, 2 / nu)
    slopes = bessel(nu, r[close][:, None] * NODES**p, shift=1)
    out[close] = r[close] * (slopes @ (p * NODES ** (p - 1) * WEIGHTS))
    return out


class Numbers:
    """exp, log, log1p, sqrt, sin, cos, powers, sinc and the Matern profile of NumPy arrays and
    Python floats: `p.xp` of tiles and diagonals."""

    exp, log, log1p, sin, cos = np.exp, np.log, np.log1p, np.sin, np.cos
    sqrt = np.sqrt

    @staticmethod
    def power(r: Any, q: float) -> Any:
        """r^q of r >= 0, for q > 0."""
        return np.power(r, q)

    @staticmethod
    def sinc(a: Any) -> Any:
        """sin(a) / a, and 1 at a = 0."""
        return np.sinc(a / np.pi)

    @staticmethod
    def bessel(nu: float, r: Any) -> Any:
        """2^(1-nu)/Gamma(nu) r^nu K_nu(r)."""
        return bessel(nu, r)

    @staticmethod
    def ratio(a: Any, b: Any) -> Any:
        """a / b, and 0 where b = 0."""
        return np.divide(a, b, out=np.zeros_like(a + b), where=b != 0)
