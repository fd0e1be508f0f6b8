"""Names back: which names lie behind a hashed column, how often, and how many share theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from mercer.inputs import Array
from mercer.invariants import Bytes, Counts, Each, Ints, Is, Whole, check
from mercer.store import register
from mercer.text.murmur import (
    MAX_COLUMNS,
    columns_of,
    murmur3,
    plain_bytes,
    signs_of,
    strings_law,
)
from mercer.text.runs import gathered, joined

MEMORY = 1 << 26  # of names, where nothing else is said


@register("text.Distinct")
@dataclass(frozen=True, eq=False)
class Distinct:
    """The names of a batch: name i is `buffer[offsets[i] : offsets[i + 1]]`, in UTF-8.

    It lies in column `columns[i]` with sign `signs[i]` (1 or -1), and came `counts[i]` times; a
    name that is here twice counts as the sum. Signs may come as int8, all others as they are
    here.

    >>> from mercer.text.murmur import packed
    >>> batch = Distinct.hashed(*packed(["cat", "dog"]), np.array([3, 1]), 8)
    >>> batch.columns, batch.signs, len(batch)
    (array([7, 5], dtype=int32), array([ 1, -1], dtype=int32), 2)
    """

    columns: Array  # int32 (k,)
    signs: Array  # int32 (k,)
    counts: Array  # int64 (k,)
    buffer: Array  # uint8
    offsets: Array  # int64 (k + 1,)

    must = dict(
        columns=Ints("k", below=MAX_COLUMNS),
        signs=Ints("k", low=-1, below=2),
        counts=Counts("k"),
        buffer=Bytes(None),
        offsets=Counts("k + 1"),
    )

    def __post_init__(self) -> None:
        if isinstance(self.signs, np.ndarray) and self.signs.dtype == np.int8:
            object.__setattr__(self, "signs", self.signs.astype(np.int32))
        check(self)
        object.__setattr__(self, "buffer", plain_bytes(self.buffer))

    def _laws(self) -> str | None:
        wrong = strings_law(self.buffer, self.offsets)
        return f"holds names that {wrong}" if wrong else None

    @classmethod
    def hashed(
        cls, buffer: Array, offsets: Array, counts: Array, n_features: int, seed: int = 0
    ) -> Self:
        """Names where scikit-learn's hashing puts them."""
        hashes = murmur3(buffer, offsets, seed)
        return cls(columns_of(hashes, n_features), signs_of(hashes), counts, buffer, offsets)

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return int(sum(a.nbytes for a in self._arrays()))

    def name(self, i: int) -> str:
        """Name number i."""
        return bytes(self.buffer[self.offsets[i] : self.offsets[i + 1]]).decode(errors="replace")

    def take(self, picks: Array, counts: Array) -> Distinct:
        """Some of them, in the order given, with other counts."""
        return Distinct(
            self.columns[picks],
            self.signs[picks],
            counts,
            *gathered(picks, self.buffer, self.offsets),
        )

    def _arrays(self) -> tuple[Array, ...]:
        return self.columns, self.signs, self.counts, self.buffer, self.offsets


def together(parts: Sequence[Distinct]) -> Distinct:
    """All names of some batches in order (by column first), none twice."""
    columns, signs, counts, buffer = (
        np.concatenate(arrays)
        for arrays in zip(*(part._arrays()[:4] for part in parts), strict=True)
    )
    starts = np.cumsum([0, *(len(part.buffer) for part in parts)])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
    all_of_them = Distinct(
        columns, signs, counts, buffer, np.concatenate([*offsets, starts[-1:]]).astype(np.int64)
    )
    return all_of_them.take(*joined(columns, counts, buffer, all_of_them.offsets))


class Collisions(NamedTuple):
    """Shares between 0 and 1: of distinct names, and of their occurrences, that lie in a column
    with another name."""

    names: float
    occurrences: float


@register("text.ColumnNames")
@dataclass(frozen=True, eq=False)
class ColumnNames:
    """The names behind hashed columns, with their signs and counts, batch by batch.

    Exact while all distinct names take at most `memory_limit` bytes (24 and its own bytes each);
    at work it holds at most twice that beside a batch. Beyond it the most frequent names stay and
    all counts fall by that of the most frequent one left out, so that a count is never too large,
    and too small by at most `error_bound`, which is at most `occurrences / (k + 1)` where k names
    always fit; names that came more often than that are all there. Parts merge, and their
    bounds add. Names, counts and bounds do not depend on threads, and while exact not on batches
    and their order.

    Parameters
    ----------
    n_features : int
        The number of columns.
    memory_limit : int, default=2**26
        The bytes that names may take.
    runs : tuple of Distinct, default=()
        What is held: batches in order, merged as they grow.
    occurrences : int, default=0
        Of all names that ever came.
    error_bound : int, default=0
        By how much a count may be too small; 0 where all are exact.

    References
    ----------
    Misra and Gries, Finding repeated elements (1982); Agarwal et al., Mergeable summaries (2012).

    Examples
    --------
    >>> from mercer.text.murmur import packed
    >>> batch = Distinct.hashed(*packed(["cat", "dog", "bird"]), np.array([3, 1, 1]), 10)
    >>> seen = ColumnNames(10).add(batch).add(batch)
    >>> seen.names(9)
    [('cat', 6, 1), ('bird', 2, -1)]
    >>> seen.collisions
    Collisions(names=0.6666666666666666, occurrences=0.8)
    """

    n_features: int
    memory_limit: int = MEMORY
    runs: tuple[Distinct, ...] = ()
    occurrences: int = 0
    error_bound: int = 0

    must = dict(
        n_features=Whole(1, MAX_COLUMNS + 1),
        memory_limit=Whole(0),
        runs=Each(Is("Distinct"), fixed=True),
        occurrences=Whole(0),
        error_bound=Whole(0),
    )

    def __post_init__(self) -> None:
        check(self)

    def _laws(self) -> str | None:
        for run in self.runs:
            if len(run) and int(run.columns.max()) >= self.n_features:
                return f"holds a name of column {run.columns.max()}, but has {self.n_features}"
            if (run.columns[1:] < run.columns[:-1]).any():
                return "holds names that are not in the order of their columns"
        return None

    def add(self, batch: Distinct) -> ColumnNames:
        """With the names of one more batch."""
        runs = (*self.runs, together([batch])) if len(batch) else self.runs
        return self._with(runs, self.occurrences + int(batch.counts.sum()), self.error_bound)

    def merge(self, other: ColumnNames) -> ColumnNames:
        """With the names of another; its columns must be as many."""
        if other.n_features != self.n_features:
            raise ValueError(
                f"Names of {self.n_features} columns cannot be merged with those of {other.n_features}; hash both alike."
            )
        runs = sorted((*self.runs, *other.runs), key=len, reverse=True)
        few = replace(self, memory_limit=min(self.memory_limit, other.memory_limit))
        return few._with(
            tuple(runs),
            self.occurrences + other.occurrences,
            self.error_bound + other.error_bound,
        )

    __add__ = merge

    def _with(self, runs: tuple[Distinct, ...], occurrences: int, bound: int) -> ColumnNames:
        runs = _balanced(runs)
        if sum(run.nbytes for run in runs) > 2 * self.memory_limit:
            kept, lost = _most_frequent(together(runs), self.memory_limit)
            runs, bound = (kept,), bound + lost
        return replace(self, runs=runs, occurrences=occurrences, error_bound=bound)

    @cached_property
    def kept(self) -> Distinct:
        """All names that are held, by column, each once."""
        if len(self.runs) == 1:
            return self.runs[0]
        empty = np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64)
        nothing = Distinct(*empty, np.zeros(0, np.uint8), np.zeros(1, np.int64))
        return together(self.runs) if self.runs else nothing

    def names(self, column: int) -> list[tuple[str, int, int]]:
        """(name, count, sign) of every name of a column, the most frequent first."""
        if not 0 <= column < self.n_features:
            raise ValueError(
                f"column must be from 0 to {self.n_features - 1}, got {column}; there are {self.n_features} columns."
            )
        kept = self.kept
        begin, end = np.searchsorted(kept.columns, [column, column + 1])
        found = [(kept.name(i), int(kept.counts[i]), int(kept.signs[i])) for i in range(begin, end)]
        return sorted(found, key=lambda name: (-name[1], name[0]))

    @property
    def collisions(self) -> Collisions:
        """How many names share their column; beyond the memory limit, of those that are kept."""
        columns, counts = self.kept.columns, self.kept.counts
        if not len(columns):
            return Collisions(0.0, 0.0)
        same = columns[1:] == columns[:-1]
        shared = np.r_[False, same] | np.r_[same, False]
        return Collisions(float(shared.mean()), float(counts[shared].sum() / counts.sum()))


def _balanced(runs: tuple[Distinct, ...]) -> tuple[Distinct, ...]:
    """Runs of which each is more than twice the next, so that a name is merged few times."""
    while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
        runs = (*runs[:-2], together(runs[-2:]))
    return runs


def _most_frequent(all_of_them: Distinct, memory_limit: int) -> tuple[Distinct, int]:
    """The most frequent names that fit, less the count of the first that does not, and that
    count."""
    order = np.argsort(-all_of_them.counts, kind="stable")
    sizes = 24 + np.diff(all_of_them.offsets)[order]
    k = int(np.searchsorted(np.cumsum(sizes), memory_limit, "right"))
    if k == len(order):
        return all_of_them, 0
    lost = int(all_of_them.counts[order[k]])
    picks = np.sort(order[:k][all_of_them.counts[order[:k]] > lost])
    return all_of_them.take(picks, all_of_them.counts[picks] - lost), lost
