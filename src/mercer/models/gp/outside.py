"""What landmarks leave out of a process, drawn as functions: a draw of the whole prior less its projection on the landmarks."""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Matrix, Table
from mercer.lifts import KernelLift, Nystrom
from mercer.lifts.base import Lift
from mercer.ops.philox import Stream, normals
from mercer.store import register


@register("gp.Beside")
@dataclass(frozen=True, eq=False)
class Beside:
    """The features of two fitted maps, one beside the other."""

    left: Lift
    right: Lift

    def transform(self, X: Matrix) -> Array:
        """(n, D + D')"""
        return np.hstack([_dense(phi.transform(Table(X))) for phi in (self.left, self.right)])


def outside(phi: Nystrom, scale: float, count: int, *, n_features: int, seed: int) -> tuple[Lift, Array, Array]:
    """Draws g(x) = psi(x)'V - phi(x)'A of the process with covariance scale (k - phi phi'), as (psi, V, A).

    psi are random features of k, so psi(x)'V is a draw f of the whole prior; A = R^-T f(L) for phi = k(., L) R^-1, so phi(x)'A is
    its mean given its values f(L) at the landmarks, and g is zero there.
    """
    points = Table(phi.landmarks_).astype(np.dtype(np.float64))
    psi = KernelLift(phi.kernel_, n_features, random_state=seed).fit(points)
    V = math.sqrt(scale) * normals(Stream(seed).child(8), 0, psi.n_features_out_, count)
    return psi, V, phi.components_.T @ (_dense(psi.transform(points)) @ V)


def _dense(F: Matrix) -> Array:
    return np.asarray(F.toarray() if sp.issparse(F) else F, np.float64)
