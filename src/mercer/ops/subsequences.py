"""Loops over subsequences of strings: the weights of all words of few letters, and the kernel of two
strings by dynamic programming, with slopes by the decay."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.windows import NONE


@njit
def word_weights(
    codes: Array, offsets: Array, p: int, size: int, decay: float, out: Array, slope: Array
) -> None:
    """out[i, u] = sum over the places of the subsequence u of p letters in string i of decay^span,
    and its slope by decay.

    Open occurrences of 1, ..., p - 1 letters are kept by their words, each as decay^(span so far).
    """
    first = np.zeros(p + 1, np.int64)  # where words of q letters begin
    width = 1
    for q in range(1, p):
        width *= size
        first[q + 1] = first[q] + width
    held, moved = np.empty(max(first[p], 1)), np.empty(max(first[p], 1))
    for i in range(len(offsets) - 1):
        held[:] = 0.0
        moved[:] = 0.0
        for t in range(offsets[i], offsets[i + 1]):
            for u in range(first[p]):
                moved[u] = decay * moved[u] + held[u]
                held[u] *= decay
            a = codes[t]
            if a == NONE:
                continue
            n = (first[p] - first[p - 1]) if p > 1 else 1
            for q in range(p, 0, -1):
                for u in range(n):
                    value, by = decay, 1.0
                    if q > 1:
                        value, by = held[first[q - 1] + u], moved[first[q - 1] + u]
                    if q == p:
                        out[i, u * size + a] += value
                        slope[i, u * size + a] += by
                    else:
                        held[first[q] + u * size + a] += value
                        moved[first[q] + u * size + a] += by
                n //= size


@njit
def pair_weights(
    x: Array, z: Array, p: int, decay: float, rows: Array, slopes: Array
) -> tuple[float, float]:
    """sum over common subsequences of p letters of decay^(span in x + span in z), and its slope by
    decay; `rows` and `slopes` (p, len(z) + 1) are room.

    rows[q, j] sums over the common subsequences of q letters of the letters of x so far and the first
    j of z, their spans counted to the ends of both (Lodhi et al., 2002).
    """
    square = decay * decay
    rows[:] = 0.0
    slopes[:] = 0.0
    rows[0] = 1.0
    total, by = 0.0, 0.0
    for a in x:
        if a != NONE:
            for j in range(len(z)):
                if z[j] == a:
                    total += square * rows[p - 1, j]
                    by += square * slopes[p - 1, j] + 2 * decay * rows[p - 1, j]
        for q in range(p - 1, 0, -1):
            run, turn = 0.0, 0.0
            for j in range(len(z)):
                turn = decay * turn + run
                run = decay * run
                if a != NONE and z[j] == a:
                    run += square * rows[q - 1, j]
                    turn += square * slopes[q - 1, j] + 2 * decay * rows[q - 1, j]
                slopes[q, j + 1] = decay * slopes[q, j + 1] + rows[q, j + 1] + turn
                rows[q, j + 1] = decay * rows[q, j + 1] + run
    return total, by


@njit
def all_pairs(
    x: Array, at_x: Array, z: Array, at_z: Array, p: int, decay: float, out: Array, slope: Array
) -> None:
    """`pair_weights` of all pairs of strings, added to what is there."""
    longest = 0
    for j in range(len(at_z) - 1):
        longest = max(longest, at_z[j + 1] - at_z[j])
    rows, slopes = np.empty((p, longest + 1)), np.empty((p, longest + 1))
    for i in range(len(at_x) - 1):
        for j in range(len(at_z) - 1):
            one, other = x[at_x[i] : at_x[i + 1]], z[at_z[j] : at_z[j + 1]]
            value, by = pair_weights(one, other, p, decay, rows, slopes)
            out[i, j] += value
            slope[i, j] += by
