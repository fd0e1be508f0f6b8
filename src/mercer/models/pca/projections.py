"""Kernel PCA's two ways to project: over the kernel matrix of the rows, z(x) = dual'k(X, x) - offset,
and over features, z = V'(phi(x) - mean), from moments that stream and merge, a sketch of them, or
passes over the rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from mercer.inputs import Array, Table
from mercer.invariants import Is, Whole
from mercer.kernels import Kernel
from mercer.lifts import Identity
from mercer.lifts.base import seed_of
from mercer.linalg.decompose import (
    OVERSAMPLING,
    POWER_ROUNDS,
    Components,
    SketchedMoments,
    eigen,
    ritz,
)
from mercer.models.base import check_finite, fields_alone
from mercer.models.expansion import Expansion, kernel_at
from mercer.models.maps import FittedMap
from mercer.models.pca import eigenvectors
from mercer.models.pca.eigenvectors import FLOOR, DualComponents
from mercer.models.pca.preimages import PreImages
from mercer.models.pca.problem import DUAL, PCASettings
from mercer.models.settings import FittedKernel, FittedLift
from mercer.operators import Operator
from mercer.plans import Plan
from mercer.stats import Moments
from mercer.store import register

Statistics = Moments | SketchedMoments
# Times n: eigenvalues nearer to zero may be rounding; and of a Gram matrix, as a share of its largest value.
INDEFINITE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
ROUNDING = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}


# over the kernel matrix
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
    def count(self) -> int:
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
        return self.over.combined(X, self.found.dual, -self.found.offset, wide=self._cancels)

    @cached_property
    def _cancels(self) -> bool:
        return self.over.cancels(self.found.dual)

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


def fit_dual(s: PCASettings, X: Table, way: str) -> DualProjection:
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
    way = way if s.way in DUAL else "auto"  # which may turn to the whole after some products
    found = eigenvectors.components(op, s.most(n), way, seed, s.memory)
    check_finite(np.append(found.values, found.total))
    if s.precomputed:
        _warn_if_indefinite(op, float(found.values[0]), seed)
    found = found.trimmed() if s.trims else found
    kept = not (whole := found.products == 1) and eigenvectors.kept(n, s.memory)
    way_to = f"known by products{', and kept for them' if kept else ''}"
    why = f"{n:,} rows: their kernel matrix is {'decomposed' if whole else way_to}"
    settings = {"rows": n, "n_components": len(found.values), "residual": found.residual}
    held = 8.0 * n * n if whole or kept else 0.0
    held += 0.0 if whole else 16.0 * n * eigenvectors.basis_of(s.most(n))
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


# over features
@register("pca.FeatureProjection")
@dataclass(frozen=True, eq=False)
class FeatureProjection:
    """Components in the space of features, computed when first asked for.

    `source` is where they come from: moments, or a sketch where D x D numbers are too many, which
    batches add to; or the components themselves, as passes over n rows found them. `taking` adds a
    batch that was gathered whole, in the arrays of the batch: the value before stays what it was.
    """

    phi: FittedMap
    size: int  # k, at most
    source: Moments | SketchedMoments | Components
    rows: int | None = None  # of a fit by passes
    trims: bool = False  # whether components of no variance are left out

    must = dict(
        phi=Is("FittedMap"),
        size=Whole(1),
        source=Is("Moments", "SketchedMoments", "Components"),
        rows=Whole(1) | None,
    )
    over, dual = None, None
    __getstate__ = fields_alone

    def _laws(self) -> str | None:
        p = len(self.source.mean)
        return (
            None
            if p == self.phi.width
            else f"has statistics of {p} features, not of {self.phi.width}"
        )

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return self.phi.reads

    @property
    def kernel(self) -> FittedKernel:
        return self.phi.kernel

    @property
    def moments(self) -> Statistics | None:
        """What batches add to; None after passes."""
        return None if isinstance(self.source, Components) else self.source

    @property
    def loss(self) -> float:
        """How far an eigenvalue of sketched moments may be off."""
        return self.source.rows.loss if isinstance(self.source, SketchedMoments) else 0.0

    @cached_property
    def plan(self) -> Plan:
        D, m = self.phi.width, self.source
        if isinstance(m, Components):
            why = f"{D:,} features: D x D moments exceed the memory limit, so a random range finder passes over the rows"
            return self.phi.plan(self.rows or 0, "range finder", why, POWER_ROUNDS + 3)
        if isinstance(m, SketchedMoments):
            why = f"{D:,} features: D x D moments exceed the memory limit, so {m.rows.size} directions follow the stream"
            return self.phi.plan(m.n, "features: frequent directions", why, 1)
        return self.phi.plan(
            m.count,
            "features",
            f"{D:,} features: their D x D moments fit, and one pass is enough",
            1,
        )

    # what is known
    @property
    def count(self) -> int:
        """k"""
        return len(self.variance) if self.trims else self.size

    @cached_property
    def components(self) -> Components:
        return self._leading.trimmed(FLOOR) if self.trims else self._leading

    @property
    def _leading(self) -> Components:
        m = self.source
        if isinstance(m, Components):
            return m
        if isinstance(m, SketchedMoments):
            return Components.of(m.spectrum().top(self.size), m.total, m.n, m.mean)
        C = m.centred()
        return Components.of(
            eigen(C, m.count, self.size).top(self.size), float(np.trace(C)), m.n, m.mean
        )

    @property
    def variance(self) -> Array:
        return self.components.variance

    @property
    def ratio(self) -> Array:
        return self.components.ratio

    @property
    def eigenvalues(self) -> Array:
        n = self.rows if isinstance(self.source, Components) else self.source.n
        return self.variance * max((n or 0) - 1, 1)

    def transform(self, X: Table) -> Array:
        """V'(phi(x) - mean), in the precision of the rows."""
        found = self.components
        out = np.empty((len(X), len(found.components)), X.dtype)
        for at, F in self.phi.batches(X):
            out[at] = (F - found.mean.astype(F.dtype)) @ found.components.T.astype(F.dtype)
        return out

    @property
    def inverts(self) -> bool:
        """Whether the map has a way back."""
        return way_back(self.phi.lift) is not None

    def inverse(self, Z: Array) -> Array:
        back, found = way_back(self.phi.lift), self.components
        assert back is not None
        return back(np.asarray(Z @ found.components.astype(Z.dtype) + found.mean.astype(Z.dtype)))

    # changes
    def gathered(self, X: Table) -> Statistics:
        """The statistics of a batch, of the kind that there are already."""
        if isinstance(self.source, SketchedMoments):
            return sketch(self.phi, X, self.source.rows.size)
        assert isinstance(self.source, Moments)
        return self.phi.moments(X, self.source.shift)

    def taking(self, batch: Statistics, s: PCASettings) -> FeatureProjection:
        """With a batch that was gathered, which is spent."""
        held = self.source
        if isinstance(held, Moments) and isinstance(batch, Moments):
            return self._holding(held.joined(batch), s)
        return self.merged(batch, s)

    def merged(self, other: Statistics, s: PCASettings) -> FeatureProjection:
        """With the statistics of another model, which stay as they are."""
        held = self.source
        if isinstance(held, Moments) and isinstance(other, Moments):
            return self._holding(held + other, s)
        assert isinstance(held, SketchedMoments)
        assert isinstance(other, SketchedMoments)
        return self._holding(held + other, s)

    def _holding(self, source: Statistics, s: PCASettings) -> FeatureProjection:
        return replace(self, size=s.most(self.phi.width), source=source, trims=s.trims)


def way_back(lift: FittedLift) -> Callable[[Array], Array] | None:
    """From features to rows, where a map has that."""
    phi = getattr(lift, "map_", lift)
    return (
        (lambda F: F)
        if isinstance(phi, Identity) and phi.metric is None
        else getattr(phi, "inverse_transform", None)
    )


def begin(s: PCASettings, X: Table) -> FeatureProjection:
    """A stream whose first rows are these: moments, or a sketch where they would be too large."""
    phi = s.map_of(X)
    k = s.most(phi.width)
    if not s.too_wide(phi.width):
        return FeatureProjection(phi, k, phi.moments(X, phi.shift(X)), trims=s.trims)
    size = min(max(int(s.memory // (32 * phi.width)), k + OVERSAMPLING), 4 * k + 64)
    return FeatureProjection(phi, k, sketch(phi, X, size), trims=s.trims)


def fit_features(s: PCASettings, X: Table) -> FeatureProjection:
    """By moments where they fit, else by passes."""
    phi = s.map_of(X)
    if s.too_wide(phi.width):
        made = passes(phi, X, s)
    else:
        source = phi.moments(X, phi.shift(X))
        made = FeatureProjection(phi, s.most(phi.width), source, trims=s.trims)
    made.components  # noqa: B018 (what cannot be decomposed is refused in `fit`)
    return made


def passes(phi: FittedMap, X: Table, s: PCASettings) -> FeatureProjection:
    """A random range finder."""
    n, D, q, k = len(X), phi.width, 0.0, s.most(phi.width)
    z, shift = np.zeros(D), phi.shift(X)
    for _, F in phi.batches(X):
        G = F - shift
        z, q = z + G.sum(0), q + float(np.sum(G * G))
    check_finite(q, "the features")
    mean, total = shift + z / n, max(q - float(z @ z) / n, 0.0)
    found = ritz(lambda V: phi.covariance_product(X, mean, V), D, k)
    return FeatureProjection(phi, k, Components.of(found, total, n, mean), n, s.trims)


def sketch(phi: FittedMap, X: Table, size: int) -> SketchedMoments:
    """Frequent directions of the features of rows."""
    out = SketchedMoments.zero(phi.width, size)
    for _, F in phi.batches(X):
        check_finite(np.sum(np.square(F, dtype=np.float64)), "the features")
        out = out.add(F)
    return out


def mergeable(mine: object, theirs: object, name: str) -> tuple[FeatureProjection, Statistics]:
    """This model, and the statistics of another (an object so called) that add to its own."""
    if not isinstance(mine, FeatureProjection) or not isinstance(theirs, FeatureProjection | None):
        raise ValueError("models of the kernel matrix do not merge; fit both with via='features'.")
    if theirs is None:
        raise ValueError(f"merge takes another fitted KernelPCA over features, got {name}.")
    if mine.phi.fingerprint != theirs.phi.fingerprint:
        raise ValueError(
            "the models have different feature maps, whose statistics do not add; fit both with the same kernel, via and random_state."
        )
    if mine.moments is None or theirs.moments is None:
        raise ValueError(
            "merge needs the statistics of both models, and one was fitted by passes; raise memory_limit."
        )
    if type(mine.moments) is not type(theirs.moments):
        raise ValueError(
            "one model keeps moments and the other a sketch, which do not add; give both the same memory_limit."
        )
    return mine, theirs.moments
