"""Text in any of the usual encodings, as a stream of UTF-8 bytes."""

from __future__ import annotations

import codecs
from pathlib import Path
from typing import Any, BinaryIO

from mercer.tables.errors import DataError
from mercer.tables.read.files import reading

_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNDEFINED = b"\x81\x8d\x8f\x90\x9d"  # bytes that Windows-1252 leaves out


def guess(start: bytes, whole: bool = False) -> str:
    """The encoding of the first bytes of a text: by its mark, by the zeros of UTF-16, as UTF-8,
    else as Windows-1252 or Latin-1.

    >>> guess("é".encode()), guess("é!".encode("cp1252")), guess(b"plain")
    ('utf-8', 'cp1252', 'ascii')
    """
    for mark, name in _MARKS.items():
        if start.startswith(mark):
            return name
    if b"\0" in start:
        return _wide(start)
    if start.isascii():
        return "ascii"
    return "utf-8" if _is_utf8(start, whole) else single_byte(start)


def single_byte(start: bytes) -> str:
    """Windows-1252, or Latin-1 where bytes occur that the former leaves out."""
    return "latin-1" if any(b in start for b in _UNDEFINED) else "cp1252"


def _is_utf8(start: bytes, whole: bool) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(
            start, whole
        )  # unless whole, a letter may be cut at the end
    except UnicodeDecodeError:
        return False
    return True


def _wide(start: bytes) -> str:
    """UTF-16 without a mark: mostly ASCII text has its zeros in the odd or in the even places; ""
    for what is no text."""
    even, odd = start[0::2].count(0), start[1::2].count(0)
    if max(even, odd) < 0.15 * len(start) or min(even, odd) > 0.025 * len(start):
        return ""
    return "utf-16-le" if odd > even else "utf-16-be"


def decode(start: bytes, encoding: str) -> str:
    """The text of the first bytes; a letter cut at the end is left out."""
    return codecs.getincrementaldecoder("utf-8" if encoding == "ascii" else encoding)().decode(
        start
    )


def text_of(path: Path, start: bytes, whole: bool, encoding: str | None = None) -> tuple[str, str]:
    """The text of the first bytes of a file, and its encoding, guessed unless given."""
    encoding = encoding or guess(start, whole)
    if not encoding:
        raise DataError(
            f"{path} holds zero bytes and is no text; save it as csv, parquet, arrow or jsonl."
        )
    try:
        return decode(start, encoding), encoding
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not {encoding} text at byte {error.start:,}; name its encoding or convert it to utf-8."
        ) from error
    except LookupError as error:
        raise DataError(
            f"encoding {encoding!r} is not known; use a Python codec such as utf-8 or cp1252."
        ) from error


class Utf8Stream:
    """A file-like object of UTF-8 bytes, for pyarrow.

    "ascii" is undecided: the first part that is not ASCII shows whether the rest is UTF-8 or
    Windows-1252.
    """

    def __init__(self, raw: BinaryIO, encoding: str, path: Path) -> None:
        self.raw, self.path, self.encoding = raw, path, encoding
        self.decoder: Any = None
        self.left, self.at, self.ended = b"", 0, False

    @property
    def closed(self) -> bool:
        return self.raw.closed

    def close(self) -> None:
        self.raw.close()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; none at the end."""
        while not self.left and not self.ended:
            self.left = self._part(size if size > 0 else 1 << 20)
        out, self.left = (self.left, b"") if size < 0 else (self.left[:size], self.left[size:])
        return out

    def _part(self, size: int) -> bytes:
        with reading(self.path):
            part = bytes(self.raw.read(size))
        self.ended = not part
        if self.decoder is None and self.encoding == "ascii" and part.isascii():
            self.at += len(part)
            return part
        return self._decoded(part)

    def _decoded(self, part: bytes) -> bytes:
        if self.decoder is None:
            self.encoding = guess(part) if self.encoding == "ascii" else self.encoding
            self.decoder = codecs.getincrementaldecoder(self.encoding)()
        try:
            text: str = self.decoder.decode(part, self.ended)
        except UnicodeDecodeError as error:
            raise DataError(self._sentence(error)) from error
        self.at += len(part)
        return text.encode("utf-8", "replace")

    def _sentence(self, error: UnicodeDecodeError) -> str:
        at, byte = self.at + error.start, error.object[error.start]
        return (
            f"{self.path} is not {self.encoding} text at byte {at:,} (0x{byte:02x}); convert it, as in "
            f"iconv -f cp1252 -t utf-8, or name its encoding."
        )
