"""What is said of boosted trees beside the holdout: that they were ahead before it, why they are in
no mean, and why there are none."""

from __future__ import annotations

import math

import numpy as np

from mercer.automl.candidates import folds_of
from mercer.automl.choice import paired_scores
from mercer.automl.metrics import Score, difference, number
from mercer.automl.reasons import in_seconds
from mercer.automl.recipes import N_ROUNDS, NAMES
from mercer.automl.study import FittedCandidate, Study, StudyResult
from mercer.automl.trees import CROSSVAL_PART, TREE_SHARE, VALIDATION_PART, least_seconds
from mercer.inputs import Array


def trees_ahead(study: Study, found: StudyResult) -> str:
    """That trees alone, which are never chosen, were better on the rows by which was chosen: of a
    mean that they are in, whenever it is so, else by more than the error; nothing elsewhere."""
    pair = _before(study, found)
    if pair is None:
        return ""
    mine, theirs, groups, where = pair
    shown = [number(s.value, study.metric.name) for s in (theirs, mine)]
    gaps = [study.metric.gain(v) for v in difference(theirs, mine, groups)]
    within = "trees" in dict(found.members)
    if not (gaps[0] > 0 and shown[0] != shown[1] and (within or min(gaps) > 0)):
        return ""
    who = "the mean" if found.members else NAMES[found.kind].lower()
    what = f"{where} trees alone scored {shown[0]} and {who} {shown[1]}"
    return f"{what}: trees may be part of a mean, and are never chosen alone."


def _before(study: Study, found: StudyResult) -> tuple[Score, Score, Array | None, str] | None:
    """The scores of the chosen one and of trees on the rows by which was chosen."""
    v, by_folds = found.validation, found.selection.trees
    if v is not None:
        if v.trees is None or v.told is None or v.y is None:
            return None
        mine = study.metric(v.y, v.told, v.row_weights)
        return mine, v.trees.score, v.groups, "On the validation rows"
    if by_folds is None:
        return None
    here = found.selection.here
    groups = None if here.rows.group is None else here.rows.group[folds_of(here).tested()]
    return *paired_scores(found.selection.chosen, by_folds), groups, "In cross-validation"


def why_in_no_mean(study: Study, found: StudyResult) -> str:
    """Why trees that were grown could be part of no mean, and what more time would do; nothing
    where they could."""
    e, v = found["trees"], found.validation
    if e is None or found.selection.trees is not None or (v is not None and v.trees is not None):
        return ""
    name = f"{NAMES['trees']} could be part of no mean"
    if study.room_for_trees < len(study.problem.rows):
        return f"{name}: memory holds {study.room_for_trees:,} rows of theirs (--memory)."
    spent = found.selection.tree_seconds
    need, part = _needed_seconds(found, e), CROSSVAL_PART if v is None else VALIDATION_PART
    had = max(spent, part * TREE_SHARE * study.clock.budget)
    times = max(2, math.ceil(need / had))
    rows = "folds" if v is None else "validation rows"
    what = f"those of the {rows} would have taken about {in_seconds(need)}"
    return f"{name}: {what}, and {in_seconds(had)} were theirs; about {times:,} times the time (--time) would do."


def _needed_seconds(found: StudyResult, e: FittedCandidate) -> float:
    """Of folds or of one fit, by what the trees of all rows took."""
    rounds = N_ROUNDS if e.growth is None else max(e.growth.rounds, 1)
    one = (e.seconds - found.selection.tree_seconds) * N_ROUNDS / rounds
    folds = len(folds_of(found.selection.here).plan)
    return one if found.validation is not None else one * (folds - 1)


def why_no_trees(study: Study) -> str:
    """Why none were grown."""
    if not study.room_for_trees:
        return "their sums would exceed the memory"
    if len(np.unique(study.data.train.y)) < 2:
        return "the training rows have one class"
    least, theirs = least_seconds(study.n_classes), TREE_SHARE * study.clock.budget
    need = f"{study.n_classes:,} classes would have taken at least {in_seconds(least)}"
    return f"{need}, and {in_seconds(theirs)} of the time are theirs"
