"""Gaussian processes of a kernel matrix that was given: mean, likelihood and leave-one-out, and no
variance without k(x, x)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.inputs import Array, Table
from mercer.linalg.decompose import eigen
from mercer.models.gp.exact import ExactPosterior
from mercer.models.gp.linear import LinearLikelihood
from mercer.models.gp.points import BLOCK_ROWS
from mercer.models.gp.samples import SampledFunctions
from mercer.models.gp.space import NOISE
from mercer.models.settings import FittedKernel
from mercer.operators.stored import GivenOperator
from mercer.ops.tiles import cuts
from mercer.store import register

MEANS_ONLY = "a Gram matrix between new rows and those of fit does not tell k(x, x) of new rows, so there are means only; give a kernel."
NO_STREAM = "kernel='precomputed' names points by their place in one matrix, so it has no stream; give a kernel."


@register("gp.GramPosterior")
@dataclass(frozen=True, eq=False)
class GramPosterior(ExactPosterior):
    """X is K itself, and new rows are those of k(Z, X)."""

    def _laws(self) -> str | None:
        return (
            None
            if self.X.width == len(self.Y)
            else f"has a kernel matrix of {self.X.width} columns for {len(self.Y)} rows"
        )

    @classmethod
    def _upgraded(cls, values: dict[str, Any]) -> dict[str, Any]:
        """From files in which the kernel was a mark of its own."""
        return {**super()._upgraded(values), "kernel": "precomputed"}

    @property
    def scaled_kernel(self) -> FittedKernel:
        return "precomputed"

    def _matrix(self) -> Array:
        return GivenOperator(self.X.data).block()

    def cross(self, Z: Table) -> Iterator[tuple[slice, Array]]:
        yield from ((at, self.scale * Z.data[at]) for at in cuts(len(Z), BLOCK_ROWS))

    def _prior(self, Z: Table) -> Array:
        if len(Z) != Z.width:
            raise ValueError(MEANS_ONLY)
        return np.asarray(self.scale * Z.data)

    def variance(self, X: Table, noise: float = 0.0) -> Array:
        raise ValueError(MEANS_ONLY)

    def covariance(self, X: Table, noise: float = 0.0) -> Array:
        raise ValueError(MEANS_ONLY)

    def functions(
        self, count: int, *, posterior: bool, n_features: int, seed: int
    ) -> SampledFunctions:
        raise ValueError(MEANS_ONLY)

    def with_points(self, X: Table, Y: Array) -> Self:
        raise ValueError(NO_STREAM)

    def without_points(self, X: Table, Y: Array) -> Self:
        raise ValueError(NO_STREAM)


def noise_and_scale(K: Array, Y: Array) -> tuple[float, float]:
    """The (noise, scale) of the largest likelihood of N(0, scale K + noise I), the same for all
    columns of Y, whose variance is 1.

    >>> K = np.kron(np.eye(100), np.ones((4, 4)))  # rows in fours, equal but for their noise
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(2 * rng.normal(size=100), 4) + 0.5 * rng.normal(size=400)
    >>> noise, scale = noise_and_scale(K, y[:, None])
    >>> 0.2 < noise < 0.3, 3 < scale < 5
    (True, True)
    """
    s = eigen((K + K.T) / 2).above(np.finfo(float).eps * len(K))
    along = np.square(s.vectors.T @ Y).mean(1)
    square = float(np.square(Y).sum(0).mean())
    e = LinearLikelihood(len(K), s.values, np.sqrt(s.values * along), square)
    return e.best(NOISE[0], 1 / (np.finfo(float).eps * math.sqrt(len(K))))
