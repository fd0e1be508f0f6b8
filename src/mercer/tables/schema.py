"""The columns of a table beside what is asked of it: names and roles, and a new table beside the one
of training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mercer.tables.arrow import Schema
from mercer.tables.encoders import Encoder
from mercer.tables.errors import DataError, Misnamed, nearest, quoted
from mercer.tables.infer import family


@dataclass(frozen=True)
class SchemaReport:
    """A new table beside the one that was fitted: columns that lack but are not needed, extra ones,
    and types that differ.

    Parameters
    ----------
    missing : tuple of str
        Columns that lack.
    extra : tuple of str
        Columns that training did not have.
    coerced : tuple of (str, str, str)
        Name, type in training, type now.

    Examples
    --------
    >>> SchemaReport((), ("colour",), ()).sentences()
    ('columns not used by the model are ignored: "colour".',)
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    coerced: tuple[tuple[str, str, str], ...]  # name, type in training, type now

    def sentences(self) -> tuple[str, ...]:
        """What to tell the user."""
        parts = [f"columns not used by the model are ignored: {quoted(self.extra)}."] * bool(
            self.extra
        )
        return (
            *parts,
            *(
                f'"{name}" is {now}, it was {then} in training; its values are converted.'
                for name, then, now in self.coerced
            ),
        )


def check_roles(asked: Sequence[tuple[str, str | None]], names: Sequence[str]) -> None:
    """That every column given as (role, name) is there, and in one role only.

    >>> check_roles([("target", "price"), ("weight", None)], ["price", "size"])
    """
    for role, name in asked:
        if name is not None and name not in names:
            raise Misnamed(
                f'there is no column "{name}" (given as {role}){nearest(str(name), names)}'
            )
    used = Counter(name for _, name in asked if name is not None)
    if twice := [name for name, count in used.items() if count > 1]:
        raise Misnamed(f"{quoted(twice)} has more than one role; give each column one.")


def need(used: Sequence[str], names: Sequence[str], what: str) -> None:
    """Raise a DataError where a column that the features come from is not among the names."""
    there = set(names)
    lacking = [name for name in used if name not in there]
    if lacking:
        near = (
            nearest(lacking[0], names)
            if len(lacking) == 1
            else "; give a table with the columns of the training data."
        )
        raise DataError(f"{what} lacks {quoted(lacking)}, which the model uses{near}")


def compared(
    schema: Schema, types: Mapping[str, str], encoders: Mapping[str, Encoder]
) -> SchemaReport:
    """A schema beside the families of types that training saw and the encoders that read them."""
    now = {f.name: family(f.type) for f in schema}
    missing = tuple(n for n in types if n not in now)
    odd = [n for n, e in encoders.items() if now[n] not in ("text", "empty", types[n], *e.takes)]
    changed = tuple((n, encoders[n].takes[0], now[n]) for n in odd)
    return SchemaReport(missing, tuple(n for n in now if n not in types), changed)
