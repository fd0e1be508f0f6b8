"""NadarayaWatson and SoftNeighborsClassifier: every training point votes, with the weight that the
kernel gives it."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.gpu.devices import device_of
from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels.base import whole
from mercer.models.base import KernelEstimator, all_or_nothing, checked, part, parted
from mercer.models.settings import FittedKernel, Gamma, KernelSetting, Seed, shown
from mercer.models.smoothing.bandwidths import FittedSmoother, SmoothingSettings, fit
from mercer.models.smoothing.smoother import Smoother
from mercer.plans import Plan
from mercer.store import register

UNCHOSEN = "scales_ and loo_errors_ are there where left-out rows chose the bandwidth; give bandwidth='loo'."


class FarAwayWarning(UserWarning):
    """Every kernel value of some query underflows, or is zero: it is far from all points.

    Examples
    --------
    >>> from mercer.kernels import Gaussian
    >>> m = NadarayaWatson(Gaussian()).fit([[0.0], [1.0]], [2.0, 3.0])
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     answer = m.predict([[99.0]])
    >>> answer, told[0].category.__name__
    (array([3.]), 'FarAwayWarning')
    """


class VotingEstimator(KernelEstimator):
    """What both share: how rows are read, the choice, votes, and a word on far queries."""

    smoothing_: FittedSmoother
    device: str

    must = dict(smoothing_=Is("FittedSmoother"))

    def _laws(self) -> str | None:
        reads = self.smoothing_.reads
        return (
            None
            if reads in (None, self.n_features_in_)
            else f"has rows of {reads} columns, which are not those that it takes"
        )

    def _shares_of_weight(self, sample_weight: ArrayLike | None, rows: Table) -> Array | None:
        """Weights as shares of the largest."""
        if sample_weight is not None and not np.any(np.asarray(sample_weight)):
            raise ValueError(
                "sample_weight is zero for every row; give some row a positive weight."
            )
        weight = self._weights(sample_weight, rows)
        return None if weight is None else weight / weight.max()

    # what is known
    def __sklearn_is_fitted__(self) -> bool:
        return "smoothing_" in vars(self)

    def _smoothing(self) -> FittedSmoother:
        check_is_fitted(self)
        return self.smoothing_

    @property
    def plan_(self) -> Plan:
        return self._smoothing().plan

    @property
    def kernel_(self) -> FittedKernel:
        return self._smoothing().kernel

    @property
    def smoother_(self) -> Smoother:
        return self._smoothing().smoother

    @property
    def scales_(self) -> Array:
        """The factors of bandwidths that were tried."""
        return part(self._smoothing(), "scales", UNCHOSEN)

    @property
    def loo_errors_(self) -> Array:
        """The squared error of left-out rows at each of them."""
        return part(self._smoothing(), "errors", UNCHOSEN)

    @classmethod
    def _upgraded(cls, state: dict[str, Any]) -> dict[str, Any]:
        """Of a file in which the parts of the smoother were attributes."""
        names = ("plan_", "smoother_", "_train", "scales_", "loo_errors_")
        rest, old = parted(state, *names, "kernel_", "_groups")
        if old["smoother_"] is None:
            return rest
        fitted = checked(FittedSmoother(*(old[name] for name in names)))
        return {**rest, "smoothing_": fitted, "_of_items": fitted.rows.items}

    # asking
    def _asked(self, X: Any) -> tuple[FittedSmoother, Table]:
        """Rows as the fitted kernel reads them, whatever was set since."""
        fitted = self._smoothing()
        return fitted, self._rows(X, reset=False, kernel=fitted.kernel)

    def _smooth(self, X: Any) -> tuple[Array, np.dtype[Any]]:
        fitted, rows = self._asked(X)
        out, far, none = fitted.smoother.smooth(rows, device_of(self.device))
        if far.any():
            warnings.warn(_told(far, none), FarAwayWarning, stacklevel=3)
        return out, rows.dtype

    def far(self, X: Any) -> Array:
        """Which rows are so far from all training points that every kernel value vanishes,
        (n,).

        It underflows, or is zero.

        Or underflows.

        They are answered by their largest votes relative to each other, which is by the nearest
        points. Those whose distances are one floating-point number, as all are from 10^16 times
        their spread away, share the vote. Where every vote is exactly zero, so that none is
        nearest, all training points vote equally.
        """
        fitted, rows = self._asked(X)
        return fitted.smoother.far(rows)

    def votes(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """The k training points with the largest shares of the vote, and these, (n, k) each.

        p_i(x) = w_i k(x, x_i) / sum_j w_j k(x, x_j).

        Over all training points they add up to 1, for queries far away too: there the nearest
        have them all.
        """
        fitted, rows = self._asked(X)
        index, shares = fitted.smoother.votes(
            rows.astype(np.float64), min(whole(shown(k), "k", least=1), len(fitted.rows))
        )
        return index, shares.astype(rows.dtype)


@register("smoothing.NadarayaWatson")
class NadarayaWatson(MultiOutputMixin, RegressorMixin, VotingEstimator):
    """f(x) = sum_i w_i k(x, x_i) y_i / sum_i w_i k(x, x_i), the mean of the targets near x.

    A model keeps a copy of rows up to 64 MB; larger ones are kept as they come, so do not
    change them. No matrix of all pairs is formed: queries and training points meet in tiles.
    Where every kernel value underflows, the votes are taken relative to the largest, so that
    the nearest points answer; `far(X)` tells where, and a `FarAwayWarning` that it happened.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel that is nowhere negative, a name as in scikit-learn, "precomputed", or None: a
        Gaussian scaled to the data.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    bandwidth : {"auto", "fixed", "loo"}, default="auto"
        "fixed" keeps the bandwidths of the kernel, "loo" multiplies all of them by the one of
        `scales` with the least leave-one-out error, all in one sweep; "auto" is "loo" where the
        kernel was left to us, else "fixed".
    scales : array-like of float, default=None
        Factors to choose from; None is 19 from 1/128 to 4.
    random_state : int, RandomState or None, default=None
        Which rows are left out in turn where there are more than 10^8 pairs.
    device : str, default="cpu"
        "cuda" (or "cuda:1") counts the votes on that GPU, to about 1e-6 of the range of y;
        "auto" takes one where there is one. Bandwidths are chosen on the CPU; `plan_` says it.

    Attributes
    ----------
    smoothing_ : FittedSmoother
        The fitted value.
    kernel_ : Kernel
    scales_, loo_errors_ : ndarray of shape (n_scales,)
        After a choice.
    loo_predictions_ : ndarray of shape (n,) or (n, n_outputs)
    loo_score_ : float
        R^2 of `loo_predictions_`.
    plan_ : Plan

    References
    ----------
    Nadaraya, On estimating regression (1964); Watson, Smooth regression analysis (1964).

    Examples
    --------
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> m = NadarayaWatson().fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(m.predict(X) - np.sin(X[:, 0])).max() < 0.02)
    True
    """

    def __init__(
        self,
        kernel: KernelSetting = None,
        *,
        gamma: Gamma = None,
        bandwidth: str = "auto",
        scales: ArrayLike | None = None,
        random_state: Seed = None,
        device: str = "cpu",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.bandwidth = bandwidth
        self.scales = scales
        self.random_state = random_state
        self.device = device

    _flat: bool = True  # whether y had one axis

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Keep rows X (n, d) with y (n,) or (n, q) and weights (n,), and choose the bandwidth.

        A call that is refused leaves the model as it was.
        """
        s = SmoothingSettings.of(self)
        rows, y = self._rows_and_targets(X, y, reset=True, multi_output=True, y_numeric=True)
        Y = np.array(y.reshape(len(y), -1), np.float64)
        if np.abs(Y).max() > np.finfo(rows.dtype).max:
            raise ValueError(
                f"y is too large for {rows.dtype}, in which X asks for answers; scale y, or give X as float64."
            )
        found = fit(s, rows, Y, self._shares_of_weight(sample_weight, rows))
        self._flat, self.smoothing_ = y.ndim == 1, found
        return self

    def predict(self, X: Any) -> Array:
        """f(x), (n,) or (n, q)."""
        out, dtype = self._smooth(X)
        return self._shaped(out).astype(dtype, copy=False)

    @property
    def loo_predictions_(self) -> Array:
        """f at every training point without it and its copies."""
        return self._shaped(self._smoothing().left_out())

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`."""
        s = self.smoother_
        return float(
            r2_score(
                s.relative(s.Y), s.relative(self._smoothing().left_out()), sample_weight=s.weight
            )
        )

    def _shaped(self, out: Array) -> Array:
        return out[:, 0] if self._flat else out


@register("smoothing.SoftNeighborsClassifier")
class SoftNeighborsClassifier(ClassifierMixin, VotingEstimator):
    """p_c(x) = sum of w_i k(x, x_i) over the points of class c / sum over all points.

    A vote of all, by proximity. With a bandwidth near zero it is the nearest neighbour, far
    away too: see `NadarayaWatson`. The bandwidth is chosen by the squared error of the
    leave-one-out confidences (Brier score).

    Parameters
    ----------
    kernel : Kernel or str, default=None
        A kernel that is nowhere negative, a name, "precomputed", or None, as in
        `NadarayaWatson`.
    gamma : float or {"scale", "auto"}, default=None
        Of a kernel given by name, as in `KernelRidge`.
    bandwidth : {"auto", "fixed", "loo"}, default="auto"
        As there.
    scales : array-like of float, default=None
        As there.
    random_state : int, RandomState or None, default=None
        As there.
    device : str, default="cpu"
        As there.

    Attributes
    ----------
    smoothing_ : FittedSmoother
        The fitted value.
    classes_ : ndarray of shape (n_classes,)
    kernel_ : Kernel
    scales_, loo_errors_ : ndarray of shape (n_scales,)
        After a choice.
    loo_confidences_ : ndarray of shape (n, n_classes)
    loo_score_ : float
        The accuracy of the leave-one-out votes.
    plan_ : Plan

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], ["low", "low", "high", "high"]
    >>> m = SoftNeighborsClassifier().fit(X, y)
    >>> m.predict([[0.5], [4.6]]).tolist(), m.votes([[4.6]], k=1)[0].tolist()
    (['low', 'high'], [[3]])
    """

    def _laws(self) -> str | None:
        q = self.smoothing_.smoother.Y.shape[1]
        return (
            super()._laws()
            if len(self.classes_) == q
            else f"has votes for {q} classes, not {len(self.classes_)}"
        )

    def __init__(
        self,
        kernel: KernelSetting = None,
        *,
        gamma: Gamma = None,
        bandwidth: str = "auto",
        scales: ArrayLike | None = None,
        random_state: Seed = None,
        device: str = "cpu",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.bandwidth = bandwidth
        self.scales = scales
        self.random_state = random_state
        self.device = device

    classes_: Array

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Keep rows X (n, d) with labels y (n,) and weights (n,), and choose the bandwidth.

        A call that is refused leaves the model as it was.
        """
        s = SmoothingSettings.of(self)
        rows, y = self._rows_and_targets(X, y, reset=True)
        check_classification_targets(y)
        weight = self._shares_of_weight(sample_weight, rows)
        classes, at = np.unique(y, return_inverse=True)
        found = fit(s, rows, np.eye(len(classes))[at], weight)
        self.classes_, self.smoothing_ = classes, found
        return self

    def predict_proba(self, X: Any) -> Array:
        """The confidences, (n, C); they are shares of votes, not calibrated probabilities."""
        out, dtype = self._smooth(X)
        return _shares(out).astype(dtype, copy=False)

    def predict(self, X: Any) -> Array:
        """The class with the most votes, (n,)."""
        found = self._smooth(X)[0].argmax(axis=1)
        return self.classes_[found]

    @property
    def loo_confidences_(self) -> Array:
        """The confidences at every training point without it and its copies, (n, C)."""
        return _shares(self._smoothing().left_out())

    @property
    def loo_score_(self) -> float:
        """The accuracy of the leave-one-out votes."""
        found = self._smoothing().left_out().argmax(axis=1)
        return float(
            accuracy_score(
                self.smoother_.Y.argmax(axis=1), found, sample_weight=self.smoother_.weight
            )
        )


def _shares(out: Array) -> Array:
    out = np.clip(out, 0, 1)
    return np.asarray(out / out.sum(axis=1, keepdims=True))


def _told(far: Array, none: Array) -> str:
    """What became of queries that are far, in a sentence or two."""
    lines, n = [], len(far)
    if (far & ~none).any():
        lines.append(
            f"{(far & ~none).sum()} of {n} queries are so far from the training points that every kernel value underflows; "
            "they are answered by the nearest points (see far(X))."
        )
    if none.any():
        lines.append(
            f"{none.sum()} of {n} queries have only votes of zero; they are answered by all training points equally."
        )
    return " ".join(lines)
