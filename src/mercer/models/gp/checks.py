"""How honest a Gaussian process is: leave-one-out in closed form, and the calibration of its intervals."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_array

from mercer.models.gp.answers import PointAnswers
from mercer.models.gp.problem import check_shares
from mercer.inputs import Array
from mercer.models.gp.iterative import IterativeProcess
from mercer.models.gp.posterior import LeftOut

COVERAGES = (0.5, 0.8, 0.9, 0.95)


class Checks(PointAnswers):
    """Leave-one-out and calibration."""

    # leave-one-out
    def _left_out(self, name: str) -> LeftOut:
        if not self._has_points():
            raise AttributeError(f"{name} needs the points themselves; fit with via='exact'.")
        if isinstance(self.process_, IterativeProcess):
            raise AttributeError(f"{name} in closed form needs a Cholesky factor; fit with via='exact'.")
        return self.process_.left_out

    @property
    def loo_predictions_(self) -> Array:
        """The mean of y of each row by the model of all others, at these hyper-parameters, in closed form."""
        left = self._left_out("loo_predictions_")
        return self._plain(self._units[0] + self._units[1] * left.mean)

    @property
    def loo_variances_(self) -> Array:
        """The variance of y of each row by the model of all others."""
        left = self._left_out("loo_variances_")
        return self._plain(self._units[1] ** 2 * left.variance)

    @property
    def loo_log_densities_(self) -> Array:
        """log p(y_i | all others)."""
        return self._plain(self._left_out("loo_log_densities_").log - np.log(self._units[1]))

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`, the mean over outputs; of a constant y 1 where it is met, else 0, as in scikit-learn."""
        left, Y = self._left_out("loo_score_"), self.process_.Y
        misfit, spread, varies = np.square(Y - left.mean).sum(0), np.square(Y - Y.mean(0)).sum(0), np.ptp(Y, axis=0) > 0
        return float(np.where(varies, 1 - misfit / np.where(varies, spread, 1), misfit == 0).mean())

    # honesty
    def calibration(self, X: Any = None, y: Any = None, coverages: Sequence[float] = COVERAGES) -> dict[float, float]:
        """The share of y inside the central interval of each nominal coverage; without X and y by leave-one-out (via="exact").

        >>> from mercer import GaussianProcessRegressor
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> sorted(GaussianProcessRegressor().fit(X, np.sin(X[:, 0])).calibration())
        [0.5, 0.8, 0.9, 0.95]
        """
        nominal = check_shares(coverages, "coverages").tolist()
        z = np.abs(self._standardised(X, y))
        return {c: float(np.mean(z <= ndtri((1 + c) / 2))) for c in nominal}

    def _standardised(self, X: Any, y: Any) -> Array:
        """(y - mean) / std of every row."""
        if (X is None) != (y is None):
            raise ValueError("give both X and y, or neither: their rows are then left out in turn.")
        if X is None:
            return self._standardised_without()
        mean, std = (np.asarray(v, np.float64) for v in self.predict(X, return_std=True))
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        if y.size != mean.size or len(y) != len(mean):
            raise ValueError(f"y has shape {y.shape}, but the predictions at X {mean.shape}; give one y a row of X.")
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num((y.reshape(mean.shape) - mean) / std, nan=0.0)

    def _standardised_without(self) -> Array:
        if not self._has_points() or isinstance(self.process_, IterativeProcess):
            raise ValueError("calibration without X and y leaves rows out in closed form, for which via='exact' is needed; give X and y.")
        left = self.process_.left_out
        return (self.process_.Y - left.mean) / np.sqrt(left.variance)

    def plot_calibration(self, X: Any = None, y: Any = None, ax: Any = None) -> Any:
        """Nominal against empirical coverage, on Matplotlib's axes, which are returned."""
        ax = _axes() if ax is None else ax
        nominal = np.linspace(0.01, 0.99, 99)
        found = self.calibration(X, y, nominal.tolist())
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
