"""Ridge regression over many landmarks, f = sum_j coef_j k(., z_j) + b, by passes of products
(Falkon)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any, cast

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from mercer import methods
from mercer.gpu.devices import device_of, free_bytes, told
from mercer.inputs import Array, Matrix, Table, table
from mercer.kernels.base import Kernel
from mercer.lifts import Nystrom
from mercer.lifts.base import Seed, seed_of, stream_of
from mercer.lifts.landmarks import all_rows, pivoted, without_replacement
from mercer.linalg.cg import Map, Solved, conjugate_gradients, refined
from mercer.models.expansion import Expansion
from mercer.models.ridge.dual import DualRidge, expansion, penalty, warn_if_open
from mercer.models.ridge.problem import Refit, RidgeSettings, TrainingRows, Weights
from mercer.ops.philox import Stream, uniforms
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import broadcast, cuts, settle_allocator
from mercer.pairs import Side, Tile, centre_of
from mercer.plans import Plan, quantity

BATCH = 1 << 16  # rows of one batch
PIECE_BYTES = 2 << 20  # of k(x, landmarks) in one task
LANES = 8  # sums kept apart, so that threads change nothing
SAMPLE = (
    2,
    8,
)  # the fewest and the most rows that the preconditioner sees, in units of the landmarks
WORTH = 150  # n / m times this many rows cost as much as a few passes
# A landmark counts where more than this share of k(z, z) is not told by those before it.
CUT = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 3e-6}

Batch = tuple[Table, Array, "Array | None"]
Batches = Callable[[], Iterable[Batch]]


def fit(s: RidgeSettings, rows: TrainingRows, plan: Plan, flat: bool, refit: Refit) -> DualRidge:
    """Landmarks by the method that was asked for, then conjugate gradients for every penalty."""
    if s.bandwidths is not None:
        raise ValueError(
            "bandwidths are chosen by leave-one-out; give cv='loo' and via='exact' with them."
        )
    over, unit = expansion(s, rows), np.maximum(np.abs(rows.Y).max(axis=0), np.finfo(float).tiny)
    scaled = replace(rows, Y=rows.Y / unit)
    alpha, _, _ = penalty(s, over, scaled, plan, refit)
    kernel = cast(Kernel, over.kernel)
    points, how = chosen(s, kernel, rows)
    why = None if s.gpu is None else no_gpu(s, over, rows)
    solve = solved if s.gpu is None or why is not None else solved_there
    parts = [
        (at, solve(s, kernel, scaled, at, points, a)) for a, at in outputs(alpha, rows.Y.shape[1])
    ]
    kept = parts[0][1].kept
    coef, b = np.empty((len(kept), rows.Y.shape[1])), np.empty(rows.Y.shape[1])
    for at, part in parts:
        coef[:, at], b[at] = part.coef, part.intercept
    steps, residual = sum(part.steps for _, part in parts), max(part.residual for _, part in parts)
    made = written(s, len(rows), len(coef), how, residual, steps, why)
    warn_if_open(made.way, residual, s.tol)
    return DualRidge(
        made,
        Expansion(over.kernel, points[kept]),
        Weights(alpha, coef * unit, b * unit),
        flat,
        residual,
        steps,
    )


def outputs(alpha: float | Array, q: int) -> Iterator[tuple[float, Array]]:
    """Every penalty, and the outputs that have it."""
    penalties = np.broadcast_to(alpha, (q,))
    return ((float(a), penalties == a) for a in np.unique(penalties))


def chosen(s: RidgeSettings, kernel: Kernel, rows: TrainingRows) -> tuple[Table, str]:
    """Rows, chosen as asked where that fits, else with equal chances."""
    m = s.landmarks(len(rows))
    select = s.method.select if isinstance(s.method, methods.Landmarks) else "rpcholesky"
    if select == "rpcholesky" and 8.0 * m * len(rows) > s.memory:
        select = "uniform"
    if select == "uniform" and s.gpu is not None and not rows.X.items:
        return Table(rows.X.data[_drawn(rows, m, s.random_state)]), select
    phi = Nystrom(kernel, m, select, random_state=s.random_state).fit(
        _bare(rows.X), sample_weight=rows.weight
    )
    return Table(phi.landmarks_), select


def _drawn(rows: TrainingRows, m: int, random_state: Seed) -> Array:
    """Those that `Nystrom` draws with equal chances, which it would factor on one thread."""
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    if m >= np.count_nonzero(weight):
        return all_rows(rows.X, weight)
    return without_replacement(weight, m, stream_of(random_state))


def _bare(X: Table) -> Matrix:
    return X if X.items else X.data


def solved(
    s: RidgeSettings, kernel: Kernel, rows: TrainingRows, at: Array, points: Table, alpha: float
) -> LandmarkSolution:
    """The outputs of one penalty."""
    X, Y, w = rows.X, rows.Y[:, at], rows.weight

    def batches() -> Iterator[Batch]:
        return ((X[part], Y[part], None if w is None else w[part]) for part in cuts(len(Y), BATCH))

    return falkon(
        kernel,
        points,
        batches,
        alpha,
        intercept=s.intercept,
        tol=s.tol,
        max_steps=s.max_iter,
        memory=s.memory,
        seed=seed_of(s.random_state),
    )


def no_gpu(s: RidgeSettings, over: Expansion, rows: TrainingRows) -> str | None:
    """Why passes are not made on the device of these settings, in words; None where they are."""
    n, q = rows.Y.shape
    if (why := over.no_tile(rows.X)) is not None:
        return why
    there = import_module("mercer.gpu.landmarks")
    needed, free = (
        there.bytes_needed(n, rows.X.width, s.landmarks(n), q),
        free_bytes(device_of(s.device) or "cpu"),
    )
    if needed <= free:
        return None
    return f"it needs {quantity(needed, 'B')}, and the GPU has {quantity(free, 'B')} free"


def solved_there(
    s: RidgeSettings, kernel: Kernel, rows: TrainingRows, at: Array, points: Table, alpha: float
) -> LandmarkSolution:
    """The same as `solved` on a GPU, every sum and factor in float64."""
    there, X, Y, w = import_module("mercer.gpu.landmarks"), rows.X, rows.Y[:, at], rows.weights
    cut = CUT[points.dtype]
    kept, inverse = there.whitening(kernel, points, s.gpu, lambda K: pivoted(K, cut))
    sums, total = there.LandmarkSums(kernel, points[kept], inverse, X, w), float(w.sum())
    found = sums.against(np.column_stack([Y, np.ones(len(Y))]))
    mean = found[:, -1] / total * s.intercept
    mean_y = (w @ Y) / total * s.intercept
    some, weight = sampled(rows, len(kept), Stream(seed_of(s.random_state)))
    precondition = sums.preconditioner(some, weight, mean, total / float(weight.sum()), alpha)

    def product(V: Array) -> Array:
        return np.asarray(sums.times(V, mean) + alpha * V)

    right = found[:, :-1] - np.outer(found[:, -1], mean_y)
    m = searched(product, right, precondition, s.tol, s.max_iter)
    return LandmarkSolution(sums.coefficients(m.x), mean_y - mean @ m.x, kept, m.residual, m.steps)


def sampled(rows: TrainingRows, m: int, stream: Stream) -> tuple[Table, Array]:
    """The rows that the preconditioner of m landmarks sees, and their weights."""
    sample = SampledRows(SAMPLE[1] * m, stream)
    for part in cuts(len(rows), BATCH):
        sample.add(rows.X[part], rows.weights[part], part.start)
    sample.keep(max(SAMPLE[0] * m, WORTH * len(rows) // m))
    some = [X.data for X, _ in sample.rows]
    return Table(np.concatenate(some), rows.X.columns), np.concatenate([w for _, w in sample.rows])


def written(
    s: RidgeSettings, n: int, used: int, how: str, residual: float, steps: int, no_gpu: str | None
) -> Plan:
    m = s.landmarks(n)
    settings = {"rows": n, "landmarks": used, "choice": how, "residual": residual, "steps": steps}
    why = f"{m:,} landmarks: passes of products cost less than their m x m moments"
    if s.gpu is not None:
        where = f"{told(s.device)}, in float64" if no_gpu is None else f"on the CPU, as {no_gpu}"
        why = f"{why}; {where}"
    return Plan("landmarks", why, settings, 24.0 * m * m + s.memory, 4.0 * n * m * steps, steps + 2)


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
    memory : bytes; k(X, Z) is kept, in the precision of the rows, where it fits beside the m x m
    factors

    Rudi, Carratino and Rosasco, FALKON: an optimal large scale kernel method (2017).

    >>> from mercer.kernels import Gaussian
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(1000, 1))
    >>> s = falkon(Gaussian(), X[:40], lambda: [(X, np.sin(X), None)], alpha=1e-6)
    >>> bool(np.abs(Gaussian()(X, X[:40][s.kept]) @ s.coef + s.intercept - np.sin(X)).max() < 1e-3)
    True
    """
    points = table(landmarks, "landmarks", items=kernel.takes_items)
    kept, root = pivoted(
        np.asarray(kernel(points.astype(np.float64)), np.float64), CUT[points.dtype]
    )
    rows = LandmarkPasses(kernel, points[kept], root, batches, memory - 24.0 * len(kept) ** 2)
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
    while they fit."""

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
        points = self.points.astype(X.dtype)
        centre = centre_of(points, points)
        z = Side(points, centre)
        step = max(16, PIECE_BYTES // (X.dtype.itemsize * len(points)))
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
            K = broadcast(
                self.kernel.on(Tile(Side(X[at], centre), z)), (at.stop - at.start, len(z)), X.dtype
            )
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
