"""Several files as one commit: all are written aside and settled on disk first, then take their
names together.

Two names cannot change in one step. So that no one sees a pair that does not belong together,
commits to a folder wait for each other, a commit that fails gives the names back that it had taken,
and where a process is killed between the names, the files tell: what a report says of its model is
the sum of that model's bytes.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

Files = Mapping[Path, Sequence[bytes]]


def commit(files: Files, *, overwrite: bool = True) -> None:
    """Write all files or none, those of another commit whole or not at all; the last named is the
    last to change.

    A file that is there keeps its rights; without `overwrite` it stays, and nothing is written
    (FileExistsError).

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     commit({Path(folder, "a"): [b"1"], Path(folder, "b"): [b"2", b"3"]})
    ...     sorted((p.name, p.read_bytes()) for p in Path(folder).iterdir())
    [('a', b'1'), ('b', b'23')]
    """
    goals = [Path(os.path.realpath(path)) for path in files]
    with ExitStack() as stack:
        parts = [
            stack.enter_context(_draft(goal, pieces))
            for goal, pieces in zip(goals, files.values(), strict=True)
        ]
        for folder in sorted(
            {goal.parent for goal in goals}
        ):  # in one order, so that two commits never wait for each other
            stack.enter_context(locked(folder))
        _take(list(zip(parts, goals, strict=True)), overwrite=overwrite)
        for folder in {goal.parent for goal in goals}:
            settle(folder)


@contextmanager
def _draft(goal: Path, pieces: Sequence[bytes]) -> Iterator[Path]:
    """A file beside the goal, whole and on disk, which vanishes unless it is moved."""
    part = beside(goal)
    try:
        with naming(goal):
            with open(part, "xb") as f:
                for piece in pieces:
                    f.write(piece)
                f.flush()
                os.fsync(f.fileno())
            if goal.exists():
                part.chmod(stat.S_IMODE(goal.stat().st_mode))
        yield part
    finally:
        part.unlink(missing_ok=True)


def _take(moves: list[tuple[Path, Path]], *, overwrite: bool) -> None:
    """Give all drafts their names, or give back what was there."""
    for _, goal in moves:
        if not overwrite and goal.exists():
            raise FileExistsError(f"{goal} is there already; give another path, or overwrite=True.")
    undo: list[tuple[Path, Path | None]] = []
    try:
        for part, goal in moves:
            with naming(goal):
                undo.append((goal, _kept(goal)))
                os.replace(part, goal)
    except BaseException:
        for goal, old in reversed(undo):
            with suppress(OSError):
                goal.unlink(missing_ok=True) if old is None else os.replace(old, goal)
        raise
    finally:
        for _, old in undo:
            if old is not None:
                old.unlink(missing_ok=True)


def _kept(goal: Path) -> Path | None:
    """A second name for what is there; a copy where the file system has no links."""
    if not goal.exists():
        return None
    old = beside(goal)
    try:
        os.link(goal, old)
    except OSError:
        old.write_bytes(goal.read_bytes())
    return old


def beside(goal: Path) -> Path:
    """A new name in the same folder."""
    return goal.with_name(f".mercer-{secrets.token_hex(8)}.part")


@contextmanager
def naming(goal: str | os.PathLike[str]) -> Iterator[None]:
    """Trouble with a draft, told of the file that was asked for."""
    try:
        yield
    except OSError as e:
        raise (type(e)(e.errno, e.strerror, os.fspath(goal)) if e.errno is not None else e) from e


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """While no other commit is at work in this folder, where the system can tell; the lock ends
    with its process."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # Windows; a folder that may be written to and not read
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def settle(folder: Path) -> Any:
    """Make new names last through a loss of power, where folders can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
