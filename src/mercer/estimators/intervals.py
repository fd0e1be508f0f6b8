"""Leave-one-out in closed form, and prediction intervals that say what they guarantee."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.streams import OverMoments
from mercer.inputs import Array, Matrix
from mercer.learners import ridge
from mercer.ops.philox import Stream, permutation
from mercer.ops.tiles import cuts
from mercer.stats import Moments

CALIBRATION = 5  # a fifth of the rows calibrates a split conformal interval


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
    """The ceil((n + 1) coverage)-th smallest score (infinite where there are too few), along the first axis.

    >>> float(conformal_quantile(np.arange(1.0, 20.0), 0.9))
    18.0
    """
    rank = int(np.ceil((len(scores) + 1) * coverage - 1e-9))
    if rank > len(scores):
        return np.full(scores.shape[1:], np.inf)
    return np.asarray(np.partition(scores, rank - 1, axis=0)[rank - 1])


def jackknife_plus(without: Array, residuals: Array, coverage: float) -> tuple[Array, Array]:
    """From predictions without row i (n, m) and leave-one-out residuals (n,): lower and upper bounds (m,)."""
    size = np.abs(residuals)[:, None]
    return -conformal_quantile(-(without - size), coverage), conformal_quantile(without + size, coverage)


JACKKNIFE = (
    "at least {0:.3g} of new rows from the same source are covered (jackknife+ at nominal {1:.3g}; Barber et al., 2021), "
    "if penalty, bandwidth and landmarks were not chosen on the same rows"
)
SPLIT = (
    "at least {0:.3g} of new rows from the same source are covered (split conformal), "
    "if penalty, bandwidth and landmarks were not chosen on the same rows"
)


class LeaveOneOut(OverMoments):
    """What a ridge over features tells of the rows of its `fit`, while they are at hand."""

    alpha_: Any
    coef_: Array
    fit_intercept: bool
    intercept_: Any
    moments_: list[Moments]
    _flat: bool
    _n_outputs: int
    _rows: tuple[Matrix, Array, Array | None] | None

    @property
    def loo_predictions_(self) -> Array:
        """The prediction of each row of `fit` by the model of all others, in closed form."""
        X, Y, w = self._at_hand()
        fitted, h = self._fitted_and_leverage(X, w)
        out = Y - (Y - fitted) / (1 - h)[:, None]
        return out[:, 0] if self._flat else out

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`."""
        _, Y, w = self._at_hand()
        residual = Y - self.loo_predictions_.reshape(Y.shape)
        centred = Y - np.average(Y, axis=0, weights=w)
        return float(1 - np.average(residual**2, axis=0, weights=w).mean() / np.average(centred**2, axis=0, weights=w).mean())

    def _at_hand(self) -> tuple[Matrix, Array, Array | None]:
        check_is_fitted(self, "coef_")
        if self._rows is None or not hasattr(self, "moments_"):
            raise AttributeError("leave-one-out needs the rows of one `fit` at hand; streams, merged and loaded models have none.")
        return self._rows

    def _total(self) -> Moments:
        return sum(self.moments_[1:], self.moments_[0])

    def _leverage(self) -> ridge.Leverage:
        alpha = np.unique(self.alpha_)
        if len(alpha) > 1:
            raise ValueError("leave-one-out in closed form needs one alpha for all outputs.")
        return ridge.Leverage.of(self._total(), self.n_features_lifted_, float(alpha[0]), intercept=self.fit_intercept)

    def _fitted_and_leverage(self, X: Matrix, w: Array | None) -> tuple[Array, Array]:
        lever = self._leverage()
        fitted, h = np.empty((X.shape[0], self._n_outputs)), np.empty(X.shape[0])
        for rows, F in self._lifted(X):
            fitted[rows] = (F @ self.coef_).reshape(len(F), -1) + self.intercept_
            h[rows] = lever(F, None if w is None else w[rows])
        return fitted, np.minimum(h, 1 - 1e-9)

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "split") -> Interval:
        """(lower, upper) that cover new y; `.guarantee` says how surely.

        method="split": a fifth of the rows, chosen by a fixed shuffle, calibrates the model of the others: at least `coverage`.
        method="jackknife+": every row calibrates the model without it: at least 2 coverage - 1, about `coverage` in practice.
        """
        _, Y, _ = self._at_hand()
        if Y.shape[1] > 1:
            raise ValueError("predict_interval is for one output; fit one model an output.")
        if not 0 < coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {coverage!r}.")
        X = self._check_X(X, reset=False)
        if method == "split":
            return self._split_interval(X, coverage)
        if method == "jackknife+":
            return self._jackknife_interval(X, coverage)
        raise ValueError(f"method must be 'split' or 'jackknife+', got {method!r}.")

    def _split_interval(self, X: Matrix, coverage: float) -> Interval:
        """The model of four fifths of the rows, calibrated on the others."""
        Xt, Y, w = self._at_hand()
        held = permutation(Stream(0), len(Y)) % CALIBRATION == 0  # of row numbers: equal rows may be on both sides
        if held.all() or not held.any():
            raise ValueError(f"{len(Y)} rows are too few to split; use method='jackknife+'.")
        _warn_if_few(int(held.sum()), coverage)
        rest = self._gather(Xt[~held], self.moments_[0].shift, Y[~held], None if w is None else w[~held])
        s = ridge.solve(rest, self.n_features_lifted_, self.alpha_, intercept=self.fit_intercept)
        scores = np.abs(Y[held] - self._linear(Xt[held], s.coef, s.intercept))[:, 0]
        middle, width = self._linear(X, s.coef, s.intercept)[:, 0], conformal_quantile(scores, coverage)
        return Interval(middle - width, middle + width, SPLIT.format(coverage))

    def _jackknife_interval(self, X: Matrix, coverage: float) -> Interval:
        """mu_-i(x) = mu(x) - phi(x)'A^-1 phi_i r_i / (1 - h_i), about the mean."""
        Xt, Y, w = self._at_hand()
        _warn_if_few(len(Y), coverage)
        fitted, h = self._fitted_and_leverage(Xt, w)
        loo = ((Y - fitted) / (1 - h)[:, None])[:, 0]
        lever, scaled = self._leverage(), loo if w is None else loo * w
        bounds = [self._jackknife_rows(F, Xt, lever, scaled, loo, coverage) for F in self._pieces(X, len(Y))]
        lower, upper = (np.concatenate(b) for b in zip(*bounds, strict=True))
        return Interval(lower, upper, JACKKNIFE.format(2 * coverage - 1, coverage))

    def _pieces(self, X: Matrix, n: int) -> Iterator[Array]:
        """Few enough rows of features that an n x rows array stays small."""
        return (self._features(X[rows]) for rows in cuts(X.shape[0], max(1, (32 << 20) // (8 * n))))

    def _jackknife_rows(
        self, F: Array, Xt: Matrix, lever: ridge.Leverage, scaled: Array, loo: Array, coverage: float
    ) -> tuple[Array, Array]:
        direction = lever.directions(F)  # (D, m)
        moved = np.empty((Xt.shape[0], len(F)))
        for rows, G in self._lifted(Xt):
            moved[rows] = (lever.base + (G - lever.mean) @ direction) * scaled[rows, None]
        return jackknife_plus(F @ self.coef_ + self.intercept_ - moved, loo, coverage)


def _warn_if_few(n: int, coverage: float) -> None:
    if np.ceil((n + 1) * coverage - 1e-9) > n:
        least = int(np.ceil(coverage / (1 - coverage) - 1e-9))
        warnings.warn(
            f"the intervals are infinite: {n} rows calibrate them, and a coverage of {coverage:g} takes {least}; give more rows.",
            UserWarning, stacklevel=4,
        )  # fmt: skip
