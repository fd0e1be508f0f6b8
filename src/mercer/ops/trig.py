"""Cosine and sine of the same angles at once: one reduction and two short polynomials, in vector
registers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from mercer.inputs import Array
from mercer.ops.jit import njit

CHUNK_ANGLES = 1024  # angles copied aside, so that an output may lie where the angles are
FAR32, FAR64 = (
    np.float32(1.2e4),
    2e8,
)  # beyond these angles multiples of pi/2 are no longer exact: the library's functions

# pi/2 in pieces so short that whole multiples of them, up to FAR, are exact.
_A32, _B32, _C32, _D32 = (
    np.float32(float.fromhex(h))
    for h in ("0x1.92p0", "0x1.fb4p-12", "0x1.444p-24", "0x1.68c234p-39")
)
_A64, _B64, _C64 = (
    float.fromhex(h) for h in ("0x1.921fb5p0", "0x1.110b46p-26", "0x1.1a62633145c06p-54")
)

# Adding and taking away 1.5 * 2^(bits of the fraction) rounds to the nearest whole number, without
# a branch.
_ROUND32, _TURN32, _HALF32, _ONE32 = (
    np.float32(1.5 * 2**23),
    np.float32(2 / np.pi),
    np.float32(0.5),
    np.float32(1),
)
_ROUND64, _TURN64 = 1.5 * 2.0**52, 2 / np.pi

# (sin r / r - 1) / z and (cos r - 1 + z/2) / z^2 in z = r^2 <= (pi/4)^2, interpolated at
# Chebyshev's points.
_S32 = tuple(map(np.float32, (-0.16666664662286335, 0.008332748265179355, -0.0001958788970285345)))
_K32 = tuple(map(np.float32, (0.04166666465947411, -0.001388830303043341, 2.4547940905030735e-05)))
_S64 = (
    -0.16666666666666666,
    0.008333333333330948,
    -0.0001984126983675849,
    2.7557316102508736e-06,
    -2.5051131835894976e-08,
    1.5918128638625855e-10,
)
_K64 = (
    0.041666666666666664,
    -0.0013888888888887398,
    2.4801587298765635e-05,
    -2.755731727170245e-07,
    2.0876146262704946e-09,
    -1.1382632014983239e-11,
)


def sincos(P: Array, scale: float, cos_out: Array, sin_out: Array) -> None:
    """cos_out, sin_out = scale cos(P), scale sin(P), of one dtype and shape (n, m) with contiguous
    rows.

    Right to 2 units in the last place, near the zeros to one unit of 1. An output may be P itself,
    or a half of a wider array: rows need not be adjacent.

    >>> F = np.zeros((2, 6), np.float32)
    >>> F[:, :3] = [[0, 1, 2], [3, 4, 5]]
    >>> sincos(F[:, :3], 0.5, F[:, :3], F[:, 3:])
    >>> np.abs(F[0] - [0.5, 0.27015, -0.20807, 0, 0.42074, 0.45465]).max() < 1e-5
    np.True_
    """
    loop = _rows32 if P.dtype == np.float32 else _rows64
    loop(
        P.shape[0],
        P.shape[1],
        P.dtype.type(scale),
        *flat_rows(P),
        *flat_rows(cos_out),
        *flat_rows(sin_out),
    )


def reference_sincos(P: Array, scale: float, cos_out: Array, sin_out: Array) -> None:
    """`sincos` by NumPy."""
    cos_out[...], sin_out[...] = scale * np.cos(P), scale * np.sin(P)


def flat_rows(A: Array) -> tuple[Array, int]:
    """The memory from the first to the last entry as one contiguous vector, and the step from row
    to row.

    Numba vectorises loops over what it knows to be contiguous, which columns of a wider array are
    not.

    >>> flat_rows(np.arange(6.0).reshape(2, 3)[:, :2])
    (array([0., 1., 2., 3., 4.]), 3)
    """
    n, m = A.shape
    step = A.strides[0] // A.itemsize
    if A.strides[1] != A.itemsize and m > 1 and n > 0:
        raise ValueError("The rows of the array must be contiguous; copy it to C order first.")
    return (
        A.reshape(-1)
        if A.flags.c_contiguous
        else as_strided(A, ((n - 1) * step + m,), (A.itemsize,))
    ), step


@njit(fastmath={"contract"})
def _rows32(
    n: int, m: int, scale: Any, P: Array, p: int, C: Array, c: int, S: Array, s: int
) -> None:
    x = np.empty(CHUNK_ANGLES, np.float32)
    for i in range(n):
        for j in range(0, m, CHUNK_ANGLES):
            w = min(CHUNK_ANGLES, m - j)
            far = _aside(P[i * p + j : i * p + j + w], x, FAR32)
            _near32(w, x, scale, C[i * c + j : i * c + j + w], S[i * s + j : i * s + j + w])
            if far:
                _far(w, x, scale, FAR32, C[i * c + j : i * c + j + w], S[i * s + j : i * s + j + w])


@njit(fastmath={"contract"})
def _rows64(
    n: int, m: int, scale: Any, P: Array, p: int, C: Array, c: int, S: Array, s: int
) -> None:
    x = np.empty(CHUNK_ANGLES, np.float64)
    for i in range(n):
        for j in range(0, m, CHUNK_ANGLES):
            w = min(CHUNK_ANGLES, m - j)
            far = _aside(P[i * p + j : i * p + j + w], x, FAR64)
            _near64(w, x, scale, C[i * c + j : i * c + j + w], S[i * s + j : i * s + j + w])
            if far:
                _far(w, x, scale, FAR64, C[i * c + j : i * c + j + w], S[i * s + j : i * s + j + w])


@njit(fastmath={"contract"})
def _near32(w: int, x: Array, scale: Any, C: Array, S: Array) -> None:
    for t in range(w):
        k = (x[t] * _TURN32 + _ROUND32) - _ROUND32
        q = np.int32(k)
        r = (((x[t] - k * _A32) - k * _B32) - k * _C32) - k * _D32
        z = r * r
        sine = r + r * z * (_S32[0] + z * (_S32[1] + z * _S32[2]))
        cosine = (_ONE32 - _HALF32 * z) + z * z * (_K32[0] + z * (_K32[1] + z * _K32[2]))
        u, v = (sine, cosine) if q & 1 else (cosine, sine)
        C[t] = -scale * u if (q + 1) & 2 else scale * u
        S[t] = -scale * v if q & 2 else scale * v


@njit(fastmath={"contract"})
def _near64(w: int, x: Array, scale: Any, C: Array, S: Array) -> None:
    for t in range(w):
        k = (x[t] * _TURN64 + _ROUND64) - _ROUND64
        q = np.int32(k)
        r = ((x[t] - k * _A64) - k * _B64) - k * _C64
        z = r * r
        zz = z * z
        sine = r + r * z * (
            (_S64[0] + z * _S64[1]) + zz * ((_S64[2] + z * _S64[3]) + zz * (_S64[4] + z * _S64[5]))
        )
        cosine = (1 - 0.5 * z) + zz * (
            (_K64[0] + z * _K64[1]) + zz * ((_K64[2] + z * _K64[3]) + zz * (_K64[4] + z * _K64[5]))
        )
        u, v = (sine, cosine) if q & 1 else (cosine, sine)
        C[t] = -scale * u if (q + 1) & 2 else scale * u
        S[t] = -scale * v if q & 2 else scale * v


@njit
def _aside(P: Array, x: Array, limit: Any) -> int:
    """Copy angles, and count those beyond the limit."""
    far = 0
    for t in range(P.shape[0]):
        x[t] = P[t]
        far += abs(P[t]) > limit
    return far


@njit
def _far(w: int, x: Array, scale: Any, limit: Any, C: Array, S: Array) -> None:
    for t in range(w):
        if abs(x[t]) > limit:
            C[t], S[t] = scale * np.cos(x[t]), scale * np.sin(x[t])
