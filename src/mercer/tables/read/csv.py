"""csv files by pyarrow's streaming reader: every cell as text, so that no late value can stop a
pass.

What a column means is settled by `Columns` from all its rows; to read text and convert it costs no
more than to parse numbers at once. Ragged rows end the pass with the line they are on.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow.csv as arrow_csv

from mercer.ops.threads import n_threads
from mercer.tables.arrow import Batch, Schema, pa
from mercer.tables.errors import DataError, said
from mercer.tables.read.encoding import Utf8Stream, text_of
from mercer.tables.read.files import HEAD, reading, unpacked
from mercer.tables.read.sniff import CsvOptions, Sniffed, dialect, plain, sniff

BLOCK_BYTES = 1 << 20  # bytes that are parsed together, which takes up to 60 times their memory
MIN_BLOCK_BYTES = 1 << 17  # and the least of them
MAX_ROW_BYTES = 1 << 24  # bytes of a row, beyond which a quote was never closed


def sniff_file(path: Path, start: bytes, given: CsvOptions | None) -> Sniffed:
    """What the first bytes of a csv file say."""
    given, whole = given or CsvOptions(), len(start) < HEAD
    text, encoding = text_of(path, start, whole, given.encoding)
    found = sniff(text, whole, encoding, given)
    if not found.names:
        raise DataError(f"{path} is blank; it holds no rows.")
    return found


def schema(found: Sniffed) -> Schema:
    """Text in every column."""
    return pa.schema([(name, pa.string()) for name in found.names])


def batches(
    path: Path, found: Sniffed, columns: Sequence[str], block: int = BLOCK_BYTES
) -> Iterator[Batch]:
    """The rows of a csv file, block by block; rows longer than a block make the pass start again
    with larger ones."""
    done = 0
    while True:
        try:
            for batch in _pass(path, found, columns, block, done):
                yield batch
                done += batch.num_rows
            return
        except pa.ArrowInvalid as error:
            block = _larger(path, found, block, error)


def _pass(
    path: Path, found: Sniffed, columns: Sequence[str], block: int, done: int
) -> Iterator[Batch]:
    """One pass, from the row after the `done` first ones."""
    with (
        reading(path),
        closing(_text(path, found)) as stream,
        _reader(stream, found, columns, block) as reader,
    ):
        for batch in reader:
            new = batch.slice(min(done, batch.num_rows))
            done -= batch.num_rows - new.num_rows
            if new.num_rows:
                yield _mended(new, found)


def _reader(stream: Utf8Stream, found: Sniffed, columns: Sequence[str], block: int) -> Any:
    return arrow_csv.open_csv(pa.PythonFile(stream, "r"), *_settings(found, columns, block))


def _text(path: Path, found: Sniffed) -> Utf8Stream:
    return Utf8Stream(unpacked(path), found.options.encoding or "ascii", path)


def _settings(found: Sniffed, columns: Sequence[str], block: int) -> tuple[Any, Any, Any]:
    o = found.options
    read = arrow_csv.ReadOptions(
        column_names=list(found.names),
        skip_rows=(o.skip or 0),
        skip_rows_after_names=int(bool(o.header)),
        block_size=block,
        use_threads=n_threads() > 1,
    )
    parse = arrow_csv.ParseOptions(
        delimiter=o.delimiter or ",",
        quote_char=o.quote or False,
        escape_char=o.escape or False,
        newlines_in_values=bool(o.quote),
    )
    convert = arrow_csv.ConvertOptions(
        column_types={name: pa.string() for name in found.names}, include_columns=list(columns)
    )
    return read, parse, convert


def _mended(batch: Batch, found: Sniffed) -> Batch:
    """With numbers in local form written plainly. Beside decimal commas points group thousands,
    also where the first rows have none."""
    local = {found.names[j] for j in found.local}
    names = batch.schema.names
    if not local.intersection(names):
        return batch
    o = found.options
    thousands = o.thousands or ("." if o.decimal == "," else "")
    arrays = [
        plain(c, o.decimal or ".", thousands) if n in local else c
        for n, c in zip(names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _larger(path: Path, found: Sniffed, block: int, error: Exception) -> int:
    """The next block size where a row did not fit; else the sentence of what is wrong."""
    if "straddling" in str(error) and block < MAX_ROW_BYTES:
        return block * 4
    if "straddling" in str(error):
        raise DataError(
            f"{path} has a row of more than {MAX_ROW_BYTES >> 20} MB; a quote may never be closed."
        ) from error
    ragged = _ragged(path, found)
    raise DataError(ragged or f"{path} cannot be read as csv: {said(error)}.") from error


def _ragged(path: Path, found: Sniffed) -> str | None:
    """The first row with too many or too few fields, found again line by line: only ever run to
    name the line."""
    o, width = found.options, len(found.names)
    with reading(path), closing(_text(path, found)) as stream:
        lines = io.TextIOWrapper(cast(BinaryIO, _Buffered(stream)), "utf-8", newline="")
        for _ in range(o.skip or 0):
            lines.readline()
        for line, row in _numbered(csv.reader(lines, **dialect(o)), bool(o.header)):
            if row and len(row) != width:
                return (
                    f"{path}, line {line + (o.skip or 0):,}: {len(row)} field{'s' * (len(row) != 1)} where {width} are expected; "
                    f"mend that row, or quote fields that hold the delimiter."
                )
    return None


def _numbered(reader: Any, header: bool) -> Iterator[tuple[int, list[str]]]:
    """Rows with the lines they begin on, as far as they can be read."""
    line = 1
    try:
        for i, row in enumerate(reader):
            if i or not header:
                yield line, row
            line = reader.line_num + 1
    except csv.Error:
        return


class _Buffered(io.RawIOBase):
    """A Utf8Stream for `TextIOWrapper`."""

    def __init__(self, stream: Utf8Stream) -> None:
        self.stream = stream

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        return self.stream.read(size if size > 0 else BLOCK_BYTES)

    def read(self, size: int = -1) -> bytes:
        return self.stream.read(size if size > 0 else BLOCK_BYTES)
