"""Checkpoints of folds: a folder of sums that are done, each written at once and read only whole."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

_current: ContextVar[Checkpoint | None] = ContextVar("mercer_checkpoint", default=None)
PREFIX = "pass-"


def current() -> Checkpoint | None:
    """That of the block we are in."""
    return _current.get()


@contextmanager
def checkpointed(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Fits over partitions inside the block keep what they have done in this folder, and begin from
    it where it was left; it is emptied when the block ends well.

    What is kept is found by the map, the settings and the names of the partitions, so that nothing
    of another fit is ever taken.

    >>> with tempfile.TemporaryDirectory() as folder, checkpointed(folder):
    ...     pass
    """
    kept = Checkpoint.at(folder)
    token = _current.set(kept)
    try:
        yield
    finally:
        _current.reset(token)
    kept.clear()


@dataclass(frozen=True)
class Checkpoint:
    """A folder, and the passes that were asked for."""

    folder: Path
    used: list[Path] = field(default_factory=list)

    @classmethod
    def at(cls, folder: str | os.PathLike[str]) -> Checkpoint:
        path = Path(folder)
        if path.exists() and not path.is_dir():
            raise ValueError(f"the checkpoint {path} is a file; give a folder.")
        path.mkdir(parents=True, exist_ok=True)
        return cls(path)

    def of_pass(self, identity: str, keys: Any) -> Checkpoint:
        """That of one sum, by what is summed and over what."""
        told = json.dumps([identity, keys]).encode()
        folder = self.folder / f"{PREFIX}{blake2b(told, digest_size=16).hexdigest()}"
        folder.mkdir(exist_ok=True)
        self.used.append(folder)
        return Checkpoint(folder)

    def nodes(self, n: int, arity: int, kind: type[Any]) -> Nodes:
        """Its sums, as far as they are done."""
        found = Nodes(self.folder, n, arity, kind)
        found.settle()
        return found

    def clear(self) -> None:
        """Without the sums of a fit that is done."""
        for folder in self.used:
            shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True)
class Nodes:
    """Sums of a tree over n leaves, in files named by level and number."""

    folder: Path
    n: int
    arity: int
    kind: type[Any]

    def settle(self) -> None:
        """What a kill may have left: files half written, damaged sums, groups that are whole, and
        groups whose sum is there already."""
        for path in self.folder.glob("*.part"):
            path.unlink()
        for path in self.folder.glob("*.npz"):
            if read(path, self.kind) is None:
                path.unlink()
        for level in reversed(range(self._top)):
            for at in range(self._width(level)):
                if self._path(level + 1, at // self.arity).exists():
                    self._path(level, at).unlink(missing_ok=True)
        for level in range(self._top):
            for group in range(self._width(level + 1)):
                self._join(level, group)

    def missing(self) -> list[int]:
        """The leaves that no sum covers."""
        return [i for i in range(self.n) if not self._covered(i)]

    def _covered(self, leaf: int) -> bool:
        levels = range(self._top + 1)
        return any(self._path(level, leaf // self.arity**level).exists() for level in levels)

    @cached_property
    def _top(self) -> int:
        """The level of the root."""
        level = 0
        while self._width(level) > 1:
            level += 1
        return level

    def _width(self, level: int) -> int:
        return -(-self.n // self.arity**level)

    def put(self, leaf: int, value: Any) -> None:
        """Keep a sum; where it completes a group, the sum of that, and so on."""
        write_atomically(self._path(0, leaf), value.arrays())
        level, group = 0, leaf // self.arity
        while level < self._top and self._join(level, group):
            level, group = level + 1, group // self.arity

    def _join(self, level: int, group: int) -> bool:
        """Replace the sums of a group by one, where all are there."""
        end = min((group + 1) * self.arity, self._width(level))
        inside = [self._path(level, i) for i in range(group * self.arity, end)]
        if not all(path.exists() for path in inside):
            return False
        total = read(inside[0], self.kind)
        for path in inside[1:]:
            total = total + read(path, self.kind)
        write_atomically(self._path(level + 1, group), total.arrays())
        for path in inside:
            path.unlink()
        return True

    def root(self) -> Any:
        """Of all leaves, which must be there."""
        return read(self._path(self._top, 0), self.kind)

    def _path(self, level: int, at: int) -> Path:
        return self.folder / f"{level}-{at}.npz"


def read(path: Path, kind: type[Any]) -> Any:
    """A sum; None where the file is damaged."""
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            return kind.of_arrays({name: arrays[name] for name in arrays.files})
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def write_atomically(path: Path, arrays: dict[str, Any]) -> None:
    """All or nothing, also when the machine stops."""
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
