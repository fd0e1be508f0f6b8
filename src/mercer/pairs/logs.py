"""The reading by logarithms: log k of the same formula, finite where k itself is too small for a
floating-point number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import gammaln, kve

from mercer.inputs import Array
from mercer.ops.distances import TOLERANCE
from mercer.ops.special import Numbers
from mercer.pairs.side import Bandwidth
from mercer.pairs.tile import Tile


class Log:
    """A positive number, held by its logarithm; products, sums and powers of them and of plain
    numbers."""

    __array_ufunc__ = None

    def __init__(self, log: Any) -> None:
        self.log = log

    def __mul__(self, other: Any) -> Log:
        return Log(self.log + log(other))

    def __add__(self, other: Any) -> Log:
        return Log(np.logaddexp(self.log, log(other)))

    def __pow__(self, n: Any) -> Log:
        return Log(n * self.log if n else np.zeros_like(self.log))

    def __truediv__(self, other: Any) -> Log:
        return Log(self.log - log(other))

    def __rtruediv__(self, other: Any) -> Log:
        return Log(log(other) - self.log)

    __rmul__, __radd__ = __mul__, __add__


def log(value: Any) -> Any:
    """The logarithm of a Log, or of plain numbers, minus infinity for zero; negative numbers are
    refused."""
    if isinstance(value, Log):
        return value.log
    value = np.asarray(value)
    low = value.min(initial=0.0)
    if low < 0 and low < -1e-6 * value.max(initial=0.0):
        raise ValueError(
            f"the kernel is negative for some pairs ({low:.3g}), so it has no logarithm; use one that never is, as exp(k)."
        )
    return np.log(
        value, out=np.full(value.shape, -np.inf, np.result_type(value, np.float32)), where=value > 0
    )


def number(value: Any) -> Any:
    return np.exp(value.log) if isinstance(value, Log) else value


class Logs(Numbers):
    """exp(a) as the Log of a, and the others of plain numbers."""

    @staticmethod
    def exp(a: Any) -> Any:  # type: ignore[override]
        return Log(number(a))

    @staticmethod
    def sqrt(a: Any) -> Any:  # type: ignore[override]
        return Log(a.log / 2) if isinstance(a, Log) else np.sqrt(a)

    @staticmethod
    def power(r: Any, q: float) -> Any:
        return r**q if isinstance(r, Log) else Numbers.power(r, q)

    @staticmethod
    def ratio(a: Any, b: Any) -> Any:
        return Log(np.where(number(b) != 0, log(a) - np.where(number(b) != 0, log(b), 0), -np.inf))

    @staticmethod
    def bessel(nu: float, r: Any) -> Any:
        """The Matern profile 2^(1-nu)/Gamma(nu) r^nu K_nu(r), where K_nu(r) = kve(nu, r)
        exp(-r)."""
        near = Numbers.bessel(nu, r)
        t = np.where(near > 0, 1.0, np.asarray(r, np.float64))
        far = (1 - nu) * np.log(2) - gammaln(nu) + nu * np.log(t) + np.log(kve(nu, t)) - t
        return Log(np.where(near > 0, log(near), far))


class LogTile(Tile):
    """All pairs (x_i, z_j), whose formulas end in logarithms. What several bandwidths in proportion
    share is computed once."""

    xp: Any = Logs

    def _rescaled(self, b: Bandwidth) -> tuple[Array, float] | None:
        found = super()._rescaled(b)
        for a, (D, error) in () if found or isinstance(b, float) else self._squared.items():
            c = _proportion(a, b)
            if c is not None and error * c**2 <= TOLERANCE[self.dtype]:
                return D * np.asarray(c**2, D.dtype), error * c**2
        return found

    def absdist(self, bandwidth: Any = 1.0) -> Any:
        return self._once("absdist", bandwidth, super().absdist, 1)

    def sinsq(self, period: Any, bandwidth: Any) -> Any:
        return self._once(
            ("sinsq", period), bandwidth, lambda b: super(LogTile, self).sinsq(period, b), 2
        )

    def _once(self, key: Any, b: Any, of: Callable[[Any], Any], power: int) -> Any:
        """of(b), from that of another bandwidth in proportion where there is one."""
        known = self._parts.setdefault(("once", key), {})
        for a, D in known.items():
            c = _proportion(a, b)
            if c is not None:
                return D * np.asarray(c**power, D.dtype)
        known[b] = of(b)
        return known[b]


def _proportion(a: Bandwidth, b: Bandwidth) -> float | None:
    """c with a = c b, where there is one."""
    u, v = np.atleast_1d(a), np.atleast_1d(b)
    if u.shape != v.shape:
        return None
    c = float(u[0] / v[0])
    return c if np.allclose(u, c * v, rtol=1e-12, atol=0) else None
