"""Functions drawn from a Gaussian process once and evaluated anywhere: a prior draw by features, updated by the points."""
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.inputs import Array, Matrix, Table, table
from mercer.learners.gp_iterative import IterativeProcess
from mercer.learners.gp_points import solve
from mercer.learners.gp_process import PointProcess
from mercer.lifts import KernelLift
from mercer.lifts.base import Lift
from mercer.ops.philox import Stream, normals
from mercer.ops.tiles import cuts

PIECE = 1024


@dataclass(frozen=True, eq=False)
class Functions:
    """f_j(x) = mean + unit (phi(x)'w_j + k(x, X) v_j) for every draw j; a call gives (n, draws)."""

    lift: Any
    weights: Array  # (D, s)
    process: PointProcess | None  # whose coef is v (n, s)
    mean: float = 0.0
    unit: float = 1.0

    def __call__(self, X: Any) -> Array:
        """The values of all functions at the rows of X."""
        rows = table(X)
        Z = rows.data.astype(np.float64)
        out = np.concatenate([self._prior(Z[at]) for at in cuts(len(rows), PIECE)])
        if self.process is not None:
            out += self.process.mean(Z)
        return np.asarray(self.mean + self.unit * out, rows.dtype)

    def _prior(self, Z: Matrix) -> Array:
        return np.asarray(self.lift.transform(Table(Z) if isinstance(self.lift, Lift) else Z) @ self.weights)

    def moved(self, mean: float, unit: float) -> Functions:
        """In other units."""
        return replace(self, mean=mean, unit=unit)


def drawn(p: PointProcess, count: int, *, posterior: bool, n_features: int, seed: int) -> Functions:
    """f + k(x, X) A^-1 (y - f(X) - e), f ~ prior, e ~ noise: Matheron's rule.

    Wilson et al., Efficiently sampling functions from Gaussian process posteriors (2020).
    """
    phi = KernelLift(p.kernel, n_features, random_state=seed).fit(p.rows)
    stream = Stream(seed).child(7)
    W = math.sqrt(p.scale) * normals(stream.child(0), 0, phi.n_features_out_, count)
    if not posterior:
        return Functions(phi, W, None)
    noise = np.sqrt(p.noise)[:, None] * normals(stream.child(1), 0, len(p.Y), count)
    prior = np.concatenate([np.asarray(phi.transform(p.rows[at]) @ W) for at in cuts(len(p.Y), PIECE)])
    right = p.Y - prior - noise
    v = p.handle.solve(right).x if isinstance(p, IterativeProcess) else solve(p.L, right)
    return Functions(phi, W, replace(p, Y=right, coef=v))
