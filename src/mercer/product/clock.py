"""A clock for a budget of seconds, the speed it measures, and the words of progress that go with it."""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

Progress = Callable[[str], None]


class Late(Exception):
    """Time was up before something that may be left out was done."""


def quiet(text: str) -> None:
    """Progress that nobody asked for."""


@dataclass
class Clock:
    """Seconds since it was made, and how many are left of the budget.

    >>> Clock(60).left(0.5) <= 30
    True
    """

    budget: float
    say: Progress = quiet
    start: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.start

    def left(self, share: float = 1.0) -> float:
        """Seconds until that share of the budget is spent; negative when it is."""
        return share * self.budget - self.spent

    def check(self) -> None:
        """Raise `Late` where the budget is spent."""
        if self.left() < 0:
            raise Late
