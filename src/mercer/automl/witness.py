"""The witness: what a study found, put down as evidence."""
from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from mercer.automl import evaluate, intervals, metrics, verdict
from mercer.automl.candidates import Finalist, split_of
from mercer.automl.data import Gathered, numbered
from mercer.automl.evaluate import Decision, for_rare
from mercer.automl.frames import Table
from mercer.automl.intervals import Margin
from mercer.automl.predictors import Constant, Predictor, Regressor
from mercer.automl.recipes import NAMES
from mercer.automl.result import Contender, Evidence
from mercer.automl.study import Entry, Found, Study
from mercer.inputs import Array
from mercer.tables.errors import many

APART = 3.0  # standard errors between the scores of cross-validation and holdout, from which on they disagree
MORE = 1.25  # times the rows of cross-validation, from which on a better score needs no other explanation


def evidence(
    study: Study, found: Found, margin: Margin | None, decision: Decision, source: Table, command: str, wider: Array | float = 1.0,
    keep_rows: bool = True,
) -> Evidence:  # fmt: skip
    """Everything but what is measured of the finished model; `source` holds the held-out rows, whose intervals are `wider`.

    Where rows are not to be kept, neither the worst of them nor pairs of actual and predicted values are put down.
    """
    e, columns, held = found.chosen, study.data.columns, study.data.held
    f, classes, linear = e.judged.predicted, columns.classes_, found["linear"]
    codes = decision(f) if classes else None
    names = [t.name for t in columns.treatments_]
    return Evidence(
        version=version("mercer"), command=command, seed=study.seed, created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=columns.target, task=columns.task_, task_reason=columns.task_reason_, classes=classes,
        metric=study.metric.name, higher_is_better=study.metric.higher_is_better, metric_note=_metric_note(study, e, decision),
        rows_train=len(study.data.train), rows_holdout=len(held), rows_dropped=study.data.dropped, holdout_rule=study.data.rule,
        contenders=_contenders(found), verdict=_verdict(study, found),
        lift_gain=None if linear is None or e is linear else metrics.difference(e.judged.score, linear.judged.score, held.unit),
        importance=evaluate.importance(e.predictor, held, study.metric, columns.origin_, names, study.seed),
        columns=tuple(t.as_dict() for t in columns.treatments_), warnings=_warnings(study, found, decision),
        worst=tuple(_with_values(evaluate.worst(held, f, classes, codes), source, columns)) if keep_rows else (),
        points=() if classes or not keep_rows else evaluate.points(held, f, study.seed),
        interval=None if margin is None else intervals.told(held, f, margin, target_of(e.predictor), study.seed, wider),
        confusion=evaluate.confusion(held.y, codes, len(classes)) if codes is not None else (),
        calibration=evaluate.calibration(held.y, f) if classes else (),
        model_bytes=0, latency_row_ms=0.0, latency_1000_ms=0.0, seconds=0.0, memory_peak_bytes=None, plan=_plan(e.predictor),
        scores=_scores(study, e, decision), decision=_decision(decision, classes),
    )  # fmt: skip


def decision(study: Study, found: Found) -> Decision:
    """Where one of two classes is so rare that accuracy was not the metric, a threshold that finds it."""
    chosen = found.contest.chosen
    if study.why and found.known is not None:
        return for_rare(*found.known)
    if not study.why or chosen.probabilities is None:
        return Decision()
    return for_rare(study.problem.sample(len(chosen.probabilities)).rows.y, chosen.probabilities)


def target_of(predictor: Predictor) -> Any:
    """The transformation of the target that a predictor fits."""
    return predictor.target if isinstance(predictor, Regressor) else None


def _scores(study: Study, e: Entry, decision: Decision) -> dict[str, float]:
    """Every metric of the task, of the numbers, probabilities and classes that the model predicts for the holdout."""
    held, f = study.data.held, e.judged.predicted
    able = [m for m in metrics.METRICS.values() if m.task == study.metric.task]
    if not study.n_classes:
        return {m.name: m(held.y, f, held.weight).value for m in able}
    return {m.name: m.decided(held.y, f, decision(f), held.weight).value for m in able}


def _decision(decision: Decision, classes: tuple[str, ...]) -> dict[str, Any] | None:
    return {"class": classes[decision.code], "threshold": decision.threshold} if len(classes) == 2 else None


def _metric_note(study: Study, e: Entry, decision: Decision) -> str:
    """What the metric means, why it was chosen, and for classes the others beside it."""
    note = study.metric.note + (f"; chosen because {study.why}" if study.why else "")
    if not study.n_classes:
        return note
    values, others = _scores(study, e, decision), [m for m in ("accuracy", "log_loss", "auc") if m != study.metric.name]
    return f"{note}; also " + ", ".join(f"{verdict.TITLES[m]} {verdict.number(values[m], m)}" for m in others)


def _contenders(found: Found) -> tuple[Contender, ...]:
    finalists = {f.kind: f for f in found.contest.found}
    units = _units(found)
    return tuple(_contender(kind, found[kind], finalists.get(kind), found, units) for kind in NAMES if kind in finalists or found[kind])


def _units(found: Found) -> Array | None:
    """The groups of the rows that cross-validation tests."""
    here = found.contest.here
    return None if here.rows.unit is None else here.rows.unit[split_of(here).tested()]


def _contender(kind: str, e: Entry | None, f: Finalist | None, found: Found, units: Array | None) -> Contender:
    detail = e.detail if e else f.recipe.detail(f.size) if f and f.recipe else ""
    note = e.note if e else "cross-validated only: no time was left to fit it to all rows"
    cv, error = (f.score.value, f.score.error(units)) if f else (None, None)
    holdout, low, high = (e.judged.score.value, e.judged.low, e.judged.high) if e else (None, None, None)
    seconds = e.seconds if e else f.seconds if f else 0.0
    return Contender(NAMES[kind], kind, detail, cv, error, holdout, low, high, seconds, kind == found.kind, note)


def _verdict(study: Study, found: Found) -> str:
    e = found.chosen
    shown = (e.judged.score.value, e.judged.low, e.judged.high, len(study.data.held), study.data.alarming)
    first = verdict.sentence(study.metric, NAMES[e.kind], *shown)
    linear, trees = (_rival(study, e, found[kind]) for kind in ("linear", "trees"))
    doubted, more = [name for name, _ in doubts(study, found)], _more_flexible(found)
    return verdict.verdict(study.metric, e.kind, first, linear, trees, doubted, found.contest.short, not more)


def _more_flexible(found: Found) -> bool:
    """Whether anything more flexible than a constant, or than a linear model where that was chosen, was compared with it."""
    simple = ("constant",) if found.kind == "constant" else ("constant", "linear")
    return found.contest.tuned is not None or any(f.kind not in simple for f in found.contest.found)


def doubts(study: Study, found: Found) -> list[tuple[str, str]]:
    """Of the chosen model and of the linear one, those whose scores by cross-validation and on the holdout disagree, and how.

    The holdout may well be better for a model that was fitted to more rows than cross-validation had, unless it is linear.
    """
    out, units, few = [], _units(found), MORE * len(found.contest.here.rows)
    for f in found.contest.found:
        e = found[f.kind]
        if e is None or f.kind not in (found.kind, "linear"):
            continue
        mine, cv = e.judged.score, f.score
        error = float(np.linalg.norm([mine.error(study.data.held.unit), cv.error(units), *(1 / s.count for s in (mine, cv) if s.count)]))
        gap = study.metric.gain(mine.value) - study.metric.gain(cv.value)
        explained = gap > 0 and e.rows > few and f.kind not in ("linear", "constant")
        same = verdict.number(mine.value, study.metric.name) == verdict.number(cv.value, study.metric.name)
        if abs(gap) > APART * error and not (explained or same):
            far = abs(gap) / max(error, 1e-12)
            out.append((f.name, verdict.disagreement(study.metric, f.name, mine.value, cv.value, far)))
    return out


def _rival(study: Study, e: Entry, other: Entry | None) -> verdict.Rival | None:
    if other is None or other is e:
        return None
    gap = metrics.difference(e.judged.score, other.judged.score, study.data.held.unit)
    fewer = other.rows < e.rows
    handicap = other.handicap or (f"{'grown' if other.kind == 'trees' else 'fitted'} on only {other.rows:,} rows" if fewer else "")
    return verdict.Rival(NAMES[other.kind], other.judged.score.value, gap, handicap)


def _warnings(study: Study, found: Found, decision: Decision) -> tuple[str, ...]:
    told, data = [*(text for _, text in doubts(study, found)), *study.data.columns.warnings_], study.data
    equal = f"{data.copies:,} of {many(len(data.held), 'holdout row')}"
    if data.alarming:
        are = "is an exact copy of a training row" if data.copies == 1 else "are exact copies of training rows"
        told.insert(0, f"{equal} {are}; the score may be too good.")
    elif data.copies:
        usual = f"about {data.by_chance:,.0f} would by chance, as columns have few values"
        equals = "equals a training row" if data.copies == 1 else "equal training rows"
        told.append(f"{equal} {equals}; {usual if data.explained else 'too few to change the score much'}.")
    if data.unknown:
        one = data.unknown == 1
        what = f"{many(data.unknown, 'held-out row')} {'has' if one else 'have'} a class that no training row has"
        told.append(f"{what}; {'it was' if one else 'they were'} left out of the score.")
    if decision.code >= 0:
        label = data.columns.classes_[decision.code]
        where = "in cross-validation" if found.known is None else "on the validation rows"
        rule = f"it is predicted from a probability of {decision.threshold:.3g} on, which had the best F1 {where}"
        told.append(f'"{label}" is rare, so {rule}.')
    told += [f"{name} was not tried: {why}." for name, why in found.contest.left_out]
    if found["trees"] is None:
        why = f"{study.n_classes:,} classes would have taken too long" if study.room_for_trees else "their sums would exceed the memory"
        told.append(f"{NAMES['trees']} were not grown for comparison: {why}.")
    both = _shared_groups(data)
    if both:
        are = "group is" if both == 1 else "groups are"
        told.append(f"{both:,} {are} in the training data and in the holdout; the score may be too good.")
    return tuple(told)


def _shared_groups(data: Gathered) -> int:
    sides: list[Array | None] = [data.train.unit, data.held.unit]
    return 0 if sides[0] is None or sides[1] is None else len(np.intersect1d(sides[0], sides[1]))


def _plan(predictor: Predictor) -> str:
    return "constant" if isinstance(predictor, Constant) else str(getattr(predictor.estimator, "plan_", ""))


def _with_values(worst: list[dict[str, Any]], source: Table, columns: Any) -> list[dict[str, Any]]:
    """The original values of the worst rows, read from the file again."""
    wanted = {row["row"] - 1: row for row in worst}
    shown = [t.name for t in columns.treatments_ if t.kind not in ("target", "excluded", "empty", "constant")]
    for batch, first in numbered(source) if wanted else ():
        names = [name for name in shown if name in batch.schema.names]
        for n in [n for n in wanted if first <= n < first + batch.num_rows]:
            wanted[n]["values"] = {name: _text(batch.column(name)[n - first].as_py()) for name in names}
    return worst


def _text(value: Any) -> str:
    return "" if value is None else str(value)
