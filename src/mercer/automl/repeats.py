"""Those near the best once more, on other folds, while there is time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mercer.automl.budget import Clock
from mercer.automl.candidates import (
    ModelCandidate,
    constant_candidate,
    feature_candidate,
    machine_candidate,
)
from mercer.automl.choice import best_candidate, mean_score
from mercer.automl.machines import ignore_convergence
from mercer.automl.metrics import Score, difference_error
from mercer.automl.predictors import IdentityTarget, TargetTransform
from mercer.automl.readable import formula_candidate
from mercer.automl.search import SearchProblem
from mercer.automl.tuning import TunedMachine
from mercer.inputs import Array

REPEAT_SHARE = 0.75  # of the time, by which repeats are over
PATIENCE = 2  # times what the first folds took must be left
N_REPEATS = 3  # of the folds, while there is time
MAX_REPEATED_ROWS = 4_000  # rows, beyond which folds tell enough
NEAR = 2.0  # standard errors behind the best, within which candidates are compared again


def compared_again(
    here: SearchProblem,
    found: list[ModelCandidate],
    tuned: TunedMachine | None,
    clock: Clock,
    memory: float,
) -> list[ModelCandidate]:
    """With the mean score over repeated folds, of those that are near the best, while there is
    time; the folds of a time are what they are."""
    if here.rows.time is not None or len(here.rows) > MAX_REPEATED_ROWS:
        return found
    best = best_candidate(here, found)
    near = [f for f in found if f is best or _near(here, f, best)]
    told = {f.kind: [(f.score, f.predicted)] for f in near}
    cost = sum(f.seconds for f in near)
    for repeat in range(1, N_REPEATS):
        if len(near) < 2 or PATIENCE * cost > clock.left(REPEAT_SHARE):
            break
        clock.say(f"comparing {len(near)} models again, on other folds")
        other = replace(here, seed=here.seed + 1000 * repeat)
        for f in near:
            again = _repeated(other, f, tuned, memory)
            told[f.kind].append((again.score, again.predicted))
    return [_over_repeats(f, told.get(f.kind, [])) for f in found]


def _over_repeats(f: ModelCandidate, told: Sequence[tuple[Score, Array | None]]) -> ModelCandidate:
    """With the mean score of them."""
    if len(told) < 2:
        return f
    return replace(f, score=mean_score([score for score, _ in told]), repeats=tuple(told))


def _near(here: SearchProblem, f: ModelCandidate, best: ModelCandidate) -> bool:
    gap = here.metric.gain(best.score.value) - here.metric.gain(f.score.value)
    error = difference_error(f.score, best.score, None)
    return bool(np.isfinite(gap) and gap <= NEAR * error and f.kind != "constant")


def _repeated(
    other: SearchProblem, f: ModelCandidate, tuned: TunedMachine | None, memory: float
) -> ModelCandidate:
    """The same on other folds."""
    if f.kind == "machine":
        assert tuned is not None
        with ignore_convergence():
            return machine_candidate(other, tuned, memory)
    if f.recipe is None:
        return constant_candidate(other)
    if f.kind == "sparse":
        return formula_candidate(other, f.size, (_untold(f.target),))
    return feature_candidate(other, f.recipe, f.size, targets=(_untold(f.target),))


def _untold(target: TargetTransform) -> TargetTransform:
    """Without the retransformation, which folds tell themselves."""
    return target if isinstance(target, IdentityTarget) else type(target)(target.shift)
