"""A projection fused with the products of columns before it: they go in run by run, and are never
all formed."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.inputs import Array, Matrix
from mercer.invariants import Is
from mercer.lifts.base import Lift
from mercer.lifts.polynomial import Monomials, Products, Subsets
from mercer.lifts.projections import (
    MAX_DENSE_FEATURES,
    GaussianProjection,
    HashedFeatures,
    Projection,
)
from mercer.ops.monomials import Program, expand
from mercer.ops.monomials_csr import expand_csr
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.store import register

PIECE_PRODUCTS = 1 << 12  # of each row that exist at a time, beyond those of lower degree
TILE_BYTES = 1 << 22  # of products held in a task: of dense rows those of lower degree
SHARED_BYTES = 1 << 28  # the same where all rows meet one drawing of normals


def fuse(phi: Any, psi: Any) -> Lift | None:
    """phi >> psi as one map that never forms phi(x), or None where there is no such map.

    Fused are `Monomials` and `Subsets` with the projections, as long as their output is dense: the
    products of a dense row are walked run by run, column times lower degree; those of sparse rows
    are formed for a few rows at a time.

    >>> from mercer.lifts.polynomial import Monomials
    >>> from mercer.lifts.projections import SparseProjection
    >>> fused = fuse(Monomials(3), SparseProjection(1024, random_state=0))
    >>> fused.fit_transform(np.ones((2, 200))).shape, fused.lift_.n_features_out_
    ((2, 1024), 1373701)
    """
    known = isinstance(phi, Monomials | Subsets) and isinstance(psi, Projection)
    large = isinstance(psi, HashedFeatures) and psi.n_features > MAX_DENSE_FEATURES
    return Fused(phi, psi) if known and not large else None


@register("lifts.Fused")
class Fused(Lift):
    """A projection of the products of columns: dense features, kernel that of the products."""

    sparse: ClassVar[bool] = True

    must = dict(
        lift_=Is("Products", n_features_in_="n_features_in_"),
        projection_=Is("Projection", n_features_out_="n_features_out_"),
    )

    def __init__(self, lift: Any, projection: Any) -> None:
        self.lift = lift
        self.projection = projection

    def _learn(self, X: Matrix) -> None:
        self.lift_: Products = clone(self.lift).fit(X)
        self.projection_: Projection = clone(self.projection)
        self.projection_.prepare(X.shape[0], self.lift_.n_features_out_)
        self.n_features_out_ = self.projection_.n_features_out_
        self.kernel_ = self.lift_.kernel_

    def _map(self, X: Matrix) -> Array:
        F = np.zeros((X.shape[0], self.n_features_out_), X.dtype)
        if isinstance(self.projection_, GaussianProjection):
            for rows in self._tiles(X, SHARED_BYTES):  # in threads itself
                self._add(X[rows], F[rows])
        else:
            parallel_map(lambda rows: self._add(X[rows], F[rows]), self._tiles(X, TILE_BYTES))
        return self.projection_.finish(F)

    def _tiles(self, X: Matrix, size: int) -> list[slice]:
        """Rows whose products, those of lower degree of dense ones and all of sparse ones, take
        about that size."""
        program, longest = self.lift_.program_, np.diff(X.indptr).max() if sp.issparse(X) else 0
        held = (
            comb(int(longest) + program.degree, program.degree)
            if sp.issparse(X)
            else max(PIECE_PRODUCTS, _below(program))
        )
        return cuts(X.shape[0], max(1, size // (X.dtype.itemsize * held)))

    def _add(self, X: Matrix, out: Array) -> None:
        if sp.issparse(X):
            self._add_csr(X, out)
            return
        for start, V in runs(self.lift_, X):
            self.projection_.projection_.add(V, start, out)

    def _add_csr(self, X: Matrix, out: Array) -> None:
        phi, A = self.lift_, self.projection_.projection_
        F = expand_csr(phi.program_, X, phi.weights_)[:, phi.start_ :]
        if hasattr(A, "add_csr"):
            A.add_csr(F, out)
            return
        F = F.tocsc()
        for piece in A.pieces(F.shape[1]):
            A.add(F[:, piece], piece.start, out)


def runs(phi: Products, X: Array) -> Iterator[tuple[int, Array]]:
    """The products of dense rows, in order, as (number of the first, values (n, c)); those of lower
    degree are held."""
    program, n = phi.program_, phi.program_.degree
    below = _below(program)
    F = expand(_lower(program), X) if n else np.ones((len(X), 1), X.dtype)
    yield from _pieces(phi, 0, F[:, :below])
    for a in range(program.d if n > 1 else 0):
        first, last, source = program.first[n, a], program.first[n, a + 1], program.parent[n, a]
        for piece in cuts(int(last - first), PIECE_PRODUCTS):
            V = F[:, source + piece.start : source + piece.stop] * X[:, a, None]
            yield from _pieces(phi, int(first) + piece.start, V)


def _pieces(phi: Products, at: int, V: Array) -> Iterator[tuple[int, Array]]:
    """Products number `at` and on (the constant counted), without those that phi leaves out, each
    times its weight."""
    begin = phi.program_.skip + phi.start_
    V, at = V[:, max(0, begin - at) :], max(at, begin) - begin
    for piece in cuts(V.shape[1], PIECE_PRODUCTS):
        here = slice(at + phi.start_ + piece.start, at + phi.start_ + piece.stop)
        yield (
            at + piece.start,
            V[:, piece]
            if phi.weights_ is None
            else V[:, piece] * phi.weights_[here].astype(V.dtype),
        )


def _below(program: Program) -> int:
    """The number of products below the highest degree, the constant among them; or all where none
    is formed."""
    n = program.degree
    return 1 if n == 0 else int(program.first[n, 0 if n > 1 else -1])


def _lower(program: Program) -> Program:
    """The plan without its highest degree, with the constant."""
    k = max(2, program.degree)
    return Program(
        np.minimum(program.caps, k - 1), program.first[:k], program.parent[:k], 0, program.ordered
    )
