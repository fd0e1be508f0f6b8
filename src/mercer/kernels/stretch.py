"""Kernels with all bandwidths changed by one factor: what a search over bandwidths varies."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.kernels.base import Kernel


def stretched(kernel: Kernel, factor: float) -> Any:
    """The kernel with every bandwidth times the factor.

    >>> from mercer.kernels import Gaussian, Linear
    >>> stretched(Gaussian(bandwidth=(1.0, 2.0)) + Linear(), 3.0)
    Gaussian(bandwidth=(3.0, 6.0)) + Linear()
    """
    found = {name: np.multiply(value, factor) for name, value in kernel.get_params().items() if name.split("__")[-1] == "bandwidth"}
    if not found:
        raise ValueError(f"{kernel!r} has no bandwidth to choose; give bandwidths=None.")
    return kernel.clone().set_params(**found)
