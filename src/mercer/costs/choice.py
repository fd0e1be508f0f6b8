"""One of several ways to the same result, by what each is expected to take; benches and tests may
force another one, and are told which there were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from mercer.costs import quickest

Met = dict[str, dict[str, set[str]]]  # by choice: the ways that there were, and those taken

_forced: ContextVar[Mapping[str, str]] = ContextVar("mercer_forced_ways", default={})  # noqa: B039
_met: ContextVar[Met | None] = ContextVar("mercer_choices_met", default=None)


def choose(name: str, ways: Mapping[str, float]) -> str:
    """The way that takes least of those that there are, with the seconds of each; the first of
    those that take the same.

    >>> choose("kernel_rows", {"whole matrix": 2.0, "few rows": 1.0})
    'few rows'
    """
    asked = _forced.get().get(name)
    way = asked if asked is not None and asked in ways else quickest(ways)
    if (met := _met.get()) is not None:
        known = met.setdefault(name, {"there": set(), "taken": set()})
        known["there"].update(ways)
        known["taken"].add(way)
    return way


@contextmanager
def forced(**ways: str) -> Iterator[None]:
    """Inside, these choices take these ways wherever there is such a way, in this thread and the
    tasks that it starts: for benches and tests, not a setting.

    >>> with forced(kernel_rows="blocks"):
    ...     choose("kernel_rows", {"blocks": 2.0, "few rows": 1.0}), choose("other", {"a": 1.0})
    ('blocks', 'a')
    """
    token = _forced.set({**_forced.get(), **ways})
    try:
        yield
    finally:
        _forced.reset(token)


@contextmanager
def watched() -> Iterator[Met]:
    """The choices that are met inside.

    >>> with watched() as met:
    ...     way = choose("kernel_rows", {"blocks": 2.0, "few rows": 1.0})
    >>> {name: (sorted(m["there"]), sorted(m["taken"])) for name, m in met.items()}
    {'kernel_rows': (['blocks', 'few rows'], ['few rows'])}
    """
    found: Met = {}
    token = _met.set(found)
    try:
        yield found
    finally:
        _met.reset(token)
