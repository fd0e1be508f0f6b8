"""The graph of one partition, taken out of a collection's: a task that holds it reads and computes
in one place, and knows whose error it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any


class Inlined:
    """The part of a graph that some keys need, computed where it is called. Dask looks into
    containers and dataclasses, but not into this."""

    def __init__(self, graph: dict[Hashable, Any], keys: list[Hashable | None]) -> None:
        self.graph, self.keys = graph, keys

    def __call__(self) -> list[Any]:
        import dask

        known = [k for k in self.keys if k is not None]
        found = dict(zip(known, dask.get(self.graph, known), strict=True))
        return [None if k is None else found[k] for k in self.keys]


def inlined(parts: Sequence[Sequence[Any]]) -> list[Inlined] | None:
    """For each partition, a tuple of delayed values or None, its own graph; None where partitions
    share work, which would be done twice, or hold results of a client."""
    graph = _merged(v for part in parts for v in part if v is not None)
    found, seen = [], Counter[Hashable]()
    for part in parts:
        keys = [None if v is None else v.key for v in part]
        own = _needed(graph, [k for k in keys if k is not None])
        seen.update(own.keys())
        found.append(Inlined(own, keys))
    shared = any(n > 1 for n in seen.values()) or any(map(_held, graph.values()))
    return None if shared else found


def _merged(values: Iterable[Any]) -> dict[Hashable, Any]:
    """All graphs in one; values of one collection share theirs."""
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


def _held(task: Any) -> bool:
    """Whether this is a result that a client holds."""
    return type(getattr(task, "value", task)).__module__.partition(".")[0] == "distributed"
