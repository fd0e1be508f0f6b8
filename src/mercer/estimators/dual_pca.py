"""The dual side of KernelPCA: when the kernel matrix serves, its components, and the way back to rows."""
from __future__ import annotations

from typing import Any, Self

import numpy as np

from mercer.estimators.base import default_features
from mercer.estimators.dual import OverKernel
from mercer.inputs import Array, Matrix
from mercer.learners import dual_pca
from mercer.learners.decompose import MORE
from mercer.learners.preimages import Regression, preimages
from mercer.lifts.base import seed_of
from mercer.lifts.duality import width
from mercer.plan import Plan

DUAL = ("exact", "iterative")
MOST_ROWS = 5000  # that via="auto" takes the kernel matrix of


class DualPCA(OverKernel):
    """Components of the kernel matrix of the rows of `fit`."""

    n_components: Any
    _dual: dual_pca.DualComponents | None = None
    _regression: Regression | None = None

    def _dual_way(self, X: Matrix) -> str | None:
        """How to decompose the kernel matrix; None where features serve."""
        if self.lift is not None or not isinstance(self.via, str) or self.via in ("features", "landmarks"):
            if self._pairwise:
                raise ValueError("kernel='precomputed' has no features; give via='exact', 'iterative' or 'auto'.")
            return None
        if self.via in DUAL:
            return self.via
        self._method()  # a name that is not known is refused here
        if self._pairwise:
            return "auto"
        self._set_kernel(X, None)
        few = width(self.kernel_, self._named(X[:1]))
        return "auto" if X.shape[0] <= MOST_ROWS and (few is None or few > default_features(X.shape[0])) else None

    def _fit_dual(self, X: Matrix, way: str) -> Self:
        self._set_kernel(X, None)
        n = X.shape[0]
        with np.errstate(over="ignore", invalid="ignore"):
            self._dual = dual_pca.components(self._operator(X), self.n_components, way, seed_of(self.random_state))
        if not np.isfinite(self._dual.values).all() or not np.isfinite(self._dual.total):
            raise ValueError("kernel values of X are too large for sums of floating-point numbers; scale the columns first.")
        self.X_fit_ = None if self._pairwise else X.copy()
        products = self._dual.products
        why = f"{n:,} rows: " + ("their kernel matrix is decomposed" if products == 1 else "their kernel matrix is known by products")
        settings = {"rows": n, "n_components": len(self._dual.values), "residual": self._dual.residual}
        size = 8.0 * n * n if products == 1 else 16.0 * n * dual_pca.DEPTH * (self.n_components + MORE)
        self.plan_ = Plan("exact" if products == 1 else "iterative", why, settings, bytes=size, passes=products)
        return self

    def _preimages(self, Z: Array) -> Array:
        assert self._dual is not None
        rows = self._named(self.X_fit_)
        if self._regression is None:
            data = self.X_fit_.toarray() if rows.sparse else self.X_fit_
            self._regression = Regression.of(self._dual.training_scores(), data)
        start = self._regression(Z.astype(np.float64))
        return preimages(self.kernel_, rows, self._dual.expansion(Z.astype(np.float64)), start).astype(Z.dtype, copy=False)

    @property
    def dual_coef_(self) -> Array:
        """(n, k); AttributeError over features."""
        if self._dual is None:
            raise AttributeError("dual_coef_ is there for components of the kernel matrix (via='exact' or 'iterative').")
        return self._dual.dual
