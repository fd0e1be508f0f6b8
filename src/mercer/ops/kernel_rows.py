"""Rows of kernel matrices: added up by duals, picked, and repacked from one tiling into another."""

from __future__ import annotations

from mercer.ops.jit import njit

SQUARE = 8  # lines of the nearest cache that may lie apart by a power of two and stay


@njit(fastmath={"contract", "nsz"})
def add_rows(K, index, delta, out):  # type: ignore[no-untyped-def]
    """out[k] += sum_i delta_i K[index_i, k], in float64 whatever K is; four rows at a time, as
    `out` is read once for them."""
    m = len(index) - len(index) % 4
    for r in range(0, m, 4):
        a0, a1, a2, a3 = delta[r], delta[r + 1], delta[r + 2], delta[r + 3]
        k0, k1, k2, k3 = K[index[r]], K[index[r + 1]], K[index[r + 2]], K[index[r + 3]]
        for k in range(len(out)):
            out[k] += (a0 * k0[k] + a1 * k1[k]) + (a2 * k2[k] + a3 * k3[k])
    for r in range(m, len(index)):
        a0, k0 = delta[r], K[index[r]]
        for k in range(len(out)):
            out[k] += a0 * k0[k]


@njit
def meet(K, column, first, diagonal):  # type: ignore[no-untyped-def]
    """Where a row meets itself in a tile whose columns begin with `first`, the kernel's own
    diagonal."""
    for r in range(len(column)):
        j = column[r] - first
        if 0 <= j < K.shape[1]:
            K[r, j] = diagonal[r]


@njit
def pick(K, rows, cols, out):  # type: ignore[no-untyped-def]
    """out[i, j] = K[rows_i, cols_j], several times faster than indexing by two arrays."""
    for i in range(len(rows)):
        row, to = K[rows[i]], out[i]
        for j in range(len(cols)):
            to[j] = row[cols[j]]


@njit
def repack(K, rows, tiles, cols, out):  # type: ignore[no-untyped-def]
    """out[r, j] = K[tiles_j, rows_r, cols_j]: one tile of some rows and columns of others."""
    for r in range(len(rows)):
        for j in range(len(cols)):
            out[r, j] = K[tiles[j], rows[r], cols[j]]


@njit
def mirror(tile, K, row, col):  # type: ignore[no-untyped-def]
    """K[row + j, col + i] = tile[i, j], by squares that stay in the nearest cache: rows of a tile lie
    apart by a power of two, where more of them would push each other out."""
    m, n = tile.shape
    for a in range(0, m, SQUARE):
        for b in range(0, n, SQUARE):
            for j in range(b, min(b + SQUARE, n)):
                for i in range(a, min(a + SQUARE, m)):
                    K[row + j, col + i] = tile[i, j]
