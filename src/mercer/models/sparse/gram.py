"""Squared loss over the Gram matrix of all features: the penalties of a path, one after the other, to
rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.models.sparse.losses import weighted_mean
from mercer.models.sparse.stored import StoredDictionary
from mercer.ops.lasso import independent, lasso_path


@dataclass(frozen=True, eq=False)
class Quadratic:
    """b'Gb/2 - c'b + yy/2 of centred features `ids` and a centred target of mean `mean`."""

    ids: Array
    G: Array
    c: Array
    yy: float
    mean: float

    @classmethod
    def of(cls, X: StoredDictionary, y: Array) -> Quadratic:
        """sum_i w_i (y_i - x_i'b)^2 / 2 over the features that vary, copies aside."""
        mean = weighted_mean(X.w, y)
        r = X.w * (y - mean)
        ids, s = X.kept, X.divisors[X.kept]
        G = X.products if len(ids) == X.p else X.products[np.ix_(ids, ids)]
        G = G / s / s[:, None] if X.unit else G
        c = (X._products(r) / X.divisors)[ids]
        return cls(ids, np.ascontiguousarray(G), c, float(r @ (y - mean)), mean)

    @property
    def largest(self) -> float:
        """The least l1 at which no feature enters."""
        return float(np.abs(self.c).max(initial=0.0))

    def path(self, alphas: Array, l1_ratio: float) -> tuple[Array, Array, Array]:
        """b (m, k) of each penalty, in descending order; the gaps and the rounds (m,)."""
        if not len(self.ids):
            m = len(alphas)
            return np.zeros((m, 0)), np.zeros(m), np.zeros(m, np.int64)
        return lasso_path(self.G, self.c, self.yy, alphas, l1_ratio)

    def dependent(self) -> Array:
        """Features that those before them make up."""
        return self.ids[~independent(self.G)]
