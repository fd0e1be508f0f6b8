"""Functions drawn from a Gaussian process once and evaluated anywhere: a prior draw by features, updated by the points."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.inputs import Array, Matrix, Table, table
from mercer.invariants import Each, Floats, Is, Number
from mercer.models.gp.iterative import IterativeProcess
from mercer.models.gp.likelihood import solve
from mercer.models.gp.posterior import PointProcess
from mercer.lifts import KernelLift
from mercer.lifts.base import Lift
from mercer.ops.philox import Stream, normals
from mercer.ops.tiles import cuts
from mercer.store import register

PIECE = 1024


@register("gp.Functions")
@dataclass(frozen=True, eq=False)
class Functions:
    """f_j(x) = mean + unit (phi(x)'w_j + k(x, X) v_j) for every draw j; a call gives (n, s), or (n, q, s) of q > 1 outputs."""

    lift: Any
    weights: Array  # (D, q s)
    process: PointProcess | None  # whose coef is v (n, q s)
    mean: Sequence[float] | Array = (0.0,)  # (q,)
    unit: Sequence[float] | Array = (1.0,)

    must = dict(
        lift=Is("Lift", "TransformerMixin"), weights=Floats(None, None), process=Is("PointProcess") | None,
        mean=Floats("q") | Each(Number(), size="q"), unit=Floats("q") | Each(Number(), size="q"),
    )  # fmt: skip

    def __call__(self, X: Any) -> Array:
        """The values of all functions at the rows of X."""
        rows = table(X)
        Z = rows.data.astype(np.float64)
        out = np.concatenate([self._prior(Z[at]) for at in cuts(len(rows), PIECE)])
        if self.process is not None:
            out += self.process.mean(Z)
        out = np.c_[self.mean] + np.c_[self.unit] * out.reshape(len(rows), len(self.unit), -1)
        return np.asarray(out[:, 0] if len(self.unit) == 1 else out, rows.dtype)

    def _prior(self, Z: Matrix) -> Array:
        return np.asarray(self.lift.transform(Table(Z) if isinstance(self.lift, Lift) else Z) @ self.weights)

    def moved(self, mean: Array, unit: Array) -> Functions:
        """In the units of every output."""
        return replace(self, mean=mean, unit=unit)


class NoFeatures(ValueError):
    """A kernel has no feature map that draws could be made of."""


def drawn(p: PointProcess, count: int, *, posterior: bool, n_features: int, seed: int) -> Functions:
    """f + k(x, X) A^-1 (y - f(X) - e), f ~ prior, e ~ noise: Matheron's rule, for as many draws of every output.

    Wilson et al., Efficiently sampling functions from Gaussian process posteriors (2020).
    """
    try:
        phi = KernelLift(p.kernel, n_features, random_state=seed).fit(p.rows)
    except ValueError as e:
        raise NoFeatures(str(e)) from e
    stream, each, count = Stream(seed).child(7), count, count * p.Y.shape[1]
    W = math.sqrt(p.scale) * normals(stream.child(0), 0, phi.n_features_out_, count)
    if not posterior:
        return Functions(phi, W, None)
    noise = np.sqrt(p.noise)[:, None] * normals(stream.child(1), 0, len(p.Y), count)
    prior = np.concatenate([np.asarray(phi.transform(p.rows[at]) @ W) for at in cuts(len(p.Y), PIECE)])
    right = np.repeat(p.Y, each, axis=1) - prior - noise
    v = p.handle.solve(right).x if isinstance(p, IterativeProcess) else solve(p.L, right)
    return Functions(phi, W, replace(p, Y=right, coef=v))
