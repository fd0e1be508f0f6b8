"""What a partition must be, looked at where it is: columns, types, targets and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from mercer.engines.lazy import LazyColumns
from mercer.inputs import Array, Table, sample_weights, table
from mercer.kernels.defaults import check_domain


class RowReader(Protocol):
    """From a partition as it comes to rows, targets and weights."""

    @property
    def identity(self) -> str: ...
    def __call__(self, X: Any, y: Any, weight: Any) -> tuple[Table, Array | None, Array | None]: ...


@dataclass(frozen=True, eq=False)
class PartitionReader:
    """What a partition must be: the columns of the metadata, their type, targets of numbers or of
    known classes, weights >= 0; rows of weight 0 are as absent."""

    columns: LazyColumns
    kernel: Any = None  # whose domain is looked at
    outputs: int | None = None  # of y; None: as they come
    classes: Array | None = None  # of y, where it is not numbers
    supervised: bool = True

    @property
    def identity(self) -> str:
        classes = None if self.classes is None else self.classes.tolist()
        return repr((self.columns, repr(self.kernel), self.outputs, classes, self.supervised))

    def __call__(self, X: Any, y: Any, weight: Any) -> tuple[Table, Array | None, Array | None]:
        rows = self.rows(X)
        Y = self.targets(y, len(rows)) if self.supervised else None
        if weight is None:
            return rows, Y, None
        w = _weights(weight, len(rows))
        on = np.flatnonzero(w)
        return rows[on], None if Y is None else Y[on], w[on]

    def rows(self, X: Any) -> Table:
        if self.columns.texts:
            return Table(_texts(X))
        found = table(self._in_order(X), width=self.columns.width)
        if hasattr(X, "columns") and np.can_cast(found.dtype, self.columns.dtype):
            found = found.astype(self.columns.dtype)  # small whole numbers beside float32
        if found.data.dtype != self.columns.dtype:
            raise ValueError(
                f"X holds {found.data.dtype} here and {self.columns.dtype} elsewhere; convert all to one type, as by X.astype."
            )
        check_domain(self.kernel, found)
        return Table(found.data, self.columns.names)

    def _in_order(self, X: Any) -> Any:
        """The columns that the metadata names."""
        names = getattr(X, "columns", None)
        if names is None or self.columns.names is None:
            return X
        gone = [c for c in self.columns.names if c not in names]
        if gone or len(names) != len(self.columns.names):
            told = (
                f"has no column {gone[0]!r}"
                if gone
                else f"has {len(names)} columns, {self.columns.width} expected"
            )
            raise ValueError(f"X {told}; give all files the same columns.")
        return X[list(self.columns.names)]

    def targets(self, y: Any, n: int) -> Array:
        """(n, q) numbers, or the places (n,) of classes."""
        values = np.asarray(y)
        if len(values) != n:
            raise ValueError(
                f"X has {n:,} rows and y {len(values):,} (inconsistent numbers of samples); cut both alike."
            )
        if self.classes is not None:
            return np.searchsorted(self.classes, values.reshape(n))
        try:
            Y = values.reshape(n, -1).astype(np.float64)
        except (TypeError, ValueError) as e:
            raise ValueError(f"y must hold numbers, but has dtype {values.dtype}.") from e
        if not np.isfinite(Y).all():
            raise ValueError("y contains NaN or infinity; fill or drop such rows first.")
        return Y


def _weights(w: Any, n: int) -> Array:
    values = np.asarray(w, np.float64)
    if values.shape != (n,):
        raise ValueError(f"sample_weight has shape {values.shape}, but X has {n:,} rows.")
    return values if not values.any() else sample_weights(values, np.empty((n, 1)))


def _texts(X: Any) -> list[str]:
    found = list(X.to_pylist() if hasattr(X, "to_pylist") else X)
    wrong = next((v for v in found if not isinstance(v, str)), None)
    if wrong is not None:
        raise ValueError(f"X must hold texts, got {type(wrong).__name__}; fill or drop such rows.")
    return found
