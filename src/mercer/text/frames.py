"""Frames of any kind as named rows: levels of categories, and numbers by the name of the column."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from mercer.inputs import Array
from mercer.listed import refuse_lazy
from mercer.ops.threads import parallel_map
from mercer.ops.tiles import settle_allocator
from mercer.text.named import NamedRows
from mercer.text.records import numbering


class ColumnEntries(NamedTuple):
    """One column: which level each row has, -1 for none, and the number that goes with it."""

    codes: Array  # int32 (n,)
    levels: tuple[str, ...]
    values: Array | None = None  # float64 (n,), of numbers; their one level is the name
    missing: bool = False  # whether any row has no level


def frame_of(X: Any) -> Any:
    """X as a frame of narwhals, or None where it is none."""
    refuse_lazy(X)
    if not (hasattr(X, "columns") or hasattr(X, "__narwhals_dataframe__")):
        return None
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as e:
        raise ValueError("X has two columns of the same name; rename one.") from e
    return frame if isinstance(frame, nw.DataFrame) else None


def category_columns(frame: Any) -> tuple[str, ...]:
    """The columns that are no numbers: strings (of digits too), categories, truth values."""
    return tuple(str(name) for name in frame.columns if not _is_number(frame.get_column(name)))


def _is_number(column: Any) -> bool:
    if str(column.dtype) != "Object":
        return bool(column.dtype.is_numeric())
    there = [v for v, null in zip(column, column.is_null(), strict=True) if not null]
    return bool(there) and all(
        isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in there
    )


def of_frame(frame: Any, categories: Collection[str]) -> NamedRows:
    """The named rows of a frame: "column=level" of categories, where a missing one adds nothing,
    and (column, number) of all others.

    >>> import pandas as pd
    >>> of_frame(frame_of(pd.DataFrame({"zip": ["01", None], "age": [1, 2]})), ["zip"]).tokens
    ('zip=01', 'age')
    """
    if not len(frame):
        raise ValueError("X has 0 rows (Found array with 0 sample(s)); give at least one.")
    settle_allocator()
    names = tuple(map(str, frame.columns))
    if len(set(names)) < len(names):
        raise ValueError("X has two columns of the same name; rename one.")
    columns = [frame.get_column(c) for c in frame.columns]
    found = parallel_map(
        lambda c: (_category if c[0] in categories else _number)(c[1], c[0]),
        list(zip(names, columns, strict=True)),
    )
    n, starts = len(frame), np.cumsum([0, *(len(c.levels) for c in found)])
    codes, values = np.empty((n, len(found)), np.int32), np.ones((n, len(found)))
    for j, column in enumerate(found):
        np.add(column.codes, np.int32(starts[j]), out=codes[:, j])
        if column.values is not None:
            values[:, j] = column.values
    tokens = tuple(level for c in found for level in c.levels)
    owners = np.repeat(np.arange(len(found)), np.diff(starts))
    indptr, entries = np.arange(n + 1) * len(found), (codes.reshape(-1), values.reshape(-1))
    if any(column.missing for column in found):
        there = np.stack([column.codes >= 0 for column in found], 1)
        indptr = np.concatenate([[0], np.cumsum(there.sum(1))])
        entries = codes[there], values[there]
    return NamedRows(names, tokens, owners, indptr, *entries, len(found)).without_zeros()


def _number(column: Any, name: str) -> ColumnEntries:
    if not _is_number(column):
        raise ValueError(
            f"The column {name!r} held numbers at `fit`, and is {column.dtype} now; give numbers, or fit again."
        )
    null = column.is_null().to_numpy()
    values = np.array([np.nan] * len(null)) if null.all() else _floats(column, null)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        what = "infinity" if np.isinf(values[wrong[0]]) else "a missing value (NaN)"
        raise ValueError(
            f"The column {name!r} of numbers has {what} in row {wrong[0]}; fill it or drop the row."
        )
    return ColumnEntries(np.zeros(len(values), np.int32), (name,), values)


def _floats(column: Any, null: Array) -> Array:
    if not null.any():
        return np.asarray(column.to_numpy()).astype(np.float64)
    return np.array([np.nan if no else float(v) for v, no in zip(column, null, strict=True)])


def _category(column: Any, name: str) -> ColumnEntries:
    dtype = column.dtype
    kind = str(dtype).partition("(")[0]
    if dtype.is_numeric() or (kind == "Object" and _is_number(column)):
        raise ValueError(
            f"The column {name!r} held categories at `fit`, and numbers now; give them as strings, or fit again."
        )
    if kind not in ("String", "Categorical", "Enum", "Boolean", "Object", "Unknown"):
        raise ValueError(
            f"The column {name!r} holds {dtype}, which is no number, string, category or truth value; "
            "turn it into one of them, or leave it out."
        )
    codes, levels, missing = (_by_value if kind == "Object" else _by_dictionary)(column, name)
    return ColumnEntries(codes, tuple(f"{name}={level}" for level in levels), missing=missing)


Coded = tuple[Array, list[Any], bool]  # codes, levels, and whether some rows have none


def _by_dictionary(column: Any, name: str) -> Coded:
    """By the dictionaries of pandas, or of Arrow where it is installed."""
    native = column.to_native()
    kind = str(getattr(native, "dtype", ""))
    if kind in ("object", "category"):  # of pandas, whose own way is faster
        codes, levels = _by_pandas(native, kind)
        return codes.astype(np.int32), list(levels), bool((codes < 0).any())
    try:
        import pyarrow as pa
    except ImportError:
        return _by_value(column, name)
    found = column.to_arrow()
    if not pa.types.is_dictionary(found.type):
        found = found.dictionary_encode()
    if isinstance(found, pa.ChunkedArray):
        found = found.unify_dictionaries().combine_chunks()
    levels, indices, missing = found.dictionary.to_pylist(), found.indices, found.null_count > 0
    if missing:  # unsigned ones have no -1
        indices = indices.cast(pa.int64()).fill_null(-1)
    codes = indices.to_numpy(zero_copy_only=False)
    if None in levels:
        return np.where(codes == levels.index(None), -1, codes).astype(np.int32), levels, True
    return codes.astype(np.int32, copy=False), levels, missing


def _by_pandas(series: Any, kind: str) -> tuple[Array, Any]:
    if kind == "category":
        return series.cat.codes.to_numpy(), series.cat.categories
    return series.factorize()


def _by_value(column: Any, name: str) -> Coded:
    """By Python's own values."""
    null, number = column.is_null().to_numpy(), numbering()
    codes = np.full(len(null), -1, np.int32)
    there = [v for v, no in zip(column, null, strict=True) if not no]
    kinds = {bool if issubclass(t, np.bool_) else t for t in set(map(type, there))}
    if str(column.dtype) == "Object" and not all(issubclass(k, str | bool) for k in kinds):
        raise ValueError(
            f"The column {name!r} holds {', '.join(sorted(k.__name__ for k in kinds))}; give strings alone, or numbers alone."
        )
    codes[~null] = np.fromiter(map(number.__getitem__, there), np.int32, len(there))
    return codes, list(number), bool(null.any())
