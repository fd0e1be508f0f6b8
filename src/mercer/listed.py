"""Lists of items (strings, trees, records), however they came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def _is_items(X: Any) -> bool:
    """A list of strings, sequences of tokens, trees or bags; a list of lists of numbers is a table
    of rows."""
    if not isinstance(X, list | tuple):
        ndim, kind = getattr(X, "ndim", 0), getattr(getattr(X, "dtype", None), "kind", "")
        return ndim == 3 or (ndim == 1 and kind in tuple("OUST"))
    head = next((x for x in X if not (isinstance(x, list | tuple) and not x)), 0.0)
    if isinstance(head, np.ndarray):
        return head.ndim == 2  # bags of rows
    return not isinstance(head, int | float | np.number) and not is_numbers(head)


def refuse_lazy(X: Any, name: str = "X") -> None:
    """Say that rows which are only described, as by polars' LazyFrame, must be collected first."""
    if callable(getattr(type(X), "collect", None)):
        raise ValueError(
            f"{name} is a {type(X).__name__}, whose rows are not read yet; give {name}.collect()."
        )


def listed(X: Any) -> list[Any] | None:
    """The items of a list, of an array, or of a column of Arrow, pandas or polars; the rows of a
    frame with columns of strings as records; None where X is none of these.

    >>> listed(np.array(["a", "b"])), listed(np.eye(2))
    (['a', 'b'], None)
    """
    refuse_lazy(X)
    if hasattr(X, "columns"):
        return _records(X)
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 1 and X.dtype.kind in "US":
        X = X[:, 0]
    if not hasattr(X, "ndim") and (read := getattr(X, "to_pylist", getattr(X, "to_list", None))):
        X = read()
    if not _is_items(X):
        return None
    return X.tolist() if isinstance(X, np.ndarray) and X.ndim == 1 else list(X)


def bare(items: list[Any]) -> list[Any]:
    """Records of one column as the items in it; others as they are.

    >>> bare([{"seq": "AC"}, {"seq": "G"}]), bare(["AC"])
    (['AC', 'G'], ['AC'])
    """
    if not items or not isinstance(items[0], dict) or len(items[0]) != 1:
        return items
    return [value for row in items for value in row.values()]


def is_numbers(row: Any) -> bool:
    return isinstance(row, (list, tuple)) and all(
        isinstance(v, (int, float, np.number)) for v in row
    )


def _records(X: Any) -> list[Any] | None:
    """The rows of a frame that has columns of strings, by their names; None of others."""
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None  # whoever reads the frame says so
    if not isinstance(frame, nw.DataFrame):
        return None
    texts = (nw.String, nw.Object, nw.Categorical, nw.Binary)
    if not any(isinstance(kind, texts) or kind in texts for kind in frame.schema.values()):
        return None
    return frame.rows(named=True)


def column_of(items: list[Any], columns: Sequence[int | str]) -> Any:
    """Some columns of records: one of strings as a list, others as an array of numbers, and both
    kinds together as records.

    >>> rows = [{"seq": "AC", "age": 3}, {"seq": "G", "age": 4}]
    >>> column_of(rows, ["seq"]), column_of(rows, [1])
    (['AC', 'G'], array([[3],
           [4]]))
    """
    if not items or not isinstance(items[0], dict):
        raise ValueError(
            f"column {columns[0]!r} is chosen, but X lists items without columns; give a dataframe."
        )
    there = list(items[0])
    for c in columns:
        if c not in there if isinstance(c, str) else not -len(there) <= c < len(there):
            raise ValueError(f"column {c!r} is not in X; X has {', '.join(map(str, there[:20]))}.")
    names = [c if isinstance(c, str) else there[c] for c in columns]
    texts = [name for name in names if isinstance(items[0][name], str | bytes)]
    if len(names) == len(texts) == 1:
        return [row[names[0]] for row in items]
    if texts:
        return [{name: row[name] for name in names} for row in items]
    return np.array([[row[name] for name in names] for row in items])
