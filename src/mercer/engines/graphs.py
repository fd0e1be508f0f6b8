"""The graph of one partition, taken out of a collection's: a task that holds it reads and computes
in one place, and knows whose error it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mercer.engines.scheduler import CLOSED, WorkerError, current_client

SUFFIXES = (".parquet", ".parq", ".csv", ".csv.gz", ".json", ".jsonl", ".orc", ".arrow")
DEEP = 8  # levels of arguments that are looked at


class Inlined:
    """The part of a graph that some keys need, computed where it is called. Dask looks into
    containers and dataclasses, but not into this."""

    def __init__(self, graph: dict[Hashable, Any], keys: list[Hashable | None]) -> None:
        self.graph, self.keys = graph, keys

    def __call__(self) -> list[Any]:
        known = [k for k in self.keys if k is not None]
        found = dict(zip(known, computed(self.graph, known), strict=True))
        return [None if k is None else found[k] for k in self.keys]


def computed(graph: Mapping[Hashable, Any], keys: Sequence[Hashable]) -> list[Any]:
    """Values of a small graph, each task after what it needs; what none needs any more is let go.
    `dask.get` does the same, and plans its order at a cost that partitions of few rows would feel."""
    if not all(hasattr(task, "dependencies") for task in graph.values()):
        import dask

        return list(dask.get(graph, keys))
    users = Counter(d for task in graph.values() for d in task.dependencies) + Counter(keys)
    values: dict[Hashable, Any] = {}
    waiting = list(keys)
    while waiting:
        key = waiting[-1]
        needs = () if key in values else graph[key].dependencies
        if missing := [d for d in needs if d not in values]:
            waiting += missing
            continue
        waiting.pop()
        if key in values:
            continue
        values[key] = graph[key]({d: values[d] for d in needs})
        users.subtract(needs)
        for d in needs:
            if not users[d]:
                del values[d]
    return [values[key] for key in keys]


def inlined(parts: Sequence[Sequence[Any]]) -> list[Inlined] | None:
    """For each partition, a tuple of delayed values or None, its own graph; None where partitions
    share work, which would be done twice, or hold results of a client."""
    graph = merged(parts)
    if any(v.key not in graph for part in parts for v in part if v is not None):
        raise WorkerError(CLOSED)  # results of a client go with it
    beyond = next(_beyond(graph), None)
    if beyond is not None and current_client() is None:
        raise WorkerError(CLOSED)
    if beyond is not None or any(map(_held, graph.values())):
        return None
    found, seen = [], Counter[Hashable]()
    for part in parts:
        keys = [None if v is None else v.key for v in part]
        own = _needed(graph, [k for k in keys if k is not None])
        seen.update(own.keys())
        found.append(Inlined(own, keys))
    return None if any(n > 1 for n in seen.values()) else found


def file_of(graph: Inlined) -> str:
    """The name of the file that a partition is read from, where its tasks tell one."""
    for task in graph.graph.values():
        found = sorted({Path(name).name for name in _files(task, DEEP)})
        if found:
            return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"
    return ""


def _files(value: Any, deep: int) -> Iterator[str]:
    """Names of files among the arguments of a task."""
    if isinstance(value, str):
        if value.endswith(SUFFIXES):
            yield value
        return
    if deep <= 0:
        return
    inside: Iterable[Any] = ()
    if isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, list | tuple | set):
        inside = value
    elif type(value).__module__.startswith(("dask", "pyarrow", "fsspec")):
        names = ("args", "kwargs", "value", "path", "fragment", "_fragment", "inner")
        inside = [v for name in names if (v := getattr(value, name, None)) is not None]
    for v in inside:
        yield from _files(v, deep - 1)


def merged(parts: Iterable[Sequence[Any]]) -> dict[Hashable, Any]:
    """All graphs in one; values of one collection share theirs."""
    values = (v for part in parts for v in part if v is not None)
    graphs = {id(g): g for g in (v.__dask_graph__() for v in values)}
    return {key: task for g in graphs.values() for key, task in dict(g).items()}


def _needed(graph: dict[Hashable, Any], keys: Iterable[Hashable]) -> dict[Hashable, Any]:
    from dask.core import get_dependencies

    own: dict[Hashable, Any] = {}
    waiting = list(keys)
    while waiting:
        key = waiting.pop()
        if key not in own:
            own[key] = graph[key]
            waiting += get_dependencies(graph, key)
    return own


def _beyond(graph: Mapping[Hashable, Any]) -> Iterator[Hashable]:
    """What tasks need that is not in the graph: results that a client holds, where dask has made
    tasks of them already (as `rechunk` does)."""
    for task in graph.values():
        for key in getattr(task, "dependencies", ()):
            if key not in graph:
                yield key


def _held(task: Any) -> bool:
    """Whether this is a result that a client holds."""
    return type(getattr(task, "value", task)).__module__.partition(".")[0] == "distributed"
