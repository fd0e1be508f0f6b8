"""A symmetric matrix times a vector, in one reading of one of its triangles."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.threads import parallel_map

LANES = 4  # sums kept apart, and so the most threads that share a product
LANE_BYTES = 32 << 20  # of a matrix that one thread multiplies as soon as several


@njit(fastmath={"contract", "nsz", "reassoc"})
def add_rows(K, v, start, stop, out):  # type: ignore[no-untyped-def]
    """out += what K_ij, and K_ji = K_ij, add to K @ v for rows i from start to stop, j >= i."""
    i = start
    while i + 4 <= stop:  # four rows at a time: out is read and written less often
        a, b, c, d = K[i][i + 4 :], K[i + 1][i + 4 :], K[i + 2][i + 4 :], K[i + 3][i + 4 :]
        x, to = v[i + 4 :], out[i + 4 :]
        p, q, r, s = v[i], v[i + 1], v[i + 2], v[i + 3]
        of_a = of_b = of_c = of_d = K[i, i] * 0
        for j in range(x.shape[0]):
            of_a += a[j] * x[j]
            of_b += b[j] * x[j]
            of_c += c[j] * x[j]
            of_d += d[j] * x[j]
            to[j] += a[j] * p + b[j] * q + c[j] * r + d[j] * s
        out[i] += of_a
        out[i + 1] += of_b
        out[i + 2] += of_c
        out[i + 3] += of_d
        for e in range(i, i + 4):
            for f in range(i, i + 4):
                out[e] += K[min(e, f), max(e, f)] * v[f]
        i += 4
    for e in range(i, stop):
        out[e] += K[e, e] * v[e]
        for f in range(e + 1, K.shape[0]):
            out[e] += K[e, f] * v[f]
            out[f] += K[e, f] * v[e]


def reference_add_rows(K: Array, v: Array, start: int, stop: int, out: Array) -> None:
    """The same, plainly."""
    for i in range(start, stop):
        out[i] += K[i, i:] @ v[i:]
        out[i + 1 :] += K[i, i + 1 :] * v[i]


def times(K: Array, v: Array, out: Array) -> None:
    """out = K @ v, by the values on and above the diagonal; the same bits for any number of
    threads.

    >>> K, out = np.array([[1.0, 2.0], [np.nan, 3.0]]), np.empty(2)
    >>> times(K, np.array([1.0, 10.0]), out)
    >>> out
    array([21., 32.])
    """
    if K.nbytes < LANE_BYTES:
        out[:] = 0
        add_rows(K, v, 0, len(K), out)
        return
    lanes = np.zeros((LANES, len(K)), out.dtype)
    ends = [round(len(K) * (1 - (1 - i / LANES) ** 0.5)) for i in range(LANES + 1)]  # equal areas
    parallel_map(lambda i: add_rows(K, v, ends[i], ends[i + 1], lanes[i]), range(LANES))
    np.sum(lanes, axis=0, out=out)
