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
    """What a ridge regression tells of the rows of its `fit`, while they are at hand; here by moments of features."""

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
        _, Y, _ = self._at_hand()
        out = Y - self._left_out()
        return out[:, 0] if self._flat else out

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`."""
        _, Y, w = self._at_hand()
        centred = Y - np.average(Y, axis=0, weights=w)
        error, spread = (np.average(np.square(v), axis=0, weights=w).mean() for v in (self._left_out(), centred))
        return float(1 - error / spread)

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
            _warn_if_few(len(Y), coverage)
            return Interval(*self._jackknife(X, coverage), JACKKNIFE.format(2 * coverage - 1, coverage))
        raise ValueError(f"method must be 'split' or 'jackknife+', got {method!r}.")

    def _split_interval(self, X: Matrix, coverage: float) -> Interval:
        """The model of four fifths of the rows, calibrated on the others."""
        _, Y, _ = self._at_hand()
        held = permutation(Stream(0), len(Y)) % CALIBRATION == 0  # of row numbers: equal rows may be on both sides
        if held.all() or not held.any():
            raise ValueError(f"{len(Y)} rows are too few to split; use method='jackknife+'.")
        _warn_if_few(int(held.sum()), coverage)
        predicted, middle = self._of_the_rest(held, X)
        width = conformal_quantile(np.abs(Y[held, 0] - predicted), coverage)
        return Interval(middle - width, middle + width, SPLIT.format(coverage))

    def _at_hand(self) -> tuple[Matrix, Array, Array | None]:
        if self._rows is None:
            check_is_fitted(self, "intercept_")
            raise AttributeError("leave-one-out needs the rows of one `fit` at hand; streams, merged and loaded models have none.")
        return self._rows

    # by moments
    def _total(self) -> Moments:
        if not hasattr(self, "moments_"):
            raise AttributeError("leave-one-out needs the rows of one `fit` at hand and D x D statistics; raise memory_limit.")
        return sum(self.moments_[1:], self.moments_[0])

    def _leverage(self) -> ridge.Leverage:
        alpha = np.unique(self.alpha_)
        if len(alpha) > 1:
            raise ValueError("leave-one-out in closed form needs one alpha for all outputs.")
        return ridge.Leverage.of(self._total(), self.n_features_lifted_, float(alpha[0]), intercept=self.fit_intercept)

    def _left_out(self) -> Array:
        """y_i - f_-i(x_i) = (y_i - f(x_i)) / (1 - h_i)."""
        (X, Y, w), lever = self._at_hand(), self._leverage()
        out = np.empty_like(Y)
        for rows, F in self._lifted(X):
            h = lever(F, None if w is None else w[rows])
            fitted = (F @ self.coef_).reshape(len(F), -1) + self.intercept_
            out[rows] = (Y[rows] - fitted) / np.maximum(1 - h, 1e-9)[:, None]
        return out

    def _of_the_rest(self, held: Array, X: Matrix) -> tuple[Array, Array]:
        """Predictions at the rows held out, and at X, by the model of the other rows."""
        Xt, Y, w = self._at_hand()
        rest = self._gather(Xt[~held], self.moments_[0].shift, Y[~held], None if w is None else w[~held])
        s = ridge.solve(rest, self.n_features_lifted_, self.alpha_, intercept=self.fit_intercept)
        return self._linear(Xt[held], s.coef, s.intercept)[:, 0], self._linear(X, s.coef, s.intercept)[:, 0]

    def _jackknife(self, X: Matrix, coverage: float) -> tuple[Array, Array]:
        """mu_-i(x) = mu(x) - phi(x)'A^-1 phi_i r_i / (1 - h_i), about the mean."""
        Xt, Y, w = self._at_hand()
        loo, lever = self._left_out()[:, 0], self._leverage()
        scaled = loo if w is None else loo * w
        bounds = [self._jackknife_rows(F, Xt, lever, scaled, loo, coverage) for F in self._pieces(X, len(Y))]
        lower, upper = (np.concatenate(b) for b in zip(*bounds, strict=True))
        return lower, upper

    def _pieces(self, X: Matrix, n: int) -> Iterator[Array]:
        """Few enough rows of features that an n x rows array stays small."""
        return (self._features(X[rows]) for rows in cuts(X.shape[0], pieces(n)))

    def _jackknife_rows(
        self, F: Array, Xt: Matrix, lever: ridge.Leverage, scaled: Array, loo: Array, coverage: float
    ) -> tuple[Array, Array]:
        direction = lever.directions(F)  # (D, m)
        moved = np.empty((Xt.shape[0], len(F)))
        for rows, G in self._lifted(Xt):
            moved[rows] = (lever.base + (G - lever.mean) @ direction) * scaled[rows, None]
        return jackknife_plus(F @ self.coef_ + self.intercept_ - moved, loo, coverage)


def pieces(n: int) -> int:
    """So many columns of n numbers take 32 MB."""
    return max(1, (32 << 20) // (8 * n))


def _warn_if_few(n: int, coverage: float) -> None:
    if np.ceil((n + 1) * coverage - 1e-9) > n:
        least = int(np.ceil(coverage / (1 - coverage) - 1e-9))
        warnings.warn(
            f"the intervals are infinite: {n} rows calibrate them, and a coverage of {coverage:g} takes {least}; give more rows.",
            UserWarning, stacklevel=4,
        )  # fmt: skip
