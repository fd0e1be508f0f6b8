"""Some of the rows of partitions: the first, or those of the least priorities, which are hashes of
their numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mercer.engines.lazy import LazyColumns
from mercer.engines.partitions import Partitions, Place
from mercer.engines.reader import PartitionReader
from mercer.engines.tree import fold
from mercer.inputs import Array, Table
from mercer.stats.sample import mix

HEAD = 1024  # rows about whose mean sums are taken
SAMPLE_ROWS = 1 << 16  # of which maps learn what they learn from rows
SAMPLE_BYTES = 64 << 20
FEWEST = 1 << 12  # rows, however wide
SLACK = 6.0  # deviations of the number of rows below a threshold, of which the least are kept


@dataclass(frozen=True, eq=False)
class PartitionSample:
    """Rows with their numbers among all, in order."""

    number: Array
    X: Array
    Y: Array | None
    weight: Array | None

    def __add__(self, o: PartitionSample) -> PartitionSample:
        return PartitionSample(
            *(
                None if a is None else np.concatenate([a, b])
                for a, b in zip(vars(self).values(), vars(o).values(), strict=True)
            )  # type: ignore[arg-type]
        )

    def arrays(self) -> dict[str, Array]:
        text = self.X.dtype == object
        return {
            name: v.astype(str) if name == "X" and text else v
            for name, v in vars(self).items()
            if v is not None
        }

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Self:
        return cls(arrays["number"], arrays["X"], arrays.get("Y"), arrays.get("weight"))

    def least(self, k: int, seed: int) -> PartitionSample:
        """The k rows of least priority, in their order."""
        if len(self.number) <= k:
            return self
        at = np.sort(np.argsort(priorities(self.number, seed), kind="stable")[:k])
        return PartitionSample(*(None if v is None else v[at] for v in vars(self).values()))  # type: ignore[arg-type]

    def table(self, columns: LazyColumns) -> Table:
        return Table(list(self.X)) if columns.texts else Table(self.X, columns.names)


@dataclass(frozen=True, eq=False)
class Sampler:
    """The rows of a partition before row `stop`, or of a priority below `most`."""

    reader: PartitionReader
    seed: int
    most: int
    stop: int | None = None

    kind = PartitionSample

    @property
    def identity(self) -> str:
        return repr(("sample", self.reader.identity, self.seed, self.most, self.stop))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> PartitionSample:
        number = np.arange(place.start, place.start + len(X))
        if self.stop is None:
            at = np.flatnonzero(priorities(number, self.seed) <= np.uint64(self.most))
        else:
            at = np.arange(max(0, min(len(X), self.stop - place.start)))
        some = (
            self.reader(*(None if v is None else picked(v, at) for v in (X, y, weight)))
            if len(at)
            else self._none()
        )
        on = np.flatnonzero(np.asarray(picked(weight, at))) if weight is not None else slice(None)
        return PartitionSample(number[at][on], _data(some[0]), some[1], some[2])

    def _none(self) -> tuple[Table, Array | None, Array | None]:
        """No rows of what others have."""
        c = self.reader.columns
        rows = Table([]) if c.texts else Table(np.empty((0, c.width), c.dtype))
        q = (0,) if self.reader.classes is not None else (0, self.reader.outputs or 1)
        return rows, np.empty(q) if self.reader.supervised else None, None


@dataclass(frozen=True, eq=False)
class Picker:
    """The rows of a partition whose numbers, in order, were drawn; their targets as they come."""

    reader: PartitionReader
    numbers: Array

    kind = PartitionSample

    @property
    def identity(self) -> str:
        return repr(("picked", self.reader.identity, self.numbers.tobytes().hex()))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> PartitionSample:
        first, last = np.searchsorted(self.numbers, [place.start, place.start + len(X)])
        number = self.numbers[first:last]
        at = number - place.start
        rows = self.reader.rows(picked(X, at)) if len(at) else None
        none = np.empty((0, self.reader.columns.width), self.reader.columns.dtype)
        values = np.asarray(picked(y, at))
        return PartitionSample(number, none if rows is None else _data(rows), values, None)


def _data(rows: Table) -> Array:
    return np.asarray(rows.data, object) if rows.items else np.asarray(rows.data)


def picked(v: Any, at: Array) -> Any:
    return v.iloc[at] if hasattr(v, "iloc") else v[at]


def priorities(number: Array, seed: int) -> Array:
    """A hash of each row's number: which rows are sampled depends on neither order nor partitions."""
    return mix(mix(number.astype(np.uint64)) ^ np.uint64(seed % (1 << 64)))


def head(data: Partitions, reader: PartitionReader) -> PartitionSample:
    """The first rows, of as few partitions as hold them."""
    return fold(data.first(HEAD), Sampler(reader, 0, 0, stop=HEAD))


def sampled(data: Partitions, reader: PartitionReader, seed: int) -> PartitionSample:
    """A uniform sample, by one pass: all rows where they are few."""
    k = max(FEWEST, min(SAMPLE_ROWS, SAMPLE_BYTES // (8 * data.columns.width)))
    share = min(1.0, (k + SLACK * math.sqrt(k)) / data.rows)
    most = (1 << 64) - 1 if share >= 1 else int(share * (1 << 64))
    return fold(data, Sampler(reader, seed, most)).least(k, seed)
