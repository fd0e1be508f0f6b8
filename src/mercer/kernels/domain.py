"""For which rows a kernel is meant: a function over the tree, that says where rows leave it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mercer.inputs import Table
from mercer.kernels.algebra import OnColumns, Warped
from mercer.kernels.base import Kernel
from mercer.kernels.histograms import AdditiveChi2, Chi2
from mercer.kernels.maps import Mapped
from mercer.pairs.linear import mapped_rows


class OutsideError(ValueError):
    """Rows for which a kernel is not meant."""


@dataclass(frozen=True)
class Outside:
    """A number < 0 for which a kernel is not meant, and where it stands; its column is None where a
    map made it.

    >>> Outside("Chi2", 3, 1, -0.5).sentence("X", None)
    'Chi2 takes numbers >= 0, but row 3 of X has -0.5 in column 1 (Negative values in data); shift or clip such columns.'
    """

    kernel: str
    row: int
    column: int | None
    value: float

    def sentence(self, name: str, columns: tuple[str, ...] | None) -> str:
        """What is wrong with the rows of that name."""
        at = self.column if columns is None or self.column is None else repr(columns[self.column])
        where = "after its map" if at is None else f"in column {at}"
        return (
            f"{self.kernel} takes numbers >= 0, but row {self.row} of {name} has {self.value:.6g} {where} "
            "(Negative values in data); shift or clip such columns."
        )


def check_rows(k: Kernel, rows: Table, name: str = "X") -> None:
    """Refuse rows for which a kernel is not meant, by row and column.

    >>> from mercer.inputs import table
    >>> check_rows(Chi2() + 1, table([[1.0, 0.0]]))
    """
    if (found := outside(k, rows) if bounded(k) else None) is not None:
        raise OutsideError(found.sentence(name, rows.columns))


def bounded(k: Any) -> bool:
    """Whether there are rows of numbers for which it is not meant."""
    return isinstance(k, AdditiveChi2 | Chi2) or any(map(bounded, k.inner))


def outside(k: Kernel, rows: Table) -> Outside | None:
    """The first number for which a kernel is not meant; None where there is none, or where it is
    known only when a function has run."""
    match k:
        case AdditiveChi2() | Chi2():
            return _negative(rows, type(k).__name__)
        case OnColumns(kernel=t, columns=c):
            return _placed(outside(t, rows.pick(c)), [rows.position(name) for name in c])
        case Mapped(kernel=t, matrix=S) if bounded(t):
            found = outside(t, mapped_rows(rows, S))
            return found and replace(found, column=None)
        case Warped():
            return None
    return next((found for t in k.inner if (found := outside(t, rows)) is not None), None)


def _negative(rows: Table, kernel: str) -> Outside | None:
    values = rows.data.data if rows.sparse else rows.data
    if not values.size or values.min() >= 0:
        return None
    row, column = (int(at[0]) for at in (rows.data < 0).nonzero())
    return Outside(kernel, row, column, float(rows.data[row, column]))


def _placed(found: Outside | None, at: list[int]) -> Outside | None:
    if found is None or found.column is None:
        return found
    return replace(found, column=at[found.column])
