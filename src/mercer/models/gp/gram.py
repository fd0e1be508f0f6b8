"""Gaussian processes of a kernel matrix that was given: mean, evidence and leave-one-out, and no variance without k(x, x)."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array, Matrix, Table
from mercer.models.gp.linear import Evidence
from mercer.models.gp.posterior import PIECE, PointProcess
from mercer.models.gp.space import NOISE
from mercer.linalg.decompose import eigen
from mercer.ops.tiles import cuts
from mercer.store import register

ALONE = "a Gram matrix between new rows and those of fit does not tell k(x, x) of new rows, so there are means only; give a kernel."


@register("gp.GivenGram")
@dataclass(frozen=True)
class Given:
    """The kernel of rows that are those of their own Gram matrix."""

    def __call__(self, rows: Table) -> Array:
        if len(rows) != rows.width:
            raise ValueError(ALONE)
        return np.array(rows.data, np.float64)

    def __repr__(self) -> str:
        return "'precomputed'"


@register("gp.GramProcess")
class GramProcess(PointProcess):
    """A `PointProcess` with K for X; new rows are those of k(Z, X)."""

    def cross(self, Z: Matrix) -> Iterator[tuple[slice, Array]]:
        yield from ((at, self.scale * Z[at]) for at in cuts(Z.shape[0], PIECE))

    def variance(self, Z: Matrix) -> Array:
        raise ValueError(ALONE)

    def covariance(self, Z: Matrix) -> Array:
        raise ValueError(ALONE)


def noise_and_scale(K: Array, Y: Array) -> tuple[float, float]:
    """The (noise, scale) of the largest evidence of N(0, scale K + noise I), the same for all columns of Y, whose variance is 1.

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
    e = Evidence(len(K), s.values, np.sqrt(s.values * along), square)
    return e.best(NOISE[0], 1 / (np.finfo(float).eps * math.sqrt(len(K))))
