"""Weights, and rows that are left out since they have no target or no weight: how many, and why."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import flat, pa, pc
from mercer.tables.errors import DataError
from mercer.tables.sketch import missing_rows
from mercer.tables.values import is_text, numbers, text

_INFINITE = r"^\s*[+-]?(?i:inf|infinity)\s*$"


@dataclass(eq=False)
class Gone:
    """Counts over batches of a target and of its weights.

    >>> gone = Gone()
    >>> gone.add(pa.array([1.0, None, float("inf"), 2.0]), np.array([1.0, 1.0, 1.0, np.nan]))
    >>> gone.n_infinite, gone.n_unweighted, gone.heaviest
    (1, 1, 1.0)
    """

    n: int = 0
    n_untargeted: int = 0  # with the infinite ones
    n_infinite: int = 0
    n_unweighted: int = 0  # that have a target
    heaviest: float = 0.0

    def add(self, target: Any, weight: Array | None) -> None:
        """Take in a batch."""
        endless = infinite(target)
        missing = missing_rows(target) | endless
        self.n += len(missing)
        self.n_untargeted += int(missing.sum())
        self.n_infinite += int(endless.sum())
        if weight is not None:
            self.n_unweighted += int((np.isnan(weight) & ~missing).sum())
            self.heaviest = max(self.heaviest, float(np.nanmax(weight, initial=0.0)))

    def check(self, target: str, weight: str | None) -> None:
        """Raise a DataError where no row is left, and name the column to blame."""
        if self.n_untargeted == self.n:
            finite = "finite " if self.n_infinite else ""
            raise DataError(f'no row has a {finite}value of the target "{target}"; choose another column.')
        if weight is not None and self.n_unweighted == self.n - self.n_untargeted:
            raise DataError(f'no row with a target has a weight "{weight}"; choose another column of weights.')
        if weight is not None and not self.heaviest:
            raise DataError(f'the weight "{weight}" is 0 in every row; some must weigh more.')

    def sentences(self, target: str, weight: str | None, numeric: bool) -> tuple[str, ...]:
        """What to tell the user; `numeric` says that the target holds numbers, so that "inf" is no class."""
        endless = self.n_infinite if numeric else 0
        told = [(self.n_untargeted - self.n_infinite, f'no value of the target "{target}"'),
                (endless, f'an infinite value of the target "{target}"'), (self.n_unweighted, f'no weight "{weight}"')]  # fmt: skip
        return tuple(f"{_rows(count, self.n)} {what} and {'was' if count == 1 else 'were'} left out." for count, what in told if count)


def _rows(count: int, n: int) -> str:
    return f"{count:,} of {n:,} rows {'has' if count == 1 else 'have'}"


def weights(batch: Any, name: str) -> Array:
    """The weights of a batch, NaN where missing; a DataError where they cannot be weights."""
    column = flat(batch.column(name))
    values, odd = numbers(column)
    if odd.any() and np.isnan(values).all():
        example = text(column.filter(pa.array(odd)))[0].as_py()
        raise DataError(f'the weight "{name}" holds no numbers but values such as "{example}"; give a column of numbers.')
    if np.any(values < 0):
        raise DataError(f'the weight "{name}" has negative values, such as {np.nanmin(values):g}; weights are at least 0.')
    return values


def infinite(column: Any) -> Array:
    """Where a column holds an infinity, as a number or as a word."""
    found = flat(column)
    if pa.types.is_floating(found.type):
        return np.isinf(found.to_numpy(zero_copy_only=False).astype(np.float64))
    if not is_text(found.type):
        return np.zeros(len(found), bool)
    return np.asarray(pc.match_substring_regex(found, _INFINITE).fill_null(False).to_numpy(zero_copy_only=False))
