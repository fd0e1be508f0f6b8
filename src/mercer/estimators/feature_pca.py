"""The side of KernelPCA that works on features: moments that stream and merge, a sketch of them, or passes over the rows."""
from __future__ import annotations

from typing import Any

import numpy as np

from mercer.estimators.base import bytes_of
from mercer.estimators.dual_pca import check_finite
from mercer.estimators.streams import OverMoments
from mercer.inputs import Array, Matrix
from mercer.invariants import Is
from mercer.linalg.decompose import MORE, ROUNDS, Components, SketchedMoments, eigen, ritz
from mercer.plan import Plan


class FeaturePCA(OverMoments):
    """Components of phi(x) from its moments, which are a sketch where D x D numbers are too many."""

    n_components: Any
    moments_: Any  # Moments, or SketchedMoments where D x D is too large
    _found: Components | None = None

    must = dict(_found=Is("Components") | None, moments_=Is("Moments", "SketchedMoments"))

    @property
    def _k(self) -> int:
        return int(min(self.n_components, self.n_features_lifted_))

    # fitting
    def _fit_features(self, X: Matrix) -> None:
        self._fit_lift(X)
        if self._too_wide():
            self._fit_by_passes(X)
        else:
            self.moments_ = self._taken(X)
            self.plan_ = self._moments_plan()
            self._found = self._from_moments()

    def _taken(self, X: Matrix) -> Any:
        """The statistics of a batch, of the kind that there are already."""
        held = getattr(self, "moments_", None)
        if isinstance(held, SketchedMoments) or (held is None and self._too_wide()):
            return self._sketch(X, self._sketch_size() if held is None else held.rows.size)
        return self._gather(X, self._shift(X) if held is None else held.shift)

    def _sketch_size(self) -> int:
        size = int(bytes_of(self.memory_limit) // (32 * self.n_features_lifted_))
        return min(max(size, self._k + MORE), 4 * self._k + 64)

    def _sketch(self, X: Matrix, size: int) -> SketchedMoments:
        out = SketchedMoments.zero(self.n_features_lifted_, size)
        for _, F in self._lifted(X):
            check_finite(np.sum(np.square(F, dtype=np.float64)), "the features")
            out = out.add(F)
        return out

    def _moments_plan(self) -> Plan:
        D, m = self.n_features_lifted_, self.moments_
        if isinstance(m, SketchedMoments):
            why = f"{D:,} features: D x D moments exceed the memory limit, so {m.rows.size} directions follow the stream"
            return self._features_plan(m.n, "features: frequent directions", why, 1)
        return self._features_plan(m.count, "features", f"{D:,} features: their D x D moments fit, and one pass is enough", 1)

    def _fit_by_passes(self, X: Matrix) -> None:
        n, D = X.shape[0], self.n_features_lifted_
        s, q = np.zeros(D), 0.0
        shift = self._shift(X)
        for _, F in self._lifted(X):
            G = F - shift
            s, q = s + G.sum(0), q + float(np.sum(G * G))
        check_finite(q, "the features")
        mean, total = shift + s / n, max(q - float(s @ s) / n, 0.0)
        found = ritz(lambda V: self._product(X, mean, V), D, self._k)
        self._found = Components.of(found, total, n, mean)
        why = f"{D:,} features: D x D moments exceed the memory limit, so a random range finder passes over the rows"
        self.plan_ = self._features_plan(n, "range finder", why, ROUNDS + 3)

    # asking
    def _from_moments(self) -> Components:
        m = self.moments_
        if isinstance(m, SketchedMoments):
            return Components.of(m.spectrum().top(self._k), m.total, m.n, m.mean)
        C = m.centred()
        return Components.of(eigen(C, m.count, self._k).top(self._k), float(np.trace(C)), m.n, m.mean)

    def _coordinates(self, found: Components, X: Matrix) -> Array:
        """V'(phi(x) - mean) for checked rows, in their precision."""
        out = np.empty((X.shape[0], len(found.components)), X.dtype)
        for rows, F in self._lifted(X):
            out[rows] = (F - found.mean.astype(F.dtype)) @ found.components.T.astype(F.dtype)
        return out
