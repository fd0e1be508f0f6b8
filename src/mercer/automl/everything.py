"""The chosen recipe once more, fitted to all rows, the holdout included, after its scores were taken;
its intervals rest on residuals of rows that the models which predicted them were not fitted to."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np

from mercer import methods
from mercer.automl import budget, intervals, refit
from mercer.automl.boosted import BoostedTrees
from mercer.automl.intervals import Margin
from mercer.automl.predictors import Predictor
from mercer.automl.result import FitResult
from mercer.automl.rows import BLOCK_ROWS, GrowingArray, TableRows
from mercer.automl.study import Study, StudyResult, comparing_trees, mean_of
from mercer.automl.summarise import target_of
from mercer.automl.trees import grow_like
from mercer.automl.validate import refit_machine
from mercer.inputs import Array
from mercer.ops.tiles import cuts

REFIT_SHARE = 0.15  # of the time, that is kept for the fit to all rows where it is asked for
MIN_SECONDS = 1.0  # that the fit to all rows has in any case
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
    """The predictor of all rows, and how many of them it was fitted to.

    It is the one that was scored: with its features, and with the share of the rows that was
    fitted then; fewer, but not fewer than then, where that would not be done in the seconds left.
    """
    study.clock.say("fitting the chosen model to all rows, the holdout included")
    most = budget.buffer_bytes(study.memory)
    whole = replace(
        study,
        data=replace(study.data, train=joined_rows(study.data.train, study.data.held, most)),
        clock=replace(study.clock, budget=study.clock.budget / (1 - REFIT_SHARE)),
    )
    kinds = [kind for kind, _ in found.members] or [found.kind]
    parts: list[Predictor | BoostedTrees] = []
    counts = []
    for done, kind in enumerate(kinds):
        left = max(whole.clock.left(), MIN_SECONDS) / (len(kinds) - done)
        predictor, rows = _again(study, whole, found, kind, left)
        parts.append(predictor)
        counts.append(rows)
    if found.members:
        return mean_of(parts, found.members), min(counts)
    assert not isinstance(parts[0], BoostedTrees)
    return parts[0], counts[0]


def _again(
    study: Study, whole: Study, found: StudyResult, kind: str, left: float
) -> tuple[Predictor | BoostedTrees, int]:
    """One model of all rows, and how many of them it was fitted to in the seconds left."""
    former = found[kind]
    assert former is not None
    p, v = whole.problem, found.validation
    wanted = _wanted(study, whole, former.rows, 0 if v is None else v.n_validation)
    if isinstance(former.predictor, BoostedTrees):
        assert former.growth is not None
        last = former.seconds - comparing_trees(found.selection, v)
        n = affordable_rows(former.rows, wanted, (former.rows, last), 1.0, left)
        how = (former.predictor.design, study.n_classes, study.seed, former.growth)
        return grow_like(p.sample(n).rows, *how).predictor, n
    if kind == "machine" and v is not None:
        tuned, mine = found.selection.tuned, v.machine
        assert tuned is not None
        n = affordable_rows(former.rows, wanted, (mine.rows, mine.seconds), v.power, left)
        some = p.sample(n)
        return refit_machine(some, tuned, former.predictor, mine.features, whole.memory), n
    f = next(f for f in found.selection.candidates if f.kind == kind)
    took, power = (former.rows, former.seconds - f.seconds), 2.0 if kind == "machine" else 1.0
    n = affordable_rows(former.rows, wanted, took, power, left)
    size = features_of(former.predictor, f.size)
    if n <= len(p.rows):
        return refit.fit_all_rows(p.sample(n), f, size, whole.memory), n
    return refit.fit_streamed_rows(p, whole.data.train, n, f, size, whole.memory), n


def _wanted(study: Study, whole: Study, rows: int, set_aside: int) -> int:
    """The share of the rows that was fitted: all where but those which validated were; of those
    that memory holds, unless they were a stream."""
    before, now = len(study.data.train), len(whole.data.train)
    held = rows <= len(study.problem.rows)
    if held and rows + set_aside >= len(study.problem.rows):
        return len(whole.problem.rows)
    return min(math.ceil(rows * now / before), len(whole.problem.rows) if held else now)


def affordable_rows(
    least: int, wanted: int, took: tuple[int, float], power: float, left: float
) -> int:
    """As many of the rows wanted as the seconds left allow, by the rows and seconds of a former fit
    and their power; no fewer than the least.

    >>> [affordable_rows(800, 1000, (800, 8.0), 1.0, left) for left in (20.0, 9.0, 1.0)]
    [1000, 900, 800]
    """
    rows, seconds = took
    able = rows * (left / max(seconds, 1e-9)) ** (1 / power)
    return min(wanted, max(least, int(min(able, wanted))))


def features_of(predictor: Predictor, otherwise: int) -> int:
    """Features of a map by frequencies or landmarks; of any other model, what is given.

    >>> from mercer.automl.predictors import ConstantPredictor
    >>> features_of(ConstantPredictor((1.0,)), 7)
    7
    """
    via = getattr(getattr(predictor, "estimator", None), "via", None)
    known = via.n_features if isinstance(via, methods.Fourier) else None
    known = via.n_landmarks if isinstance(via, methods.Landmarks) else known
    return otherwise if known is None else known


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
        verdict=f"{result.verdict} {_all_scores(rows, result.rows_train + result.rows_holdout)}",
    )


def _all_scores(rows: int, total: int) -> str:
    """What the scores are of.

    >>> "from 90 of all 100 rows, to keep to time and memory" in _all_scores(90, 100)
    True
    """
    many = f"all {rows:,}"
    if rows < total:
        many = f"{rows:,} of all {total:,} rows, to keep to time and memory"
    return f"All scores are of {_BEFORE}: the saved one has learnt from {many}, and no row is left to score it on."


def residual_count(study: Study, found: StudyResult) -> int:
    """How many residuals the margin rests on."""
    apart: Array | tuple[()] = () if found.apart is None else found.apart[0]
    return len(study.data.held) + len(apart)
