"""fit_table: from a table to a model and its result, in the seconds and the memory given."""
from __future__ import annotations

import sys
import tempfile
import time as clocks
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from mercer.automl import budget, evaluate, intervals, metrics
from mercer.automl.budget import Clock, silent
from mercer.automl.candidates import ModelCandidate
from mercer.automl.data import Roles, TableData, enumerate_batches, prepare_data
from mercer.automl.evaluate import Decision, best_f1_decision
from mercer.automl.frames import Table, as_source, in_batches
from mercer.automl.intervals import Margin, fit_novelty, widening
from mercer.automl.metrics import Metric
from mercer.automl.model import TableModel
from mercer.automl.predictors import ConstantPredictor, Predictor, Regressor, TargetTransform
from mercer.automl.recipes import NAMES
from mercer.automl.result import Contender, FitResult
from mercer.automl.study import FittedCandidate, Study, StudyResult
from mercer.automl.verdict import tested_groups, verdict_of, warnings_of
from mercer.inputs import Array
from mercer.models.base import bytes_of
from mercer.tables import Columns
from mercer.tables.arrow import Batch


def fit_table(
    source: Any, target: str, *, task: str = "auto", metric: str | None = None, exclude: str | Sequence[str] = (), id: str | None = None,
    weight: str | None = None, group: str | None = None, time_column: str | None = None, test: Any = 0.2, time: float = 60,
    memory: Any = "4GB", seed: int = 0, keep_rows: bool = True, progress: Callable[[str], None] | None = None, command: str = "",
) -> TableModel:  # fmt: skip
    """A model of a table, and the result of the fit: all that was measured on the way.

    The holdout (`test`: a share or a file; whole groups with `group`, the last rows with
    `time_column`) is told apart first: no treatment, choice or fit sees it. Constant, linear,
    explicit, Fourier and landmark models are compared by cross-validation on the training rows,
    and the simplest within one standard error of the best is fitted to all of them. A kernel
    machine (support vectors, or ridge regression at the rows) takes part in the same folds of
    up to 8,000 rows, 5,000 where there are more than two classes. Beyond, where few rows would
    under-rate it, it is validated against the best of the others on a tenth of the training
    rows that neither was fitted to (though settings of both were chosen with them); it is
    fitted in cells that overlap where all rows at once would take too long.

    Parameters
    ----------
    source : path, list of paths, data frame, pyarrow table or `mercer.tables.Source`
        The table; data frames are of pandas, polars, ...
    target : str
        The column to predict.
    task : {"auto", "regression", "classification"}, default="auto"
        What the target is.
    metric : str, default=None
        r2, rmse, mae; accuracy, balanced_accuracy, log_loss, auc.
    exclude : str or sequence of str, default=()
        Columns that are left out.
    id, weight, group, time_column : str, default=None
        Names of columns.
    test : float, path, data frame or table, default=0.2
        The share of the rows that is held out, or a file or table of its own.
    time : float, default=60
        Seconds for search and fits; reading the table and evaluating the model are not counted.
        What is tried and how large it is depend on them: where time runs short, the same seed
        may give another model.
    memory : float or str, default="4GB"
        Bytes, or text such as "4GB", at least 150 MB: of resident anonymous memory beyond what
        the imported program has. Rows that exceed their share wait on disk: candidates are
        compared on as many as fit, of the holdout as many are evaluated, and numbers are
        predicted by a last fit that streams all of them.
    seed : int, default=0
        Of the holdout, the folds and the random features.
    keep_rows : bool, default=True
        Whether the result, and with it the report, shows single rows of the table: the worst
        ones with their values, and pairs of actual and predicted values. The model itself holds
        treated rows of training in any case (a sample, and those that a kernel machine or
        landmarks rest on).
    progress : callable, default=None
        Called with what is being done.
    command : str, default=""
        What to show as the way to do this again.

    Returns
    -------
    TableModel

    Examples
    --------
    >>> from mercer.datasets import diabetes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = diabetes().write_csv(f"{folder}/diabetes.csv")
    ...     model = fit_table(path, "progression", time=1)
    >>> model.result.task, model.result.rows_train + model.result.rows_holdout
    ('regression', 442)
    """
    began, say = clocks.perf_counter(), _releasing_memory(progress or silent)
    if not (isinstance(time, int | float) and 0 < time < float("inf")):
        raise ValueError(f"time must be a number of seconds > 0, got {time!r}.")
    if not isinstance(target, str):
        raise ValueError(f"target must be the name of a column, got {target!r}.")
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed must be an integer >= 0, got {seed!r}.")
    able = budget.working_memory(budget.check_memory(bytes_of(memory, "memory")))
    table, held = as_source(source), _share(test)
    roles = Roles(target, (exclude,) if isinstance(exclude, str) else tuple(exclude), id, weight, group, time_column)
    with budget.limited_threads(able):
        data = prepare_data(table, roles, held, task=task, memory=able, seed=seed, clock=Clock(time, say))
        study = Study(data, *_metric(data, metric), able, seed, Clock(time, say))
        with _ignore_many_classes():
            found = study.run()
        say("evaluating on the holdout")
        draft = _model(study, found, in_batches(table if isinstance(held, float) else held, able), command, keep_rows)
        return _timed(draft, replace(table, most=0), began)  # of few rows


def _releasing_memory(say: Callable[[str], None]) -> Callable[[str], None]:
    """Between stages, what the former has left is given back."""
    def said(text: str) -> None:
        budget.release_memory()
        say(text)

    return said


@contextmanager
def _ignore_many_classes() -> Iterator[None]:
    """Without scikit-learn's doubt whether so many classes are classes, which the task has
    settled; outside all threads.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


def _share(test: object) -> float | Table:
    if not isinstance(test, int | float):
        return as_source(test)
    if not 0 < test < 1:
        raise ValueError(f"test must be a share between 0 and 1, or a file, got {test!r}.")
    return float(test)


def _metric(data: TableData, name: str | None) -> tuple[Metric, str]:
    shares = np.bincount(data.train.y) / len(data.train) if data.columns.task_ == "classification" else None
    return metrics.choose_metric(data.columns.task_, name, shares)


def _model(study: Study, found: StudyResult, source: Table, command: str, keep_rows: bool) -> TableModel:
    """The chosen predictor with its treatment, its intervals and its result."""
    decision, held = _decided(study, found), study.data.held
    margin = None if study.n_classes else _margin(study, found)
    novelty = fit_novelty(study.data.train, study.seed, _ranged(study.data.columns))
    wider = widening(novelty(held.X, held.odd))
    result = _result(study, found, margin, decision, source, command, wider, keep_rows)
    return TableModel(study.data.columns, found.predictor, margin, decision, result, novelty)


def _ranged(columns: Columns) -> Array:
    """Features that have a range: those of a category have levels, of which new ones are odd
    cells or none.
    """
    return np.array([columns.treatments_[j].kind != "category" for j in columns.origin_])


def _margin(study: Study, found: StudyResult) -> intervals.Margin:
    """From the residuals of the holdout; an end is never negative where no training target was."""
    low = 0.0 if study.data.train.y.min() >= 0 else -np.inf
    return intervals.margin(study.data.held.y, found.chosen.evaluation.predicted, target_of(found.predictor), low=low)


def _timed(model: TableModel, source: Table, began: float) -> TableModel:
    """With what the finished model weighs and how fast it is."""
    batch = next(source.batches(1000))
    result = replace(
        model.result, model_bytes=_bytes(model), latency_row_ms=_milliseconds(model, batch.slice(0, 1)),
        latency_1000_ms=_milliseconds(model, batch), seconds=clocks.perf_counter() - began, memory_peak_bytes=_peak(),
    )  # fmt: skip
    return replace(model, result=result)


def _bytes(model: TableModel) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        return path.stat().st_size


def _milliseconds(model: TableModel, batch: Batch, repeats: int = 5) -> float:
    """From cells to predictions, the median."""
    times = []
    for _ in range(repeats):
        start = clocks.perf_counter()
        rows = model.columns.transform(batch, target=False)
        model.outputs(rows.X, rows.odd)
        times.append(clocks.perf_counter() - start)
    return 1000 * float(np.median(times))


def _peak() -> int | None:
    """The most memory that this process has had, where the system tells."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _result(
    study: Study, found: StudyResult, margin: Margin | None, decision: Decision, source: Table, command: str, wider: Array | float = 1.0,
    keep_rows: bool = True,
) -> FitResult:  # fmt: skip
    """Everything but what is measured of the finished model; `source` holds the held-out rows,
    whose intervals are `wider`.

    Where rows are not to be kept, neither the worst of them nor pairs of actual and predicted
    values are put down.
    """
    e, columns, held = found.chosen, study.data.columns, study.data.held
    f, classes, linear = e.evaluation.predicted, columns.classes_, found["linear"]
    codes = decision(f) if classes else None
    names = [t.name for t in columns.treatments_]
    return FitResult(
        version=version("mercer"), command=command, seed=study.seed, created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=columns.target, task=columns.task_, task_reason=columns.task_reason_, classes=classes,
        metric=study.metric.name, higher_is_better=study.metric.higher_is_better, metric_note=_metric_note(study, e, decision),
        rows_train=len(study.data.train), rows_holdout=len(held), rows_dropped=study.data.dropped, holdout_rule=study.data.rule,
        contenders=_contenders(found), verdict=verdict_of(study, found),
        lift_gain=None if linear is None or e is linear else metrics.difference(e.evaluation.score, linear.evaluation.score, held.group),
        importance=evaluate.importance(found.predictor, held, study.metric, columns.origin_, names, study.seed),
        columns=tuple(t.as_dict() for t in columns.treatments_), warnings=warnings_of(study, found, decision),
        worst=tuple(_with_values(evaluate.worst(held, f, classes, codes), source, columns)) if keep_rows else (),
        points=() if classes or not keep_rows else evaluate.points(held, f, study.seed),
        interval=None if margin is None else intervals.interval_summary(held, f, margin, target_of(found.predictor), study.seed, wider),
        confusion=evaluate.confusion(held.y, codes, len(classes)) if codes is not None else (),
        calibration=evaluate.calibration(held.y, f) if classes else (),
        model_bytes=0, latency_row_ms=0.0, latency_1000_ms=0.0, seconds=0.0, memory_peak_bytes=None, plan=_plan(found.predictor),
        scores=_scores(study, e, decision), decision=_decision(decision, classes),
    )  # fmt: skip


def _decided(study: Study, found: StudyResult) -> Decision:
    """Where one of two classes is so rare that accuracy was not the metric, a threshold that
    finds it.
    """
    chosen = found.selection.chosen
    if study.why and found.known is not None:
        return best_f1_decision(*found.known)
    if not study.why or chosen.probabilities is None:
        return Decision()
    return best_f1_decision(study.problem.sample(len(chosen.probabilities)).rows.y, chosen.probabilities)


def target_of(predictor: Predictor) -> TargetTransform | None:
    """The transformation of the target that a predictor fits."""
    return predictor.target if isinstance(predictor, Regressor) else None


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
    return {"class": classes[decision.code], "threshold": decision.threshold} if len(classes) == 2 else None


def _metric_note(study: Study, e: FittedCandidate, decision: Decision) -> str:
    """What the metric means, why it was chosen, and for classes the others beside it."""
    note = study.metric.note + (f"; chosen because {study.why}" if study.why else "")
    if not study.n_classes:
        return note
    values, others = _scores(study, e, decision), [m for m in ("accuracy", "log_loss", "auc") if m != study.metric.name]
    return f"{note}; also " + ", ".join(f"{metrics.TITLES[m]} {metrics.number(values[m], m)}" for m in others)


def _contenders(found: StudyResult) -> tuple[Contender, ...]:
    known = {f.kind: f for f in found.selection.candidates}
    groups = tested_groups(found)
    return tuple(_contender(kind, found[kind], known.get(kind), found, groups) for kind in NAMES if kind in known or found[kind])


def _contender(kind: str, e: FittedCandidate | None, f: ModelCandidate | None, found: StudyResult, groups: Array | None) -> Contender:
    detail = e.detail if e else f.recipe.detail(f.size) if f and f.recipe else ""
    note = e.note if e else "cross-validated only: no time was left to fit it to all rows"
    cv, error = (f.score.value, f.score.error(groups)) if f else (None, None)
    holdout, low, high = (e.evaluation.score.value, e.evaluation.low, e.evaluation.high) if e else (None, None, None)
    seconds = e.seconds if e else f.seconds if f else 0.0
    return Contender(NAMES[kind], kind, detail, cv, error, holdout, low, high, seconds, kind == found.kind, note)


def _plan(predictor: Predictor) -> str:
    return "constant" if isinstance(predictor, ConstantPredictor) else str(getattr(predictor.estimator, "plan_", ""))


def _with_values(worst: list[dict[str, Any]], source: Table, columns: Columns) -> list[dict[str, Any]]:
    """The original values of the worst rows, read from the file again."""
    wanted = {row["row"] - 1: row for row in worst}
    shown = [t.name for t in columns.treatments_ if t.kind not in ("target", "excluded", "empty", "constant")]
    for batch, first in enumerate_batches(source) if wanted else ():
        names = [name for name in shown if name in batch.schema.names]
        for n in [n for n in wanted if first <= n < first + batch.num_rows]:
            wanted[n]["values"] = {name: _text(batch.column(name)[n - first].as_py()) for name in names}
    return worst


def _text(value: Any) -> str:
    return "" if value is None else str(value)
