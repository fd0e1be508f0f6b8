"""How honest intervals are: the share of targets inside the central interval of every nominal coverage."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_array

from mercer.inputs import Array

COVERAGES = (0.5, 0.8, 0.9, 0.95)
MODEL = "{0:.3g} of new rows are covered if y is this Gaussian process at these hyper-parameters; see calibration(X, y)"
NOT_LEFT_OUT = "calibration without X and y leaves rows out in closed form, for which via='exact' is needed; give X and y."


def shares_inside(z: Array, nominal: Sequence[float]) -> dict[float, float]:
    """Of standardised targets, by coverage.

    >>> shares_inside(np.array([-2.0, 0.0, 0.5, 1.0]), [0.5, 0.8])
    {0.5: 0.5, 0.8: 0.75}
    """
    return {c: float(np.mean(np.abs(z) <= ndtri((1 + c) / 2))) for c in nominal}


def standardised(y: Any, mean: Array, std: Array) -> Array:
    """(y - mean) / std, 0 where both are."""
    mean, std = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    if y.size != mean.size or len(y) != len(mean):
        raise ValueError(f"y has shape {y.shape}, but the predictions at X {mean.shape}; give one y a row of X.")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num((y.reshape(mean.shape) - mean) / std, nan=0.0)


def plot_coverages(calibration: Callable[[list[float]], dict[float, float]], ax: Any) -> Any:
    """Nominal against empirical coverage, on Matplotlib's axes, which are returned."""
    ax = _axes() if ax is None else ax
    nominal = np.linspace(0.01, 0.99, 99)
    found = calibration(nominal.tolist())
    ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
    ax.plot(nominal, [*found.values()])
    ax.set(xlabel="nominal coverage", ylabel="share of y inside", xlim=(0, 1), ylim=(0, 1))
    return ax


def _axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as e:
        raise ImportError("plot_calibration draws with Matplotlib, which is not installed; pip install matplotlib.") from e
    return pyplot.subplots()[1]
