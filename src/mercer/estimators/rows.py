"""What estimators over the rows themselves share: checked rows, the kernel that compares them, or a given kernel matrix."""
from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_consistent_length

from mercer.inputs import Array, Table, validate_data
from mercer.invariants import Labels, Whole
from mercer.kernels import positioned
from mercer.kernels.defaults import resolve
from mercer.models.base import items_of
from mercer.store import Saved


class OverRows(Saved, BaseEstimator):
    """An estimator that keeps rows and compares others with them by `kernel`, which may be "precomputed". Fitted: `kernel_`."""

    kernel: Any
    n_features_in_: int

    must = dict(n_features_in_=Whole(1), feature_names_in_=Labels("n_features_in_"), classes_=Labels("K"))

    @property
    def _meant(self) -> Any:
        """The kernel by which rows are read."""
        return self.kernel

    @property
    def _pairwise(self) -> bool:
        return _precomputed(self._meant)

    def _checked_rows(self, X: Any, *, reset: bool) -> Table:
        """New rows, as a table: numbers, or the items that the kernel reads."""
        items = self._items(X, reset)
        return items or self._named(validate_data(self, X, reset=reset, **self._numbers()))

    def _checked_pair(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Table, Array]:
        """Rows and their targets."""
        items = self._items(X, reset)
        if items is not None:
            check_consistent_length(items.data, y)
            return items, np.asarray(y)
        X, y = validate_data(self, X, y, reset=reset, **self._numbers(), **options)
        if reset and self._pairwise and X.shape[0] != X.shape[1]:
            raise ValueError(f"X must be a square kernel matrix with kernel='precomputed', got shape {X.shape}.")
        return self._named(X), y

    def _numbers(self) -> dict[str, Any]:
        return dict(dtype=[np.float64, np.float32], accept_sparse=False if self._pairwise else "csr", order="C")

    def _items(self, X: Any, reset: bool) -> Table | None:
        items = items_of(self._meant, X)
        if items is not None and reset:
            self.n_features_in_ = 1
        return None if items is None else Table(items)

    def _named(self, X: Any) -> Table:
        names = getattr(self, "feature_names_in_", None)
        return Table(X, None if names is None else tuple(names))

    def _resolved(self, rows: Table, weight: Array | None = None) -> Any:
        """The kernel that was meant, for these rows."""
        if self._pairwise:
            return "precomputed"
        if (self.kernel is None or (isinstance(self.kernel, str) and self.kernel == "rbf")) and not _squarable(rows):
            raise ValueError("X is too large to square, so no bandwidth can be scaled to it; scale the columns first.")
        return positioned(resolve(self.kernel, rows, weight), rows)

    def _weight(self, sample_weight: Any, rows: Table) -> Array | None:
        if sample_weight is None:
            return None
        if not np.any(np.asarray(sample_weight)):
            raise ValueError("sample_weight is zero for every row; give some row a positive weight.")
        X = np.empty((len(rows), 1)) if rows.items else rows.data
        weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
        return weight / weight.max()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not _precomputed(self.kernel)
        tags.input_tags.pairwise = _precomputed(self.kernel)
        return tags


class OverFittedRows(OverRows):
    """Rows are read by the fitted kernel where there is one, whatever `kernel` was set to since; `fit` begins with `_anew`."""

    @property
    def _meant(self) -> Any:
        return vars(self).get("kernel_", self.kernel)

    def _anew(self) -> None:
        self.__dict__.pop("kernel_", None)


def shown(value: Any) -> Any:
    """A setting as a message can show it: long ones by their type alone.

    >>> shown([1, 2]), shown(np.ones(99))
    ([1, 2], 'a value of type ndarray')
    """
    text = repr(value)
    return value if len(text) <= 60 and "\n" not in text else f"a value of type {type(value).__name__}"


def _precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "precomputed"


def _squarable(rows: Table) -> bool:
    values = rows.data.data if rows.sparse else rows.data
    return rows.items or not values.size or float(np.abs(values).max()) < 1e150
