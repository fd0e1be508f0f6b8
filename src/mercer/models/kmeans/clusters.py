"""Clusters about means in the space of a kernel: the means as sums over the rows, or as points
among features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Floats, Ints, Is, Number, Whole
from mercer.kernels import Kernel
from mercer.models.base import check_finite
from mercer.models.expansion import Expansion
from mercer.models.kmeans.points import nearest
from mercer.models.maps import FittedMap
from mercer.models.settings import (
    FittedKernel,
)
from mercer.plans import Plan
from mercer.store import register

EXACT = ("auto", "exact", "iterative")
MOST_ROWS, MOST_GPU_ROWS = 20_000, 200_000  # that via="auto" compares with each other
SAME = 32  # the same of distances to means that are equal
ROUNDING = 512  # units in the last place by which means that are the same may differ
LARGE = (
    64 << 20
)  # bytes of rows that are kept as they are, not copied: leave them so while you use the model


@register("kmeans.Run")
@dataclass(frozen=True, eq=False)
class Run:
    """What the steps came to: the cluster of each row, sum_i w_i |x_i - mean|^2, the steps, and
    |mean|^2 of every cluster."""

    labels: Array
    inertia: float
    steps: int
    squares: Array

    must = dict(labels=Ints("n", below="k"), inertia=Number(), steps=Whole(), squares=Floats("k"))


@register("kmeans.KernelMeans")
@dataclass(frozen=True, eq=False)
class KernelMeans:
    """Means m_c = sum_i coef_ic phi(x_i); a linear kernel is taken about an origin, so that a large
    offset costs no digits."""

    plan: Plan
    run: Run
    over: Expansion
    coef: Array  # (n, k)
    origin: float | Array = 0.0

    must = dict(
        plan=Is("Plan"),
        run=Is("Run"),
        over=Is("Expansion"),
        coef=Floats("n", "k"),
        origin=Number() | Floats(None),
    )
    phi, centers = None, None

    def _laws(self) -> str | None:
        points, (n, k) = self.over.points, self.coef.shape
        if len(self.run.labels) != n or (points is not None and len(points) != n):
            return (
                f"has coefficients of {n} rows, labels of {len(self.run.labels)}, and other points"
            )
        return (
            None
            if len(self.run.squares) == k
            else f"has {k} means, and squares of {len(self.run.squares)}"
        )

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return len(self.coef) if self.over.points is None else self.over.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.over.kernel

    def dots(self, X: Table) -> Array:
        """<phi(x), m_c>, (n, k)."""
        points = self.over.points
        return (
            self.over.operator(
                about(X, self.origin), None if points is None else about(points, self.origin)
            )
            @ self.coef
        )

    def nearest(self, X: Table) -> Array:
        """The nearest mean of each row, of those that are the same but for rounding the first."""
        D, squares = partial(self, X), self.run.squares
        rounding = SAME * np.finfo(X.dtype).eps * (2 * np.abs(squares) + np.abs(D))
        return np.asarray((D - D.min(1, keepdims=True) <= rounding).argmax(1))

    def norms(self, X: Table) -> Array:
        """|phi(x)|^2"""
        return np.asarray(cast(Kernel, self.kernel).diag(about(X, self.origin)), np.float64)


@register("kmeans.FeatureMeans")
@dataclass(frozen=True, eq=False)
class FeatureMeans:
    """Means m_c (k, D) among features, which are taken about an origin near them."""

    plan: Plan
    run: Run
    phi: FittedMap
    centers: Array
    origin: Array

    must = dict(
        plan=Is("Plan"),
        run=Is("Run"),
        phi=Is("FittedMap"),
        centers=Floats("k", "D"),
        origin=Floats("D"),
    )
    over, coef = None, None

    def _laws(self) -> str | None:
        k, D = self.centers.shape
        fits = self.phi.width == D and len(self.run.squares) == k
        return (
            None
            if fits
            else f"has {k} means among {D} features, not {len(self.run.squares)} among {self.phi.width}"
        )

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.phi.kernel

    def dots(self, X: Table) -> Array:
        """<phi(x), m_c>, (n, k)."""
        return np.vstack([F @ (self.centers - self.origin).T for F in self._about_origin(X)])

    def nearest(self, X: Table) -> Array:
        """The nearest mean of each row, (n,)."""
        C = self.centers - self.origin
        with np.errstate(over="ignore", invalid="ignore"):
            return np.concatenate([nearest(F, C, self.origin) for _, F in self.phi.batches(X)])

    def norms(self, X: Table) -> Array:
        """|phi(x)|^2"""
        return np.concatenate([np.square(F).sum(1) for F in self._about_origin(X)])

    def _about_origin(self, X: Table) -> Iterator[Array]:
        return (F.astype(np.float64) - self.origin for _, F in self.phi.batches(X))


def partial(means: KernelMeans | FeatureMeans, X: Table) -> Array:
    """|phi(x) - m_c|^2 - |phi(x)|^2, which needs no k(x, x)."""
    with np.errstate(over="ignore", invalid="ignore"):
        dots = means.dots(X)
    check_finite(dots)
    return np.asarray(means.run.squares - 2 * dots)


def about(X: Table, origin: float | Array) -> Table:
    """Rows about an origin, where there is one."""
    if not isinstance(origin, np.ndarray):
        return X
    data = (X.data.toarray() if X.sparse else X.data) - origin.astype(X.dtype)
    return Table(data, X.columns)
