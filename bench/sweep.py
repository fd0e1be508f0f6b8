"""Every operation that has a peer, at shapes drawn by a seed: the worst, the 10 % quantile and the
median of the ratio, how far each choice was from the best alternative, and what the ratios would be
of one that does nothing but what none can be without (`sweep_least`).

`./do bench sweep --seed 3 --quick` takes about five minutes. `--cpu` compares CPU seconds on one
thread, for machines that others use; `--only NAME` takes some of the operations. The peer of SVC
and SVR is scikit-learn-intelex where it is installed. Ratios count where the peer takes over 5 ms;
the choice of the shapes of a seed does not depend on the machine, only how many of them there is
time for.
"""

import gc
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bench.harness import Measure, Quality, Row, Verdict
from bench.sweep_least import Least
from bench.sweep_problems import OPERATIONS, Problem, peer_svm
from bench.sweep_rows import Draw, TooLarge
from mercer.costs.choice import forced, watched
from mercer.ops.threads import limit

COUNTS = 5e-3  # seconds of the peer below which a ratio says nothing
CLOSE, SHARE = 1.3, 0.9  # a choice is good within so much of the best one; so often it shall be
REPEATS, LEAST_SECONDS = 7, 0.2  # of a problem: as often as that, or until it took so long
ONCE = 50  # times as long, and a problem is not repeated: what is compiled counts where it is
TARGETS = {  # 10 % quantile, median; the worst is 0.8 for all
    "Gram": (1.0, 5.0),
    "K @ v": (1.0, 5.0),
    "exact ridge": (1.0, 5.0),
    "SVC": (1.0, 2.0),
    "SVR": (1.0, 2.0),
    "GP learnt": (1.0, 3.0),
    "Fourier": (1.0, 3.0),
    "Nystrom": (1.0, 3.0),
    "KernelPCA": (1.0, 4.0),
    "k-means": (1.0, 4.0),
}
WORST = 0.8


@dataclass
class Found:
    """What the problems of one operation told."""

    ratios: list[float] = field(default_factory=list)
    refused: int = 0  # where results were not equally good
    distances: list[float] = field(default_factory=list)
    perfect: list[float] = field(default_factory=list)  # ratios of the least work


@dataclass(frozen=True)
class Trial:
    """A problem of an operation: both sides in turn, the first place alternating."""

    operation: str
    problem: Problem
    clock: Callable[[], float]
    found: Found
    alternatives: bool

    def run(self) -> Row:
        p, name = self.problem, f"{self.operation}: {self.problem.name}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peers warn of bounds and of steps, at some shapes
            (ours, peer), results = self._timed([p.ours, p.peer])
            quality, failure = told(p.check(*results))
            self.found.refused += failure is not None
            counts = failure is None and peer >= COUNTS
            if counts:
                self.found.ratios.append(peer / ours)
            if counts and p.least is not None:
                least = p.least(Least(self.clock), results[0])
                self.found.perfect.append(peer / least)
                quality = f"{ours / least:.2f} of the least"
            if counts and self.alternatives and (others := self._alternatives()):
                quality = ", ".join(filter(None, (quality, self._distance(others))))
        return Row(name, "s", ours, peer, None, quality=quality, failure=failure)

    def _alternatives(self) -> dict[str, Callable[[], Any]]:
        """Ours by every way that was there, for every choice that was met, and not taken."""
        p = self.problem
        with watched() as met:
            p.ours()
        calls = dict(p.ways)
        for name, known in met.items():
            for way in sorted(known["there"] - known["taken"]):
                calls[f"{name}: {way}"] = partial(by_way, p.ours, name, way)
        return calls

    def _distance(self, others: dict[str, Callable[[], Any]]) -> str:
        (ours, *seconds), _ = self._timed([self.problem.ours, *others.values()])
        best, way = min(zip(seconds, others, strict=True))
        distance = max(1.0, ours / best)
        self.found.distances.append(distance)
        return f"{distance:.2f} of the best choice{f' ({way})' if distance > CLOSE else ''}"

    def _timed(self, sides: list[Callable[[], Any]]) -> tuple[list[float], list[Any]]:
        gc.collect()
        best, results, spent = [np.inf] * len(sides), [None] * len(sides), 0.0
        for i in range(REPEATS):
            for at in range(len(sides))[:: 1 if i % 2 == 0 else -1]:
                start = self.clock()
                results[at] = sides[at]()
                seconds = self.clock() - start
                best[at], spent = min(best[at], seconds), spent + seconds
            if spent > LEAST_SECONDS * len(sides) * (1 if i else ONCE):
                break
        return best, results


def by_way(ours: Callable[[], Any], name: str, way: str) -> Any:
    with forced(**{name: way}):
        return ours()


def told(verdict: Verdict) -> tuple[str | None, str | None]:
    if isinstance(verdict, Quality):
        return str(verdict), verdict.failure
    return None, verdict


def problems(name: str, seed: int, seconds: float) -> Iterator[Problem]:
    """As drawn by the seed, without those that are too large."""
    number = sorted(OPERATIONS).index(name)
    for i in range(10_000):
        with suppress(TooLarge):
            yield OPERATIONS[name](Draw(np.random.default_rng([seed, number, i]), seconds))


def one_thread(stack: ExitStack) -> None:
    """For us and for the peers."""
    stack.enter_context(limit(1))
    stack.enter_context(threadpool_limits(1))
    if "sklearnex" in peer_svm("SVC").__module__:
        import daal4py

        daal4py.daalinit(1)


def summary(name: str, found: Found) -> Iterator[Measure]:
    low, middle = TARGETS[name]
    if found.ratios:
        n = len(found.ratios)
        for what, at, target in (("worst", 0, WORST), ("10 %", 0.1, low), ("median", 0.5, middle)):
            value = float(np.quantile(found.ratios, at))
            yield Measure(f"{name}: {what} of {n}", value, 1.0, target, lower_is_better=False)
    for what, at in (("10 %", 0.1), ("median", 0.5)) if found.perfect else ():
        title = f"{name}: a perfect one would have, {what}"
        yield Measure(title, float(np.quantile(found.perfect, at)), None)
    if found.refused:
        yield Measure(f"{name}: refused, not equally good", found.refused, 0.0, 1.0)
    if found.distances:
        good = float(np.mean(np.array(found.distances) <= CLOSE))
        title = f"{name}: choices within {CLOSE} of the best"
        yield Measure(title, good, 1.0, SHARE, lower_is_better=False)


def cases(
    seed: int = 0, *, quick: bool = False, cpu: bool = False, only: tuple[str, ...] = ()
) -> Iterator[Trial | Measure]:
    """quick: 25 seconds an operation, of problems that take the peer up to a second or two."""
    seconds, most = (25.0, 1.0) if quick else (300.0, 20.0)
    clock = process_time if cpu else perf_counter
    found = {name: Found() for name in OPERATIONS if not only or name in only}
    with ExitStack() as stack:
        if cpu:
            one_thread(stack)
        for name, told in found.items():
            start = clock()
            for i, problem in enumerate(problems(name, seed, most)):
                yield Trial(name, problem, clock, told, i % 2 == 0)
                if clock() - start > seconds:
                    break
        for name, told in found.items():
            yield from summary(name, told)
