"""Leading eigenvectors of the centred kernel matrix, whole or by products with it, and whether it
is of a kernel at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.linalg import cholesky, eigh, qr

from mercer.costs import eigenvectors, eigenvectors_by_blocks, quickest, steps_worth
from mercer.inputs import Array
from mercer.invariants import Floats, Whole
from mercer.linalg.decompose import OVERSAMPLING, Eigenpairs, largest, signed
from mercer.linalg.lanczos import NARROW, WIDE, TooSlow, lanczos
from mercer.operators import Operator, dense
from mercer.ops.philox import Stream, normals
from mercer.ops.symmetric import times
from mercer.ops.threads import parallel_map, single_blas
from mercer.ops.tiles import cuts
from mercer.store import register

KEPT = 0.5  # of the memory limit: a matrix that is multiplied with is kept within it
FACTORED = 5000  # rows up to which it is certain that a matrix is of a kernel
ONE_THREAD = 350  # rows up to which LAPACK gains nothing from another
PIECE_ROWS = 256  # of a matrix that is multiplied with, at a time
IN_CACHE = 4 << 20  # bytes of a matrix that BLAS multiplies one vector with as quickly as its half
# of sqrt(n) max k(x, x): a matrix in float32 tells larger eigenvalues to a 10,000th and better
TOLD = 2e-3
DEPTH, BASIS = (
    8,
    320,
)  # blocks of a Krylov space, or vectors if that is more, before it starts afresh
LOOKS = 4  # blocks between looks at what was found
RESTARTS = 12
TOL = 1e-7  # of |A v - value v| / value
FLOOR = 1e-12  # of the largest eigenvalue: smaller ones are rounding


@register("pca.DualComponents")
@dataclass(frozen=True, eq=False)
class DualComponents:
    """z(x) = dual'k(X, x) - offset; values are the eigenvalues of the centred kernel matrix, total
    their sum over all.

    residual is the largest |A v - value v| / largest value, products how many blocks of vectors K
    was multiplied with.
    """

    values: Array
    vectors: Array
    dual: Array
    offset: Array
    total: float
    residual: float
    products: int

    must = dict(
        values=Floats("k"),
        vectors=Floats("n", "k"),
        dual=Floats("n", "k"),
        offset=Floats("k"),
        products=Whole(),
    )

    def training_scores(self) -> Array:
        """The coordinates of the rows themselves."""
        return self.vectors * np.sqrt(self.values)

    def trimmed(self) -> DualComponents:
        """Without components of eigenvalue zero."""
        on = self.values > 0
        return replace(
            self,
            values=self.values[on],
            vectors=self.vectors[:, on],
            dual=self.dual[:, on],
            offset=self.offset[on],
        )

    def expansion(self, Z: Array) -> Array:
        """gamma (m, n) with sum_i gamma_i phi(x_i) = mean + sum_j z_j v_j."""
        return np.asarray(Z @ self.dual.T + 1 / len(self.dual))


def components(
    op: Operator, k: int, way: str = "auto", seed: int = 0, memory: float = 1e9
) -> DualComponents:
    """The k leading components of the rows of a square operator.

    way: "exact" decomposes the n x n matrix, "iterative" knows it by products, "auto" is what takes
    less, see `way_of`, or the former where the latter did not end in that time. Within half the
    `memory` the matrix is kept between products.

    >>> from mercer.kernels import Linear
    >>> from mercer.operators import KernelOperator
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [3.0, 1.0, 0.1]
    >>> found = components(KernelOperator(Linear(), X), 2)
    >>> bool(np.allclose(found.values, np.linalg.eigvalsh(99 * np.cov(X.T))[:0:-1]))
    True
    """
    n = op.shape[0]
    k = min(k, n)
    most = basis_of(k)
    if way == "auto":
        way, most = way_of(n, k), min(most, steps_worth(n, k))
    if way == "exact" or n <= 4 * (k + OVERSAMPLING):
        found = _decomposed(op, k)
    elif kept(n, memory):
        found = _by_vectors(op, k, most, seed)
    else:
        found = _by_blocks(op, op.astype(np.float64), k, seed)
    s, mean = found.pairs, found.mean
    values = np.where(s.values > FLOOR * s.values.max(initial=0), s.values, 0)
    V = signed(s.vectors)
    dual = V * np.divide(1, np.sqrt(values), out=np.zeros_like(values), where=values > 0)
    dual -= dual.mean(axis=0)  # to the last bit, so that offsets of k(x, .) cancel
    total = max(found.total, 0.0)
    with single_blas():  # its threads would spin for milliseconds, in the way of those of others
        offset = mean @ dual
    return DualComponents(
        values, V * (values > 0), dual, offset, total, found.residual, found.products
    )


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """Leading eigenpairs, and what was met on the way to them: the mean of each row of K, and the
    trace of the centred matrix."""

    pairs: Eigenpairs
    mean: Array
    total: float
    residual: float = 0.0
    products: int = 1


def _trace(op: Operator, mean: Array) -> float:
    return float(op.diag().sum(dtype=np.float64) - mean.sum(dtype=np.float64))


def _decomposed(op: Operator, k: int, K: Array | None = None) -> _Spectrum:
    """Of the whole matrix, which is overwritten."""
    n, exact = op.shape[0], op.astype(np.float64)
    K, mean = dense(exact, np.float64) if K is None else K, np.empty(n)
    with single_blas():  # NumPy's BLAS would keep a core busy while SciPy's begins
        _times_vector(K, 1.0, np.full(n, 1 / max(n, 1)), mean)
    once = [K]  # made anew where LAPACK is asked again, as it overwrites what it reads
    with single_blas() if n <= ONE_THREAD else nullcontext():
        values, vectors = largest(
            lambda: _whole(once.pop() if once else dense(exact, np.float64), mean, mean.mean()),
            k,
            overwrite=True,
        )
    pairs = Eigenpairs(np.maximum(values[::-1], 0), vectors[:, ::-1])
    return _Spectrum(pairs, mean, _trace(exact, mean))


def _by_vectors(op: Operator, k: int, most: int, seed: int) -> _Spectrum:
    """By products of a matrix that is kept with one vector at a time: of float32 rows in float32,
    where that tells what is asked for. Where one vector does not lead to all, or not within so
    many products, whole or by blocks."""
    n = op.shape[0]
    for dtype in dict.fromkeys((op.dtype, WIDE)):
        K = dense(op, dtype)
        mean, ones = np.empty(n, dtype), np.full((1, n), 1 / np.sqrt(n), dtype)
        with single_blas():  # its threads would order sums by their number
            _times_vector(K, 1.0, np.full(n, 1 / n, dtype), mean)
            total = _trace(op.astype(dtype), mean)
            largest = float(np.abs(K.diagonal()).max()) or 1.0
            try:
                found = lanczos(
                    partial(_times_vector, K, 1 / largest),
                    ones,
                    k,
                    most,
                    total=np.inf if getattr(op, "kernel", None) is None else total / largest,
                    least=TOLD * np.sqrt(n) if dtype == NARROW else -np.inf,
                    seed=seed,
                )
            except TooSlow:
                break
        if found is not None:
            s, residual, products = found
            pairs = Eigenpairs(s.values * largest, s.vectors.astype(np.float64))
            return _Spectrum(pairs, mean.astype(np.float64), total, residual, products)
    K = K if K.dtype == WIDE else dense(op, WIDE)
    if eigenvectors(n, k)["exact"] < eigenvectors_by_blocks(n, block_of(n, k)):
        return _decomposed(op, k, K)
    return _by_blocks(op, K, k, seed)


def _by_blocks(op: Operator, K: Array | Operator, k: int, seed: int) -> _Spectrum:
    """By products with several vectors at a time."""
    n = op.shape[0]
    mean = np.asarray(K @ np.full(n, 1 / n))
    found = leading(lambda V: _centred(_times(K, _centred(V))), n, k, seed)
    return _Spectrum(found[0], mean, _trace(op.astype(np.float64), mean), *found[1:])


def _times(K: Array | Operator, V: Array) -> Array:
    """K @ V, rows of a matrix shared between threads."""
    if not isinstance(K, np.ndarray):
        return np.asarray(K @ V)
    out = np.empty((len(K), V.shape[1]))
    parallel_map(lambda s: np.matmul(K[s], V, out=out[s]), cuts(len(K), PIECE_ROWS))
    return out


def _times_vector(K: Array, scale: float, v: Array, out: Array) -> None:
    """out = scale K @ v, the same for any number of threads."""
    if K.nbytes < IN_CACHE:
        np.dot(K, v, out=out)
    else:
        times(K, v, out)
    out *= scale


def _centred(V: Array) -> Array:
    return V - V.mean(axis=0)


def _whole(K: Array, mean: Array, grand: float) -> Array:
    """K - m 1' - 1 m' + mean(m), in the place of K, as LAPACK reads it."""
    K -= mean
    K -= mean[:, None]
    K += grand
    return K.T


def way_of(n: int, k: int) -> str:
    """ "exact" where decomposing the whole matrix of n rows takes less than k components from
    products with it, else "iterative".

    >>> way_of(500, 2), way_of(150, 30)
    ('iterative', 'exact')
    """
    return quickest(eigenvectors(n, k))


def kept(n: int, memory: float) -> bool:
    """Whether the matrix of n rows is kept between products with it."""
    return 8.0 * n * n <= KEPT * memory


def block_of(n: int, k: int) -> int:
    """How many vectors a matrix is multiplied with at a time for k components."""
    return min(n, k + max(OVERSAMPLING, k // 5))


def basis_of(k: int) -> int:
    """How many vectors a space for k components holds at most."""
    return max(DEPTH * (k + OVERSAMPLING), BASIS)


def lowest(op: Operator, top: float, tol: float, seed: int = 0) -> float:
    """The smallest eigenvalue of the centred matrix, whose largest is `top`, where it is below
    -tol; 0 elsewhere.

    Up to 5,000 rows by a Cholesky factor, which is certain; beyond it is sought by products, and
    may be found too large.

    >>> from mercer.operators.stored import GivenOperator
    >>> K = GivenOperator(np.diag([3.0, 3.0, -1.0, -1.0]))
    >>> round(lowest(K, 3.0, 1e-9), 9), lowest(K, 3.0, 1.5)
    (-1.0, 0.0)
    """
    n = op.shape[0]
    if n > FACTORED:
        low = (
            top
            - leading(lambda V: top * V - _centred(op @ _centred(V)), n, 1, seed, restarts=2)[
                0
            ].values[0]
        )
        return float(low) if low < -tol else 0.0
    A = dense(op, np.float64)
    A -= A.mean(axis=0)
    A -= A.mean(axis=1)[:, None]
    A.flat[:: n + 1] += tol
    try:
        cholesky(A.T, lower=True, check_finite=False)
        return 0.0
    except np.linalg.LinAlgError:
        return (
            float(eigh(A, eigvals_only=True, subset_by_index=(0, 0), check_finite=False)[0]) - tol
        )


def asymmetry(K: Array) -> float:
    """The largest |K_ij - K_ji| as a share of the largest |K_ij|; some rows at a time.

    >>> asymmetry(np.array([[1.0, 4.0], [3.0, 2.0]]))
    0.25
    """
    pieces = cuts(len(K), 256)
    most = max(float(np.abs(K[at]).max()) for at in pieces)
    return max(float(np.abs(K[at] - K[:, at].T).max()) for at in pieces) / (most or 1.0)


def leading(
    product: Callable[[Array], Array], n: int, k: int, seed: int = 0, *, restarts: int = RESTARTS
) -> tuple[Eigenpairs, float, int]:
    """The k leading eigenpairs of A >= 0 known by products A @ V: block Krylov spaces, restarted
    from their best vectors.

    Stops where every |A v - value v| is below 1e-7 of its value, or of what rounding leaves;
    returns the largest of them as a share of the largest value, and the number of products. Musco
    and Musco, Randomized block Krylov methods (2015).

    >>> A = np.diag(0.9 ** np.arange(200.0))
    >>> s, residual, products = leading(lambda V: A @ V, 200, 3)
    >>> s.values.round(9), residual < 1e-7
    (array([1.  , 0.9 , 0.81]), True)
    """
    with single_blas():  # its threads cost more than they bring to matrices of few columns
        return _leading(product, n, k, seed, restarts)


def _leading(
    product: Callable[[Array], Array], n: int, k: int, seed: int, restarts: int
) -> tuple[Eigenpairs, float, int]:
    width, products = block_of(n, k), 0
    depth = max(DEPTH, BASIS // width)
    most = max(min(n, depth * width), width) + width
    room, images = np.empty((n, most), order="F"), np.empty((n, most), order="F")
    V = qr(normals(Stream(seed), 0, n, width), mode="economic", check_finite=False)[0]
    for _ in range(restarts):
        r = 0
        left = np.full(k, np.inf)
        for more in range(1, depth + 1):
            at = slice(r, r + V.shape[1])
            room[:, at], images[:, at] = V, product(V)
            r, products = at.stop, products + 1
            V = _fresh(images[:, at], room[:, :r])
            done = r >= min(n, depth * width) or more == depth or not V.shape[1]
            if more % LOOKS == 0 or done:  # looking costs more than a product
                s = _ritz(room[:, :r], images[:, :r], k, width)
                left = np.linalg.norm(s.images - s.vectors[:, :k] * s.values[:k], axis=0)
                if done or _small(left, s.values):
                    break
        V = s.vectors
        if _small(left, s.values):
            break
    return s.top(k), float(left.max() / max(s.values[0], 1e-300)), products


def _small(left: Array, values: Array) -> bool:
    return bool((left <= np.maximum(TOL * values[: len(left)], FLOOR * values[0])).all())


@dataclass(frozen=True, eq=False)
class Ritz(Eigenpairs):
    """Eigenpairs in the span of a basis, with A times the first k vectors."""

    images: Array


def _ritz(Q: Array, AQ: Array, k: int, width: int) -> Ritz:
    T = Q.T @ AQ
    first = max(len(T) - width, 0)
    values, turn = largest(lambda: (T + T.T) / 2, len(T) - first)
    turn = turn[:, ::-1]
    return Ritz(np.maximum(values[::-1], 0), Q @ turn, AQ @ turn[:, :k])


def _fresh(W: Array, Q: Array) -> Array:
    """An orthonormal basis of what W adds to the span of Q."""
    for _ in range(2):  # twice is enough
        W, R = qr(W - Q @ (Q.T @ W), mode="economic", check_finite=False)
    return W[:, np.abs(np.diag(R)) > 0.5]  # what the second pass takes away was not new
