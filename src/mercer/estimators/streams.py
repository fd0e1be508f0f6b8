"""What estimators over moments share: batches gathered apart and then added, so that a refused one changes nothing."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.base import OverFeatures, bytes_of
from mercer.inputs import Array, Matrix
from mercer.stats import Moments

HEAD = 1024  # rows whose mean is the shift
TOO_LARGE = "the features of X (or y) are too large for sums of floating-point numbers; scale the columns first."


class OverMoments(OverFeatures):
    """An estimator that its moments of [phi] or [phi, y] tell all about; what it tells is computed when asked for."""

    moments_: Any  # Moments, or a list of them, one a fold
    _found: Any = None  # what was computed from the moments

    def _too_wide(self) -> bool:
        """Whether D x D moments, a batch's and the workspace of their eigenvectors are beyond the memory limit."""
        return 24.0 * self.n_features_lifted_**2 > bytes_of(self.memory_limit)

    def _shift(self, X: Matrix) -> Array:
        """The mean of the first rows, in their own precision: what is subtracted is then exactly what is remembered."""
        F = self._features(X[:HEAD])
        return np.asarray(F.mean(0, dtype=np.float64).astype(F.dtype), np.float64)

    def _gather(self, X: Matrix, shift: Array, y: Array | None = None, weight: Array | None = None) -> Moments:
        """The moments of these rows alone."""
        return self._gather_folds(X, shift, y, weight, np.zeros(X.shape[0], np.uint8), 1)[0]

    def _gather_folds(
        self, X: Matrix, shift: Array, y: Array | None, weight: Array | None, fold: Array, k: int
    ) -> list[Moments]:
        """The moments of the rows of each fold, in one pass."""
        new = [Moments.zero(shift) for _ in range(k)]
        columns = None if y is None else y.reshape(len(y), -1)
        with np.errstate(over="ignore", invalid="ignore"):  # sums too large are refused by a sentence
            for rows, F in self._lifted(X):
                for j, m in enumerate(new):
                    here = slice(None) if k == 1 else fold[rows] == j
                    w, beside = (None if v is None else v[rows][here] for v in (weight, columns))
                    m.add(F[here], w, beside)
        if not all(np.isfinite(m.s).all() and np.isfinite(np.diag(m.S)).all() for m in new):
            raise ValueError(TOO_LARGE)
        return new

    def _product(self, X: Matrix, mean: Array, V: Array) -> Array:
        """sum_i (phi_i - mean)(phi_i - mean)' V, in one pass."""
        total = np.zeros_like(V)
        for _, F in self._lifted(X):
            G = F.astype(np.float64) - mean
            total += G.T @ (G @ V)
        return total

    def _check_same_map(self, other: Any) -> None:
        name = type(self).__name__
        if not isinstance(other, type(self)) or not hasattr(other, "lift_"):
            raise ValueError(f"merge takes another fitted {name} over features, got {type(other).__name__}.")
        if self._fingerprint() != other._fingerprint():
            raise ValueError(
                "the models have different feature maps, whose statistics do not add; "
                "fit both with the same kernel, via and random_state."
            )
        if not (hasattr(self, "moments_") and hasattr(other, "moments_")):
            raise ValueError("merge needs the statistics of both models, and one was fitted by passes; raise memory_limit.")
