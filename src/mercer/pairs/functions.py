"""The elementary functions a kernel formula may use, over plain numbers (`p.xp` of the tile and diagonal readings)."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.ops.special import bessel as _bessel


class Numbers:
    """exp, log, log1p, sqrt, sin, cos, sinc and the Matern profile of NumPy arrays and Python floats."""

    exp, log, log1p, sin, cos = np.exp, np.log, np.log1p, np.sin, np.cos
    sqrt = np.sqrt

    @staticmethod
    def sinc(a: Any) -> Any:
        """sin(a) / a, and 1 at a = 0."""
        return np.sinc(a / np.pi)

    @staticmethod
    def bessel(nu: float, r: Any) -> Any:
        """2^(1-nu)/Gamma(nu) r^nu K_nu(r)."""
        return _bessel(nu, r)

    @staticmethod
    def ratio(a: Any, b: Any) -> Any:
        """a / b, and 0 where b = 0."""
        return np.divide(a, b, out=np.zeros_like(a + b), where=b != 0)
