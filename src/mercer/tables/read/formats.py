"""Parquet, arrow and jsonl files: their schema and their rows, in pieces."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.json as arrow_json
import pyarrow.parquet as parquet

from mercer.tables.arrow import Batch, Column, Kind, Schema, pa
from mercer.tables.errors import DataError, said
from mercer.tables.read.encoding import Utf8Stream, guess, text_of
from mercer.tables.read.files import head, reading, unpacked

DEEPEST = 100  # levels that are read
_STEPS = np.zeros(256, np.int8)
_STEPS[[ord("["), ord("{")]], _STEPS[[ord("]"), ord("}")]] = 1, -1
_TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"?', re.S)
BLOCK_BYTES = 1 << 20  # bytes of jsonl that are parsed together
MAX_LINE_BYTES = 1 << 26  # bytes of a line
BUFFER_BYTES = (
    1 << 16
)  # bytes of a parquet column that are read at a time, instead of those of its whole row group


def too_deep(block: bytes) -> int | None:
    """The number (from 0) of the first line that is nested deeper than `DEEPEST`, or None.

    Brackets are counted wherever they stand, which is cheap; a line that seems deep is counted
    again without its texts.

    >>> too_deep(b"[1]" + chr(10).encode() + b"[" * 1000), too_deep(b'{"a": "' + b"[" * 1000 + b'"}')
    (1, None)
    """
    if block.count(b"[") + block.count(b"{") <= DEEPEST:
        return None
    codes = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(codes == ord("\n")) + 1
    starts = np.concatenate([[0], ends[ends < len(codes)]])
    depth = np.cumsum(_STEPS[codes], dtype=np.int32)
    highest = np.maximum.reduceat(depth, starts) - np.where(starts > 0, depth[starts - 1], 0)
    return next(
        (
            int(i)
            for i in np.flatnonzero(highest > DEEPEST)
            if _is_deep(block[starts[i] :].split(b"\n", 1)[0])
        ),
        None,
    )


def _is_deep(line: bytes) -> bool:
    bare = np.frombuffer(_TEXTS.sub(b"", line), np.uint8)
    return bool(np.cumsum(_STEPS[bare], dtype=np.int32).max(initial=0) > DEEPEST)


@contextmanager
def _sound(path: Path, what: str) -> Iterator[None]:
    try:
        with reading(path):
            yield
    except (
        pa.ArrowInvalid,
        pa.ArrowNotImplementedError,
        pa.ArrowSerializationError,
        UnicodeDecodeError,
    ) as error:
        raise DataError(f"{path} is not a sound {what} file: {said(error)}.") from error
    except MemoryError as error:
        raise DataError(f"{path} asks for more memory than there is; it may be damaged.") from error


def parquet_schema(path: Path) -> Schema:
    with _sound(path, "parquet"):
        return _named(parquet.read_schema(path))


def parquet_groups(path: Path) -> list[int]:
    """The rows of each of its row groups."""
    with _sound(path, "parquet"):
        told = parquet.read_metadata(path)
        return [told.row_group(i).num_rows for i in range(told.num_row_groups)]


def parquet_batches(
    path: Path, columns: Sequence[str], rows: int, groups: Sequence[int] | None = None
) -> Iterator[Batch]:
    """All rows, or those of some row groups."""
    with (
        _sound(path, "parquet"),
        parquet.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file,
    ):
        picked = {} if groups is None else {"row_groups": list(groups)}
        yield from map(
            _checked, file.iter_batches(batch_size=rows, columns=list(columns), **picked)
        )


def arrow_schema(path: Path) -> Schema:
    with _sound(path, "arrow"), _opened(path) as reader:
        return _named(reader.schema)


def _named(schema: Schema) -> Schema:
    """The schema, after a look at its names, which a damaged file may hold as bytes that are no
    text."""
    schema.names  # noqa: B018 - read for its error
    return schema


def arrow_batches(path: Path, columns: Sequence[str]) -> Iterator[Batch]:
    with _sound(path, "arrow"), _opened(path) as reader:
        stream = (
            reader
            if isinstance(reader, pa.RecordBatchStreamReader)
            else map(reader.get_batch, range(reader.num_record_batches))
        )
        for batch in stream:
            yield _checked(batch.select(list(columns)))


def _checked(batch: Batch) -> Batch:
    """Arrow takes a file at its word, and would read offsets beyond its end and bytes that are no
    text."""
    batch.validate(full=True)
    return batch


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """A reader of an arrow file, or of an arrow stream, packed or not."""
    with path.open("rb") as file:
        seekable = file.read(6) == b"ARROW1"
    if seekable:
        with pa.memory_map(os.fspath(path)) as mapped, pa.ipc.open_file(mapped) as reader:
            yield reader
    else:
        with unpacked(path) as stream, pa.ipc.open_stream(stream) as reader:
            yield reader


def json_schema(path: Path, start: bytes, whole: bool) -> tuple[Schema, tuple[str, ...]]:
    """Fields of the first lines: numbers as float64, and text where kinds are mixed or not yet
    known; later fields are not read.

    And the names of those that are whole numbers as far as seen.
    """
    text = text_of(path, start, whole)[0]
    body = (text if whole else text[: text.rfind("\n") + 1] or text).encode()
    _shallow(path, body, 1)
    try:
        found = arrow_json.read_json(pa.BufferReader(body), _one_block(body)).schema
    except pa.ArrowInvalid:
        objects = _objects(path, body, 1)
        found = pa.schema(
            [
                (name, _kind([o.get(name) for o in objects]))
                for name in dict.fromkeys(k for o in objects for k in o)
            ]
        )
    return pa.schema([(f.name, _widened(f.type)) for f in found]), tuple(
        f.name for f in found if pa.types.is_integer(f.type)
    )


def _one_block(body: bytes) -> Any:
    return arrow_json.ReadOptions(use_threads=False, block_size=len(body) + 1)


def _widened(kind: Kind) -> Kind:
    if pa.types.is_integer(kind):
        return pa.float64()
    return kind if pa.types.is_floating(kind) or pa.types.is_boolean(kind) else pa.string()


def _kind(values: list[Any]) -> Kind:
    kinds = {type(v) for v in values if v is not None}
    if kinds == {int} and all(abs(v) < 2**63 for v in values if v is not None):
        return pa.int64()
    if kinds == {bool}:
        return pa.bool_()
    return pa.float64() if kinds and kinds <= {int, float} else pa.string()


def json_batches(path: Path, schema: Schema, columns: Sequence[str]) -> Iterator[Batch]:
    """The objects of a jsonl file, a block of lines at a time.

    A field that turns from a number into text counts as missing from there on where it does not
    read as a number.
    """
    wanted = pa.schema([schema.field(name) for name in columns])
    quick = arrow_json.ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
    line = 1
    for block in _blocks(path):
        yield from _parsed(path, block, wanted, quick, line)
        line += block.count(b"\n")


def _blocks(path: Path) -> Iterator[bytes]:
    """Whole lines of about a megabyte."""
    left = b""
    encoding = guess(head(path)) or "ascii"
    with reading(path), closing(Utf8Stream(unpacked(path), encoding, path)) as stream:
        while part := stream.read(BLOCK_BYTES):
            body, sign, rest = part.rpartition(b"\n")
            if sign:
                yield left + body + sign
            left = rest if sign else left + part
            if len(left) > MAX_LINE_BYTES:
                raise DataError(
                    f"{path} has a line of more than {MAX_LINE_BYTES >> 20} MB; write one object a line."
                )
    if left.strip():
        yield left


def _parsed(path: Path, block: bytes, wanted: Schema, quick: Schema, line: int) -> Iterator[Batch]:
    if not block.strip():
        return
    _shallow(path, block, line)
    try:
        yield from (
            arrow_json.read_json(pa.BufferReader(block), _one_block(block), quick)
            .select(wanted.names)
            .combine_chunks()
            .to_batches()
        )
    except pa.ArrowInvalid:
        objects = _objects(path, block, line)
        _whole(path, objects, wanted, line)
        yield pa.RecordBatch.from_arrays(
            [_column([o.get(f.name) for o in objects], f.type) for f in wanted], schema=wanted
        )


def _shallow(path: Path, block: bytes, line: int) -> None:
    """Parsers recurse, and a stack that ends takes the process with it."""
    if (deep := too_deep(block)) is not None:
        raise DataError(
            f"{path}, line {line + deep:,}: nested more than {DEEPEST} levels deep; write single values in each field."
        )


def _objects(path: Path, block: bytes, line: int) -> list[dict[str, Any]]:
    """Line by line: for blocks that do not fit the schema, and to name the line that is no
    object."""
    found = []
    for i, text in enumerate(block.split(b"\n")):
        if text.strip():
            found.append(_object(path, text, line + i))
    return found


def _object(path: Path, text: bytes, line: int) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise DataError(
            f"{path}, line {line:,}: not a JSON object ({said(error)}); write one object a line."
        ) from error
    if not isinstance(value, dict):
        raise DataError(
            f"{path}, line {line:,}: a JSON object is expected, not {type(value).__name__}; write one object a line."
        )
    return value


def _whole(path: Path, objects: list[dict[str, Any]], wanted: Schema, line: int) -> None:
    """That what is passed through as whole numbers stays that: an identifier is not rounded or
    lost."""
    for name in (f.name for f in wanted if pa.types.is_integer(f.type)):
        for i, value in enumerate(o.get(name) for o in objects):
            if value is not None and not (type(value) is int and abs(value) < 2**63):
                what = f'"{name}" turns from whole numbers into {json.dumps(value)[:40]}'
                raise DataError(
                    f"{path}, object {i + 1:,} from line {line:,}: {what}; write such values as text throughout."
                )


def _column(values: list[Any], kind: Kind) -> Column:
    if pa.types.is_string(kind):
        return pa.array(
            [v if v is None or isinstance(v, str) else json.dumps(v) for v in values], kind
        )
    if pa.types.is_boolean(kind):
        return pa.array([v if isinstance(v, bool) else None for v in values], kind)
    return pa.array(values if pa.types.is_integer(kind) else [_float(v) for v in values], kind)


def _float(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
