"""Left-out rows of a ridge regression in closed form, and prediction intervals that are calibrated
by them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Floats, Ints, Is
from mercer.models.intervals import JACKKNIFE, SPLIT, Interval, conformal_quantile, jackknife_plus
from mercer.models.maps import FittedMap
from mercer.models.ridge.cross_validation import Inverses, Leverage, known
from mercer.models.ridge.problem import TrainingRows
from mercer.operators.stored import GivenOperator
from mercer.ops.philox import Stream, permutation
from mercer.ops.tiles import cuts
from mercer.stats import Moments
from mercer.store import register

CALIBRATION = 5  # a fifth of the rows calibrates a split conformal interval
Predict = Callable[[Table], Array]


class LeftOutModel(Protocol):
    """What a model tells of the rows of its `fit`, each by the model of all others."""

    def residuals(self, alpha: float | Array, predict: Predict) -> Array:
        """y_i - f_-i(x_i), (n, q)."""

    def pieces(self, X: Table, alpha: float, predict: Predict, residuals: Array) -> Iterator[Array]:
        """f_-i(x) of one output, (n, m), for some new rows at a time."""


@dataclass(frozen=True, eq=False)
class ByInverse:
    """From the inverse of G + alpha / w, where `gram` tells G."""

    gram: Callable[[Table, Table], Array]
    rows: TrainingRows
    intercept: bool

    def inverses(self) -> Inverses:
        X = self.rows.X
        return Inverses.of(
            GivenOperator(self.gram(X, X)), self.rows.weights, intercept=self.intercept
        )

    def residuals(self, alpha: float | Array, predict: Predict) -> Array:
        Y, inverses = self.rows.Y, self.inverses()
        centred = Y - np.average(Y, axis=0, weights=self.rows.weight) * self.intercept
        return by_penalty(Y, alpha, lambda a, at: inverses.at(a, centred[:, at]).alone())

    def pieces(self, X: Table, alpha: float, predict: Predict, residuals: Array) -> Iterator[Array]:
        """mu_-i(x) = mu(x) - (k(x, X) G_i + g_i) r_i, G and g the inverse of the equations."""
        G = self.inverses().at(alpha, self.rows.Y)
        for at in cuts(len(X), _columns(len(self.rows))):
            change = G.change(self.gram(X[at], self.rows.X))
            yield predict(X[at]).ravel() - (change * residuals).T


@dataclass(frozen=True, eq=False)
class ByMoments:
    """From the moments of all rows, and their features again."""

    phi: FittedMap
    total: Moments
    rows: TrainingRows
    intercept: bool
    weights: tuple[Array, float | Array]  # coefficients and intercept of the model of all rows

    def _leverage(self, alpha: float) -> Leverage:
        return Leverage.of(self.total, self.phi.width, alpha, intercept=self.intercept)

    def residuals(self, alpha: float | Array, predict: Predict) -> Array:
        return by_penalty(self.rows.Y, alpha, self._residuals)

    def _residuals(self, alpha: float, outputs: Array) -> Array:
        """(y_i - f(x_i)) / (1 - h_i)."""
        Y, w, (coef, intercept) = self.rows.Y, self.rows.weight, self.weights
        lever, out = self._leverage(alpha), np.empty((len(Y), int(outputs.sum())))
        for at, F in self.phi.batches(self.rows.X):
            left = known(1 - lever(F, None if w is None else w[at]), self.total.eps)
            fitted = (F @ coef + intercept).reshape(len(F), -1)
            out[at] = (Y[at] - fitted)[:, outputs] / left[:, None]
        return out

    def pieces(self, X: Table, alpha: float, predict: Predict, residuals: Array) -> Iterator[Array]:
        """mu_-i(x) = mu(x) - phi(x)'A^-1 phi_i r_i, about the mean."""
        lever, w = self._leverage(alpha), self.rows.weight
        scaled = residuals if w is None else residuals * w
        for part in cuts(len(X), _columns(len(self.rows))):
            direction = lever.directions(self.phi.features(X[part]))  # (D, m)
            mu = np.empty((len(self.rows), direction.shape[1]))
            for at, G in self.phi.batches(self.rows.X):
                mu[at] = (lever.base + (G - lever.mean) @ direction) * -scaled[at, None]
            yield mu + predict(X[part]).ravel()


def by_penalty(Y: Array, alpha: float | Array, of: Callable[[float, Array], Array]) -> Array:
    """Outputs of the same penalty together."""
    out, alphas = np.empty_like(Y), np.broadcast_to(alpha, (Y.shape[1],))
    for a in np.unique(alphas):
        out[:, alphas == a] = of(float(a), alphas == a)
    return out


def with_idle(rows: TrainingRows, left_out: Array, predict: Predict) -> Array:
    """Predictions of left-out rows, and plain ones of rows of weight zero, which never counted:
    those of all rows, (n, q)."""
    if rows.idle is None:
        return left_out
    mask, X = rows.idle
    out = np.empty((len(mask), left_out.shape[1]))
    out[~mask], out[mask] = left_out, predict(X).reshape(-1, out.shape[1])
    return out


# intervals
@register("ridge.Calibration")
@dataclass(frozen=True, eq=False)
class Calibration:
    """The model of four fifths of the rows, |y - f(x)| of the others, and which columns of a kernel
    matrix are those of its rows."""

    model: Any
    errors: Array
    columns: Array | None = None

    must = dict(
        model=Is("DualRidge", "FeatureRidge"),
        errors=Floats(None, low=0),
        columns=Ints(None, below=1 << 62, distinct=True) | None,
    )

    def _laws(self) -> str | None:
        if self.model.weights.outputs != 1 or not len(self.errors):
            return "has no errors, or a model of several outputs"
        if self.columns is not None and len(self.columns) != self.model.weights.size:
            return f"has {self.model.weights.size} coefficients for {len(self.columns)} columns"
        return None

    def misfit(self, reads: int | None) -> str | None:
        """What is wrong where rows have so many columns."""
        if self.columns is None:
            return (
                None
                if self.model.reads == reads
                else f"is calibrated by a model of {self.model.reads} columns, not of {reads}"
            )
        return (
            None
            if reads is not None and self.columns.max() < reads
            else f"is calibrated on columns beyond {reads}"
        )

    def interval(self, X: Table, coverage: float) -> Interval:
        """Split conformal: as wide as the errors say."""
        promised = _promise(SPLIT, (coverage,), len(self.errors), coverage)
        middle = self.model.predict(
            X if self.columns is None else Table(X.data[:, self.columns])
        ).ravel()
        width = conformal_quantile(self.errors, coverage)
        return Interval(middle - width, middle + width, promised)


def calibrated(rows: TrainingRows, without: Callable[[Array], Any]) -> Calibration:
    """On a fifth of the rows, by the model `without(held)` them."""
    held = (
        permutation(Stream(0), len(rows)) % CALIBRATION == 0
    )  # of row numbers: equal rows may be on both sides
    if held.all() or not held.any():
        raise ValueError(
            f"{_rows(len(rows), 'is', 'are')} too few to split; use method='jackknife+'."
        )
    model, at, rest = without(held), np.flatnonzero(held), np.flatnonzero(~held)
    predicted = model.predict(rows.between(at, rest)).ravel()
    return Calibration(model, np.abs(rows.Y[held, 0] - predicted), rest if rows.gram else None)


def jackknife_interval(
    left: LeftOutModel, n: int, alpha: float | Array, predict: Predict, X: Table, coverage: float
) -> Interval:
    """Every row calibrates the model without it."""
    promised = _promise(JACKKNIFE, (max(0.0, 2 * coverage - 1), coverage), n, coverage)
    r = left.residuals(alpha, predict)[:, 0]
    if not np.isfinite(r).all():
        raise ValueError(
            "the model goes through some rows, so that nothing is known of it without them; raise alpha, or use 'split'."
        )
    pieces = left.pieces(X, float(np.max(alpha)), predict, r)
    lower, upper = (
        np.concatenate(b)
        for b in zip(*(jackknife_plus(mu, r, coverage) for mu in pieces), strict=True)
    )
    return Interval(lower, upper, promised)


def _columns(n: int) -> int:
    """So many columns of n numbers take 32 MB."""
    return max(1, (32 << 20) // (8 * n))


def _rows(n: int, one: str, more: str) -> str:
    return f"{n:,} row {one}" if n == 1 else f"{n:,} rows {more}"


def _promise(text: str, values: tuple[float, ...], n: int, coverage: float) -> str:
    """What n rows that calibrate can promise; where that takes infinite intervals, a warning says
    so too."""
    if np.ceil((n + 1) * coverage - 1e-9) <= n:
        return text.format(*values)
    least = int(np.ceil(coverage / (1 - coverage) - 1e-9))
    few = f"the intervals are infinite: {_rows(n, 'calibrates', 'calibrate')} them, and a coverage of {coverage:g} takes {least:,}"
    warnings.warn(f"{few}; give more rows.", UserWarning, stacklevel=5)
    return f"all rows are covered, as {few}"
