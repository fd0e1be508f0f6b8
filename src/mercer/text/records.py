"""Dicts of the same names, row after row, as named rows: column by column, as if in a frame."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.text.named import NamedRows

NUMBERS = bool, int, float, np.integer, np.floating, np.bool_
MAX_LAYOUTS = 64  # tuples of names; beyond this dicts are read one by one
FIRST_ROWS = 512  # that are looked at before all are


class Numbering(dict[Any, int]):
    """The number of each key, by the order in which they come."""

    def __missing__(self, key: Any) -> int:
        self[key] = number = len(self)
        return number


def of_records(names: list[Any], values: list[Any], indptr: Array) -> NamedRows | None:
    """The named rows of names and values one after another; None where rows have many different
    tuples of names, or where a name has strings and others.

    >>> of_records(["age", "city", "age"], [3, "Oslo", 4], np.array([0, 2, 3])).tokens
    ('age', 'city=Oslo')
    """
    found, p = Records(indptr), int(indptr[1])
    if p > 0 and (np.diff(indptr) == p).all() and names == names[:p] * (len(names) // p):
        rows = np.arange(len(indptr) - 1)
        columns = ((name, rows, slice(j, None, p)) for j, name in enumerate(names[:p]))
        fine = all(found.take(name, values[at], rows, at) for name, rows, at in columns)
        return found.named() if fine else None
    layouts, starts = Numbering(), indptr.tolist()
    kinds = [layouts[tuple(names[a:b])] for a, b in pairwise(starts[: FIRST_ROWS + 1])]
    if len(layouts) <= MAX_LAYOUTS:
        kinds += [layouts[tuple(names[a:b])] for a, b in pairwise(starts[FIRST_ROWS:])]
    if len(layouts) > MAX_LAYOUTS:
        return None
    for kind, layout in enumerate(layouts):
        rows = np.flatnonzero(np.array(kinds) == kind)
        for j, name in enumerate(layout):
            at = indptr[rows] + j
            if not found.take(name, [values[i] for i in at.tolist()], rows, at):
                return None
    return found.named()


class Records:
    """Entries of named rows while columns come in."""

    def __init__(self, indptr: Array) -> None:
        self.indptr = indptr
        self.codes, self.values = np.empty(indptr[-1], np.int32), np.ones(indptr[-1])
        self.tokens = Numbering()  # of (name, level), and of (name,) for numbers
        self.levels: dict[Any, Numbering] = {}

    def take(self, name: Any, values: list[Any], rows: Array, at: Any) -> bool:
        """Values of a name in those rows, for entries `at`; whether all are strings, or all are
        numbers."""
        return (self._texts if isinstance(values[0], str) else self._numbers)(
            name, values, rows, at
        )

    def _texts(self, name: Any, values: list[Any], rows: Array, at: Any) -> bool:
        levels = self.levels.setdefault(name, Numbering())
        try:
            found = np.fromiter(map(levels.__getitem__, values), np.int32, len(values))
        except TypeError:  # of a list, which has no hash
            return False
        if not all(isinstance(level, str) for level in levels):
            return False
        self.codes[at] = np.array([self.tokens[name, level] for level in levels], np.int32)[found]
        return True

    def _numbers(self, name: Any, values: list[Any], rows: Array, at: Any) -> bool:
        if not all(issubclass(t, NUMBERS) for t in set(map(type, values))):
            return False
        self.values[at] = finite_numbers(values, lambda i: (name, int(rows[i])))
        self.codes[at] = self.tokens[(name,)]
        return True

    def named(self) -> NamedRows:
        owner = Numbering()
        owners = [owner[token[0]] for token in self.tokens]
        check_names(owner)
        return NamedRows(
            tuple(owner),
            tuple("=".join(token) for token in self.tokens),
            np.array(owners, np.int64),
            self.indptr,
            self.codes,
            self.values,
        )


def finite_numbers(given: Sequence[Any], of: Callable[[int], tuple[Any, int]]) -> Array:
    """Numbers as floats; where one is not finite, `of` says whose it is, and in which row."""
    try:
        found = np.fromiter(given, np.float64, len(given))
    except OverflowError:  # of an integer
        found = np.array([v if abs(v) < 2**1023 else np.inf for v in given], np.float64)
    if not np.isfinite(found).all():
        i = int(np.flatnonzero(~np.isfinite(found))[0])
        name, row = of(i)
        raise unfit(name, given[i], row)
    return found


def check_names(names: Iterable[Any]) -> None:
    """All must be strings: 1 and True would be one key, and two names."""
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"Names must be strings, got {name!r:.60}; use str(name).")


def unfit(name: Any, value: Any, row: int) -> ValueError:
    return ValueError(
        f"The item {name!r:.60} must be a finite number or a string, got {value!r:.60} in row {row}; "
        "leave it out where it is missing, and give several strings as a list."
    )
