"""What a benchmark is made of, and how it is measured: interleaved, best of k, a ratio only at
equal quality.

A module `bench/NAME.py` defines `cases()`, which yields `Case` and `Measure` values::

    def cases(): X, y = ... yield Case("fit", ours=lambda: ours(X, y), peer=lambda: peer(X, y),
        check=equal_accuracy, target=3.0)

Machines are noisy: only the ratio of two times of one run says something, never a time.
"""

import gc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Quality:
    """How good ours and the peer's results are; ours may be worse by at most `slack`.

    >>> Quality("accuracy", ours=0.85, peer=0.90, slack=0.01).failure
    'accuracy 0.85 is worse than 0.9 by more than 0.01'
    >>> print(Quality("rmse", ours=0.1, peer=0.2, higher_is_better=False))
    rmse 0.1 vs 0.2
    """

    name: str
    ours: float
    peer: float
    slack: float = 0.0
    higher_is_better: bool = True

    @property
    def failure(self) -> str | None:
        lead = self.ours - self.peer if self.higher_is_better else self.peer - self.ours
        if lead >= -self.slack:  # false for nan
            return None
        return f"{self.name} {self.ours:.4g} is worse than {self.peer:.4g} by more than {self.slack:.4g}"

    def __str__(self) -> str:
        return f"{self.name} {self.ours:.4g} vs {self.peer:.4g}"


Verdict = Quality | str | None
"""What a check says: the qualities, one sentence on why the results are not equally good, or None when they are."""


@dataclass(frozen=True)
class Row:
    """One finished line of a benchmark; its ratio is above 1 where ours is better, absent where
    `failure` says why."""

    name: str
    unit: str
    ours: float | None = None
    peer: float | None = None
    target: float | None = None
    lower_is_better: bool = True
    quality: str | None = None
    failure: str | None = None

    @property
    def ratio(self) -> float | None:
        if self.failure or self.ours is None or self.peer is None:
            return None
        better, worse = (self.ours, self.peer) if self.lower_is_better else (self.peer, self.ours)
        return 1.0 if better == worse else worse / better if better else float("inf")

    @property
    def met(self) -> bool | None:
        """Whether the ratio reaches the target; None where there is nothing to compare."""
        return None if self.ratio is None or self.target is None else self.ratio >= self.target


@dataclass(frozen=True)
class Case:
    """Two calls to time. The ratio is peer's seconds over ours; `target` is the ratio to reach.

    check(ours_result, peer_result) gives a `Verdict` on the results of the last timed pair
    (`peer_result` is None without a peer). `setup` runs before each call, outside the clock;
    `warmup`, where given, replaces the untimed first call of each side, for cases that take
    minutes.
    """

    name: str
    ours: Callable[[], Any]
    peer: Callable[[], Any] | None
    check: Callable[[Any, Any], Verdict]
    target: float | None = None
    repeats: int = 5
    setup: Callable[[], Any] | None = None
    warmup: Callable[[], Any] | None = None

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1; {self.name!r} has {self.repeats}.")

    def run(self) -> Row:
        self._warm()
        ours, peer = self._time()
        quality, failure = _told(self.check(ours.result, peer.result))
        return Row(
            self.name, "s", ours.best, peer.best, self.target, quality=quality, failure=failure
        )

    def _sides(self) -> list[Callable[[], Any]]:
        return [side for side in (self.ours, self.peer) if side is not None]

    def _warm(self) -> None:
        for call in [self.warmup] if self.warmup else self._sides():
            self._call(call)

    def _time(self) -> tuple["_Clock", "_Clock"]:
        """Ours and the peer in turn, the first place alternating, so that drift hits both."""
        clocks = _Clock(), _Clock()
        pairs = list(zip(clocks, self._sides(), strict=False))  # one side only without a peer
        for clock, side in chain.from_iterable(
            pairs[:: 1 if i % 2 == 0 else -1] for i in range(self.repeats)
        ):
            clock.record(*self._call(side))
        return clocks

    def _call(self, side: Callable[[], Any]) -> tuple[float, Any]:
        if self.setup:
            self.setup()
        gc.collect()
        start = perf_counter()
        result = side()
        return perf_counter() - start, result


@dataclass
class _Clock:
    """The best time of one side, and its latest result."""

    best: float | None = None
    result: Any = None

    def record(self, seconds: float, result: Any) -> None:
        self.best = seconds if self.best is None else min(self.best, seconds)
        self.result = result


@dataclass(frozen=True)
class Measure:
    """Two values to compare that are not times: an error, a size, a count; `quality` is what a
    check would say."""

    name: str
    ours: float
    peer: float | None
    target: float | None = None
    unit: str = ""
    lower_is_better: bool = True
    quality: Verdict = None

    def run(self) -> Row:
        quality, failure = _told(self.quality)
        return Row(
            self.name,
            self.unit,
            self.ours,
            self.peer,
            self.target,
            self.lower_is_better,
            quality,
            failure,
        )


def _told(verdict: Verdict) -> tuple[str | None, str | None]:
    """The quality and the failure, as text."""
    if isinstance(verdict, Quality):
        return str(verdict), verdict.failure
    if verdict is None or isinstance(verdict, str):
        return None, verdict
    raise TypeError(f"A check returns a Quality, a sentence or None; it returned {verdict!r}.")
