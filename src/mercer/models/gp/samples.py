"""Draws of a Gaussian process: at some rows, or as functions drawn once and evaluated anywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, Table, table
from mercer.invariants import Each, Floats, Is, Number
from mercer.lifts import KernelLift, Nystrom
from mercer.lifts.base import Lift
from mercer.models.settings import FittedLift
from mercer.ops.philox import Stream, normals
from mercer.ops.tiles import cuts
from mercer.store import register

if TYPE_CHECKING:
    from mercer.models.gp.points import PointPosterior

BLOCK_ROWS = 1024


# at some rows
def draws(mean: Array, C: Array, unit: Array, count: int, rng: np.random.Generator) -> Array:
    """mean + unit N(0, C), (n, q, count) for a mean (n, q) in units (q,)."""
    E = rng.standard_normal((len(C), mean.shape[1] * count))
    return np.asarray(
        mean[..., None] + unit[:, None] * (square_root(C) @ E).reshape(len(C), mean.shape[1], count)
    )


def square_root(C: Array) -> Array:
    """R, R R' = C, with eigenvalues that rounding made negative at zero."""
    values, vectors = np.linalg.eigh(C)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


# anywhere
@register("gp.SampledFunctions")
@dataclass(frozen=True, eq=False)
class SampledFunctions:
    """f_j(x) = mean + unit (phi(x)'w_j + k(x, X) v_j) for every draw j; a call gives (n, s), or (n,
    q, s) of q > 1 outputs."""

    lift: FittedLift
    weights: Array  # (D, q s)
    process: PointPosterior | None  # whose coef is v (n, q s)
    mean: Sequence[float] | Array = (0.0,)  # (q,)
    unit: Sequence[float] | Array = (1.0,)

    must = dict(
        lift=Is("Lift", "TransformerMixin"),
        weights=Floats(None, None),
        process=Is("PointPosterior") | None,
        mean=Floats("q") | Each(Number(), size="q"),
        unit=Floats("q") | Each(Number(), size="q"),
    )

    def __call__(self, X: Any) -> Array:
        """The values of all functions at the rows of X."""
        rows = table(X)
        Z = Table(rows.data.astype(np.float64))
        out = np.concatenate([self._prior(Z[at]) for at in cuts(len(rows), BLOCK_ROWS)])
        if self.process is not None:
            out += self.process.latent(Z)
        out = np.c_[self.mean] + np.c_[self.unit] * out.reshape(len(rows), len(self.unit), -1)
        return np.asarray(out[:, 0] if len(self.unit) == 1 else out, rows.dtype)

    def _prior(self, Z: Table) -> Array:
        return np.asarray(
            self.lift.transform(Z if isinstance(self.lift, Lift) else Z.data) @ self.weights
        )

    def moved(
        self, mean: Sequence[float] | Array, unit: Sequence[float] | Array
    ) -> SampledFunctions:
        """In the units of every output."""
        return replace(self, mean=mean, unit=unit)


def drawn(
    p: PointPosterior, count: int, *, posterior: bool, n_features: int, seed: int
) -> SampledFunctions:
    """f + k(x, X) A^-1 (y - f(X) - e), f ~ prior, e ~ noise: Matheron's rule, for as many draws of
    every output.

    Wilson et al., Efficiently sampling functions from Gaussian process posteriors (2020).
    """
    system, n = p.system, len(p.Y)
    phi, X = system.points.features(n_features, seed), system.points.X
    stream, each, count = Stream(seed).child(7), count, count * p.Y.shape[1]
    W = math.sqrt(system.scale) * normals(stream.child(0), 0, phi.n_features_out_, count)
    if not posterior:
        return SampledFunctions(phi, W, None)
    noise = np.sqrt(system.noise)[:, None] * normals(stream.child(1), 0, n, count)
    prior = np.concatenate([np.asarray(phi.transform(X[at]) @ W) for at in cuts(n, BLOCK_ROWS)])
    right = np.repeat(p.Y, each, axis=1) - prior - noise
    plain = replace(p.outputs, mean=np.zeros(count), unit=np.ones(count), flat=False)
    coef, bare = system.solve(right), replace(system)  # means need no factor
    return SampledFunctions(phi, W, replace(p, system=bare, Y=right, coef=coef, outputs=plain))


# what landmarks leave out
@register("gp.Beside")
@dataclass(frozen=True, eq=False)
class Beside:
    """The features of two fitted maps, one beside the other."""

    left: Lift
    right: Lift

    def transform(self, X: Matrix) -> Array:
        """(n, D + D')"""
        return np.hstack([_dense(phi.transform(Table(X))) for phi in (self.left, self.right)])


def residual_functions(
    phi: Nystrom, scale: float, count: int, *, n_features: int, seed: int
) -> tuple[Lift, Array, Array]:
    """Draws g(x) = psi(x)'V - phi(x)'A of the process with covariance scale (k - phi phi'), as
    (psi, V, A).

    psi are random features of k, so psi(x)'V is a draw f of the whole prior; A = R^-T f(L) for phi
    = k(., L) R^-1, so phi(x)'A is its mean given its values f(L) at the landmarks, and g is zero
    there.
    """
    points = Table(phi.landmarks_).astype(np.dtype(np.float64))
    psi = KernelLift(phi.kernel_, n_features, random_state=seed).fit(points)
    V = math.sqrt(scale) * normals(Stream(seed).child(8), 0, psi.n_features_out_, count)
    return psi, V, phi.components_.T @ (_dense(psi.transform(points)) @ V)


def _dense(F: Matrix) -> Array:
    return np.asarray(F.toarray() if sp.issparse(F) else F, np.float64)
