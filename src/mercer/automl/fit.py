"""fit_table: from a table to a model and its result, in the seconds and the memory given."""

from __future__ import annotations

import sys
import tempfile
import time as clocks
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mercer.automl import budget, intervals, metrics
from mercer.automl.budget import Clock, silent
from mercer.automl.data import Roles, TableData, prepare_data
from mercer.automl.decisions import decision_of
from mercer.automl.everything import (
    REFIT_SHARE,
    cross_fitted_margin,
    refit_everything,
    residual_count,
    with_refit,
)
from mercer.automl.formulas import spelled_formula
from mercer.automl.frames import Table, as_source, in_batches
from mercer.automl.intervals import fit_novelty, widening
from mercer.automl.metrics import Metric
from mercer.automl.model import TableModel
from mercer.automl.rare import defined_metric
from mercer.automl.study import Study, StudyResult
from mercer.automl.summarise import fit_result, target_of
from mercer.automl.text_scores import TextScorer
from mercer.automl.treat import KernelJudge
from mercer.inputs import Array
from mercer.models.base import bytes_of
from mercer.tables import Columns, Source
from mercer.tables.arrow import Batch


def fit_table(
    source: Any,
    target: str,
    *,
    task: str = "auto",
    metric: str | None = None,
    exclude: str | Sequence[str] = (),
    id: str | None = None,
    weight: str | None = None,
    group: str | None = None,
    time_column: str | None = None,
    test: Any = 0.2,
    time: float = 60,
    memory: Any = "4GB",
    seed: int = 0,
    keep_rows: bool = True,
    refit: bool = False,
    progress: Callable[[str], None] | None = None,
    command: str = "",
) -> TableModel:
    """A model of a table, and the result of the fit: all that was measured on the way.

    The holdout (`test`: a share or a file; whole groups with `group`, the last rows with
    `time_column`) is told apart first: no treatment, choice or fit sees it. What is a choice
    about the columns (numbers by size or by rank, whole numbers as numbers or codes, the mean
    of the target at levels) is settled on training rows. Texts give the scores of a linear
    model over their n-grams, of the kind (words, letters, both) that does best on training
    rows left out; a training row has scores of models that were not fitted to it. A kernel
    machine, and constant, linear, sparse, explicit, Fourier and landmark models are compared by
    cross-validation on the training rows, those near the best on repeated folds; rows with
    equal texts are in one fold. The best is fitted to all of them,
    or a mean of two or three where that is better on rows left out; a simpler one where it is
    readable or ten times as fast, within one standard error, not worse row by row and no
    worse at its worst. Beyond 8,000 rows, 5,000 where there are more than two classes, few
    rows would under-rate a machine: it is validated against the best of the others on a tenth
    of the training rows that neither was fitted to (though settings of both were chosen with
    them); it is fitted in cells that overlap where all rows at once would take too long.
    Gradient-boosted trees are grown in 15 % of the time: to compare with, and as a member of
    the mean where that is better on the same rows left out; alone they are never the model.

    Parameters
    ----------
    source : path, list of paths, data frame, pyarrow table or `mercer.tables.Source`
        The table; data frames are of pandas, polars, ...
    target : str
        The column to predict.
    task : {"auto", "regression", "classification"}, default="auto"
        What the target is.
    metric : str, default=None
        r2, rmse, mae; accuracy, balanced_accuracy, log_loss, auc, average_precision. None: R²,
        accuracy, or the area under the curve where one of two classes has less than a fifth.
    exclude : str or sequence of str, default=()
        Columns that are left out.
    id, weight, group, time_column : str, default=None
        Names of columns. Scores are weighted by `weight`. Rows of one `group` are on one
        side of every split, unless `time_column` decides: earlier rows of a group may then
        be learnt from and later ones held out, and a warning tells how many groups are on
        both sides.
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
    refit : bool, default=False
        Whether the chosen recipe is fitted once more in the end, to all rows, the holdout
        included. All scores are then those of the model before, and intervals come from
        residuals of rows that the models which predicted them were not fitted to. Rows of a
        test file are never fitted, so with one this is refused.
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
    return fitted_study(
        source,
        Roles(
            target,
            (exclude,) if isinstance(exclude, str) else tuple(exclude),
            id,
            weight,
            group,
            time_column,
        ),
        task=task,
        metric=metric,
        test=test,
        time=time,
        memory=memory,
        seed=seed,
        keep_rows=keep_rows,
        refit=refit,
        progress=progress,
        command=command,
    )[0]


def fitted_study(
    source: Any,
    roles: Roles,
    *,
    task: str,
    metric: str | None,
    test: Any,
    time: float,
    memory: Any,
    seed: int,
    keep_rows: bool,
    refit: bool = False,
    progress: Callable[[str], None] | None = None,
    command: str = "",
    sums: bool = False,
) -> tuple[TableModel, Study]:
    """The model of `fit_table`, and the study that it comes from; with `sums` only kinds take part
    whose fits are sums over rows."""
    began, say = clocks.perf_counter(), _releasing_memory(progress or silent)
    if not (isinstance(time, int | float) and 0 < time < float("inf")):
        raise ValueError(f"time must be a number of seconds > 0, got {time!r}.")
    if not isinstance(roles.target, str):
        raise ValueError(f"target must be the name of a column, got {roles.target!r}.")
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise ValueError(f"seed must be an integer >= 0, got {seed!r}.")
    able = budget.working_memory(budget.check_memory(bytes_of(memory, "memory")))
    table = as_source(source)
    mark = table.decimal if isinstance(table, Source) else ""
    held = _share(test, mark)
    if refit and not isinstance(held, float):
        raise ValueError(
            "refit fits the held-out rows too, and rows of a test file are never fitted; leave refit out, or give a share as test."
        )
    with budget.limited_threads(able):
        judge, texts = KernelJudge.within(time), TextScorer(time, able)
        data = prepare_data(
            table,
            roles,
            held,
            task=task,
            memory=able,
            seed=seed,
            clock=Clock(time, say),
            judge=judge,
            texts=texts,
        )
        spent = texts.seconds + (0.0 if judge is None else judge.seconds)
        clock = Clock((1 - REFIT_SHARE * refit) * time, say, start=clocks.perf_counter() - spent)
        study = Study(data, *_metric(data, metric), able, seed, clock, sums)
        with _ignore_many_classes():
            found = study.run()
        say("evaluating on the holdout")
        rows = in_batches(table if isinstance(held, float) else held, able)
        draft = _model(study, found, rows, command, keep_rows)
        draft = replace(draft, result=replace(draft.result, decimal=mark))
        draft = _refitted(draft, study, found) if refit else draft
        return _timed(draft, replace(table, most=0), began), study  # of few rows


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


def _share(test: object, decimal: str) -> float | Table:
    if not isinstance(test, int | float):
        return as_source(test, decimal)
    if not 0 < test < 1:
        raise ValueError(f"test must be a share between 0 and 1, or a file, got {test!r}.")
    return float(test)


def _metric(data: TableData, name: str | None) -> tuple[Metric, str]:
    shares = (
        np.bincount(data.train.y) / len(data.train)
        if data.columns.task_ == "classification"
        else None
    )
    found = metrics.choose_metric(data.columns.task_, name, shares)
    return defined_metric(*found, name is not None, data.held, data.columns.classes_)


def _model(
    study: Study, found: StudyResult, source: Table, command: str, keep_rows: bool
) -> TableModel:
    """The chosen predictor with its treatment, its intervals and its result."""
    decision, held = decision_of(study, found), study.data.held
    margin = None if study.n_classes else _margin(study, found)
    novelty = fit_novelty(study.data.train, study.seed, _ranged(study.data.columns))
    wider = widening(novelty(held.X, held.odd))
    result = fit_result(study, found, margin, decision, source, command, wider, keep_rows)
    return TableModel(study.data.columns, found.predictor, margin, decision, result, novelty)


def _refitted(model: TableModel, study: Study, found: StudyResult) -> TableModel:
    """Fitted to all rows, with intervals from residuals of rows that were not fitted."""
    with _ignore_many_classes():
        predictor, rows = refit_everything(study, found)
    margin = None if study.n_classes else cross_fitted_margin(study, found, _lowest(study))
    result = with_refit(model.result, rows, residual_count(study, found))
    told = spelled_formula(predictor, study.data.columns.target, study.data.columns.classes_)
    result = replace(result, formula=told) if told and result.formula else result
    return replace(model, predictor=predictor, margin=margin, result=result)


def _ranged(columns: Columns) -> Array:
    """Features that have a range: those of a category have levels, of which new ones are odd
    cells or none.
    """
    return np.array([columns.treatments_[j].kind != "category" for j in columns.origin_])


def _margin(study: Study, found: StudyResult) -> intervals.Margin:
    """From the residuals of the holdout; an end is never negative where no training target was."""
    return intervals.margin(
        study.data.held.y,
        found.chosen.evaluation.predicted,
        target_of(found.predictor),
        low=_lowest(study),
    )


def _lowest(study: Study) -> float:
    return 0.0 if study.data.train.y.min() >= 0 else -np.inf


def _timed(model: TableModel, source: Table, began: float) -> TableModel:
    """With what the finished model weighs and how fast it is."""
    batch = next(source.batches(1000))
    budget.release_memory()  # before a file of the model is made, which is as large as the model
    result = replace(
        model.result,
        model_bytes=_bytes(model),
        latency_row_ms=_milliseconds(model, batch.slice(0, 1)),
        latency_1000_ms=_milliseconds(model, batch),
        seconds=clocks.perf_counter() - began,
        memory_peak_bytes=_peak(),
    )
    return replace(model, result=result)


def _bytes(model: TableModel) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.save(path)
        budget.release_memory()
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
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )
