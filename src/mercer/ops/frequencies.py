"""Frequencies of random Fourier features: rows w with E cos(w'(x - z)) = k(x, z), any rows of them
drawn alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise
from typing import Any

import numpy as np
from scipy.fft import irfft

from mercer.inputs import Array
from mercer.ops.measures import Measure, Radial
from mercer.ops.philox import Stream, normals, permutation, uniforms
from mercer.ops.reflections import turn, turned
from mercer.ops.sobol import sobol_points
from mercer.ops.threads import parallel_map, single_blas

FACTORS, REFLECTIONS = "factors", "reflections"  # how random bases are made of normals
LONG = 8  # times the root of d: norms from which float32 is not enough
SEARCH_ROWS = 512  # most rows of one search: the energy it minimises has n^2 terms
MAX_TURNED_ROWS = 2048  # rows turned together beyond that cost more, d n^2, than they gain
MAX_SOBOL_COLUMNS = 21201  # dimensions for which direction numbers are published (Joe & Kuo 2008)
MAX_SEARCH_COLUMNS = 256  # beyond, 512 vectors are too few for an optimum much below a tight frame
DESCENT_STEPS = 24  # the error falls little after that
TRINOMIALS = {16: 1, 64: 2, 256: 1}  # d: s, with x^k + x^s + 1 irreducible over GF(2), d = 2^(k+1)
MAX_NORM = (
    1e5  # heavy tails are cut there in the search: the energy of longer vectors is lost to rounding
)
MIN_GRADIENT = 1e-200  # a start without gradient stays where it is


def frequencies(
    measure: Measure,
    d: int,
    m: int,
    stream: Stream,
    kind: str = "auto",
    start: int = 0,
    stop: int | None = None,
    *,
    rotations: str = FACTORS,
    dtype: Any = np.float64,
    times: Array | None = None,
) -> Array:
    """Rows start to stop of the m frequencies (m, d) of a map, at unit bandwidth (divide column j
    by bandwidth_j); in float32 those of float64 to rounding, at less cost. Their products with the
    columns of a matrix `times` (d, k) need no bases, which is less work for few columns.

    Every row follows the measure exactly, whatever the kind, and rows of different streams are
    independent: the estimate is unbiased, also from a part of the rows, and sums over two streams
    serve the product of two kernels.

    kind: "iid"; "orthogonal", Haar bases with stratified norms; "qmc", scrambled Sobol points
    through inverse distribution functions; "design", optimised directions, stratified norms, turned
    at random; "auto", see `choose`.

    rotations: how random bases are made of normals: "reflections", or as in files of before these,
    "factors".

    >>> from mercer.ops.measures import Normal
    >>> W = frequencies(Normal(), 4, 100, Stream(7))
    >>> np.array_equal(frequencies(Normal(), 4, 100, Stream(7), start=30, stop=40), W[30:40])
    True
    """
    start, stop, _ = slice(start, stop).indices(m)
    kind = choose(measure, d, m) if kind == "auto" else kind
    if kind not in RULES:
        raise ValueError(f"kind must be one of auto, {', '.join(RULES)}, got {kind!r}.")
    basis = Bases(rotations, dtype, times)
    return RULES[kind](measure, d, m, stream, start, max(start, stop), basis)


def choose(measure: Measure, d: int, m: int) -> str:
    """The rule of "auto": what had the least mean squared error over a grid of d, m, bandwidths and
    measures.

    A radial measure can be turned, so that designs are unbiased: they were best at all d (for the
    Gaussian Sobol points overtake them at d <= 4 and m of several thousand, where both errors are
    tiny). One with independent coordinates cannot: Sobol points, unless d is so large, beyond m/2,
    that they are no better than iid ones.

    >>> from mercer.ops.measures import CauchyColumns, Normal
    >>> choose(Normal(), 8, 512), choose(CauchyColumns(), 8, 512), choose(CauchyColumns(), 800, 512)
    ('design', 'qmc', 'iid')
    """
    if isinstance(measure, Radial):
        return "design"
    return "qmc" if d <= min(m / 2, MAX_SOBOL_COLUMNS) else "iid"


@dataclass(frozen=True)
class Bases:
    """How random bases are made, in which precision, and what they are multiplied with."""

    rotations: str = FACTORS
    dtype: Any = np.float64
    times: Array | None = None

    def plain(self, W: Array) -> Array:
        """Frequencies that need none."""
        return (W if self.times is None else W @ self.times).astype(self.dtype, copy=False)

    def rows(self, n: int, d: int, stream: Stream, dtype: Any) -> Array:
        """n <= d rows of a random orthogonal matrix, or their products."""
        if self.times is None:
            make = haar if self.rotations == FACTORS else turned
            return make(n, d, stream).astype(dtype) if make is haar else turned(n, d, stream, dtype)
        A = np.zeros((d, self.times.shape[1]), dtype)
        A[: len(self.times)] = self.times
        if self.rotations == FACTORS:
            return haar(n, d, stream).astype(dtype) @ A
        return turn(A, n, stream)


def _iid(
    measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int, basis: Bases
) -> Array:
    return basis.plain(measure.rows(uniforms(stream, start, stop, measure.width(d)), d))


def _qmc(
    measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int, basis: Bases
) -> Array:
    return basis.plain(measure.rows(sobol_points(stream, start, stop, measure.width(d)), d))


def _orthogonal(
    measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int, basis: Bases
) -> Array:
    law = _radial(measure)
    n = law.ambient(d)
    return _turned(law, d, range(0, m + n, n), lambda Q, rows: Q, stream, start, stop, basis)


def _design(
    measure: Measure, d: int, m: int, stream: Stream, start: int, stop: int, basis: Bases
) -> Array:
    law = _radial(measure)
    n = law.ambient(d)

    def spread(Q: Array, rows: int) -> Array:
        if rows <= n and n > 1:
            return Q
        if n > MAX_SEARCH_COLUMNS:
            return _framed(Q, rows)
        return design(law, n, rows).astype(Q.dtype, copy=False) @ Q

    return _turned(law, d, _edges(m, n), spread, stream, start, stop, basis)


def _edges(m: int, d: int) -> list[int]:
    """Where the blocks of designs begin: nearly equal, of at most 512 rows where they are searched,
    else d to 2d.

    >>> _edges(1300, 8), _edges(1300, 600)
    ([0, 433, 866, 1300], [0, 650, 1300])
    """
    if d == 1:
        return [0, m]  # strata alone: the more the better
    blocks = max(
        1, m // min(d, MAX_TURNED_ROWS) if d > MAX_SEARCH_COLUMNS else -(-m // SEARCH_ROWS)
    )
    return [m * b // blocks for b in range(blocks + 1)]


def _radial(measure: Measure) -> Radial:
    if isinstance(measure, Radial):
        return measure
    raise ValueError(
        f"{measure!r} changes under rotations and has no orthogonal frequencies; use kind='qmc' or 'iid'."
    )


def _turned(
    law: Radial,
    d: int,
    edges: Sequence[int],
    spread: Callable[[Array, int], Array],
    stream: Stream,
    start: int,
    stop: int,
    basis: Bases,
) -> Array:
    """Rows start to stop of the blocks between edges; only those met are drawn. One of `rows` has
    unit vectors that `spread` makes of a random basis, norms through the strata of their law, and a
    random order."""
    met = [(b, a, z) for b, (a, z) in enumerate(pairwise(edges)) if a < stop and start < z]
    n, columns = law.ambient(d), d if basis.times is None else None

    def block(job: tuple[int, int, int]) -> Array:
        b, a, z = job
        own, rows = stream.child(b), z - a
        r = _norms(law, rows, n, own.child(0))
        long = r.max() > LONG * n**0.5  # angles of long ones need all digits
        Q = basis.rows(min(rows, n), n, own.child(1), np.float64 if long else basis.dtype)
        order = permutation(own.child(2), rows)  # so that each row alone follows the law
        W = spread(Q, rows)[order, :columns]
        W *= r[order, None].astype(W.dtype)
        return W[max(start - a, 0) : stop - a].astype(basis.dtype, copy=False)

    with single_blas():  # the same bits whatever the number of threads
        found = parallel_map(block, met)
    return found[0] if len(found) == 1 else np.concatenate(found or [np.empty((0, d))])


def _norms(law: Radial, rows: int, d: int, stream: Stream) -> Array:
    """One in each stratum of their law."""
    u = (np.arange(rows) + uniforms(stream, 0, rows, 1)[:, 0]) / rows
    return law.radius(
        np.minimum(u, 1 - 2.0**-53), d
    )  # the last stratum may round to 1, where the norm is infinite


RULES = {"iid": _iid, "orthogonal": _orthogonal, "qmc": _qmc, "design": _design}


@lru_cache(maxsize=64)
def design(measure: Radial, d: int, n: int) -> Array:
    """n unit vectors (n, d), for norms that ascend through the n equal strata of the measure:
    turned, frequencies of small error.

    A Haar rotation makes each vector of a fixed set uniform on the sphere, whatever the set: the
    set may be optimised, once for all seeds, and the kernel estimate stays unbiased. What to
    minimise is its mean squared error over differences; if these follow a normal law of
    exponentially distributed variance, which covers a range of bandwidths, it is the energy

        sum_ij 1 / (d/2 + |w_i - w_j|^2) + 1 / (d/2 + |w_i + w_j|^2)

    up to terms that depend on the norms |w_i| alone.

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
    if d > MAX_SEARCH_COLUMNS:
        return _tight_frame(n, d)  # which `_framed` does not form
    r = measure.radius((np.arange(n) + 0.5) / n, d)
    return _descend(_start(n, d), np.minimum(r, MAX_NORM))


def haar(n: int, d: int, stream: Stream) -> Array:
    """n <= d rows of a random orthogonal matrix, uniform over all, by a factor of a normal one.

    >>> Q = haar(2, 3, Stream(7))
    >>> np.allclose(Q @ Q.T, np.eye(2))
    True
    """
    Q, R = np.linalg.qr(normals(stream, 0, n, d).T)
    Q *= np.sign(np.diag(R))  # without the signs LAPACK's convention would show
    return Q.T


def _descend(U: Array, r: Array) -> Array:
    """Gradient descent with Barzilai-Borwein steps; without a line search, so that no branch hangs
    on rounding."""
    g = _gradient(U, r)
    step = 0.05 * np.sqrt(len(U)) / (np.linalg.norm(g) + MIN_GRADIENT)
    for _ in range(DESCENT_STEPS):
        new = _unit(U - step * g)
        change = _gradient(new, r) - g
        step = abs(np.vdot(new - U, change)) / (np.vdot(change, change) + MIN_GRADIENT)
        U, g = new, g + change
    return U


def _gradient(U: Array, r: Array) -> Array:
    """Of the energy along the sphere, up to a factor; a pair's two terms together are 2s / (s^2 -
    t^2)."""
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
    """n rows of bases of R^2k: the unbiased bases exp(2 pi i (a j^2 + b j)/k) / sqrt(k) of C^k, k
    an odd prime.

    >>> C = _chirps(12, 3)
    >>> np.allclose(C[:6] @ C[:6].T, np.eye(6)), bool((abs(C[:6] @ C[6:].T) < 3**-0.5 + 1e-9).all())
    (True, True)
    """
    a, b, j = np.ogrid[: -(-n // (2 * k)), :k, :k]
    golden = (
        a * (5**0.5 - 1) / 2 % 1
    )  # a turn of each basis, without which their inner products favour some values
    return _bases(np.exp(2j * np.pi * ((a * j * j + b * j) % k / k + golden / 4)))[:n]


def _binary_chirps(n: int, d: int) -> Array:
    """n rows of the d/2 unbiased bases of R^d, d = 2^(k+1), k odd: i^(x'Ax) (-1)^(b'x) over binary
    x and b of k digits.

    The A are the Hankel matrices of sequences h_(t+k) = h_t + h_(t+s) mod 2, those of the forms
    Tr(a x^2) of GF(2^k).

    >>> C = _binary_chirps(48, 16)
    >>> np.allclose(abs(C[:16] @ C[16:].T), 1 / 4)
    True
    """
    k = d.bit_length() - 2
    X = (
        np.arange(d // 2)[:, None] >> np.arange(k) & 1
    )  # all binary x, also all b and all first k digits of h
    h = list(X[: -(-n // d)].T)
    for t in range(k - 1):
        h.append(h[t] ^ h[t + TRINOMIALS[d]])
    A = np.array([[h[i + j] for j in range(k)] for i in range(k)])  # (k, k, bases)
    quadratic = np.einsum("xi,xj,ija->ax", X, X, A)
    return _bases(1j ** ((quadratic[:, None] + 2 * X @ X.T) % 4))[:n]


def _bases(Z: Array) -> Array:
    """Orthogonal bases Z (bases, k, k) of C^k as orthonormal ones of R^2k, where i z is orthogonal
    to z; one list."""
    return _unit(_real(np.concatenate([Z, 1j * Z], axis=1).reshape(-1, Z.shape[-1])))


def _tight_frame(n: int, d: int) -> Array:
    """n > d unit vectors with U'U = (n/d) I, as evenly spread as bases even where d does not divide
    n.

    >>> U = _tight_frame(8, 5)
    >>> np.allclose(U.T @ U, 8 / 5 * np.eye(5))
    True
    """
    j, k = np.ogrid[:n, 1 : d // 2 + 1]
    waves = _real(np.exp(2j * np.pi * (j * k % n) / n))
    return _unit(np.hstack([waves, np.full((n, d % 2), 0.5**0.5)]))


def _framed(Q: Array, n: int) -> Array:
    """_tight_frame(n, d) @ Q, whose columns are waves: one Fourier transform.

    >>> Q = haar(5, 5, Stream(7))
    >>> np.allclose(_framed(Q, 8), _tight_frame(8, 5) @ Q)
    True
    """
    d = len(Q)
    spectrum = np.zeros((d // 2 + 1, Q.shape[1]), np.result_type(Q.dtype, np.complex64))
    spectrum[1:].real, spectrum[1:].imag = Q[0 : d - d % 2 : 2], -Q[1::2]
    if d % 2:
        spectrum[0] = 2**0.5 * Q[-1]
    spectrum *= n / (2 * d) ** 0.5
    return np.asarray(irfft(spectrum, n, axis=0))


def _real(Z: Array) -> Array:
    """C^k as R^2k."""
    return np.stack([Z.real, Z.imag], axis=-1).reshape(len(Z), -1)


def _unit(X: Array) -> Array:
    return X / np.linalg.norm(X, axis=1, keepdims=True)
