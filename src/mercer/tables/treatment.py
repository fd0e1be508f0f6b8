"""What was done with each column and each row, in words; what is known of a column when that is
chosen; and rows of numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from math import ceil
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Batch, Column, flat, pa, pc
from mercer.tables.encoders import Encoder
from mercer.tables.errors import DataError
from mercer.tables.sketch import ColumnSketch, missing_rows
from mercer.tables.values import is_text, numbers, text

MAX_CATEGORIES = 32
_INFINITE = r"^\s*[+-]?(?i:inf|infinity)\s*$"


@dataclass(frozen=True)
class Treatment:
    """One original column: what it is taken for and what becomes of it, as shown to users.

    Parameters
    ----------
    name : str
        The column.
    kind : str
        number, boolean, category, date, text, constant, empty, id, leak, target, weight, group,
        time or excluded.
    action : str
        What becomes of it, in one plain sentence.
    details : str, default=""
        The figures behind it.
    n_missing : int, default=0
        How many of its cells are empty.
    n_distinct : int, default=0
        How many values it has.
    outputs : tuple of str, default=()
        The names of its features.
    warnings : tuple of str, default=()
        What to be wary of.

    Examples
    --------
    >>> from mercer.tables import Columns
    >>> batch = pa.record_batch({"size": [1.0, 2.0, 3.0, 5.0], "price": [1.5, 2.5, 3.25, 6.0]})
    >>> size, price = Columns("price").fit([batch]).treatments_
    >>> size.kind, size.outputs, price.kind
    ('number', ('size',), 'target')
    """

    name: str
    kind: str
    action: str
    details: str = ""
    n_missing: int = 0
    n_distinct: int = 0
    outputs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"outputs": list(self.outputs), "warnings": list(self.warnings)}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Treatment:
        return cls(
            **state | {"outputs": tuple(state["outputs"]), "warnings": tuple(state["warnings"])}
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """A batch in numbers.

    Parameters
    ----------
    X : ndarray of shape (n, p), float32
        Finite numbers.
    y : ndarray of shape (n,) or None
        Numbers, or the positions of the classes (-1: a class that training did not have); None
        without a target.
    weight : ndarray of shape (n,), float64, or None
        The weights.
    group : ndarray of shape (n,) or None
        A 64-bit hash of each value.
    time : ndarray of shape (n,) or None
        A number, seconds since 1970 for dates, NaN where missing.
    id : pyarrow.Array or None
        The values as they came.
    index : ndarray of shape (n,)
        Positions in the batch of the rows kept.
    n_unread : dict of str to int
        Cells by column that were filled but could not be read, and count as missing.
    odd : ndarray of shape (n,)
        Whether a row has a level that training lacks, or lacks a value that training always had,
        in a column where that is rare.

    Examples
    --------
    >>> from mercer.tables import Columns
    >>> batch = pa.record_batch({"size": [1.0, 2.0, 3.0, 5.0], "price": [1.5, 2.5, 3.25, None]})
    >>> rows = Columns("price").fit([batch]).transform(batch)
    >>> rows.y, rows.index
    (array([1.5 , 2.5 , 3.25]), array([0, 1, 2]))
    """

    X: Array
    y: Array | None
    weight: Array | None
    group: Array | None
    time: Array | None
    id: Any
    index: Array
    n_unread: dict[str, int]
    odd: Array

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True)
class Choice:
    """What a column is taken for; without an encoder it is left out."""

    kind: str
    action: str
    details: str = ""
    encoder: Encoder | None = None
    warnings: tuple[str, ...] = ()
    n_void: int = 0  # filled cells that count as missing: texts among numbers, marks such as -999
    number: Choice | None = None  # of whole numbers that act as codes: what they are as numbers


@dataclass(frozen=True)
class ColumnSample:
    """A column: its name, its sketch, and its cells in the sample."""

    name: str
    sketch: ColumnSketch
    sample: Column
    max_categories: int = MAX_CATEGORIES
    n_marked: int = 0  # cells with a number that stands for missing

    @property
    def often(self) -> int:
        """A level with fewer rows is pooled; missing values in fewer rows raise no indicator: a
        thousandth, from 3 to 200 rows."""
        return min(max(3, ceil(0.001 * self.sketch.n)), 200)

    @property
    def n_gone(self) -> int:
        """Missing cells, with the texts of a column of numbers."""
        return self.sketch.n_missing + self.sketch.n_texts + self.n_marked

    @property
    def gone(self) -> bool:
        return self.n_gone >= self.often

    def about_missing(self, by: str) -> str:
        """The end of a sentence."""
        if not self.n_gone:
            return "."
        values = (
            f"{self.n_gone:,} missing values take" if self.n_gone > 1 else "1 missing value takes"
        )
        return f"; {values} {by}" + (" and raise an indicator." if self.gone else ".")

    def left_out(self, kind: str, why: str, warning: str = "") -> Choice:
        """Without features."""
        return Choice(
            kind,
            f"{why}; left out.",
            warnings=(f'"{self.name}" {warning} and was left out.',) * bool(warning),
        )


@dataclass(eq=False)
class DroppedRows:
    """Counts over batches of a target and of its weights.

    >>> gone = DroppedRows()
    >>> gone.add(pa.array([1.0, None, float("inf"), 2.0]), np.array([1.0, 1.0, 1.0, np.nan]))
    >>> gone.n_infinite, gone.n_unweighted, gone.heaviest
    (1, 1, 1.0)
    """

    n: int = 0
    n_untargeted: int = 0  # with the infinite ones
    n_infinite: int = 0
    n_unweighted: int = 0  # that have a target
    heaviest: float = 0.0
    n_texts: int = 0  # with text where the target holds numbers

    def add(self, target: Column, weight: Array | None) -> None:
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
            raise DataError(
                f'no row has a {finite}value of the target "{target}"; choose another column.'
            )
        if weight is not None and self.n_unweighted == self.n - self.n_untargeted:
            raise DataError(
                f'no row with a target has a weight "{weight}"; choose another column of weights.'
            )
        if weight is not None and not self.heaviest:
            raise DataError(f'the weight "{weight}" is 0 in every row; some must weigh more.')

    def __add__(self, other: DroppedRows) -> DroppedRows:
        """Of the rows of both."""
        sums = {
            f.name: getattr(self, f.name) + getattr(other, f.name)
            for f in fields(self)
            if f.name != "heaviest"
        }
        return DroppedRows(**sums, heaviest=max(self.heaviest, other.heaviest))

    def settle(self, n_dropped: int, numeric: bool) -> None:
        """Of so many left out, those without another reason had text where the target holds
        numbers."""
        known = self.n_untargeted + self.n_unweighted
        self.n_texts = max(n_dropped - known, 0) if numeric else 0

    def sentences(
        self, target: str, weight: str | None, numeric: bool, rows: str = "rows"
    ) -> tuple[str, ...]:
        """What to tell the user; `numeric` says that the target holds numbers, so that "inf" is no
        class."""
        infinite_ = self.n_infinite
        told = [
            (self.n_untargeted - infinite_, f'no value of the target "{target}"'),
            (infinite_ if numeric else 0, f'an infinite value of the target "{target}"'),
            (self.n_texts, f'text in the target "{target}", which holds numbers,'),
            (self.n_unweighted, f'no weight "{weight}"'),
        ]
        return tuple(
            f"{_rows(count, self.n, rows)} {what} and {'was' if count == 1 else 'were'} left out."
            for count, what in told
            if count
        )


def _rows(count: int, n: int, rows: str) -> str:
    return f"{count:,} of {n:,} {rows} {'has' if count == 1 else 'have'}"


def weights(batch: Batch, name: str) -> Array:
    """The weights of a batch, NaN where missing; a DataError where they cannot be weights."""
    column = flat(batch.column(name))
    values, odd = numbers(column)
    if odd.any() and np.isnan(values).all():
        example = text(column.filter(pa.array(odd)))[0].as_py()
        raise DataError(
            f'the weight "{name}" holds no numbers but values such as "{example}"; give a column of numbers.'
        )
    if np.any(values < 0):
        raise DataError(
            f'the weight "{name}" has negative values, such as {np.nanmin(values):g}; weights are at least 0.'
        )
    return values


def infinite(column: Column) -> Array:
    """Where a column holds an infinity, as a number or as a word."""
    found = flat(column)
    if pa.types.is_floating(found.type):
        return np.isinf(found.to_numpy(zero_copy_only=False).astype(np.float64))
    if not is_text(found.type):
        return np.zeros(len(found), bool)
    return np.asarray(
        pc.match_substring_regex(found, _INFINITE).fill_null(False).to_numpy(zero_copy_only=False)
    )
