"""What a cell means: a missing value, a number, a yes or no; by rules over whole columns."""

from __future__ import annotations

import re

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, Kind, flat, pa, pc
from mercer.tables.written import APOSTROPHES, MONEY, PLAIN, SPACES, undressed

NEVER = (
    "",
    "na",
    "n/a",
    "#n/a",
    "nan",
    "-nan",
    "null",
    "<na>",
    "nat",
    "(null)",
    "\\n",
    "?",
)  # also of a target of text
WORDS = (
    *NEVER,
    "n.a.",
    "n.a",
    "none",
    "nil",
    "missing",
    "-",
    "--",
    ".",
    "*",
    "#div/0!",
    "#value!",
    "#ref!",
    "#null!",
    "#num!",
    "#name?",
    "inf",
    "-inf",
    "+inf",
    "infinity",
    "-infinity",
    "+infinity",
)
TRUTH = (  # (no, yes); a word may stand in several pairs, always on one side
    ("false", "true"),
    ("no", "yes"),
    ("n", "y"),
    ("f", "t"),
    ("off", "on"),
    ("0", "1"),
    ("nein", "ja"),
    ("non", "oui"),
    ("no", "si"),
    ("no", "sí"),
    ("no", "sì"),
    ("n", "j"),
)
_MIXED = {"nan": "NaN", "-nan": "-NaN", "nat": "NaT", "n/a": "n/A"}
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
# behind a number; not the exponent of one: kg, m², m3/h, sq m
_WORD = r"[a-zµμ°Ω²³/]{1,12}"
ONE_WORD = rf"{_WORD}[23]?(?:/{_WORD}[23]?)?"
_UNIT_WORDS = rf"{ONE_WORD}(?:\.?[{SPACES}]{ONE_WORD})?"
_NO_UNITS = ("e2", "e3", "x2", "x3")  # exponents, and 4x2
_UNIT = rf"^[+-]?(?:[$€£¥₹]\s*)?[0-9][0-9.,{SPACES}{APOSTROPHES}]*(?P<unit>{_UNIT_WORDS})\.?$"
_TYPED = re.compile(
    r"\s*(\d{4}[-/]\d{1,2}|\d{1,2}/\d{4}|[+-]?\d[\d.,' \u00a0]*([eE][+-]?\d+)?%?|[+-]?[.,]\d+|"
    + MONEY
    + r"\s?[\d.,]+"
    r"|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T][\d:.Z+-]*)?)\s*"
)
_TRUTHS = pa.array([word for pair in (*TRUTH, ("0.0", "1.0")) for word in pair])
NINES = tuple(float("9" * k) for k in range(2, 10))
MIN_OTHERS = 10  # other values, without which nothing is far
MIN_REPEATS = 3  # a positive one must come so often: a value may happen to be 999


def _tokens(words: tuple[str, ...]) -> Column:
    return pa.array(
        dict.fromkeys(
            form for w in words for form in (w, w.upper(), w.capitalize(), _MIXED.get(w, w))
        )
    )


_MISSING = _tokens(WORDS)
_NEVER = _tokens(NEVER)


def looks_typed(cell: str) -> bool:
    """Whether one cell of a sample is a number or a date."""
    return bool(_TYPED.fullmatch(cell))


def is_text(kind: Kind) -> bool:
    """Whether a pyarrow type holds strings."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def null(column: Column) -> Array:
    """Where a column has no value."""
    return column.is_null().to_numpy(zero_copy_only=False)


def text(column: Column, *, label: bool = False) -> Column:
    """The column as trimmed strings, null where a value is missing; words such as "none" may be
    labels.

    >>> text(pa.array([" a ", "NA", "none"])).to_pylist(), text(pa.array(["none"]), label=True).to_pylist()
    (['a', None, None], ['none'])
    """
    found = flat(column)
    found = pc.utf8_trim_whitespace(found if pa.types.is_string(found.type) else _as_text(found))
    missing = pc.is_in(found, value_set=_NEVER if label else _MISSING)
    return (
        pc.if_else(missing, pa.scalar(None, pa.string()), found)
        if pc.any(missing).as_py()
        else found
    )


def _as_text(column: Column) -> Column:
    """Whole floats lose their ".0", so that a class reads the same from a csv, as an integer and as
    a float."""
    kind = column.type
    if pa.types.is_nested(kind):
        return pa.array([None if v is None else str(v) for v in column.to_pylist()], pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array(
            [None if v is None else v.decode("utf-8", "replace") for v in column.to_pylist()],
            pa.string(),
        )
    if pa.types.is_floating(kind):
        return pc.replace_substring_regex(
            column.cast(pa.float64()).cast(pa.string()), r"^(-?[0-9]+)\.0*$", r"\1"
        )
    return column.cast(pa.string())


def numbers(column: Column, unit: str = "", written: str = PLAIN) -> tuple[Array, Array]:
    """The numbers of a column, NaN where there are none, and a mask of the filled cells that are
    not numbers.

    Infinities count as missing. A column of text that reads as numbers throughout is converted at
    once; otherwise cells are looked at in turn: words for missing, plain numbers, then money,
    percents, amounts in brackets, and the unit given, all of them with these marks (`written_of`).

    >>> numbers(pa.array(["1", "NA", "$2,000", "12%", "x"]))[0].tolist()
    [1.0, nan, 2000.0, 12.0, nan]
    >>> numbers(pa.array(["1.5 kg", "2KG", "3 g"]), "kg")[0].tolist()
    [1.5, 2.0, nan]
    >>> numbers(pa.array(["1.234,50 €", "1.234"]), written=",.")[0].tolist()
    [1234.5, 1234.0]
    """
    found = flat(column)
    if is_text(found.type):
        return _from_text(found, unit, written)
    if counts(found.type):
        values = _finite(_as_float(found))
        return values, np.zeros(len(values), bool)
    return np.full(len(found), np.nan), ~null(found)


def counts(kind: Kind) -> bool:
    """Whether values of a pyarrow type are numbers; times of the day and durations are."""
    t = pa.types
    return any(
        test(kind)
        for test in (
            t.is_integer,
            t.is_floating,
            t.is_decimal,
            t.is_boolean,
            t.is_time,
            t.is_duration,
            t.is_null,
        )
    )


def _as_float(column: Column) -> Column:
    if pa.types.is_time(column.type) or pa.types.is_duration(column.type):
        column = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    return column.cast(pa.float64(), safe=False)


def _finite(column: Column) -> Array:
    """float64, with NaN for nulls and infinities."""
    values = column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    return values if np.isfinite(values).all() else np.where(np.isfinite(values), values, np.nan)


def unit_of(column: Column) -> str:
    """The unit, in small letters, that most filled cells of a text column have behind a number; ""
    where there is none.

    >>> unit_of(pa.array(["1.5 kg", "2KG", "NA", "3"])), unit_of(pa.array(["1 kg", "2 g", "3 m", "x"])), unit_of(pa.array(["1e5", "5%"]))
    ('kg', '', '')
    """
    cells = text(column).drop_null()
    found = units(cells)
    return found[0][0] if found and 2 * found[0][1] >= len(cells) else ""


def units(cells: Column) -> list[tuple[str, int]]:
    """The units behind the numbers of texts, in small letters, and how many cells have each; the
    most frequent first.

    >>> units(pa.array(["1 km", "2KM", "300 m", "x"])), units(pa.array(["5.5 sq m", "2 m3/h", "1e3"]))
    ([('km', 2), ('m', 1)], [('m3/h', 1), ('sq m', 1)])
    """
    found = (
        pc.extract_regex(pc.utf8_lower(cells), _UNIT).field("unit").drop_null()
        if len(cells)
        else cells
    )
    counted = pc.value_counts(found).to_pylist() if len(found) else []
    return sorted(
        (
            (str(item["values"]), int(item["counts"]))
            for item in counted
            if item["values"] and item["values"] not in _NO_UNITS
        ),
        key=lambda item: (-item[1], item[0]),
    )


def padded(column: Column) -> int:
    """How many cells of a text column are digits that begin with a needless 0, as codes do.

    >>> padded(pa.array(["007", "0", "0.5", "12", " 01"]))
    2
    """
    able = column.filter(pc.starts_with(pc.utf8_ltrim_whitespace(column), "0").fill_null(False))
    return (
        int(pc.sum(pc.match_substring_regex(able, r"^\s*0[0-9]+\s*$")).as_py() or 0)
        if len(able)
        else 0
    )


def _from_text(column: Column, unit: str, written: str) -> tuple[Array, Array]:
    try:
        if written[0] == ".":
            values = _finite(column.cast(pa.float64()))
            return values, np.zeros(len(values), bool)
    except pa.ArrowInvalid:
        pass
    return _one_by_one(_without(text(column), unit), written)


def _without(column: Column, unit: str) -> Column:
    return (
        pc.replace_substring_regex(column, rf"([0-9.])[{SPACES}]*(?i:{re.escape(unit)})\.?$", r"\1")
        if unit
        else column
    )


def _one_by_one(column: Column, written: str) -> tuple[Array, Array]:
    """Numbers among other texts; `column` is trimmed and null where missing."""
    # beside decimal commas 1.234 is no plain number
    values = _plain(column) if written[0] == "." else np.full(len(column), np.nan)
    odd = np.isnan(values) & ~null(column)
    if odd.any():
        values[odd] = _plain(undressed(column.filter(pa.array(odd)), written))
    return values, odd & np.isnan(values)


def _plain(column: Column) -> Array:
    """The cells that are plain numbers, NaN for the rest."""
    kept = pc.if_else(
        pc.match_substring_regex(column, _NUMBER), column, pa.scalar(None, pa.string())
    )
    return np.array(_finite(kept.cast(pa.float64())))


def truths(column: Column) -> Array:
    """1 for yes, true, 1 and their like, 0 for no, false, 0, whatever the type of the column; NaN
    for anything else.

    >>> truths(pa.array(["Yes", "f", "0.0", "maybe"])).tolist(), truths(pa.array([True, None])).tolist()
    ([1.0, 0.0, 0.0, nan], [1.0, nan])
    """
    found = (
        pc.index_in(pc.utf8_lower(text(column)), value_set=_TRUTHS)
        .cast(pa.float64())
        .to_numpy(zero_copy_only=False)
    )
    return np.where(np.isnan(found), np.nan, found % 2)


def truth(distinct: list[str]) -> tuple[str, str] | None:
    """The pair (no, yes) that distinct texts are, in whatever case and mix of spellings, or None.

    >>> truth(["Yes", "no"]), truth(["yes", "YES", "N"]), truth(["yes", "YES"]), truth(["no", "false"])
    (('no', 'yes'), ('no', 'yes'), None, None)
    """
    lowered = {v.lower() for v in distinct}
    met = [pair for pair in TRUTH if lowered & set(pair)]
    if lowered - {word for pair in met for word in pair} or not all(
        lowered & {pair[side] for pair in met} for side in (0, 1)
    ):
        return None
    return max(met, key=lambda pair: len(lowered & set(pair)))


def missing_marks(values: Array, low: float, high: float) -> tuple[float, ...]:
    """The marks in a sample of a column that runs from `low` to `high`: farther from the rest than
    the rest spans.

    >>> missing_marks(np.array([*range(20), -999.0]), -999.0, 19.0), missing_marks(np.array([*range(90), 99.0]), 0.0, 99.0)
    ((-999.0,), ())
    """
    ends = {
        float(v)
        for v in (low, high, *(values.min(initial=0), values.max(initial=0)))
        if abs(v) in NINES
    }
    found: list[float] = []
    for mark in sorted(ends | {-v for v in NINES if np.any(values == -v)}, key=abs, reverse=True):
        rest = values[~np.isin(values, [*found, mark])]
        often = mark < 0 <= rest.min(initial=0) or int(np.sum(values == mark)) >= MIN_REPEATS
        if often and len(rest) >= MIN_OTHERS and _apart(mark, rest):
            found.append(mark)
    return tuple(sorted(found))


def _apart(mark: float, rest: Array) -> bool:
    low, high = float(rest.min()), float(rest.max())
    gap = low - mark if mark < low else mark - high
    return gap > max(high - low, abs(mark) / 2)
