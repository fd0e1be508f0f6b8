"""NadarayaWatson and SoftNeighborsClassifier: every training point votes, with the weight that the kernel gives it."""
from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, check_random_state

from mercer.estimators.rows import OverRows
from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.kernels.base import positive, whole
from mercer.kernels.stretch import bandwidths, scaled
from mercer.learners.smoothing import COLUMNS, Given, Points, Smoother
from mercer.ops.tiles import ROWS
from mercer.plan import Plan
from mercer.stats import row_hashes

SCALES = 2.0 ** np.arange(-7, 2.5, 0.5)
LOO_PAIRS, LOO_ROWS = 10**8, 1000  # with more pairs, bandwidths are tried on some of the rows; on so many at least


class FarAwayWarning(UserWarning):
    """Some queries are so far from all training points that every kernel value underflows."""


class Smoothing(OverRows):
    """What the two share: fitting keeps the rows and may choose a bandwidth; every answer is one sweep over tiles."""

    bandwidth: Any
    scales: Any
    random_state: Any
    smoother_: Smoother
    _train: Table

    def _fit(self, rows: Table, Y: Array, weight: Array | None) -> Self:
        how = self._how()
        kernel = self._resolved(rows, weight)
        choose = how == "loo" or (how == "auto" and not isinstance(self.kernel, Kernel) and bool(bandwidths(kernel)))
        if choose and not bandwidths(kernel):
            raise ValueError(f"bandwidth='loo' needs a kernel with a bandwidth, got {kernel!r}; use bandwidth='fixed'.")
        self._train, self.kernel_ = rows, kernel
        self.__dict__.pop("_groups", None)
        self.smoother_ = Smoother(Given(len(rows)) if self._pairwise else Points(kernel, rows), Y, weight)
        self.plan_ = self._planned(rows, choose)
        if choose:
            self._choose(rows)
        return self

    def _how(self) -> str:
        if self.bandwidth not in ("auto", "loo", "fixed"):
            raise ValueError(f"bandwidth must be 'auto', 'loo' or 'fixed', got {self.bandwidth!r}.")
        return str(self.bandwidth)

    def _choose(self, rows: Table) -> None:
        """The scale of all bandwidths with the least squared error of the rows left out, all scales in one sweep."""
        given = SCALES if self.scales is None else self.scales
        self.scales_ = np.unique([positive(s, "scales") for s in np.ravel(given).tolist()])
        kernels, index, s = [scaled(self.kernel_, c) for c in self.scales_], self._loo_rows(len(rows)), self.smoother_
        groups = self._grouped()
        found = s.targets(s.sweep(rows[index], kernels, (groups[index], groups))[0])
        errors = np.square((found - s.Y[index]) / s.scale).mean(axis=2) @ s.w[index] / s.w[index].sum()
        self.loo_errors_ = errors
        best = int(np.flatnonzero(errors <= errors.min() * (1 + 1e-9))[-1])  # of equals the smoothest
        self.kernel_ = scaled(self.kernel_, float(self.scales_[best])).clone()
        self.smoother_ = Smoother(Points(self.kernel_, rows), s.Y, s.weight)

    def _loo_rows(self, n: int) -> Array:
        most = max(LOO_ROWS, LOO_PAIRS // n)
        return np.arange(n) if n <= most else np.sort(check_random_state(self.random_state).choice(n, most, replace=False))

    def _grouped(self) -> Array:
        """Equal rows have equal numbers: a point is left out with its copies, so that a weight of 2 is two rows."""
        if not hasattr(self, "_groups"):
            data = self._train.data
            plain = self._pairwise or self._train.items
            self._groups = np.arange(len(self._train)) if plain else np.unique(row_hashes(data), return_inverse=True)[1]
        return self._groups

    def _planned(self, rows: Table, choose: bool) -> Plan:
        n, q = len(rows), self.smoother_.Y.shape[1]
        tile = 8.0 * ROWS * COLUMNS * 4
        settings = {"rows": n, "outputs": q, "bandwidth": "by leave-one-out" if choose else "as given"}
        if choose:
            settings |= {"scales": len(SCALES if self.scales is None else np.ravel(self.scales)), "rows left out": len(self._loo_rows(n))}
        why = f"every answer is one sweep over {n:,} training points in tiles, whatever the number of queries"
        return Plan("tiles", why, settings, tile + 8.0 * n * (q + 1 + self.n_features_in_), None, 1 if choose else 0)

    # asking
    def _smooth(self, X: Any) -> tuple[Array, Any]:
        check_is_fitted(self, "smoother_")
        rows = self._checked_rows(X, reset=False)
        out, far = self.smoother_.smooth(rows)
        if far.any():
            told = f"{far.sum()} of {len(far)} queries are so far from the training points that every kernel value underflows; "
            warnings.warn(told + "they are answered by the nearest points (see far(X)).", FarAwayWarning, stacklevel=3)
        return out, rows.dtype

    def far(self, X: Any) -> Array:
        """Which rows are so far from all training points that every kernel value underflows, (n,) of bool.

        They are answered by their largest votes relative to each other, which is by the nearest points.
        """
        check_is_fitted(self, "smoother_")
        return self.smoother_.far(self._checked_rows(X, reset=False))

    def votes(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """The k training points with the largest shares p_i(x) = w_i k(x, x_i) / sum_j w_j k(x, x_j), and the shares, (n, k) each."""
        check_is_fitted(self, "smoother_")
        rows = self._checked_rows(X, reset=False)
        index, shares = self.smoother_.votes(rows.astype(np.float64), min(whole(k, "k", least=1), len(self._train)))
        return index, shares.astype(rows.dtype)

    def _left_out(self) -> Array:
        """Every training row's answer without it and its copies, (n, q)."""
        check_is_fitted(self, "smoother_")
        s, groups = self.smoother_, self._grouped()
        return s.targets(s.sweep(self._train, without=(groups, groups))[0][0])


class NadarayaWatson(MultiOutputMixin, RegressorMixin, Smoothing):
    """f(x) = sum_i w_i k(x, x_i) y_i / sum_i w_i k(x, x_i), the mean of the targets near x.

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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows, and choose the bandwidth."""
        rows, y = self._checked_pair(X, y, reset=True, multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        return self._fit(rows, np.asarray(y.reshape(len(y), -1), np.float64), self._weight(sample_weight, rows))

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
        return float(r2_score(self.smoother_.Y, self._left_out(), sample_weight=self.smoother_.weight))

    def _shaped(self, out: Array) -> Array:
        return out[:, 0] if self._flat else out


class SoftNeighborsClassifier(ClassifierMixin, Smoothing):
    """p_c(x) = sum of w_i k(x, x_i) over the points of class c / sum over all points: a vote of all, by proximity.

    With a bandwidth near zero it is the nearest neighbour, far away too: see `NadarayaWatson`, also for the parameters. The
    bandwidth is chosen by the squared error of the leave-one-out confidences (Brier score).

    Attributes: `classes_`, `kernel_`, `scales_` and `loo_errors_` (after a choice), `loo_confidences_`, `loo_score_`, `plan_`.

    >>> m = SoftNeighborsClassifier().fit([[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"])
    >>> m.predict([[0.5], [4.6]]).tolist(), m.votes([[4.6]], k=1)[0].tolist()
    (['low', 'high'], [[3]])
    """

    def __init__(self, kernel: Any = None, *, bandwidth: str = "auto", scales: Any = None, random_state: Any = None) -> None:
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.scales = scales
        self.random_state = random_state

    classes_: Array

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Keep the rows, and choose the bandwidth."""
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
