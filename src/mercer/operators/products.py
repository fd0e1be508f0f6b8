"""Products of kernels between queries and vectors, k(X, Z) @ coefficients, by the fastest tiles
that are precise enough."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array, Matrix, Table
from mercer.kernels.base import Kernel
from mercer.operators.kernel import KernelOperator
from mercer.operators.stored import GivenOperator
from mercer.operators.tiles import (
    TILE_COLUMNS,
    TILE_ROWS,
    BitTiles,
    GaussianTiles,
    MappedTiles,
    PreciseTiles,
    tiles_about,
    tiles_of,
)
from mercer.ops import kernel_rows
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

Part = tuple[
    slice, list[int], Array
]  # vectors, the columns of scores, and for each of these the coefficients of the vectors


def dense_enough(rows: Table, limit: float) -> Table:
    """Sparse rows as dense ones where these take little memory: tiles of dense rows are much
    faster."""
    if not rows.sparse or stays_sparse(rows, limit):
        return rows
    return Table(rows.data.toarray(), rows.columns)


def stays_sparse(rows: Table, limit: float) -> bool:
    """Whether rows are sparse, and would take more than half the limit as dense ones."""
    return rows.sparse and dense_bytes(rows) > limit / 2


def dense_bytes(rows: Table) -> float:
    """The size of rows as dense ones."""
    return float(len(rows)) * rows.width * rows.dtype.itemsize


def times(
    kernel: Kernel, X: Table, vectors: Matrix, coef: Array, *, balanced: bool = False
) -> Array:
    """k(X, vectors) @ coef, (n, k)."""
    m, k = coef.shape
    return scores(kernel, X, vectors, [(slice(0, m), list(range(k)), coef.T)], k, balanced=balanced)


def scores(
    kernel: Kernel,
    X: Table,
    vectors: Matrix,
    parts: list[Part],
    width: int,
    *,
    balanced: bool = False,
) -> Array:
    """(n, width), where each part adds to some of its columns: k(X, vectors[part]) @ coefficients'.

    Where those of every column sum to zero (`balanced`), what k(x, z) has of x alone adds nothing,
    nor shall its rounding.
    """
    out, parts = np.zeros((len(X), width), X.dtype), _filled(parts)
    X, Z = _alike(X, Table(vectors, X.columns))
    if balanced and (centred := tiles_about(kernel, Z, np.float64)) is not None:
        edge = centred.edge(Z)
        rest = np.zeros(width)
        for s, rules, coef in parts:
            rest[rules] += coef @ edge[s]
        return (by_tiles(centred, X, Z, parts, width) + rest).astype(X.dtype)
    tiles = tiles_of(kernel, Z, X, X.dtype)
    if isinstance(tiles, GaussianTiles | BitTiles | MappedTiles):
        return by_tiles(tiles, X, Z, parts, width).astype(X.dtype)
    for s, rules, coef in parts:
        out[:, rules] += KernelOperator(kernel, X, Z[s]) @ coef.T.astype(X.dtype)
    return out


def given_scores(
    K: Array, vectors: Array, parts: list[Part], width: int, *, balanced: bool = False
) -> Array:
    """The same of a given matrix K (n, m), whose columns `vectors` are those of the vectors."""
    op, parts = GivenOperator(K), _filled(parts)
    out, mean = np.zeros((op.shape[0], width), op.dtype), np.zeros((), op.dtype)
    if balanced and len(vectors):
        mean = op.block(cols=vectors).mean(1, dtype=np.float64)[:, None]
    for s, rules, coef in parts:
        out[:, rules] += ((op.block(cols=vectors[s]) - mean) @ coef.T).astype(out.dtype)
    return out


def _filled(parts: list[Part]) -> list[Part]:
    return [p for p in parts if p[0].stop > p[0].start]


def _alike(X: Table, Z: Table) -> tuple[Table, Table]:
    """Both dense where one is, and of one precision."""
    if X.sparse != Z.sparse and not X.items:
        X, Z = (Table(t.data.toarray(), t.columns) if t.sparse else t for t in (X, Z))
    dtype = np.result_type(X.dtype, Z.dtype)
    return X.astype(dtype), Z.astype(dtype)


def by_tiles(tiles: PreciseTiles, X: Table, Z: Table, parts: list[Part], width: int) -> Array:
    """The same by tiles of vectors (down) and rows (across), summed in float64; several rules of a
    tile by one product of its precision."""
    out, every = np.zeros((width, len(X))), np.arange(TILE_ROWS)
    pieces = [
        (Z[s][c], rules, coef[:, c])
        for s, rules, coef in parts
        for c in cuts(coef.shape[1], TILE_ROWS)
    ]
    left = [
        (tiles.side(rows, left=True), rules, coef.astype(tiles.dtype), coef)
        for rows, rules, coef in pieces
    ]

    def work(cols: slice) -> None:
        right, sums = tiles.side(X[cols], left=False), out[:, cols]
        spare = np.empty((TILE_ROWS, cols.stop - cols.start), tiles.dtype)
        for side, rules, narrow, coef in left:
            K = spare[: coef.shape[1]]
            tiles.fill(side, right, K)
            if len(rules) > 1:
                sums[rules] += narrow @ K
            else:
                kernel_rows.add_rows(K, every[: len(K)], coef[0], sums[rules[0]])

    parallel_map(work, cuts(len(X), TILE_COLUMNS))
    return out.T
