"""Categories and texts as numbers."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.inputs import Array
from mercer.tables.arrow import Column, pc
from mercer.tables.encoders import Encoder, beside, codes_of
from mercer.tables.scale import Scale
from mercer.tables.sketch import HELD, short
from mercer.tables.values import null, numbers, text


@dataclass(frozen=True)
class Category(Encoder):
    """A feature for each frequent level, one for all others, one for missing, and the log of the level's share where levels are many.

    Levels are in order of frequency; one that training did not have counts as other.
    """

    levels: tuple[str, ...]  # all whose counts are known
    shares: tuple[float, ...]
    n_features: int  # the levels that have a feature
    other: bool
    gone: bool  # a feature for missing; else the most frequent level stands in
    frequency: Scale | None = None
    numeric: bool = False

    @property
    def takes(self) -> tuple[str, ...]:
        return ("number",) if self.numeric else ("text",)

    def read(self, column: Column) -> tuple[Array, int]:
        codes = self._of_numbers(column) if self.numeric else self._of_text(text(column))
        return codes[:, None], 0

    def _of_text(self, cells: Column) -> Array:
        codes = codes_of(short(cells), self.levels)
        return np.where(np.isnan(codes) & ~null(cells), len(self.levels), codes)

    def _of_numbers(self, column: Column) -> Array:
        """Levels that are numbers: 7 and 7.0 are one."""
        values, odd = numbers(column)
        known = np.array([float(v) for v in self.levels])
        order = np.argsort(known)
        at = order[np.minimum(np.searchsorted(known[order], values), len(known) - 1)]
        return np.where(np.isnan(values) & ~odd, np.nan, np.where(known[at] == values, at, len(known)))

    def features(self, values: Array) -> Array:
        gone = np.isnan(values[:, 0])
        x = np.where(gone & (not self.gone), 0, values[:, 0])
        hot = [x == j for j in range(self.n_features)] + [x >= self.n_features] * self.other + [gone] * self.gone
        return beside([h.astype(np.float64) for h in hot] + [s(self._logs(x)) for s in (self.frequency,) if s], len(x))

    def _logs(self, x: Array) -> Array:
        """Of a level that training lacks, that of its rarest one: less would put a row far from all others by this alone."""
        shares = np.log(np.array([*self.shares, min(self.shares)]))
        return shares[np.where(np.isnan(x), len(self.levels), x).astype(np.int64)]

    def names(self, name: str) -> tuple[str, ...]:
        hot = tuple(f"{name} = {level}" for level in self.levels[: self.n_features])
        rest = (f"{name} = other",) * self.other + (f"{name} missing",) * self.gone
        return hot + rest + (f"{name} frequency",) * (self.frequency is not None)


@dataclass(frozen=True)
class Text(Encoder):
    """A text: its frequent values as categories, and its length in characters and in words."""

    values: Category | None
    length: Scale
    words: Scale

    @property
    def takes(self) -> tuple[str, ...]:
        return ("text",)

    def read(self, column: Column) -> tuple[Array, int]:
        cells = text(column)
        codes = self.values.read(cells)[0][:, 0] if self.values else np.where(null(cells), np.nan, 0.0)
        return np.stack([*lengths(cells), codes], axis=1), 0

    def features(self, values: Array) -> Array:
        length, words = np.log1p(values[:, :2]).T
        sizes = beside([self.length(length), self.words(words)], len(values))
        return np.hstack([self.values.features(values[:, 2:]), sizes]) if self.values else sizes

    def names(self, name: str) -> tuple[str, ...]:
        return (*(self.values.names(name) if self.values else ()), f"{name} length", f"{name} words")


def lengths(cells: Column) -> tuple[Array, Array]:
    """The characters and the spaces of each cell, of its first 4,096 characters."""
    filled = short(cells.fill_null(""), HELD)
    count = (pc.utf8_length(filled), pc.count_substring(filled, " "))
    return count[0].to_numpy(zero_copy_only=False).astype(np.float64), count[1].to_numpy(zero_copy_only=False).astype(np.float64)
