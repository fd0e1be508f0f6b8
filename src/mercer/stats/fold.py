"""An engine is a fold: statistics of batches, merged in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from mercer.ops.threads import parallel_map
from mercer.ops.tiles import cuts

S = TypeVar("S")
B = TypeVar("B")
# batches under way together: as many statistics are held at once, whatever the number of threads
GROUP_BATCHES = 8


def fold(
    items: Iterable[B], of: Callable[[B], S], zero: S, pmap: Callable[..., Iterable[S]] = map
) -> S:
    """zero + of(b1) + of(b2) + ..., added from left to right: the result does not depend on `pmap`.

    >>> fold(range(5), lambda b: b * b, 0)
    30
    """
    total: Any = zero
    for group in _groups(items):
        for part in pmap(of, group):
            total = total + part
    return total


def threads(of: Callable[[B], S], items: Iterable[B]) -> list[S]:
    """A `pmap` for `fold`: batches shared between threads."""
    return parallel_map(of, items)


def _groups(items: Iterable[B]) -> Iterator[list[B]]:
    found = iter(items)
    while group := list(islice(found, GROUP_BATCHES)):
        yield group


def batches(n: int, size: int) -> list[slice]:
    """The rows of each batch.

    >>> batches(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return cuts(n, size)
