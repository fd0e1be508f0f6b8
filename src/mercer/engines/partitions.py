"""Rows, targets and weights in partitions: how many rows each has, where they begin, and what can be
told of one that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from mercer.engines.graphs import Inlined, file_of, inlined
from mercer.engines.lazy import LazyColumns, is_dask, shape_of
from mercer.engines.scheduler import compute, named


@dataclass(frozen=True)
class Place:
    """Where a partition stands: its number from 0, its rows among all, and its file where that is
    known; stop < start: its rows are not counted yet.

    >>> str(Place(2, 5, 200, 300)), str(Place(0, 1, 0, 10, "a.parquet"))
    ('partition 2 of 5 (rows 200 to 299)', 'partition 0 of 1 (a.parquet, rows 0 to 9)')
    """

    number: int
    of: int
    start: int
    stop: int
    file: str = ""

    def __str__(self) -> str:
        rows = f"rows {self.start:,} to {self.stop - 1:,}" if self.stop > self.start else "no rows"
        told = [v for v in (self.file, rows if self.stop >= self.start else "") if v]
        return f"partition {self.number} of {self.of}" + f" ({', '.join(told)})" * bool(told)


class Pieces(Protocol):
    """X of a partition that is read piece by piece, so that memory holds no more than one."""

    def pieces(self) -> Iterator[tuple[Any, int]]:
        """What stands for X, y and weight of some rows, and how many they are."""
        ...


@dataclass(frozen=True, eq=False)
class Partitions:
    """X, y and weights, cut alike; `places` are known before anything is folded."""

    columns: LazyColumns
    parts: list[tuple[Any, ...]]  # delayed X, y, weight of each; None where there is none
    places: list[Place]
    graphs: list[Inlined] | None  # one a partition, where they share no work
    used: tuple[int, ...] | None = None  # the numbers of those to go through; None: all

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def rows(self) -> int:
        return self.places[-1].stop

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """The names that dask gives to the parts: the same for the same data."""
        return [tuple(str(v.key) for v in part if v is not None) for part in self.parts]

    @classmethod
    def of(cls, X: Any, y: Any = None, weight: Any = None, *, texts: bool = False) -> Partitions:
        """Of dask collections; rows are counted where the lengths of chunks are not known."""
        columns = LazyColumns.of(X, texts=texts)
        X = X.rechunk({1: -1}) if hasattr(X, "rechunk") and X.ndim == 2 else X
        lengths = known_lengths(X)
        sides = [("y", y), ("sample_weight", weight)]
        parts = [_blocks(X), *(_beside(v, name, X, lengths) for name, v in sides)]
        together = list(zip(*parts, strict=True))
        graphs = inlined(together)
        names = [""] * len(together) if graphs is None else list(map(file_of, graphs))
        if lengths is None:
            lengths = counted(together, graphs, names)
        ends = list(accumulate(lengths))
        if not ends or not ends[-1]:
            raise ValueError("X has 0 rows (Found array with 0 sample(s)); give at least one.")
        places = [
            Place(i, len(ends), stop - n, stop, name)
            for i, (n, stop, name) in enumerate(zip(lengths, ends, names, strict=True))
        ]
        return cls(columns, together, places, graphs)

    def filled(self) -> Iterator[int]:
        """The numbers of those to go through that have rows."""
        numbers = range(len(self)) if self.used is None else self.used
        return (i for i in numbers if self.places[i].stop > self.places[i].start)

    def first(self, n: int) -> Partitions:
        """Those that hold the first n rows."""
        return replace(self, used=tuple(i for i in self.filled() if self.places[i].start < n))


def known_lengths(X: Any) -> list[int] | None:
    """The rows of each chunk of an array; None where they are not known."""
    if not hasattr(X, "chunks") or any(np.isnan(n) for n in X.chunks[0]):
        return None
    return [int(n) for n in X.chunks[0]]


def _blocks(X: Any) -> list[Any]:
    # of frames, columns are chosen where files are read, but small files stay apart: X and y are
    # cut alike
    frame = hasattr(X, "simplify")
    found = (X.simplify() if frame else X).to_delayed(optimize_graph=not frame)
    return list(found.ravel() if hasattr(found, "ravel") else found)


def _beside(v: Any, name: str, X: Any, lengths: list[int] | None) -> list[Any]:
    """Targets or weights, cut as X is."""
    count = X.npartitions
    if v is None:
        return [None] * count
    if not is_dask(v):
        v = _cut(v, name, lengths)
    elif getattr(v, "ndim", 1) == 2 and hasattr(v, "rechunk"):
        v = v.rechunk({1: -1})
    if hasattr(v, "chunks") and lengths is not None and known_lengths(v) not in (None, lengths):
        if sum(known_lengths(v) or ()) != sum(lengths):
            raise ValueError(
                f"X has {sum(lengths):,} rows and {name} {v.shape[0]:,} (inconsistent numbers of samples); give as many."
            )
        v = v.rechunk({0: tuple(lengths)})
    if not hasattr(v, "to_delayed"):
        raise ValueError(f"{name} must be a dask array, series or dataframe, got {shape_of(v)}.")
    if v.npartitions != count:
        raise ValueError(
            f"X has {count} partitions and {name} {v.npartitions}; cut both alike, as by one dataframe, or with known chunk lengths."
        )
    return _blocks(v)


def _cut(v: Any, name: str, lengths: list[int] | None) -> Any:
    """Numbers in memory as chunks beside those of X."""
    if lengths is None:
        raise ValueError(
            f"{name} is in memory, and the rows of the partitions of X are not counted; give {name} as a dask array or series."
        )
    import dask.array as da

    values = np.asarray(v)
    if values.ndim == 0 or len(values) != sum(lengths):
        raise ValueError(
            f"X has {sum(lengths):,} rows and {name} has shape {values.shape} (inconsistent numbers of samples); give as many."
        )
    return da.from_array(values, chunks=(tuple(lengths), *values.shape[1:]))


def counted(
    parts: Sequence[tuple[Any, ...]], graphs: list[Inlined] | None, names: Sequence[str]
) -> list[int]:
    """The rows of every partition, which its targets and weights must have too."""
    from dask import delayed

    if graphs is None:
        tasks = [delayed(_sizes)(list(part)) for part in parts]
    else:
        places = [Place(i, len(parts), 0, -1, name) for i, name in enumerate(names)]
        tasks = [
            delayed(CountedRows(graph, place), pure=False)()
            for graph, place in zip(graphs, places, strict=True)
        ]
    sizes = compute(tasks)
    for i, (n, *others) in enumerate(sizes):
        for name, m in zip(("y", "sample_weight"), others, strict=True):
            if m is not None and m != n:
                raise ValueError(
                    f"partition {i} of X has {n:,} rows and that of {name} {m:,} (inconsistent numbers of samples); cut both alike."
                )
    return [n for n, *_ in sizes]


class CountedRows:
    """One task: how many rows a partition has, or what is wrong with it."""

    def __init__(self, graph: Inlined, place: Place) -> None:
        self.graph, self.place = graph, place

    def __call__(self) -> list[int | None]:
        with named(self.place):
            return _sizes(self.graph())


def _sizes(part: list[Any]) -> list[int | None]:
    return [None if v is None else len(v) for v in part]
