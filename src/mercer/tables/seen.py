"""A column as one pass saw it, and what it is taken for."""
from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from mercer.tables.arrow import Column
from mercer.tables.encoders import Encoder
from mercer.tables.sketch import Sketch

MAX_CATEGORIES = 32


@dataclass(frozen=True)
class Choice:
    """What a column is taken for; without an encoder it is left out."""

    kind: str
    action: str
    details: str = ""
    encoder: Encoder | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """A column: its name, its sketch, and its cells in the sample."""

    name: str
    sketch: Sketch
    sample: Column
    max_categories: int = MAX_CATEGORIES
    n_marked: int = 0  # cells with a number that stands for missing

    @property
    def often(self) -> int:
        """A level with fewer rows is pooled; missing values in fewer rows raise no indicator: a thousandth, from 3 to 200 rows."""
        return min(max(3, ceil(0.001 * self.sketch.n)), 200)

    @property
    def n_gone(self) -> int:
        """Missing cells, with the texts of a column of numbers."""
        return self.sketch.n_missing + self.sketch.n_texts + self.n_marked

    @property
    def gone(self) -> bool:
        return self.n_gone >= self.often

    def about_missing(self, by: str) -> str:
        """The end of a sentence."""
        if not self.n_gone:
            return "."
        values = f"{self.n_gone:,} missing values take" if self.n_gone > 1 else "1 missing value takes"
        return f"; {values} {by}" + (" and raise an indicator." if self.gone else ".")

    def left_out(self, kind: str, why: str, warning: str = "") -> Choice:
        """Without features."""
        return Choice(kind, f"{why}; left out.", warnings=(f'"{self.name}" {warning} and was left out.',) * bool(warning))
