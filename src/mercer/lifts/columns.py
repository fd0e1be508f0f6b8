"""Columns as users name them: by position, or by name."""
from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from sklearn.utils.validation import _check_feature_names_in


def inputs_of(phi: Any) -> list[str]:
    """The names of the columns that a lift was fitted on: those of the dataframe, or x0, x1, ..."""
    return list(_check_feature_names_in(phi))


def position(phi: Any, column: Any) -> int:
    """Where a column of the fitted rows stands."""
    names = inputs_of(phi)
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, Integral) and not isinstance(column, bool) and -len(names) <= int(column) < len(names):
        return int(column) % len(names)
    shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    raise ValueError(f"columns: {column!r} is not a column of X; give names or positions of {shown}.")


def positions(phi: Any, columns: Iterable[Any] | str | int | None) -> list[int]:
    """Where the chosen columns stand; None means all of them."""
    if columns is None:
        return list(range(phi.n_features_in_))
    chosen = [position(phi, c) for c in ([columns] if isinstance(columns, str | int) else columns)]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"columns must name one or more different columns, got {columns!r}.")
    return chosen
