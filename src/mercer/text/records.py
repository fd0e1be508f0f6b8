"""Dicts of the same names, row after row, as named rows: column by column, as if in a frame."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.text.named import NamedRows

NUMBERS = bool, int, float, np.integer, np.floating, np.bool_
MAX_LAYOUTS = 64  # tuples of names; beyond this dicts are read one by one
FIRST_ROWS = 512  # that are looked at before all are


def numbering() -> defaultdict[Any, int]:
    """The number of each key, by the order in which they come.

    >>> number = numbering()
    >>> [number[key] for key in "aba"]
    [0, 1, 0]
    """
    return defaultdict(count().__next__)


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
    layouts, starts = numbering(), indptr.tolist()
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
        self.codes, self.values = np.zeros(indptr[-1], np.int32), np.ones(indptr[-1])
        self.levels: dict[Any, defaultdict[Any, int]] = {}  # of names with strings
        self.texts: list[tuple[Any, Any]] = []  # such names, and their entries
        self.numbers: list[tuple[Any, Any]] = []

    def take(self, name: Any, values: list[Any], rows: Array, at: Any) -> bool:
        """Values of a name in those rows, for entries `at`; whether all are strings, or all are
        numbers."""
        if isinstance(values[0], str):
            return self._texts(name, values, at)
        if not all(issubclass(t, NUMBERS) for t in set(map(type, values))):
            return False
        self.values[at] = finite_numbers(values, lambda i: (name, int(rows[i])))
        self.numbers.append((name, at))
        return True

    def _texts(self, name: Any, values: list[Any], at: Any) -> bool:
        levels = self.levels.setdefault(name, numbering())
        try:
            self.codes[at] = np.fromiter(map(levels.__getitem__, values), np.int32, len(values))
        except TypeError:  # of a list, which has no hash
            return False
        self.texts.append((name, at))
        return all(issubclass(t, str) for t in set(map(type, levels)))

    def named(self) -> NamedRows:
        plain, owner = numbering(), numbering()
        for name, at in self.numbers:
            self.codes[at] = plain[name]
        owners = [owner[name] for name in plain]
        tokens, starts = list(plain), {}
        check_names([*plain, *self.levels])
        for name, levels in self.levels.items():
            starts[name] = len(tokens)
            tokens += [f"{name}={level}" for level in levels]
            owners += [owner[name]] * len(levels)
        for name, at in self.texts:
            self.codes[at] += np.int32(starts[name])
        entries = self.indptr, self.codes, self.values
        return NamedRows(tuple(owner), tuple(tokens), np.array(owners, np.int64), *entries)


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
    if all(issubclass(t, str) for t in set(map(type, names))):
        return
    wrong = next(name for name in names if not isinstance(name, str))
    raise ValueError(f"Names must be strings, got {wrong!r:.60}; use str(name).")


def unfit(name: Any, value: Any, row: int) -> ValueError:
    return ValueError(
        f"The item {name!r:.60} must be a finite number or a string, got {value!r:.60} in row {row}; "
        "leave it out where it is missing, and give several strings as a list."
    )
