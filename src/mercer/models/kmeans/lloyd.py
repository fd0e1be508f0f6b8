"""k-means in a kernel's space: points are seen by their distances to rows and to means of rows,
whatever space they live in."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from mercer.inputs import Array
from mercer.logs import logger
from mercer.operators import Operator
from mercer.ops.nearest import swap_costs, two_nearest
from mercer.ops.philox import Stream, uniforms
from mercer.ops.threads import single_blas

LOG = logger("kmeans")
TINY = np.finfo(np.float64).tiny
ROUNDING = 32  # of the last digit of |x|^2 + |mean|^2: less than this between them is none


class RowSpace(Protocol):
    """Rows in a Hilbert space."""

    def to_rows(self, rows: Array) -> Array:
        """Squared distances of all rows to these, (n, t)."""
        ...

    def to_means(self, A: Array) -> Array:
        """Squared distances of all rows to the points sum_i A_ic x_i, (n, k)."""
        ...

    def inner(self, A: Array) -> Array:
        """Inner products of these points, (k, k)."""
        ...


@dataclass(frozen=True, eq=False)
class KernelSpace:
    """Rows through their kernel: |x_i - sum_j A_jc x_j|^2 = k_ii - 2 (K A)_ic + (A'K A)_cc."""

    op: Operator

    @cached_property
    def diag(self) -> Array:
        """k(x, x)"""
        return self.op.diag().astype(np.float64)

    def to_rows(self, rows: Array) -> Array:
        K = self.op.block(slice(None), rows)
        return np.maximum(self.diag[:, None] - 2 * K + self.diag[rows], 0)

    def to_means(self, A: Array) -> Array:
        """Zero where rounding is all that is left, so that of equal means copies go to one."""
        P = self._times(A)
        both = self.diag[:, None] + means_square(A, P)
        left = both - 2 * P
        both *= ROUNDING * np.finfo(self.op.dtype).eps
        return np.where(left > both, left, 0)

    def inner(self, A: Array) -> Array:
        return np.asarray(A.T @ self._times(A))

    def _times(self, A: Array) -> Array:
        return np.asarray((self.op @ A.astype(self.op.dtype)).astype(np.float64))


def means_square(A: Array, P: Array) -> Array:
    """|sum_i A_ic x_i|^2 from P = K A, (k,)."""
    return np.einsum("ic,ic->c", A, P)


@dataclass(frozen=True, eq=False)
class FeatureSpace:
    """Rows through their features about an origin, which come in batches (rows, F) anew at every
    call.

    Distances are the same about any origin; near the rows they lose no digits.
    """

    batches: Callable[[], Iterable[tuple[slice, Array]]]
    n: int
    origin: float | Array = 0.0

    def points(self, A: Array) -> Array:
        """sum_i A_ic (phi_i - origin), (k, D)."""
        return np.asarray(
            sum(A[rows].T @ (F.astype(np.float64) - self.origin) for rows, F in self.batches())
        )

    def distances(self, C: Array) -> Array:
        out, square = np.empty((self.n, len(C))), np.square(C).sum(1)
        for rows, F in self.batches():
            F = F.astype(np.float64) - self.origin
            out[rows] = np.square(F).sum(1)[:, None] - 2 * F @ C.T + square
        return np.maximum(out, 0)

    def to_rows(self, rows: Array) -> Array:
        A = np.zeros((self.n, len(rows)))
        A[rows, np.arange(len(rows))] = 1
        return self.to_means(A)

    def to_means(self, A: Array) -> Array:
        return self.distances(self.points(A))

    def inner(self, A: Array) -> Array:
        P = self.points(A)
        return P @ P.T


@dataclass(frozen=True, eq=False)
class Clusters:
    """labels (n,), the means as coefficients (n, k), sum_i w_i |x_i - mean|^2, and the number of
    steps."""

    labels: Array
    coef: Array
    inertia: float
    steps: int
    settled: bool


def kmeans(
    space: RowSpace,
    k: int,
    weight: Array,
    order: Array,
    stream: Stream,
    *,
    n_init: int = 1,
    max_iter: int = 300,
) -> Clusters:
    """The best of n_init runs of Lloyd's algorithm from k-means++ seeds, improved by swaps.

    order: of the rows in draws; one by their values makes the result free of how the rows are
    arranged or repeated.

    >>> from mercer.kernels import Linear
    >>> from mercer.operators import KernelOperator
    >>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> round(kmeans(KernelSpace(KernelOperator(Linear(), X)), 2, np.ones(4), np.arange(4), Stream(0)).inertia, 9)
    0.01
    """
    with single_blas():  # its threads cost more than they bring where each product is small
        runs = [
            _lloyd(space, seeds(space, k, weight, order, stream.child(i)), weight, max_iter)
            for i in range(n_init)
        ]
    return first_of_least(runs)


def first_of_least(runs: list[Clusters]) -> Clusters:
    """The first run whose inertia is the least but for rounding: which one it is does not depend on
    how sums are rounded."""
    least = min(run.inertia for run in runs)
    return next(run for run in runs if not run.inertia > least * (1 + 1e-9) + TINY)


def seeds(space: RowSpace, k: int, weight: Array, order: Array, stream: Stream) -> Array:
    """k rows, each drawn in proportion to w d^2, the best of a few draws; then k rounds in which
    one of them may be swapped.

    Arthur and Vassilvitskii, k-means++ (2007); Lattanzi and Sohler, A better k-means++ algorithm
    via local search (2019).
    """
    tries = 2 + int(math.log(k))
    chosen = [int(_draw(weight, order, uniforms(stream, 0, 1, 1)[0])[0])]
    D = np.empty((len(weight), k))  # to every seed
    D[:, :1] = space.to_rows(np.array(chosen))
    nearest = D[:, 0].copy()
    for i in range(1, k):
        u = uniforms(stream, i, i + 1, tries)[0]
        drawn, far = _candidates(space, nearest, chosen, weight, order, u)
        best = int(np.argmin(weight @ np.minimum(nearest[:, None], far)))
        chosen.append(int(drawn[best]))
        D[:, i] = far[:, best]
        np.minimum(nearest, far[:, best], out=nearest)
    two = two_nearest(D)
    for i in range(k, 2 * k if k > 1 else k):
        u = uniforms(stream, i, i + 1, tries)[0]
        drawn, far = _candidates(space, two[1], chosen, weight, order, u)
        costs = swap_costs(*two, far, weight, k)
        t, c = np.unravel_index(int(np.argmin(costs)), costs.shape)
        if costs[t, c] < weight @ two[1] * (1 - 1e-9):
            chosen[c], D[:, c] = int(drawn[t]), far[:, t]
            two = two_nearest(D)
    return np.array(chosen)


def _candidates(
    space: RowSpace, nearest: Array, chosen: list[int], weight: Array, order: Array, u: Array
) -> tuple[Array, Array]:
    """Rows drawn in proportion to w d^2, and the squared distances of all rows to them."""
    mass = weight * nearest
    if not mass.any():  # fewer points than clusters
        mass = weight * ~np.isin(np.arange(len(weight)), chosen)
        mass = mass if mass.any() else weight
    drawn = _draw(mass, order, u)
    return drawn, space.to_rows(drawn)


def _draw(mass: Array, order: Array, u: Array) -> Array:
    total = np.cumsum(mass[order])
    at = np.searchsorted(total, u * total[-1], side="right")
    return order[np.minimum(at, int(np.flatnonzero(mass[order])[-1]))]


def _lloyd(space: RowSpace, first: Array, weight: Array, max_iter: int) -> Clusters:
    k = len(first)
    near = space.to_rows(first)
    rounding = 1e-12 * float(weight @ near.max(1))
    (labels, own, _), step, before = two_nearest(near), 0, math.inf
    while True:
        coef = means(labels, own, weight, k)
        new, own, _ = two_nearest(space.to_means(coef))
        step, inertia = step + 1, float(weight @ own)
        settled = bool((new == labels).all()) or inertia >= before - rounding
        LOG.info("step %d: inertia %.8g", step, inertia)
        if settled or step >= max_iter:
            return Clusters(new, coef, inertia, step, settled)
        labels, before = new, inertia


def means(labels: Array, own: Array, weight: Array, k: int) -> Array:
    """Coefficients (n, k) of the clusters' means; an empty one becomes a row that is far from its
    own mean, to which squared distances are `own`.

    >>> means(np.array([0, 0, 0]), np.array([1.0, 4.0, 0.0]), np.ones(3), 2)[:, 1]
    array([0., 1., 0.])
    """
    n = len(labels)
    A = np.zeros((n, k))
    A[np.arange(n), labels] = weight
    size = A.sum(0)
    empty = np.flatnonzero(size <= 0)
    far = np.argsort(-weight * own, kind="stable")[: len(empty)] if len(empty) else empty
    A[:, empty] = 0
    A[far, empty[: len(far)]] = 1
    return A / np.where(size > 0, size, 1)
