"""What was done with each column, in words; and rows of numbers."""
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from mercer.inputs import Array
from mercer.tables.errors import quoted


@dataclass(frozen=True)
class Treatment:
    """One original column: what it is taken for and what becomes of it, as shown to users.

    Attributes
    ----------
    kind : number, boolean, category, date, text, constant, empty, id, leak, target, weight, group, time or excluded
    action : one plain sentence
    details : the figures behind it
    outputs : the names of its features
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
        return cls(**state | {"outputs": tuple(state["outputs"]), "warnings": tuple(state["warnings"])})


@dataclass(frozen=True, eq=False)
class Rows:
    """A batch in numbers.

    Attributes
    ----------
    X : (n, p) float32, finite
    y : numbers, or the positions of the classes (-1: a class that training did not have); None without a target
    weight : float64, or None
    group : a 64-bit hash of each value, or None
    time : a number, seconds since 1970 for dates, NaN where missing; or None
    id : the values as they came, a pyarrow array, or None
    index : positions in the batch of the rows kept
    n_unread : cells by column that were filled but could not be read, and count as missing
    odd : whether a row has a level that training lacks, or lacks a value that training always had, in a column where that is rare
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
class SchemaReport:
    """A new table beside the one that was fitted: columns that lack but are not needed, extra ones, and types that differ."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    coerced: tuple[tuple[str, str, str], ...]  # name, type in training, type now

    def sentences(self) -> tuple[str, ...]:
        """What to tell the user."""
        parts = [f"columns not used by the model are ignored: {quoted(self.extra)}."] * bool(self.extra)
        return (*parts, *(f'"{name}" is {now}, it was {then} in training; its values are converted.' for name, then, now in self.coerced))
