"""Selection: a short search, baselines, the kernel machine, then every other kind at its best, as
long as there is time; those near the best once more, on other folds; one is chosen, or a mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mercer.automl import budget
from mercer.automl.budget import Clock, OutOfTime
from mercer.automl.candidates import (
    ModelCandidate,
    constant_candidate,
    feature_candidate,
    folds_of,
    machine_candidate,
)
from mercer.automl.choice import choose_candidate
from mercer.automl.crossval import NO_LIMIT
from mercer.automl.ensemble import chosen_or_mean
from mercer.automl.machines import ignore_convergence
from mercer.automl.predictors import IdentityTarget, TargetTransform, transformations
from mercer.automl.readable import compare_formula
from mercer.automl.reasons import LeftOut, in_seconds, out_of_time, took_too_long
from mercer.automl.recipes import LINEAR, MAX_EXPLICIT_FEATURES, NAMES, Recipe, explicit
from mercer.automl.repeats import compared_again
from mercer.automl.search import MANY_CLASSES, SearchProblem, Trial, successive_halving
from mercer.automl.trees import CROSSVAL_PART, TREE_SHARE, fold_seconds, trees_candidate
from mercer.automl.tuning import TunedMachine, tune_machine

# shares of the time by which the search of features, that of a machine, its cross-validation where
# it is in the folds of all, and the others are over
SEARCH_SHARE = 0.1
TUNE_SHARE = 0.48
MACHINE_SHARE = 0.75
COMPARE_SHARE = 0.7
# and that by which a machine, and what was left out before, may yet be compared, less what last fits
# will take: tables that are compared by folds leave most of the time of trees
LATEST_SHARE = 0.95
MACHINE_GUESS = 0.8  # what a cross-validation took, of the guess by one fit
# of the time, as which the whole counts for the others where a machine is validated on more rows
VALIDATED_SHARE = 0.72
# rows on which classifiers of two classes, and of more, are compared
MAX_BINARY_ROWS = 8_000
MAX_MULTICLASS_ROWS = 5_000
# rows up to which a machine of numbers is cross-validated; of classes, those on which all are
# compared
MAX_MACHINE_ROWS = 8_000
MAX_MACHINE_CLASSES = 400  # classes of a machine, each of which is an output
CHEAP_SHARE = 0.05  # share of the time that is always there
FORMULA_SHARE = 0.05  # and the most that a formula may take
OPTIONAL = ("explicit", "landmarks")
MIN_ROWS = 1_000  # rows that are always compared
PATIENCE = 2  # times the guess after which an optional kind is given up
SOLVES_A_TRIAL = 30  # factorisations of an attempt
LOGISTIC_COST = 3  # how much longer logistic regression takes than ridge regression
EXPLICIT_COST = 0.3  # an explicit lift needs less than random features: 0.2 and 0.27 were measured
CLASSIFIER_FEATURES = 640  # their features: beyond 512 their rounds are cheaper
NO_ROOM = "its features would exceed the memory"


@dataclass(frozen=True, eq=False)
class Selection:
    """Who took part, on which rows, who was chosen, and who was left out and why."""

    here: SearchProblem
    candidates: tuple[ModelCandidate, ...]
    chosen: ModelCandidate
    left_out: tuple[LeftOut, ...]
    tuned: TunedMachine | None = (
        # a machine yet to be validated against the chosen one: there are more rows than in the
        # folds
        None
    )
    trees: ModelCandidate | None = None  # on the same folds, where they may join a mean
    tree_seconds: float = 0.0  # that their folds took

    @property
    def short(self) -> dict[str, str]:
        """Those who were left out for want of time or memory, and of which: with more of it they
        would have been tried."""
        return {one.name: one.lack for one in self.left_out if one.lack}


def select_candidate(p: SearchProblem, clock: Clock, memory: float = 4e9) -> Selection:
    """Every kind on the same rows and folds; a machine only where those are all rows, see
    `mercer.automl.validate`."""
    best, here = successive_halving(p, clock, SEARCH_SHARE)
    most = MAX_BINARY_ROWS if p.n_classes == 2 else MAX_MULTICLASS_ROWS
    most = MAX_MACHINE_ROWS if p.numeric else most
    here = p if len(p.rows) <= most else here if p.numeric else p.sample(min(len(here.rows), most))
    here = _affordable(p, _held(p, here), best, clock)
    clock.say(f"comparing by cross-validation on {len(here.rows):,} rows")
    found, left_out = [constant_candidate(here)], list[LeftOut]()
    targets = tuple(transformations(p.rows.y)) if p.numeric else (IdentityTarget(),)
    first, *others = _recipes_to_compare(here, best.recipe)
    _compare(here, first, best, clock, found, targets)
    tuned, why = _machine(p, here, best, clock, memory, found)
    optional = OPTIONAL if tuned is None else (*OPTIONAL, "fourier")
    if _validated(p, here):  # what is left is for fits to more rows
        clock = replace(clock, budget=VALIDATED_SHARE * clock.budget)
    until = Clock(min(_left(clock), FORMULA_SHARE * clock.budget), clock.say)
    left_out += [] if p.sums else compare_formula(here, until, found, targets)
    for recipe in others:
        late = _skipped(here, recipe, best, clock, optional) or _compare(
            here, recipe, best, clock, found, targets, optional
        )
        left_out += [late] if late else []
    left_out += [why] if why else []
    if tuned is not None and _validated(p, here):
        chosen = choose_candidate(here, found)
        return Selection(here, tuple(found), chosen, tuple(left_out), tuned)
    if p.sums:
        return Selection(here, tuple(found), choose_candidate(here, found), tuple(left_out))
    found = compared_again(here, found, tuned, clock, memory)
    clock.say("comparing by cross-validation: gradient-boosted trees")
    watch = Clock(0)
    needs = [guess for one in left_out if (guess := _needed(here, one, others, best)) is not None]
    own = CROSSVAL_PART * TREE_SHARE * clock.budget
    trees = trees_candidate(here, fold_seconds(own, spare_seconds(clock, found), needs))
    took = watch.spent
    kept = [
        late
        for one in left_out
        if (late := _late(here, one, others, best, clock, found, targets)) is not None
    ]
    found, chosen = chosen_or_mean(here, found, trees)
    return Selection(here, tuple(found), chosen, tuple(kept), None, trees, took)


def _late(
    here: SearchProblem,
    one: LeftOut,
    recipes: list[Recipe],
    best: Trial,
    clock: Clock,
    found: list[ModelCandidate],
    targets: tuple[TargetTransform, ...],
) -> LeftOut | None:
    """Compare what was left out for want of time, where the others took less than they might have;
    why not, where there is none yet."""
    recipe = next((r for r in recipes if r.kind == one.kind), None)
    guess, left = _needed(here, one, recipes, best), spare_seconds(clock, found)
    if recipe is None or guess is None:
        return one
    if guess > left:
        return replace(one, why=out_of_time(one.kind, guess, left).why)
    return _compare(here, recipe, best, clock, found, targets, (one.kind,), left)


def _needed(here: SearchProblem, one: LeftOut, recipes: list[Recipe], best: Trial) -> float | None:
    """Seconds that what was left out for want of time would take; None where it may not be compared
    later."""
    recipe = next((r for r in recipes if r.kind == one.kind), None)
    if one.lack != "time" or one.given_up or recipe is None:
        return None
    return _guess(here, recipe, best)


def spare_seconds(clock: Clock, found: Sequence[ModelCandidate]) -> float:
    """What is left of the time for comparisons, once each has been fitted to all rows, which takes
    no longer than its cross-validation."""
    return clock.left(LATEST_SHARE) - sum(f.seconds for f in found)


def _validated(p: SearchProblem, here: SearchProblem) -> bool:
    """Whether a machine is validated on rows set aside: there are more than are compared by
    folds."""
    return len(p.rows) > len(here.rows) or len(p.rows) > MAX_MACHINE_ROWS


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
) -> tuple[TunedMachine | None, LeftOut | None]:
    """The machine that was tuned, which is among the candidates where it is compared by the folds
    of all; and why there is none."""
    if p.sums:
        return None, LeftOut("machine", "it is no sum over partitions")
    if clock.left(MACHINE_SHARE) <= 0:
        what = f"what comes before it took {in_seconds(clock.spent)} of {in_seconds(clock.budget)}"
        return None, LeftOut("machine", what, "time")
    if p.n_classes > MAX_MACHINE_CLASSES:
        return None, LeftOut("machine", f"{p.n_classes:,} classes are too many for it")
    if p.n_classes and len(np.unique(here.rows.y)) < 2:
        return None, LeftOut("machine", "the rows have one class")
    share = VALIDATED_SHARE * TUNE_SHARE if _validated(p, here) else TUNE_SHARE
    until = max(share, clock.spent / clock.budget + CHEAP_SHARE)
    with ignore_convergence():
        tuned = tune_machine(p, best.target, clock, until, memory)
        if _validated(p, here):
            return tuned, None
        guess, left = _machine_guess(here, tuned), _machine_left(here, tuned, clock)
        if guess > left:  # a mean of machines takes too long: the best of them may not
            tuned = tuned.alone()
            guess, left = _machine_guess(here, tuned), _machine_left(here, tuned, clock)
        if guess > left:
            return tuned, out_of_time("machine", guess, left)
        clock.say(f"comparing by cross-validation: {NAMES['machine'].lower()}")
        patient = min(PATIENCE * guess, max(clock.left(), guess))
        until_then = Clock(max(clock.left(MACHINE_SHARE), patient))
        try:
            found.append(machine_candidate(here, tuned, memory, until_then))
        except OutOfTime:
            return tuned, took_too_long("machine", until_then.spent)
    return tuned, None


def _machine_guess(here: SearchProblem, tuned: TunedMachine) -> float:
    """Seconds of its cross-validation."""
    folds = len(folds_of(here).plan)
    rows = int(len(here.rows) * (folds - 1) / folds)
    return MACHINE_GUESS * folds * tuned.guess(rows, rows)


def _machine_left(here: SearchProblem, tuned: TunedMachine, clock: Clock) -> float:
    """Seconds for that, less a fit to all rows, if it is chosen."""
    last = tuned.guess(len(here.rows), len(here.rows))
    most = max(clock.left(MACHINE_SHARE), clock.left(LATEST_SHARE) - last)
    return max(most, CHEAP_SHARE * clock.budget)


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
    optional: tuple[str, ...] = OPTIONAL,
    spare: float = 0.0,
) -> LeftOut | None:
    """Compare a kind; why not, where time was up on the way. The linear model, and Fourier features
    where there is no machine, are compared to the end."""
    clock.say(f"comparing by cross-validation: {NAMES[recipe.kind].lower()}")
    until = NO_LIMIT
    if recipe.kind in optional or here.n_classes > MANY_CLASSES:
        patient = PATIENCE * _guess(here, recipe, best) if here.n_classes <= MANY_CLASSES else 0.0
        most = max(_left(clock), min(patient, _left(clock) + CHEAP_SHARE * clock.budget))
        until = Clock(spare or most)
    try:
        found.append(_candidate(here, recipe, best, until, targets))
    except OutOfTime:
        return took_too_long(recipe.kind, until.spent)
    return None


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
    known = best if _is_known(here, recipe, best) else None
    size = recipe.size(_asked(here, best), here.rows.X.shape[1], len(here.rows))
    asked = (
        targets if recipe.kind in ("linear", "explicit") or not here.numeric else (best.target,)
    )  # they may want another
    return feature_candidate(here, recipe, size, known, asked, until)


def _is_known(here: SearchProblem, recipe: Recipe, best: Trial) -> bool:
    """Whether the search had it on these rows."""
    told = best.predicted
    return recipe is best.recipe and told is not None and len(told) == len(here.rows)


def _skipped(
    here: SearchProblem,
    recipe: Recipe,
    best: Trial,
    clock: Clock,
    optional: tuple[str, ...] = OPTIONAL,
) -> LeftOut | None:
    """Why a kind does not take part; linear and Fourier features do where there is no machine, and
    what costs next to nothing."""
    if recipe.kind == "explicit" and 4 * here.rows.X.shape[1] > 2 * MAX_EXPLICIT_FEATURES:
        return LeftOut(recipe.kind, f"{here.rows.X.shape[1]:,} columns are too many to expand")
    if recipe.kind == "explicit" and recipe.size(
        _asked(here, best), here.rows.X.shape[1], 0
    ) > 2 * budget.max_features(here.memory):
        return LeftOut(recipe.kind, NO_ROOM, "memory")
    crowded = here.n_classes > MANY_CLASSES and recipe.kind != "linear"
    if recipe.kind not in optional and not crowded:
        return None
    left, guess = _left(clock), _guess(here, recipe, best)
    return out_of_time(recipe.kind, guess, left) if left < guess else None


def _guess(here: SearchProblem, recipe: Recipe, best: Trial) -> float:
    """Seconds, by what the search took for its best recipe on its rows; none of numbers that it
    had on these."""
    if here.numeric and _is_known(here, recipe, best):
        return 0.0
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
