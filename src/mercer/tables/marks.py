"""Decimal commas and thousands marks: which ones a file uses, and numbers without them."""
from __future__ import annotations

import re
from collections import Counter

from mercer.tables.arrow import Column, pc

_SPACES = " \u00a0\u2009\u202f"
_MONEY = r"[\s$€£¥%]*"
_POINT = re.compile(r"[+-]?(\d{4,}|\d{0,3})\.(\d{1,2}|\d{4,})|[+-]?(\d{4,}|0?)\.\d{3}")  # a point that groups no thousands
_COMMA = re.compile(_POINT.pattern.replace(r"\.", ","))
_DIGITS = re.compile(rf"[+-]?[\d.,'’{_SPACES}]*\d[\d.,'’{_SPACES}]*")
_SIGNS = (*_SPACES, "'", "’", ",", ".")  # that group thousands; the decimal mark is another one
_GROUPS = {s: re.compile(rf"[+-]?[1-9]\d{{0,2}}({re.escape(s)}\d{{3}})+([{'.,'.replace(s, '')}]\d+)?") for s in _SIGNS}


def marks(rows: list[list[str]], delimiter: str) -> tuple[str, str]:
    """The decimal mark and the thousands mark (or "").

    A comma followed by one, two or more than three digits is a decimal comma, a point likewise a decimal point: the more
    frequent one is the mark. Where every comma is followed by three digits it marks thousands, unless fields are
    separated by semicolons, as spreadsheets write them in countries with a decimal comma.

    >>> marks([["1.234,5"], ["2,25"]], ";"), marks([["1,234"], ["1,234,567"]], ","), marks([["1.5"]], ",")
    ((',', '.'), ('.', ','), ('.', ''))
    """
    cells = [cell for column in zip(*rows, strict=True) for cell in _numbers(column)]
    groups = Counter({sign: sum(1 for c in cells if form.fullmatch(c)) for sign, form in _GROUPS.items()})
    commas = sum(1 for c in cells if _COMMA.fullmatch(_bare(c, ",")))
    points = sum(1 for c in cells if _POINT.fullmatch(_bare(c, ".")))
    lone = groups[","] and not points and delimiter == ";" and not any(c.count(",") > 1 for c in cells)
    decimal = "," if commas > points or lone else "."
    rest = {s: k for s, k in groups.items() if k and s != decimal and not (s == "." and not commas)}
    return decimal, max(rest, key=lambda s: rest[s]) if rest else ""


def _numbers(column: tuple[str, ...]) -> list[str]:
    """The cells of a column that is mostly made of digits and marks, without signs of money; none of any other column."""
    bare = [re.sub(rf"^{_MONEY}|{_MONEY}$", "", cell) for cell in column if cell.strip()]
    found = [cell for cell in bare if _DIGITS.fullmatch(cell)]
    return found if 2 * len(found) >= len(bare) else []


def _bare(cell: str, mark: str) -> str:
    """The cell without the groups that another mark made."""
    other = "," if mark == "." else "."
    head, sign, tail = cell.rpartition(mark)
    grouped = re.fullmatch(rf"[+-]?\d{{1,3}}([{other}{_SPACES}'’]\d{{3}})+", head)
    return re.sub(r"[^\d+-]", "", head) + "0000" + sign + tail if grouped else cell


def localized(rows: list[list[str]], decimal: str, thousands: str) -> tuple[int, ...]:
    """Columns of the sample in which most filled cells are numbers written with these marks, some of them visibly."""
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
    return re.compile(rf"{_MONEY}[+-]?({whole}({re.escape(decimal)}\d*)?|{re.escape(decimal)}\d+)([eE][+-]?\d+)?{_MONEY}")


def plain(column: Column, decimal: str, thousands: str) -> Column:
    """The same texts, the numbers among them with a decimal point and no thousands marks."""
    form = "^" + _number(decimal, thousands).pattern + "$"
    local = pc.match_substring_regex(column, form)
    bare = pc.replace_substring(column, thousands, "") if thousands else column
    return pc.if_else(local, pc.replace_substring(bare, decimal, ".") if decimal != "." else bare, column)
