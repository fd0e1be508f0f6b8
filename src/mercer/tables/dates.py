"""Dates and times in their common forms, as seconds since 1970; and the cycles they run through."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, Kind, flat, pa, pc
from mercer.tables.errors import DataError
from mercer.tables.values import null, numbers, text

_DAYS = (
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d %b %Y",
    "%d-%b-%Y",
    "%d/%b/%Y",
    "%b %d, %Y",
    "%b %d %Y",
    "%a %d %b %Y",
    "%Y%m%d",
    "%d.%m.%y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%d-%b-%y",
)
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p")
MONTHS = (
    "%Y-%m",
    "%m/%Y",
    "%Y/%m",
    "%m-%Y",
    "%m.%Y",
    "%b %Y",
    "%b-%Y",
    "%b-%y",
    "%Y-%b",
)  # the first day stands for the month
FORMS = ("iso", "iso zone", *(day + time for day in _DAYS for time in _TIMES), *MONTHS, *CLOCKS)
SEVERAL = " or "  # between the forms of a column that has several
MAX_FORMS = 4  # forms in one column
MIN_SHARE = 0.95  # of the filled cells must read as dates
_ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$"
_ZONE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:?[0-9]{2}|[+-][0-9]{2})$"
_SHAPE = re.compile(r"(?=.*\d)[\d/.:,+ TZapmAPMa-zA-Z-]{4,40}")
YEAR = 365.2425 * 86_400
EARLIEST = -970 * YEAR  # the year 1000


def form_of(column: Column) -> str | None:
    """The form in which nearly all filled cells of a sample are dates, or None.

    Where day and month may be either, the day comes first with points and dashes and the month
    first with slashes, unless a number above 12 shows otherwise: a form that reads more cells wins.
    """
    cells = text(column).drop_null()
    if not len(cells) or not _SHAPE.fullmatch(cells[0].as_py()):
        return None
    few = cells.slice(0, 20)
    able = [f for f in FORMS if _share(few, f) >= 0.9]
    shares = {f: _share(cells, f) for f in able}
    best = max(shares.values(), default=0.0)
    found = [f for f in _preferred(able) if shares[f] == best]
    return found[0] if best >= MIN_SHARE else _several(cells)


def _several(cells: Column) -> str | None:
    """Forms that together read nearly all cells, each more than the ones before it left; never two
    that part only by day and month."""
    some = cells.slice(0, 200)
    forms = [f for f in FORMS if f not in CLOCKS and _share(some, f) > 0]
    if np.isnan(seconds(some, SEVERAL.join(forms))).mean() > 0.2:
        return None
    days, left, found = (
        np.stack([~np.isnan(seconds(cells, f)) for f in forms]),
        np.ones(len(cells), bool),
        list[str](),
    )
    while len(found) < MAX_FORMS and left.mean() > 1 - MIN_SHARE:
        able = [f for f in _preferred(forms) if not any(_swapped(f) == _plain(g) for g in found)]
        gain = {f: int((days[forms.index(f)] & left).sum()) for f in able}
        best = max(able, key=lambda f: gain[f])  # the first of equals
        if gain[best] < max(2, 0.01 * len(cells)):
            return None
        found.append(best)
        left &= ~days[forms.index(best)]
    return SEVERAL.join(found) if left.mean() <= 1 - MIN_SHARE else None


def _plain(form: str) -> str:
    return form.split(" ")[0]


def _swapped(form: str) -> str:
    return _plain(form).replace("%d", "%?").replace("%m", "%d").replace("%?", "%m")


def _preferred(able: list[str]) -> list[str]:
    return sorted(
        able, key=lambda f: (f.startswith("%d/%m"), f.startswith("%m-%d"), FORMS.index(f))
    )


def _share(cells: Column, form: str) -> float:
    return float(np.mean(~np.isnan(seconds(cells, form))))


def seconds(column: Column, form: str | None) -> Array:
    """Seconds since 1970 (UTC where zones are given), NaN where a cell is no date of this form."""
    found = flat(column)
    if pa.types.is_timestamp(found.type) or pa.types.is_date(found.type):
        return _stamped(_micro(found))
    cells = text(found)
    if not form:
        return np.full(len(cells), np.nan)
    if SEVERAL in form:
        return _first([seconds(cells, f) for f in form.split(SEVERAL)])
    if form in MONTHS:
        cells, form = pc.binary_join_element_wise(cells, "01", " "), f"{form} %d"
    if form in ("iso", "iso zone"):
        return _iso(cells, form)
    found = _stamped(
        pc.strptime(cells, format=form, unit="s", error_is_null=True).cast(pa.timestamp("us"))
    )
    return np.where(found < EARLIEST, np.nan, found)  # %Y also takes the year 21


def _first(parts: list[Array]) -> Array:
    """Of each cell the first that is a date."""
    out = parts[0]
    for part in parts[1:]:
        out = np.where(np.isnan(out), part, out)
    return out


def _micro(column: Column) -> Column:
    if pa.types.is_date(column.type):
        column = column.cast(pa.date32()).cast(pa.timestamp("s"))
    return column.cast(pa.timestamp("us", column.type.tz), safe=False)


def _iso(cells: Column, form: str) -> Array:
    kind = pa.timestamp("us") if form == "iso" else pa.timestamp("us", "UTC")
    try:
        return _stamped(cells.cast(kind))
    except pa.ArrowInvalid:
        able = pc.match_substring_regex(cells, _ISO if form == "iso" else _ZONE)
        return _each(pc.if_else(able, cells, pa.scalar(None, pa.string())), kind)


def _each(cells: Column, kind: Kind) -> Array:
    """Cells that look like dates, some of which (2021-02-30) may be none: those are found by
    halving."""
    try:
        return _stamped(cells.cast(kind))
    except pa.ArrowInvalid:
        if len(cells) == 1:
            return np.array([np.nan])
        half = len(cells) // 2
        return np.concatenate([_each(cells.slice(0, half), kind), _each(cells.slice(half), kind)])


def _stamped(column: Column) -> Array:
    ticks = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return np.where(null(column), np.nan, ticks / 1e6)


@dataclass(frozen=True)
class Cycle:
    """A cycle of the calendar: its name, and where in it a moment lies, as a share of a turn."""

    name: str
    unit: str

    def turn(self, moments: Array) -> Array:
        """In [0, 1)."""
        stamp = moments.astype("datetime64[s]")
        start = stamp.astype(f"datetime64[{self.unit}]")
        if self.unit == "W":
            return ((moments / 86_400 + 3) / 7) % 1  # weeks from Monday
        length = (start + 1).astype("datetime64[s]") - start.astype("datetime64[s]")
        return (stamp - start.astype("datetime64[s]")) / length


CYCLES = (Cycle("year", "Y"), Cycle("month", "M"), Cycle("week", "W"), Cycle("day", "D"))


def varying(moments: Array) -> tuple[str, ...]:
    """The cycles that a sample of moments runs through: at least two whole days, months or years,
    and several places in each turn.

    A cycle that the sample runs through less than once says no more than the time elapsed, and is
    left out.
    """
    if not len(moments):
        return ()
    span = float(moments.max() - moments.min())
    turns = {"year": YEAR, "month": YEAR / 12, "week": 7 * 86_400, "day": 86_400}
    return tuple(
        c.name
        for c in CYCLES
        if span >= turns[c.name] and len(np.unique(np.round(c.turn(moments), 4))) > 1
    )


def time_form(column: Column, name: str = "") -> str | None:
    """How a column orders the rows: "number", or a form of dates (None: dates by their type).

    >>> time_form(pa.array([1, 2])), time_form(pa.array(["2024-01-31"]))
    ('number', 'iso')
    """
    found = flat(column)
    if pa.types.is_timestamp(found.type) or pa.types.is_date(found.type):
        return None
    values, odd = numbers(found)
    if not np.isnan(values).all() and odd.mean() < 0.05:
        return "number"
    form = form_of(found)
    if form is None:
        which = f'the time column "{name}"' if name else "the time column"
        raise DataError(
            f"{which} holds neither numbers nor dates; choose another or write its dates as 2024-01-31."
        )
    return form


def moments(column: Column, form: str | None) -> Array:
    """Numbers, or seconds since 1970; NaN where missing."""
    return numbers(column)[0] if form == "number" else seconds(column, form)
