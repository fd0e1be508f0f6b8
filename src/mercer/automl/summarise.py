"""What a study found, as the `FitResult` that users read: scores, candidates, importances, the
worst rows, sentences."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np

from mercer.automl import evaluate, intervals, metrics
from mercer.automl.boosted import BoostedTrees
from mercer.automl.candidates import ModelCandidate
from mercer.automl.choice import paired_scores
from mercer.automl.evaluate import Decision
from mercer.automl.formula_words import shown_formula
from mercer.automl.frames import Table, enumerate_batches
from mercer.automl.intervals import Margin
from mercer.automl.predictors import (
    ConstantPredictor,
    LogTarget,
    Predictor,
    Regressor,
    TargetTransform,
    WeightedMean,
)
from mercer.automl.reasons import NO_LAST_FIT
from mercer.automl.recipes import NAMES
from mercer.automl.result import Contender, FitResult
from mercer.automl.study import FittedCandidate, Study, StudyResult
from mercer.automl.verdict import tested_groups, verdict_of, warnings_of
from mercer.inputs import Array
from mercer.tables import Columns, Source


def fit_result(
    study: Study,
    found: StudyResult,
    margin: Margin | None,
    decision: Decision,
    source: Table,
    command: str,
    wider: Array | float = 1.0,
    keep_rows: bool = True,
) -> FitResult:
    """Everything but what is measured of the finished model; `source` holds the held-out rows,
    whose intervals are `wider`.

    Where rows are not to be kept, neither the worst of them nor pairs of actual and predicted
    values are put down.
    """
    e, columns, held = found.chosen, study.data.columns, study.data.held
    f, classes = e.evaluation.predicted, columns.classes_
    codes = decision(f) if classes else None
    names = [t.name for t in columns.treatments_]
    return FitResult(
        version=version("mercer"),
        command=command,
        seed=study.seed,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=columns.target,
        task=columns.task_,
        task_reason=columns.task_reason_,
        classes=classes,
        metric=study.metric.name,
        higher_is_better=study.metric.higher_is_better,
        metric_note=_metric_note(study, e, decision),
        rows_train=len(study.data.train),
        rows_holdout=len(held),
        rows_dropped=study.data.dropped,
        holdout_rule=study.data.rule,
        contenders=_contenders(study, found),
        verdict=verdict_of(study, found),
        lift_gain=_gain(study, e, found["linear"]),
        importance=evaluate.importance(
            found.predictor, held, study.metric, columns.origin_, names, study.seed
        ),
        columns=tuple(t.as_dict() for t in columns.treatments_),
        warnings=warnings_of(study, found, decision),
        worst=_worst(study, f, codes, source) if keep_rows else (),
        points=() if classes or not keep_rows else evaluate.points(held, f, study.seed),
        interval=None
        if margin is None
        else intervals.interval_summary(
            held, f, margin, target_of(found.predictor), study.seed, wider
        ),
        confusion=evaluate.confusion(held.y, codes, len(classes)) if codes is not None else (),
        confusion_weights=evaluate.confusion_weights(held.y, codes, len(classes), held.weight),
        calibration=evaluate.calibration(held.y, f, held.weight) if classes else (),
        model_bytes=0,
        latency_row_ms=0.0,
        latency_1000_ms=0.0,
        seconds=0.0,
        memory_peak_bytes=None,
        plan=_plan(found.predictor),
        scores=_scores(study, e, decision),
        decision=_decision(decision, classes),
        learnt=learnt_importances(found.predictor, columns.origin_, names),
        members=found.members,
        texts=study.data.texts,
        formula=shown_formula(study, found),
    )


def _gain(
    study: Study, e: FittedCandidate, linear: FittedCandidate | None
) -> tuple[float, float, float] | None:
    """Of the chosen one over a linear model."""
    if linear is None or e is linear:
        return None
    groups = study.data.held.group
    return metrics.difference(e.evaluation.score, linear.evaluation.score, groups)


def target_of(predictor: Predictor) -> TargetTransform | None:
    """The transformation of the target that a predictor fits; of a mean that of all but trees,
    which fit the target itself."""
    if not isinstance(predictor, WeightedMean):
        return predictor.target if isinstance(predictor, Regressor) else None
    others = [m for m in predictor.members if not isinstance(m, BoostedTrees)]
    of = {t.shift for m in others if isinstance(t := target_of(m), LogTarget)}
    every = all(isinstance(target_of(m), LogTarget) for m in others)
    return LogTarget(of.pop()) if every and len(of) == 1 else None


def _scores(study: Study, e: FittedCandidate, decision: Decision) -> dict[str, float]:
    """Every metric of the task, of the numbers, probabilities and classes that the model
    predicts for the holdout.
    """
    held, f = study.data.held, e.evaluation.predicted
    able = [m for m in metrics.METRICS.values() if m.task == study.metric.task]
    if not study.n_classes:
        return {m.name: m(held.y, f, held.weight).value for m in able}
    return {m.name: m.decided(held.y, f, decision(f), held.weight).value for m in able}


def _decision(decision: Decision, classes: tuple[str, ...]) -> dict[str, Any] | None:
    return (
        {"class": classes[decision.code], "threshold": decision.threshold}
        if len(classes) == 2
        else None
    )


def _metric_note(study: Study, e: FittedCandidate, decision: Decision) -> str:
    """What the metric means, why it was chosen, that rows are weighted, and for classes the others
    beside it."""
    note = study.metric.note + (f"; chosen because {study.why}" if study.why else "")
    weight = study.data.columns.weight
    note += f'; all scores are weighted by "{weight}"' if weight is not None else ""
    if not study.n_classes:
        return note
    values, others = (
        _scores(study, e, decision),
        [m for m in ("accuracy", "log_loss", "auc") if m != study.metric.name],
    )
    return f"{note}; also " + ", ".join(
        f"{metrics.TITLES[m]} {metrics.number(values[m], m)}"
        for m in others
        if np.isfinite(values[m])
    )


def _contenders(study: Study, found: StudyResult) -> tuple[Contender, ...]:
    known = {f.kind: f for f in found.selection.candidates}
    if found.selection.trees is not None:
        known["trees"] = found.selection.trees
    return tuple(
        _contender(kind, study, found, known)
        for kind in NAMES
        if kind in known or found[kind] is not None
    )


def _contender(
    kind: str, study: Study, found: StudyResult, known: dict[str, ModelCandidate]
) -> Contender:
    e, f, groups = found[kind], known.get(kind), tested_groups(found)
    detail = e.detail if e else f.recipe.detail(f.size) if f and f.recipe else ""
    note = e.note if e else f"cross-validated only: {found.unfitted.get(kind, NO_LAST_FIT)}"
    cv, error = (f.score.value, f.score.shown_error(groups)) if f else (None, None)
    holdout, low, high = (
        (e.evaluation.score.value, e.evaluation.low, e.evaluation.high) if e else (None, None, None)
    )
    mine, own = found.chosen.evaluation.score, known.get(found.kind)
    return Contender(
        NAMES[kind],
        kind,
        detail,
        cv,
        error,
        holdout,
        low,
        high,
        e.seconds if e else f.seconds if f else 0.0,
        kind == found.kind,
        note,
        None
        if e is None or kind == found.kind
        else metrics.difference(mine, e.evaluation.score, study.data.held.group),
        None
        if f is None or own is None or kind == found.kind
        else metrics.difference(*paired_scores(own, f), groups),
    )


def learnt_importances(
    predictor: Predictor, origin: Sequence[int], names: Sequence[str]
) -> tuple[tuple[str, float], ...]:
    """The share of each original column in the metric that a machine has learnt, the largest
    first; none where none was learnt. `importances_` of the estimators are of the features."""
    shares = _learnt(predictor, len(origin))
    if shares is None or not shares.sum() > 0:
        return ()
    totals = np.bincount(np.asarray(origin), shares, minlength=len(names)) / shares.sum()
    used = sorted(set(origin), key=lambda j: -totals[j])
    return tuple((names[j], float(totals[j])) for j in used)


def _learnt(predictor: Any, size: int) -> Array | None:
    """Of a mean the weighted mean, of cells the mean."""
    if isinstance(predictor, WeightedMean):
        parts = [_learnt(m, size) for m in predictor.members]
        found = [w * v for w, v in zip(predictor.weights, parts, strict=True) if v is not None]
        return np.asarray(np.sum(found, axis=0)) if found else None
    inner = getattr(predictor, "estimator", predictor)
    cells = [_learnt(m, size) for m in getattr(inner, "models", ())]
    if kept := [v for v in cells if v is not None]:
        return np.asarray(np.mean(kept, axis=0))
    own = getattr(inner, "importances_", None)
    return None if own is None or np.shape(own) != (size,) else np.asarray(own, np.float64)


def _plan(predictor: Predictor | BoostedTrees) -> str:
    if isinstance(predictor, WeightedMean):
        return "; ".join(_plan(m) for m in predictor.members)
    if isinstance(predictor, BoostedTrees):
        return predictor.plan_
    return (
        "constant"
        if isinstance(predictor, ConstantPredictor)
        else str(getattr(predictor.estimator, "plan_", ""))
    )


def _worst(
    study: Study, predicted: Array, codes: Array | None, source: Table
) -> tuple[dict[str, Any], ...]:
    """The holdout rows that were missed by most, with their values."""
    columns = study.data.columns
    missed = evaluate.worst(study.data.held, predicted, columns.classes_, codes)
    return tuple(_with_values(missed, source, columns))


def _with_values(
    worst: list[dict[str, Any]], source: Table, columns: Columns
) -> list[dict[str, Any]]:
    """The original values of the worst rows, read from the file again."""
    wanted = {row["row"] - 1: row for row in worst}
    shown = [
        t.name
        for t in columns.treatments_
        if t.kind not in ("target", "excluded", "empty", "constant")
    ]
    for batch, first in enumerate_batches(_as_written(source, shown)) if wanted else ():
        names = [name for name in shown if name in batch.schema.names]
        for n in [n for n in wanted if first <= n < first + batch.num_rows]:
            wanted[n]["values"] = {
                name: _text(batch.column(name)[n - first].as_py()) for name in names
            }
    return worst


def _as_written(source: Table, names: list[str]) -> Table:
    """Files with these columns as they are written; a frame as it is."""
    there = [name for name in names if name in source.schema.names]
    return source.as_written(*there) if isinstance(source, Source) else source


def _text(value: Any) -> str:
    return "" if value is None else str(value)
