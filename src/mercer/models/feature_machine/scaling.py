"""Inputs of feature machines: columns standardised or rank-normalised, indicators as 0 and 1, what
is missing filled and told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from mercer.inputs import Array
from mercer.invariants import Floats, Ints, Text, Truths
from mercer.ops.tiles import cuts
from mercer.store import register

BLOCK_NUMBERS = 1 << 17  # that are scaled at a time
MIN_SCALE = 1e-300
MAX_KNOTS = 1000  # values of a column between which normal scores are interpolated


@register("feature_machine.InputScaling")
@dataclass(frozen=True, eq=False)
class InputScaling:
    """Rows (n, d) as float32 inputs (n, d'): column j less its centre over its scale, or the normal
    score of its rank among the rows of fit; after them a 0/1 column for each that has missing
    values.

    >>> X = np.array([[0.0, 1.0], [10.0, 0.0], [1000.0, 1.0]])
    >>> InputScaling.of(X, "rank")(X).round(2)
    array([[-0.97,  1.  ],
           [ 0.  ,  0.  ],
           [ 0.97,  1.  ]], dtype=float32)
    """

    kind: str
    fill: Array  # (d,) for what is missing
    missing: Array  # columns that have an indicator of it
    centre: Array  # (d,)
    scale: Array
    ranked: Array  # which columns are read by their ranks
    knots: Array  # (q, d) values, not descending, and their normal scores
    scores: Array

    must = dict(
        kind=Text("standard", "rank"),
        fill=Floats("d"),
        missing=Ints("k", below="d", distinct=True),
        centre=Floats("d"),
        scale=Floats("d", low=MIN_SCALE),
        ranked=Truths("d"),
        knots=Floats("q", "d"),
        scores=Floats("q", "d"),
    )

    @classmethod
    def of(cls, X: Array, kind: str) -> InputScaling:
        """As these rows (n, d) suggest; nan is what is missing."""
        columns = [ColumnScale.of(c.astype(np.float64), kind) for c in X.T]
        knots, scores = (
            _stacked([getattr(c, side) for c in columns]) for side in ("knots", "scores")
        )
        fill, centre, scale = (
            np.array([getattr(c, name) for c in columns]) for name in ("fill", "centre", "scale")
        )
        lost, ranked = (
            np.array([getattr(c, name) for c in columns]) for name in ("lost", "ranked")
        )
        return cls(kind, fill, np.flatnonzero(lost), centre, scale, ranked, knots, scores)

    @property
    def width(self) -> int:
        """d'"""
        return len(self.fill) + len(self.missing)

    @property
    def origins(self) -> Array:
        """The column of X that each input comes from, (d',)."""
        return np.concatenate([np.arange(len(self.fill)), self.missing])

    def __call__(self, X: Array) -> Array:
        out = np.empty((len(X), self.width), np.float32)
        for rows in cuts(len(X), max(1, BLOCK_NUMBERS // max(self.width, 1))):
            out[rows] = self._scaled(X[rows].astype(np.float64))
        return out

    def _scaled(self, X: Array) -> Array:
        gaps = np.isnan(X)
        filled = np.where(gaps, self.fill, X)
        with np.errstate(over="ignore"):
            out = (filled - self.centre) / self.scale
        for j in np.flatnonzero(self.ranked):
            out[:, j] = np.interp(filled[:, j], self.knots[:, j], self.scores[:, j])
        return np.clip(np.column_stack([out, gaps[:, self.missing]]), -1e15, 1e15)

    def slopes(self, X: Array) -> Array:
        """d input / d column for the first d inputs, (n, d); between two knots that of their line,
        and 0 beyond them and where a value is missing."""
        out = np.broadcast_to(1 / self.scale, X.shape).copy()
        for j in np.flatnonzero(self.ranked):
            out[:, j] = _line_slopes(X[:, j], self.knots[:, j], self.scores[:, j])
        out[np.isnan(X)] = 0.0
        return out


@dataclass(frozen=True, eq=False)
class ColumnScale:
    """How one column is read."""

    fill: float
    lost: bool
    centre: float
    scale: float
    ranked: bool
    knots: Array
    scores: Array

    @classmethod
    def of(cls, column: Array, kind: str) -> ColumnScale:
        gaps = np.isnan(column)
        known = column[~gaps]  # of which one value fills: a mean of two would be a third
        fill = float(np.quantile(known, 0.5, method="lower")) if len(known) else 0.0
        c = np.where(gaps, fill, column)
        low, high = float(c.min()), float(c.max())
        two = bool(((c == low) | (c == high)).all())
        centre = low if two else _safe_mean(c)
        scale = high / 2 - low / 2 if two else _half_deviation(c, centre)
        usable = np.isfinite(2 * scale) and 2 * scale > MIN_SCALE
        ranked = kind == "rank" and not two
        knots, scores = _normal_scores(c) if ranked else (np.zeros(1), np.zeros(1))
        lost = bool(gaps.any())
        return cls(fill, lost, centre, 2 * scale if usable else 1.0, ranked, knots, scores)


def _safe_mean(c: Array) -> float:
    """About the first value, and in units of the largest, lest sums overflow or cancel."""
    gap = c / 2 - c[0] / 2
    size = float(np.abs(gap).max()) or 1.0
    return float(c[0] + 2 * ((gap / size).mean() * size))


def _half_deviation(c: Array, centre: float) -> float:
    """Half a standard deviation, whose square need be no number."""
    gap = c / 2 - centre / 2
    size = float(np.abs(gap).max()) or 1.0
    return float(np.sqrt(np.square(gap / size).mean()) * size)


def _normal_scores(column: Array) -> tuple[Array, Array]:
    """Distinct values, and the normal law's quantile at their mid-ranks."""
    values, counts = np.unique(column, return_counts=True)
    upto = np.cumsum(counts)
    score = ndtri((upto - counts / 2) / len(column))
    if len(values) > MAX_KNOTS:
        at = np.linspace(0, len(values) - 1, MAX_KNOTS).round().astype(int)
        return values[at], score[at]
    return values, score


def _stacked(columns: list[Array]) -> Array:
    """One column each, the shorter ones going on with their last value."""
    most = max(map(len, columns), default=1)
    return np.column_stack([np.append(c, np.full(most - len(c), c[-1])) for c in columns])


def _line_slopes(x: Array, knots: Array, scores: Array) -> Array:
    last = int(np.searchsorted(knots, knots[-1]))  # where the column's own knots end
    knots, scores = knots[: last + 1], scores[: last + 1]
    if last == 0:
        return np.zeros(len(x))
    at = np.clip(np.searchsorted(knots, x, side="right"), 1, last)
    slope: Any = (scores[at] - scores[at - 1]) / (knots[at] - knots[at - 1])
    return np.where((x < knots[0]) | (x > knots[-1]), 0.0, slope)
