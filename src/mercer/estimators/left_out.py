"""Leave-one-out in closed form, and intervals calibrated by it, for ridge regression whose rows are at hand."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.intervals import JACKKNIFE, SPLIT, Interval, conformal_quantile, jackknife_plus
from mercer.estimators.streams import OverMoments
from mercer.inputs import Array, Matrix
from mercer.learners import dual_folds, ridge
from mercer.operators.stored import GivenOperator
from mercer.ops.philox import Stream, permutation
from mercer.ops.tiles import cuts
from mercer.stats import Moments

CALIBRATION = 5  # a fifth of the rows calibrates a split conformal interval
Rows = tuple[Matrix, Array, "Array | None"]


class LeaveOneOut(OverMoments):
    """What a ridge regression tells of the rows of its `fit`, while they are at hand.

    Over D features of more than D rows by moments; of fewer by the inverse of phi phi' + alpha / w, as the exact ways do.
    """

    alpha_: Any
    coef_: Any
    fit_intercept: bool
    intercept_: Any
    moments_: list[Moments]
    _flat: bool
    _rows: Rows | None
    _idle: tuple[Array, Matrix] | None  # which rows of `fit` have weight zero, and those rows
    _split: tuple[Any, Array | None, Array] | None  # the model of four fifths of the rows, its columns of X, the errors of the others
    _n_outputs: int

    @property
    def loo_predictions_(self) -> Array:
        """The prediction of each row of `fit` by the model of all others, in closed form; nan where that is not known."""
        _, Y, _ = self._at_hand()
        out = Y - self._left_out()
        if self._idle is not None:  # rows of weight zero never counted
            mask, X = self._idle
            out, some = np.empty((len(mask), Y.shape[1])), out
            out[~mask], out[mask] = some, self._answer_at(X).reshape(-1, Y.shape[1])
        return out[:, 0] if self._flat else out

    @property
    def loo_score_(self) -> float:
        """R^2 of `loo_predictions_`, over the rows of positive weight."""
        _, Y, w = self._at_hand()
        u = np.ones(len(Y)) if w is None else w
        error, spread = (u @ np.square(self._left_out())).mean(), ridge.spread(Y, w).mean()
        return float(1 - error / spread) if spread > 0 else float(error == 0)

    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "split") -> Interval:
        """(lower, upper) that cover new y; `.guarantee` says how surely.

        method="split": a fifth of the rows, chosen by a fixed shuffle, calibrates the model of the others: at least `coverage`.
        method="jackknife+": every row calibrates the model without it: at least 2 coverage - 1, about `coverage` in practice.

        Fewer than coverage / (1 - coverage) rows to calibrate with (9 for 0.9) can promise that by infinite intervals alone: a
        warning and the guarantee then say so. Ends are never nan, and otherwise finite.
        A saved model keeps what "split" needs; "jackknife+" needs the rows, which models over features and landmarks leave behind.
        """
        if self._split is None:
            self._at_hand()
        if self._n_outputs > 1:
            raise ValueError("predict_interval is for one output; fit one model an output.")
        if isinstance(coverage, bool) or not isinstance(coverage, int | float | np.number) or not 0 < coverage < 1:
            raise ValueError(f"coverage must be a number between 0 and 1, got {coverage!r}.")
        X = self._asked_rows(X)
        if method == "split":
            return self._split_interval(X, float(coverage))
        if method == "jackknife+":
            return self._jackknife_interval(X, float(coverage))
        raise ValueError(f"method must be 'split' or 'jackknife+', got {method!r}.")

    def _split_interval(self, X: Matrix, coverage: float) -> Interval:
        """The model of four fifths of the rows, calibrated on the others."""
        model, columns, errors = self._calibrated()
        promised = _promise(SPLIT, (coverage,), len(errors), coverage)
        middle = model._answer_at(X if columns is None else X[:, columns]).ravel()
        width = conformal_quantile(errors, coverage)
        return Interval(middle - width, middle + width, promised)

    def _calibrated(self) -> tuple[Any, Array | None, Array]:
        """The model of four fifths of the rows, and |y - f(x)| of the others; found when first asked for."""
        if self._split is None:
            X, Y, _ = self._at_hand()
            held = permutation(Stream(0), len(Y)) % CALIBRATION == 0  # of row numbers: equal rows may be on both sides
            if held.all() or not held.any():
                raise ValueError(f"{len(Y)} rows are too few to split; use method='jackknife+'.")
            model, columns = self._of_the_rest(held)
            at = np.flatnonzero(held)
            predicted = model._answer_at(X[at] if columns is None else X[np.ix_(at, columns)]).ravel()
            self._split = model, columns, np.abs(Y[held, 0] - predicted)
        return self._split

    def _jackknife_interval(self, X: Matrix, coverage: float) -> Interval:
        _, Y, _ = self._at_hand()
        if not self._by_inverse and not hasattr(self, "moments_"):
            raise ValueError("jackknife+ over features needs their D x D statistics; use method='split', or raise memory_limit.")
        promised = _promise(JACKKNIFE, (max(0.0, 2 * coverage - 1), coverage), len(Y), coverage)
        loo = self._left_out()[:, 0]
        if not np.isfinite(loo).all():
            raise ValueError("the model goes through some rows, so that nothing is known of it without them; raise alpha, or use 'split'.")
        pieces = self._inverse_pieces(X, loo) if self._by_inverse else self._moment_pieces(X, loo)
        lower, upper = (np.concatenate(b) for b in zip(*(jackknife_plus(mu, loo, coverage) for mu in pieces), strict=True))
        return Interval(lower, upper, promised)

    def _at_hand(self) -> Rows:
        if self._rows is None:
            check_is_fitted(self, "plan_")
            raise AttributeError(
                "left-out rows need the rows of one `fit` at hand; "
                "streams, merged models and loaded ones over features or landmarks have none."
            )
        return self._rows

    def _answer_at(self, X: Matrix) -> Array:
        """Predictions at checked rows."""
        return self._linear(X, self.coef_, self.intercept_)

    def _penalties(self) -> Iterator[tuple[float, Array]]:
        """Every penalty, and the outputs that have it."""
        _, Y, _ = self._at_hand()
        alphas = np.broadcast_to(self.alpha_, (Y.shape[1],))
        return ((float(a), alphas == a) for a in np.unique(alphas))

    def _left_out(self) -> Array:
        """y_i - f_-i(x_i)."""
        _, Y, _ = self._at_hand()
        out = np.empty_like(Y)
        of = self._left_by_inverse() if self._by_inverse else self._left_by_moments
        for a, at in self._penalties():
            out[:, at] = of(a, at)
        return out

    # by the inverse of a kernel matrix
    @property
    def _by_inverse(self) -> bool:
        return len(self._at_hand()[1]) <= self.n_features_lifted_

    def _gram(self, X: Matrix, Z: Matrix) -> Array:
        """phi(X) phi(Z)', in float64."""
        return self._features(X).astype(np.float64) @ self._features(Z).astype(np.float64).T

    def _inverses(self) -> dual_folds.Inverses:
        X, _, w = self._at_hand()
        return dual_folds.Inverses.of(GivenOperator(self._gram(X, X)), self._ones_or(w), intercept=self.fit_intercept)

    def _ones_or(self, w: Array | None) -> Array:
        return np.ones(len(self._at_hand()[1])) if w is None else w

    def _left_by_inverse(self) -> Any:
        _, Y, w = self._at_hand()
        inverses, centred = self._inverses(), Y - np.average(Y, axis=0, weights=w) * self.fit_intercept

        def of(alpha: float, at: Array) -> Array:
            return inverses.at(alpha, centred[:, at]).alone()

        return of

    def _inverse_pieces(self, X: Matrix, loo: Array) -> Iterator[Array]:
        """mu_-i(x) = mu(x) - (k(x, X) G_i + g_i) r_i, G and g the inverse of the equations."""
        Xt, Y, _ = self._at_hand()
        G = self._inverses().at(float(np.max(self.alpha_)), Y)
        for rows in cuts(X.shape[0], _columns(len(Y))):
            change = G.change(self._gram(X[rows], Xt))
            yield self._answer_at(X[rows]).ravel() - (change * loo).T

    # by moments
    def _total(self) -> Moments:
        if not hasattr(self, "moments_"):
            raise AttributeError("leave-one-out over features needs their D x D statistics; raise memory_limit, or use fewer features.")
        return sum(self.moments_[1:], self.moments_[0])

    def _left_by_moments(self, alpha: float, at: Array) -> Array:
        """(y_i - f(x_i)) / (1 - h_i)."""
        X, Y, w = self._at_hand()
        total, out = self._total(), np.empty((len(Y), int(at.sum())))
        lever = ridge.Leverage.of(total, self.n_features_lifted_, alpha, intercept=self.fit_intercept)
        for rows, F in self._lifted(X):
            left = ridge.known(1 - lever(F, None if w is None else w[rows]), total.eps)
            fitted = (F @ self.coef_ + self.intercept_).reshape(len(F), -1)
            out[rows] = (Y[rows] - fitted)[:, at] / left[:, None]
        return out

    def _of_the_rest(self, held: Array) -> tuple[Any, Array | None]:
        """The model of the rows not held, at this penalty; and which columns of a Gram matrix are its own."""
        Xt, Y, w = self._at_hand()
        rest = self._gather(Xt[~held], self.moments_[0].shift, Y[~held], None if w is None else w[~held])
        s = ridge.solve(rest, self.n_features_lifted_, self.alpha_, intercept=self.fit_intercept)
        return self._with_solution(s.coef, s.intercept), None

    def _with_solution(self, coef: Array, intercept: Array) -> Any:
        """The same model over the same features, with other coefficients."""
        raise NotImplementedError

    def _moment_pieces(self, X: Matrix, loo: Array) -> Iterator[Array]:
        """mu_-i(x) = mu(x) - phi(x)'A^-1 phi_i r_i, about the mean."""
        Xt, Y, w = self._at_hand()
        lever = ridge.Leverage.of(self._total(), self.n_features_lifted_, float(np.max(self.alpha_)), intercept=self.fit_intercept)
        scaled = loo if w is None else loo * w
        for rows in cuts(X.shape[0], _columns(len(Y))):
            direction = lever.directions(self._features(X[rows]))  # (D, m)
            mu = np.empty((len(Y), direction.shape[1]))
            for at, G in self._lifted(Xt):
                mu[at] = (lever.base + (G - lever.mean) @ direction) * -scaled[at, None]
            yield mu + self._answer_at(X[rows]).ravel()


def _columns(n: int) -> int:
    """So many columns of n numbers take 32 MB."""
    return max(1, (32 << 20) // (8 * n))


def _promise(text: str, values: tuple[float, ...], n: int, coverage: float) -> str:
    """What n rows that calibrate can promise; where that takes infinite intervals, a warning says so too."""
    if np.ceil((n + 1) * coverage - 1e-9) <= n:
        return text.format(*values)
    least = int(np.ceil(coverage / (1 - coverage) - 1e-9))
    few = f"the intervals are infinite: {n} rows calibrate them, and a coverage of {coverage:g} takes {least:,}"
    warnings.warn(f"{few}; give more rows.", UserWarning, stacklevel=5)
    return f"all rows are covered, as {few}"
