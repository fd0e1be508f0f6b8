"""Tables written by their suffix, whole or not at all (a draft takes the place of the file when it
is complete), safe for spreadsheets."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path
from typing import IO, Any

from mercer.cli.guard import UsageError
from mercer.cli.terminal import Screen
from mercer.tables.arrow import Batch, Column, Schema, pa, pc
from mercer.tables.values import is_text

# At the start of a cell, and behind what a spreadsheet in another country may take for the end of
# one.
_FORMULA = "(^|[;,|\t\r\n])([=+@\t\r\n＝＋－＠-])"
OBJECTS = 4_096  # rows that are Python objects at a time
FORMS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}


def safe_text(text: str) -> str:
    """A name that no spreadsheet runs.

    >>> safe_text("=1+1"), safe_text("a;-2"), safe_text("plain")
    ("'=1+1", "a;'-2", 'plain')
    """
    return str(safe_column(pa.array([text]))[0].as_py())


def safe_column(column: Column) -> Column:
    """Texts with an apostrophe before every sign that begins a formula; numbers, which run nothing,
    as they are."""
    return (
        pc.replace_substring_regex(column, _FORMULA, r"\1'\2") if is_text(column.type) else column
    )


def safe_schema(schema: Schema) -> Schema:
    return pa.schema([(safe_text(field.name), field.type) for field in schema])


def safe_batch(batch: Batch) -> Batch:
    return pa.RecordBatch.from_arrays(
        [safe_column(c) for c in batch.columns], schema=safe_schema(batch.schema)
    )


Write = Callable[[Batch], None]


def form_of(name: str) -> str:
    """The format of a file, by its suffix; "-" is csv on standard output.

    >>> form_of("a.PARQUET"), form_of("-")
    ('parquet', 'csv')
    """
    if name == "-":
        return "csv"
    suffix = Path(name).suffix.lower()
    if suffix not in FORMS:
        raise UsageError(
            f"--out {name} ends in {suffix or 'no suffix'}; give {', '.join(FORMS)}, or - for csv on standard output."
        )
    return FORMS[suffix]


def check_model(path: Path) -> None:
    """A model must be a file that is there."""
    if path.is_dir() or not path.exists():
        what = (
            "is a folder; give the name of a file"
            if path.is_dir()
            else "does not exist; give a file"
        )
        raise UsageError(f"{path} {what} that mercer fit wrote.")


def check_free(path: Path, *, overwrite: bool) -> None:
    """Refuse early what could not be written later."""
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder; give the name of a file in it, as in {path / 'name'}."
        )
    if path.exists() and not overwrite:
        raise UsageError(f"{path} exists; give --overwrite, or another name.")
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a plain file; give the name of one.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path.absolute().parent} is not a folder; make it first.")
    _try(path)


def _try(path: Path) -> None:
    """Whether a file can be made beside `path`, and what is there replaced."""
    if path.exists() and not os.access(path, os.W_OK):
        raise UsageError(f"{path} may not be changed: permission denied; give another name.")
    beside = _beside(path)
    try:
        beside.open("xb").close()
        beside.unlink()
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {(error.strerror or str(error)).lower()}; give a name in another folder."
        ) from error


def check_apart(outputs: Sequence[Path], inputs: Sequence[str]) -> None:
    """Refuse, whatever was asked for, to write over a file that is read."""
    read = [Path(name) for text in inputs for name in {text, *glob(text, recursive=True)}]
    for path in outputs:
        if same := next(
            (p for p in read if path.exists() and p.exists() and os.path.samefile(path, p)), None
        ):
            what = f"{path} is" if path == same else f"{path} is {same}, which is"
            raise UsageError(
                f"{what} read by this command and not replaced by it; give another name for the output."
            )


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Trouble with a draft or its folder, told of the file that was asked for."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno is None:
            raise OSError(f"{path} cannot be written: {error}") from error
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def writer(name: str, schema: Schema) -> Iterator[Write]:
    """A function that appends record batches to a file, or to standard output."""
    if name == "-":
        stream: Any = Screen(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        with _writer("csv", stream, schema) as write:
            yield write
        return
    with draft(Path(name)) as stream, _writer(form_of(name), stream, schema) as write:
        yield write


@contextmanager
def draft(path: Path) -> Iterator[IO[bytes]]:
    """A file beside `path` that replaces it at the end, and vanishes where something goes wrong."""
    beside = _beside(path)
    try:
        with naming(path):
            with beside.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(os.path.realpath(path))
    finally:
        with suppress(FileNotFoundError):
            beside.unlink()


def _beside(path: Path) -> Path:
    """A new name in the folder of the file that `path` means."""
    real = Path(os.path.realpath(path))
    return real.with_name(f".{real.name}.{secrets.token_hex(4)}.part")


@contextmanager
def _writer(form: str, stream: IO[bytes], schema: Schema) -> Iterator[Write]:
    if form == "jsonl":
        yield lambda batch: _json(stream, batch)
        return
    with _arrow(form, stream, schema) as sink:
        yield sink.write_batch


def _arrow(form: str, stream: IO[bytes], schema: Schema) -> Any:
    if form == "parquet":
        import pyarrow.parquet as pq

        return pq.ParquetWriter(stream, schema)
    if form == "arrow":
        return pa.ipc.new_file(stream, schema)
    from pyarrow import csv

    options = csv.WriteOptions(delimiter="\t" if form == "tsv" else ",", quoting_style="needed")
    return csv.CSVWriter(stream, schema, write_options=options)


def _json(stream: IO[bytes], batch: Batch) -> None:
    import json

    for first in range(0, batch.num_rows, OBJECTS):
        for row in batch.slice(first, OBJECTS).to_pylist():
            stream.write(
                json.dumps(row, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass")
                + b"\n"
            )
