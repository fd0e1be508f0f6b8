"""How honest a Gaussian process is: leave-one-out in closed form, and the calibration of its intervals."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import validate_data

from mercer.estimators.gp_answers import PointAnswers
from mercer.inputs import Array
from mercer.learners.gp_iterative import IterativeProcess
from mercer.learners.gp_process import LeftOut, PointProcess

COVERAGES = (0.5, 0.8, 0.9, 0.95)


class Checks(PointAnswers):
    """Leave-one-out and calibration."""

    # leave-one-out
    def _of_points(self, name: str) -> PointProcess:
        self._check_fitted()
        if not hasattr(self, "process_"):
            raise AttributeError(f"{name} needs the points themselves; fit with via='exact'.")
        return self.process_

    def _left_out(self, name: str) -> LeftOut:
        p = self._of_points(name)
        if isinstance(p, IterativeProcess):
            raise AttributeError(f"{name} in closed form needs a Cholesky factor; fit with via='exact'.")
        return p.left_out()

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
        """R^2 of `loo_predictions_`."""
        left, Y = self._left_out("loo_score_"), self.process_.Y
        return float(1 - np.square(Y - left.mean).sum() / np.square(Y - Y.mean(0)).sum())

    def _plain(self, out: Array) -> Array:
        return out[:, 0] if self._flat else out

    # honesty
    def calibration(self, X: Any = None, y: Any = None, coverages: Sequence[float] = COVERAGES) -> dict[float, float]:
        """The share of y inside the central interval of each nominal coverage; without X and y by leave-one-out.

        >>> from mercer import GaussianProcessRegressor
        >>> X = np.linspace(0, 6, 50)[:, None]
        >>> sorted(GaussianProcessRegressor().fit(X, np.sin(X[:, 0])).calibration())
        [0.5, 0.8, 0.9, 0.95]
        """
        z = np.abs(self._standardised(X, y))
        return {float(c): float(np.mean(z <= ndtri((1 + c) / 2))) for c in coverages}

    def _standardised(self, X: Any, y: Any) -> Array:
        """(y - mean) / std of every row."""
        if X is None:
            left = self._left_out("calibration without X and y")
            return (self.process_.Y - left.mean) / np.sqrt(left.variance)
        X, y = validate_data(self, X, y, reset=False, dtype=[np.float64, np.float32], accept_sparse="csr", multi_output=self._many())
        mean, std = (np.asarray(v, np.float64) for v in self.predict(X, return_std=True))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num((np.asarray(y, np.float64) - mean) / std, nan=0.0)

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
