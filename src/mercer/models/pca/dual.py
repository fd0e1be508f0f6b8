"""Kernel PCA of the kernel matrix of the rows: z(x) = dual'k(X, x) - offset, and the way back to
rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Is
from mercer.kernels import Kernel
from mercer.lifts.base import seed_of
from mercer.linalg.decompose import OVERSAMPLING, Components
from mercer.models.base import check_finite, fields_alone
from mercer.models.expansion import Expansion, kernel_at
from mercer.models.pca import eigenvectors
from mercer.models.pca.eigenvectors import DualComponents
from mercer.models.pca.preimages import PreImages
from mercer.models.pca.problem import PCASettings
from mercer.models.settings import FittedKernel
from mercer.operators import Operator
from mercer.plans import Plan
from mercer.store import register

INDEFINITE = {
    np.dtype(np.float64): 1e-10,
    np.dtype(np.float32): 1e-6,
}  # times n: eigenvalues nearer to zero may be rounding
ROUNDING = {
    np.dtype(np.float64): 1e-6,
    np.dtype(np.float32): 1e-3,
}  # of a Gram matrix, as a share of its largest value


@register("pca.DualProjection")
@dataclass(frozen=True, eq=False)
class DualProjection:
    """Components as sums over the rows of `fit`."""

    plan: Plan
    over: Expansion
    found: DualComponents

    must = dict(plan=Is("Plan"), over=Is("Expansion"), found=Is("DualComponents"))
    moments, phi, loss = None, None, 0.0
    __getstate__ = fields_alone

    def _laws(self) -> str | None:
        n, points = len(self.found.dual), self.over.points
        return (
            None
            if points is None or len(points) == n
            else f"has {len(points)} rows and coefficients of {n}"
        )

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return len(self.found.dual) if self.over.points is None else self.over.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.over.kernel

    @property
    def size(self) -> int:
        """k"""
        return len(self.found.values)

    @property
    def dual(self) -> Array:
        """(n, k)"""
        return self.found.dual

    @property
    def eigenvalues(self) -> Array:
        return self.found.values

    @property
    def variance(self) -> Array:
        return self.found.values / max(len(self.found.vectors) - 1, 1)

    @property
    def ratio(self) -> Array:
        return self.found.values / (self.found.total or 1.0)

    @property
    def components(self) -> Components:
        raise AttributeError(
            "components in the space of features exist only where there are features; give via='features'."
        )

    def transform(self, X: Table) -> Array:
        return self.over.combined(X, self.found.dual, -self.found.offset)

    # pre-images
    @property
    def inverts(self) -> bool:
        """Whether there are rows of numbers to go back to."""
        return self.over.reads is not None

    @cached_property
    def _back(self) -> PreImages:
        return PreImages.of(cast(Kernel, self.kernel), self.points, self.found)

    @property
    def points(self) -> Table:
        assert self.over.points is not None
        return self.over.points

    def inverse(self, Z: Array) -> Array:
        return self._back(
            cast(Kernel, self.kernel), self.points, self.found, Z.astype(np.float64)
        ).astype(Z.dtype, copy=False)


def fit(s: PCASettings, X: Table, way: str) -> DualProjection:
    """The matrix decomposed, or known by products."""
    over = (
        Expansion("precomputed", None)
        if s.precomputed
        else Expansion(kernel_at(s.kernel, X), _copied(X))
    )
    n, op, seed = len(X), over.operator(X), seed_of(s.random_state)
    if s.precomputed and (off := eigenvectors.asymmetry(X.data)) > ROUNDING[X.dtype]:
        raise ValueError(
            f"X must be a symmetric Gram matrix, but X - X.T is {off:.1e} of its largest value; give (X + X.T) / 2."
        )
    found = eigenvectors.components(op, s.n_components, way, seed)
    check_finite(np.append(found.values, found.total))
    if s.precomputed:
        _warn_if_indefinite(op, float(found.values[0]), seed)
    whole = found.products == 1
    why = f"{n:,} rows: " + (
        "their kernel matrix is decomposed" if whole else "their kernel matrix is known by products"
    )
    settings = {"rows": n, "n_components": len(found.values), "residual": found.residual}
    held = 8.0 * n * n if whole else 16.0 * n * eigenvectors.DEPTH * (s.n_components + OVERSAMPLING)
    plan = Plan("exact" if whole else "iterative", why, settings, bytes=held, passes=found.products)
    return DualProjection(plan, over, found)


def _copied(X: Table) -> Table:
    return Table(X.data.copy(), X.columns)


def _warn_if_indefinite(op: Operator, top: float, seed: int) -> None:
    size = max(top, float(np.abs(op.diag()).max()))
    low = eigenvectors.lowest(op, top, min(INDEFINITE[op.dtype] * op.shape[0], 1e-3) * size, seed)
    if low < 0:
        warnings.warn(
            f"the centred Gram matrix has eigenvalues down to {low:.3g} (the largest is {top:.3g}), and so is of no kernel: "
            "components of eigenvalues < 0 are left out.",
            stacklevel=6,
        )
