"""A fold over partitions by a fixed tree: statistics of runs of partitions, added eight at a time.
Neither the workers nor the order in which they finish changes a bit of the sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar
from uuid import uuid4

from mercer.engines.checkpoint import Checkpoint, current
from mercer.engines.graphs import merged
from mercer.engines.partitions import Partitions, Pieces, Place
from mercer.engines.scheduler import completed, compute, named
from mercer.inputs import Array
from mercer.ops.threads import limit, single_blas
from mercer.ops.tiles import settle_allocator

ARITY = 8
RUN = 8  # partitions that one chain of tasks goes through, at most, while there are few
FEW_RUNS, MANY_RUNS = 64, 4096


_each_pass: ContextVar[Callable[[], None] | None] = ContextVar("mercer_passes", default=None)


@contextmanager
def passes_told(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` as each pass over partitions begins in the block."""
    token = _each_pass.set(tell)
    try:
        yield
    finally:
        _each_pass.reset(token)


class Statistic(Protocol):
    """What adds: sums, with the arrays that a checkpoint holds of them."""

    def __add__(self, other: Self, /) -> Self: ...
    def arrays(self) -> dict[str, Array]: ...
    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Self: ...


S = TypeVar("S", bound=Statistic)


class Gather(Protocol):
    """What a worker does with a partition: X, y, weight as they come, and where they stand."""

    @property
    def kind(self) -> type[Any] | None: ...
    @property
    def identity(self) -> str: ...
    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> Any: ...


def runs(n: int) -> list[range]:
    """The partitions of each run, which the number of partitions alone decides.

    >>> [len(runs(n)) for n in (1, 60, 640, 100_000)], runs(130)[0]
    ([1, 60, 80, 4167], range(0, 2))
    """
    step = max(1, min(RUN, n // FEW_RUNS), n // MANY_RUNS)
    return [range(i, min(i + step, n)) for i in range(0, n, step)]


def groups(values: Sequence[Any]) -> list[Sequence[Any]]:
    """Neighbours that are added to one."""
    return [values[i : i + ARITY] for i in range(0, len(values), ARITY)]


def fold(data: Partitions, gather: Gather) -> Any:
    """The sum of `gather` over all partitions that have rows, with what a checkpoint has of it."""
    kept = current()
    if (tell := _each_pass.get()) is not None:
        tell()
    branches = Branches.of(data, gather)
    if kept is None or gather.kind is None:  # sums that are no arrays are not kept
        return compute([branches.root()], data.places)[0]
    return resumed(data, branches, kept.of_pass(gather.identity, data.keys), gather.kind)


@dataclass(frozen=True, eq=False)
class Branches:
    """Graphs of the sums of eight runs each, what is held, sent and kept together, and what is common
    to them."""

    keys: list[str]
    graphs: list[dict[Any, Any]]
    common: dict[Any, Any]

    @classmethod
    def of(cls, data: Partitions, gather: Gather) -> Branches:
        used, name = list(data.filled()), uuid4().hex
        work = f"mercer-work-{name}"
        common = {work: gather} | ({} if data.graphs is not None else merged(data.parts))
        keys, graphs = [], []
        for group in groups(runs(len(used))):
            graph: dict[Any, Any] = {}
            ends = [_run(graph, data, [used[i] for i in run], work, name) for run in group]
            keys.append(_added(graph, ends))
            graphs.append(graph)
        return cls(keys, graphs, common)

    def sums(self, at: Sequence[int]) -> list[Any]:
        """Some of them, delayed."""
        return [_delayed(self.keys[i], {**self.common, **self.graphs[i]}) for i in at]

    def root(self) -> Any:
        """The sum of all, delayed."""
        graph = dict(self.common)
        for one in self.graphs:
            graph.update(one)
        level: Sequence[str] = self.keys
        while len(level) > 1:
            level = [_added(graph, group) for group in groups(level)]
        return _delayed(level[0], graph)


def _delayed(key: str, graph: dict[Any, Any]) -> Any:
    from dask.delayed import Delayed

    return Delayed(key, graph)


def _run(graph: dict[Any, Any], data: Partitions, run: list[int], work: str, name: str) -> str:
    """The key of the sum over a run: one task, or a chain of them where partitions are tasks of their
    own."""
    if data.graphs is not None:
        key = f"mercer-{name}-{run[0]}-{run[-1]}"
        blocks, places = [data.graphs[i] for i in run], [data.places[i] for i in run]
        graph[key] = (PartitionRun(blocks, places), work)
        return key
    key = ""
    for i in run:
        before, key = key, f"mercer-{name}-{i}-{i}"
        parts = [None if v is None else v.key for v in data.parts[i]]
        graph[key] = (Link(data.places[i]), before or None, parts, work)
    return key


def _added(graph: dict[Any, Any], group: Sequence[str]) -> str:
    if len(group) == 1:
        return group[0]
    key = f"added-{group[0]}"
    while key in graph:
        key = f"added-{key}"
    graph[key] = (added, list(group))
    return key


class PartitionRun:
    """One task: the sum over some partitions, one after another."""

    def __init__(self, blocks: list[Any], places: list[Place]) -> None:
        self.blocks, self.places = blocks, places

    def __call__(self, work: Gather) -> Any:
        total = None
        for block, place in zip(self.blocks, self.places, strict=True):
            total = linked(total, block, work, place)
        return total


class Link:
    """One task: the sum so far and the statistics of the next partition."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def __call__(self, before: Any, block: Any, work: Gather) -> Any:
        return linked(before, block, work, self.place)


def linked(before: Any, block: Any, work: Gather, place: Place) -> Any:
    """before + work(block): one thread, as there are as many tasks as threads. Never in place:
    a task may be done again."""
    settle_allocator()
    with named(place), limit(1), single_blas():
        X, y, weight = block() if callable(block) else block
        found = in_pieces(work, X, place) if hasattr(X, "pieces") else work(X, y, weight, place)
        return found if before is None else before + found


def in_pieces(work: Gather, X: Pieces, place: Place) -> Any:
    """The sum over the pieces of one partition."""
    total, at = None, place.start
    for piece, n in X.pieces():
        found = work(piece, None, None, replace(place, start=at, stop=at + n))
        total, at = found if total is None else total + found, at + n
    return total


def added(values: Sequence[Any]) -> Any:
    """From left to right."""
    total = values[0]
    for v in values[1:]:
        total = total + v
    return total


def resumed(data: Partitions, branches: Branches, kept: Checkpoint, kind: type[Any]) -> Any:
    """The same sum; branches that are done are not done again, and those of a whole group are
    replaced by their sum."""
    nodes = kept.nodes(len(branches.keys), ARITY, kind)
    left = nodes.missing()
    for at, value in completed(branches.sums(left), data.places):
        nodes.put(left[at], value)
    return nodes.root()
