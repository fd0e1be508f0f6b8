"""Tables written by their suffix, whole or not at all: a draft beside the file takes its place when it is complete."""
from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from mercer.cli.guard import UsageError
from mercer.tables.arrow import pa

Write = Callable[[Any], None]
FORMS = {
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}  # fmt: skip


def form_of(name: str) -> str:
    """The format of a file, by its suffix; "-" is csv on standard output.

    >>> form_of("a.PARQUET"), form_of("-")
    ('parquet', 'csv')
    """
    if name == "-":
        return "csv"
    suffix = Path(name).suffix.lower()
    if suffix not in FORMS:
        raise UsageError(f"--out {name} ends in {suffix or 'no suffix'}; give {', '.join(FORMS)}, or - for csv on standard output.")
    return FORMS[suffix]


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse early what could not be written later."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder; give the name of a file.")
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; give --overwrite, or another name.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path.absolute().parent} is not a folder; make it first.")


@contextmanager
def writer(name: str, schema: Any) -> Iterator[Write]:
    """A function that appends record batches to a file, or to standard output."""
    if name == "-":
        with _writer("csv", sys.stdout.buffer, schema) as write:
            yield write
        return
    with draft(Path(name)) as stream, _writer(form_of(name), stream, schema) as write:
        yield write


@contextmanager
def draft(path: Path) -> Iterator[IO[bytes]]:
    """A file beside `path` that replaces it at the end, and vanishes where something goes wrong."""
    path = Path(os.path.realpath(path))
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


@contextmanager
def _writer(form: str, stream: IO[bytes], schema: Any) -> Iterator[Write]:
    if form == "jsonl":
        yield lambda batch: _json(stream, batch)
        return
    with _arrow(form, stream, schema) as sink:
        yield sink.write_batch


def _arrow(form: str, stream: IO[bytes], schema: Any) -> Any:
    if form == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(stream, schema)
    if form == "arrow":
        return pa.ipc.new_file(stream, schema)
    from pyarrow import csv

    options = csv.WriteOptions(delimiter="\t" if form == "tsv" else ",", quoting_style="needed")
    return csv.CSVWriter(stream, schema, write_options=options)


def _json(stream: IO[bytes], batch: Any) -> None:
    import json

    for row in batch.to_pylist():
        stream.write(json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass") + b"\n")
