"""Tiles of what formulas ask about pairs: distances, by product where its digits suffice, bits that
differ, products over columns."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from mercer.inputs import Array
from mercer.ops.absolute import MAX_SQUARE
from mercer.ops.absolute import absdist as absdist
from mercer.ops.absolute import reference_absdist as reference_absdist
from mercer.ops.jit import njit

# What rounding may do to a squared distance (in units of the bandwidth): an error of e changes
# exp(-r2/2) by at most e/2.
TOLERANCE = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-9}

NEAR_SHARE = (
    1e-6  # squared distances below this share of the squared norms are taken by differences
)
PIECE_NUMBERS = 1 << 20  # of differences at a time
WORD_BITS = 64
WIDE_COLUMNS = 128  # from which on copies of rows take longer than passes over their distances


def augmented(A: Array, norms: Array, *, left: bool) -> Array:
    """Rows [-2 a, |a|^2, 1] or [a, 1, |a|^2]: the product of a left and a right one is the squared
    distance."""
    n, d = A.shape
    out = np.empty((n, d + 2), A.dtype)
    np.multiply(A, -2 if left else 1, out=out[:, :d])
    out[:, d] = norms if left else 1
    out[:, d + 1] = 1 if left else norms
    return out


def by_product(left: Array, right: Array) -> Array:
    """|x|^2 + |z|^2 - 2 x'z for augmented rows (n, d + 2) and (m, d + 2).

    Rounding may leave a small negative number; its absolute value is as good as zero, and four
    times faster than max.
    """
    with np.errstate(
        over="ignore", invalid="ignore", divide="ignore"
    ):  # BLAS may leave flags of lanes that hold no entry
        D = left @ right.T
    return np.abs(D, out=D)


def by_norms(X: Array, Z: Array, norms_x: Array, norms_z: Array) -> Array:
    """The same for plain rows and their squared norms: no copies of wide rows; of rows with
    themselves half the product."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        D = X @ Z.T
        D *= -2
        D += norms_x.astype(D.dtype)[:, None]
        D += norms_z.astype(D.dtype)
    return np.abs(D, out=D)


def precise_enough(norms_x: Array, norms_z: Array, dtype: np.dtype, tolerance: float) -> bool:
    """Whether cancellation in |x|^2 + |z|^2 - 2 x'z stays below the tolerance in this dtype (norms
    in float64)."""
    return bool(np.finfo(dtype).eps / 2 * (norms_x.max() + norms_z.max()) <= tolerance)


def reference_sqdist(X: Array, Z: Array, bandwidth: Array) -> Array:
    """sum_j ((x_j - z_j) / b_j)^2, plainly."""
    with np.errstate(over="ignore"):
        return np.square((X[:, None] - Z) / bandwidth).sum(-1)


@njit
def _sqdist(X, Z, b, out):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            s = 0.0
            for k in range(X.shape[1]):
                t = (X[i, k] - Z[j, k]) / b[k]
                s += t * t
            out[i, j] = s


@njit
def _sqdist_of(X, Z, rows, cols, b, out):  # type: ignore[no-untyped-def]
    for t in range(rows.shape[0]):
        s = 0.0
        for k in range(X.shape[1]):
            v = (X[rows[t], k] - Z[cols[t], k]) / b[k]
            s += v * v
        out[rows[t], cols[t]] = s


def by_differences(X: Array, Z: Array, bandwidth: Array) -> Array:
    """`reference_sqdist` without its (n, m, d) array: slow, right for any offset and spread."""
    out = np.empty((len(X), len(Z)), X.dtype)
    _sqdist(X, Z, np.ascontiguousarray(bandwidth, np.float64), out)
    return np.minimum(out, MAX_SQUARE[out.dtype], out=out)


def refine(D: Array, X: Array, Z: Array, bandwidth: Array, below: float) -> Array:
    """Recompute by differences, in place, the few squared distances that are below a threshold."""
    if D.size and D.min() < below:
        rows, cols = np.nonzero(below > D)
        _sqdist_of(X, Z, rows, cols, np.ascontiguousarray(bandwidth, np.float64), D)
    return D


# exp(-r^2/2) of a tile of products, in place and in one pass: half the time of NumPy's
@njit(fastmath={"contract", "nsz"})
def half_exp(P, x, z):  # type: ignore[no-untyped-def]
    """P_ij = exp(-|x_i + z_j - 2 P_ij|/2) of float32, to its rounding: of products and squared norms
    the Gaussian of distances. 2^t = 2^n 2^r, n whole, |r| <= 1/2, by its Taylor series in r log 2."""
    one = np.float32
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            D = (x[i] + z[j]) - one(2.0) * P[i, j]
            t = max(abs(D) * one(-0.7213475204444817), one(-126.0))
            n = np.floor(t + one(0.5))
            r = (t - n) * one(0.6931471805599453)
            p = one(1 / 5040)
            p = p * r + one(1 / 720)
            p = p * r + one(1 / 120)
            p = p * r + one(1 / 24)
            p = p * r + one(1 / 6)
            p = p * r + one(0.5)
            p = p * r + one(1.0)
            p = p * r + one(1.0)
            P[i, j] = p * np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)


def reference_half_exp(P: Array, x: Array, z: Array) -> Array:
    """The same, plainly."""
    D = x.astype(np.float64)[:, None] + z - 2 * P.astype(np.float64)
    return np.exp(-np.abs(D) / 2).astype(P.dtype)


def parted(X: Array, Z: Array, A: Array) -> tuple[Array, Array, Array, Array]:
    """|x|^2, |z|^2, their difference (x - z)'(x + z) and |x - z|^2, under a metric where there
    is one."""
    x, z = (np.einsum("ij,ij->i", under(R, A), R) for R in (X, Z))
    e = x[:, None] - z
    centred = [R - (X.mean(0) + Z.mean(0)) / 2 for R in (X, Z)]
    u, v = (np.einsum("ij,ij->i", under(R, A), R) for R in centred)
    s = np.maximum(u[:, None] + v - 2 * under(centred[0], A) @ centred[1].T, 0)
    rows, cols = np.nonzero(s <= NEAR_SHARE * np.maximum(x[:, None] + z, u[:, None] + v))
    step = max(1, PIECE_NUMBERS // max(1, X.shape[1]))
    for at in (slice(i, i + step) for i in range(0, len(rows), step)):
        D, S = X[rows[at]] - Z[cols[at]], X[rows[at]] + Z[cols[at]]
        DA = under(D, A)
        s[rows[at], cols[at]], e[rows[at], cols[at]] = (
            np.einsum("ij,ij->i", DA, D),
            np.einsum("ij,ij->i", DA, S),
        )
    return x, z, e, s


def under(X: Array, A: Array) -> Array:
    """Rows times a metric; no metric has no numbers."""
    return X @ A if A.size else X


def packed(bits: Array) -> Array:
    """Rows of booleans (n, d) as words (n, ceil(d / 64)), filled up with zeros.

    >>> packed(np.array([[True, False, True]]))
    array([[5]], dtype=uint64)
    """
    n, d = bits.shape
    out = np.zeros((n, -(-d // WORD_BITS) * 8), np.uint8)
    out[:, : -(-d // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return out.view("<u8").astype(np.uint64, copy=False)


@njit
def _ones(v):  # type: ignore[no-untyped-def]
    """The bits that are set: LLVM knows these lines, and makes one instruction of them for eight
    words where there is one."""
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


def reference_prod1p(X: Array, Z: Array) -> Array:
    """prod_j (1 + x_j z_j), plainly."""
    return np.prod(1 + X[:, None] * Z, axis=-1, dtype=X.dtype)


def reference_elementary(X: Array, Z: Array, order: int) -> Array:
    """sum over j1 < ... < jk of the product of x_j z_j, plainly."""
    P = X[:, None] * Z
    return sum(
        (P[..., list(c)].prod(-1) for c in combinations(range(X.shape[1]), order)),
        np.zeros(P.shape[:2], X.dtype),
    )


@njit
def _prod1p(X, Zt, out):  # type: ignore[no-untyped-def]
    for i in range(X.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 1
        for k in range(X.shape[1]):
            x = X[i, k]
            for j in range(out.shape[1]):
                out[i, j] *= 1 + x * Zt[k, j]


@njit
def _elementary(X, Zt, order, out):  # type: ignore[no-untyped-def]
    E = np.empty((order + 1, Zt.shape[1]), X.dtype)  # E[t] holds e_t of the columns so far
    for i in range(X.shape[0]):
        E[:] = 0
        E[0] = 1
        for k in range(X.shape[1]):
            x = X[i, k]
            for t in range(min(order, k + 1), 0, -1):
                for j in range(Zt.shape[1]):
                    E[t, j] += x * Zt[k, j] * E[t - 1, j]
        out[i] = E[order]


def prod1p(X: Array, Z: Array) -> Array:
    """prod_j (1 + x_j z_j): the inner product of all 2^d products of subsets, in O(d)."""
    out = np.empty((len(X), len(Z)), X.dtype)
    _prod1p(X, np.ascontiguousarray(Z.T), out)
    return out


def elementary(X: Array, Z: Array, order: int) -> Array:
    """e_order(x_1 z_1, ..., x_d z_d) in O(d order)."""
    out = np.empty((len(X), len(Z)), X.dtype)
    _elementary(X, np.ascontiguousarray(Z.T), order, out)
    return out
