"""What can be read only once (standard input, named pipes, the shell's <(...)), and what has to be
unpacked, held for many passes."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from mercer.tables.errors import DataError, Misnamed, said

STANDARD = "standard input"
MAX_MEMORY_BYTES = 1 << 24  # bytes that are held in memory; more go to a temporary file
STEP = 1 << 20
_ONCE = ("/dev/stdin", "/dev/fd/", "/proc/")  # where opening again need not begin again


class Spooled(type(Path())):  # type: ignore[misc]  # the class of paths depends on the system
    """A path that is spelled as the user did, and opens what was read from there: any number of
    times, until it is collected.

    What is spooled has no name on disk where the system allows that, so that it vanishes however
    the process ends.
    """

    holder: Any
    real: str

    def __fspath__(self) -> str:
        return self.real

    def __del__(self) -> None:
        if "holder" in self.__dict__:
            self.holder.close()


def once(path: Path) -> bool:
    """Whether a path can be read only once."""
    if isinstance(path, Spooled):
        return False
    if str(path) == "-" or str(path).startswith(_ONCE):
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def read_once(path: Path) -> Spooled:
    """All that comes from a pipe."""
    name = STANDARD if str(path) == "-" else str(path)
    with _opened(path, name) as stream:
        return spool(_parts(stream), name)


@contextmanager
def _opened(path: Path, name: str) -> Iterator[BinaryIO]:
    try:
        if str(path) == "-":
            yield _standard()
            return
        with open(path, "rb") as stream:
            yield stream
    except FileNotFoundError as error:
        raise Misnamed(f"{name} does not exist; check the name and the folder.") from error
    except OSError as error:
        raise DataError(f"{name} cannot be read: {said(error)}.") from error


def _standard() -> BinaryIO:
    if sys.stdin is None or sys.stdin.closed:
        raise DataError(f"{STANDARD} is closed; pipe the table into the command, or name a file.")
    if sys.stdin.isatty():
        raise Misnamed(
            f"{STANDARD} is a terminal; pipe the table into the command, or name a file."
        )
    return sys.stdin.buffer


def _parts(stream: BinaryIO) -> Iterator[bytes]:
    while part := stream.read(STEP):
        yield part


def spool(parts: Iterable[bytes], name: str) -> Spooled:
    """Bytes under a name: a little in memory, more in a temporary file.

    >>> path = spool([b"a,b", b"c"], "standard input")
    >>> str(path), path.read_bytes(), path.read_bytes()
    ('standard input', b'a,bc', b'a,bc')
    """
    found, size = Spooled(name), 0
    found.holder = _first()
    for part in parts:
        if size <= MAX_MEMORY_BYTES < size + len(part):
            found.holder = _moved(found.holder)
        with _room():
            found.holder.write(part)
        size += len(part)
    with _room():
        found.holder.flush()
    found.real = _name(found.holder)
    return found


@contextmanager
def _room() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"what was piped does not fit on the disk that holds {tempfile.gettempdir()}"
        raise DataError(f"{what}: {said(error)}; free some space, or set TMPDIR.") from error


def _first() -> IO[bytes]:
    """A file in memory, where the system has such."""
    return (
        os.fdopen(os.memfd_create("mercer"), "w+b")
        if _by_number() and hasattr(os, "memfd_create")
        else _on_disk()
    )


def _on_disk() -> IO[bytes]:
    with _room():
        if _by_number():
            return cast(
                IO[bytes], tempfile.TemporaryFile(prefix="mercer-")
            )  # it has no name, and goes however the process ends
        if _opens_twice():
            return cast(IO[bytes], tempfile.NamedTemporaryFile(prefix="mercer-"))
        kept = tempfile.NamedTemporaryFile(prefix="mercer-", delete=False)  # noqa: SIM115
        weakref.finalize(kept, _forget, kept.file, kept.name)
        return cast(IO[bytes], kept)


def _opens_twice() -> bool:
    """Whether a temporary file that deletes itself can be opened by its name meanwhile."""
    return os.name != "nt"


def _forget(file: IO[bytes], name: str) -> None:
    file.close()
    Path(name).unlink(missing_ok=True)


def _moved(holder: IO[bytes]) -> IO[bytes]:
    """The same bytes on disk."""
    new = _on_disk()
    holder.seek(0)
    with holder, _room():
        while part := holder.read(STEP):
            new.write(part)
    return new


def _by_number() -> bool:
    """Whether a file without a name can be opened afresh by the number of its descriptor."""
    return sys.platform == "linux" and os.path.isdir("/proc/self/fd")


def _name(holder: IO[bytes]) -> str:
    return f"/proc/self/fd/{holder.fileno()}" if _by_number() else str(holder.name)
