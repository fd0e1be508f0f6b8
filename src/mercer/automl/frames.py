"""Tables in memory as sources of record batches: pyarrow tables, and data frames of any library
that narwhals knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from mercer.automl import budget
from mercer.tables import CsvOptions, DataError, Source, open_source
from mercer.tables.arrow import ArrowTable, Batch, Schema, dated, pa
from mercer.tables.errors import said
from mercer.tables.read.sniff import numbered
from mercer.tables.read.source import BYTES, ROWS

PROBE_ROWS = 1_000  # rows whose bytes are looked at
MAX_BATCH_CELLS = 1 << 23  # cells a batch holds at most


@dataclass(frozen=True, eq=False)
class Frame:
    """A table in memory, read like a file: every call of `batches` is a fresh pass."""

    table: ArrowTable
    paths: tuple[Path, ...] = ()
    said: tuple[str, ...] = ()
    rows: int = ROWS  # of a batch, where nothing else is asked for
    most: int = 0  # as of a `Source`; the bytes of a table in memory are those of its owner
    points: str = ""  # as of a `Source`; nothing but its columns shows them

    @property
    def schema(self) -> Schema:
        return self.table.schema

    @property
    def n_bytes(self) -> int:
        return int(self.table.nbytes)

    def batches(self, rows: int | None = None) -> Iterator[Batch]:
        """Record batches of at most so many rows; at least one, which may be empty."""
        rows = self.rows if rows is None else rows
        step = max(1, min(rows, max(MAX_BATCH_CELLS // max(len(self.schema), 1), 256)))
        for first in range(0, max(self.table.num_rows, 1), step):
            yield dated(_one(self.table.slice(first, step)))


Table = Source | Frame


def as_source(data: Any, decimal: str = "") -> Table:
    """A path, several, a glob, a data frame (pandas, polars, ...), a pyarrow table or record batch:
    what can be read in passes; `decimal` is the mark of csv files that do not show theirs.

    >>> as_source(pa.table({"a": [1, 2]})).schema.names
    ['a']
    """
    if isinstance(data, Source | Frame):
        return data
    if isinstance(data, str | PathLike) or _paths(data):
        return open_source(data, options=CsvOptions(likely=decimal or None))
    table, renamed = _numbered(_arrow(data))
    return Frame(_plain(table), said=renamed)


def like(table: ArrowTable, data: Any) -> Any:
    """A pyarrow table as a frame of the library that `data` is of, with the index that a pandas
    frame has; else as it is."""
    if isinstance(data, Source | Frame | str | PathLike | pa.Table | pa.RecordBatch) or _paths(
        data
    ):
        return table
    import narwhals as nw

    frame = nw.from_native(_positioned(data), eager_only=True)
    made: Any = nw.from_arrow(table, backend=frame.implementation).to_native()
    if hasattr(data, "index") and hasattr(made, "set_axis"):
        made.index = data.index
    return made


def only(source: Table, columns: Sequence[str]) -> Table:
    """The same rows with these columns."""
    if isinstance(source, Source):
        return replace(source, columns=tuple(columns))
    return replace(source, table=source.table.select(list(columns)))


def in_batches(source: Table, memory: float, columns: int = 0) -> Table:
    """The same table in batches that suit the memory, by the bytes that the cells of its first rows
    take."""
    first = next(replace(source, most=0).batches(PROBE_ROWS), None)  # in the smallest blocks
    rows = (
        ROWS
        if first is None
        else budget.batch_rows(memory, first.nbytes / max(first.num_rows, 1), columns)
    )
    return replace(source, rows=min(ROWS, rows), most=min(BYTES, budget.batch_bytes(memory)))


def enumerate_batches(source: Table) -> Iterator[tuple[Batch, int]]:
    """Batches with the number of their first row."""
    first = 0
    for batch in source.batches():
        yield batch, first
        first += batch.num_rows


def _paths(data: object) -> bool:
    return (
        isinstance(data, list | tuple)
        and len(data) > 0
        and all(isinstance(item, str | PathLike) for item in data)
    )


def _arrow(data: object) -> ArrowTable:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    import narwhals as nw

    names = list(getattr(data, "columns", ()))
    try:
        frame = nw.from_native(_positioned(data), eager_only=True)
    except TypeError as error:
        what = f"{type(data).__module__}.{type(data).__name__}".removeprefix("builtins.")
        raise TypeError(
            f"give a path, a list of paths, a data frame or a pyarrow table, not {what}."
        ) from error
    try:
        table = frame.rename({name: f"{i}" for i, name in enumerate(frame.columns)}).to_arrow()
        return table.rename_columns([str(name) for name in names])
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"{_mixed(frame, names)}: {said(error)}; give it one type.") from error


def _mixed(frame: Any, names: list[Any]) -> str:
    """Which column pyarrow cannot hold.

    >>> import narwhals as nw, pandas as pd
    >>> _mixed(nw.from_native(pd.DataFrame({"0": [1, 2], "1": ["a", 2]})), ["a", "b"])
    'column "b" of the data frame holds values of several types'
    """
    for name, column in zip(names, frame.iter_columns(), strict=False):
        try:
            column.to_arrow()
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return f'column "{name}" of the data frame holds values of several types'
    return "a column of the data frame holds values of several types"


def _positioned(data: Any) -> Any:
    """A pandas frame with positions for names, which may come again, and for its index, which is no
    column; others as they are."""
    if not (hasattr(data, "set_axis") and getattr(data, "ndim", 0) == 2):
        return data
    return data.set_axis(range(data.shape[1]), axis=1).reset_index(drop=True)


def _numbered(table: ArrowTable) -> tuple[ArrowTable, tuple[str, ...]]:
    """Names that come again are numbered, as those of files are, and a sentence says so."""
    old, new = table.schema.names, numbered(table.schema.names)
    each = ", ".join(
        f'"{a}" as "{b}"' for a, b in [(a, b) for a, b in zip(old, new, strict=True) if a != b][:8]
    )
    told = (f"the table has several columns of one name; they were numbered: {each}.",) * bool(each)
    return (table.rename_columns(list(new)) if each else table), told


def _plain(table: ArrowTable) -> ArrowTable:
    """With dictionaries as the values that they stand for."""
    if not table.schema.names:
        raise DataError("the table has no columns.")
    kinds = [
        (f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    return (
        table.cast(pa.schema(kinds))
        if any(pa.types.is_dictionary(f.type) for f in table.schema)
        else table
    )


def _one(piece: ArrowTable) -> Batch:
    found = piece.combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], schema=piece.schema)
