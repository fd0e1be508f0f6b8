"""Loops over strings of one length as planes of bits: runs of letters that agree at the same
place."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.windows import NONE


@njit
def bit_planes(codes: Array, shift: int, out: Array) -> None:
    """out[i, b] holds bit b of the letters of string i, and out[i, -1] whether there is one, 64
    places a number; place t is that of letter t + shift."""
    n, length = codes.shape
    out[:] = 0
    for i in range(n):
        for t in range(max(0, -shift), min(length, length - shift)):
            letter = codes[i, t + shift]
            if letter == NONE:
                continue
            one = np.uint64(1) << np.uint64(t & 63)
            for b in range(out.shape[1] - 1):
                if (letter >> b) & 1:
                    out[i, b, t >> 6] |= one
            out[i, out.shape[1] - 1, t >> 6] |= one


@njit
def _ones(v: Any) -> float:
    v -= (v >> np.uint64(1)) & np.uint64(0x5555555555555555)
    v = (v & np.uint64(0x3333333333333333)) + ((v >> np.uint64(2)) & np.uint64(0x3333333333333333))
    v = (v + (v >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.float64((v * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit
def run_weight(x: Array, z: Array, weights: Array, run: Array) -> float:
    """sum_l weights[l - 1] (places from which l letters agree), of two strings' planes; `run` is
    room."""
    planes, words = x.shape
    last = planes - 1
    for w in range(words):
        differ = np.uint64(0)
        for b in range(last):
            differ |= x[b, w] ^ z[b, w]
        run[w] = x[last, w] & z[last, w] & ~differ
    total = 0.0
    for weight in weights:
        found = 0.0
        for w in range(words):
            found += _ones(run[w])
        total += weight * found
        if found == 0.0:
            break
        for w in range(words - 1):
            run[w] &= (run[w] >> np.uint64(1)) | (run[w + 1] << np.uint64(63))
        run[words - 1] &= run[words - 1] >> np.uint64(1)
    return total


@njit
def add_runs(x: Array, z: Array, weights: Array, factor: float, out: Array) -> None:
    """out[i, j] += factor times the weight of runs, of all pairs."""
    run = np.empty(x.shape[2], np.uint64)
    for i in range(len(x)):
        for j in range(len(z)):
            out[i, j] += factor * run_weight(x[i], z[j], weights, run)


@njit
def add_own_runs(x: Array, z: Array, weights: Array, factor: float, out: Array) -> None:
    """out[i] += factor times the weight of runs of x_i and z_i."""
    run = np.empty(x.shape[2], np.uint64)
    for i in range(len(x)):
        out[i] += factor * run_weight(x[i], z[i], weights, run)
