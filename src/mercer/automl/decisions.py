"""From which probability on the rarer of two classes is predicted, and why from there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.automl import metrics
from mercer.automl.evaluate import Decision, best_f1_decision, shown_threshold
from mercer.automl.rare import FEW_ROWS
from mercer.automl.study import Study, StudyResult
from mercer.inputs import Array
from mercer.tables.errors import many


def decision_of(study: Study, found: StudyResult) -> Decision:
    """Where one of two classes is so rare that the likelier one would hardly ever be that one, and
    the metric does not look at what is decided, a threshold that finds it.

    Average precision is of the rarer class: under it that class is rare a little sooner.
    """
    by_rarer = study.metric.name == "average_precision"
    least = metrics.RARE_CLASS if by_rarer else metrics.VERY_RARE_CLASS
    if study.n_classes != 2 or study.metric.labels or study.rarest >= least:
        return Decision()
    rows = _decided_on(found)
    return Decision() if rows is None else _chosen(*rows)[0]


def why_decided(found: StudyResult, decision: Decision, classes: Sequence[str]) -> str:
    """Of a decision for the rarer class, a sentence; nothing where there is none."""
    rows = _decided_on(found)
    if decision.code < 0 or rows is None:
        return ""
    label, reason = classes[decision.code], _chosen(*rows)[1]
    where = "in cross-validation" if found.known is None else "on the validation rows"
    rule = f"it is predicted from a probability {shown_threshold(decision.threshold)} on"
    if reason:
        return f'"{label}" is rare, but {rule}: {reason} {where}.'
    return f'"{label}" is rare, so {rule}, which had the best F1 {where}.'


def _decided_on(found: StudyResult) -> tuple[Array, Array, Array | None] | None:
    """Classes, probabilities and weights of rows that were not fitted to."""
    if found.known is not None:
        return found.known
    chosen, rows = found.selection.chosen, found.selection.here.rows
    if chosen.probabilities is None or chosen.kind == "constant":
        return None
    return rows.y, chosen.probabilities, rows.weight


def _chosen(y: Array, P: Array, w: Array | None) -> tuple[Decision, str]:
    """The threshold of the best F1, or 1/2 and why it is not that one."""
    best, counted = best_f1_decision(y, P, w), np.isfinite(P).all(1)
    if w is not None and w.any():
        counted &= w > 0
    half, count = Decision(best.code), int((y[counted] == best.code).sum())
    if count < FEW_ROWS:
        return half, f"another would rest on {many(count, 'row')} of it"
    if best.threshold <= P[counted, best.code].min():
        return half, "the best F1 would be that of predicting it for every row"
    return best, ""
