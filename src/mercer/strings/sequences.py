"""Sequences: many strings as one array of letter codes and their offsets, looked at where they are
made; loops read them without a look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer.inputs import Array
from mercer.ops.windows import NONE


@dataclass(frozen=True, eq=False)
class Sequences:
    """Strings one after another, letters as codes below `size` or 65535 where there is none.

    Parameters
    ----------
    codes : ndarray of uint16, of shape (letters,)
    offsets : ndarray of int64, of shape (n + 1,)
        String i is codes[offsets[i]:offsets[i + 1]].
    size : int
        Of the alphabet.

    Examples
    --------
    >>> s = Sequences(np.array([0, 1, 1], np.uint16), np.array([0, 1, 3]), 2)
    >>> len(s), s.lengths
    (2, array([1, 2]))
    """

    codes: Array
    offsets: Array
    size: int

    def __post_init__(self) -> None:
        codes, offsets = self.codes, self.offsets
        if codes.dtype != np.uint16 or offsets.dtype != np.int64 or codes.ndim != 1:
            raise ValueError("codes must be a vector of uint16, and offsets of int64.")
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(codes):
            raise ValueError("offsets must begin at 0 and end at the number of codes.")
        if (np.diff(offsets) < 0).any():
            raise ValueError("offsets must ascend.")
        if not 0 <= self.size < NONE or ((codes >= self.size) & (codes != NONE)).any():
            raise ValueError(f"codes must be below {self.size}, or {NONE} for no letter.")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, some: slice) -> Sequences:
        """Those from some.start to some.stop."""
        first, last = self.offsets[[some.start, some.stop]]
        offsets = self.offsets[some.start : some.stop + 1] - first
        return Sequences(self.codes[first:last], offsets, self.size)

    @property
    def lengths(self) -> Array:
        return np.diff(self.offsets)

    def reversed(self, partner: Array) -> Sequences:
        """Every string from its end to its start, letters exchanged by `partner`."""
        ends = np.repeat(self.offsets[:-1] + self.offsets[1:] - 1, self.lengths)
        return Sequences(
            partner[self.codes[ends - np.arange(len(self.codes))]], self.offsets, self.size
        )

    def beside(self, other: Sequences) -> Sequences:
        """Every string followed by one that is no letter and its partner of `other`."""
        lengths = self.lengths + 1 + other.lengths
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        codes = np.full(int(offsets[-1]), NONE, np.uint16)
        for s, first in ((self, offsets[:-1]), (other, offsets[:-1] + self.lengths + 1)):
            codes[np.repeat(first - s.offsets[:-1], s.lengths) + np.arange(len(s.codes))] = s.codes
        return Sequences(codes, offsets, self.size)


def code_points(items: list[Any]) -> tuple[Array, Array]:
    """The characters of all strings, as uint8 where all are ASCII, else as uint32, and offsets.

    >>> code_points(["ab", b"c"])
    (array([97, 98, 99], dtype=uint8), array([0, 2, 3]))
    """
    kinds = set(map(type, items))
    if not all(issubclass(kind, str | bytes) for kind in kinds):
        _refuse(items)
    if not all(issubclass(kind, str) for kind in kinds):
        items = [_text(item, i) for i, item in enumerate(items)]
    joined = "".join(items)
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, items), np.int64, len(items)), out=offsets[1:])
    if joined.isascii():
        return np.frombuffer(joined.encode("ascii"), np.uint8), offsets
    return np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32), offsets


def _text(item: str | bytes, row: int) -> str:
    try:
        return item.decode() if isinstance(item, bytes) else item
    except UnicodeDecodeError as e:
        raise ValueError(
            f"X has bytes in row {row} that are no UTF-8 text ({e.reason}); decode them to strings first."
        ) from e


def _refuse(items: list[Any]) -> None:
    row = next(i for i, item in enumerate(items) if not isinstance(item, str | bytes))
    raise ValueError(
        f"X must list strings, but row {row} is {items[row]!r:.40} ({type(items[row]).__name__}); "
        "leave such rows out, or give '' for an empty string."
    )
