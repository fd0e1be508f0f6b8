"""Scores by support vectors: one pass over tiles, with the coefficients of all rules at once."""
from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from mercer.inputs import Array, Table
from mercer.kernels.base import Kernel
from mercer.learners.smo_rows import PIECE, WIDTH
from mercer.learners.smo_tiles import GaussianTiles, tiles_of
from mercer.operators import KernelOperator
from mercer.ops import smo
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts


def dense_enough(rows: Table, limit: float) -> Table:
    """Sparse rows as dense ones where these take little memory: tiles of dense rows are much faster."""
    if not rows.sparse or float(len(rows)) * rows.width * rows.dtype.itemsize > limit / 2:
        return rows
    return Table(rows.data.toarray(), rows.columns)


def times(kernel: Kernel | str, X: Table, vectors: Any, coef: Array) -> Array:
    """k(X, vectors) @ coef, (n, k); of a given kernel matrix, `vectors` are its columns."""
    if not len(coef):
        return np.zeros((len(X), coef.shape[1]), X.dtype)
    if isinstance(kernel, str):
        return np.asarray(X.data[:, vectors] @ coef.astype(X.dtype))
    Z = Table(vectors, X.columns)
    if X.sparse != Z.sparse and not X.items:
        X, Z = (Table(t.data.toarray(), t.columns) if t.sparse else t for t in (X, Z))
    dtype = np.result_type(X.dtype, Z.dtype)
    X, Z = X.astype(dtype), Z.astype(dtype)
    tiles = tiles_of(kernel, Z, X, dtype)
    if isinstance(tiles, GaussianTiles):
        return by_tiles(tiles, X, Z, coef).astype(dtype)
    return np.asarray(KernelOperator(kernel, X, Z) @ coef.astype(dtype))


def by_tiles(tiles: GaussianTiles, X: Table, Z: Table, coef: Array) -> Array:
    """The same in float64 sums over tiles of vectors (down) and rows (across)."""
    out, narrow = np.zeros((coef.shape[1], len(X))), np.ascontiguousarray(coef.T, np.float32)
    left = [(s, tiles.side(Z[s], left=True)) for s in cuts(len(Z), PIECE)]
    every = np.arange(PIECE)

    def work(cols: slice) -> None:
        right, scores = tiles.side(X[cols], left=False), out[:, cols]
        spare = np.empty((PIECE, cols.stop - cols.start), np.float32)
        for s, side in left:
            K = spare[: s.stop - s.start]
            tiles.fill(side, right, K)
            if len(scores) > 1:
                scores += narrow[:, s] @ K
            else:
                smo.add_rows(K, every[: len(K)], coef[s, 0], scores[0])

    parallel_map(work, cuts(len(X), WIDTH))
    return out.T


def by_pairs(kernel: Kernel | str, X: Table, vectors: Any, coef: Array, counts: Array) -> Array:
    """Scores of every two classes, from coefficients (K - 1, m) of vectors that are sorted by class, so many of each."""
    K, ends = len(counts), np.cumsum(counts)
    out = np.zeros((len(X), K * (K - 1) // 2), X.dtype)
    column = {pair: k for k, pair in enumerate(combinations(range(K), 2))}
    for c, end in enumerate(ends):
        mine = slice(int(end - counts[c]), int(end))
        others = [b for b in range(K) if b != c]
        if counts[c]:
            part = times(kernel, X, vectors[mine], coef[:, mine].T)
            out[:, [column[min(b, c), max(b, c)] for b in others]] += part
    return out
