"""A spool of rows: one array that grows batch by batch, in memory while it is small and then on disk."""
from __future__ import annotations

import errno
import tempfile
from typing import IO, Any

import numpy as np

from mercer.inputs import Array


class Spool:
    """Rows (n, p), float32 unless told; beyond `most` bytes they go to an unnamed file, which vanishes with the array.

    >>> s = Spool(2, most=0)
    >>> s.add(np.ones((3, 2), np.float32)).add(np.zeros((1, 2), np.float32)).array().shape
    (4, 2)
    """

    def __init__(self, width: int, most: float, dtype: Any = np.float32) -> None:
        self.width, self.most, self.dtype, self.n = width, most, np.dtype(dtype), 0
        self.held: list[Array] = []
        self.file: IO[bytes] | None = None

    @property
    def n_bytes(self) -> float:
        """In memory."""
        return 0.0 if self.file is not None else float(self.dtype.itemsize) * self.n * self.width

    def add(self, X: Array) -> Spool:
        """Append rows."""
        rows = np.ascontiguousarray(X, self.dtype)
        self.n += len(rows)
        if self.file is not None:
            self._write(rows)
        else:
            self.held.append(rows)
            if self.n_bytes > self.most:
                self.spill()
        return self

    def spill(self) -> None:
        """From now on, on disk."""
        if self.file is not None:
            return
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
            return self._joined()
        shape: Any = (self.n, self.width)
        with self.file as file:
            file.flush()
            return np.memmap(file, self.dtype, "r+", shape=shape) if self.n and self.width else np.zeros(shape, self.dtype)

    def vector(self) -> Array:
        """The same of rows of one value, (n,)."""
        return self.array().reshape(-1)

    def _joined(self) -> Array:
        """The batches in one array; each is let go as soon as it is there."""
        out, at = np.empty((self.n, self.width), self.dtype), 0
        self.held.reverse()
        while self.held:
            rows = self.held.pop()
            rows = rows.reshape(len(rows), self.width)
            out[at : at + len(rows)] = rows
            at += len(rows)
        return out
