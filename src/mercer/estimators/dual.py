"""What exact estimators share: a kernel seen through its operator, at the rows of `fit`, or as a Gram matrix that was given."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.base import OverFeatures
from mercer.inputs import Array, Matrix
from mercer.kernels import positioned
from mercer.kernels.defaults import resolve
from mercer.operators import KernelOperator
from mercer.operators.stored import GivenOperator

Operator = KernelOperator | GivenOperator


class OverKernel(OverFeatures):
    """An estimator that may be a sum of kernels at its rows: f(x) = sum_i dual_coef_i k(x, x_i) + intercept.

    With kernel="precomputed" X is the Gram matrix: (n, n) in `fit`, (m, n) afterwards.
    """

    X_fit_: Matrix
    kernel_: Any

    @property
    def _pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _takes_sparse(self) -> bool:
        return super()._takes_sparse() and not self._pairwise

    def _set_kernel(self, X: Matrix, weight: Array | None) -> None:
        self._check_gram(X)
        if self._pairwise:
            self.kernel_ = "precomputed"
        else:
            self.kernel_ = positioned(resolve(self.kernel, X, weight), self._named(X))

    def _check_gram(self, X: Matrix) -> None:
        if self._pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be a square Gram matrix with kernel='precomputed', got shape {X.shape}.")

    def _operator(self, X: Matrix, Z: Matrix | None = None) -> Operator:
        """k(X, Z); a given matrix is that already."""
        return GivenOperator(np.asarray(X)) if self._pairwise else KernelOperator(self.kernel_, X, Z)

    def _expansion(self, X: Matrix, dual: Array, intercept: Any) -> Array:
        """sum_i dual_i k(x, x_i) + intercept for checked rows, in their precision."""
        op = self._operator(X, None if self._pairwise else self.X_fit_)
        return np.asarray(op @ dual + intercept).astype(X.dtype)  # sums in float64: large coefficients cancel

    def _some(self, X: Matrix, rows: Array, cols: Array) -> Matrix:
        """These rows: of a Gram matrix, against the rows `cols`."""
        return X[np.ix_(rows, cols)] if self._pairwise else X[rows]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._pairwise
        return tags
