"""Gaussians of tiles: from products of rows and their norms to kernel values in one pass, and rows
made ready for that in another."""

from __future__ import annotations

import numpy as np

from mercer.inputs import Array, Matrix
from mercer.ops.jit import njit

FAST = {"contract", "nsz"}
SQUARE = 8  # rows and columns that are turned together

# exp(r) for |r| <= log(2) / 2 by polynomials whose largest relative error is least: 2e-17 and,
# in float32, 1e-7.
W0, W1, W2, W3 = 1.0, 1.0, 0.5000000000000019, 0.1666666666666668
W4, W5, W6 = 0.0416666666664881, 0.008333333333319601, 0.0013888888952314775
W7, W8, W9 = 0.00019841269890047113, 2.4801485482328494e-05, 2.755724091857897e-06
W10, W11 = 2.763263963904103e-07, 2.5110037605963777e-08
N0, N1, N2 = np.float32(1.0), np.float32(1.000000037716214), np.float32(0.5000000047117757)
N3, N4 = np.float32(0.16666415514653277), np.float32(0.04166635289677516)
N5, N6 = np.float32(0.008375126398153335), np.float32(0.0013941108433972674)
TWO, LOG2_32 = np.float32(2.0), np.float32(0.6931471805599453)
LOG2E, LOG2 = 1.4426950408889634, 0.6931471805599453
# Added to t, they leave its nearest whole number in the lowest bits.
WHOLE64, WHOLE32 = 6755399441055744.0, np.float32(12582912.0)
LEAST64, LEAST32 = -1021.0, np.float32(-125.0)  # exponents of 2 below which a value is as good as 0


@njit(fastmath=FAST)
def wide(P, x, z, gamma, out, row, col, half):  # type: ignore[no-untyped-def]
    """out, from this row and column on, = exp(-gamma |x_i + z_j - 2 P_ij|) of products and norms in
    float64; out is not P. All of out is given, as only of whole arrays it is known that the values
    of a row lie side by side. Of a half only j >= i."""
    k = -gamma * LOG2E
    for i in range(P.shape[0]):
        first = i if half else 0
        a, b, p_i, to = x[i], z[first:], P[i][first:], out[row + i][col + first :]
        for j in range(p_i.shape[0]):
            t = max(k * abs(a + b[j] - 2.0 * p_i[j]), LEAST64)
            n = t + WHOLE64
            r = (t - (n - WHOLE64)) * LOG2
            r2 = r * r
            r4 = r2 * r2
            p = ((W11 * r + W10) * r2 + (W9 * r + W8)) * r4 + ((W7 * r + W6) * r2 + (W5 * r + W4))
            p = p * r4 + ((W3 * r + W2) * r2 + (W1 * r + W0))
            bits = np.float64(p).view(np.int64) + (np.float64(n).view(np.int64) << np.int64(52))
            to[j] = np.int64(bits).view(np.float64)


@njit(fastmath=FAST)
def narrow(P, x, z, gamma, out, row, col, half):  # type: ignore[no-untyped-def]
    """The same in float32, squared distances in the precision of the products."""
    k = np.float32(-gamma * LOG2E)
    for i in range(P.shape[0]):
        first = i if half else 0
        a, b, p_i, to = x[i], z[first:], P[i][first:], out[row + i][col + first :]
        for j in range(p_i.shape[0]):
            t = max(np.float32(k * abs(a + b[j] - TWO * p_i[j])), LEAST32)
            n = t + WHOLE32
            r = (t - (n - WHOLE32)) * LOG2_32
            p = (((((N6 * r + N5) * r + N4) * r + N3) * r + N2) * r + N1) * r + N0
            bits = np.float32(p).view(np.int32) + np.int32(
                np.float32(n).view(np.int32) << np.int32(23)
            )
            to[j] = np.int32(bits).view(np.float32)


def values(
    P: Array, x: Array, z: Array, gamma: float, out: Array, row: int, col: int, half: bool = False
) -> None:
    """out, from this row and column on, = exp(-gamma |x_i - z_j|^2), from products P (n, m) of rows
    and their squared norms, both of one precision, that of out or float64; P and out lie apart. Of
    a half only j >= i."""
    (narrow if out.dtype == np.float32 else wide)(P, x, z, gamma, out, row, col, half)


def reference_values(
    P: Array, x: Array, z: Array, gamma: float, out: Array, row: int, col: int, half: bool = False
) -> None:
    """The same, plainly."""
    n, m = P.shape
    K, to = np.exp(-gamma * np.abs(x[:, None] + z - 2 * P)), out[row : row + n, col : col + m]
    to[:] = np.where(np.tri(n, m, -1), to, K) if half else K


@njit
def mirror(K, row, rows, col, cols):  # type: ignore[no-untyped-def]
    """K[j, i] = K[i, j] for i from row on and j > i from col on, by squares that stay in the
    nearest cache. No row lies below the last column."""
    for a in range(row, rows, SQUARE):
        for b in range(max(a, col), cols, SQUARE):
            if b > a and a + SQUARE <= rows and b + SQUARE <= cols:
                A = K[a : a + SQUARE]
                for j in range(SQUARE):
                    to = K[b + j][a : a + SQUARE]
                    for i in range(SQUARE):  # of a known number, so they are unrolled
                        to[i] = A[i, b + j]
                continue
            for j in range(b, min(b + SQUARE, cols)):
                for i in range(a, min(a + SQUARE, rows, j)):
                    K[j, i] = K[i, j]


def reference_mirror(K: Array, row: int, rows: int, col: int, cols: int) -> None:
    """The same, plainly."""
    i, j = np.arange(row, rows)[:, None], np.arange(col, cols)
    above = np.broadcast_to(i < j, (len(i), len(j)))
    K[np.broadcast_to(j, above.shape)[above], np.broadcast_to(i, above.shape)[above]] = K[
        row:rows, col:cols
    ][above]


@njit(fastmath={"contract", "nsz", "reassoc"})
def squares(X, out):  # type: ignore[no-untyped-def]
    """out_i = |x_i|^2, added up in float64."""
    for i in range(X.shape[0]):
        total = 0.0
        for j in range(X.shape[1]):
            v = np.float64(X[i, j])
            total += v * v
        out[i] = total


@njit(fastmath={"contract", "nsz", "reassoc"})
def moved(X, centre, scale, A, out):  # type: ignore[no-untyped-def]
    """A = (X - centre) scale, column by column, and out_i = |a_i|^2: one pass."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            A[i, j] = (np.float64(X[i, j]) - centre[j]) * scale[j]
        total = 0.0
        for j in range(X.shape[1]):
            v = np.float64(A[i, j])
            total += v * v
        out[i] = total


def reference_moved(X: Array, centre: Array, scale: Array, A: Array, out: Array) -> None:
    """The same, plainly."""
    A[:] = (X - centre) * scale
    out[:] = np.square(A, dtype=np.float64).sum(1)


@njit(fastmath={"contract"})
def sparse_products(start, places, numbers, rows, begin, end, at, other, half, out):  # type: ignore[no-untyped-def]
    """out_i = the inner products of row rows + i of a CSR matrix (start, places, numbers) with the
    rows of another, which is given by its columns (those of k from begin_k to end_k, at, other).
    Places are unsigned, so that no loop asks whether one counts from the end: half the time. Of a
    half, where these are the same rows, only j >= i; `begin` is spent."""
    for i in range(out.shape[0]):
        to = out[i]
        to[:] = 0
        for p in range(start[rows + i], start[rows + i + 1]):
            x, k = numbers[p], places[p]
            first = begin[k]
            if half:  # what is above in the column are rows before this one
                begin[k] = first + np.uint64(1)
            for q in range(first, end[k]):
                to[at[q]] += x * other[q]


def reference_sparse_products(X: Matrix, Z: Matrix) -> Array:
    """The same of all rows, plainly."""
    return np.asarray((X @ Z.T).toarray())
