"""NadarayaWatson and SoftNeighborsClassifier: every training point votes, with the weight that the kernel gives it."""
from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.base import all_or_nothing
from mercer.estimators.smoothing_base import FarAwayWarning, Smoothing
from mercer.inputs import Array
from mercer.store import register

__all__ = ["FarAwayWarning", "NadarayaWatson", "SoftNeighborsClassifier"]


@register("smoothing.NadarayaWatson")
class NadarayaWatson(MultiOutputMixin, RegressorMixin, Smoothing):
    """f(x) = sum_i w_i k(x, x_i) y_i / sum_i w_i k(x, x_i), the mean of the targets near x.

    A model keeps a copy of rows up to 64 MB; larger ones are kept as they come, so do not change them.
    No matrix of all pairs is formed: queries and training points meet in tiles. Where every kernel value underflows, the votes are
    taken relative to the largest, so that the nearest points answer; `far(X)` tells where, and a `FarAwayWarning` that it happened.

    Parameters
    ----------
    kernel : a kernel that is nowhere negative, a name as in scikit-learn, "precomputed", or None: a Gaussian scaled to the data.
    bandwidth : "fixed" keeps the bandwidths of the kernel, "loo" multiplies all of them by the one of `scales` with the least
        leave-one-out error, all in one sweep; "auto" is "loo" where the kernel was left to us, else "fixed".
    scales : factors to choose from; by default 19 from 1/128 to 4.
    random_state : which rows are left out in turn where there are more than 10^8 pairs.

    Attributes: `kernel_`, `scales_` and `loo_errors_` (after a choice), `loo_predictions_`, `loo_score_`, `plan_`.

    Nadaraya, On estimating regression (1964); Watson, Smooth regression analysis (1964).

    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> m = NadarayaWatson().fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(m.predict(X) - np.sin(X[:, 0])).max() < 0.02)
    True
    """

    def __init__(self, kernel: Any = None, *, bandwidth: str = "auto", scales: Any = None, random_state: Any = None) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scales = scales
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows, and choose the bandwidth. A call that is refused leaves the model as it was."""
        self._settings()
        self._anew()
        rows, y = self._checked_pair(X, y, reset=True, multi_output=True, y_numeric=True)
        self._flat, Y = y.ndim == 1, np.array(y.reshape(len(y), -1), np.float64)
        if np.abs(Y).max() > np.finfo(rows.dtype).max:
            raise ValueError(f"y is too large for {rows.dtype}, in which X asks for answers; scale y, or give X as float64.")
        return self._fit(rows, Y, self._weight(sample_weight, rows))

    def predict(self, X: Any) -> Array:
        """f(x), (n,) or (n, q)."""
        out, dtype = self._smooth(X)
        return self._shaped(out).astype(dtype, copy=False)

    @property
    def loo_predictions_(self) -> Array:
        """f at every training point without it and its copies."""
        return self._shaped(self._left_out())

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`."""
        check_is_fitted(self, "smoother_")
        s = self.smoother_
        return float(r2_score(s.relative(s.Y), s.relative(self._left_out()), sample_weight=s.weight))

    def _shaped(self, out: Array) -> Array:
        return out[:, 0] if self._flat else out


@register("smoothing.SoftNeighborsClassifier")
class SoftNeighborsClassifier(ClassifierMixin, Smoothing):
    """p_c(x) = sum of w_i k(x, x_i) over the points of class c / sum over all points: a vote of all, by proximity.

    With a bandwidth near zero it is the nearest neighbour, far away too: see `NadarayaWatson`, also for the parameters. The
    bandwidth is chosen by the squared error of the leave-one-out confidences (Brier score).

    Attributes: `classes_`, `kernel_`, `scales_` and `loo_errors_` (after a choice), `loo_confidences_`, `loo_score_`, `plan_`.

    >>> m = SoftNeighborsClassifier().fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"])
    >>> m.predict([[0.5], [4.6]]).tolist(), m.votes([[4.6]], k=1)[0].tolist()
    (['low', 'high'], [[3]])
    """

    def _laws(self) -> str | None:
        q = self.smoother_.Y.shape[1]
        return None if len(self.classes_) == q else f"has votes for {q} classes, not {len(self.classes_)}"

    def __init__(self, kernel: Any = None, *, bandwidth: str = "auto", scales: Any = None, random_state: Any = None) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scales = scales
        self.random_state = random_state

    classes_: Array

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows, and choose the bandwidth. A call that is refused leaves the model as it was."""
        self._settings()
        self._anew()
        rows, y = self._checked_pair(X, y, reset=True)
        check_classification_targets(y)
        weight = self._weight(sample_weight, rows)
        self.classes_, at = np.unique(y, return_inverse=True)
        return self._fit(rows, np.eye(len(self.classes_))[at], weight)

    def predict_proba(self, X: Any) -> Array:
        """The confidences, (n, C); they are shares of votes, not calibrated probabilities."""
        out, dtype = self._smooth(X)
        return _shares(out).astype(dtype, copy=False)

    def predict(self, X: Any) -> Array:
        """The class with the most votes."""
        found = self._smooth(X)[0].argmax(axis=1)
        return self.classes_[found]

    @property
    def loo_confidences_(self) -> Array:
        """The confidences at every training point without it and its copies, (n, C)."""
        return _shares(self._left_out())

    @property
    def loo_score_(self) -> float:
        """The accuracy of the leave-one-out votes."""
        found = self._left_out().argmax(axis=1)
        return float(accuracy_score(self.smoother_.Y.argmax(axis=1), found, sample_weight=self.smoother_.weight))


def _shares(out: Array) -> Array:
    out = np.clip(out, 0, 1)
    return np.asarray(out / out.sum(axis=1, keepdims=True))
