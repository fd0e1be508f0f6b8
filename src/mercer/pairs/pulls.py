"""What carries the weights of a tile's pairs to the columns of its left rows: matrix products,
compiled loops where there is none, and the way back from chosen or mapped columns."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops import slopes
from mercer.ops.distances import TOLERANCE
from mercer.ops.frozen import FrozenArray
from mercer.ops.slopes import product
from mercer.ops.tiles import cuts
from mercer.pairs.side import Bandwidth, per_column
from mercer.pairs.tile import Tile

CARRIED_BYTES = 4 << 20  # of weights times columns, made for a matrix product
Pull = Callable[[Array, Array], Array]  # T (n, m) and A (m, t) to sums of slopes (n, t, d)
Back = Callable[[Array], Array]  # (n, t, d') of chosen or mapped columns to (n, t, d) of all


def carried(T: Array, A: Array, Z: Array) -> Array:
    """sum_j T_ij A_jt z_jk, (n, t, d), a few outputs at a time."""
    (n, m), t, d = T.shape, A.shape[1], Z.shape[1]
    out = np.empty((n, t, d), np.result_type(T, A))
    for c in cuts(t, max(1, CARRIED_BYTES // max(1, 8 * m * d))):
        weighted = (A[:, c, None] * Z[:, None]).reshape(m, -1)
        out[:, c] = product(T, weighted).reshape(n, -1, d)
    return out


def squares(tile: Tile, b: Bandwidth, T: Array, A: Array) -> Array:
    """sum_j T_ij A_jt 2 (x_ik - z_jk) / b_k^2: the slopes of squared distances."""
    dtype, error = _enough(tile, b)
    near = np.zeros(T.shape, bool) if error <= 1 else T != 0
    return _differences(tile, b, (2 * T).astype(dtype), 2 * T, A, near, math.inf)


def roots(tile: Tile, b: Bandwidth, T: Array, A: Array, least: float) -> Array:
    """sum_j T_ij A_jt (x_ik - z_jk) / (b_k^2 r_ij), 0 where r = 0: the slopes of distances; r is at
    least `least`."""
    (dtype, error), r, of_r = _enough(tile, b), tile.dist(b), tile._squares(b)[1]
    unsure = math.sqrt(of_r / 2 / TOLERANCE[tile.dtype]) if math.isfinite(of_r) else 0.0
    near = (r > 0) & (r < max(error, unsure)) if error <= 1 else r > 0
    V = np.where(r > 0, T / np.where(r > 0, np.maximum(r, least), 1), 0).astype(dtype)
    return _differences(tile, b, V, T, A, near, least)


def _enough(tile: Tile, b: Bandwidth) -> tuple[np.dtype[Any], float]:
    """A precision for differences by matrix products, and the distance from which on they have the
    digits of a tolerance."""
    size = math.sqrt(float(max(s.scaled(b)[1].max() for s in (tile.X, tile.Z))))
    share = TOLERANCE[tile.dtype]
    dtype = tile.dtype if size * np.finfo(tile.dtype).eps <= share else np.dtype(np.float64)
    return dtype, size * float(np.finfo(dtype).eps) / share


def _differences(
    tile: Tile, b: Bandwidth, V: Array, T: Array, A: Array, near: Array, least: float
) -> Array:
    """sum_j V_ij A_jt (x_ik - z_jk) / b_k^2; pairs so near that a product would lose their digits
    are taken one by one."""
    widths, some = per_column(b, tile.width), bool(near.any())
    if some and not (V[~near] != 0).any():  # all of them, as where rows are too large to square
        out = np.zeros((len(V), A.shape[1], tile.width), np.result_type(V, A))
    else:
        X, Z = (s.scaled(b)[0].astype(V.dtype, copy=False) for s in (tile.X, tile.Z))
        far = np.where(near, 0, V).astype(V.dtype, copy=False) if some else V
        out = product(far, A)[..., None] * X[:, None] - carried(far, A, Z)
    if some:
        sides = tile.X.data.astype(np.float64), tile.Z.data.astype(np.float64), 1 / widths
        slopes.add_differences(T, near, A, sides, least, out)
    return np.asarray(out / widths)


def signs(T: Array, A: Array, X: Array, Z: Array) -> Array:
    """sum_j T_ij A_jt sign(x_ik - z_jk): columns of two values by matrix products."""
    low, high = Z.min(0), Z.max(0)
    two = ((low == Z) | (high == Z)).all(0)
    out = np.empty((len(X), A.shape[1], X.shape[1]), np.result_type(T, A))
    if two.any():
        lo, hi, x = low[two], high[two], X[:, None, two]
        every = product(T, A)[..., None]
        upper = carried(T, A, (Z[:, two] >= hi).astype(T.dtype))
        from_x, beyond_x = (
            np.where(above_low, np.where(above_high, 0, upper), every)
            for above_low, above_high in ((lo < x, hi < x), (lo <= x, hi <= x))
        )
        out[..., two] = (every - from_x) - beyond_x  # of those below x less those above
    if not two.all():
        rest = ~two
        out[..., rest] = slopes.signs(
            T, A, np.ascontiguousarray(X[:, rest]), np.ascontiguousarray(Z[:, rest])
        )
    return out


def into(index: list[int], d: int, back: Back) -> Back:
    """Slopes of chosen columns at their places among all."""

    def all_columns(G: Array) -> Array:
        out = np.zeros((*G.shape[:2], d), G.dtype)
        for at, k in enumerate(index):  # a column may be chosen twice
            out[..., k] += G[..., at]
        return back(out)

    return all_columns


def through(S: FrozenArray, back: Back) -> Back:
    """Slopes by Sx as those by x: times the matrix S (d', d), or the factors S (d,)."""
    M = S.values

    def by_x(G: Array) -> Array:
        if M.ndim == 1:
            return back(G * M.astype(G.dtype))
        flat = product(G.reshape(-1, G.shape[2]), M.astype(G.dtype))
        return back(flat.reshape(*G.shape[:2], -1))

    return by_x


def without_each(squares: Array, order: int) -> Array:
    """e_order of all columns but one, for each of them."""
    n, d = squares.shape
    out = np.zeros((n, d))
    for k in range(d):
        E = np.zeros((order + 1, n))
        E[0] = 1
        for j in range(d):
            if j != k:
                E[1:] += squares[:, j] * E[:-1]
        out[:, k] = E[order]
    return out
