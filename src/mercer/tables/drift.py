"""Whether new data still look like the training data: shares of the values of each column in bins,
compared as they stream by.

What counts as drift is what a fresh sample of the training rows would hardly show. A level of which
training has one row would be unseen if that row were new, so such rows count as unseen on the side
of training too (Good, 1953); and how large the index of as many undrifted rows may get is
simulated, for the shares that training allows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import gamma

from mercer.inputs import Array
from mercer.tables.arrow import Batch, Column, pa
from mercer.tables.encoders import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    Encoder,
    TextEncoder,
)
from mercer.tables.errors import DataError, many
from mercer.tables.levels import LevelMeansEncoder
from mercer.tables.texts import TextScoresEncoder
from mercer.tables.values import text

LARGE = 0.25  # a population stability index above this is drift
ALARMS = 0.01  # share of tables without drift in which some column raises an alarm, at most
DRAWS = 2_000
# times the variance of a share: that of unseen levels is a guess of Good's, with about so much more
# of it
GUESSED = 3.0
BINS = 10
# frequent levels with bins of their own, and how many rows make a level's share firm enough for one
SHOWN = 20
FIRM = 10
ONCE = 1.5  # rows: a level with fewer has one
ODD = 0.005  # share of training-like rows that may have an odd cell, over all columns


@dataclass(frozen=True)
class ReferenceBins:
    """Training data in bins: `edges` part the values, and one more bin holds the missing ones.

    Numbers, dates and the lengths of texts are parted at the deciles of the sample; of the levels
    of a category the most frequent have a bin each, the rest share one, and unseen ones have the
    last.
    """

    edges: tuple[float, ...]
    shares: tuple[float, ...]  # of every bin, the last one: missing
    n: int
    levels: tuple[str, ...] = ()  # names of the first bins of a category
    category: bool = False
    unit: str = ""  # what follows a number; "date" for seconds since 1970
    odd_level: bool = False  # whether a level that training lacks makes a row unusual
    odd_gone: bool = False  # whether a missing value does

    def state(self) -> dict[str, Any]:
        """Plain values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> ReferenceBins:
        made: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in state.items()}
        return cls(**made)

    def bins(self, values: Array) -> Array:
        """How many values lie in each bin."""
        at = np.searchsorted(np.array(self.edges), values, side="left")
        at = np.where(np.isnan(values), len(self.edges) + 1, at)
        return np.bincount(at, minlength=len(self.edges) + 2)

    def expected_shares(self, q: Array) -> Array:
        """The shares that rows with shares q are held against: levels of one row, which count as
        unseen, as rare ones where rows have them after all, since they are rows of training, or
        some are.
        """
        p, unseen = np.array(self.shares), len(self.edges)
        if self.category:
            moved = max(0.0, min(p[unseen] - q[unseen], q[unseen - 1] - p[unseen - 1]))
            p[unseen - 1 : unseen + 1] += (moved, -moved)
        return p

    def odd(self, values: Array) -> Array:
        """Which rows have a level that training lacks, or lack a value that training always had,
        where either is odd."""
        out = np.isnan(values) if self.odd_gone else np.zeros(len(values), bool)
        return out | (values > self.edges[-1]) if self.odd_level else out

    def sentence(self, i: int, now: float, then: float) -> str:
        """That a bin has another share than in training."""
        last = len(self.edges)
        if self.category and i == last:
            return f"{now:.0%} of its values were never seen in training, where {then:.0%} would be usual"
        what = (
            "missing" if i > last else self._level(i) if self.category else self._interval(i, last)
        )
        return f"{now:.0%} of its values are {what}, against {then:.0%} in training"

    def _level(self, i: int) -> str:
        return f'"{self.levels[i]}"' if i < len(self.levels) else "rare ones"

    def _interval(self, i: int, last: int) -> str:
        if i == 0:
            return f"at most {self._shown(self.edges[0])}"
        below = self._shown(self.edges[i - 1])
        return (
            f"above {below}" if i == last else f"between {below} and {self._shown(self.edges[i])}"
        )

    def _shown(self, edge: float) -> str:
        return (
            str(np.datetime64(int(edge), "s").astype("datetime64[m]"))
            if self.unit == "date"
            else f"{edge:.6g}{self.unit}"
        )


def reference(encoder: Encoder, values: Array, n: int) -> ReferenceBins:
    """From what an encoder read of the sample, (k, c): its first column. `n` rows were seen in
    all."""
    encoder = encoder.values if isinstance(encoder, LevelMeansEncoder) else encoder
    x = values[:, 0]
    made = _binned(encoder, x[~np.isnan(x)], n)
    fresh = (
        np.isin(x, _once(encoder, len(x), n))
        if isinstance(encoder, CategoryEncoder)
        else np.zeros(len(x), bool)
    )
    shares = made.bins(np.where(fresh, len(getattr(encoder, "levels", ())), x)) / max(len(x), 1)
    return replace(made, shares=tuple(float(s) for s in shares), n=min(n, len(x)))


def _once(encoder: CategoryEncoder, sampled: int, n: int) -> Array:
    """The codes of levels that one row has: in the table, or in the sample where that was
    counted."""
    shares = np.array(encoder.shares)
    least = shares.min(initial=1.0)
    unit = 1 / max(sampled, 1) if abs(least * sampled - 1) < 1e-6 else 1 / max(n, 1)
    return np.flatnonzero(shares < ONCE * unit)


def with_odd(found: dict[str, ReferenceBins]) -> dict[str, ReferenceBins]:
    """Unseen levels and missing values make a row unusual in the columns where they hardly occur;
    not in those where they often would.

    The rarest first, as long as all together are to be expected in fewer than one row in two
    hundred: missing values as often as in training, unseen levels as often as levels of one row
    were.
    """
    expected = [(r.shares[-2], name, "odd_level") for name, r in found.items() if r.category]
    expected += [(r.shares[-1], name, "odd_gone") for name, r in found.items()]
    out, total = dict(found), 0.0
    for share, name, kind in sorted(expected):
        total += share
        if total > ODD:
            break
        odd: dict[str, Any] = {kind: True}
        out[name] = replace(out[name], **odd)
    return out


def _binned(encoder: Encoder, kept: Array, n: int) -> ReferenceBins:
    if isinstance(encoder, CategoryEncoder):
        top = min(int(np.sum(np.array(encoder.shares) * n >= FIRM)), SHOWN)
        edges = np.unique([*(np.arange(top) + 0.5), len(encoder.levels) - 0.5])
        return ReferenceBins(tuple(edges.tolist()), (), 0, encoder.levels[:top], True)
    if isinstance(encoder, BooleanEncoder):
        return ReferenceBins((0.5,), (), 0, encoder.pair, True)
    cuts = np.unique(np.quantile(kept, np.arange(1, BINS) / BINS)) if len(kept) else np.zeros(1)
    unit = (
        "date"
        if isinstance(encoder, DateEncoder)
        else " characters long"
        if isinstance(encoder, TextEncoder | TextScoresEncoder)
        else ""
    )
    return ReferenceBins(tuple(cuts.tolist()), (), 0, unit=unit)


def stability(p: Array, q: Array, n: float, m: float) -> tuple[float, Array]:
    """The population stability index sum (q - p) log(q / p) of shares p of n rows and q of m rows,
    and its terms; each bin has half a row more.

    >>> stability(np.array([0.5, 0.5]), np.array([0.5, 0.5]), 100, 100)[0]
    0.0
    """
    terms = _terms(p, q, n, m)
    return float(terms.sum()), terms


def _terms(p: Array, q: Array, n: float, m: float) -> Array:
    a, b = ((s * size + 0.5) / (size + s.shape[-1] / 2) for s, size in ((p, n), (q, m)))
    return np.asarray((b - a) * np.log(b / a))


def noise(p: Array, n: float, m: int, chance: float, seed: int = 0) -> float:
    """What the index of m undrifted rows exceeds with that chance: simulated for shares that n rows
    with shares p leave possible.

    Beyond the draws by a gamma distribution of their mean and variance, which the index follows in
    large samples.

    >>> p = np.full(10, 0.1)
    >>> bool(noise(p, 1000, 20, 0.01) > 0.5), bool(noise(p, 1000, 1000, 0.01) < 0.2)
    (True, True)
    """
    rng = np.random.default_rng(seed)
    possible = rng.dirichlet(p * n / GUESSED + 0.5, DRAWS)
    counts = rng.multinomial(m, possible)
    found = _terms(p, counts / max(m, 1), n, m).sum(1)
    mean, variance = float(found.mean()), float(found.var())
    beyond = (
        float(gamma.isf(chance, mean**2 / variance, scale=variance / mean))
        if variance > 0
        else mean
    )
    return max(float(found.max()), beyond)


@dataclass(frozen=True)
class ColumnDrift:
    """One column of new data beside training: the index, the threshold it was held against, and a
    sentence where it is above."""

    name: str
    index: float
    threshold: float
    sentence: str

    @property
    def large(self) -> bool:
        return self.index > self.threshold


@dataclass(frozen=True)
class DriftReport:
    """All columns, the most drifted first; `warnings` has a sentence for each that drifted or could
    not be read.

    Parameters
    ----------
    columns : tuple of ColumnDrift
        The columns.
    n_rows : int
        How many rows were seen.
    n_unread : dict of str to int
        Cells by column that were filled but could not be read.
    warnings : tuple of str
        What to tell the user.

    Examples
    --------
    >>> DriftReport((), 0, {}, ()).warnings
    ()
    """

    columns: tuple[ColumnDrift, ...]
    n_rows: int
    n_unread: dict[str, int]
    warnings: tuple[str, ...]


@dataclass(eq=False)
class Watch:
    """Counts of new data in the bins of training, batch by batch. `transform(batch, watch=watch)`
    fills it on the way.

    Parameters
    ----------
    columns : Columns
        The fitted treatment.
    n_rows : int, default=0
        How many rows were seen.
    counts : dict of str to ndarray, default={}
        By column, how many values fell into each bin of training.
    n_unread : dict of str to int, default={}
        Cells by column that were filled but could not be read.
    examples : dict of str to str, default={}
        One such cell of each column.

    Examples
    --------
    >>> from mercer.tables import Columns
    >>> batch = pa.record_batch({"x": [1.0, 2.0, 3.0, 5.0], "y": [1.0, 2.0, 3.0, 4.0]})
    >>> watch = Watch(Columns("y").fit([batch])).add(batch)
    >>> int(watch.counts["x"].sum())
    4
    """

    columns: Any
    n_rows: int = 0
    counts: dict[str, Array] = field(default_factory=dict)
    n_unread: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)  # of cells that could not be read

    def add(self, batch: Batch) -> Watch:
        """Take in a batch."""
        self.columns.transform(batch, target=False, watch=self)
        return self

    def take(self, name: str, values: Array, unread: int, column: Column = None) -> None:
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
                raise DataError(
                    f'no value of "{name}" reads as a {kind}, which it was in training: "{example}", for one; mend the column.'
                )

    def report(self) -> DriftReport:
        chance = ALARMS / max(len(self.counts), 1)
        found = sorted(
            (self._compared(name, chance) for name in self.counts),
            key=lambda d: -d.index / d.threshold,
        )
        unread = {k: v for k, v in self.n_unread.items() if v}
        said = [d.sentence for d in found if d.large]
        said += [_unread(name, count) for name, count in unread.items()]
        return DriftReport(tuple(found), self.n_rows, unread, tuple(said))

    def _compared(self, name: str, chance: float) -> ColumnDrift:
        known, counts = self.columns.references_[name], self.counts[name]
        m = int(counts.sum())
        q = counts / max(m, 1)
        p = known.expected_shares(q)
        index, terms = stability(p, q, known.n, m)
        threshold = LARGE if index <= LARGE else max(LARGE, noise(p, known.n, m, chance))
        i = int(
            np.argmax(terms * (q > p))
        )  # what there is more of says more than what there is less of
        return ColumnDrift(
            name, index, threshold, f'"{name}" has drifted: {known.sentence(i, q[i], p[i])}.'
        )


def _unread(name: str, count: int) -> str:
    values = many(count, "value")
    return f'"{name}" has {values} that could not be read; {"it counts" if count == 1 else "they count"} as missing.'
