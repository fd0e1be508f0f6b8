"""Distances between rows of bits: counts of the places in which they differ, 64 at a time."""
from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit

WORD = 64


def packed(bits: Array) -> Array:
    """Rows of booleans (n, d) as words (n, ceil(d / 64)), filled up with zeros.

    >>> packed(np.array([[True, False, True]]))
    array([[5]], dtype=uint64)
    """
    n, d = bits.shape
    out = np.zeros((n, -(-d // WORD) * 8), np.uint8)
    out[:, : -(-d // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return out.view("<u8").astype(np.uint64, copy=False)


@njit
def _ones(v):  # type: ignore[no-untyped-def]
    """The bits that are set: LLVM knows these lines, and makes one instruction of them for eight words where there is one."""
    v = v - ((v >> np.uint64(1)) & np.uint64(0x5555555555555555))
    v = (v & np.uint64(0x3333333333333333)) + ((v >> np.uint64(2)) & np.uint64(0x3333333333333333))
    v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (v * np.uint64(0x0101010101010101)) >> np.uint64(56)


@njit
def lookup(A, B, values, out):  # type: ignore[no-untyped-def]
    """out[i, j] = values[bits in which row i of A (m, w) and column j of B (w, n) differ]."""
    count = np.empty(B.shape[1], np.int64)
    for i in range(A.shape[0]):
        count[:] = 0
        for w in range(A.shape[1]):
            a = A[i, w]
            for j in range(B.shape[1]):
                count[j] += np.int64(_ones(a ^ B[w, j]))
        for j in range(B.shape[1]):
            out[i, j] = values[count[j]]


def reference_lookup(X: Array, Z: Array, values: Array) -> Array:
    """The same of rows of booleans, plainly."""
    return np.asarray(values[(X[:, None, :] != Z[None, :, :]).sum(-1)])
