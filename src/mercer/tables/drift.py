"""Whether new data still look like the training data: shares of the values of each column in bins, compared as they stream by."""
from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import chi2

from mercer.inputs import Array
from mercer.tables.arrow import pa
from mercer.tables.categories import Category, Text
from mercer.tables.encoders import Boolean, Date, Encoder
from mercer.tables.errors import DataError
from mercer.tables.values import text

LARGE = 0.25  # a population stability index above this is drift
CHANCE = 1e-4
BINS = 10
SHOWN = 20  # frequent levels with bins of their own


@dataclass(frozen=True)
class Reference:
    """Training data in bins: `edges` part the values, and one more bin holds the missing ones.

    Numbers, dates and the lengths of texts are parted at the deciles of the sample; of the levels of a category the most
    frequent have a bin each, the rest share one, and unseen ones have the last.
    """

    edges: tuple[float, ...]
    shares: tuple[float, ...]  # of every bin, the last one: missing
    n: int
    levels: tuple[str, ...] = ()  # names of the first bins of a category
    category: bool = False
    unit: str = ""  # what follows a number; "date" for seconds since 1970

    def state(self) -> dict[str, Any]:
        """Plain values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Reference:
        made: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in state.items()}
        return cls(**made)

    def bins(self, values: Array) -> Array:
        """How many values lie in each bin."""
        at = np.searchsorted(np.array(self.edges), values, side="left")
        at = np.where(np.isnan(values), len(self.edges) + 1, at)
        return np.bincount(at, minlength=len(self.edges) + 2)

    def described(self, i: int) -> str:
        """A bin in words."""
        last = len(self.edges)
        if i > last:
            return "missing"
        return self._level(i, last) if self.category else self._interval(i, last)

    def _level(self, i: int, last: int) -> str:
        if i < len(self.levels):
            return f'"{self.levels[i]}"'
        return "not seen in training" if i == last else "a rare one"

    def _interval(self, i: int, last: int) -> str:
        if i == 0:
            return f"at most {self._shown(self.edges[0])}"
        below = self._shown(self.edges[i - 1])
        return f"above {below}" if i == last else f"between {below} and {self._shown(self.edges[i])}"

    def _shown(self, edge: float) -> str:
        return str(np.datetime64(int(edge), "s").astype("datetime64[m]")) if self.unit == "date" else f"{edge:.6g}{self.unit}"


def reference(encoder: Encoder, values: Array, n: int) -> Reference:
    """From what an encoder read of the sample, (k, c): its first column."""
    x = values[:, 0]
    made = _binned(encoder, x[~np.isnan(x)])
    shares = made.bins(x) / max(len(x), 1)
    return replace(made, shares=tuple(float(s) for s in shares), n=min(n, len(x)))


def _binned(encoder: Encoder, kept: Array) -> Reference:
    if isinstance(encoder, Category):
        top = min(len(encoder.levels), SHOWN)
        edges = np.unique([*(np.arange(top) + 0.5), len(encoder.levels) - 0.5])
        return Reference(tuple(edges.tolist()), (), 0, encoder.levels[:top], True)
    if isinstance(encoder, Boolean):
        return Reference((0.5,), (), 0, encoder.pair, True)
    cuts = np.unique(np.quantile(kept, np.arange(1, BINS) / BINS)) if len(kept) else np.zeros(1)
    unit = "date" if isinstance(encoder, Date) else " characters long" if isinstance(encoder, Text) else ""
    return Reference(tuple(cuts.tolist()), (), 0, unit=unit)


def stability(p: Array, q: Array, n: float, m: float) -> tuple[float, Array]:
    """The population stability index sum (q - p) log(q / p) of shares p of n rows and q of m rows, and its terms; each bin
    has half a row more.

    >>> stability(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 100, 100)[0]
    0.0
    """
    a, b = ((s * size + 0.5) / (size + len(s) / 2) for s, size in ((p, n), (q, m)))
    terms = (b - a) * np.log(b / a)
    return float(terms.sum()), terms


def noise(n: float, m: float, bins: int) -> float:
    """What the index of undrifted data exceeds once in 10,000 times: it is near a chi-squared times (1/n + 1/m)."""
    return float(chi2.isf(CHANCE, max(bins - 1, 1))) * (1 / max(n, 1) + 1 / max(m, 1))


@dataclass(frozen=True)
class Drifted:
    """One column of new data beside training: the index, the threshold it was held against, and a sentence where it is above."""

    name: str
    index: float
    threshold: float
    sentence: str

    @property
    def large(self) -> bool:
        return self.index > self.threshold


@dataclass(frozen=True)
class DriftReport:
    """All columns, the most drifted first; `warnings` has a sentence for each that drifted or could not be read."""

    columns: tuple[Drifted, ...]
    n_rows: int
    n_unread: dict[str, int]
    warnings: tuple[str, ...]


@dataclass(eq=False)
class Watch:
    """Counts of new data in the bins of training, batch by batch. `transform(batch, watch=watch)` fills it on the way."""

    columns: Any
    n_rows: int = 0
    counts: dict[str, Array] = field(default_factory=dict)
    n_unread: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)  # of cells that could not be read

    def add(self, batch: Any) -> Watch:
        """Take in a batch."""
        self.columns.transform(batch, target=False, watch=self)
        return self

    def take(self, name: str, values: Array, unread: int, column: Any = None) -> None:
        """Take in what was read of one column, and where something could not be, of which cells."""
        found = self.columns.references_[name].bins(values[:, 0])
        self.counts[name] = self.counts[name] + found if name in self.counts else found
        self.n_unread[name] = self.n_unread.get(name, 0) + unread
        if unread and column is not None and name not in self.examples:
            cells = text(column.filter(pa.array(np.isnan(values[:, 0])))).drop_null()
            self.examples[name] = cells[0].as_py()[:40] if len(cells) else "?"

    def check(self) -> None:
        """Raise a DataError where none of the filled cells of a column could be read so far."""
        for name, example in self.examples.items():
            if not self.counts[name][:-1].any():
                kind = self.columns.encoders_[name].takes[0]
                raise DataError(f'no value of "{name}" reads as a {kind}, which it was in training: "{example}", for one; mend the column.')

    def report(self) -> DriftReport:
        found = sorted((self._compared(name) for name in self.counts), key=lambda d: -d.index / d.threshold)
        unread = {k: v for k, v in self.n_unread.items() if v}
        said = [d.sentence for d in found if d.large]
        said += [f'"{name}" has {count:,} values that could not be read; they count as missing.' for name, count in unread.items()]
        return DriftReport(tuple(found), self.n_rows, unread, tuple(said))

    def _compared(self, name: str) -> Drifted:
        known, counts = self.columns.references_[name], self.counts[name]
        m = int(counts.sum())
        p, q = np.array(known.shares), counts / max(m, 1)
        index, terms = stability(p, q, known.n, m)
        threshold = max(LARGE, noise(known.n, m, len(p)))
        i = int(np.argmax(terms * (q != p)))
        what = f"{q[i]:.0%} of its values are {known.described(i)}, {p[i]:.0%} in training"
        said = f'"{name}" has drifted: {what} (stability index {index:.2f}, above {threshold:.2f} is large).'
        return Drifted(name, index, threshold, said)
