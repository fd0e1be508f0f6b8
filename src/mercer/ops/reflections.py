"""Random orthogonal matrices as products of reflections, by blocks of them: the law of an
orthogonal factor of a normal matrix, at a third of its cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.philox import Stream, normals
from mercer.ops.tiles import cuts

BLOCK = 32  # reflections that are applied by one product


def turned(n: int, d: int, stream: Stream, dtype: Any = np.float64) -> Array:
    """n <= d rows of a random orthogonal matrix, uniform over all.

    A QR factorisation of a normal matrix takes its first column to an axis by a reflection, which
    leaves the others normal and independent of it: it needs not be applied to them, as new ones can
    be drawn in their place, one coordinate shorter each. The rows are those reflections times the
    identity; in float32 they are the ones of float64 to rounding. Stewart, The efficient generation
    of random orthogonal matrices (1980).

    >>> Q = turned(2, 3, Stream(7))
    >>> np.allclose(Q @ Q.T, np.eye(2)), np.allclose(turned(2, 3, Stream(7), np.float32), Q)
    (True, True)
    """
    V, scale, signs = vectors(n, d, stream)
    V = V.astype(dtype, copy=False)
    Q = np.zeros((n, d), dtype)
    Q[np.arange(n), np.arange(n)] = signs
    for block in reversed(cuts(n, BLOCK)):
        rows, at = V[block, block.start :], Q[block.start :, block.start :]
        at -= ((at @ rows.T) @ _middle(rows, scale[block]).T) @ rows
    return Q


def turn(A: Array, n: int, stream: Stream) -> Array:
    """turned(n, d, stream) @ A, of a matrix A (d, k) that is written over, in its precision: for
    few columns less work than the rows are.

    >>> A = np.arange(6.0).reshape(3, 2)
    >>> np.allclose(turn(A.copy(), 2, Stream(7)), turned(2, 3, Stream(7)) @ A)
    True
    """
    V, scale, signs = vectors(n, len(A), stream)
    V = V.astype(A.dtype, copy=False)
    for block in cuts(n, BLOCK):
        rows, at = V[block, block.start :], A[block.start :]
        at -= rows.T @ (_middle(rows, scale[block]).T @ (rows @ at))
    return np.asarray(A[:n] * signs[:, None].astype(A.dtype))


def reference_turned(n: int, d: int, stream: Stream, dtype: Any = np.float64) -> Array:
    """The same, one reflection after the other."""
    V, scale, signs = vectors(n, d, stream)
    Q = np.eye(n, d) * signs[:, None]
    for v, s in zip(V[::-1], scale[::-1], strict=True):
        Q -= s * np.outer(Q @ v, v)
    return Q.astype(dtype)


def vectors(n: int, d: int, stream: Stream) -> tuple[Array, Array, Array]:
    """The reflections I - s v v' in rows (n, d), of which row i begins at column i; their scales s;
    the signs without which a convention would show."""
    V, upper = np.zeros((n, d)), np.arange(d) >= np.arange(n)[:, None]
    V[upper] = normals(stream, 0, 1, n * d - n * (n - 1) // 2)[0]
    size, first = np.linalg.norm(V, axis=1), V.diagonal().copy()
    signs = np.where(first < 0, 1.0, -1.0)
    np.fill_diagonal(V, first - signs * size)
    return V, 1 / (size * (size + np.abs(first))), signs


def _middle(rows: Array, scale: Array) -> Array:
    """T with I - V' T V the product of the reflections, in their order."""
    S = np.triu((rows @ rows.T).astype(np.float64), 1)
    np.fill_diagonal(S, 1 / scale)
    return np.linalg.inv(S).astype(rows.dtype)
