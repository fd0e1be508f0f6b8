"""Dicts, and lists of (name, value) pairs, as named rows: each distinct level is looked at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, compress
from operator import itemgetter
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.tiles import settle_allocator
from mercer.text.named import NamedRows
from mercer.text.records import NUMBERS, check_names, finite_numbers, numbering, of_records, unfit

SEVERAL = list, tuple, set, frozenset
PLAIN = int, float, complex, np.generic, type(None)  # NumPy reads them, or says what is wrong


def item_rows(X: Any) -> list[Any] | None:
    """The rows of X where they are dicts or lists of pairs, else None.

    >>> item_rows([{"a": 1}]), item_rows([[], [("a", 1)]]), item_rows([[1.0, 2.0]])
    ([{'a': 1}], [[], [('a', 1)]], None)
    """
    if getattr(X, "ndim", 0) == 1 and str(getattr(X, "dtype", "")) == "object":
        X = list(X)
    if not isinstance(X, list | tuple) or not len(X):
        return None
    if isinstance(X[0], Mapping):
        return list(X)
    row = next((row for row in X if not (isinstance(row, list | tuple) and not row)), [(" ", 0)])
    return list(X) if isinstance(row, list | tuple) and _is_pair(row[0]) else None


def _is_pair(item: Any) -> bool:
    return isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str)


def refuse_ragged(X: Any) -> None:
    """Say what is wrong with what is no table of numbers, before NumPy does in its own words."""
    remedy = "give rows of as many numbers, dicts, or lists of (name, value) pairs"
    if isinstance(X, Mapping) and not hasattr(X, "tocsr"):  # SciPy has matrices that are mappings
        raise ValueError("X is one dict, not rows; give a list of dicts, one for every row.")
    if X is None or isinstance(X, str | bytes | set | frozenset):
        what = f"one text, {X!r:.40}" if isinstance(X, str | bytes) else type(X).__name__
        raise ValueError(f"X must be rows, got {what}; {remedy}.")
    if len(getattr(X, "columns", " ")) == 0:
        raise ValueError("X is a frame without columns (0 feature(s)); give at least one.")
    if isinstance(X, list | tuple) and not X:
        raise ValueError("X has 0 rows (Found array with 0 sample(s)); give at least one.")
    if isinstance(X, np.ndarray) and _holds_no_numbers(X):
        X = X.tolist()
    if not isinstance(X, list | tuple) or isinstance(X[0], PLAIN[:-1]):
        return
    for i, row in enumerate(X):
        if not isinstance(row, list | tuple | np.ndarray):
            raise ValueError(f"X must be rows, but row {i} is {row!r:.40}; {remedy}.")
        strange = [v for v in row if not isinstance(v, PLAIN)][:1]
        if len(row) != len(X[0]) or strange:
            told = f"is of length {len(row)}, row 0 of length {len(X[0])}"
            told = f"holds {strange[0]!r:.40}" if strange else told
            raise ValueError(
                f"X must be rows of numbers or of names, but row {i} {told}; {remedy}."
            )


def _holds_no_numbers(X: Array) -> bool:
    """Whether an array holds strings, or is of rows that NumPy could not make a table of."""
    if X.dtype.kind != "O" or X.ndim == 0 or not len(X):
        return X.dtype.kind in "UT" and X.ndim > 0
    return X.ndim == 1 or any(isinstance(v, str) for v in X.flat)


def of_items(rows: Sequence[Any]) -> NamedRows:
    """The named rows of dicts, or of lists of pairs.

    A number counts for its name, a string for "name=string" with 1, and a list of strings for each
    of them.

    >>> of_items([{"age": 3, "city": "Oslo"}, {"tags": ["a", "b"]}]).tokens
    ('city=Oslo', 'tags=a', 'tags=b', 'age')
    """
    settle_allocator()
    names, values, sizes = (_of_dicts if isinstance(rows[0], Mapping) else _of_pairs)(rows)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    found = of_records(names, values, indptr)
    return (of_flat(names, values, sizes) if found is None else found).without_zeros()


Flat = tuple[list[Any], list[Any], Array]  # names and values one after another, and sizes of rows


def _dicts(rows: Sequence[Any]) -> Sequence[dict[Any, Any]]:
    """Every row as a dict."""
    types = set(map(type, rows))
    if all(issubclass(t, dict) for t in types):
        return rows
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise ValueError(
                f"X has dicts as rows, but row {i} is {type(row).__name__}; give a dict for every row."
            )
    return [dict(row) for row in rows]


def _of_dicts(rows: Sequence[Any]) -> Flat:
    dicts = _dicts(rows)
    sizes = np.fromiter(map(len, dicts), np.int64, len(dicts))
    values = list(chain.from_iterable(map(dict.values, dicts)))
    return list(chain.from_iterable(dicts)), values, sizes


def _of_pairs(rows: Sequence[Any]) -> Flat:
    for i, row in enumerate(rows):
        if not isinstance(row, list | tuple):
            raise _no_pairs(row, i)
    pairs = list(chain.from_iterable(rows))
    if not (set(map(type, pairs)) <= {list, tuple} and set(map(len, pairs)) <= {2}):
        raise next(_no_pairs(r, i) for i, r in enumerate(rows) if not all(map(_is_pair, r)))
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    names = list(map(itemgetter(0), pairs))
    if not all(issubclass(t, str) for t in set(map(type, names))):
        raise next(_no_pairs(r, i) for i, r in enumerate(rows) if not all(map(_is_pair, r)))
    return names, list(map(itemgetter(1), pairs)), sizes


def _no_pairs(row: Any, i: int) -> ValueError:
    return ValueError(
        f"X has lists of (name, value) pairs as rows, but row {i} is {row!r:.60}; give pairs with a string first."
    )


def of_flat(names: list[Any], values: list[Any], sizes: Array) -> NamedRows:
    """The named rows of names and values one after another."""
    types = set(map(type, values))
    if not all(issubclass(t, (str, *NUMBERS)) for t in types):
        names, values, sizes = _expanded(names, values, sizes)
        types = set(map(type, values))
    texts = {t for t in types if issubclass(t, str)}
    if texts == types or not texts:
        is_text = np.full(len(values), bool(texts))
    else:
        is_text = np.fromiter(map(texts.__contains__, map(type, values)), bool, len(values))
    return _rows(names, values, sizes, is_text)


def _expanded(names: list[Any], values: list[Any], sizes: Array) -> Flat:
    """Strings and numbers alone: those of lists one by one, other numbers as floats."""
    out: list[tuple[Any, Any]] = []
    rows = np.repeat(np.arange(len(sizes)), sizes).tolist()
    counts = np.zeros(len(sizes), np.int64)
    for name, value, row in zip(names, values, rows, strict=True):
        given = [(name, v) for v in _simple(name, value, row)]
        counts[row] += len(given)
        out += given
    return [name for name, _ in out], [value for _, value in out], counts


def _simple(name: Any, value: Any, row: int) -> list[Any]:
    if isinstance(value, (str, *NUMBERS)):
        return [value]
    if isinstance(value, SEVERAL) and all(isinstance(v, str) for v in value):
        return sorted(value) if isinstance(value, set | frozenset) else list(value)
    if isinstance(value, bytes | bytearray):
        raise unfit(name, value, row)
    try:
        return [float(value)]
    except (TypeError, ValueError, OverflowError) as e:
        raise unfit(name, value, row) from e


def _rows(names: list[Any], values: list[Any], sizes: Array, is_text: Array) -> NamedRows:
    levels, plain, others = numbering(), numbering(), ~is_text
    codes, numbers = np.empty(len(names), np.int32), np.ones(len(names))
    if is_text.any():
        pairs = _chosen(zip(names, values, strict=True), is_text)
        codes[is_text] = np.fromiter(map(levels.__getitem__, pairs), np.int32)
    if others.any():
        given = list(_chosen(values, others))
        found = map(plain.__getitem__, _chosen(names, others))
        codes[others] = np.fromiter(found, np.int32, len(given)) + np.int32(len(levels))
        numbers[others] = finite_numbers(given, lambda i: _of(i, names, others, sizes))
    owner = numbering()
    owners = np.fromiter(map(owner.__getitem__, chain(map(itemgetter(0), levels), plain)), np.int64)
    check_names(owner)
    return NamedRows(
        tuple(owner),
        (*(f"{name}={level}" for name, level in levels), *plain),
        owners,
        np.concatenate([[0], np.cumsum(sizes)]),
        codes,
        numbers,
    )


def _chosen(items: Iterable[Any], there: Array) -> Iterable[Any]:
    return items if there.all() else compress(items, there.tolist())


def _of(i: int, names: list[Any], there: Array, sizes: Array) -> tuple[Any, int]:
    """The name and the row of the i-th number."""
    at = int(np.flatnonzero(there)[i])
    return names[at], int(np.searchsorted(np.cumsum(sizes), at, "right"))
