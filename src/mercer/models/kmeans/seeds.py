"""Where k-means among points begins: seeds, swaps of these and first steps on the squared distances
of a sample, made once for all runs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from mercer.inputs import Array
from mercer.models.kmeans.steps import sums
from mercer.ops import sample as loops
from mercer.ops.philox import Stream, uniforms
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import fill

LEAST, EACH = 256, 40  # rows of a sample, and rows more for each cluster
WIDE = 256  # columns from which on half as many do
ALL, FEW = 1.25, 1000  # times as many rows are all taken, and so many where they are not wide
MORE = 40  # rounds of swaps beyond k, which has as many
MOST, CLOSE = 30, 1e-4  # steps of a sample, and the share that one must bring
SAME, APART = 1e-6, 0.05  # of sums, by which runs have ended alike, or one cannot be the best
NOISE = 1e3  # roundings that a sum of squares, or a square of products, must be above
EXTENT = 50  # log2 of numbers whose squares are safe in float32, as are 1e-37 of these

Run = tuple[float, Array, Array]  # the sum of w d^2, the clusters of rows, and the seeds


@dataclass(frozen=True, eq=False)
class Beginning:
    """Means C (k, d); where the sample was all rows, the clusters that they are means of; and the
    rows that stand for clusters without any, by cluster."""

    C: Array
    members: Array | None
    lone: dict[int, int]


def beginnings(
    X: Array, w: Array, norms: Array, k: int, stream: Stream, n_init: int
) -> list[Beginning]:
    """Of runs on a sample those of which one may be the best, where these are all rows one."""
    rows, v = sample(X, w, norms, k, stream.child(n_init))
    S = X[rows]
    found = runs(S, v, k, stream, n_init, np.float32)
    if not told(found, S, v):
        found = runs(S, v, k, stream, n_init, np.float64)
    least, last, begun = found[0][0], -1.0, []
    for cost, at, chosen in found:
        if last * (1 + SAME) < cost <= least * (1 + APART):
            begun.append(_means(X, rows, v, at, chosen))
            last = cost
    return begun[:1] if len(rows) == len(X) else begun


def _means(X: Array, rows: Array, w: Array, at: Array, chosen: Array) -> Beginning:
    C, W, count = sums(X[rows], w, at, len(chosen))
    C /= np.where(count > 0, W, 1)[:, None]
    empty = np.flatnonzero(count == 0)
    stands = rows[chosen[empty]]
    C[empty] = X[stands]
    members = None
    if len(rows) == len(X):
        members = np.empty_like(at)
        members[rows] = at
    return Beginning(C, members, dict(zip(empty.tolist(), stands.tolist(), strict=True)))


def sample(X: Array, w: Array, norms: Array, k: int, stream: Stream) -> tuple[Array, Array]:
    """Rows and their weights: all that have any, by their values, where these are few, so that
    draws do not depend on how they are arranged or repeated; else some, half of them in proportion
    to w |x|^2, as few rows far away may be a cluster (Bachem, Lucic and Krause, Scalable k-means
    clustering via lightweight coresets, 2018)."""
    size, wide = LEAST + EACH * k, X.shape[1] >= WIDE
    if wide:
        size //= 2
    rows = np.flatnonzero(w)
    if len(rows) <= max(ALL * size, 0 if wide else FEW):
        rows = rows[np.argsort(X[rows] @ np.cos(np.arange(X.shape[1])), kind="stable")]
        return rows, w[rows]
    share, far = w / w.sum(), w * norms
    if far.any():
        share += far / far.sum()
    total = np.cumsum(share)
    u = (np.arange(size) + uniforms(stream, 0, size, 1)[:, 0]) / size
    drawn = np.minimum(np.searchsorted(total, u * total[-1], side="right"), rows[-1])
    rows, often = np.unique(drawn, return_counts=True)
    return rows, often * w[rows] * (total[-1] / size) / share[rows]


def runs(S: Array, w: Array, k: int, stream: Stream, n_init: int, dtype: DTypeLike) -> list[Run]:
    """Runs on a sample in units of its extent, the best first, of equal ones in their order."""
    tries = 2 + int(math.log(k))
    D = distances(_unit(S).astype(dtype, copy=False))

    def run(i: int) -> Run:
        u = uniforms(stream.child(i), 0, 2 * k + min(2 * k, MORE), tries)
        chosen, at = loops.seeds(D, w, u, k)
        return *loops.steps(D, w, at, k, MOST, CLOSE), chosen

    return sorted(parallel_map(run, range(n_init)), key=lambda run: run[0])


def _unit(S: Array) -> Array:
    """Rows times a power of two, which costs no digits: as large as squares in float32 may be, so
    that those of rows beside a far one are not lost."""
    _, power = np.frexp(np.abs(S).max())
    return np.ldexp(S, EXTENT - power)


def told(found: list[Run], S: Array, w: Array) -> bool:
    """Whether the best sum is well above the rounding of products in float32."""
    total = float(w @ np.square(_unit(S), dtype=np.float64).sum(1))
    return found[0][0] > NOISE * float(np.finfo(np.float32).eps) * total


def distances(S: Array) -> Array:
    """|s_i - s_j|^2 of all rows, (m, m), which is 0 of equal ones: of products in the digits of S,
    by differences where rounding of these counts, and rounded to float32, which costs next to
    nothing of a small distance."""
    x, least = np.square(S, dtype=np.float64).sum(1), NOISE * float(np.finfo(S.dtype).eps)

    def tile(rows: slice, cols: slice) -> Array:
        out = np.empty((rows.stop - rows.start, cols.stop - cols.start), np.float32)
        X, Z, same = S[rows], S[cols], int(rows == cols)
        loops.squares(X @ Z.T, x[rows], x[cols], X, Z, least, same, out)
        return out

    return fill(np.empty((len(S), len(S)), np.float32), tile, symmetric=True)
