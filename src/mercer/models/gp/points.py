"""Posteriors from the rows themselves: what they share, however equations with the kernel matrix
are solved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgWarning

from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is, Number, Text
from mercer.models.gp.posterior import PLAIN, LeaveOneOut, Outputs, Posterior
from mercer.models.gp.samples import SampledFunctions, drawn, draws
from mercer.models.gp.space import times
from mercer.models.settings import FittedKernel
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import broadcast, cuts
from mercer.pairs import Side, Tile, centre_of
from mercer.plans import Plan

# new rows at a time: always as many, so that no prediction depends on how many are asked for
BLOCK_ROWS = 128
MISSED = 1e-6  # of the largest y: what an interpolation may miss by rounding
NO_PLAN = Plan("exact", "")
P = TypeVar("P", bound="PointPosterior")


@dataclass(frozen=True, eq=False)
class PointPosterior:
    """f ~ GP(0, scale k) seen at rows X as Y = f + N(0, noise), Y (n, q) in units of its own; coef
    = (scale K + noise)^-1 Y.

    Subclasses say how equations with scale K + noise are solved.
    """

    kernel: Any  # that of a kernel matrix is "precomputed"
    X: Table
    Y: Array
    noise: Array  # (n,)
    scale: float
    coef: Array
    outputs: Outputs = PLAIN
    plan: Plan = NO_PLAN

    must = dict(
        kernel=Is("Kernel") | Text("precomputed"),
        X=Is("Table"),
        Y=Floats("n", "q"),
        noise=Floats("n", low=0),
        coef=Floats("n", "q"),
        scale=Number(0),
        outputs=Is("Outputs"),
        plan=Is("Plan"),
    )

    def _laws(self) -> str | None:
        (n, q), units = self.Y.shape, len(self.outputs)
        if units != q:
            return f"has targets of {q} outputs and units of {units}"
        return None if len(self.X) == n else f"has {len(self.X)} points and {n} targets"

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files in which points were no table, and the estimator knew their units."""
        q = values["Y"].shape[1]
        return {
            **values,
            "X": Table(values["X"]),
            "outputs": Outputs(np.zeros(q), np.ones(q), flat=False),
        }

    # what is known
    @property
    def reads(self) -> int | None:
        return None if self.X.items else self.X.width

    @property
    def scaled_kernel(self) -> FittedKernel:
        return times(
            self.scale * float(self.outputs.unit[0]) ** 2 if len(self.outputs) == 1 else 1.0,
            self.kernel,
        )

    @property
    def noise_level(self) -> float:
        return float(self.noise.mean())

    @property
    def learnt_noise(self) -> float:
        return float(self.noise[0])

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed when asked for."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def log_marginal_likelihood(self) -> float:
        """log p(y), summed over outputs."""
        n, q = self.Y.shape
        within = -0.5 * (
            float(np.vdot(self.Y, self.coef))
            + q * self.log_determinant
            + n * q * math.log(2 * math.pi)
        )
        return within - n * float(np.log(self.outputs.unit).sum())

    @property
    def log_marginal_likelihood_error(self) -> float:
        return 0.0

    @property
    def log_determinant(self) -> float:
        """Of scale K + noise."""
        raise NotImplementedError

    def solve(self, B: Array) -> Array:
        """(scale K + noise)^-1 B"""
        raise NotImplementedError

    # kernel values
    @cached_property
    def _side(self) -> Side:
        return Side(self.X, centre_of(self.X, self.X))

    def cross(self, Z: Table) -> Iterator[tuple[slice, Array]]:
        """scale k(Z, X), some rows at a time; distances are measured about the centre of X,
        whatever Z is."""
        pieces = cuts(len(Z), BLOCK_ROWS)
        for start in range(0, len(pieces), 8):
            group = pieces[start : start + 8]
            yield from zip(group, parallel_map(lambda p: self._tile(Z[p]), group), strict=True)

    def _tile(self, Z: Table) -> Array:
        s = self._side
        value = self.kernel.on(Tile(Side(Z, s.centre), s))
        return self.scale * broadcast(value, (len(Z), len(s)), np.float64)

    def _prior(self, Z: Table) -> Array:
        """scale k(Z, Z)"""
        return np.asarray(self.scale * self.kernel(Z))

    # asking
    def latent(self, Z: Table) -> Array:
        """The mean of f in its own units, (m, q)."""
        out = np.empty((len(Z), self.coef.shape[1]))
        for at, K in self.cross(Z):
            out[at] = K @ self.coef
        return out

    def mean(self, X: Table) -> Array:
        o = self.outputs
        return np.asarray(o.mean + o.unit * self.latent(X.astype(np.float64))).astype(X.dtype)

    def variance(self, X: Table, noise: float = 0.0) -> Array:
        raise NotImplementedError

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        raise NotImplementedError

    def sample(
        self,
        X: Table,
        count: int,
        rng: np.random.Generator,
        *,
        noise: float = 0.0,
        posterior: bool = True,
    ) -> Array:
        Z, o = X.astype(np.float64), self.outputs
        mean = o.mean + o.unit * self.latent(Z) if posterior else np.tile(o.mean, (len(Z), 1))
        C = self.covariance(Z, noise) if posterior else self._prior(Z) + noise * np.eye(len(Z))
        return draws(mean, C, o.unit, count, rng)

    def functions(
        self, count: int, *, posterior: bool, n_features: int, seed: int
    ) -> SampledFunctions:
        f = drawn(self, count, posterior=posterior, n_features=n_features, seed=seed)
        return f.moved(self.outputs.mean, self.outputs.unit)

    @property
    def left_out(self) -> LeaveOneOut:
        raise NotImplementedError

    # changes
    def with_points(self, X: Table, Y: Array) -> Self:
        """In O(n^2) a point, at the hyper-parameters as they are."""
        Z = self._in_units(Y, "partial_fit")
        noise = self.noise[0] if len(self.noise) else 0.0
        new = self._grown(X.astype(np.float64), Z, np.full(len(Z), noise))
        new.warn_if_singular(stacklevel=5)
        return new

    def without_points(self, X: Table, Y: Array) -> Self:
        """Each once, in O(n^2) a point."""
        index = found_in(X.astype(np.float64), self._in_units(Y, "forget"), self.X, self.Y)
        if len(index) == len(self.Y):
            raise ValueError(f"cannot forget all {len(index)} rows; leave at least one.")
        return self._shrunk(index)

    def merged(self, other: Posterior) -> Posterior:
        raise ValueError(
            "models of points do not merge; give the rows to partial_fit, or fit both with via='features'."
        )

    def _grown(self, X: Table, Y: Array, noise: Array) -> Self:
        raise NotImplementedError

    def _shrunk(self, index: Array) -> Self:
        raise NotImplementedError

    def _in_units(self, Y: Array, name: str) -> Array:
        o = self.outputs
        if np.ndim(o.noise):  # type: ignore[arg-type]
            raise ValueError(
                f"noise has one number a row, which is for fit; give one number, or 'learn', for {name}."
            )
        if Y.shape[1] != len(o):
            raise ValueError(f"y has {Y.shape[1]} columns, {len(o)} expected, as in fit.")
        Z = (Y - o.mean) / o.unit
        if not np.abs(Z).max() < 1e150:
            raise ValueError(
                f"y is up to {np.abs(Y).max():.1g}, whose square is no floating-point number; leave such rows out."
            )
        return np.asarray(Z)

    def _plan_of(self, n: int) -> Plan:
        """The plan, with another number of rows."""
        return replace(self.plan, settings={**self.plan.settings, "rows": n}, bytes=8.0 * n * n)

    def warn_if_singular(self, stacklevel: int) -> None:
        """Where there is to be no noise, or none to speak of, the mean at the rows should be y."""
        o = self.outputs
        if o.noise is None:
            return
        given = np.broadcast_to(o.noise, (len(self.Y),)) / o.unit[0] ** 2
        if not (none := (given == 0) | (given < self.noise)).any():
            return
        apart = float(np.abs(self.latent(self.X) - self.Y)[none].max(initial=0))
        if apart > MISSED * np.abs(self.Y).max():
            warnings.warn(
                f"noise is {np.min(o.noise):g}, but the kernel is singular at the rows to rounding: f is a least-squares fit "
                f"that misses y by up to {apart * float(o.unit.max()):.2g}, and the likelihood means nothing; "
                "give a noise > 0, or noise='learn'.",
                LinAlgWarning,
                stacklevel=stacklevel,
            )


def knowing(value: P, **known: Any) -> P:
    """A value with some of its cached properties, which were computed before."""
    vars(value).update(known)
    return value


def stack(A: Table, B: Table) -> Table:
    """The rows of both."""
    if A.items:
        return Table([*A.data, *B.data])
    if not A.sparse:
        return Table(np.vstack([A.data, B.data.toarray() if B.sparse else B.data]))
    return Table(sp.csr_array(sp.vstack([A.data, B.data])))


def found_in(X: Table, Y: Array, points: Table, seen: Array) -> Array:
    """Which points these rows are: the last equal one of each, of a y that is equal to rounding of
    the largest."""
    free, rounding = np.ones(len(seen), bool), 1e-12 * np.abs(seen).max(axis=0, initial=0)
    index = []
    for i in range(len(Y)):
        same = free & _equal(points, X, i) & (np.abs(seen - Y[i]) <= rounding).all(1)
        if not same.any():
            raise ValueError(
                f"row {i} of X was not taken in (with this y), or was forgotten; forget rows that were seen."
            )
        index.append(int(np.flatnonzero(same)[-1]))
        free[index[-1]] = False
    return np.array(index)


def _equal(points: Table, X: Table, i: int) -> Array:
    """Which rows (or items) of the points are row i of X."""
    if points.items:
        return np.array([v == X.data[i] for v in points.data], bool)
    row = (
        X.data[[i]].toarray()
        if X.sparse and not points.sparse
        else X.data[[i] * len(points)]
        if points.sparse
        else X.data[[i]]
    )
    gap = points.data - row
    return np.asarray(~np.any(gap.toarray() if sp.issparse(gap) else np.asarray(gap), axis=1))
