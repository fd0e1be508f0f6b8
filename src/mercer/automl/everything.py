"""The chosen recipe once more, fitted to all rows, the holdout included, after its scores were taken;
its intervals rest on residuals of rows that the models which predicted them were not fitted to."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from mercer.automl import budget, intervals
from mercer.automl.budget import Clock
from mercer.automl.intervals import Margin
from mercer.automl.predictors import Predictor
from mercer.automl.result import FitResult
from mercer.automl.rows import BLOCK_ROWS, GrowingArray, TableRows
from mercer.automl.study import Study, StudyResult, mean_of
from mercer.automl.summarise import target_of
from mercer.automl.trees import BoostedTrees
from mercer.automl.validate import refit_machine
from mercer.inputs import Array
from mercer.ops.tiles import cuts

_BEFORE = "the model before it was fitted to all rows"


def joined_rows(a: TableRows, b: TableRows, most: float) -> TableRows:
    """Both, one after the other; beyond so many bytes on disk.

    >>> one = TableRows(np.zeros((2, 1), np.float32), np.zeros(2), np.arange(2))
    >>> len(joined_rows(one, one, 1e9))
    4
    """
    found: dict[str, Any] = {}
    for name in (f.name for f in fields(a)):
        parts = [getattr(side, name) for side in (a, b)]
        if any(part is None for part in parts):
            found[name] = None
            continue
        width = parts[0].shape[1] if parts[0].ndim == 2 else 1
        both = GrowingArray(width, most, parts[0].dtype)
        for part in parts:
            for s in cuts(len(part), BLOCK_ROWS):
                both.add(part[s])
        found[name] = both.array() if parts[0].ndim == 2 else both.vector()
    return TableRows(**found)


def refit_everything(study: Study, found: StudyResult) -> tuple[Predictor, int]:
    """The predictor of all rows, and how many those are."""
    study.clock.say("fitting the chosen model to all rows, the holdout included")
    most = budget.buffer_bytes(study.memory)
    rows = joined_rows(study.data.train, study.data.held, most)
    whole = replace(
        study,
        data=replace(study.data, train=rows),
        clock=Clock(study.clock.budget, study.clock.say),
    )
    kinds = [kind for kind, _ in found.members] or [found.kind]
    parts = [_again(whole, found, kind) for kind in kinds]
    chosen = mean_of(parts, found.members) if found.members else parts[0]
    assert not isinstance(chosen, BoostedTrees)
    return chosen, len(rows)


def _again(whole: Study, found: StudyResult, kind: str) -> Predictor | BoostedTrees:
    """One model of all rows."""
    if kind == "machine" and found.validation is not None:
        tuned, former = found.selection.tuned, found["machine"]
        assert tuned is not None
        assert former is not None
        assert not isinstance(former.predictor, BoostedTrees)
        cell = found.validation.machine.features
        return refit_machine(whole.problem, tuned, former.predictor, cell, whole.memory)
    f = next(f for f in found.selection.candidates if f.kind == kind)
    return whole.entry(found.selection, f).predictor


def cross_fitted_margin(study: Study, found: StudyResult, low: float) -> Margin:
    """From the residuals of the holdout and of training rows, each by a model that was not fitted
    to the row."""
    y, f = study.data.held.y, found.chosen.evaluation.predicted
    if found.apart is not None:
        y, f = (np.concatenate(pair) for pair in zip((y, f), found.apart, strict=True))
    return intervals.margin(y, f, target_of(found.predictor), low=low)


def with_refit(result: FitResult, rows: int, n_residuals: int) -> FitResult:
    """Told of in the result: scores are those of the model before."""
    interval = result.interval
    if interval is not None:
        sure = f"about {100 * interval['coverage_asked']:g} % of new rows from the same source are covered"
        how = f"cross-fitted residuals of {n_residuals:,} rows, each by a model not fitted to it"
        interval = interval | {"guarantee": f"{sure} ({how}); measured of {_BEFORE}"}
    return replace(
        result,
        rows_refitted=rows,
        interval=interval,
        holdout_rule=f"{result.holdout_rule}; after its scores were taken the model was fitted to these rows as well",
        verdict=f"{result.verdict} {_all_scores(rows)}",
    )


def _all_scores(rows: int) -> str:
    """What the scores are of."""
    return f"All scores are of {_BEFORE}: the saved one has learnt from all {rows:,}, and no row is left to score it on."


def residual_count(study: Study, found: StudyResult) -> int:
    """How many residuals the margin rests on."""
    apart: Array | tuple[()] = () if found.apart is None else found.apart[0]
    return len(study.data.held) + len(apart)
