"""The contest: baselines first, then the search, then every kind at its best, as long as there is time."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.product import ledger
from mercer.product.clock import Clock, Late
from mercer.product.crossval import ENDLESS
from mercer.product.finalists import Finalist, choose, constant, finalist, machine
from mercer.product.folds import FOLDS
from mercer.product.machines import hushed
from mercer.product.recipes import LINEAR, NAMES, WIDEST, Recipe, explicit
from mercer.product.search import CROWDED, Problem, Tried, halving
from mercer.product.targets import Identity, Target, candidates
from mercer.product.tuning import Tuned, tune

SEARCH, FINALS, TUNED = 0.25, 0.45, 0.55  # shares of the time by which the search, the cross-validation and a machine's search are over
CLASSIFIED, MANY = 8_000, 5_000  # rows on which classifiers of two classes, and of more, are compared
BY_FOLDS = 8_000  # rows up to which a machine of numbers is cross-validated; of classes, those on which all are compared
CHEAP = 0.05  # share of the time that is always there
OPTIONAL = ("explicit", "landmarks")
FEWEST, PATIENCE = 1_000, 2  # rows that are always compared; times the guess after which an optional kind is given up
SOLVES, LOGISTIC = 30, 3  # factorisations of an attempt; how much longer logistic regression takes than ridge regression
FITTED = 0.7  # the share of the time by which the cross-validation of a machine is over
PLAIN = 0.3  # an explicit lift needs less than random features: 0.2 and 0.27 were measured
SIZE = 640  # their features: beyond 512 their rounds are cheaper
NO_TIME, LATE, NO_ROOM = "no time was left to try it", "it took too long", "its features would exceed the memory"


@dataclass(frozen=True, eq=False)
class Contest:
    """Who took part, on which rows, who was chosen, and who was left out and why."""

    here: Problem
    found: tuple[Finalist, ...]
    chosen: Finalist
    left_out: tuple[tuple[str, str], ...]
    tuned: Tuned | None = None  # a machine that has yet to meet the chosen one, as there are more rows than folds were made of

    @property
    def short(self) -> dict[str, str]:
        """Those who were left out for want of time or memory, and of which: with more of it they would have been tried."""
        lack = {NO_TIME: "time", LATE: "time", NO_ROOM: "memory"}
        return {name: lack[why] for name, why in self.left_out if why in lack}


def contest(p: Problem, clock: Clock, memory: float = 4e9) -> Contest:
    """Every kind on the same rows and folds; a machine only where those are all rows, see `mercer.product.meeting`."""
    best, here = halving(p, clock, SEARCH)
    if not p.numeric:
        here = p.sample(min(len(here.rows), CLASSIFIED if p.n_classes == 2 else MANY))
    here = _affordable(p, _held(p, here), best, clock)
    clock.say(f"comparing by cross-validation on {len(here.rows):,} rows")
    found, left_out = [constant(here)], list[tuple[str, str]]()
    targets = tuple(candidates(p.rows.y)) if p.numeric else (Identity(),)
    for recipe in _entrants(here, best.recipe):
        why = _skipped(here, recipe, best, clock) or _tried(here, recipe, best, clock, found, targets)
        left_out += [(NAMES[recipe.kind], why)] if why else []
    tuned, why = _machine(p, here, best, clock, memory, found)
    left_out += [(NAMES["machine"], why)] if why else []
    return Contest(here, tuple(found), choose(here, found), tuple(left_out), tuned)


def _held(p: Problem, here: Problem) -> Problem:
    """Fewer rows where there are so many columns that memory holds no moments of them: then inner products of rows are fewer."""
    most = ledger.features(p.memory)
    return here if here.rows.X.shape[1] <= most else p.sample(min(len(here.rows), most))


def _machine(p: Problem, here: Problem, best: Tried, clock: Clock, memory: float, found: list[Finalist]) -> tuple[Tuned | None, str]:
    """The machine to meet the chosen one, where it was not compared with all; and why there is none."""
    if clock.left(FITTED) <= 0:
        return None, NO_TIME
    if p.n_classes > CROWDED:
        return None, f"{p.n_classes:,} classes are too many for it"
    if p.n_classes and len(np.unique(here.rows.y)) < 2:
        return None, "the rows have one class"
    until = max(TUNED, clock.spent / clock.budget + CHEAP)
    with hushed():
        tuned = tune(p, best.target, best.recipe.kernel, clock, until, memory)
        if len(p.rows) > len(here.rows) or len(p.rows) > BY_FOLDS:
            return tuned, ""
        guess = FOLDS * tuned.seconds * (len(p.rows) / tuned.rows) ** tuned.power
        if guess > max(clock.left(FITTED), CHEAP * clock.budget):
            return None, NO_TIME
        clock.say(f"comparing by cross-validation: {NAMES['machine'].lower()}")
        try:
            found.append(machine(here, tuned, memory, Clock(max(clock.left(FITTED), PATIENCE * guess))))
        except Late:
            return None, LATE
    return None, ""


def _affordable(p: Problem, here: Problem, best: Tried, clock: Clock) -> Problem:
    """Fewer rows where there are so many columns that even the linear model would take too long."""
    guess, left = _guess(here, LINEAR, best), _left(clock)
    return here if guess <= left else p.sample(min(len(here.rows), max(FEWEST, int(len(here.rows) * left / guess))))


def _left(clock: Clock) -> float:
    return max(clock.left(FINALS), CHEAP * clock.budget)


def _tried(here: Problem, recipe: Recipe, best: Tried, clock: Clock, found: list[Finalist], targets: tuple[Target, ...]) -> str:
    """Compare a kind; why not, where time was up on the way. Linear and Fourier features are compared to the end."""
    clock.say(f"comparing by cross-validation: {NAMES[recipe.kind].lower()}")
    until = ENDLESS
    if recipe.kind in OPTIONAL or here.n_classes > CROWDED:
        until = Clock(max(_left(clock), PATIENCE * _guess(here, recipe, best) if here.n_classes <= CROWDED else 0.0))
    try:
        found.append(_enter(here, recipe, best, until, targets))
    except Late:
        return LATE
    return ""


def _entrants(here: Problem, fourier: Recipe) -> list[Recipe]:
    """The cheap ones first: they are compared however short the time is."""
    return [LINEAR, explicit(here.rows.X), fourier, Recipe("landmarks", fourier.kernel)]


def _enter(here: Problem, recipe: Recipe, best: Tried, until: Clock, targets: tuple[Target, ...]) -> Finalist:
    known = best if recipe is best.recipe and best.predicted is not None and len(best.predicted) == len(here.rows) else None
    size = recipe.size(_asked(here, best), here.rows.X.shape[1], len(here.rows))
    asked = targets if recipe.kind in ("linear", "explicit") or not here.numeric else (best.target,)  # they may want another
    return finalist(here, recipe, size, known, asked, until)


def _skipped(here: Problem, recipe: Recipe, best: Tried, clock: Clock) -> str:
    """Why a kind does not take part; linear and Fourier features always do, and what costs next to nothing."""
    if recipe.kind == "explicit" and 4 * here.rows.X.shape[1] > 2 * WIDEST:
        return f"{here.rows.X.shape[1]:,} columns are too many to expand"
    if recipe.kind == "explicit" and recipe.size(_asked(here, best), here.rows.X.shape[1], 0) > 2 * ledger.features(here.memory):
        return NO_ROOM
    crowded = here.n_classes > CROWDED and recipe.kind != "linear"
    if (recipe.kind in OPTIONAL or crowded) and _left(clock) < _guess(here, recipe, best):
        return NO_TIME
    return ""


def _guess(here: Problem, recipe: Recipe, best: Tried) -> float:
    """Seconds, by what the search took for its best recipe on its rows."""
    size = recipe.size(_asked(here, best), here.rows.X.shape[1], len(here.rows))
    known = len(here.rows) if best.predicted is None else len(best.predicted)
    ratio = _work(len(here.rows), size) / _work(known, best.size)
    return best.seconds * ratio * (1 if here.numeric else LOGISTIC) * (PLAIN if recipe.kind == "explicit" else 1)


def _work(n: float, D: float) -> float:
    """Multiplications of an attempt: inner products of features or rows, whichever are fewer, and their factors."""
    return n * D * min(n, D) + SOLVES * min(n, D) ** 3


def _asked(here: Problem, best: Tried) -> int:
    return best.size if here.numeric else max(best.size, SIZE)
