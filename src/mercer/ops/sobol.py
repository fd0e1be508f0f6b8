"""Scrambled Sobol points, any of them drawn alone."""

from __future__ import annotations

import numpy as np
from scipy.stats import qmc

from mercer.inputs import Array
from mercer.ops.philox import Stream, bits, uniforms

SOBOL_BITS = 30


def sobol_points(stream: Stream, start: int, stop: int, d: int) -> Array:
    """Points start to stop (stop - start, d) of a Sobol sequence, scrambled by random triangular
    matrices and shifts.

    Matousek (1998), "On the L2-discrepancy for anchored boxes". The bits below the scrambled ones
    are drawn too, so that each point is uniform to the last bit.

    >>> U = sobol_points(Stream(7), 0, 8, 2)
    >>> np.array_equal(sobol_points(Stream(7), 3, 5, 2), U[3:5]), sorted((U[:, 1] * 8).astype(int).tolist())
    (True, [0, 1, 2, 3, 4, 5, 6, 7])
    """
    x = (_plain(start, stop, d) * 2**SOBOL_BITS).astype(np.uint32)
    U = (_scrambled(x, stream) + uniforms(stream.child(1), start, stop, d)) * 2.0**-SOBOL_BITS
    return np.minimum(U, 1 - 2.0**-53)  # the sum may round up to 1


def _plain(start: int, stop: int, d: int) -> Array:
    engine = qmc.Sobol(d, scramble=False, bits=SOBOL_BITS)
    if start:
        return engine.fast_forward(start).random(stop - start)
    return engine.random_base2(max(stop - 1, 0).bit_length())[
        :stop
    ]  # a first draw not of a power of 2 would warn


def _scrambled(x: Array, stream: Stream) -> Array:
    """L x + shift over the bits, L lower triangular with ones on the diagonal."""
    random = (
        bits(stream.child(0), 0, SOBOL_BITS + 1, x.shape[1]) >> np.uint64(64 - SOBOL_BITS)
    ).astype(np.uint32)
    y = np.broadcast_to(random[SOBOL_BITS], x.shape).copy()
    for b in range(SOBOL_BITS):
        column = random[b] & np.uint32(2**b - 1) | np.uint32(
            2**b
        )  # where bit b goes: itself and random lower ones
        y ^= (x >> np.uint32(b) & np.uint32(1)) * column
    return y
