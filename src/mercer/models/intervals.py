"""Prediction intervals that say what they guarantee."""
from __future__ import annotations

import numpy as np

from mercer.inputs import Array


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
    rank = max(int(np.ceil((len(scores) + 1) * coverage - 1e-9)), 1)
    if rank > len(scores):
        return np.full(scores.shape[1:], np.inf)
    return np.asarray(np.partition(scores, rank - 1, axis=0)[rank - 1])


def jackknife_plus(without: Array, residuals: Array, coverage: float) -> tuple[Array, Array]:
    """From predictions without row i (n, m) and leave-one-out residuals (n,): lower and upper bounds (m,).

    At a coverage below 1/2 the bounds may cross, and the interval is empty; it is then the one between them, which covers no less.
    """
    size = np.abs(residuals)[:, None]
    low, high = -conformal_quantile(-(without - size), coverage), conformal_quantile(without + size, coverage)
    return np.minimum(low, high), np.maximum(low, high)


JACKKNIFE = (
    "at least {0:.3g} of new rows from the same source are covered (jackknife+ at nominal {1:.3g}; Barber et al., 2021), "
    "if penalty, bandwidth and landmarks were not chosen on the same rows"
)
SPLIT = (
    "at least {0:.3g} of new rows from the same source are covered (split conformal), "
    "if penalty, bandwidth and landmarks were not chosen on the same rows"
)
