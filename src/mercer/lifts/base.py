"""Lift: a feature map phi as a scikit-learn transformer, with phi(X) @ phi(Z).T equal or close to
its kernel."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from mercer.engines.lazy import take_dask
from mercer.inputs import Array, Matrix, Table, validate_data
from mercer.invariants import Is, Labels, Text, Whole
from mercer.kernels.defaults import check_paths, takes_positive
from mercer.ops.philox import Stream
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts, settle_allocator
from mercer.store import Saved

if TYPE_CHECKING:
    from mercer.lifts.certificate import Certificate

Seed: TypeAlias = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None
TILE_BYTES = 1 << 20  # of features for one task


class Lift(Saved, TransformerMixin, BaseEstimator):
    """A feature map phi.

    A subclass writes `_learn(X)`, which sets `n_features_out_` and `kernel_`; `_map(X)`, which
    gives the features (n, D); and `_names(inputs)`, where the features have names of their own.

    Attributes
    ----------
    kernel_ : Kernel
        The k that phi(x)'phi(z) is, or is an approximation of.
    n_features_in_ : int
        The columns of the rows.
    n_features_out_ : int
        The number D of features.

    Examples
    --------
    >>> from mercer.kernels import Linear
    >>> class Squares(Lift):
    ...     def _learn(self, X):
    ...         self.n_features_out_, self.kernel_ = X.shape[1], Linear().warped(np.square)
    ...     def _map(self, X):
    ...         return X**2
    >>> Squares().fit_transform([[3.0]])
    array([[9.]])
    """

    sparse: ClassVar[bool] = False  # whether CSR rows are taken
    kernel_: Any
    n_features_in_: int
    n_features_out_: int

    must = dict(
        n_features_in_=Whole(1),
        n_features_out_=Whole(1),
        feature_names_in_=Labels("n_features_in_"),
        kernel_=Is("Kernel") | Text("precomputed") | None,  # None where a part has no kernel
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        take_dask(cls)

    def _fit_dask(self, X: Any, y: Any = None) -> Self:
        """`fit` of a dask collection."""
        from mercer.lifts.partitions import fit_partitions

        fit_partitions(self, X)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the map needs of the rows: their width, for some maps their values, and the
        targets y for the few that say so (`Leaves`, and maps made of them)."""
        X = self._check(X, reset=True)
        self._learn(X, y) if needs_target(self) else self._learn(X)  # type: ignore[call-arg]
        return self

    def transform(self, X: Any) -> Matrix:
        """The features phi(x) of every row, (n, D); float32 stays float32."""
        check_is_fitted(self)
        return self._map(self._check(X, reset=False))

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, those of the kernel by path, as `kernel__bandwidth`."""
        check_paths(self, params)
        return super().set_params(**params)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """A name for every feature, made of the names of the columns."""
        check_is_fitted(self, "n_features_in_")
        return np.asarray(
            self._names(list(_check_feature_names_in(self, input_features))), dtype=object
        )

    def certify(self, X: Any, confidence: float = 0.99, **options: Any) -> Certificate:
        """The error of this map on pairs of rows of X, with a confidence; see `Certificate`."""
        from mercer.lifts.certificate import certify

        check_is_fitted(self)
        return certify(self, X, confidence, **options)

    def _learn(self, X: Matrix) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define _learn(self, X).")

    def _map(self, X: Matrix) -> Matrix:
        raise NotImplementedError(f"{type(self).__name__} must define _map(self, X).")

    def _names(self, inputs: list[str]) -> list[str]:
        return [f"{type(self).__name__.lower()}{i}" for i in range(self.n_features_out_)]

    def _check(self, X: Any, *, reset: bool) -> Matrix:
        if isinstance(X, Table):
            return self._accept(X, reset=reset)
        sparse = "csr" if self.sparse else False
        return validate_data(
            self,
            X,
            reset=reset,
            dtype=[np.float64, np.float32],
            accept_sparse=sparse,
            order="C",
            ensure_all_finite=self._finite,
        )

    @property
    def _finite(self) -> bool | str:
        """What scikit-learn is told of NaN: none, but for maps that have an answer to it."""
        return True

    def _accept(self, X: Table, *, reset: bool) -> Matrix:
        """Rows that an estimator, or another map, has checked already; only they can bring
        names with an array.
        """
        if X.sparse and not self.sparse:
            raise TypeError(
                f"X is sparse (Sparse data was passed), but {type(self).__name__} takes dense rows; use X.toarray()."
            )
        if reset:
            self.n_features_in_ = X.width
            self.__dict__.pop("feature_names_in_", None)
            if X.columns is not None:
                self.feature_names_in_ = np.asarray(X.columns, dtype=object)
        if X.width != self.n_features_in_:
            raise ValueError(
                f"X has {X.width} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input."
            )
        return X.data

    def _for(self, phi: Any, X: Matrix) -> Any:
        """The rows as another map takes them: with names, where it is one of ours."""
        return self._table(X) if isinstance(phi, Lift) else X

    def _table(self, X: Matrix) -> Table:
        """The rows with their columns' names, where they had any."""
        names = getattr(self, "feature_names_in_", None)
        return Table(X, None if names is None else tuple(names))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.sparse
        tags.input_tags.positive_only = takes_positive(getattr(self, "kernel", None))
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    # algebra
    def __add__(self, other: Any) -> Lift:
        """Concatenate: the kernels add."""
        from mercer.lifts.algebra import Concatenate

        return (
            Concatenate([*_parts(self, Concatenate), *_parts(other, Concatenate)])
            if isinstance(other, Lift)
            else NotImplemented
        )

    def __mul__(self, other: Any) -> Lift:
        """Tensor product with an independent copy of the other map (the kernels multiply), or a
        scale.
        """
        from mercer.lifts.algebra import Scaled, Tensor

        if isinstance(other, Real):
            return Scaled(self, float(other))
        return (
            Tensor([*_parts(self, Tensor), *_parts(other, Tensor)])
            if isinstance(other, Lift)
            else NotImplemented
        )

    def __rmul__(self, other: Any) -> Lift:
        from mercer.lifts.algebra import Scaled

        return Scaled(self, float(other)) if isinstance(other, Real) else NotImplemented

    def __rshift__(self, other: Any) -> Lift:
        """Compose: `phi >> psi` is psi(phi(x))."""
        from mercer.lifts.chain import Chain

        return (
            Chain([*_parts(self, Chain), *_parts(other, Chain)])
            if hasattr(other, "transform")
            else NotImplemented
        )


def needs_target(phi: Any) -> bool:
    """Whether a map, or a transformer, learns from targets."""
    return hasattr(phi, "__sklearn_tags__") and bool(get_tags(phi).target_tags.required)


def fitted(phi: Any, X: Any, y: Any) -> Any:
    """A map fitted to rows, and to targets where it learns from them."""
    return phi.fit(X, y) if needs_target(phi) else phi.fit(X)


take_dask(Lift)  # the methods that subclasses leave as they are


def _parts(phi: Any, node: type[Any]) -> list[Any]:
    return list(phi.lifts) if isinstance(phi, node) else [phi]


def seed_of(random_state: Seed) -> int:
    """An integer that stands for all the randomness of a map.

    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63 - 1))
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    raise ValueError(
        f"random_state must be None, an integer >= 0, a RandomState or a Generator, got {random_state!r}."
    )


def stream_of(random_state: Seed) -> Stream:
    """The stream of randomness of a map."""
    return Stream(seed_of(random_state))


def by_rows(X: Matrix, width: int, fill: Callable[[Matrix, slice], None]) -> None:
    """`fill(X[rows], rows)` for pieces of rows whose `width` features take about a megabyte, in
    threads.
    """
    settle_allocator()
    step = max(16, TILE_BYTES // max(1, width * X.dtype.itemsize))
    parallel_map(lambda rows: fill(X[rows], rows), cuts(X.shape[0], step))
