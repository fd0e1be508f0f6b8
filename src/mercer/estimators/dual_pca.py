"""The dual side of KernelPCA: when the kernel matrix serves, its components, and the way back to rows."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mercer import methods
from mercer.estimators.base import bytes_of, default_features
from mercer.estimators.dual import OverKernel
from mercer.inputs import Array, Items, Matrix
from mercer.invariants import Is, Samples
from mercer.learners import dual_pca
from mercer.learners.preimages import PreImages
from mercer.lifts.base import seed_of
from mercer.lifts.duality import width
from mercer.linalg.decompose import MORE
from mercer.models.settings import whole
from mercer.plan import Plan

DUAL = ("exact", "iterative")
VIAS = ("auto", *DUAL, "features", "landmarks")
MOST_ROWS = 5000  # that via="auto" takes the kernel matrix of
INDEFINITE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}  # times n: eigenvalues nearer to zero may be rounding
ROUNDING = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}  # of a Gram matrix, as a share of its largest value


def check_via(via: Any, lift: Any) -> None:
    """Refuse a way that is not known, or that a given map leaves no choice of."""
    if not isinstance(via, methods.Method) and not (isinstance(via, str) and via in VIAS):
        raise ValueError(f"via must be one of {', '.join(VIAS)}, or a value of mercer.methods, got {via!r}.")
    if lift is not None and via not in ("auto", "features"):
        raise ValueError(f"a lift is the feature map itself, so via must be 'auto' or 'features' beside it, got {via!r}.")


def check_finite(values: Any, what: str = "kernel values") -> None:
    """Refuse sums that overflowed."""
    if not np.isfinite(values).all():
        raise ValueError(f"{what} of X are too large for sums of floating-point numbers; scale the columns first.")


class DualPCA(OverKernel):
    """Components of the kernel matrix of the rows of `fit`."""

    n_components: Any
    _dual: dual_pca.DualComponents | None = None
    _back: PreImages | None = None

    must = dict(X_fit_=Samples(None, "n_features_in_") | None, _dual=Is("DualComponents") | None, _back=Is("PreImages") | None)

    def _check_settings(self) -> None:
        """All that can be refused before any row is seen."""
        whole(self.n_components, "n_components")
        bytes_of(self.memory_limit)
        check_via(self.via, self.lift)

    def _dual_way(self, X: Matrix) -> str | None:
        """How to decompose the kernel matrix; None where features serve."""
        if self.lift is not None or not isinstance(self.via, str) or self.via in ("features", "landmarks"):
            if self._pairwise:
                raise ValueError("kernel='precomputed' has no features; give via='exact', 'iterative' or 'auto'.")
            return None
        if self.via in DUAL:
            return self.via
        if self._pairwise:
            return "auto"
        self._set_kernel(X, None)
        if isinstance(X, Items):
            return "auto"
        few = width(self.kernel_, self._named(X[:1]))
        return "auto" if X.shape[0] <= MOST_ROWS and (few is None or few > default_features(X.shape[0])) else None

    def _fit_dual(self, X: Matrix, way: str) -> None:
        self._set_kernel(X, None)
        n, op, seed = X.shape[0], self._operator(X), seed_of(self.random_state)
        if self._pairwise and (off := dual_pca.asymmetry(X)) > ROUNDING[X.dtype]:
            raise ValueError(f"X must be a symmetric Gram matrix, but X - X.T is {off:.1e} of its largest value; give (X + X.T) / 2.")
        self._dual = dual_pca.components(op, self.n_components, way, seed)
        check_finite(np.append(self._dual.values, self._dual.total))
        if self._pairwise:
            _warn_if_indefinite(op, float(self._dual.values[0]), seed)
        self.X_fit_ = None if self._pairwise else X.copy()
        products = self._dual.products
        why = f"{n:,} rows: " + ("their kernel matrix is decomposed" if products == 1 else "their kernel matrix is known by products")
        settings = {"rows": n, "n_components": len(self._dual.values), "residual": self._dual.residual}
        size = 8.0 * n * n if products == 1 else 16.0 * n * dual_pca.DEPTH * (self.n_components + MORE)
        self.plan_ = Plan("exact" if products == 1 else "iterative", why, settings, bytes=size, passes=products)

    def _preimages(self, Z: Array) -> Array:
        assert self._dual is not None
        rows = self._named(self.X_fit_)
        if self._back is None:
            self._back = PreImages.of(self.kernel_, rows, self._dual)
        return self._back(self.kernel_, rows, self._dual, Z.astype(np.float64)).astype(Z.dtype, copy=False)

    @property
    def dual_coef_(self) -> Array:
        """(n, k); AttributeError over features."""
        if self._dual is None:
            raise AttributeError("dual_coef_ is there for components of the kernel matrix (via='exact' or 'iterative').")
        return self._dual.dual


def _warn_if_indefinite(op: Any, top: float, seed: int) -> None:
    size = max(top, float(np.abs(op.diag()).max()))
    low = dual_pca.lowest(op, top, min(INDEFINITE[op.dtype] * op.shape[0], 1e-3) * size, seed)
    if low < 0:
        warnings.warn(
            f"the centred Gram matrix has eigenvalues down to {low:.3g} (the largest is {top:.3g}), and so is of no kernel: "
            "components of eigenvalues < 0 are left out.", stacklevel=6,
        )  # fmt: skip
