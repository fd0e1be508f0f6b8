"""Structured frequencies: blocks whose product with a row costs O(log d) an entry, every row
following its measure exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mercer.inputs import Array
from mercer.ops.jit import njit
from mercer.ops.measures import Radial, Sphere
from mercer.ops.philox import Stream, bits, normals, signs, uniforms
from mercer.ops.trig import flat_rows
from mercer.store import register

LANE_ROWS = 8  # rows transformed together: entry t of all of them lies side by side
PASS_ENTRIES = 16  # entries that the first pass combines
TURN_ENTRIES = 64  # entries that are written out together


def hadamard(X: Array) -> Array:
    """X @ H in place, for X (n, L) with L a power of two and H the Hadamard matrix: H_ij =
    (-1)^(bits common to i and j).

    L log2(L) additions a row, not scaled: twice gives L X. [Fino & Algazi 1976]

    >>> hadamard(np.array([[1.0, 2.0, 3.0, 4.0]]))
    array([[10., -2., -4.,  0.]])
    """
    n, L = X.shape
    if L < 1 or L & (L - 1):
        raise ValueError(
            f"X must have a power of two of columns, but it has {L}; pad it with zeros."
        )
    hadamard_rows(n, L, *flat_rows(X))
    return X


def reference_hadamard(X: Array) -> Array:
    """`hadamard` by its recursion H_2L = [[H_L, H_L], [H_L, -H_L]], in a new array."""
    L = X.shape[1]
    if L == 1:
        return X.copy()
    A, B = X[:, : L // 2], X[:, L // 2 :]
    return np.hstack([reference_hadamard(A + B), reference_hadamard(A - B)])


@njit
def hadamard_rows(n: int, L: int, X: Array, step: int) -> None:
    """`hadamard` of n rows that begin `step` apart."""
    work, ones, turned = (
        np.zeros(L * LANE_ROWS, X.dtype),
        np.ones(L, X.dtype),
        np.zeros(TURN_ENTRIES * LANE_ROWS, X.dtype),
    )
    for i in range(0, n, LANE_ROWS):
        rows = min(LANE_ROWS, n - i)
        _read(rows, L, X[i * step :], step, turned, work)
        _transform(work, L)
        _write(rows, work, ones, L, turned, X[i * step :], step)


@njit
def sandwich(
    n: int,
    d: int,
    m: int,
    X: Array,
    x_step: int,
    B: Array,
    P: Array,
    G: Array,
    S: Array,
    out: Array,
    out_step: int,
) -> None:
    """out (n, m) = X (n, d) times the transpose of the blocks S H G P H B, of which B, P, G and S
    are rows."""
    blocks, L = B.shape
    x, u, v = (
        np.zeros(L * LANE_ROWS, X.dtype),
        np.empty(L * LANE_ROWS, X.dtype),
        np.empty(L * LANE_ROWS, X.dtype),
    )
    turned = np.zeros(TURN_ENTRIES * LANE_ROWS, X.dtype)
    for i in range(0, n, LANE_ROWS):
        rows = min(LANE_ROWS, n - i)
        _read(rows, d, X[i * x_step :], x_step, turned, x)
        for b in range(blocks):
            _scale(x, B[b], u)
            _transform(u, L)
            _gather(u, P[b], G[b], v)
            _transform(v, L)
            _write(rows, v, S[b], min(L, m - b * L), turned, out[i * out_step + b * L :], out_step)


@njit
def _read(rows: int, d: int, X: Array, step: int, turned: Array, x: Array) -> None:
    """x (d, LANE_ROWS) = X (rows, d) transposed; lanes beyond the rows hold anything finite."""
    for t in range(0, d, TURN_ENTRIES):
        w = min(TURN_ENTRIES, d - t)
        for r in range(rows):
            _copy(
                X[r * step + t : r * step + t + w], turned[r * TURN_ENTRIES : r * TURN_ENTRIES + w]
            )
        if w == TURN_ENTRIES:
            _turn_in(turned, x[t * LANE_ROWS : (t + TURN_ENTRIES) * LANE_ROWS])
        else:
            for k in range(w):
                for r in range(LANE_ROWS):
                    x[(t + k) * LANE_ROWS + r] = turned[r * TURN_ENTRIES + k]


@njit
def _turn_in(w: Array, v: Array) -> None:
    """v (TURN_ENTRIES, LANE_ROWS) = w (LANE_ROWS, TURN_ENTRIES) transposed; constant distances, so
    that LLVM shuffles registers."""
    for k in range(TURN_ENTRIES):
        v[k * LANE_ROWS], v[k * LANE_ROWS + 1] = w[k], w[k + TURN_ENTRIES]
        v[k * LANE_ROWS + 2], v[k * LANE_ROWS + 3] = (
            w[k + 2 * TURN_ENTRIES],
            w[k + 3 * TURN_ENTRIES],
        )
        v[k * LANE_ROWS + 4], v[k * LANE_ROWS + 5] = (
            w[k + 4 * TURN_ENTRIES],
            w[k + 5 * TURN_ENTRIES],
        )
        v[k * LANE_ROWS + 6], v[k * LANE_ROWS + 7] = (
            w[k + 6 * TURN_ENTRIES],
            w[k + 7 * TURN_ENTRIES],
        )


@njit
def _write(rows: int, v: Array, s: Array, width: int, turned: Array, out: Array, step: int) -> None:
    for t in range(0, width, TURN_ENTRIES):
        w = min(TURN_ENTRIES, width - t)
        if s.shape[0] - t >= TURN_ENTRIES:
            _turn_out(
                v[t * LANE_ROWS : (t + TURN_ENTRIES) * LANE_ROWS], s[t : t + TURN_ENTRIES], turned
            )
        else:
            for k in range(w):
                for r in range(LANE_ROWS):
                    turned[k + r * TURN_ENTRIES] = s[t + k] * v[(t + k) * LANE_ROWS + r]
        for r in range(rows):
            _copy(
                turned[r * TURN_ENTRIES : r * TURN_ENTRIES + w],
                out[r * step + t : r * step + t + w],
            )


@njit
def _turn_out(v: Array, s: Array, w: Array) -> None:
    """w (LANE_ROWS, TURN_ENTRIES) = s times v (TURN_ENTRIES, LANE_ROWS), transposed."""
    for k in range(TURN_ENTRIES):
        w[k], w[k + TURN_ENTRIES] = s[k] * v[k * LANE_ROWS], s[k] * v[k * LANE_ROWS + 1]
        w[k + 2 * TURN_ENTRIES], w[k + 3 * TURN_ENTRIES] = (
            s[k] * v[k * LANE_ROWS + 2],
            s[k] * v[k * LANE_ROWS + 3],
        )
        w[k + 4 * TURN_ENTRIES], w[k + 5 * TURN_ENTRIES] = (
            s[k] * v[k * LANE_ROWS + 4],
            s[k] * v[k * LANE_ROWS + 5],
        )
        w[k + 6 * TURN_ENTRIES], w[k + 7 * TURN_ENTRIES] = (
            s[k] * v[k * LANE_ROWS + 6],
            s[k] * v[k * LANE_ROWS + 7],
        )


@njit
def _copy(a: Array, b: Array) -> None:
    for k in range(a.shape[0]):
        b[k] = a[k]


@njit
def _gather(x: Array, order: Array, g: Array, y: Array) -> None:
    """Entries y[t] = g[t] x[order[t]]."""
    for t in range(order.shape[0]):
        _times(
            g[t],
            x[order[t] * LANE_ROWS : (order[t] + 1) * LANE_ROWS],
            y[t * LANE_ROWS : (t + 1) * LANE_ROWS],
        )


@njit
def _scale(x: Array, g: Array, y: Array) -> None:
    for t in range(g.shape[0]):
        _times(g[t], x[t * LANE_ROWS : (t + 1) * LANE_ROWS], y[t * LANE_ROWS : (t + 1) * LANE_ROWS])


@njit
def _times(s: float, x: Array, y: Array) -> None:
    for r in range(LANE_ROWS):
        y[r] = s * x[r]


@njit
def _transform(x: Array, L: int) -> None:
    h = LANE_ROWS
    if L >= PASS_ENTRIES:
        _sixteen(x)
        h *= PASS_ENTRIES
    while 4 * h <= x.shape[0]:
        for i in range(0, x.shape[0], 4 * h):
            _four(
                x[i : i + h],
                x[i + h : i + 2 * h],
                x[i + 2 * h : i + 3 * h],
                x[i + 3 * h : i + 4 * h],
            )
        h *= 4
    if h < x.shape[0]:
        for i in range(0, x.shape[0], 2 * h):
            _two(x[i : i + h], x[i + h : i + 2 * h])


@njit
def _sixteen(x: Array) -> None:
    """Four stages at once, in registers; the distances are constants, so that LLVM sees that lanes
    do not touch."""
    for i in range(0, x.shape[0], PASS_ENTRIES * LANE_ROWS):
        y = x[i : i + PASS_ENTRIES * LANE_ROWS]
        for r in range(LANE_ROWS):
            a0, a1, a2, a3 = _h4(y[r], y[r + LANE_ROWS], y[r + 2 * LANE_ROWS], y[r + 3 * LANE_ROWS])
            b0, b1, b2, b3 = _h4(
                y[r + 4 * LANE_ROWS],
                y[r + 5 * LANE_ROWS],
                y[r + 6 * LANE_ROWS],
                y[r + 7 * LANE_ROWS],
            )
            c0, c1, c2, c3 = _h4(
                y[r + 8 * LANE_ROWS],
                y[r + 9 * LANE_ROWS],
                y[r + 10 * LANE_ROWS],
                y[r + 11 * LANE_ROWS],
            )
            d0, d1, d2, d3 = _h4(
                y[r + 12 * LANE_ROWS],
                y[r + 13 * LANE_ROWS],
                y[r + 14 * LANE_ROWS],
                y[r + 15 * LANE_ROWS],
            )
            y[r], y[r + 4 * LANE_ROWS], y[r + 8 * LANE_ROWS], y[r + 12 * LANE_ROWS] = _h4(
                a0, b0, c0, d0
            )
            y[r + LANE_ROWS], y[r + 5 * LANE_ROWS], y[r + 9 * LANE_ROWS], y[r + 13 * LANE_ROWS] = (
                _h4(a1, b1, c1, d1)
            )
            (
                y[r + 2 * LANE_ROWS],
                y[r + 6 * LANE_ROWS],
                y[r + 10 * LANE_ROWS],
                y[r + 14 * LANE_ROWS],
            ) = _h4(a2, b2, c2, d2)
            (
                y[r + 3 * LANE_ROWS],
                y[r + 7 * LANE_ROWS],
                y[r + 11 * LANE_ROWS],
                y[r + 15 * LANE_ROWS],
            ) = _h4(a3, b3, c3, d3)


@njit
def _h4(a: float, b: float, c: float, d: float) -> tuple[float, float, float, float]:
    p, q, r, s = a + b, a - b, c + d, c - d
    return p + r, q + s, p - r, q - s


@njit
def _four(a: Array, b: Array, c: Array, d: Array) -> None:
    for t in range(a.shape[0]):
        a[t], b[t], c[t], d[t] = _h4(a[t], b[t], c[t], d[t])


@njit
def _two(a: Array, b: Array) -> None:
    for t in range(a.shape[0]):
        a[t], b[t] = a[t] + b[t], a[t] - b[t]


@register("ops.Fastfood")
@dataclass(frozen=True)
class Fastfood:
    r"""m frequencies W (m, d) of a radial measure, in blocks W = S H G P H B / (sqrt(L) |G|), L a
    power of two >= d.

    B are signs, P a permutation, G independent normals. Given B and P, each row of H G P H B /
    sqrt(L) is a rotation of G: Gaussian, exactly. Divided by its norm |G| it is a uniform
    direction, and S gives it a norm from the measure's own law in L dimensions, stratified over the
    block. So the kernel's estimate is unbiased at every d; columns beyond d meet the zeros that X
    is padded with, and leave the measure's margin in d dimensions. Rows of one block are dependent:
    the variance is that of independent rows but for terms of order 1/L. Memory O(m), time O(m log
    d) a row.

    References: Le, Sarlos and Smola, Fastfood: approximating kernel expansions in loglinear time
    (2013).

    >>> from mercer.ops.measures import Normal
    >>> structured, out = Fastfood(Normal(), 5, 40, Stream(7)), np.empty((2, 40))
    >>> structured.project(np.eye(2, 5), out)
    >>> np.allclose(out, structured.matrix()[:, :2].T)
    True
    """

    measure: Radial
    d: int
    m: int
    stream: Stream

    def __post_init__(self) -> None:
        if not isinstance(self.measure, Radial) or isinstance(self.measure, Sphere):
            raise ValueError(
                f"{self.measure!r} has no structured frequencies: it changes under rotations or padding; use 'auto'."
            )

    @property
    def L(self) -> int:
        """The width of a block: d padded to a power of two."""
        return max(PASS_ENTRIES, 1 << (self.d - 1).bit_length())

    def project(self, X: Array, out: Array) -> None:
        """out (n, m) = X W' for rows X (n, d) of the same dtype; calls for different rows may run
        in threads."""
        X = np.ascontiguousarray(X)
        if X.shape[1] != self.d or out.shape != (len(X), self.m) or out.dtype != X.dtype:
            raise ValueError(
                f"X has shape {X.shape} and out {out.shape}, (n, {self.d}) and (n, {self.m}) expected; give such arrays."
            )
        sandwich(
            X.shape[0], self.d, self.m, *flat_rows(X), *tables(self, X.dtype.char), *flat_rows(out)
        )

    def matrix(self) -> Array:
        """W (m, d), dense: what `project` multiplies by, for tests."""
        out = np.empty((self.d, self.m))
        self.project(np.eye(self.d), out)
        return out.T


def reference_project(structured: Fastfood, X: Array, out: Array) -> None:
    """`Fastfood.project` by dense matrices."""
    from scipy.linalg import hadamard

    H, x = hadamard(structured.L), np.pad(X, ((0, 0), (0, structured.L - structured.d)))
    blocks = [
        (((x * b) @ H)[:, p] * g) @ H * s
        for b, p, g, s in zip(*tables(structured, "d"), strict=True)
    ]
    out[...] = np.hstack(blocks)[:, : structured.m]


@lru_cache(maxsize=16)
def tables(structured: Fastfood, dtype: str) -> tuple[Array, Array, Array, Array]:
    """B, P, G and S, each (blocks, L); S holds all the scales. Any block could be drawn alone."""
    stream, L = structured.stream, structured.L
    blocks = -(-structured.m // L)
    B, G = signs(stream.child(0), 0, blocks, L), normals(stream.child(1), 0, blocks, L)
    P = np.argsort(bits(stream.child(2), 0, blocks, L), axis=1, kind="stable")
    S = _norms(structured.measure, L, blocks, stream.child(3)) / (
        np.sqrt(L) * np.linalg.norm(G, axis=1, keepdims=True)
    )
    return B.astype(dtype), P, G.astype(dtype), S.astype(dtype)


def _norms(measure: Radial, L: int, blocks: int, stream: Stream) -> Array:
    """Norms (blocks, L), in each block one of each stratum of their law, in random order."""
    strata = np.argsort(bits(stream.child(0), 0, blocks, L), axis=1, kind="stable")
    u = (strata + uniforms(stream.child(1), 0, blocks, L)) / L
    return measure.radius(np.minimum(u, 1 - 2.0**-53), L)
