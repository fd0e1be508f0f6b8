"""What cannot be read in pieces as it is, written out as what can: sheets as csv, JSON arrays as
lines, packed files unpacked."""

from __future__ import annotations

import csv
import datetime
import io
import json
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from mercer.tables.errors import DataError, quoted, said
from mercer.tables.read.encoding import Utf8Stream, guess
from mercer.tables.read.files import head, reading, unpacked
from mercer.tables.read.pipes import Spooled, spool
from mercer.tables.read.sniff import CsvOptions

BLOCK_BYTES = 1 << 20
MAX_ELEMENT = 1 << 26  # characters of one element
ROWS = 1000
SHEET = CsvOptions(delimiter=",", quote='"', encoding="utf-8", escape="", skip=0)


def unpack(path: Path) -> Spooled:
    """A compressed file without its compression."""

    def parts() -> Iterator[bytes]:
        with reading(path), unpacked(path) as stream:
            while part := bytes(stream.read(BLOCK_BYTES)):
                yield part

    return spool(parts(), str(path))


def lines_of_array(path: Path) -> Spooled:
    """The objects of a JSON array, one a line."""
    return spool(
        (text.replace("\n", " ").replace("\r", " ").encode() + b"\n" for text in Elements(path)),
        str(path),
    )


class Elements:
    """The elements of a JSON array, each as it is written: no more of them at a time than fit a
    block."""

    def __init__(self, path: Path) -> None:
        self.path, self.text, self.at, self.number = path, "", 0, 0
        self.decoder = json.JSONDecoder()

    def __iter__(self) -> Iterator[str]:
        encoding = guess(head(self.path)) or "utf-8"
        with closing(Utf8Stream(unpacked(self.path), encoding, self.path)) as stream:
            self.stream, self.decode = stream, getincrementaldecoder("utf-8")()
            self._sign("[")
            if self._next() != "]":
                yield self._element()
            while self._next() == ",":
                self._sign(",")
                yield self._element()
            self._sign("]")
            if rest := self._next():
                raise self._wrong(f"{rest!r} follows the array")

    def _more(self) -> bool:
        """Read on; False at the end."""
        part = self.stream.read(max(BLOCK_BYTES, len(self.text) - self.at))
        self.text, self.at = (
            self.text[self.at :] + self.decode.decode(part),
            0,
        )  # a letter may be cut, and then gives none yet
        return bool(part)

    def _next(self) -> str:
        """The next sign that is not blank, "" at the end."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in " \t\r\n\ufeff":
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more():
                return ""

    def _sign(self, sign: str) -> None:
        if (found := self._next()) != sign:
            raise self._wrong(
                f"{sign} is expected, not {found!r}" if found else "the array is cut short"
            )
        self.at += 1

    def _element(self) -> str:
        self.number += 1
        if self._next() != "{":
            raise self._wrong("an object is expected")
        while True:
            try:
                end = self.decoder.raw_decode(self.text, self.at)[1]
                found, self.at = self.text[self.at : end], end
                return found
            except RecursionError:
                raise self._wrong("it is nested too deeply") from None
            except ValueError as error:
                self._cut(error)

    def _cut(self, error: Exception) -> None:
        """Read on where an element may only be cut by the end of the block."""
        near = "Unterminated" in str(error) or getattr(error, "pos", 0) > len(self.text) - 64
        if not near or len(self.text) - self.at > MAX_ELEMENT or not self._more():
            raise self._wrong(said(error)) from error

    def _wrong(self, what: str) -> DataError:
        where = f"{self.path}, element {self.number or 1:,} of a JSON array"
        return DataError(f"{where}: {what}; write an array of objects, or one object a line.")


def sheet(path: Path) -> tuple[Spooled, tuple[str, ...]]:
    """The first sheet with cells of a workbook (xlsx, xlsb, ods, xls) as csv, and what to tell of
    it."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError as error:
        raise ImportError(
            f"{path} may be a spreadsheet, which needs python-calamine to be read: pip install mercer[cli]"
        ) from error
    try:
        with reading(path), path.open("rb") as file:
            book = CalamineWorkbook.from_filelike(file)
            found = [s for s in map(book.get_sheet_by_name, book.sheet_names) if s.height]
    except (CalamineError, ValueError) as error:
        raise DataError(
            f"{path} is a zip or Excel file that cannot be read as a sheet; unpack it or save the sheet as csv."
        ) from error
    if not found:
        raise DataError(f"{path} has no sheet with cells; check that it is the right file.")
    said = (
        f'{path} has {len(found)} sheets with cells; the first, "{found[0].name}", was read, not {quoted(s.name for s in found[1:])}.',
    )
    return spool(_csv(found[0].iter_rows()), str(path)), said * (len(found) > 1)


def _csv(rows: Any) -> Iterator[bytes]:
    """Rows of cells as csv; empty rows are left out."""
    filled = (row for row in rows if any(cell not in ("", None) for cell in row))
    for first in filled:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for row, _ in zip(chain([first], filled), range(ROWS), strict=False):
            writer.writerow([as_text(cell) for cell in row])
        yield text.getvalue().encode("utf-8", "replace")


def as_text(cell: Any) -> str:
    """A cell as a csv file has it.

    >>> as_text(7.0), as_text(True), as_text(datetime.date(2024, 3, 1)), as_text("007")
    ('7', 'true', '2024-03-01', '007')
    """
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ") if cell.time() != datetime.time() else cell.date().isoformat()
    if isinstance(cell, datetime.timedelta):
        return repr(cell.total_seconds())
    return (
        ""
        if cell is None
        else cell.isoformat()
        if isinstance(cell, datetime.date | datetime.time)
        else str(cell)
    )
