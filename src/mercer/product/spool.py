"""A spool of rows: one array that grows batch by batch, in memory while it is small and then on disk."""
from __future__ import annotations

import errno
import tempfile
from typing import IO, Any

import numpy as np

from mercer.inputs import Array


class Spool:
    """Float32 rows (n, p); beyond `most` bytes they go to an unnamed file, which vanishes with the array.

    >>> s = Spool(2, most=0)
    >>> s.add(np.ones((3, 2), np.float32)).add(np.zeros((1, 2), np.float32)).array().shape
    (4, 2)
    """

    def __init__(self, width: int, most: float) -> None:
        self.width, self.most, self.n = width, most, 0
        self.held: list[Array] = []
        self.file: IO[bytes] | None = None

    def add(self, X: Array) -> Spool:
        """Append rows."""
        rows = np.ascontiguousarray(X, np.float32)
        self.n += len(rows)
        if self.file is not None:
            self._write(rows)
        else:
            self.held.append(rows)
            if 4.0 * self.n * self.width > self.most:
                self._spill()
        return self

    def _spill(self) -> None:
        self.file = tempfile.TemporaryFile(prefix="mercer-")  # noqa: SIM115  the array keeps it open
        for rows in self.held:
            self._write(rows)
        self.held.clear()

    def _write(self, rows: Array) -> None:
        assert self.file is not None
        try:
            rows.tofile(self.file)
        except OSError as error:
            text = f"the treated rows do not fit on the disk that holds {tempfile.gettempdir()}; free some space"
            raise OSError(error.errno or errno.ENOSPC, text) from error

    def array(self) -> Array:
        """All rows, once; of a file, a map of it, which lives as long as it is used."""
        if self.file is None:
            return np.concatenate(self.held) if self.held else np.zeros((0, self.width), np.float32)
        shape: Any = (self.n, self.width)
        with self.file as file:
            file.flush()
            return np.memmap(file, np.float32, "r", shape=shape) if self.n and self.width else np.zeros(shape, np.float32)
