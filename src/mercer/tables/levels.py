"""Columns with more to them than one reading: whole numbers that are codes as well, and categories
of many levels beside the mean of the target at each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from mercer.inputs import Array
from mercer.tables.arrow import Column
from mercer.tables.encoders import CategoryEncoder, Encoder, NumberEncoder
from mercer.tables.scale import RankNormalizer

MAX_MEANS = 4  # classes whose shares are taken at every level
N_FOLDS = 5  # parts of the training rows, each of which gets the means of the others
# rows of the mean over all levels that are added to those of a level
SHRINKAGE = (1.0, 100.0)
CHANCE = 1e-3  # of levels that do not differ, to be taken for ones that do


@dataclass(frozen=True)
class CodedNumberEncoder(Encoder):
    """A whole number with few values: itself, and a feature for each of its frequent values."""

    number: NumberEncoder
    codes: CategoryEncoder

    def __post_init__(self) -> None:
        if not self.codes.numeric:
            raise ValueError("CodedNumberEncoder needs codes that are numbers.")

    def read(self, column: Column) -> tuple[Array, int]:
        return self.number.read(column)

    def features(self, values: Array) -> Array:
        codes = self.codes.codes_of_numbers(values[:, 0])[:, None]
        return np.hstack([self.number.features(values), self.codes.features(codes)])

    def names(self, name: str) -> tuple[str, ...]:
        hot = self.codes.names(name)
        twice = f"{name} missing" if self.number.indicator else ""
        return (*self.number.names(name), *(f"{n} (code)" if n == twice else n for n in hot))


@dataclass(frozen=True)
class LevelMeansEncoder(Encoder):
    """A category of many levels: its frequent ones as features, and the mean of the target at each.

    `means` has a row for every level, one for levels that training lacks and one for missing
    values, and a column for each of `outputs` (the target, or classes of it). Until they are known
    the position of the row stands in for them: `level_means` gives the means, and training rows
    those of the rows that are not in their part, so that no row's own target is among its features.
    """

    values: CategoryEncoder
    outputs: tuple[str, ...]
    means: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rows = len(self.values.levels) + 2
        known = len(self.means) == rows * len(self.outputs) and np.isfinite(self.means).all()
        if not self.outputs or (self.means and not known):
            raise ValueError(
                f"LevelMeansEncoder needs a finite mean of each output for {rows} levels, got {len(self.means)} numbers."
            )

    @property
    def takes(self) -> tuple[str, ...]:
        return self.values.takes

    @property
    def n_levels(self) -> int:
        """Rows of the means."""
        return len(self.values.levels) + 2

    def read(self, column: Column) -> tuple[Array, int]:
        return self.values.read(column)

    def positions(self, values: Array) -> Array:
        """The row of the means of each value that was read."""
        x = values[:, 0]
        return np.where(np.isnan(x), self.n_levels - 1, x).astype(np.int64)

    def features(self, values: Array) -> Array:
        at = self.positions(values)
        table = np.asarray(self.means).reshape(-1, len(self.outputs))
        means = table[at] if self.means else np.repeat(at[:, None], len(self.outputs), axis=1)
        return np.hstack([self.values.features(values), means.astype(np.float64)])

    def names(self, name: str) -> tuple[str, ...]:
        return (*self.values.names(name), *(f"{name} mean of {o}" for o in self.outputs))

    def with_means(self, table: Array) -> LevelMeansEncoder:
        return replace(self, means=tuple(np.asarray(table, np.float64).ravel().tolist()))


@dataclass(frozen=True, eq=False)
class TargetScores:
    """The target in numbers of which means tell much: its ranks on a normal law, or indicators of
    the more frequent classes, of two classes that of the second."""

    ranks: RankNormalizer | None
    codes: tuple[int, ...] = ()

    @classmethod
    def of(cls, y: Array, counts: Sequence[int] = (), most: int = MAX_MEANS) -> TargetScores:
        """Of numbers y, or of classes with these counts.

        >>> TargetScores.of(np.zeros(0), (5, 9, 7), 2).codes
        (1, 2)
        """
        if not len(counts):
            return cls(RankNormalizer.of(y))
        if len(counts) == 2:
            return cls(None, (1,))
        often = np.argsort(-np.asarray(counts), kind="stable")[:most]
        return cls(None, tuple(sorted(often.tolist())))

    def __call__(self, y: Array) -> Array:
        """(n, c)."""
        if self.ranks is not None:
            return np.asarray(self.ranks(y)[:, None])
        return (y[:, None] == np.array(self.codes)).astype(np.float64)


@dataclass(eq=False)
class LevelSums:
    """Sums of scores and weights by part and level, over batches."""

    n_levels: int
    n_outputs: int
    own: int = 0  # the first levels, which have a feature of their own and need no mean

    def __post_init__(self) -> None:
        self.sums = np.zeros((N_FOLDS, self.n_levels, self.n_outputs))
        self.counts = np.zeros((N_FOLDS, self.n_levels))

    def add(self, level: Array, part: Array, scores: Array, weight: Array | None = None) -> None:
        """Take in rows."""
        w = np.ones(len(level)) if weight is None else weight
        at = part * self.n_levels + level
        size = N_FOLDS * self.n_levels
        self.counts += np.bincount(at, w, size).reshape(self.counts.shape)
        for k, column in enumerate(scores.T):
            self.sums[:, :, k] += np.bincount(at, w * column, size).reshape(self.counts.shape)

    def means(self) -> tuple[Array, Array]:
        """For each part the means of the others, (parts, levels, c), and those of all, (levels,
        c): (sum + m mean) / (count + m), m by how much levels differ.

        The mean of a level over the others' parts is the lower, the higher its own part is: beside
        a feature that tells the level it would give the target away. So levels that have one get
        the mean of all, and all do where levels do not differ beyond chance.
        """
        m = self._shrinkage()
        parts = np.stack(
            [
                _shrunk(self.sums.sum(0) - s, self.counts.sum(0) - n, m)
                for s, n in zip(self.sums, self.counts, strict=True)
            ]
        )
        whole = _shrunk(self.sums.sum(0), self.counts.sum(0), m)
        known = slice(0, self.own if self.differ() else None)
        mean = self.sums.sum((0, 1)) / max(float(self.counts.sum()), 1e-300)
        parts[:, known], whole[known] = mean, mean
        return parts, whole

    def differ(self) -> bool:
        """Whether levels differ beyond chance: chi-squared of their means, output by output."""
        n, s = self.counts.sum(0), self.sums.sum(0)
        total, some = max(float(n.sum()), 1.0), n > 0
        mean = s.sum(0) / total
        own = s[some] / n[some][:, None]
        shares = np.all((own >= 0) & (own <= 1))
        variance = np.maximum(mean * (1 - mean), 1e-12) if shares else np.ones(len(mean))
        statistic = n[some] @ (own - mean) ** 2 / variance
        chance = chi2.sf(statistic, max(int(some.sum()) - 1, 1))
        return bool((chance < CHANCE / len(mean)).any())

    def _shrinkage(self) -> float:
        """The variance within levels over that between them, by the method of moments; scores have
        a variance of about 1, of shares p (1 - p)."""
        n, s = self.counts.sum(0), self.sums.sum(0)
        total = max(float(n.sum()), 1.0)
        mean = s.sum(0) / total
        own = s / np.maximum(n, 1e-300)[:, None]
        between = float((n @ np.where(n[:, None] > 0, (own - mean) ** 2, 0.0)).sum()) / total
        whole = float(np.sum(mean * (1 - mean))) if np.all((own >= 0) & (own <= 1)) else 1.0
        noise = (np.sum(n > 0) - 1) / total * max(whole - between, 0.0)
        ratio = max(whole - between, 0.0) / max(between - noise, 1e-9)
        return float(np.clip(ratio, *SHRINKAGE))


def _shrunk(sums: Array, counts: Array, m: float) -> Array:
    mean = sums.sum(0) / max(float(counts.sum()), 1e-300)
    return np.asarray((sums + m * mean) / (counts + m)[:, None])


def cross_fitted(level: Array, part: Array, scores: Array, n_levels: int, own: int = 0) -> Array:
    """The means at each row's level over the rows of other parts, (n, c).

    >>> level, part = np.arange(90) % 2, np.arange(90) % 3
    >>> x = cross_fitted(level, part, (level + (np.arange(90) == 0.0))[:, None] / 2, 2)
    >>> bool(x[0, 0] < x[2, 0])  # its own target is not in it
    True
    """
    sums = LevelSums(n_levels, scores.shape[1], own)
    sums.add(level, part, scores)
    return np.asarray(sums.means()[0][part, level])
