"""Kernels with all bandwidths changed by one factor: what a search over bandwidths varies."""
from __future__ import annotations

from typing import Any

from mercer.kernels.base import Kernel
from mercer.kernels.params import substitute


def bandwidths(kernel: Any) -> list[str]:
    """The paths of the bandwidths in an expression.

    >>> from mercer.kernels import Gaussian, Linear
    >>> bandwidths(2 * Gaussian((1.0, 2.0)) + Linear())
    ['terms__0__kernel__bandwidth__0', 'terms__0__kernel__bandwidth__1']
    """
    return [p for p in kernel.parameters() if "bandwidth" in p.split("__")[-2:]] if isinstance(kernel, Kernel) else []


def scaled(kernel: Kernel, by: float) -> Any:
    """The expression with every bandwidth multiplied.

    >>> from mercer.kernels import Gaussian, Linear
    >>> scaled(2 * Gaussian(3.0) + Linear(), 2.0)
    2.0 * Gaussian(bandwidth=6.0) + Linear()
    """
    paths = set(bandwidths(kernel))
    return substitute(kernel, lambda path, v: v * by if path in paths else v)
