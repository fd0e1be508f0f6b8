"""Random projections: linear maps to fewer dimensions that keep inner products."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.inputs import Array, Matrix
from mercer.invariants import Is
from mercer.kernels import Linear
from mercer.kernels.base import whole
from mercer.kernels.params import plain
from mercer.lifts.base import Lift, Seed, by_rows, stream_of
from mercer.lifts.preimages import preimages
from mercer.ops.projections import Hashed, Normals, projection_dim
from mercer.ops.tiles import cuts
from mercer.store import register
from mercer.text.named import ANY_WIDTH

PIECE_COLUMNS = 1 << 12  # of A'w that exist at a time
AUTO_ENTRIES = 4  # most entries a column of a sparse projection, where nothing else is asked for


class Projection(Lift):
    """x -> A x for a random matrix A (m, d) that is its seed: nothing of it is kept."""

    sparse: ClassVar[bool] = True
    projection_: Normals | Hashed

    must = dict(projection_=Is("Normals", "Hashed", m="n_features_out_"))

    def prepare(self, n: int, width: int) -> None:
        """What `fit` learns of n rows of that width, without the rows."""
        self.n_features_in_ = width
        self.projection_ = self._draw(n)
        self.n_features_out_ = self.projection_.m
        self.kernel_ = Linear()

    def _learn(self, X: Matrix) -> None:
        self.prepare(*X.shape)

    def _draw(self, n: int) -> Normals | Hashed:
        raise NotImplementedError(f"{type(self).__name__} must define _draw(self, n).")

    def finish(self, F: Array) -> Array:
        """The features of A x, in place: A x itself."""
        return F

    @property
    def components_(self) -> Matrix:
        """The matrix B (m, d) of phi(x) = B x, made of the seed at every call and never kept.

        CSR where entries are hashed, else dense: for many columns `transform`, `inner` and
        `inverse_transform` need pieces of it alone.
        """
        check_is_fitted(self)
        B = self._columns(0, self._width(AttributeError))
        return B.tocsr() if sp.issparse(B) else np.ascontiguousarray(B)

    def inverse_transform(self, F: Any) -> Array:
        """The shortest rows (n, d) whose features are nearest to F (n, m): F times the
        pseudo-inverse of B'.

        Below d features transforming them gives F again, but for what B cannot reach. A system
        of min(m, d) unknowns is solved at every call; B itself exists in pieces alone.
        """
        check_is_fitted(self)
        F = check_array(F, accept_sparse="csr", dtype=[np.float64, np.float32])
        if F.shape[1] != self.n_features_out_:
            raise ValueError(
                f"F has {F.shape[1]} columns, but there are {self.n_features_out_} features; give what transform gave."
            )
        d = self._width(ValueError)
        return preimages(self._columns, d, F).astype(F.dtype, copy=False)

    def _width(self, error: type[Exception]) -> int:
        """The columns of B; an error where they have no end."""
        if self.n_features_in_ == ANY_WIDTH:
            raise error(
                "rows were hashed by name, so the matrix has no last column; fit rows of numbers for it."
            )
        return self.n_features_in_

    def _columns(self, start: int, stop: int) -> Matrix:
        """Columns start to stop of B."""
        return self.projection_.columns(start, stop, np.float64)

    def inner(self, X: Any, w: ArrayLike) -> Array:
        """The inner products (A x, w) of every row with w (m,), without A x.

        The row meets A'w, piece by piece.
        """
        check_is_fitted(self)
        X = self._check(X, reset=False)
        return self._inner(X, self._weights(w, X.dtype))

    def _inner(self, X: Matrix, w: Array) -> Array:
        out, X = np.zeros(X.shape[0], X.dtype), X.tocsc() if sp.issparse(X) else X
        for piece in cuts(X.shape[1], PIECE_COLUMNS):
            out += X[:, piece] @ self.projection_.back(piece.start, piece.stop, w)
        return out

    def _weights(self, w: ArrayLike, dtype: DTypeLike) -> Array:
        w = np.ascontiguousarray(w, dtype)
        if w.shape != (self.n_features_out_,):
            raise ValueError(
                f"w must be a vector of {self.n_features_out_} weights, one a feature, but its shape is {w.shape}."
            )
        return w


@register("lifts.GaussianProjection")
class GaussianProjection(Projection):
    """phi(x) = Z x / sqrt(m), Z (m, d) of independent normals.

    phi(x)'phi(z) has mean x'z, variance (|x|^2|z|^2 + (x'z)^2)/m. Theorem 1: |phi(v)|^2 / |v|^2
    is within 2 sqrt(t/m) + 2t/m of 1 with probability 1 - 2 exp(-t). Without `n_features` the
    dimension is the least for which all inner products of the rows of `fit`, scaled to norm 1,
    are within `eps` with probability 1 - `delta` (`projection_dim`). Z is drawn anew in pieces
    at every transform.

    Parameters
    ----------
    n_features : int or "auto", default=None
        The dimension m; None or "auto" takes that of the theorem.
    eps : float, default=None
        The error that the theorem is asked for; None is 0.1.
    delta : float, default=0.01
        The probability of a larger one.
    random_state : int, RandomState, Generator or None, default=None
        The map is its seed.

    References
    ----------
    Johnson and Lindenstrauss (1984); Dasgupta and Gupta, An elementary proof of a theorem of J.
    and L. (2003).

    Examples
    --------
    >>> X = np.eye(3, 5000)
    >>> F = GaussianProjection(eps=0.2, random_state=0).fit_transform(X)
    >>> F.shape[1] < 5000, bool(np.abs(F @ F.T - np.eye(3)).max() < 0.2)
    (True, True)
    """

    projection_: Normals

    def __init__(
        self,
        n_features: int | str | None = None,
        *,
        eps: float | None = None,
        delta: float = 0.01,
        random_state: Seed = None,
    ) -> None:
        self.n_features = n_features
        self.eps = eps
        self.delta = delta
        self.random_state = random_state

    def _draw(self, n: int) -> Normals:
        m = dimension(self.n_features, self.eps, self.delta, n)
        return Normals(m, stream_of(self.random_state))

    def _map(self, X: Matrix) -> Array:
        F, X = (
            np.zeros((X.shape[0], self.n_features_out_), X.dtype),
            X.tocsc() if sp.issparse(X) else X,
        )
        for piece in self.projection_.pieces(X.shape[1]):
            self.projection_.add(X[:, piece], piece.start, F)
        return F


@register("lifts.SparseProjection")
class SparseProjection(Projection):
    """phi(x) = A x with s entries +-1/sqrt(s) a column, one in each of s blocks of m/s rows.

    Their places are hashed.

    phi(x)'phi(z) has mean x'z, and |phi(x)|^2 the variance (2/m)(|x|_2^4 - |x|_4^4), whatever s
    is: that is the promise at small s, 1 to 8, a bound by Chebyshev for each pair. The promise
    of Theorem 2, with exponential tails for every x, needs columns that overlap little, s of
    about 2.3 sqrt(m ln d). A row costs s operations a nonzero.

    With `signed=False` all entries are 1/sqrt(s): the inner product then has the bias (s/m)(sum
    x sum z - x'z), which is taken away by subtracting from phi(x) its mean and dividing by
    sqrt(1 - s/m); the features are dense.

    Parameters
    ----------
    n_features : int or "auto", default=1024
        The dimension m, a multiple of s; "auto" takes that of Theorem 1 (`GaussianProjection`),
        rounded up to a multiple of s, which at small s is a size without its promise.
    s : int or "auto", default="auto"
        Entries a column; "auto" is the largest divisor of m up to 4.
    signed : bool, default=True
        Whether entries have random signs.
    dense_output : bool, default=False
        Whether CSR rows give a dense array instead of CSR rows.
    eps : float, default=None
        The error that "auto" asks for; None is 0.1.
    delta : float, default=0.01
        The probability of a larger one.
    random_state : int, RandomState, Generator or None, default=None
        The map is its seed.

    References
    ----------
    Kane and Nelson, Sparser Johnson-Lindenstrauss transforms (2014); Weinberger et al., Feature
    hashing (2009).

    Examples
    --------
    >>> X = sp.csr_array(np.eye(3, 10_000))
    >>> F = SparseProjection(64, s=4, random_state=0).fit_transform(X)
    >>> F.nnz, (F.multiply(F)).sum(1)
    (12, array([1., 1., 1.]))
    """

    projection_: Hashed

    def __init__(
        self,
        n_features: int | str = 1024,
        s: int | str = "auto",
        signed: bool = True,
        *,
        dense_output: bool = False,
        eps: float | None = None,
        delta: float = 0.01,
        random_state: Seed = None,
    ) -> None:
        self.n_features = n_features
        self.s = s
        self.signed = signed
        self.dense_output = dense_output
        self.eps = eps
        self.delta = delta
        self.random_state = random_state

    def _draw(self, n: int) -> Hashed:
        m = dimension(self.n_features, self.eps, self.delta, n)
        if isinstance(self.n_features, str):
            entries = (
                AUTO_ENTRIES if isinstance(self.s, str) else whole(plain(self.s), "s", least=1)
            )
            m += -m % entries
        drawn = hashed(m, self.s, self.signed, self.random_state)
        if self._debiased and drawn.m == drawn.s:
            raise ValueError(
                f"signed=False needs n_features > s to take its bias away, both are {drawn.m}; raise n_features."
            )
        return drawn

    @property
    def _debiased(self) -> bool:
        return not self.signed

    def _stays_sparse(self, X: Matrix) -> bool:
        return sp.issparse(X) and not self._debiased and not self.dense_output

    def _map(self, X: Matrix) -> Matrix:
        return (
            sparse_product(self.projection_, X)
            if self._stays_sparse(X)
            else self.finish(dense_product(self.projection_, X))
        )

    def finish(self, F: Array) -> Array:
        """The features of A x, in place: without signs their bias is taken away."""
        return _centred(F, self.projection_.s) if self._debiased else F

    def _columns(self, start: int, stop: int) -> Matrix:
        B = super()._columns(start, stop)
        return self.finish(np.ascontiguousarray(B.toarray().T)).T if self._debiased else B

    def _inner(self, X: Matrix, w: Array) -> Array:
        if self._debiased:
            w = _centred(w.copy(), self.projection_.s)  # (Ax - mean, w) = (Ax, w - mean)
        return self.projection_.inner(X, w) if sp.issparse(X) else super()._inner(X, w)


def dimension(n_features: object, eps: float | None, delta: float, n: int) -> int:
    """The dimension that users asked for, or that of Theorem 1 for n rows."""
    if n_features is None or (isinstance(n_features, str) and n_features == "auto"):
        return projection_dim(n, 0.1 if eps is None else eps, delta)
    if eps is not None:
        raise ValueError(
            f'n_features={n_features!r} and eps={eps!r} each fix the dimension; give one of them (n_features="auto" leaves it to eps).'
        )
    return whole(plain(n_features), "n_features", least=1)


def hashed(n_features: object, s: object, signed: object, random_state: Seed) -> Hashed:
    """The matrix of s entries a column, by what users said of it."""
    m = whole(plain(n_features), "n_features", least=1)
    if not isinstance(signed, bool | np.bool_):
        raise ValueError(f"signed must be True or False, got {signed!r}.")
    if isinstance(s, str) and s == "auto":
        # without signs a column that fills all rows is the bias alone
        most = min(AUTO_ENTRIES, m if signed else m - 1)
        entries = max((t for t in range(1, most + 1) if m % t == 0), default=1)
    else:
        entries = whole(plain(s), "s", least=1)
    if m % entries:
        raise ValueError(
            f"s must divide n_features, got s={entries} and n_features={m}; use n_features={m + entries - m % entries}."
        )
    return Hashed(m, entries, bool(signed), stream_of(random_state))


def sparse_product(A: Hashed, X: Matrix) -> Matrix:
    return A.sparse(X if sp.issparse(X) else sp.csr_matrix(X))


def dense_product(A: Hashed, X: Matrix) -> Array:
    F = np.zeros((X.shape[0], A.m), X.dtype)
    add = A.add_csr if sp.issparse(X) else lambda x, out: A.add(x, 0, out)
    by_rows(X, A.m, lambda x, rows: add(x, F[rows]))
    return F


def _centred(F: Array, s: int) -> Array:
    F -= F.mean(-1, keepdims=True)
    F /= F.dtype.type(np.sqrt(1 - s / F.shape[-1]))
    return F
