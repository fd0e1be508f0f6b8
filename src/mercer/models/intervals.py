"""Prediction intervals that say what they guarantee, and how honest they are: the share of targets
inside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_array

from mercer.inputs import Array

COVERAGES = (0.5, 0.8, 0.9, 0.95)
MODEL = "{0:.3g} of new rows are covered if y is this Gaussian process at these hyper-parameters; see calibration(X, y)"
JACKKNIFE = (
    "at least {0:.3g} of new rows from the same source are covered (jackknife+ at nominal {1:.3g}; Barber et al., 2021), "
    "if penalty, bandwidth and landmarks were not chosen on the same rows"
)
SPLIT = (
    "at least {0:.3g} of new rows from the same source are covered (split conformal), "
    "if penalty, bandwidth and landmarks were not chosen on the same rows"
)


class Interval(tuple[Array, Array]):
    """(lower, upper), and the sentence of what is guaranteed.

    >>> low, high = Interval(np.zeros(2), np.ones(2), "nothing")
    """

    guarantee: str

    def __new__(cls, lower: Array, upper: Array, guarantee: str) -> Interval:
        self = super().__new__(cls, (lower, upper))
        self.guarantee = guarantee
        return self

    @property
    def lower(self) -> Array:
        return self[0]

    @property
    def upper(self) -> Array:
        return self[1]


def conformal_quantile(scores: Array, coverage: float) -> Array:
    """The ceil((n + 1) coverage)-th smallest score (infinite where there are too few), along the
    first axis.

    >>> float(conformal_quantile(np.arange(1.0, 20.0), 0.9))
    18.0
    """
    rank = max(int(np.ceil((len(scores) + 1) * coverage - 1e-9)), 1)
    if rank > len(scores):
        return np.full(scores.shape[1:], np.inf)
    return np.asarray(np.partition(scores, rank - 1, axis=0)[rank - 1])


def jackknife_plus(without: Array, residuals: Array, coverage: float) -> tuple[Array, Array]:
    """From predictions without row i (n, m) and leave-one-out residuals (n,): lower and upper
    bounds (m,).

    At a coverage below 1/2 the bounds may cross, and the interval is empty; it is then the one
    between them, which covers no less.
    """
    size = np.abs(residuals)[:, None]
    low, high = (
        -conformal_quantile(-(without - size), coverage),
        conformal_quantile(without + size, coverage),
    )
    return np.minimum(low, high), np.maximum(low, high)


# how honest they are
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
        raise ValueError(
            f"y has shape {y.shape}, but the predictions at X {mean.shape}; give one y a row of X."
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num((y.reshape(mean.shape) - mean) / std, nan=0.0)


def plot_coverages(calibration: Callable[[list[float]], dict[float, float]], ax: Any) -> Any:
    """Nominal against empirical coverage, on Matplotlib's axes, which are returned."""
    ax = new_axes("plot_calibration") if ax is None else ax
    nominal = np.linspace(0.01, 0.99, 99)
    found = calibration(nominal.tolist())
    ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
    ax.plot(nominal, [*found.values()])
    ax.set(xlabel="nominal coverage", ylabel="share of y inside", xlim=(0, 1), ylim=(0, 1))
    return ax


def new_axes(who: str) -> Any:
    """Of a new figure of Matplotlib, which the package itself does not need."""
    try:
        from matplotlib import pyplot
    except ImportError as e:
        raise ImportError(
            f"{who} draws with Matplotlib, which is not installed; pip install matplotlib."
        ) from e
    return pyplot.subplots()[1]
