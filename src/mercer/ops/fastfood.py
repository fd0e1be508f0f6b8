"""Structured frequencies: blocks whose product with a row costs O(log d) an entry, every row following its measure exactly."""
from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mercer.inputs import Array
from mercer.ops.hadamard import PASS, sandwich
from mercer.ops.measures import Radial, Sphere
from mercer.ops.philox import Stream, bits, normals, signs, uniforms
from mercer.ops.trig import flat_rows
from mercer.store import register


@register("ops.Fastfood")
@dataclass(frozen=True)
class Fastfood:
    r"""m frequencies W (m, d) of a radial measure, in blocks W = S H G P H B / (sqrt(L) |G|), L a power of two >= d.

    B are signs, P a permutation, G independent normals. Given B and P, each row of H G P H B / sqrt(L) is a rotation of
    G: Gaussian, exactly. Divided by its norm |G| it is a uniform direction, and S gives it a norm from the measure's own
    law in L dimensions, stratified over the block. So the kernel's estimate is unbiased at every d; columns beyond d meet
    the zeros that X is padded with, and leave the measure's margin in d dimensions. Rows of one block are dependent:
    the variance is that of independent rows but for terms of order 1/L. Memory O(m), time O(m log d) a row.

    References: Le, Sarlos and Smola, Fastfood: approximating kernel expansions in loglinear time (2013).

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
            raise ValueError(f"{self.measure!r} has no structured frequencies: it changes under rotations or padding; use 'auto'.")

    @property
    def L(self) -> int:
        """The width of a block: d padded to a power of two."""
        return max(PASS, 1 << (self.d - 1).bit_length())

    def project(self, X: Array, out: Array) -> None:
        """out (n, m) = X W' for rows X (n, d) of the same dtype; calls for different rows may run in threads."""
        X = np.ascontiguousarray(X)
        if X.shape[1] != self.d or out.shape != (len(X), self.m) or out.dtype != X.dtype:
            raise ValueError(f"X has shape {X.shape} and out {out.shape}, (n, {self.d}) and (n, {self.m}) expected; give such arrays.")
        sandwich(X.shape[0], self.d, self.m, *flat_rows(X), *_tables(self, X.dtype.char), *flat_rows(out))

    def matrix(self) -> Array:
        """W (m, d), dense: what `project` multiplies by, for tests."""
        out = np.empty((self.d, self.m))
        self.project(np.eye(self.d), out)
        return out.T


def reference_project(structured: Fastfood, X: Array, out: Array) -> None:
    """`Fastfood.project` by dense matrices."""
    from scipy.linalg import hadamard

    H, x = hadamard(structured.L), np.pad(X, ((0, 0), (0, structured.L - structured.d)))
    blocks = [(((x * b) @ H)[:, p] * g) @ H * s for b, p, g, s in zip(*_tables(structured, "d"), strict=True)]
    out[...] = np.hstack(blocks)[:, : structured.m]


@lru_cache(maxsize=16)
def _tables(structured: Fastfood, dtype: str) -> tuple[Array, Array, Array, Array]:
    """B, P, G and S, each (blocks, L); S holds all the scales. Any block could be drawn alone."""
    stream, L = structured.stream, structured.L
    blocks = -(-structured.m // L)
    B, G = signs(stream.child(0), 0, blocks, L), normals(stream.child(1), 0, blocks, L)
    P = np.argsort(bits(stream.child(2), 0, blocks, L), axis=1, kind="stable")
    S = _norms(structured.measure, L, blocks, stream.child(3)) / (np.sqrt(L) * np.linalg.norm(G, axis=1, keepdims=True))
    return B.astype(dtype), P, G.astype(dtype), S.astype(dtype)


def _norms(measure: Radial, L: int, blocks: int, stream: Stream) -> Array:
    """Norms (blocks, L), in each block one of each stratum of their law, in random order."""
    strata = np.argsort(bits(stream.child(0), 0, blocks, L), axis=1, kind="stable")
    u = (strata + uniforms(stream.child(1), 0, blocks, L)) / L
    return measure.radius(np.minimum(u, 1 - 2.0**-53), L)
