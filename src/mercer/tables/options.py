"""How a csv file is written: the settings, and what they are in words."""
from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}


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

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote", "escape", "decimal", "thousands"):
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
