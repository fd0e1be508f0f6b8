"""Files as one table: a schema, and as many passes over record batches as are asked for, in
constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mercer.tables.arrow import Batch, Schema, dated, pa
from mercer.tables.errors import DataError, Misnamed, nearest, quoted, said
from mercer.tables.read import convert, csv, files, formats
from mercer.tables.read.fasta import table_of_fasta
from mercer.tables.read.files import Stamp
from mercer.tables.read.sniff import CsvOptions, Sniffed

CELLS = 1 << 23  # cells a batch holds at most: wide tables come in shorter batches
ROWS = 65_536  # rows of a batch
BYTES = 1 << 28  # and those of long texts too


@dataclass(frozen=True)
class FilePart:
    """One file: its kind, its schema, and how it is written where it is a csv file."""

    path: Path
    kind: str
    schema: Schema
    stamp: Stamp
    sniffed: Sniffed | None = None
    said: tuple[str, ...] = ()
    whole: tuple[
        str, ...
        # fields of JSON that are whole numbers in the first lines; read as floats, unless asked
        # otherwise
    ] = ()
    groups: tuple[int, ...] | None = None  # of a parquet file, where only some row groups are meant

    def as_written(self, names: Sequence[str]) -> FilePart:
        """With these columns as they are written: no local number made plain, no whole number made
        a float."""
        if self.sniffed:
            local = tuple(j for j in self.sniffed.local if self.sniffed.names[j] not in names)
            return replace(self, sniffed=replace(self.sniffed, local=local))
        kinds = [
            (f.name, pa.int64() if f.name in names and f.name in self.whole else f.type)
            for f in self.schema
        ]
        return replace(self, schema=pa.schema(kinds)) if self.kind == "json" else self

    def batches(self, columns: Sequence[str], rows: int, most: int = BYTES) -> Iterator[Batch]:
        """The rows of the file, in pieces of any size, smaller ones where batches are to have few
        bytes.

        A DataError where it is not the file that was opened.
        """
        self.stamp.check(self.path)
        yield from self._batches(columns, rows, most)
        self.stamp.check(self.path)

    def _batches(self, columns: Sequence[str], rows: int, most: int) -> Iterator[Batch]:
        if self.kind == "csv" and self.sniffed:
            return csv.batches(
                self.path,
                self.sniffed,
                columns,
                min(csv.BLOCK_BYTES, max(csv.MIN_BLOCK_BYTES, most // 16)),
            )
        if self.kind == "json":
            return formats.json_batches(self.path, self.schema, columns)
        return (
            formats.parquet_batches(self.path, columns, rows, self.groups)
            if self.kind == "parquet"
            else formats.arrow_batches(self.path, columns)
        )


def open_source(
    paths: str | Path | Sequence[str | Path],
    *,
    columns: Sequence[str] | None = None,
    options: CsvOptions | None = None,
) -> Source:
    """One file, several, or globs, as one table.

    csv and its kin, parquet, arrow, feather, jsonl, JSON arrays of objects, FASTA and workbooks
    (xlsx, xls, ods: the first sheet with cells), each told by its content first, by its suffix second;
    compressed by gzip, bzip2, xz, zstd or lz4 or not. "-" is standard input; it and other pipes are
    read once and held, beyond 16 MB in a temporary file that has no name. A file that changes
    between passes (size, time of its last change, first bytes) is refused.

    Parameters
    ----------
    paths : a path, a glob, or a list of them; "-" for standard input
    columns : the names of the columns to read, all by default
    options : settings of csv files that should not be guessed

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("x;y" + chr(10) + "1,5;no" + chr(10))
    >>> source = open_source(path)
    >>> [batch.to_pylist() for batch in source.batches()], str(source.sniffed)[:24]
    ([[{'x': '1.5', 'y': 'no'}]], 'semicolon between fields')
    """
    parts: list[FilePart] = []
    for path in files.find(paths):
        parts.append(_part(path, _like_first(options, parts), parts[0] if parts else None))
    return Source(tuple(parts), _unified(parts), tuple(columns) if columns is not None else None)


def _like_first(options: CsvOptions | None, parts: list[FilePart]) -> CsvOptions | None:
    """Decimals of further files, where these do not show their mark, are those of the first that
    does."""
    options = options or CsvOptions()
    shown = [p.sniffed.options.decimal for p in parts if p.sniffed and p.sniffed.marked]
    return options if options.likely or not shown else replace(options, likely=shown[0])


def _part(path: Path, options: CsvOptions | None, first: FilePart | None) -> FilePart:
    stamp, start = Stamp.of(path), files.head(path)
    kind = files.kind(path, start)
    if kind in files.WHOLE and files.packing(path):
        return _part(convert.unpack(path), options, first)
    if kind == "sheet":
        made, told = convert.sheet(path)
        part = _part(
            made, replace(convert.SHEET, header=options.header if options else None), first
        )
        return replace(part, said=(*told, *part.said))
    if kind == "fasta":
        return _part(table_of_fasta(path), options, first)
    if kind == "array":
        return _part_of_lines(convert.lines_of_array(path))
    if kind == "json":
        return _part_of_lines(path, start, stamp)
    if kind == "csv":
        found = _named_like(csv.sniff_file(path, start, options), first)
        told = (*_renamed(path, found), *_marked(path, found, options))
        return FilePart(path, kind, csv.schema(found), stamp, found, told)
    return FilePart(
        path,
        kind,
        formats.parquet_schema(path) if kind == "parquet" else formats.arrow_schema(path),
        stamp,
    )


def _part_of_lines(path: Path, start: bytes | None = None, stamp: Stamp | None = None) -> FilePart:
    start = files.head(path) if start is None else start
    schema, whole = formats.json_schema(path, start, len(start) < files.HEAD)
    return FilePart(path, "json", schema, stamp or Stamp.of(path), whole=whole)


def _renamed(path: Path, found: Sniffed) -> tuple[str, ...]:
    """What to tell of names that come more than once."""
    each = ", ".join(f'"{old}" as "{new}"' for old, new in found.renamed[:8])
    return (f"{path} has several columns of one name; they were numbered: {each}.",) * bool(
        found.renamed
    )


def _marked(path: Path, found: Sniffed, options: CsvOptions | None) -> tuple[str, ...]:
    """What to tell of decimals that are written otherwise than in other files of the kind."""
    mine, theirs = found.options.decimal, options.likely if options else None
    if theirs is None or mine == theirs or (options and options.decimal is not None):
        return ()
    names = {",": "a comma", ".": "a point"}
    return (
        f"{path} writes decimals with {names.get(mine or '', mine)}, other files of the table with "
        f"{names.get(theirs, theirs)}; they were read as the file writes them: give --decimal where that is wrong.",
    )


def _named_like(found: Sniffed, first: FilePart | None) -> Sniffed:
    """A file without a header takes the names of the first file, where that has as many columns: a
    file that was cut in pieces."""
    if (
        first
        and first.sniffed
        and not found.options.header
        and len(first.sniffed.names) == len(found.names)
    ):
        return replace(found, names=first.sniffed.names, renamed=())
    return found


def _unified(parts: list[FilePart]) -> Schema:
    """The schema of all files, in the order of the first; types are widened where they differ."""
    first = parts[0]
    if not first.schema.names:
        raise DataError(f"{first.path} has no columns; check that it is the right file.")
    for part in parts:
        _same_names(first, part)
    try:
        return pa.unify_schemas([_bare(p.schema) for p in parts], promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return _as_text([_bare(p.schema) for p in parts])


def _as_text(schemas: list[Schema]) -> Schema:
    """Text for the columns whose types have nothing in common."""
    first = schemas[0]
    kinds = {n: {str(s.field(n).type) for s in schemas} for n in first.names}
    return pa.schema(
        [(n, first.field(n).type if len(kinds[n]) == 1 else pa.string()) for n in first.names]
    )


def _bare(schema: Schema) -> Schema:
    """Without metadata, dictionaries as their values, so that files written by different programs
    agree."""
    return pa.schema(
        [(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in schema]
    )


def _same_names(first: FilePart, part: FilePart) -> None:
    names, known = dict.fromkeys(part.schema.names), dict.fromkeys(first.schema.names)
    if repeated := [n for n, count in Counter(part.schema.names).items() if count > 1]:
        raise DataError(f"{part.path} has several columns named {quoted(repeated)}; rename them.")
    missing, extra = [n for n in known if n not in names], [n for n in names if n not in known]
    if missing or extra:
        what = [f"lacks {quoted(missing)}"] * bool(missing) + [f"also has {quoted(extra)}"] * bool(
            extra
        )
        raise DataError(
            f"{part.path} {' and '.join(what)}, unlike {first.path}; give files with the same columns."
        )


@dataclass(frozen=True)
class Source:
    """Files as one table; see `open_source`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("x,y" + chr(10) + "1,2" + chr(10))
    >>> source = open_source(path)
    >>> source.schema.names, [batch.num_rows for batch in source.batches()]
    (['x', 'y'], [1])
    """

    parts: tuple[FilePart, ...]
    full_schema: Schema
    columns: tuple[str, ...] | None = None
    may_be_empty: bool = False  # whether no rows are no error
    rows: int = ROWS  # of a batch, where nothing else is asked for
    most: int = BYTES  # bytes of a batch

    def __post_init__(self) -> None:
        for name in self.columns or ():
            if name not in self.full_schema.names:
                raise Misnamed(
                    f'there is no column "{name}"{nearest(name, self.full_schema.names)}'
                )

    def as_written(self, *names: str) -> Source:
        """The same rows with the values of some columns, such as identifiers, as they are
        written."""
        parts = [part.as_written(names) for part in self.parts]
        return replace(self, parts=tuple(parts), full_schema=_unified(parts))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files."""
        return tuple(part.path for part in self.parts)

    @property
    def n_bytes(self) -> int:
        """Their size on disk."""
        return sum(path.stat().st_size for path in self.paths)

    @cached_property
    def schema(self) -> Schema:
        """The columns and their types, as a `pyarrow.Schema`; csv columns are text."""
        return (
            self.full_schema
            if self.columns is None
            else pa.schema([self.full_schema.field(n) for n in self.columns])
        )

    @property
    def said(self) -> tuple[str, ...]:
        """What was done to read the files that the user should know: columns renamed, sheets not
        read."""
        return tuple(dict.fromkeys(text for part in self.parts for text in part.said))

    @property
    def sniffed(self) -> CsvOptions | None:
        """How the first csv file is written; None where there is none."""
        return next((p.sniffed.options for p in self.parts if p.sniffed), None)

    @property
    def decimal(self) -> str:
        """The decimal mark of its csv files, "" where no cell shows it."""
        shown = (p.sniffed.options.decimal for p in self.parts if p.sniffed and p.sniffed.marked)
        return next((mark for mark in shown if mark), "")

    @property
    def points(self) -> str:
        """ "given" or "shown" where its csv files have decimal points for certain."""
        found = [p.sniffed.points for p in self.parts if p.sniffed]
        return next((how for how in ("given", "shown") if how in found), "")

    def batches(self, rows: int | None = None) -> Iterator[Batch]:
        """A fresh pass: record batches of `rows` rows, the last one shorter; fewer rows each where
        rows are very long."""
        rows = self.rows if rows is None else rows
        if rows < 1:
            raise ValueError(f"rows must be at least 1; it is {rows}.")
        rows = min(rows, max(CELLS // max(len(self.schema), 1), 256))
        seen = 0
        for batch in even(self._pieces(rows), rows, self.most):
            seen += batch.num_rows
            yield batch
        if not seen and not self.may_be_empty:
            raise DataError(
                f"{', '.join(map(str, self.paths))} has columns but no rows; check that it is the right file."
            )

    def _pieces(self, rows: int) -> Iterator[Batch]:
        for part in self.parts:
            for batch in part.batches(self.schema.names, rows, self.most):
                yield dated(_cast(batch, self.schema, part.path))


def _cast(batch: Batch, schema: Schema, path: Path) -> Batch:
    """With the columns and types of the schema."""
    if batch.schema.equals(schema):
        return batch
    try:
        return pa.RecordBatch.from_arrays(
            [batch.column(f.name).cast(f.type) for f in schema], schema=schema
        )
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{path} holds values that do not fit the types of the other files: {said(error)}."
        ) from error


def even(batches: Iterator[Batch], rows: int, most: int = BYTES) -> Iterator[Batch]:
    """The same rows in batches of one size, so that results do not depend on how a file was cut."""
    held: list[Batch] = []
    count = size = 0
    for batch in batches:
        while batch.num_rows:
            piece = batch.slice(0, rows - count)
            held.append(piece)
            count, size = count + piece.num_rows, size + piece.nbytes
            batch = batch.slice(piece.num_rows)
            if count == rows or size > most:
                yield _joined(held)
                held, count, size = [], 0, 0
    if count:
        yield _joined(held)


def _joined(pieces: list[Batch]) -> Batch:
    return pieces[0] if len(pieces) == 1 else pa.concat_batches(pieces)


def batches_of(source: Any) -> Iterator[Batch]:
    """The batches of a source, of a pyarrow table, or of an iterable."""
    if hasattr(source, "batches"):
        return iter(source.batches())
    if isinstance(source, pa.Table | pa.RecordBatch):
        return iter(source.to_batches() if isinstance(source, pa.Table) else [source])
    if not isinstance(source, Iterable):
        raise TypeError(
            f"a Source, a pyarrow.Table or record batches are expected, not {type(source).__name__}."
        )
    return iter(source)
