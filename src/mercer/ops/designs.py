"""Unit vectors that, given norms and turned at random, are frequencies of small error.

A Haar rotation makes each vector of a fixed set uniform on the sphere, whatever the set: the set may be optimised, once
for all seeds, and the kernel estimate stays unbiased. What to minimise is its mean squared error over differences; if
these follow a normal law of exponentially distributed variance, which covers a range of bandwidths, it is the energy

    sum_ij 1 / (d/2 + |w_i - w_j|^2) + 1 / (d/2 + |w_i + w_j|^2)

up to terms that depend on the norms |w_i| alone.
"""
from __future__ import annotations

from functools import lru_cache
from itertools import count

import numpy as np

from mercer.inputs import Array
from mercer.ops.measures import Radial
from mercer.ops.philox import Stream, normals

WIDEST_SEARCH = 256  # beyond, 512 vectors are too few for an optimum much below a tight frame
STEPS = 24  # the error falls little after that
TRINOMIALS = {16: 1, 64: 2, 256: 1}  # d: s, with x^k + x^s + 1 irreducible over GF(2), d = 2^(k+1)
LARGEST = 1e5  # heavy tails are cut there in the search: the energy of longer vectors is lost to rounding
TINY = 1e-200  # a start without gradient stays where it is


@lru_cache(maxsize=64)
def design(measure: Radial, d: int, n: int) -> Array:
    """n unit vectors (n, d), for norms that ascend through the n equal strata of the measure.

    >>> from mercer.ops.measures import Sphere
    >>> U = design(Sphere(), 3, 4)  # one norm: the diagonals of the cube
    >>> bool(abs(abs(U @ U.T - np.eye(4) * 2 / 3) - 1 / 3).max() < 1e-6)
    True
    """
    U = _vectors(measure, d, n)
    U.flags.writeable = False  # it is shared
    return U


def _vectors(measure: Radial, d: int, n: int) -> Array:
    if d == 1:
        return np.ones((n, 1))
    if n <= d:
        return np.eye(n, d)
    if d > WIDEST_SEARCH:
        return _tight_frame(n, d)
    r = measure.radius((np.arange(n) + 0.5) / n, d)
    return _descend(_start(n, d), np.minimum(r, LARGEST))


def haar(n: int, d: int, stream: Stream) -> Array:
    """n <= d rows of a random orthogonal matrix, uniform over all.

    >>> Q = haar(2, 3, Stream(7))
    >>> np.allclose(Q @ Q.T, np.eye(2))
    True
    """
    Q, R = np.linalg.qr(normals(stream, 0, n, d).T)
    return (Q * np.sign(np.diag(R))).T  # without the signs LAPACK's convention would show


def _descend(U: Array, r: Array) -> Array:
    """Gradient descent with Barzilai-Borwein steps; without a line search, so that no branch hangs on rounding."""
    g = _gradient(U, r)
    step = 0.05 * np.sqrt(len(U)) / (np.linalg.norm(g) + TINY)
    for _ in range(STEPS):
        new = _unit(U - step * g)
        change = _gradient(new, r) - g
        step = abs(np.vdot(new - U, change)) / (np.vdot(change, change) + TINY)
        U, g = new, g + change
    return U


def _gradient(U: Array, r: Array) -> Array:
    """Of the energy along the sphere, up to a factor; a pair's two terms together are 2s / (s^2 - t^2)."""
    W = r[:, None] * U
    t = 2 * W @ W.T
    s = U.shape[1] / 2 + r[:, None] ** 2 + r**2
    G = r[:, None] * ((s * t / (s * s - t * t) ** 2) @ W)
    return G - (G * U).sum(1, keepdims=True) * U


def _start(n: int, d: int) -> Array:
    """Mutually unbiased bases while they last, else Haar bases; the same for every seed."""
    k = next(p for p in count(max(5, (d + 1) // 2)) if all(p % q for q in range(2, p)))
    if d in TRINOMIALS and n <= d * d // 2:
        return _binary_chirps(n, d)
    if d >= 8 and n <= 2 * k * k:  # for smaller d too few of the 2k coordinates would be left
        return _unit(_chirps(n, k)[:, :d])
    return np.concatenate([haar(d, d, Stream(0, (b,))) for b in range(-(-n // d))])[:n]


def _chirps(n: int, k: int) -> Array:
    """n rows of bases of R^2k: the unbiased bases exp(2 pi i (a j^2 + b j)/k) / sqrt(k) of C^k, k an odd prime.

    >>> C = _chirps(12, 3)
    >>> np.allclose(C[:6] @ C[:6].T, np.eye(6)), bool((abs(C[:6] @ C[6:].T) < 3**-0.5 + 1e-9).all())
    (True, True)
    """
    a, b, j = np.ogrid[: -(-n // (2 * k)), :k, :k]
    golden = a * (5**0.5 - 1) / 2 % 1  # a turn of each basis, without which their inner products favour some values
    return _bases(np.exp(2j * np.pi * ((a * j * j + b * j) % k / k + golden / 4)))[:n]


def _binary_chirps(n: int, d: int) -> Array:
    """n rows of the d/2 unbiased bases of R^d, d = 2^(k+1), k odd: i^(x'Ax) (-1)^(b'x) over binary x and b of k digits.

    The A are the Hankel matrices of sequences h_(t+k) = h_t + h_(t+s) mod 2, those of the forms Tr(a x^2) of GF(2^k).

    >>> C = _binary_chirps(48, 16)
    >>> np.allclose(abs(C[:16] @ C[16:].T), 1 / 4)
    True
    """
    k = d.bit_length() - 2
    X = np.arange(d // 2)[:, None] >> np.arange(k) & 1  # all binary x, also all b and all first k digits of h
    h = list(X[: -(-n // d)].T)
    for t in range(k - 1):
        h.append(h[t] ^ h[t + TRINOMIALS[d]])
    A = np.array([[h[i + j] for j in range(k)] for i in range(k)])  # (k, k, bases)
    quadratic = np.einsum("xi,xj,ija->ax", X, X, A)
    return _bases(1j ** ((quadratic[:, None] + 2 * X @ X.T) % 4))[:n]


def _bases(Z: Array) -> Array:
    """Orthogonal bases Z (bases, k, k) of C^k as orthonormal ones of R^2k, where i z is orthogonal to z; one list."""
    return _unit(_real(np.concatenate([Z, 1j * Z], axis=1).reshape(-1, Z.shape[-1])))


def _tight_frame(n: int, d: int) -> Array:
    """n > d unit vectors with U'U = (n/d) I, as evenly spread as bases even where d does not divide n.

    >>> U = _tight_frame(8, 5)
    >>> np.allclose(U.T @ U, 8 / 5 * np.eye(5))
    True
    """
    j, k = np.ogrid[:n, 1 : d // 2 + 1]
    waves = _real(np.exp(2j * np.pi * (j * k % n) / n))
    return _unit(np.hstack([waves, np.full((n, d % 2), 0.5**0.5)]))


def _real(Z: Array) -> Array:
    """C^k as R^2k."""
    return np.stack([Z.real, Z.imag], axis=-1).reshape(len(Z), -1)


def _unit(X: Array) -> Array:
    return X / np.linalg.norm(X, axis=1, keepdims=True)
