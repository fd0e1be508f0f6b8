"""Conjugate gradients over many landmarks by passes of products (Falkon)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mercer.inputs import Array, Table, table
from mercer.kernels.base import Kernel
from mercer.lifts.digits import least_share, values_dtype
from mercer.lifts.landmarks import pivoted
from mercer.linalg.cg import Map, Solved, conjugate_gradients, refined
from mercer.ops.philox import Stream, uniforms
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import broadcast, cuts, settle_allocator
from mercer.pairs import Side, Tile, centre_of

BATCH = 1 << 16  # rows of one batch
PIECE_BYTES = 2 << 20  # of k(x, landmarks) in one task
LANES = 8  # sums kept apart, so that threads change nothing
SAMPLE = (
    2,
    8,
)  # the fewest and the most rows that the preconditioner sees, in units of the landmarks
WORTH = 150  # n / m times this many rows cost as much as a few passes
# A landmark of float32 rows counts where more than this share of k(z, z) is not told by those before
# it; where float32 values would hide what counts, and in float64, where more than `FINE` is not.
CUT = 3e-6

Batch = tuple[Table, Array, "Array | None"]
Batches = Callable[[], Iterable[Batch]]


@dataclass(frozen=True, eq=False)
class LandmarkSolution:
    """f(x) = sum_j coef_j k(x, z_j) + intercept over the landmarks in use, rows `kept` of those
    given.

    residual : the largest |b - A c| / |b| of the outputs, in the coordinates that conjugate
    gradients work in
    steps : passes over the rows, but for the two that set them up
    """

    coef: Array
    intercept: Array
    kept: Array
    residual: float
    steps: int


def falkon(
    kernel: Kernel,
    landmarks: Table,
    batches: Batches,
    alpha: float = 1.0,
    *,
    intercept: bool = True,
    tol: float = 1e-6,
    max_steps: int = 200,
    memory: float = 1e9,
    seed: int = 0,
) -> LandmarkSolution:
    r"""argmin sum_i w_i (y_i - f(x_i))^2 + alpha |f - b|^2 over f in the span of k(., z_j).

    With K_mm = R R', phi(x) = R^-1 k(Z, x) and c = R^-T v the equations are (sum w phi phi' + alpha
    I) v = sum w phi y, about the mean where there is an intercept; the preconditioner is the same
    matrix of a random sample of the rows.

    Parameters
    ----------
    batches : called once a pass, gives (X, Y (n, q), w or None) again and again in the same order
    tol, max_steps : of conjugate gradients; the residual is that of the last pass
    memory : bytes; k(X, Z) is kept, in the precision of the rows or float64, where it fits beside
    the m x m factors

    Rudi, Carratino and Rosasco, FALKON: an optimal large scale kernel method (2017).

    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> s = falkon(Gaussian(), X[:40], lambda: [(X, np.sin(X), None)], alpha=1e-6)
    >>> bool(np.abs(Gaussian()(X, X[:40][s.kept]) @ s.coef + s.intercept - np.sin(X)).max() < 1e-3)
    True
    """
    points = table(landmarks, "landmarks", items=kernel.takes_items)
    kept, root = pivoted(
        np.asarray(kernel(points.astype(np.float64)), np.float64), least_share(kernel, points, CUT)
    )
    points = points[kept]
    points = points.astype(values_dtype(kernel, points, root.diagonal(), CUT))
    rows = LandmarkPasses(kernel, points, root, batches, memory - 24.0 * len(kept) ** 2)
    first = rows.first(intercept, Stream(seed))
    H = rows.moments(first.sample, first) * (first.total / first.sample_total)
    H.flat[:: len(H) + 1] += alpha
    P = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)

    def product(V: Array) -> Array:
        return rows.times(V, first) + alpha * V

    def precondition(R: Array) -> Array:
        return np.asarray(cho_solve(P, R, check_finite=False))

    s = searched(product, first.right, precondition, tol, max_steps)
    c = solve_triangular(root, s.x, lower=True, trans="T", check_finite=False)
    return LandmarkSolution(c, first.mean_y - first.mean @ s.x, kept, s.residual, s.steps)


def searched(product: Map, B: Array, precondition: Map, tol: float, max_steps: int) -> Solved:
    """A^-1 B by conjugate gradients, whose residual drifts from the true one: it is taken anew."""
    left = max_steps

    def search(R: Array, goal: Array) -> tuple[Array, int]:
        nonlocal left
        V, steps = conjugate_gradients(product, R, precondition, goal, left)
        left -= steps
        return V, steps

    return refined(product, B, [search], tol)


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What the first pass tells: weighted means, the right-hand side, the sum of weights, and a
    sample of the rows."""

    mean: Array  # of phi (m,), zero without an intercept
    mean_y: Array
    right: Array  # sum w (phi - mean)(y - mean_y)'
    total: float
    sample: list[tuple[Table, Array]]

    @property
    def sample_total(self) -> float:
        return float(sum(w.sum() for _, w in self.sample))


class LandmarkPasses:
    """Sums over the rows of phi(x) = R^-1 k(Z, x), batch by batch; the kernel's values are kept
    while they fit, in the precision of the points or the rows, whichever is higher."""

    def __init__(
        self, kernel: Kernel, points: Table, root: Array, batches: Batches, memory: float
    ) -> None:
        self.kernel, self.points, self.root, self.batches, self.memory = (
            kernel,
            points,
            root,
            batches,
            memory,
        )
        self._kept: dict[tuple[int, int], Array] = {}

    def first(self, intercept: bool, stream: Stream) -> FirstPass:
        """One pass for means, the right-hand side and a sample of the rows."""
        s: Any = 0.0  # sum w k(Z, x) [y, 1]'
        y: Any = 0.0  # sum w [y, 1]
        m = len(self.root)
        sample, seen = SampledRows(SAMPLE[1] * m, stream), 0
        for number, (X, Y, w) in enumerate(self._batches()):
            sample.add(X, w, seen)
            seen += len(X)
            B = w[:, None] * np.column_stack([Y, np.ones(len(X))])
            s, y = s + self._fold(number, X, partial(_against, B)), y + B.sum(0)
        if seen == 0 or y[-1] <= 0:
            raise ValueError(
                "batches gave no row of positive weight; give a function that yields (X, Y, w) anew at every call."
            )
        sample.keep(max(SAMPLE[0] * m, WORTH * seen // m))
        phi = solve_triangular(self.root, s, lower=True, check_finite=False)
        mean_y = y[:-1] / y[-1] * intercept
        return FirstPass(
            phi[:, -1] / y[-1] * intercept,
            mean_y,
            phi[:, :-1] - np.outer(phi[:, -1], mean_y),
            float(y[-1]),
            sample.rows,
        )

    def times(self, V: Array, first: FirstPass) -> Array:
        """sum w (phi - mean)(phi - mean)' V, which is sum w phi (phi - mean)' V as the mean is that
        of all rows."""
        C = solve_triangular(self.root, V, lower=True, trans="T", check_finite=False)
        offset, out, seen = first.mean @ V, np.zeros_like(V), 0.0
        for number, (X, _, w) in enumerate(self._batches()):
            out += self._fold(number, X, partial(_normal, w, C, offset))
            seen += float(w.sum())
        if abs(seen - first.total) > 1e-6 * first.total:
            raise ValueError(
                "batches gave other rows than in the first pass; give a function that yields them anew at every call."
            )
        return np.asarray(solve_triangular(self.root, out, lower=True, check_finite=False))

    def moments(self, sample: list[tuple[Table, Array]], first: FirstPass) -> Array:
        """sum w (phi - mean)(phi - mean)' over a sample, (m, m)."""
        H = np.zeros_like(self.root)
        for X, w in sample:
            for at in cuts(len(X), 1024):
                K = np.asarray(
                    self.kernel(X[at].astype(np.float64), self.points.astype(np.float64))
                )
                F = (
                    solve_triangular(self.root, K.T, lower=True, check_finite=False)
                    - first.mean[:, None]
                ) * np.sqrt(w[at])
                H += F @ F.T
        return H

    # inside
    def _batches(self) -> Iterator[tuple[Table, Array, Array]]:
        for X, Y, w in self.batches():
            rows = table(X, items=self.kernel.takes_items)
            Y = np.asarray(Y, np.float64).reshape(len(rows), -1)
            yield rows, Y, np.ones(len(rows)) if w is None else np.asarray(w, np.float64)

    def _fold(self, number: int, X: Table, of: Callable[[Array, slice], Array]) -> Array:
        """The sum over pieces of rows of a function of k(piece, landmarks)."""
        points = self.points.astype(np.result_type(X.dtype, self.points.dtype))
        centre = centre_of(points, points)
        z = Side(points, centre)
        step = max(16, PIECE_BYTES // (points.dtype.itemsize * len(points)))
        pieces = cuts(len(X), step)
        settle_allocator()

        def lane(first: int) -> Array:
            # In float64: coefficients over landmarks are large and cancel.
            return sum(
                (
                    of(self._values(number, X, at, z, centre).astype(np.float64), at)
                    for at in pieces[first::LANES]
                ),
                np.zeros(()),
            )

        return np.sum(parallel_map(lane, range(min(LANES, len(pieces)))), axis=0)

    def _values(self, number: int, X: Table, at: slice, z: Side, centre: Array | None) -> Array:
        key = number, at.start
        K = self._kept.get(key)
        if K is None:
            dtype = z.rows.dtype
            x = Side(X[at].astype(dtype), centre)
            K = broadcast(self.kernel.on(Tile(x, z)), (at.stop - at.start, len(z)), dtype)
            if K.nbytes <= self.memory:
                self.memory -= K.nbytes  # which pieces are kept changes no result
                self._kept[key] = K
        return K


def _against(B: Array, K: Array, at: slice) -> Array:
    return np.asarray(K.T @ B[at])


def _normal(w: Array, C: Array, offset: Array, K: Array, at: slice) -> Array:
    return np.asarray(K.T @ (w[at, None] * (K @ C - offset)))


class SampledRows:
    """The rows of the smallest random keys in a stream: a uniform sample, whatever the batches."""

    def __init__(self, size: int, stream: Stream) -> None:
        self.size, self.stream = size, stream
        self.rows: list[tuple[Table, Array]] = []
        self._keys: list[Array] = []

    def add(self, X: Table, w: Array, seen: int) -> None:
        """Take in rows, of which `seen` came before; rows of weight zero count for nothing."""
        keys = uniforms(self.stream, seen, seen + len(X), 1)[:, 0]
        best = np.flatnonzero(
            (w > 0)
            & (
                keys
                <= np.partition(keys, min(self.size, len(keys)) - 1)[min(self.size, len(keys)) - 1]
            )
        )
        self.rows.append((X[best], w[best]))
        self._keys.append(keys[best])
        self.keep(self.size)

    def keep(self, size: int) -> None:
        """Only the rows of the `size` smallest keys."""
        keys = np.sort(np.concatenate(self._keys))
        limit = keys[min(size, len(keys)) - 1] if len(keys) else 0.0
        for i, k in enumerate(self._keys):
            stay = k <= limit
            self.rows[i], self._keys[i] = (self.rows[i][0][stay], self.rows[i][1][stay]), k[stay]
