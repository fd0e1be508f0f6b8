"""Whether a file is still the one that was opened: its size, its time and its first bytes."""
from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from mercer.tables.errors import DataError
from mercer.tables.files import reading

HEAD = 1 << 16  # bytes that are compared


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
                return cls(found.st_size, found.st_mtime_ns, blake2b(file.read(HEAD), digest_size=16).digest())

    def check(self, path: Path) -> None:
        """Refuse a file that is another one by now: the passes over it would not agree."""
        if Stamp.of(path) != self:
            raise DataError(f"{path} has changed since it was opened; give a file that nothing writes to while it is read.")
