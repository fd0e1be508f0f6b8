"""The small maps that the duality table joins others with: identity, one, chosen columns, a warp,
rows scaled by a function."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.inputs import Array, Matrix, Table
from mercer.invariants import Each, Floats, Is, Whole
from mercer.kernels import Constant, Linear
from mercer.lifts.base import Lift, fitted, needs_target
from mercer.ops.frozen import FrozenArray
from mercer.pairs.linear import mapped, through, width_in
from mercer.store import register


@register("lifts.Identity")
class Identity(Lift):
    """phi(x) = x, or A^(1/2) x for a metric A; its kernel is Linear(A).

    Parameters
    ----------
    metric : array-like of shape (d, d), default=None
        A, symmetric and positive semidefinite; None is the identity.

    Examples
    --------
    >>> Identity().fit_transform([[1.0, 2.0]])
    array([[1., 2.]])
    """

    sparse: ClassVar[bool] = True

    must = dict(root_=Floats("n_features_in_", "n_features_in_") | None)

    def __init__(self, metric: Any = None) -> None:
        self.metric = metric

    def _learn(self, X: Matrix) -> None:
        self.kernel_ = Linear(self.metric)
        self.root_ = (
            None if self.metric is None else _root(np.asarray(self.metric, dtype=np.float64))
        )
        self.n_features_out_ = X.shape[1]

    def _map(self, X: Matrix) -> Matrix:
        return X.copy() if self.root_ is None else np.asarray(X @ self.root_.astype(X.dtype))

    def _names(self, inputs: list[str]) -> list[str]:
        return inputs if self.metric is None else super()._names(inputs)


def _root(A: Array) -> Array:
    values, vectors = np.linalg.eigh(A)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


@register("lifts.One")
class One(Lift):
    """phi(x) = 1; its kernel is Constant().


    Examples
    --------
    >>> One().fit_transform([[1.0, 2.0]])
    array([[1.]])
    """

    sparse: ClassVar[bool] = True

    def _learn(self, X: Matrix) -> None:
        self.kernel_, self.n_features_out_ = Constant(), 1

    def _map(self, X: Matrix) -> Array:
        return np.ones((X.shape[0], 1), X.dtype)

    def _names(self, inputs: list[str]) -> list[str]:
        return ["1"]


@register("lifts.Around")
class Around(Lift):
    """A map after (or beside) something else: what they share."""

    sparse: ClassVar[bool] = True
    lift: Any

    must = dict(lift_=Is("Lift", n_features_out_="n_features_out_"))

    def _names(self, inputs: list[str]) -> list[str]:
        return (
            super()._names(inputs)
            if self._renames()
            else list(self.lift_.get_feature_names_out(self._inner(inputs)))
        )

    def _renames(self) -> bool:
        return False

    def _inner(self, inputs: list[str]) -> list[str]:
        return inputs

    def _learn_inner(self, X: Matrix, y: Any = None) -> None:
        self.lift_ = fitted(clone(self.lift), X, y)
        self.n_features_out_ = self.lift_.n_features_out_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = needs_target(self.lift)
        return tags


@register("lifts.OnColumnsLift")
class OnColumnsLift(Around):
    """phi of some columns, by position or name; its kernel is k.on_columns(columns).

    Parameters
    ----------
    lift : Lift
        The phi.
    columns : list of int or str
        Positions or names.

    Examples
    --------
    >>> OnColumnsLift(Identity(), [1]).fit_transform([[1.0, 2.0]])
    array([[2.]])
    """

    must = dict(positions_=Each(Whole(0, "n_features_in_"), size="lift_.n_features_in_"))

    def __init__(self, lift: Any, columns: Any) -> None:
        self.lift = lift
        self.columns = columns

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self.positions_ = [self._table(X).position(c) for c in self.columns]
        self._learn_inner(X[:, self.positions_], y)
        self.kernel_ = self.lift_.kernel_.on_columns(self.positions_)

    def _map(self, X: Matrix) -> Matrix:
        return self.lift_.transform(X[:, self.positions_])

    def _inner(self, inputs: list[str]) -> list[str]:
        return [inputs[i] for i in self.positions_]


@register("lifts.WarpedLift")
class WarpedLift(Around):
    """phi(f(x)); its kernel is k.warped(f).

    Parameters
    ----------
    lift : Lift
        The phi.
    f : callable
        A function of rows (n, d) that gives rows (n, d').

    Examples
    --------
    >>> WarpedLift(Identity(), np.square).fit_transform([[3.0]])
    array([[9.]])
    """

    def __init__(self, lift: Any, f: Any) -> None:
        self.lift = lift
        self.f = f

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self._learn_inner(self._warp(X), y)
        self.kernel_ = self.lift_.kernel_.warped(self.f)

    def _map(self, X: Matrix) -> Matrix:
        return self.lift_.transform(self._warp(X))

    def _warp(self, X: Matrix) -> Matrix:
        return mapped(Table(X), self.f).data.astype(X.dtype)

    def _renames(self) -> bool:
        return True


@register("lifts.MappedLift")
class MappedLift(Around):
    """phi(S x) for a matrix S; its kernel is k.mapped(S).

    Parameters
    ----------
    lift : Lift
        The phi.
    matrix : array-like of shape (d', d) or (d,)
        S; a vector is the diagonal of a square one.

    Examples
    --------
    >>> MappedLift(Identity(), [[1.0, -1.0]]).fit_transform([[5.0, 2.0]])
    array([[3.]])
    """

    must = dict(matrix_=Is("FrozenArray"))

    def _laws(self) -> str | None:
        shape = len(self.matrix_), width_in(self.matrix_)
        wanted = self.lift_.n_features_in_, self.n_features_in_
        return None if shape == wanted else f"maps by a matrix of shape {shape}, not {wanted}"

    def __init__(self, lift: Any, matrix: Any) -> None:
        self.lift = lift
        self.matrix = matrix

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self.matrix_ = FrozenArray.of(self.matrix)
        self._learn_inner(through(X, self.matrix_), y)
        self.kernel_ = self.lift_.kernel_.mapped(self.matrix_)

    def _map(self, X: Matrix) -> Matrix:
        return self.lift_.transform(through(X, self.matrix_))

    def _renames(self) -> bool:
        return True


@register("lifts.WeightedLift")
class WeightedLift(Around):
    """f(x) phi(x); its kernel is k.weighted(f).

    Parameters
    ----------
    lift : Lift
        The phi.
    f : callable
        A function of rows (n, d) that gives (n,).

    Examples
    --------
    >>> WeightedLift(Identity(), lambda X: X.sum(1)).fit_transform([[1.0, 2.0]])
    array([[3., 6.]])
    """

    def __init__(self, lift: Any, f: Any) -> None:
        self.lift = lift
        self.f = f

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self._learn_inner(X, y)
        self.kernel_ = self.lift_.kernel_.weighted(self.f)

    def _map(self, X: Matrix) -> Matrix:
        return rows_times(
            self.lift_.transform(X), np.asarray(self.f(X)).reshape(-1).astype(X.dtype)
        )


@register("lifts.NormalizedLift")
class NormalizedLift(Around):
    """phi(x) / sqrt(k(x, x)), and 0 where that is 0; its kernel is k.normalized().

    Parameters
    ----------
    lift : Lift
        The phi.
    kernel : Kernel, default=None
        The k; None is that of the map.

    Examples
    --------
    >>> NormalizedLift(Identity()).fit_transform([[3.0, 4.0]])
    array([[0.6, 0.8]])
    """

    def __init__(self, lift: Any, kernel: Any = None) -> None:
        self.lift = lift
        self.kernel = kernel

    def _learn(self, X: Matrix, y: Any = None) -> None:
        self._learn_inner(X, y)
        self.of_ = self.lift_.kernel_ if self.kernel is None else self.kernel
        self.kernel_ = self.of_.normalized()

    def _map(self, X: Matrix) -> Matrix:
        size = np.sqrt(self.of_.diag(X))
        return rows_times(
            self.lift_.transform(X), np.divide(1, size, out=np.zeros_like(size), where=size > 0)
        )


def rows_times(F: Matrix, w: Array) -> Matrix:
    """Rows of F times a number each."""
    return sp.diags_array(w).dot(F).tocsr() if sp.issparse(F) else F * w[:, None]
