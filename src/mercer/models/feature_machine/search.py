"""The search for a feature machine: paths screened on few rows, the best ones again on more, and
those averaged that help; held-out rows decide everything."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import islice

import numpy as np

from mercer.inputs import Array
from mercer.models.feature_machine.dense import PENALTIES, PathRows, distances, median_distance
from mercer.models.feature_machine.losses import Loss, classification_loss, squared_error
from mercer.models.feature_machine.paths import (
    FirstDistances,
    MetricPath,
    OneRound,
    PathSetting,
    Round,
    neighbours,
    rounds,
    settings,
)
from mercer.models.feature_machine.scaling import InputScaling
from mercer.ops.threads import limit, n_threads, parallel_map

MIN_SEARCH = 7  # rows of which so many can be held out that they tell anything
SCREEN_ROWS = 2_000  # of the first look
PROMOTED_ROWS = 8_000  # of the second
SCREEN_SHARE = 0.6  # of them that are fitted
PROMOTED_SHARE = 0.75
PROMOTED = 4  # paths that are looked at again
MAX_MEMBERS = 5
MAX_REPEATS = 6  # other cuts of the screened rows by which the best are judged,
REPEATED_ROWS = 4_000  # and the rows of all of them
HELPS = 0.999  # another machine must take the loss below this share of it
BYTES_A_PAIR = 20.0  # of a path: distances, values, a factor
# of two screened rows: the first distances of all kinds of inputs and norms, a path, its gradients
SCREEN_BYTES = 34.0


@dataclass(frozen=True, eq=False)
class MetricProblem:
    """Rows X (n, d) with targets Y (n, q) about their means `offset`, weights, and what is to be
    small; rows of one group stay together, and those of a later time are held out."""

    X: Array
    Y: Array
    weight: Array | None
    offset: Array
    classes: int  # 0 of numbers
    seed: int
    memory: float = 4e9
    deadline: float | None = None  # of time.perf_counter()
    group: Array | None = None
    time: Array | None = None
    judge: Loss | None = None  # in place of squares, or log loss and errors
    gpu: str | None = None  # the torch device that paths are walked on

    def left(self) -> float:
        return np.inf if self.deadline is None else self.deadline - time.perf_counter()

    def loss(self, F: Array, Y: Array, weight: Array | None) -> float:
        if self.judge is not None:
            return self.judge(F, Y, weight)
        if not self.classes:
            return squared_error(F, Y, weight)
        shift = self.offset if self.classes > 2 else self.offset - 0.5
        return classification_loss(F + shift, Y + self.offset - (self.classes == 2) * 0.5, weight)


@dataclass(frozen=True, eq=False)
class PathTrial:
    """A path that was tried up to a round, what it said of held-out rows, and its loss there."""

    path: MetricPath
    loss: float
    held_out: Array

    @property
    def setting(self) -> PathSetting:
        return self.path.setting


@dataclass(frozen=True, eq=False)
class FoundMachines:
    """What a search found: machines with weights that add to 1, and what was looked at."""

    members: tuple[tuple[MetricPath, float], ...]
    loss: float
    tried: int
    rows: int

    def best_alone(self) -> FoundMachines:
        """The machine that is best alone, which comes first."""
        return replace(self, members=((self.members[0][0], 1.0),))


def without_search(rows: int) -> FoundMachines:
    """Of rows too few to hold any out."""
    path = MetricPath(PathSetting("standard", 1, 1.0, 1.0, "diagonal", 1.0), (0.1,))
    return FoundMachines(((path, 1.0),), np.inf, 0, rows)


@dataclass(frozen=True, eq=False)
class Split:
    """Some rows, cut in two: of every kind of input the rows that are fitted and those held out."""

    fitted: dict[str, PathRows]
    held: dict[str, PathRows]
    first: FirstDistances

    @classmethod
    def of(cls, p: MetricProblem, rows: Array, share: float, kinds: tuple[str, ...]) -> Split:
        """The first share of the rows is fitted, to the nearest border of a group."""
        cut = max(1, min(len(rows) - 1, int(share * len(rows))))
        if p.group is not None:
            borders = np.flatnonzero(np.diff(p.group[rows])) + 1
            cut = int(borders[np.argmin(np.abs(borders - cut))]) if len(borders) else cut
        a, b = rows[:cut], rows[cut:]
        fitted, held = {}, {}
        for kind in kinds:
            scaling = InputScaling.of(p.X[a], kind)
            fitted[kind], held[kind] = (
                PathRows(scaling(p.X[i]), p.Y[i], _unit(p.weight, i)) for i in (a, b)
            )
        return cls(fitted, held, FirstDistances())

    def __len__(self) -> int:
        return len(next(iter(self.fitted.values())))


def _unit(weight: Array | None, rows: Array) -> Array | None:
    return None if weight is None else weight[rows] / weight[rows].mean()


def cut_order(p: MetricProblem, rows: Array, turn: int, turns: int) -> Array:
    """These rows in an order of which a cut parts those fitted from those held out: another one each
    turn, groups in one piece; by time there is but one."""
    if p.time is not None:
        return rows[np.argsort(p.time[rows], kind="stable")]
    if p.group is not None:
        names, codes = np.unique(p.group[rows], return_inverse=True)
        rank = np.random.default_rng([p.seed, turn]).permutation(len(names))
        return rows[np.argsort(rank[codes], kind="stable")]
    return np.roll(rows, turn * len(rows) // (turns + 1))


def search(p: MetricProblem, most_rounds: int = 3) -> FoundMachines:
    """The machines to be fitted, and their weights."""
    order = np.random.default_rng(p.seed).permutation(len(p.X))
    kinds, few = kinds_of(p.X), order[: screened_rows(p.memory)]
    split = Split.of(p, cut_order(p, few, 0, 1), SCREEN_SHARE, kinds)
    width = next(iter(split.fitted.values())).U.shape[1]
    begun = time.perf_counter()
    trials = _tried(p, split, settings(kinds, width), most_rounds, share=0.35, halve=True)
    spent = time.perf_counter() - begun
    count = len(trials)
    if not trials:
        return without_search(len(order))
    best = best_of_families(trials)
    rows, held = len(few), split.held[kinds[0]]
    larger = promoted_rows(p, len(order), spent / max(count, 1), len(split))
    if larger > 1.5 * rows:
        split = Split.of(p, cut_order(p, order[:larger], 0, 1), PROMOTED_SHARE, kinds)
        again = _again(best)
        more = _tried(p, split, again, most_rounds + 1, share=0.75)
        count += len(more)
        if more:
            best, rows, held = best_of_families(more), larger, split.held[kinds[0]]
    elif p.left() > 0 and p.time is None:
        best, held, extra = _repeated(p, few, kinds, best, held, most_rounds)
        count += extra
    chosen, loss = ensemble(p, best, held)
    return FoundMachines(chosen, loss, count, rows)


def kinds_of(X: Array) -> tuple[str, ...]:
    """Kinds of inputs that differ: ranks of indicators are what they are."""
    some = X[:: max(1, len(X) // 5000)]
    two = all(len(np.unique(c[~np.isnan(c)])) <= 2 for c in some.T)
    return ("standard",) if two else ("standard", "rank")


def screened_rows(memory: float) -> int:
    """Rows of the first look: 2,000, or as many as half of the memory holds.

    >>> screened_rows(4e9), screened_rows(6e7)
    (2000, 939)
    """
    return min(SCREEN_ROWS, int((memory / 2 / SCREEN_BYTES) ** 0.5))


def promoted_rows(p: MetricProblem, n: int, seconds: float, screened: int) -> int:
    """Rows of the second look: as many as time and memory leave, where a path of `screened` rows
    took so many seconds."""
    most = min(n, PROMOTED_ROWS, int((p.memory / 4 / BYTES_A_PAIR) ** 0.5))
    if np.isfinite(left := p.left()):
        each = 0.4 * max(left, 0.0) * n_threads() / (2 * PROMOTED)
        most = min(most, int(screened / PROMOTED_SHARE * (each / max(seconds, 1e-4)) ** (1 / 2.6)))
    return most


def _tried(
    p: MetricProblem,
    split: Split,
    todo: list[PathSetting],
    most: int,
    share: float,
    *,
    halve: bool = False,
    judge: bool = True,
) -> list[PathTrial]:
    """All rounds of all settings while there is time, the first few whatever it is; where paths are
    halved, only the better half goes on after the first round of a metric. Without a judge the
    trials have no loss."""
    stop = None if p.deadline is None else time.perf_counter() + share * p.left()
    on_device = None if p.gpu is None else _rounds_on(p.gpu)
    if on_device is None:
        for key in dict.fromkeys((s.inputs, s.norm) for s in todo):  # before threads ask for them
            _prepare(split, key, p.seed)
    walks = [
        rounds(
            s, split.fitted[s.inputs], split.held[s.inputs], most, p.seed, split.first, on_device
        )
        for s in todo
    ]

    def go(i: int, steps: int, least: int) -> list[Round]:
        late = stop is not None and i >= least and time.perf_counter() > stop
        return [] if late else list(islice(walks[i], steps))

    side_by_side = max(1, int(p.memory / 2 / (BYTES_A_PAIR * len(split) ** 2)))
    with limit(min(n_threads(), side_by_side) if p.gpu is None else 1):
        walked = _walked(go, todo, most, halve=halve)
    split.first.known.clear()  # no other path begins with them
    return [
        t
        for s, part in zip(todo, walked, strict=True)
        for t in _trials(p, s, part, split.held[s.inputs], judge=judge)
    ]


def _rounds_on(device: str) -> OneRound:
    """Rounds on a GPU, loaded when they are asked for."""
    made: OneRound = import_module("mercer.models.feature_machine.on_gpu").one_round
    return partial(made, device=device)


def _walked(
    go: Callable[[int, int, int], list[Round]], todo: list[PathSetting], most: int, *, halve: bool
) -> list[list[Round]]:
    """The rounds of every setting, by so many steps of each at a time."""
    walked = parallel_map(lambda i: go(i, 2 if halve else most + 1, 2), range(len(todo)))
    if halve:
        best = [min((r.loss for r in part), default=np.inf) for part in walked]
        order = sorted(range(len(todo)), key=lambda i: best[i])[: -(-len(todo) // 2)]
        more = parallel_map(lambda i: go(i, most - 1, 0), order)
        for i, part in zip(order, more, strict=True):
            walked[i] = walked[i] + part
    return walked


def _prepare(split: Split, key: tuple[str, int], seed: int) -> None:
    kind, norm = key
    if key not in split.first.known:
        U, V = split.fitted[kind].U, split.held[kind].U
        rng = np.random.default_rng(seed)
        split.first.known[key] = (
            distances(U, U, norm),
            distances(V, U, norm),
            median_distance(U, norm, rng),
        )


def _trials(
    p: MetricProblem, s: PathSetting, walk: list[Round], held: PathRows, *, judge: bool
) -> list[PathTrial]:
    penalties = [PENALTIES[r.penalty] for r in walk]
    losses = [p.loss(r.held_out, held.Y, held.weight) if judge else np.nan for r in walk]
    return [
        PathTrial(MetricPath(s, tuple(penalties[: t + 1])), loss, r.held_out)
        for t, (r, loss) in enumerate(zip(walk, losses, strict=True))
    ]


def best_of_families(trials: list[PathTrial]) -> list[PathTrial]:
    """The best trial of every (inputs, norm, exponent, form), the best first."""
    best: dict[tuple[object, ...], PathTrial] = {}
    for t in sorted(trials, key=lambda t: t.loss):
        best.setdefault((*t.setting.family, t.setting.form), t)
    return list(best.values())


def _again(best: list[PathTrial]) -> list[PathSetting]:
    """The settings of the second look: the best, those beside the very best, and the best linear
    one, which errs otherwise than machines do."""
    todo = [t.setting for t in best[:PROMOTED]]
    todo += [t.setting for t in best[PROMOTED:] if t.setting.form == "linear"][:1]
    return list(dict.fromkeys(todo + neighbours(best[0].setting)))


def _repeated(
    p: MetricProblem,
    rows: Array,
    kinds: tuple[str, ...],
    best: list[PathTrial],
    held: PathRows,
    most: int,
) -> tuple[list[PathTrial], PathRows, int]:
    """The best settings on other cuts of the same rows: judged by all that these hold out, which
    come back with them."""
    todo, parts = _again(best), []
    table: dict[tuple[PathSetting, int], list[PathTrial]] = {}
    turns = max(2, min(MAX_REPEATS, REPEATED_ROWS // len(rows)))
    for turn in range(turns):
        if turn and p.left() < 0:
            break
        split = Split.of(p, cut_order(p, rows, turn + 1, turns), PROMOTED_SHARE, kinds)
        parts.append(split.held[kinds[0]])
        for t in _tried(p, split, todo, most, share=0.5, judge=False):
            table.setdefault((t.setting, t.path.rounds), []).append(t)
    held_out = _together(parts)
    merged = _merged(p, [ts for ts in table.values() if len(ts) == len(parts)], held_out)
    count = sum(map(len, table.values()))
    return (best_of_families(merged), held_out, count) if merged else (best, held, count)


def _together(parts: list[PathRows]) -> PathRows:
    """The rows that several cuts held out, without their inputs: cuts may differ in columns of what
    is missing."""
    weights = [r.weight for r in parts if r.weight is not None]
    return PathRows(
        np.concatenate([r.U[:, :0] for r in parts]),
        np.concatenate([r.Y for r in parts]),
        np.concatenate(weights) if weights else None,
    )


def _merged(p: MetricProblem, same: list[list[PathTrial]], held: PathRows) -> list[PathTrial]:
    """Trials of the same path, one a cut, as one trial of all that the cuts held out."""
    merged = []
    for trials in same:
        F = np.concatenate([t.held_out for t in trials])
        path = _middle_path([t.path for t in trials])
        merged.append(PathTrial(path, p.loss(F, held.Y, held.weight), F))
    return merged


def _middle_path(paths: list[MetricPath]) -> MetricPath:
    """The geometric mean of their penalties, round by round."""
    logs = np.log([q.penalties for q in paths]).mean(axis=0)
    return MetricPath(paths[0].setting, tuple(float(v) for v in np.exp(logs)))


def ensemble(
    p: MetricProblem, best: list[PathTrial], held: PathRows
) -> tuple[tuple[tuple[MetricPath, float], ...], float]:
    """Machines whose mean is best on held-out rows, added one by one, with repeats, while each
    helps (Caruana and others, 2004)."""
    counts, total = np.zeros(len(best)), 0.0 * best[0].held_out
    loss = np.inf
    for size in range(1, MAX_MEMBERS + 1):
        losses = [p.loss((total + t.held_out) / size, held.Y, held.weight) for t in best]
        i = 0 if size == 1 else int(np.argmin(losses))
        if not losses[i] < (HELPS * loss if size > 1 else np.inf):
            break
        loss, total = losses[i], total + best[i].held_out
        counts[i] += 1
    weights = counts / counts.sum()
    return tuple((t.path, float(w)) for t, w in zip(best, weights, strict=True) if w > 0), loss
