"""What estimators over features share: from kernel, lift and `via` to a fitted map, a plan, and batches of features."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import _check_sample_weight, check_X_y

from mercer import methods
from mercer.inputs import Array, Items, Matrix, Table, validate_data
from mercer.invariants import Is, Labels, Whole
from mercer.kernels import positioned
from mercer.kernels.defaults import resolve
from mercer.lifts import KernelLift, Lift
from mercer.models.base import all_or_nothing, bytes_of, items_of
from mercer.models.maps import BATCH_BYTES, MOST_FEATURES, asked, default_features, landmarks_of_items
from mercer.ops.tiles import cuts
from mercer.plan import Plan
from mercer.store import Saved, fingerprint

__all__ = ["BATCH_BYTES", "OverFeatures", "all_or_nothing", "asked", "bytes_of", "default_features"]

VIAS = ("auto", "features", "landmarks")


class OverFeatures(Saved, BaseEstimator):
    """An estimator that is linear in the features of a map.

    `kernel` or `lift` says which (never both), `via` how a kernel becomes features. Fitted: `lift_`, `kernel_`, `plan_`.
    """

    kernel: Any
    lift: Any
    via: Any
    random_state: Any
    memory_limit: Any
    n_features_in_: int
    _of_items: bool = False  # whether rows are items instead of numbers

    must = dict(
        n_features_in_=Whole(1), n_features_lifted_=Whole(1), feature_names_in_=Labels("n_features_in_"), classes_=Labels("K"),
        lift_=Is("Lift", "TransformerMixin", n_features_in_="n_features_in_", n_features_out_="n_features_lifted_"),
    )  # fmt: skip

    def _fit_lift(self, X: Matrix, weight: Array | None = None, *, stream: bool = False) -> None:
        """Choose and fit the map on these rows, which may be the first of a stream."""
        self._set_lift(self._choose_lift(X, weight, stream=stream), X)
        self.kernel_ = self.lift_.kernel_

    def _set_lift(self, lift: Any, X: Matrix) -> None:
        self.lift_ = lift.fit(self._named(X) if isinstance(lift, Lift) else X)
        self.n_features_lifted_ = int(self.lift_.n_features_out_)

    def _choose_lift(self, X: Matrix, weight: Array | None = None, *, stream: bool = False) -> Any:
        if self.lift is not None:
            if self.kernel is not None:
                raise ValueError("give a kernel or a lift, not both.")
            return clone(self.lift)
        kernel = positioned(resolve(self.kernel, X, weight), self._named(X))
        size = asked(self._method())
        if size is None:
            size = MOST_FEATURES if stream else default_features(X.shape[0])
        if isinstance(X, Items):
            return landmarks_of_items(kernel, size, self._method(), self.random_state)
        return KernelLift(kernel, size, method=self._method(), random_state=self.random_state)

    def _named(self, X: Matrix) -> Table:
        """Checked rows with the names of their columns, which kernels and lifts may ask for."""
        names = getattr(self, "feature_names_in_", None)
        return Table(X, None if names is None else tuple(names))

    def _transform(self, X: Matrix) -> Matrix:
        return self.lift_.transform(Table(X) if isinstance(self.lift_, Lift) else X)

    def _method(self) -> methods.Method:
        if isinstance(self.via, methods.Method):
            return self.via
        if self.via not in VIAS:
            raise ValueError(f"via must be one of {', '.join(VIAS)}, or a value of mercer.methods, got {self.via!r}.")
        return methods.Landmarks() if self.via == "landmarks" else methods.Auto()

    def _features_plan(self, n: int, way: str, why: str, passes: int, held: float | None = None) -> Plan:
        D = self.n_features_lifted_
        held = 8.0 * D * D if held is None else held
        settings = {"lift": type(getattr(self.lift_, "map_", self.lift_)).__name__, "n_features": D, "rows": n}
        return Plan(way, why, settings, bytes=held + BATCH_BYTES, flops=float(n) * D * D, passes=passes)

    def _batches(self, n: int) -> list[slice]:
        """The rows of each batch of features; few enough rows that a batch stays small."""
        most = min(BATCH_BYTES, bytes_of(getattr(self, "memory_limit", None)) / 8)
        return cuts(n, max(16, min(1 << 14, int(most) // (8 * self.n_features_lifted_))))

    def _lifted(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        """The features of X, batch by batch."""
        for rows in self._batches(X.shape[0]):
            yield rows, self._features(X[rows])

    def _features(self, X: Matrix) -> Array:
        """The features of checked rows, dense."""
        F = self._transform(X)
        return np.asarray(F.toarray() if sp.issparse(F) else F)

    def _linear(self, X: Any, coef: Array, intercept: Any) -> Array:
        """phi(x)'coef + intercept for checked rows, (n,) or (n, q)."""
        out = np.empty((X.shape[0], *coef.shape[1:]), X.dtype)
        for rows, F in self._lifted(X):
            out[rows] = F @ coef.astype(F.dtype) + intercept
        return out

    def _check_X(self, X: Any, *, reset: bool) -> Matrix:
        """Rows of numbers, or the items that the kernel reads."""
        items = self._listed(X, reset)
        return validate_data(self, X, reset=reset, **self._table_options()) if items is None else items

    def _check_Xy(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Matrix, Array]:
        """Rows and their targets."""
        items = self._listed(X, reset)
        if items is None:
            return validate_data(self, X, y, reset=reset, **self._table_options(), **options)
        return items, check_X_y(np.zeros((len(items), 1)), y, **options)[1]

    def _table_options(self) -> dict[str, Any]:
        return dict(dtype=[np.float64, np.float32], accept_sparse="csr" if self._takes_sparse() else False, order="C")

    def _listed(self, X: Any, reset: bool) -> Items | None:
        items = items_of(self.kernel, X) if self.lift is None else None
        if reset:
            self._of_items = items is not None
        if self._of_items != (items is not None):
            told = ("numbers", "items") if items is not None else ("items", "numbers")
            raise ValueError(f"the model is of rows of {told[0]}, but X lists {told[1]}; give what fit was given, or fit anew.")
        if items is not None and reset:
            self.__dict__.pop("feature_names_in_", None)
            self.n_features_in_ = 1
        return items

    def _takes_sparse(self) -> bool:
        return True if self.lift is None else bool(getattr(self.lift, "sparse", False))

    def _weights(self, sample_weight: Any, X: Matrix) -> Array | None:
        if sample_weight is None:
            return None
        X = np.empty((len(X), 1)) if isinstance(X, Items) else X
        return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))

    def _fingerprint(self) -> str:
        """Equal for equal maps only: statistics of different maps do not add."""
        return fingerprint(self.lift_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        return tags
