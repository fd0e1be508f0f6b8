"""Which files were meant, what they hold, their bytes without the compression, and whether they are
still those that were opened."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO, cast

from mercer.tables.arrow import pa
from mercer.tables.errors import DataError, Misnamed, nearest, said
from mercer.tables.read.pipes import Spooled, once, read_once

HEAD = 1 << 18  # bytes that decide how a file is written
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "stream",
    b"PK\x03\x04": "sheet",
    b"\xd0\xcf\x11\xe0": "sheet",
}
WHOLE = ("parquet", "arrow", "sheet")  # that cannot be read in pieces while they are packed
_ARRAY = re.compile(rb"\s*\[\s*[{\]]")
_FASTA = re.compile(rb">[^\r\n]*\r?\n[A-Za-z*-]+\s*(\r?\n|$)")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".psv": "csv",
    ".dat": "csv",
    ".data": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    **dict.fromkeys((".fa", ".fasta", ".fna", ".faa", ".ffn", ".fas", ".frn"), "fasta"),
}
_LOOSE = [("fasta", suffix) for suffix in (".txt", ".dat", ".data")]  # that say little
_TYPED = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_FOREIGN = {
    b"%PDF": "a PDF; save its table as csv",
    b"FEA1": "an old feather file; write it again as parquet or arrow",
    b"SQLite": "an SQLite database; export the table as csv",
    b"7z\xbc\xaf": "a 7z archive; unpack it",
}
STAMPED = 1 << 16  # bytes that are compared


def find(paths: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """The files that paths and globs name, in order, each once."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found = [
        path
        for item in given
        for path in ([item] if isinstance(item, Spooled) else _matches(str(item)))
    ]
    if not found:
        raise Misnamed("no files were given; name at least one.")
    return tuple(_readable(path) for path in dict.fromkeys(found))


def _matches(text: str) -> list[Path]:
    if text == "-" or Path(text).exists() or not has_magic(text):
        return [
            Path(text) if text == "-" or str(Path(text)) != "-" else Path(text).absolute()
        ]  # ./- is a file
    found = sorted(Path(name) for name in glob(text, recursive=True) if not Path(name).is_dir())
    if not found:
        raise Misnamed(f"no file matches {text}; check the pattern and the folder.")
    return found


def _readable(path: Path) -> Path:
    """The path, after a look; what can be read only once is read, and held for as many passes as
    there will be."""
    path = read_once(path) if once(path) else path
    if path.is_dir():
        raise Misnamed(_directory(path))
    if not path.exists():
        beside = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        near = nearest(path.name, beside)
        raise Misnamed(
            f"{path} does not exist{near if 'did you mean' in near else '; check the name and the folder.'}"
        )
    with reading(path), path.open("rb") as file:
        if not file.read(1):
            raise DataError(f"{path} is empty; it holds no bytes.")
    return path


def _directory(path: Path) -> str:
    """What to do about a folder, by the files in it."""
    ends = Counter(
        "".join(p.suffixes[-2:])
        for p in path.iterdir()
        if p.is_file() and (_suffix(p) in _SUFFIXES or p.suffix.lower() in _TYPED)
    )
    if not ends:
        return f"{path} is a directory without tables; name the files of the table."
    end, count = ends.most_common(1)[0]
    return f"{path} is a directory; name its files, as in '{path / f'*{end}'}' for all {count} of that kind."


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what goes wrong with the bytes of a file into a DataError."""
    try:
        yield
    except PermissionError as error:
        raise DataError(
            f"{path} cannot be read: permission denied; check who may read it."
        ) from error
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path} is damaged or cut short: its compression ends in an error ({said(error)})."
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {said(error)}.") from error


def packing(path: Path) -> str:
    """The compression of a file by its first bytes, "" for none."""
    with path.open("rb") as file:
        first = file.read(8)
    return next((name for magic, name in _PACKED.items() if first.startswith(magic)), "")


def unpacked(path: Path) -> BinaryIO:
    """The bytes of a file without its compression, from the start."""
    kind = packing(path)
    plain: dict[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
    if kind in plain:
        return cast(BinaryIO, plain[kind](path, "rb"))
    return cast(
        BinaryIO, pa.input_stream(os.fspath(path), compression=kind) if kind else path.open("rb")
    )


def head(path: Path, size: int = HEAD) -> bytes:
    """The first bytes of what is in a file."""
    with reading(path), unpacked(path) as stream:
        parts, left = [], size
        while left > 0 and (part := stream.read(left)):
            parts.append(bytes(part))
            left -= len(part)
        return b"".join(parts)


def kind(path: Path, start: bytes) -> str:
    """csv, json, array (of JSON), fasta, parquet, arrow, stream or sheet: by the first bytes, the suffix,
    then by what the text looks like."""
    if not start:
        raise DataError(f"{path} is empty; it holds no bytes.")
    found = next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)
    if found is None:
        _refuse_foreign(path, start)
        look = _by_look(start)
        found = look if (look, _suffix(path)) in _LOOSE else _SUFFIXES.get(_suffix(path), look)
    text = start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")  # in any encoding
    return "array" if found == "json" and text[:1] == b"[" else found


def _by_look(start: bytes) -> str:
    text = start.removeprefix(b"\xef\xbb\xbf")
    if _FASTA.match(text):
        return "fasta"
    return "json" if text.lstrip()[:1] == b"{" or _ARRAY.match(text) else "csv"


def _refuse_foreign(path: Path, start: bytes) -> None:
    for magic, what in _FOREIGN.items():
        if start.startswith(magic):
            raise DataError(f"{path} is {what}.")
    if path.suffix.lower() in _TYPED:
        raise DataError(
            f"{path} is not a {path.suffix.lower()[1:]} file, whatever its name says; it may be damaged or cut short."
        )


def _suffix(path: Path) -> str:
    packed = (".gz", ".bz2", ".xz", ".zst", ".zstd", ".lz4", ".gzip")
    last = [s.lower() for s in path.suffixes if s.lower() not in packed]
    return last[-1] if last else ""


@dataclass(frozen=True)
class Stamp:
    """A file as it was at one moment."""

    size: int
    time: int  # of its last change, in nanoseconds
    head: bytes

    @classmethod
    def of(cls, path: Path) -> Stamp:
        with reading(path):
            found = path.stat()
            with path.open("rb") as file:
                return cls(
                    found.st_size,
                    found.st_mtime_ns,
                    blake2b(file.read(STAMPED), digest_size=16).digest(),
                )

    def check(self, path: Path) -> None:
        """Refuse a file that is another one by now: the passes over it would not agree."""
        if Stamp.of(path) != self:
            raise DataError(
                f"{path} has changed since it was opened; give a file that nothing writes to while it is read."
            )
