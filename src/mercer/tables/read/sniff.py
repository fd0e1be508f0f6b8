"""How a csv file is written, from its first quarter of a megabyte: delimiter, quoting, header and
number marks."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mercer.tables.arrow import Column, pc
from mercer.tables.values import ONE_WORD, looks_typed
from mercer.tables.written import MONEY

_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}
_SPACES = " \u00a0\u2009\u202f"
_MONEY = rf"(?:\s|%|{MONEY})*"
_BEHIND = rf"(?:{_MONEY}|\s*(?i:{ONE_WORD})\.?\s*)"  # money, percents, or a unit
_POINT = re.compile(
    r"[+-]?(\d{4,}|\d{0,3})\.(\d{1,2}|\d{4,})|[+-]?(\d{4,}|0?)\.\d{3}"
)  # a point that groups no thousands
_COMMA = re.compile(_POINT.pattern.replace(r"\.", ","))
_DIGITS = re.compile(rf"[+-]?[\d.,'’{_SPACES}]*\d[\d.,'’{_SPACES}]*")
_SIGNS = (*_SPACES, "'", "’", ",", ".")  # that group thousands; the decimal mark is another one
_GROUPS = {
    s: re.compile(rf"[+-]?[1-9]\d{{0,2}}({re.escape(s)}\d{{3}})+([{'.,'.replace(s, '')}]\d+)?")
    for s in _SIGNS
}
_SHOWN = (_COMMA, _POINT, *_GROUPS.values())
DELIMITERS = (",", ";", "\t", "|")
STYLES = (('"', ""), ('"', "\\"), ("'", ""), ("", ""))  # quote and escape, the likelier first
ROWS = 2000  # rows of the sample that are looked at
LOOKED = 200  # rows whose cells are looked at to tell delimiters apart


@dataclass(frozen=True)
class CsvOptions:
    r"""Settings of a csv file; None means: find out.

    Parameters
    ----------
    delimiter : between fields
    quote : the quoting character, "" for none
    header : whether the first row holds the names
    encoding : a Python codec
    decimal : the decimal mark, "." or ","
    thousands : what groups digits, "" for nothing
    escape : the escaping character, "" for none (quotes are then doubled)
    skip : lines before the first row
    likely : the decimal mark where the cells leave it open: that of other files of the kind

    >>> str(CsvOptions(";", '"', True, "cp1252", ",", ".", "", 0))
    'semicolon between fields, quote ", a header row, cp1252, decimal comma, thousands marked by "."'
    """

    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    escape: str | None = None
    skip: int | None = None
    likely: str | None = None

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote", "escape", "decimal", "thousands", "likely"):
            if len(value := getattr(self, name) or "") > 1:
                raise ValueError(f"{name} must be one character; it is {value!r}.")

    def given(self) -> dict[str, Any]:
        """The settings that are not None."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) is not None}

    def over(self, found: CsvOptions) -> CsvOptions:
        """What was found, with what was given in its place."""
        return replace(found, **self.given())

    def __str__(self) -> str:
        parts = [
            f"{_NAMES.get(self.delimiter or '', repr(self.delimiter))} between fields",
            f"quote {self.quote}" if self.quote else "no quoting",
            "a header row" if self.header else "no header row",
            str(self.encoding),
            f"decimal {'comma' if self.decimal == ',' else 'point'}",
        ]
        parts += [f"thousands marked by {_mark(self.thousands)}"] if self.thousands else []
        parts += [f"{self.skip} lines skipped at the top"] if self.skip else []
        return ", ".join(parts)


def _mark(sign: str) -> str:
    return "spaces" if sign.isspace() else f'"{sign}"'


def marks(
    rows: list[list[str]], delimiter: str, given: str | None = None, likely: str | None = None
) -> tuple[str, str]:
    """The decimal mark, unless it is given, and the thousands mark (or "").

    A comma followed by one, two or more than three digits is a decimal comma, a point likewise a
    decimal point: the more frequent one is the mark. Where every comma is followed by three digits
    it marks thousands, unless fields are separated by semicolons, as spreadsheets write them in
    countries with a decimal comma. Numbers with a unit, a percent or a sign of money count as others do.
    Where no cell shows the mark, it is the likely one.

    >>> marks([["1.234,5"], ["2,25"]], ";"), marks([["1,234"], ["1,234,567"]], ","), marks([["1.5"]], ",")
    ((',', '.'), ('.', ','), ('.', ''))
    >>> marks([["5.311 km"], ["872 km"]], ";"), marks([["5.311 km"], ["872 km"]], ";", ",")
    (('.', ''), (',', '.'))
    >>> marks([["1,234"], ["5,678"]], ",", likely=","), marks([["1,5"]], ",", likely=".")
    ((',', ''), (',', ''))
    """
    cells = [cell for column in zip(*rows, strict=True) for cell in _numbers(column)]
    groups = Counter(
        {sign: sum(1 for c in cells if form.fullmatch(c)) for sign, form in _GROUPS.items()}
    )
    commas = sum(1 for c in cells if _COMMA.fullmatch(_bare(c, ",")))
    points = sum(1 for c in cells if _POINT.fullmatch(_bare(c, ".")))
    given = given or (likely if not commas and not points else None)
    lone = (
        groups[","] and not points and delimiter == ";" and not any(c.count(",") > 1 for c in cells)
    )
    decimal = given or ("," if commas > points or lone else ".")
    comma = commas or given == ","  # without one a point groups nothing
    rest = {s: k for s, k in groups.items() if k and s != decimal and (s != "." or comma)}
    return decimal, max(rest, key=lambda s: rest[s]) if rest else ""


def shows_mark(rows: list[list[str]], forms: Sequence[re.Pattern[str]] = _SHOWN) -> bool:
    """Whether some number shows how decimals, or thousands, are marked.

    >>> shows_mark([["12", "x,y"]]), shows_mark([["1,5", "x"]]), shows_mark([["1,500", "x"]])
    (False, True, True)
    """
    cells = (cell for column in zip(*rows, strict=True) for cell in _numbers(column))
    return any(form.fullmatch(cell) for cell in cells for form in forms)


def _numbers(column: tuple[str, ...]) -> list[str]:
    """The cells of a column that is mostly made of digits and marks, without signs of money and
    units; none of any other column."""
    bare = [re.sub(rf"^{_MONEY}|{_BEHIND}$", "", cell) for cell in column if cell.strip()]
    found = [cell for cell in bare if _DIGITS.fullmatch(cell)]
    return found if 2 * len(found) >= len(bare) else []


def _bare(cell: str, mark: str) -> str:
    """The cell without the groups that another mark made."""
    other = "," if mark == "." else "."
    head, sign, tail = cell.rpartition(mark)
    grouped = re.fullmatch(rf"[+-]?\d{{1,3}}([{other}{_SPACES}'’]\d{{3}})+", head)
    return re.sub(r"[^\d+-]", "", head) + "0000" + sign + tail if grouped else cell


def localized(rows: list[list[str]], decimal: str, thousands: str) -> tuple[int, ...]:
    """Columns of the sample in which most filled cells are numbers written with these marks, some
    of them visibly."""
    if decimal == "." and not thousands:
        return ()
    form, found = _number(decimal, thousands), []
    for j, column in enumerate(zip(*(r for r in rows if len(r) == len(rows[0])), strict=True)):
        cells = [c.strip() for c in column if any(map(str.isdigit, c))]
        if cells and sum(1 for c in cells if form.fullmatch(c)) >= 0.9 * len(cells):
            found.append(j)
    return tuple(found)


def _number(decimal: str, thousands: str) -> re.Pattern[str]:
    whole = rf"(\d{{1,3}}({re.escape(thousands)}\d{{3}})+|\d+)" if thousands else r"\d+"
    return re.compile(
        rf"{_MONEY}[+-]?({whole}({re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)([eE][+-]?\d+)?{_BEHIND}"
    )


def plain(column: Column, decimal: str, thousands: str) -> Column:
    """The same texts, the numbers among them with a decimal point and no thousands marks."""
    form = "^" + _number(decimal, thousands).pattern + "$"
    local = pc.match_substring_regex(column, form)
    bare = pc.replace_substring(column, thousands, "") if thousands else column
    return pc.if_else(
        local, pc.replace_substring(bare, decimal, ".") if decimal != "." else bare, column
    )


Grid = list[list[str]]


@dataclass(frozen=True)
class Sniffed:
    """What a sample of a csv file says: its options, the names of the columns, and which of them
    hold numbers in local form."""

    options: CsvOptions
    names: tuple[str, ...]
    local: tuple[int, ...]
    renamed: tuple[tuple[str, str], ...] = ()  # names that came again, and what they became
    marked: bool = False  # whether the decimal mark was given, or shows
    points: str = ""  # "given" or "shown" where points are decimal ones and cannot group thousands


def sniff(text: str, whole: bool, encoding: str, given: CsvOptions | None = None) -> Sniffed:
    r"""Read a sample; `whole` says that it is all there is, so that its last row counts.

    >>> str(sniff("a;b\n1,5;x\n2,25;y\n", True, "utf-8").options)
    'semicolon between fields, quote ", a header row, utf-8, decimal comma'
    """
    given = given or CsvOptions()
    skip = _skipped(text) if given.skip is None else given.skip
    body = "".join(text.splitlines(keepends=True)[skip:])
    form = _form(body, whole, given)
    rows = grid(body, whole, form)
    header = _has_header(rows) if given.header is None else given.header
    below = rows[1:] if header else rows
    width = max((len(r) for r in rows), default=0) if not below else _width(below)
    whole_rows = [r for r in below if len(r) == width]
    decimal, thousands = marks(whole_rows, form.delimiter or ",", given.decimal, given.likely)
    found = given.over(
        CsvOptions(
            form.delimiter, form.quote, header, encoding, decimal, thousands, form.escape, skip
        )
    )
    local = localized(below, found.decimal or ".", found.thousands or "")
    given_names = _given(rows[0] if header and rows else [], width)
    names = numbered(given_names)
    return Sniffed(
        found,
        names,
        local,
        tuple((old, new) for old, new in zip(given_names, names, strict=True) if old != new),
        given.decimal is not None or shows_mark(whole_rows),
        "given" if given.decimal == "." else "shown" * shows_mark(whole_rows, (_POINT,)),
    )


def _skipped(text: str) -> int:
    """Lines before the table: Excel's "sep=" line, blank lines, and comments marked by # that are
    shaped unlike the rest."""
    lines = text[:65_536].splitlines()
    skip = 0
    while skip < len(lines) and (
        not lines[skip].strip() or re.fullmatch(r"sep=.", lines[skip]) or _comment(lines, skip)
    ):
        skip += 1
    return skip if skip < len(lines) else 0


def _comment(lines: list[str], at: int) -> bool:
    below = [line for line in lines[at + 1 : at + 20] if line.strip()]
    return (
        lines[at].startswith("#")
        and bool(below)
        and _shape(lines[at]) not in {_shape(line) for line in below if line[0] != "#"}
    )


def _shape(line: str) -> tuple[int, ...]:
    return tuple(line.count(d) for d in DELIMITERS)


def _form(body: str, whole: bool, given: CsvOptions) -> CsvOptions:
    """The delimiter and quoting under which the rows agree best on their number of fields, and
    cells are most often numbers."""
    styles = [s for s in STYLES if given.quote in (None, s[0]) and given.escape in (None, s[1])]
    styles = styles or [(given.quote or "", given.escape or "")]
    delimiters = (given.delimiter,) if given.delimiter else DELIMITERS
    forms = [CsvOptions(delimiter=d, quote=q, escape=e) for q, e in styles for d in delimiters]
    scores = [_score(body, whole, form) for form in forms]
    return forms[max(range(len(forms)), key=lambda i: (scores[i], -i))]


def _score(body: str, whole: bool, form: CsvOptions) -> tuple[bool, bool, float, int, float, int]:
    """Whether there are several fields at all, also in the first row; the agreement of the rows;
    how well the quotes fit; the share of cells that are numbers or dates; the fields.

    The first row tells decimal commas from delimiters: names have none. The share tells them apart
    where there are no names.
    """
    rows = grid(body, whole, form)
    if not rows:
        return (False, False, 0.0, 0, 0.0, 0)
    width, agree = Counter(len(r) for r in rows).most_common(1)[0]
    share = agree / len(rows)
    first = (
        len(rows[0]) == width or 1 < len(rows[0]) == width - 1
    )  # the latter as R writes row names
    several = width > 1 and share > 0.5
    return (
        several,
        several and first,
        round(share, 2) if width > 1 else 0.0,
        _fit(body, whole, form),
        _typed_share(rows),
        width,
    )


def _typed_share(rows: Grid) -> float:
    """Of the cells of some rows, to a hundredth."""
    cells = [cell for row in rows[:LOOKED] for cell in row if cell.strip()]
    return round(sum(map(looks_typed, cells)) / max(len(cells), 1), 2)


def _fit(body: str, whole: bool, form: CsvOptions) -> int:
    """0: quotes that close in the middle of a field, or a style that nothing in the text asks for;
    1: no quoting; 2: it fits."""
    if not form.quote:
        return 1
    around = (
        rf"(^|{re.escape(form.delimiter or ',')})'[^'\n]*'({re.escape(form.delimiter or ',')}|\r?$)"
    )
    unasked = (form.escape and '\\"' not in body) or (
        form.quote == "'" and not re.search(around, body, re.M)
    )
    return 2 if not unasked and grid(body, whole, form, strict=True) else 0


def grid(body: str, whole: bool, form: CsvOptions, strict: bool = False) -> Grid:
    """The cells of the sample; empty where the form does not fit, without the last row where it may
    be cut."""
    rows: Grid = []
    try:
        for row in csv.reader(io.StringIO(body, newline=""), strict=strict, **dialect(form)):
            if len(rows) > ROWS:
                break
            rows.append(row)
    except csv.Error as error:
        if "field larger" not in str(error) and (whole or "unexpected end" not in str(error)):
            return []
        rows.append([])  # the row that the sample cuts, or that is too long to look at
    rows = rows if whole or len(rows) <= 1 else rows[:-1]
    return [r for r in rows if r] if any(cell.strip() for r in rows for cell in r) else []


def dialect(form: CsvOptions) -> dict[str, Any]:
    """The settings of Python's own csv reader."""
    return dict(
        delimiter=form.delimiter or ",",
        quotechar=form.quote or None,
        escapechar=form.escape or None,
        quoting=csv.QUOTE_MINIMAL if form.quote else csv.QUOTE_NONE,
        doublequote=not form.escape,
    )


def _width(rows: Grid) -> int:
    return Counter(len(r) for r in rows).most_common(1)[0][0]


def _has_header(rows: Grid) -> bool:
    """Names are not numbers or dates; some column below is, or no name comes up again in its own
    column."""
    if not rows:
        return False
    first, below = rows[0], [r for r in rows[1:] if len(r) == _width(rows[1:])]
    if any(looks_typed(cell) for cell in first) or not any(cell.strip() for cell in first):
        return False
    shift = _width(below) - len(first) if below else 0
    columns = list(zip(*below, strict=True))[max(shift, 0) :]
    if any(_typed(column) for column in columns):
        return True
    return not any(
        cell in column for cell, column in zip(first, columns, strict=False) if cell.strip()
    )


def _typed(column: tuple[str, ...]) -> bool:
    filled = [cell for cell in column if cell.strip()]
    return bool(filled) and sum(map(looks_typed, filled)) > 0.7 * len(filled)


def _given(first: list[str], width: int) -> list[str]:
    """The names, made up where they are empty; R leaves out the name of its row names."""
    given = ([""] if len(first) == width - 1 else []) + [cell.strip() for cell in first]
    given = given if first else [""] * width
    return [cell or f"column_{i + 1}" for i, cell in enumerate(given)]


def numbered(names: list[str]) -> tuple[str, ...]:
    """Names that come again get a number that no other name has.

    >>> numbered(["a", "a", "a_2", "a"])
    ('a', 'a_3', 'a_2', 'a_4')
    """
    taken, out, seen = set(names), [], set[str]()
    for name in names:
        k, new = 2, name
        while new in seen or (new != name and new in taken):
            new, k = f"{name}_{k}", k + 1
        seen.add(new)
        out.append(new)
    return tuple(out)
