"""What is said of a sparse formula beside the holdout: the formula itself, where it is as good as any,
and that there is one to read."""

from __future__ import annotations

from mercer.automl.candidates import ModelCandidate, folds_of
from mercer.automl.choice import best_candidate, within_error
from mercer.automl.formulas import readable, spelled_formula
from mercer.automl.metrics import TITLES, Metric, Score, number
from mercer.automl.study import Study, StudyResult
from mercer.inputs import Array
from mercer.tables.errors import many


def shown_formula(study: Study, found: StudyResult) -> str:
    """The formula in words, where it is the best, or behind it by no more than a standard error of
    the best: of all in the folds, and on the holdout of what was validated on other rows. Nothing
    else, and nothing where a constant is as good."""
    e, pair = found["sparse"], _compared(found)
    if e is None or pair is None or found.kind == "constant":
        return ""
    mine, best = e.evaluation.score, found.chosen.evaluation.score
    if found.validation is not None and not _near(study.metric, mine, best, study.data.held.group):
        return ""
    columns = study.data.columns
    return spelled_formula(e.predictor, columns.target, columns.classes_)


def _compared(found: StudyResult) -> tuple[ModelCandidate, ModelCandidate] | None:
    """The formula and the best in the folds, where it is near that and better than a constant."""
    here, all_of = found.selection.here, found.selection.candidates
    f = next((f for f in all_of if f.kind == "sparse"), None)
    constant = next((f for f in all_of if f.kind == "constant"), None)
    if f is None or (constant is not None and within_error(here, constant, f)):
        return None
    best = best_candidate(here, all_of)
    return (f, best) if _near(here.metric, f.score, best.score, _groups(found)) else None


def _groups(found: StudyResult) -> Array | None:
    here = found.selection.here
    return None if here.rows.group is None else here.rows.group[folds_of(here).tested()]


def _near(metric: Metric, mine: Score, best: Score, groups: Array | None) -> bool:
    """Whether one score is behind another by no more than the standard error of that."""
    return metric.gain(best.value) - metric.gain(mine.value) <= best.shown_error(groups)


def on_formula(study: Study, found: StudyResult) -> str:
    """That there is one to read."""
    e, pair = found["sparse"], _compared(found)
    if e is None or pair is None or not shown_formula(study, found):
        return ""
    said = readable(e.predictor)
    terms = many(0 if said is None else said.n_terms, "term")
    if e.kind == found.kind:
        return f"It is a formula of {terms}, which can be read."
    name = study.metric.name
    mine, best = (number(f.score.value, name) for f in pair)
    error = number(pair[1].score.shown_error(_groups(found)), name)
    if pair[0] is pair[1]:
        return f"A formula of {terms}, which can be read, is the best in cross-validation: {TITLES[name]} {mine}."
    return (
        f"A formula of {terms}, which can be read, is within one standard error of the best in "
        f"cross-validation: {TITLES[name]} {mine}, and {best} ± {error}."
    )
