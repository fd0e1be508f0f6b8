"""Which hyper-parameters a Gaussian process learns, from which rows, and by which measure of them."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels import Kernel
from mercer.lifts import Nystrom
from mercer.lifts.base import seed_of
from mercer.models.gp.posterior import Outputs
from mercer.models.gp.problem import ProcessSettings
from mercer.models.gp.quadrature import estimated_likelihood
from mercer.models.gp.search import FittedHyperparameters, Measure, learn, refined, unlearnt
from mercer.models.gp.space import SearchSpace, space
from mercer.models.gp.sparse import fitc, vfe
from mercer.models.gp.starts import magnitude, starts
from mercer.models.maps import asked, default_features
from mercer.ops.philox import Stream, permutation
from mercer.store import register

MAX_POINTS = 512  # landmarks over which all rows are learnt from: a step takes O(n m^2)


@register("gp.Candidate")
@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel for landmarks, and the rows and steps that it was learnt by.

    held : noise and scale in the units of y, where the search has them from what was said, else None
    """

    kernel: Kernel
    rows: int
    steps: int
    held: tuple[float, float] | None = None

    def told(self, n: int) -> dict[str, Any]:
        """What the plan says of it."""
        return {"kernel learnt from": min(n, self.rows), "steps": self.steps} if self.steps else {}


@dataclass(frozen=True, eq=False)
class Learning:
    """The search for kernel, noise and scale by the likelihood: of some rows, then of all. Rows are in float64, targets in their units."""

    s: ProcessSettings
    X: Table
    Y: Array  # (n, q), in the units of y
    outputs: Outputs

    @cached_property
    def Z(self) -> Array:
        return np.asarray((self.Y - self.outputs.mean) / self.outputs.unit)

    @cached_property
    def noise(self) -> Array | None:
        return self.s.noises(len(self.Y), self.outputs)

    @property
    def _unit(self) -> float:
        return float(self.outputs.unit[0])

    @property
    def _level(self) -> float | None:
        """The noise that is given, in the units of y."""
        return None if self.noise is None else float(self.noise.mean() * self.outputs.unit[0] ** 2)

    def space(self, kernel: Kernel) -> SearchSpace:
        """Of a kernel at these rows; ValueError where names are none of its parameters."""
        size = magnitude(kernel, self.X)
        return space(kernel, self.s.spec, self._level, scaled=self.s.learns, unit=self._unit, size=size)

    def search(self, way: str) -> FittedHyperparameters:
        """By as many rows as the way takes."""
        s, seed, kernel = self.s, seed_of(self.s.random_state), self.s.kernel_at(self.X)
        if kernel is not None and self.noise is not None and not (s.learns or s.asks):
            return FittedHyperparameters(kernel, float(self.noise.mean()), 1.0, 0.0, 0)
        begin = starts(
            kernel, self.X, s.spec, self._level, scale=s.learns, unit=self._unit, restarts=s.n_restarts, seed=seed, rough=way == "exact"
        )
        if not begin[0].space.size or not np.any(self.Z):
            return unlearnt(begin[0].space, len(self.Z))
        return learn(begin, self.X, self.Z, self.noise, seed=seed, most=s.search_rows(way))

    def refined(self, found: FittedHyperparameters, measure: Measure) -> FittedHyperparameters:
        """A few steps more, by a measure of all rows."""
        s = self.space(found.kernel)
        return refined(found, s, self.X, self.Z, self.noise, measure=measure) if s.size else found

    def refined_by_products(self, found: FittedHyperparameters) -> FittedHyperparameters:
        return self.refined(found, partial(estimated_likelihood, memory=self.s.memory))

    # for landmarks
    def candidates(self, given: Kernel | None) -> list[Candidate]:
        """The kernel from some of the rows, and from there by all of them; noise and scale come later."""
        s, n = self.s, len(self.Y)
        if given is not None:
            free = self.space(given)
            if free.profiled and free.size == 1 and np.any(self.Z):
                return [Candidate(given, 0, 0)]  # its noise and scale are those of all rows over the landmarks
        most = s.search_rows("landmarks") or n
        found = self.search("landmarks")
        few = self._candidate(found, most)
        if not found.steps or n <= most or isinstance(s.learn_rows, int):
            return [few]
        measure = fitc if s.restore_variance and self.noise is None else vfe
        more = self.refined(found, partial(measure, points=self._points(found.kernel)))
        return [few, self._candidate(more, n)]

    def _candidate(self, found: FittedHyperparameters, rows: int) -> Candidate:
        free, unit = found.profiled and np.any(self.Z), self._unit
        return Candidate(found.kernel, rows, found.steps, None if free else (found.noise * unit**2, found.scale * unit**2))

    def _points(self, kernel: Kernel) -> Table:
        """The landmarks over which all rows are learnt from, chosen from as many rows as memory lets."""
        s, X = self.s, self.X
        m = min(asked(s.method) or default_features(len(X)), MAX_POINTS)
        most = max(m, int(s.memory // (16 * m)))
        some = permutation(Stream(seed_of(s.random_state)), len(X))[:most]
        rows = X if most >= len(X) else X[np.sort(some)]
        return Table(Nystrom(kernel, m, random_state=s.random_state).fit(rows).landmarks_)
