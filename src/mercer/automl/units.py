"""Treated columns back in the units of the table, by names that a reader knows: what a formula is of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Each, Floats, Text, check
from mercer.models.sparse.terms import quoted
from mercer.store import register
from mercer.tables import Columns
from mercer.tables.dates import YEAR
from mercer.tables.encoders import (
    APART,
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    Encoder,
    NumberEncoder,
    TextEncoder,
)
from mercer.tables.levels import CodedNumberEncoder, LevelMeansEncoder
from mercer.tables.scale import RankNormalizer, Standardizer

SHOWN = 12  # digits of a number that is subtracted
LONGEST = 60  # characters of the name of a column
INDICATED = float(np.float32(APART))  # what a treated indicator is where it is true
FIRST_YEAR = 1970  # of the seconds of dates
HUGE = 1e60
FAR = 14.0  # standard deviations from zero to the mean of columns that are told from a round number near it


class Unit(NamedTuple):
    """A name, treated units in one of these, and what 0 was; and the column itself that it is of:
    its name, and what is subtracted from it, before it is divided and bent by `slog`, if it is."""

    name: str
    per: float = 1.0
    shift: float = 0.0
    own: str = ""
    centre: float = 0.0
    spread: float = 0.0  # 0: not bent


@register("automl.ColumnUnits")
@dataclass(frozen=True, eq=False)
class ColumnUnits:
    """x_j = z_j / per_j + shift_j: numbers as they were, indicators 0 or 1, dates in years.

    Missing values are what they were filled with, and values beyond ten standard deviations are
    cut off there: a formula is of treated columns. Columns far from zero are told from a number
    near their mean, those of heavy tails by a signed logarithm: `own`, `centre` and `spread` tell
    the column that each is of.
    """

    names: tuple[str, ...]
    per: Array  # (d,)
    shift: Array  # (d,)
    own: tuple[str, ...]
    centre: Array  # (d,)
    spread: Array  # (d,)

    must = dict(
        names=Each(Text(), size="d"),
        per=Floats("d"),
        shift=Floats("d"),
        own=Each(Text(), size="d"),
        centre=Floats("d"),
        spread=Floats("d", low=0.0),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        return None if (self.per != 0).all() else "has a unit of nothing"

    @classmethod
    def of(cls, columns: Columns) -> ColumnUnits:
        """Of the features of a table.

        >>> from mercer.tables.arrow import pa
        >>> batch = pa.record_batch({"size": [1.0, 2.0, 4.5, 9.0], "price": [1.5, 2.5, 3.25, 4.5]})
        >>> c = Columns("price").fit([batch])
        >>> u = ColumnUnits.of(c)
        >>> u.names, u(c.transform(batch).X)[:, 0].round(6).tolist()
        (('size',), [1.0, 2.0, 4.5, 9.0])
        """
        found = [u for name, e in columns.encoders_.items() for u in units_of(e, quoted(name))]
        return cls.listed([u._replace(own=_brief(u.own or u.name)) for u in found])

    @classmethod
    def listed(cls, found: list[Unit]) -> ColumnUnits:
        """Of units in their order."""
        numbers = np.array([(u.per, u.shift, u.centre, u.spread) for u in found], float)
        per, shift, centre, spread = numbers.reshape(-1, 4).T.copy()
        names = tuple(_brief(u.name) for u in found)
        return cls(names, per, shift, tuple(u.own for u in found), centre, spread)

    def __call__(self, X: Array) -> Array:
        """Treated rows, in float64."""
        return np.asarray(X, np.float64) / self.per + self.shift

    def told(self, j: int, value: float) -> float:
        """A value of column j as the column itself has it."""
        s = float(self.spread[j])
        with np.errstate(over="ignore"):
            out = s * np.sign(value) * np.expm1(abs(value)) if s else value
        return float(out + self.centre[j])

    def bent(self, j: int, value: float) -> float:
        """And back."""
        s, moved = float(self.spread[j]), value - float(self.centre[j])
        return float(np.sign(moved) * np.log1p(abs(moved) / s) if s else moved)


def _brief(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."


def units_of(e: Encoder, name: str) -> Iterator[Unit]:
    """Of the features of an encoder, in their order."""
    if isinstance(e, CodedNumberEncoder):
        yield from units_of(e.number, name)
        yield from units_of(e.codes, name)
    elif isinstance(e, LevelMeansEncoder):
        yield from units_of(e.values, name)
        yield from (Unit(f"(mean {o} of {name})") for o in e.outputs)
    elif isinstance(e, NumberEncoder):
        yield _scaled(e.scale, name)
        yield from _missing(name, e.indicator)
    elif isinstance(e, BooleanEncoder):
        yield Unit(f"1{{{name} = {e.pair[1]}}}", INDICATED)
        yield from _missing(name, e.indicator)
    elif isinstance(e, DateEncoder):
        yield from _dated(e, name)
    elif isinstance(e, CategoryEncoder):
        yield from _levels(e, name)
    elif type(e) is TextEncoder:
        yield from units_of(e.values, name) if e.values else ()
        yield _scaled(e.length, f"log(1 + characters of {name})")
        yield _scaled(e.words, f"log(1 + spaces of {name})")
    else:
        yield from (Unit(f"({output})") for output in e.names(name))


def _scaled(scale: Standardizer | RankNormalizer, name: str) -> Unit:
    """A number: itself, or bent where it was bent; as it was treated where squares would not be
    finite."""
    if not 1 / HUGE < scale.std < HUGE or abs(scale.mean) > HUGE:
        return Unit(f"({name} standardised)")
    per, mean = 1 / scale.std, scale.mean
    if isinstance(scale, RankNormalizer):
        return Unit(f"normal_score({name})", per, mean)
    if scale.spread:
        shown = f"slog({_moved(name, scale.centre)}/{scale.spread:.6g})"
        return Unit(shown, per, mean, name, scale.centre, scale.spread)
    if abs(mean) <= FAR * scale.std:
        return Unit(name, per, mean)
    near = float(f"{mean:.{_digits(mean, scale.std)}g}")
    return Unit(_moved(name, near), per, mean - near, name, near)


def _digits(mean: float, std: float) -> int:
    """Of a mean, to within its deviation; as many as are shown, at most."""
    return int(np.clip(np.floor(np.log10(abs(mean))) - np.floor(np.log10(std)) + 1, 1, SHOWN))


def _moved(name: str, centre: float) -> str:
    sign = "-" if centre > 0 else "+"
    return f"({name} {sign} {abs(centre):.{SHOWN}g})" if centre else name


def _missing(name: str, told: bool) -> Iterator[Unit]:
    yield from (Unit(f"1{{{name} missing}}", INDICATED),) * told


def _dated(e: DateEncoder, name: str) -> Iterator[Unit]:
    if e.elapsed:
        scale = replace(e.scale, mean=FIRST_YEAR + e.scale.mean / YEAR, std=e.scale.std / YEAR)
        yield _scaled(scale, f"year({name})") if not scale.spread else Unit(f"({name} elapsed)")
    waves = (f"{wave}({c} of {name})" for c in e.cycles for wave in ("sin", "cos"))
    yield from map(Unit, waves)
    yield from _missing(name, e.indicator)


def _levels(e: CategoryEncoder, name: str) -> Iterator[Unit]:
    told = [f"{name} = {level}" for level in e.levels[: e.n_features]]
    told += [f"{name} = other"] * e.other + [f"{name} missing"] * e.gone
    yield from (Unit(f"1{{{one}}}") for one in told)
    if e.frequency is not None:
        yield _scaled(e.frequency, f"log(share of {name})")
