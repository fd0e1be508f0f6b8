"""The verdict: one to three plain sentences on what the holdout showed, also where others did
better; and what to be wary of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mercer.automl.candidates import folds_of
from mercer.automl.data import FEW_DUPLICATES, TableData
from mercer.automl.decisions import why_decided
from mercer.automl.evaluate import Decision
from mercer.automl.formula_words import on_formula
from mercer.automl.metrics import IN_UNITS, TITLES, Metric, Score, difference, number
from mercer.automl.rare import rare_warnings
from mercer.automl.recipes import NAMES
from mercer.automl.search import SearchProblem
from mercer.automl.study import FittedCandidate, Study, StudyResult
from mercer.automl.tree_words import trees_ahead, why_in_no_mean, why_no_trees
from mercer.inputs import Array
from mercer.tables.errors import many

# standard errors between the scores of cross-validation and holdout, from which on they disagree
MAX_DISAGREEMENT = 3.0
# times the rows of cross-validation, from which on a better score needs no other explanation
MORE_ROWS = 1.15
NEGLIGIBLE = 0.02  # a difference below this, of errors relative, is none to speak of


@dataclass(frozen=True)
class Rival:
    """Another model on the same rows: its name, its score, and the chosen one's score minus it with
    an interval."""

    name: str
    value: float
    difference: tuple[float, float, float]
    handicap: str = (
        ""  # what it had less of than the chosen one, which makes a comparison say nothing
    )


def sentence(
    metric: Metric, name: str, value: float, low: float, high: float, rows: int, copies: int = 0
) -> str:
    """The number, its interval and what it rests on."""
    shown = [number(v, metric.name) for v in (value, low, high)]
    interval = f"95 % interval {shown[1]} to {shown[2]}"
    apart = (
        f", {copies:,} of them copies of training rows"
        if copies
        else " that nothing was fitted or chosen on"
    )
    return f"{name}: {TITLES[metric.name]} {shown[0]} ({interval}) on {many(rows, 'row')}{apart}."


def against_linear(metric: Metric, rival: Rival) -> str:
    """What the lift added."""
    state, amount = _state(metric, rival)
    if state != "worse" and rival.handicap:
        return f"A linear model was {rival.handicap}, so nothing is said of it."
    if state == "better":
        return (
            f"That is better than a linear model ({number(rival.value, metric.name)}) by {amount}."
        )
    if state == "worse":
        return f"A linear model did better on these rows ({number(rival.value, metric.name)}, by {amount})."
    return _even(metric, rival, "A linear model", "is")


def against_trees(metric: Metric, rival: Rival) -> str:
    """Where trees win, it is said."""
    state, amount = _state(metric, rival)
    shown = number(rival.value, metric.name)
    if state == "even" and rival.handicap and metric.gain(rival.difference[0]) < 0:
        amount = number(abs(rival.difference[0]), metric.name)
        far = f"higher by {amount}" if metric.higher_is_better else f"lower by {amount}"
        even_so = f"and even so scored {shown}, {far}, which is within its error"
        return f"Gradient-boosted trees were {rival.handicap}, {even_so}; with more they may win."
    if state != "worse" and rival.handicap:
        return f"Gradient-boosted trees were {rival.handicap}, so nothing is said of them."
    if state == "worse":
        even_so = f", though {rival.handicap}" if rival.handicap else ""
        return f"Gradient-boosted trees are better here{even_so}: {shown}, by {amount}; if this score is all that counts, use them."
    if state == "better":
        return f"It also beats gradient-boosted trees ({shown}) by {amount}."
    return _even(metric, rival, "Gradient-boosted trees", "are")


def _even(metric: Metric, rival: Rival, who: str, verb: str) -> str:
    """About as good where the scores are near; where they are far apart, that the rows are too few
    to tell."""
    shown, gap = number(rival.value, metric.name), abs(rival.difference[0])
    if _same(metric, rival):
        return f"{who} {verb} as good ({shown}): there is no difference in the digits shown."
    if gap <= NEGLIGIBLE * (abs(rival.value) if metric.name in IN_UNITS else 1.0):
        return f"{who} {verb} about as good ({shown}): the difference is within its error."
    far = f"the difference of {number(gap, metric.name)} is within its error"
    return f"{who} scored {shown}; {far}, so these rows do not tell which is better."


def _same(metric: Metric, rival: Rival) -> bool:
    """Whether the scores, or all of what is between them, are the same in the digits shown."""
    gap = rival.difference[0]
    mine, other, between = (
        number(value, metric.name) for value in (rival.value + gap, rival.value, gap)
    )
    return mine == other or not between.strip("-0.,")


def _state(metric: Metric, rival: Rival) -> tuple[str, str]:
    """Better, worse or neither, by whether the interval of the difference leaves zero out; and by
    how much.

    Scores that are equal in all digits shown, as of exact fits, are even, whatever rounding leaves
    between them.
    """
    value, low, high = (metric.gain(v) for v in rival.difference)
    low, high = min(low, high), max(low, high)
    state = (
        "even" if _same(metric, rival) else "better" if low > 0 else "worse" if high < 0 else "even"
    )
    return (
        state,
        f"{number(abs(value), metric.name)} ({' to '.join(number(v, metric.name) for v in sorted((abs(low), abs(high))))})",
    )


def verdict(
    metric: Metric,
    kind: str,
    first: str,
    linear: Rival | None,
    trees: Rival | None,
    doubted: Sequence[str] = (),
    short: Mapping[str, str] | None = None,
    alone: bool = False,
) -> str:
    """All of it; `doubted` names the models whose score on the holdout is not what cross-validation
    led to expect, `short` those that were left out and of what there was too little, and `alone`
    tells that nothing more flexible than the chosen one was tried.
    """
    parts = [*([_doubtful(doubted, kind)] if doubted else []), first]
    if kind in ("constant", "linear"):
        parts.append(_kept(kind, short or {}, alone))
    elif linear is not None:
        parts.append(against_linear(metric, linear))
    parts += [against_trees(metric, trees)] if trees is not None else []
    return " ".join(parts)


def _doubtful(names: Sequence[str], kind: str) -> str:
    """Which scores disagree; where that of the chosen one or of the linear one does, nothing is
    firm."""
    whom = " and of ".join(name.lower() for name in names)
    rests = {NAMES[kind], NAMES["linear"]} & set(names)
    so = ", so none of this is firm" if rests else ""
    return f"Cross-validation and holdout disagree on the score of {whom}{so}: see the warnings."


def _kept(kind: str, short: Mapping[str, str], alone: bool) -> str:
    """Why a constant or the linear model was kept: nothing is said of models that were never
    tried."""
    lack = " and ".join(sorted(set(short.values()), reverse=True))
    remedy = f"give more {lack} ({' and '.join('--' + what for what in lack.split(' and '))})"
    if short and alone:
        what = (
            "Nothing but a constant"
            if kind == "constant"
            else "Nothing more flexible than the linear model"
        )
        return f"{what} could be tried in the {lack} given, so this does not tell what the columns are worth: {remedy}."
    left = (
        f" Not tried, for want of {lack}: {', '.join(short).lower()}; {remedy} to have them compared."
        * bool(short)
    )
    if kind == "constant":
        end = "." if short else ": these columns tell little of the target."
        return (
            f"By cross-validation nothing that was tried predicts better than a constant{end}{left}"
        )
    tried = "that was tried " * bool(short)
    return f"Nothing more flexible {tried}was better by more than its error in cross-validation, so the linear model was kept.{left}"


def disagreement(
    metric: Metric,
    name: str,
    holdout: float,
    cv: float,
    errors: float,
    where: str = "in cross-validation",
) -> str:
    """Two scores of one model that are further apart than chance explains."""
    title, shown = TITLES[metric.name], [number(v, metric.name) for v in (holdout, cv)]
    what = f"{name} has {title} {shown[0]} on the holdout but {shown[1]} {where}, {errors:.0f} standard errors apart"
    why = "more than chance: a few odd rows may decide the score, or the held-out rows may differ"
    return f"cross-validation and holdout disagree: {what}; {why}: rely on neither number before you know."


def tested_groups(found: StudyResult) -> Array | None:
    """The groups of the rows that cross-validation tests."""
    here = found.selection.here
    return None if here.rows.group is None else here.rows.group[folds_of(here).tested()]


def verdict_of(study: Study, found: StudyResult) -> str:
    """The verdict on what a study has chosen."""
    e = found.chosen
    shown = (
        e.evaluation.score.value,
        e.evaluation.low,
        e.evaluation.high,
        len(study.data.held),
        study.data.alarming,
    )
    first = sentence(study.metric, named(e.kind, found.members), *shown)
    linear, trees = (_rival(study, e, found[kind]) for kind in ("linear", "trees"))
    doubted, more = [name for name, _ in doubts(study, found)], _more_flexible(found)
    short = found.selection.short
    text = verdict(study.metric, e.kind, first, linear, trees, doubted, short, not more)
    return " ".join(filter(None, (text, trees_ahead(study, found), on_formula(study, found))))


def named(kind: str, members: Sequence[tuple[str, float]] = ()) -> str:
    """The name of a model, of a mean with those that it is of and their weights.

    >>> named("linear"), named("ensemble", (("machine", 0.35), ("trees", 0.65)))
    ('Linear', 'Mean of models (0.35 kernel machine and 0.65 gradient-boosted trees)')
    """
    parts = [f"{weight:.2f} {NAMES[each].lower()}" for each, weight in members]
    return f"{NAMES[kind]} ({', '.join(parts[:-1])} and {parts[-1]})" if parts else NAMES[kind]


def _more_flexible(found: StudyResult) -> bool:
    """Whether anything more flexible than a constant, or than a linear model where that was chosen,
    was compared with it."""
    simple = ("constant",) if found.kind == "constant" else ("constant", "linear")
    return found.selection.tuned is not None or any(
        f.kind not in simple for f in found.selection.candidates
    )


@dataclass(frozen=True, eq=False)
class ExpectedScore:
    """What a model was expected to score: by cross-validation, or on validation rows."""

    score: Score
    groups: Array | None
    rows: int  # that it was fitted to then
    where: str = "in cross-validation"


def doubts(study: Study, found: StudyResult) -> list[tuple[str, str]]:
    """The models that were fitted whose scores by cross-validation, or on validation rows, and on
    the holdout disagree, and how; the chosen one first. Of a constant that was not chosen nothing
    is said.

    The holdout may well be better for a model that was fitted to more rows than cross-validation
    had, unless it is linear.
    """
    out = []
    for e in sorted(found.entries, key=lambda e: e.kind != found.kind):
        wanted = _expected(study, found, e.kind)
        if wanted is None or (e.kind == "constant" and e.kind != found.kind):
            continue
        mine, cv = e.evaluation.score, wanted.score
        error = float(
            np.linalg.norm(
                [
                    mine.error(study.data.held.group),
                    cv.error(wanted.groups),
                    *(1 / s.count for s in (mine, cv) if s.count),
                ]
            )
        )
        gap = study.metric.gain(mine.value) - study.metric.gain(cv.value)
        more = e.rows > MORE_ROWS * wanted.rows and e.kind not in ("linear", "constant")
        same = number(mine.value, study.metric.name) == number(cv.value, study.metric.name)
        if (
            np.isfinite(gap)
            and abs(gap) > MAX_DISAGREEMENT * error
            and not ((gap > 0 and more) or same)
        ):
            name, far = NAMES[e.kind], abs(gap) / max(error, 1e-12)
            said = (mine.value, cv.value, far, wanted.where)
            out.append((name, disagreement(study.metric, name, *said)))
    return out


def _expected(study: Study, found: StudyResult, kind: str) -> ExpectedScore | None:
    """Of validation rows for what was chosen by them, and for a machine that met another there;
    else by the folds. None of trees, which are compared on the holdout alone."""
    v = found.validation
    if v is not None and kind in (found.kind, "machine"):
        told = v.told if kind == found.kind else v.machine.told
        if told is not None and v.y is not None:
            score = study.metric(v.y, told, v.row_weights)
            rows = (v.winner if kind == found.kind else v.machine).rows
            return ExpectedScore(score, v.groups, rows, "on the validation rows")
    f = next((f for f in found.selection.candidates if f.kind == kind), None)
    here = found.selection.here
    if f is not None and here.rows.time is not None and f.predicted is not None:
        return _last_fold(here, f.predicted)
    return None if f is None else ExpectedScore(f.score, tested_groups(found), len(here.rows))


def _last_fold(here: SearchProblem, told: Array) -> ExpectedScore:
    """By the last fold of a time alone: those before learnt from fewer rows."""
    split = folds_of(here)
    train, test = split.split(len(split.plan) - 1)
    rows = here.rows.take(test)
    score = here.metric(rows.y, told[test], rows.weight)
    return ExpectedScore(score, rows.group, len(train), "in the last fold by time")


def _rival(study: Study, e: FittedCandidate, other: FittedCandidate | None) -> Rival | None:
    if other is None or other is e:
        return None
    gap = difference(e.evaluation.score, other.evaluation.score, study.data.held.group)
    fewer = other.rows < e.rows
    handicap = other.handicap or (
        f"{'grown' if other.kind == 'trees' else 'fitted'} on only {other.rows:,} rows"
        if fewer
        else ""
    )
    return Rival(NAMES[other.kind], other.evaluation.score.value, gap, handicap)


def warnings_of(study: Study, found: StudyResult, decision: Decision) -> tuple[str, ...]:
    """What to be wary of: doubts, copies, classes and groups on one side or both, and what was not
    tried."""
    told, data = (
        [*(text for _, text in doubts(study, found)), *study.data.columns.warnings_],
        study.data,
    )
    equal = f"{data.duplicates:,} of {many(len(data.held), 'holdout row')}"
    if data.alarming:
        are = (
            "is an exact copy of a training row"
            if data.duplicates == 1
            else "are exact copies of training rows"
        )
        told.insert(0, f"{equal} {are}; the score may be too good.")
    elif data.duplicates:
        usual = f"about {data.expected_duplicates:,.0f} would by chance, as columns have few values"
        equals = "equals a training row" if data.duplicates == 1 else "equal training rows"
        told.append(
            f"{equal} {equals}; {usual if data.explained else 'too few to change the score much'}."
        )
    if data.unknown:
        one = data.unknown == 1
        what = f"{many(data.unknown, 'held-out row')} {'has' if one else 'have'} a class that no training row has"
        told.append(f"{what}; {'it was' if one else 'they were'} left out of the score.")
    told += [text for text in [why_decided(found, decision, data.columns.classes_)] if text]
    told += rare_warnings(data.held, data.columns.classes_)
    told += [text for text in [why_in_no_mean(study, found)] if text]
    told += [one.sentence for one in found.selection.left_out]
    if found["trees"] is None:
        told.append(f"{NAMES['trees']} were not grown for comparison: {why_no_trees(study)}.")
    both = _shared_groups(data)
    if both:
        what = "group" if data.columns.group else "text"
        are = f"{what} is" if both == 1 else f"{what}s are"
        told.append(
            f"{both:,} {are} in the training data and in the holdout; the score may be too good."
        )
    return tuple(told)


def _shared_groups(data: TableData) -> int:
    """Groups on both sides; of equal texts none where they are too few to change a score."""
    sides: list[Array | None] = [data.train.group, data.held.group]
    if sides[0] is None or sides[1] is None:
        return 0
    both = len(np.intersect1d(sides[0], sides[1]))
    return both if data.columns.group or both > FEW_DUPLICATES * len(data.held) else 0
