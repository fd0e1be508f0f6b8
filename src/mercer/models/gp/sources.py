"""Where the kernel values of a Gaussian process come from: a kernel over its points, or a matrix
that was given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NoReturn

import numpy as np
import scipy.sparse as sp

from mercer.inputs import Array, Table
from mercer.invariants import Floats, Is
from mercer.kernels import Kernel
from mercer.lifts import KernelLift
from mercer.models.base import fields_alone
from mercer.models.gp.space import times
from mercer.operators.kernel import KernelOperator
from mercer.operators.stored import GivenOperator
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import broadcast, cuts
from mercer.pairs import Side, Tile, centre_of
from mercer.store import register

# new rows at a time: always as many, so that no prediction depends on how many are asked for
BLOCK_ROWS = 128
MEANS_ONLY = "a Gram matrix between new rows and those of fit does not tell k(x, x) of new rows, so there are means only; give a kernel."
NO_STREAM = "kernel='precomputed' names points by their place in one matrix, so it has no stream; give a kernel."


@register("gp.KernelPoints")
@dataclass(frozen=True, eq=False)
class KernelPoints:
    """k at rows X, which come and go.

    >>> from mercer.kernels import Linear
    >>> points = KernelPoints(Linear(), Table(np.eye(2)))
    >>> [K.tolist() for at, K in points.cross(Table(np.array([[1.0, 2.0]])), 3.0)]
    [[[3.0, 6.0]]]
    """

    kernel: Kernel
    X: Table

    must = dict(kernel=Is("Kernel"), X=Is("Table"))
    __getstate__ = fields_alone

    def __len__(self) -> int:
        return len(self.X)

    @property
    def reads(self) -> int | None:
        """The columns of rows that it takes; None for items."""
        return None if self.X.items else self.X.width

    def scaled(self, scale: float) -> Kernel:
        """scale k"""
        return times(scale, self.kernel)

    # values
    def matrix(self) -> Array:
        """k(X, X), in an array of its own."""
        return np.asarray(self.kernel(self.X))

    def operator(self, scale: float) -> KernelOperator:
        """scale k(X, X), which is not formed."""
        return KernelOperator(scale * self.kernel, self.X)

    def cross(self, Z: Table, scale: float) -> Iterator[tuple[slice, Array]]:
        """scale k(Z, X), some rows at a time; distances are measured about the centre of X,
        whatever Z is."""
        pieces = cuts(len(Z), BLOCK_ROWS)
        for start in range(0, len(pieces), 8):
            group = pieces[start : start + 8]
            tiles = parallel_map(lambda p: scale * self._tile(Z[p]), group)
            yield from zip(group, tiles, strict=True)

    @cached_property
    def _side(self) -> Side:
        return Side(self.X, centre_of(self.X, self.X))

    def _tile(self, Z: Table) -> Array:
        s = self._side
        value = self.kernel.on(Tile(Side(Z, s.centre), s))
        return broadcast(value, (len(Z), len(s)), np.float64)

    def diag(self, Z: Table) -> Array:
        """k(z, z)"""
        return self.kernel.diag(Z).astype(np.float64)

    def pairs(self, Z: Table, scale: float) -> Array:
        """scale k(Z, Z)"""
        return np.asarray(scale * self.kernel(Z))

    def prior(self, Z: Table, scale: float) -> Array:
        """scale k(Z, Z)"""
        return self.pairs(Z, scale)

    def features(self, n_features: int, seed: int) -> KernelLift:
        """Random features of k."""
        try:
            return KernelLift(self.kernel, n_features, random_state=seed).fit(self.X)
        except ValueError as e:
            raise ValueError(
                f"no random features of {self.kernel!r} are known to draw functions by; use sample_y at the rows wanted."
            ) from e

    # changes
    def joined(self, X: Table) -> KernelPoints:
        """With these rows too."""
        A, B = self.X, X
        if A.items:
            rows = Table([*A.data, *B.data])
        elif A.sparse:
            rows = Table(sp.csr_array(sp.vstack([A.data, B.data])))
        else:
            rows = Table(np.vstack([A.data, B.data.toarray() if B.sparse else B.data]))
        return KernelPoints(self.kernel, rows)

    def kept(self, keep: Array) -> KernelPoints:
        """These rows alone."""
        return KernelPoints(self.kernel, self.X[keep])

    def equal(self, X: Table, i: int) -> Array:
        """Which points are row (or item) i of X."""
        points = self.X
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


@register("gp.GivenPoints")
@dataclass(frozen=True, eq=False)
class GivenPoints:
    """K itself; new rows are those of k(Z, X), which tell means alone."""

    K: Array

    kernel: ClassVar[str] = "precomputed"
    must = dict(K=Floats("n", "n"))

    def __len__(self) -> int:
        return len(self.K)

    @property
    def X(self) -> Table:
        """The points as new rows are given."""
        return Table(self.K)

    @property
    def reads(self) -> int:
        """The columns of rows that it takes."""
        return len(self.K)

    def scaled(self, scale: float) -> str:
        return self.kernel

    # values
    def matrix(self) -> Array:
        """K, in an array of its own."""
        return GivenOperator(self.K).block()

    def cross(self, Z: Table, scale: float) -> Iterator[tuple[slice, Array]]:
        """scale k(Z, X), some rows at a time."""
        given = GivenOperator(Z.data)
        yield from ((at, scale * given.block(at)) for at in cuts(len(Z), BLOCK_ROWS))

    def prior(self, Z: Table, scale: float) -> Array:
        """scale K, at the rows that it is of."""
        given = GivenOperator(Z.data)
        return scale * given.block() if given.symmetric else self.pairs(Z, scale)

    # what it does not tell
    def diag(self, Z: Table) -> NoReturn:
        raise ValueError(MEANS_ONLY)

    def pairs(self, Z: Table, scale: float) -> NoReturn:
        raise ValueError(MEANS_ONLY)

    def features(self, n_features: int, seed: int) -> NoReturn:
        raise ValueError(MEANS_ONLY)

    def joined(self, X: Table) -> NoReturn:
        raise ValueError(NO_STREAM)

    def kept(self, keep: Array) -> NoReturn:
        raise ValueError(NO_STREAM)

    def equal(self, X: Table, i: int) -> NoReturn:
        raise ValueError(NO_STREAM)


Source = KernelPoints | GivenPoints


def found_in(points: Source, seen: Array, X: Table, Y: Array) -> Array:
    """Which points these rows are: the last equal one of each, of a y that is equal to rounding of
    the largest."""
    free, rounding = np.ones(len(seen), bool), 1e-12 * np.abs(seen).max(axis=0, initial=0)
    index = []
    for i in range(len(Y)):
        same = free & points.equal(X, i) & (np.abs(seen - Y[i]) <= rounding).all(1)
        if not same.any():
            raise ValueError(
                f"row {i} of X was not taken in (with this y), or was forgotten; forget rows that were seen."
            )
        index.append(int(np.flatnonzero(same)[-1]))
        free[index[-1]] = False
    return np.array(index)
