"""A page of the gallery as a value: a claim, what to look at, the lines of Mercer that make its
numbers, the slips of the notes that it shows, and the script that draws it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

Names = dict[str, Any]


@dataclass(frozen=True)
class Slip:
    """What a note says, what is right, and a function that shows the difference in numbers."""

    where: str
    says: str
    right: str
    shown: Callable[[], Shown]


@dataclass(frozen=True)
class Shown:
    """The numbers of a slip: a sentence, and two curves over x, of the note and of what is right."""

    sentence: str
    x: Any
    note: Any
    right: Any
    xlabel: str
    ylabel: str


@dataclass(frozen=True)
class Page:
    """One figure. `code` is what the page shows and what is run; `data` takes the names that it
    leaves to what the script `figures/<slug>.js` draws.

    Examples
    --------
    >>> page = Page("line", "A line", "It is straight.", (), "x = 2.0", lambda names: {"x": names["x"]})
    >>> page.numbers()
    {'x': 2}
    """

    slug: str
    title: str
    claim: str
    look: tuple[str, ...]
    code: str
    data: Callable[[Names], Mapping[str, Any]]
    slips: tuple[str, ...] = field(default=())

    def names(self) -> Names:
        """What the lines of the page define."""
        return run(self.code)

    def numbers(self) -> dict[str, Any]:
        """The data of the figure, as JSON has it."""
        return dict(plain(self.data(dict(self.names()))))


@cache
def run(code: str) -> Names:
    """Run lines of Python; their names, except private ones."""
    names: Names = {}
    exec(compile(code, "<gallery>", "exec"), names)
    return {name: value for name, value in names.items() if not name.startswith("__")}


def plain(value: Any) -> Any:
    """Arrays as lists, numbers to nine digits: far below what a figure shows, and half the size.

    >>> plain({"x": np.array([1.0, 1 / 3])})
    {'x': [1, 0.333333333]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return _number(value) if isinstance(value, float) else value


def _number(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    short = float(f"{value:.9g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short


def embedded(value: Any) -> str:
    """JSON that a script element may hold: nothing in it can end the element.

    >>> embedded("</script>")
    '"\\\\u003c/script>"'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
