"""From a column to numbers: each encoder reads a column into a few float vectors (NaN: missing) and
lays them out as features.

Numbers are standardised. Two categories, or the two values of a boolean, lie sqrt(2) apart, the
root mean square distance of two independent standardised numbers: one bandwidth then suits all
columns.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, pa, pc
from mercer.tables.dates import CLOCKS, CYCLES, form_of, seconds
from mercer.tables.scale import RankNormalizer, Standardizer
from mercer.tables.sketch import HELD, short
from mercer.tables.values import null, numbers, text, truths
from mercer.tables.written import PLAIN

APART = 2**0.5


@dataclass(frozen=True)
class Encoder:
    """Reads a column; `read` gives (n, c) floats with NaN for missing, and the number of filled
    cells it could not read."""

    registry: ClassVar[dict[str, type[Encoder]]] = {}

    @property
    def takes(self) -> tuple[str, ...]:
        """The families of types whose values it reads as they are; texts it reads in any case, as
        those of csv files."""
        return ("number",)

    def __init_subclass__(cls) -> None:
        Encoder.registry[cls._stored_name()] = cls

    @classmethod
    def _stored_name(cls) -> str:
        return cls.__name__.removesuffix("Encoder")

    def read(self, column: Column) -> tuple[Array, int]:
        """What the cells mean."""
        raise NotImplementedError

    def features(self, values: Array) -> Array:
        """(n, p) from what was read."""
        raise NotImplementedError

    def names(self, name: str) -> tuple[str, ...]:
        """The names of the features."""
        raise NotImplementedError

    def state(self) -> dict[str, Any]:
        """Plain values, for `from_state`."""
        return {
            "type": self._stored_name(),
            **{f.name: _stated(getattr(self, f.name)) for f in fields(self)},
        }


def _stated(value: Any) -> Any:
    if isinstance(value, Encoder):
        return value.state()
    return (
        asdict(value)
        if isinstance(value, Standardizer | RankNormalizer)
        else list(value)
        if isinstance(value, tuple)
        else value
    )


def from_state(state: dict[str, Any]) -> Encoder:
    """The encoder that `state()` described."""
    return Encoder.registry[state["type"]](**{k: _made(v) for k, v in state.items() if k != "type"})


def _made(value: Any) -> Any:
    if isinstance(value, dict):
        if "knots" in value:
            return RankNormalizer(**value | {"knots": tuple(value["knots"])})
        return from_state(value) if "type" in value else Standardizer(**value)
    return tuple(value) if isinstance(value, list) else value


def as_columns(parts: list[Array], n: int) -> Array:
    """Vectors as columns, also where there are none."""
    return np.stack(parts, axis=1) if parts else np.zeros((n, 0))


@dataclass(frozen=True)
class NumberEncoder(Encoder):
    """A standardised or rank-normalised number; missing ones take the median and, where they were not rare, raise an
    indicator.

    `unit` may stand behind the numbers; `marks` are numbers that stand for missing, such as -999,
    `void` are texts that do, such as "k.A."; `written` are the decimal mark of a text column and
    what groups thousands.
    """

    scale: Standardizer | RankNormalizer
    fill: float
    indicator: bool = False
    unit: str = ""
    marks: tuple[float, ...] = ()
    void: tuple[str, ...] = ()
    written: str = PLAIN

    def read(self, column: Column) -> tuple[Array, int]:
        values, odd = numbers(column, self.unit, self.written)
        if self.void and odd.any():
            known = pc.is_in(text(column), value_set=pa.array(self.void))
            odd &= ~known.to_numpy(zero_copy_only=False)
        if self.marks:
            values = np.where(np.isin(values, self.marks), np.nan, values)
        return values[:, None], int(odd.sum())

    def features(self, values: Array) -> Array:
        x = values[:, 0]
        gone = np.isnan(x)
        return as_columns(
            [self.scale(np.where(gone, self.fill, x))] + [gone * APART] * self.indicator, len(x)
        )

    def names(self, name: str) -> tuple[str, ...]:
        return (name, *(f"{name} missing",) * self.indicator)


@dataclass(frozen=True)
class BooleanEncoder(Encoder):
    """0 or sqrt(2); missing ones take the more frequent value and, where they were not rare, raise
    an indicator.

    Any way to write yes and no is read, whichever of them training had.
    """

    pair: tuple[str, str]
    fill: float
    indicator: bool = False

    @property
    def takes(self) -> tuple[str, ...]:
        return "boolean", "number"

    def read(self, column: Column) -> tuple[Array, int]:
        if self.pair == ("0", "1") and not (read := numbers(column))[1].any():
            wrong = (read[0] != 0) & (read[0] != 1) & ~np.isnan(read[0])
            return np.where(wrong, np.nan, read[0])[:, None], int(wrong.sum())
        found = truths(column)
        return found[:, None], int(np.isnan(found).sum()) - text(column).null_count

    def features(self, values: Array) -> Array:
        x = values[:, 0]
        gone = np.isnan(x)
        return as_columns(
            [APART * np.where(gone, self.fill, x)] + [gone * APART] * self.indicator, len(x)
        )

    def names(self, name: str) -> tuple[str, ...]:
        return (name, *(f"{name} missing",) * self.indicator)


@dataclass(frozen=True)
class DateEncoder(Encoder):
    """Time elapsed as a number, and the place in each cycle as a point on a circle."""

    form: str | None
    scale: Standardizer
    fill: float
    cycles: tuple[str, ...] = ()
    elapsed: bool = True
    indicator: bool = False

    @property
    def takes(self) -> tuple[str, ...]:
        return ("date", "number") if self.form == "%Y%m%d" else ("date",)

    def read(self, column: Column) -> tuple[Array, int]:
        values = seconds(column, self.form)
        if not np.isnan(values).all():
            return values[:, None], int(np.isnan(values).sum()) - text(
                column
            ).null_count if np.isnan(values).any() else 0
        values = self._otherwise(column, values)
        return values[:, None], int(np.isnan(values).sum()) - text(column).null_count

    def _otherwise(self, column: Column, values: Array) -> Array:
        """Dates that are not written as in training, in the form that they have themselves."""
        form = form_of(column)
        return (
            seconds(column, form) if form and (form in CLOCKS) == (self.form in CLOCKS) else values
        )

    def features(self, values: Array) -> Array:
        x = values[:, 0]
        gone = np.isnan(x)
        filled = np.where(gone, self.fill, x)
        parts = [self.scale(filled)] * self.elapsed
        for cycle in (c for c in CYCLES if c.name in self.cycles):
            angle = 2 * np.pi * cycle.turn(filled)
            parts += [np.where(gone, 0, np.sin(angle)), np.where(gone, 0, np.cos(angle))]
        return as_columns(parts + [gone * APART] * self.indicator, len(x))

    def names(self, name: str) -> tuple[str, ...]:
        turns = tuple(f"{name} {wave} of {c}" for c in self.cycles for wave in ("sin", "cos"))
        return (f"{name} elapsed",) * self.elapsed + turns + (f"{name} missing",) * self.indicator


def codes_of(cells: Column, levels: tuple[str, ...]) -> Array:
    """The position of each cell among the levels, NaN where it is none of them."""
    found = pc.index_in(cells, value_set=pa.array(levels, pa.string())).cast(pa.float64())
    return found.to_numpy(zero_copy_only=False)


@dataclass(frozen=True)
class CategoryEncoder(Encoder):
    """A feature for each frequent level, one for all others, one for missing, and the log of the
    level's share where levels are many.

    Levels are in order of frequency; one that training did not have counts as other.
    """

    levels: tuple[str, ...]  # all whose counts are known
    shares: tuple[float, ...]
    n_features: int  # the levels that have a feature
    other: bool
    gone: bool  # a feature for missing; else the most frequent level stands in
    frequency: Standardizer | None = None
    numeric: bool = False
    unit: str = ""  # of levels that are numbers, as of `NumberEncoder`
    written: str = PLAIN

    @property
    def takes(self) -> tuple[str, ...]:
        return ("number",) if self.numeric else ("text",)

    def read(self, column: Column) -> tuple[Array, int]:
        codes = self._of_numbers(column) if self.numeric else self._of_text(text(column))
        return codes[:, None], 0

    def _of_text(self, cells: Column) -> Array:
        codes = codes_of(short(cells), self.levels)
        return np.where(np.isnan(codes) & ~null(cells), len(self.levels), codes)

    def _of_numbers(self, column: Column) -> Array:
        """Levels that are numbers: 7 and 7.0 are one."""
        return self.codes_of_numbers(*numbers(column, self.unit, self.written))

    def codes_of_numbers(self, values: Array, odd: Array | bool = False) -> Array:
        """Of levels that are numbers, the positions of these."""
        known = np.array([float(v) for v in self.levels])
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known[order], values), len(known) - 1)]
        return np.where(
            np.isnan(values) & ~odd, np.nan, np.where(known[at] == values, at, len(known))
        )

    def features(self, values: Array) -> Array:
        gone = np.isnan(values[:, 0])
        x = np.where(gone & (not self.gone), 0, values[:, 0])
        hot = (
            [x == j for j in range(self.n_features)]
            + [x >= self.n_features] * self.other
            + [gone] * self.gone
        )
        return as_columns(
            [h.astype(np.float64) for h in hot]
            + [s(self._logs(x)) for s in (self.frequency,) if s],
            len(x),
        )

    def _logs(self, x: Array) -> Array:
        """Of a level that training lacks, that of its rarest one: less would put a row far from all
        others by this alone."""
        shares = np.log(np.array([*self.shares, min(self.shares)]))
        return shares[np.where(np.isnan(x), len(self.levels), x).astype(np.int64)]

    def names(self, name: str) -> tuple[str, ...]:
        hot = tuple(f"{name} = {level}" for level in self.levels[: self.n_features])
        rest = (f"{name} = other",) * self.other + (f"{name} missing",) * self.gone
        return hot + rest + (f"{name} frequency",) * (self.frequency is not None)


@dataclass(frozen=True)
class TextEncoder(Encoder):
    """A text: its frequent values as categories, and its length in characters and in words."""

    values: CategoryEncoder | None
    length: Standardizer
    words: Standardizer

    @property
    def takes(self) -> tuple[str, ...]:
        return ("text",)

    def read(self, column: Column) -> tuple[Array, int]:
        cells = text(column)
        codes = (
            self.values.read(cells)[0][:, 0] if self.values else np.where(null(cells), np.nan, 0.0)
        )
        return np.stack([*lengths(cells), codes], axis=1), 0

    def features(self, values: Array) -> Array:
        length, words = np.log1p(values[:, :2]).T
        sizes = as_columns([self.length(length), self.words(words)], len(values))
        return np.hstack([self.values.features(values[:, 2:]), sizes]) if self.values else sizes

    def names(self, name: str) -> tuple[str, ...]:
        return (
            *(self.values.names(name) if self.values else ()),
            f"{name} length",
            f"{name} words",
        )


def lengths(cells: Column) -> tuple[Array, Array]:
    """The characters and the spaces of each cell, of its first 4,096 characters."""
    filled = short(cells.fill_null(""), HELD)
    count = (pc.utf8_length(filled), pc.count_substring(filled, " "))
    return count[0].to_numpy(zero_copy_only=False).astype(np.float64), count[1].to_numpy(
        zero_copy_only=False
    ).astype(np.float64)
