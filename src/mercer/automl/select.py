"""Selection: baselines first, then the search, then every kind at its best, as long as there is
time; one is chosen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.automl import budget
from mercer.automl.budget import Clock, OutOfTime
from mercer.automl.candidates import (
    ModelCandidate,
    constant_candidate,
    feature_candidate,
    machine_candidate,
    one_standard_error_rule,
)
from mercer.automl.crossval import NO_LIMIT
from mercer.automl.machines import ignore_convergence
from mercer.automl.predictors import IdentityTarget, TargetTransform, transformations
from mercer.automl.recipes import LINEAR, MAX_EXPLICIT_FEATURES, NAMES, Recipe, explicit
from mercer.automl.search import MANY_CLASSES, SearchProblem, Trial, successive_halving
from mercer.automl.splits import N_FOLDS
from mercer.automl.tuning import TunedMachine, tune_machine

# shares of the time by which the search, the cross-validation and a machine's search are over
SEARCH_SHARE = 0.25
COMPARE_SHARE = 0.45
TUNE_SHARE = 0.55
# rows on which classifiers of two classes, and of more, are compared
MAX_BINARY_ROWS = 8_000
MAX_MULTICLASS_ROWS = 5_000
# rows up to which a machine of numbers is cross-validated; of classes, those on which all are
# compared
MAX_MACHINE_ROWS = 8_000
CHEAP_SHARE = 0.05  # share of the time that is always there
OPTIONAL = ("explicit", "landmarks")
MIN_ROWS = 1_000  # rows that are always compared
PATIENCE = 2  # times the guess after which an optional kind is given up
SOLVES_A_TRIAL = 30  # factorisations of an attempt
LOGISTIC_COST = 3  # how much longer logistic regression takes than ridge regression
MACHINE_SHARE = 0.7  # the share of the time by which the cross-validation of a machine is over
EXPLICIT_COST = 0.3  # an explicit lift needs less than random features: 0.2 and 0.27 were measured
CLASSIFIER_FEATURES = 640  # their features: beyond 512 their rounds are cheaper
NO_TIME = "no time was left to try it"
LATE = "it took too long"
NO_ROOM = "its features would exceed the memory"


@dataclass(frozen=True, eq=False)
class Selection:
    """Who took part, on which rows, who was chosen, and who was left out and why."""

    here: SearchProblem
    candidates: tuple[ModelCandidate, ...]
    chosen: ModelCandidate
    left_out: tuple[tuple[str, str], ...]
    tuned: TunedMachine | None = (
        # a machine yet to be validated against the chosen one: there are more rows than in the
        # folds
        None
    )

    @property
    def short(self) -> dict[str, str]:
        """Those who were left out for want of time or memory, and of which: with more of it they
        would have been tried."""
        lack = {NO_TIME: "time", LATE: "time", NO_ROOM: "memory"}
        return {name: lack[why] for name, why in self.left_out if why in lack}


def select_candidate(p: SearchProblem, clock: Clock, memory: float = 4e9) -> Selection:
    """Every kind on the same rows and folds; a machine only where those are all rows, see
    `mercer.automl.validate`."""
    best, here = successive_halving(p, clock, SEARCH_SHARE)
    if not p.numeric:
        here = p.sample(
            min(len(here.rows), MAX_BINARY_ROWS if p.n_classes == 2 else MAX_MULTICLASS_ROWS)
        )
    here = _affordable(p, _held(p, here), best, clock)
    clock.say(f"comparing by cross-validation on {len(here.rows):,} rows")
    found, left_out = [constant_candidate(here)], list[tuple[str, str]]()
    targets = tuple(transformations(p.rows.y)) if p.numeric else (IdentityTarget(),)
    for recipe in _recipes_to_compare(here, best.recipe):
        why = _skipped(here, recipe, best, clock) or _compare(
            here, recipe, best, clock, found, targets
        )
        left_out += [(NAMES[recipe.kind], why)] if why else []
    tuned, why = _machine(p, here, best, clock, memory, found)
    left_out += [(NAMES["machine"], why)] if why else []
    return Selection(
        here, tuple(found), one_standard_error_rule(here, found), tuple(left_out), tuned
    )


def _held(p: SearchProblem, here: SearchProblem) -> SearchProblem:
    """Fewer rows where there are so many columns that memory holds no moments of them: then inner
    products of rows are fewer."""
    most = budget.max_features(p.memory)
    return here if here.rows.X.shape[1] <= most else p.sample(min(len(here.rows), most))


def _machine(
    p: SearchProblem,
    here: SearchProblem,
    best: Trial,
    clock: Clock,
    memory: float,
    found: list[ModelCandidate],
) -> tuple[TunedMachine | None, str]:
    """The machine to validate against the chosen one, where it was not compared with all; and why
    there is none."""
    if clock.left(MACHINE_SHARE) <= 0:
        return None, NO_TIME
    if p.n_classes > MANY_CLASSES:
        return None, f"{p.n_classes:,} classes are too many for it"
    if p.n_classes and len(np.unique(here.rows.y)) < 2:
        return None, "the rows have one class"
    until = max(TUNE_SHARE, clock.spent / clock.budget + CHEAP_SHARE)
    with ignore_convergence():
        tuned = tune_machine(p, best.target, best.recipe.kernel, clock, until, memory)
        if len(p.rows) > len(here.rows) or len(p.rows) > MAX_MACHINE_ROWS:
            return tuned, ""
        guess = N_FOLDS * tuned.seconds * (len(p.rows) / tuned.rows) ** tuned.power
        if guess > max(clock.left(MACHINE_SHARE), CHEAP_SHARE * clock.budget):
            return None, NO_TIME
        clock.say(f"comparing by cross-validation: {NAMES['machine'].lower()}")
        try:
            found.append(
                machine_candidate(
                    here, tuned, memory, Clock(max(clock.left(MACHINE_SHARE), PATIENCE * guess))
                )
            )
        except OutOfTime:
            return None, LATE
    return None, ""


def _affordable(p: SearchProblem, here: SearchProblem, best: Trial, clock: Clock) -> SearchProblem:
    """Fewer rows where there are so many columns that even the linear model would take too long."""
    guess, left = _guess(here, LINEAR, best), _left(clock)
    return (
        here
        if guess <= left
        else p.sample(min(len(here.rows), max(MIN_ROWS, int(len(here.rows) * left / guess))))
    )


def _left(clock: Clock) -> float:
    return max(clock.left(COMPARE_SHARE), CHEAP_SHARE * clock.budget)


def _compare(
    here: SearchProblem,
    recipe: Recipe,
    best: Trial,
    clock: Clock,
    found: list[ModelCandidate],
    targets: tuple[TargetTransform, ...],
) -> str:
    """Compare a kind; why not, where time was up on the way. Linear and Fourier features are
    compared to the end."""
    clock.say(f"comparing by cross-validation: {NAMES[recipe.kind].lower()}")
    until = NO_LIMIT
    if recipe.kind in OPTIONAL or here.n_classes > MANY_CLASSES:
        until = Clock(
            max(
                _left(clock),
                PATIENCE * _guess(here, recipe, best) if here.n_classes <= MANY_CLASSES else 0.0,
            )
        )
    try:
        found.append(_candidate(here, recipe, best, until, targets))
    except OutOfTime:
        return LATE
    return ""


def _recipes_to_compare(here: SearchProblem, fourier: Recipe) -> list[Recipe]:
    """The cheap ones first: they are compared however short the time is."""
    return [LINEAR, explicit(here.rows.X), fourier, Recipe("landmarks", fourier.kernel)]


def _candidate(
    here: SearchProblem,
    recipe: Recipe,
    best: Trial,
    until: Clock,
    targets: tuple[TargetTransform, ...],
) -> ModelCandidate:
    known = (
        best
        if recipe is best.recipe
        and best.predicted is not None
        and len(best.predicted) == len(here.rows)
        else None
    )
    size = recipe.size(_asked(here, best), here.rows.X.shape[1], len(here.rows))
    asked = (
        targets if recipe.kind in ("linear", "explicit") or not here.numeric else (best.target,)
    )  # they may want another
    return feature_candidate(here, recipe, size, known, asked, until)


def _skipped(here: SearchProblem, recipe: Recipe, best: Trial, clock: Clock) -> str:
    """Why a kind does not take part; linear and Fourier features always do, and what costs next to
    nothing."""
    if recipe.kind == "explicit" and 4 * here.rows.X.shape[1] > 2 * MAX_EXPLICIT_FEATURES:
        return f"{here.rows.X.shape[1]:,} columns are too many to expand"
    if recipe.kind == "explicit" and recipe.size(
        _asked(here, best), here.rows.X.shape[1], 0
    ) > 2 * budget.max_features(here.memory):
        return NO_ROOM
    crowded = here.n_classes > MANY_CLASSES and recipe.kind != "linear"
    if (recipe.kind in OPTIONAL or crowded) and _left(clock) < _guess(here, recipe, best):
        return NO_TIME
    return ""


def _guess(here: SearchProblem, recipe: Recipe, best: Trial) -> float:
    """Seconds, by what the search took for its best recipe on its rows."""
    size = recipe.size(_asked(here, best), here.rows.X.shape[1], len(here.rows))
    known = len(here.rows) if best.predicted is None else len(best.predicted)
    ratio = _work(len(here.rows), size) / _work(known, best.size)
    return (
        best.seconds
        * ratio
        * (1 if here.numeric else LOGISTIC_COST)
        * (EXPLICIT_COST if recipe.kind == "explicit" else 1)
    )


def _work(n: float, D: float) -> float:
    """Multiplications of an attempt: inner products of features or rows, whichever are fewer, and
    their factors."""
    return n * D * min(n, D) + SOLVES_A_TRIAL * min(n, D) ** 3


def _asked(here: SearchProblem, best: Trial) -> int:
    return best.size if here.numeric else max(best.size, CLASSIFIER_FEATURES)
