"""Chains of feature maps: psi(phi(x)), whose kernel is that of psi between features phi.

A projection after products of columns is fused with them: they go in run by run, and are never all
formed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from math import comb
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Each, Is
from mercer.kernels import Linear
from mercer.lifts.algebra import Composite, independent
from mercer.lifts.base import Lift, fitted
from mercer.lifts.hashed import MAX_DENSE_FEATURES, HashedFeatures
from mercer.lifts.polynomial import Monomials, Products, Subsets
from mercer.lifts.projections import GaussianProjection, Projection
from mercer.ops.monomials import Program, expand
from mercer.ops.projections import Hashed
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts
from mercer.store import register

PIECE_PRODUCTS = 1 << 12  # of each row that exist at a time, beyond those of lower degree
TILE_BYTES = 1 << 22  # of products held in a task: of dense rows those of lower degree
SHARED_BYTES = 1 << 28  # the same where all rows meet one drawing of normals


@register("lifts.Chain")
class Chain(Composite):
    """psi(phi(x)): the kernel is that of psi between features phi.

    After a projection, whose kernel is Linear(), it is that of phi.

    Products of columns followed by a projection are fused: the products are never formed.

    Parameters
    ----------
    lifts : list of Lift or transformer
        phi, psi, ..., in the order in which they are applied.

    Examples
    --------
    >>> from mercer.lifts import Monomials, Parabolic
    >>> (Parabolic() >> Monomials(2, include_bias=False)).fit_transform([[2.0]])
    array([[ 2.,  4.,  4.,  8., 16.]])
    """

    must = dict(lifts_=Each(Is("Lift", "TransformerMixin")))

    def _learn(self, X: Matrix, y: Any = None) -> None:
        first, *others = _fused(independent(self.lifts))
        self.lifts_ = [fitted(first, self._for(first, X), y)]
        self.kernel_ = first.kernel_
        F = first.transform(self._for(first, X)) if others else X
        for i, psi in enumerate(others):
            self.lifts_.append(fitted(psi, F, y))
            self.kernel_ = self._after(psi)
            F = psi.transform(F) if i < len(others) - 1 else F
        last = self.lifts_[-1]
        self.n_features_out_ = getattr(last, "n_features_out_", None) or len(
            last.get_feature_names_out()
        )

    def _after(self, psi: Any) -> Any:
        """The kernel of the chain so far."""
        k = getattr(psi, "kernel_", None)
        if k is None or k == Linear():
            return self.kernel_ if k is not None else None
        return k.warped(Before(tuple(self.lifts_[:-1])))

    def _map(self, X: Matrix) -> Matrix:
        return Before(tuple(self.lifts_))(X)

    def _names(self, inputs: list[str]) -> list[str]:
        return list(
            reduce(lambda names, phi: phi.get_feature_names_out(names), self.lifts_, inputs)
        )


@register("lifts.Before")
@dataclass(frozen=True)
class Before:
    """Fitted maps one after the other, as a function of rows."""

    lifts: tuple[Any, ...]

    must = dict(lifts=Each(Is("Lift", "TransformerMixin")))

    def __call__(self, X: Matrix) -> Matrix:
        return reduce(
            lambda F, phi: phi.transform(
                Table(F) if isinstance(phi, Lift) and hasattr(F, "shape") else F
            ),
            self.lifts,
            X,
        )

    def __repr__(self) -> str:
        return " >> ".join(type(phi).__name__ for phi in self.lifts)


def _fused(lifts: list[Any]) -> list[Any]:
    """Neighbours as one map, where there is one that never forms what lies between them."""
    out = lifts[:1]
    for psi in lifts[1:]:
        one = fuse(out[-1], psi)
        out = [*out, psi] if one is None else [*out[:-1], one]
    return out


# a projection and the products of columns before it
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
        F, A = self.lift_.transform(Table(X)), self.projection_.projection_
        if isinstance(A, Hashed):
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
    if phi.constant_:
        yield 0, F[:, :1] * X.dtype.type(1 if phi.weights_ is None else phi.weights_[0])
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
            phi.constant_ + at + piece.start,
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
