"""From files larger than memory to a model, on a cluster or out of core: chosen on a sample of their
rows, then summed over all of them."""

from __future__ import annotations

import copy
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np

from mercer.automl import intervals
from mercer.automl.budget import check_memory, silent, working_memory
from mercer.automl.data import Roles
from mercer.automl.fit import fit_table, fitted_study
from mercer.automl.frames import Frame, in_batches
from mercer.automl.intervals import widening
from mercer.automl.metrics import TITLES, metric_named, number
from mercer.automl.model import TableModel
from mercer.automl.predictors import (
    Classifier,
    ConstantPredictor,
    LogTarget,
    Predictor,
    Regressor,
    prediction_bounds,
)
from mercer.automl.refit import PENALTY_FACTORS
from mercer.automl.rows import TableRows
from mercer.automl.study import Study
from mercer.automl.summarise import target_of
from mercer.automl.table_partitions import (
    TablePartitions,
    TableReader,
    TreatedRows,
    UnsummedRows,
    sampled_table,
)
from mercer.engines import checkpointed
from mercer.engines.checkpoint import current, write_atomically
from mercer.engines.partitions import Place
from mercer.engines.sample import PartitionSample
from mercer.engines.tree import fold, passes_told
from mercer.inputs import Array
from mercer.models import KernelLogistic, KernelRidge
from mercer.models.base import bytes_of
from mercer.models.folds import Folds
from mercer.models.logistic_fit import LogisticSettings
from mercer.models.logistic_fit import summed as summed_slopes
from mercer.models.partitions.classes import ClassTotals
from mercer.models.partitions.classifiers import ClassPartitions
from mercer.models.ridge.fit import FittedRidge
from mercer.models.ridge.moments import begin
from mercer.models.ridge.partitions import summed as summed_moments
from mercer.models.ridge.problem import RidgeSettings
from mercer.store import load
from mercer.tables import Source

SAMPLE_ROWS = 100_000  # of which a model is chosen
PENALTY_FOLDS = 2  # by which its penalty is chosen once more, of all rows
MODEL, ROWS = "model.mercer", "rows.npz"
CHOICE = "choice-"


@dataclass(frozen=True, eq=False)
class SampleChoice:
    """What was chosen on a sample: the model of its training rows, these rows and those held out as
    the model takes them, and which rows of the files are summed."""

    model: TableModel
    train: TreatedRows
    held: TableRows
    left_out: UnsummedRows
    name: str  # of all of it, by its content

    @classmethod
    def read(cls, folder: Path, seed: int) -> SampleChoice:
        """As it was kept."""
        model = load(folder / MODEL)
        with np.load(folder / ROWS, allow_pickle=False) as found:
            a = {name: found[name] for name in found.files}
        train = TreatedRows(a["X"], a["y"], a.get("weight"))
        of: Any = {f.name: a.get(f"held_{f.name}") for f in fields(TableRows)}
        left_out = UnsummedRows(seed, int(a["last"]), a.get("groups"), float(a["since"]))
        name = blake2b(digest_size=16)
        for file in (MODEL, ROWS):
            name.update((folder / file).read_bytes())
        return cls(model, train, TableRows(**of), left_out, name.hexdigest())


def kept(folder: Path, model: TableModel, study: Study, last: int, test: Any) -> None:
    """Put a choice down; the files of `test` are no rows of the table."""
    train, held = study.data.train, study.data.held
    found: dict[str, Any] = {"X": train.X, "y": train.y, "weight": train.weight}
    found |= {f"held_{f.name}": getattr(held, f.name) for f in fields(TableRows)}
    found |= {"last": np.array(last, np.uint64), "since": np.array(np.inf)}
    if isinstance(test, float):
        columns = study.data.columns
        if held.time is not None:
            found["since"] = held.time.min()
        elif held.group is not None and columns.group is not None:
            found["groups"] = np.unique(held.group)
    model.save(folder / MODEL)
    write_atomically(folder / ROWS, {k: np.asarray(v) for k, v in found.items() if v is not None})


def fit_partitions(
    source: Source,
    roles: Roles,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None],
    notice: Callable[[str], None] = silent,
    **options: Any,
) -> TableModel:
    """The model of files on the current client, or in threads of this process.

    A model is chosen as `fit_table` does, of the kinds whose fits are sums over rows, on at most
    100,000 rows of least priorities (hashes of their numbers). Its sums then take in all other rows
    of the files, except those that share a group or the time of held-out rows; the penalty of numbers
    is chosen once more by folds of all rows. Tables that the sample holds whole are fitted as ever,
    which `notice` hears and the verdict tells.

    With `checkpoint`, the choice is kept in that folder before anything is summed, and the sums as
    they are done: a fit begun again ends at the same model, bit for bit.
    """
    with checkpointed(checkpoint) if checkpoint is not None else nullcontext():
        progress("counting the rows")
        able = working_memory(check_memory(bytes_of(options["memory"], "memory")))
        batched = cast(Source, in_batches(source, able, len(source.schema)))
        data = TablePartitions.of_source(batched)
        if data.rows <= SAMPLE_ROWS:
            named = {f.name: getattr(roles, f.name) for f in fields(Roles)}
            model = fit_table(source, progress=progress, **named, **options)
            notice(sentence := _as_ever(data.rows))
            verdict = f"{model.result.verdict} {sentence}"
            return replace(model, result=replace(model.result, verdict=verdict))
        choice = _choice(data, source, roles, progress, options)
        number = count(1)

        def told() -> None:
            where = f"{data.rows:,} rows in {len(data):,} partitions"
            progress(f"summing {where}: pass {next(number)}")

        with passes_told(told):
            return summed(choice, data)


def _as_ever(rows: int) -> str:
    """Why nothing was summed."""
    return (
        f"--cluster and --checkpoint had no effect: they are for tables of more than {SAMPLE_ROWS:,} rows, "
        f"and this one of {rows:,} was fitted in this process."
    )


def _choice(
    data: TablePartitions,
    source: Source,
    roles: Roles,
    progress: Callable[[str], None],
    options: dict[str, Any],
) -> SampleChoice:
    """That of before, or a new one, which is kept whole or not at all."""
    seed, checkpoint = options["seed"], current()
    asked = {k: str(v) for k, v in options.items() if k not in ("command", "test")}
    test = options["test"]
    told = test if isinstance(test, float) else [str(p) for p in test.paths]
    words = json.dumps([repr(roles), sorted(asked.items()), told, SAMPLE_ROWS, data.keys])
    name = CHOICE + blake2b(words.encode(), digest_size=16).hexdigest()
    with tempfile.TemporaryDirectory() as passing:
        folder = Path(passing) if checkpoint is None else checkpoint.folder
        if checkpoint is not None:
            checkpoint.used.append(folder / name)
        if not (folder / name).exists():
            draft = Path(tempfile.mkdtemp(dir=folder, prefix="draft-"))
            try:
                _choose(draft, data, source, roles, progress, options)
                os.replace(draft, folder / name)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return SampleChoice.read(folder / name, seed)


def _choose(
    folder: Path,
    data: TablePartitions,
    source: Source,
    roles: Roles,
    progress: Callable[[str], None],
    options: dict[str, Any],
) -> None:
    """Choose on a sample, and put it down."""
    progress("taking a sample")
    some, last = sampled_table(data, SAMPLE_ROWS, options["seed"])
    frame = Frame(some.table, source.paths, source.said)
    model, study = fitted_study(frame, roles, progress=progress, sums=True, **options)
    told = model.result
    rule = f"{told.holdout_rule}, of a sample of {len(some.number):,} of {data.rows:,} rows"
    by_file = not isinstance(options["test"], float)
    worst = told.worst if by_file else tuple(_numbered(told.worst, some.number))
    result = replace(told, holdout_rule=told.holdout_rule if by_file else rule, worst=worst)
    kept(folder, replace(model, result=result), study, last, options["test"])


def _numbered(worst: Any, number_of: Array) -> Any:
    """Rows of the sample by their numbers in the files, from 1."""
    return ({**row, "row": int(number_of[row["row"] - 1]) + 1} for row in worst)


# sums
def summed(choice: SampleChoice, data: TablePartitions) -> TableModel:
    """The chosen model of all rows, and what it says of those held out."""
    model, held = choice.model, choice.held
    predictor, rows = _of_all(choice, data)
    f, margin, interval = predictor(held.X), model.margin, model.result.interval
    if isinstance(predictor, Regressor):
        target, wider = target_of(predictor), widening(model.unusual(held.X, held.odd))
        low = 0.0 if predictor.low >= 0 else -np.inf
        margin = intervals.margin(held.y, f, target, low=low)
        told = (held, f, margin, target, model.result.seed, wider)
        interval = intervals.interval_summary(*told)
    result = replace(
        model.result,
        rows_refitted=rows,
        interval=interval,
        verdict=f"{model.result.verdict} {_told(choice, f, rows)}",
    )
    return replace(model, predictor=predictor, margin=margin, result=result)


def _told(choice: SampleChoice, f: Array, rows: int) -> str:
    """What the scores are of, and that of the model of all rows."""
    model, held = choice.model, choice.held
    asked = metric_named(model.result.task, model.result.metric)
    score = (
        asked.decided(held.y, f, model.decision(f), held.weight)
        if model.classes
        else asked(held.y, f, held.weight)
    )
    shown = f"{TITLES[asked.name]} {number(score.value, asked.name)}"
    before = f"All scores are of the model of the sample's {len(choice.train):,} training rows"
    return f"{before}: the saved one has learnt from {rows:,} rows, and has {shown} on the same held-out rows."


def _of_all(choice: SampleChoice, data: TablePartitions) -> tuple[Predictor, int]:
    """The predictor of all rows, and how many they are."""
    p = choice.model.predictor
    if isinstance(p, ConstantPredictor):  # of the sample: more rows hardly change it
        return p, len(choice.train)
    assert isinstance(p, Regressor | Classifier)
    together = data.beside(choice.train, choice.name)
    return (
        _numbers(p, choice, together) if isinstance(p, Regressor) else _classes(p, choice, together)
    )


def _numbers(p: Regressor, choice: SampleChoice, data: TablePartitions) -> tuple[Predictor, int]:
    """Moments in one pass, over the map that was chosen; bounds by the targets of all rows."""
    m: KernelRidge = copy.copy(p.estimator)
    least = float(choice.train.y.min()) if isinstance(p.target, LogTarget) else -np.inf
    columns = choice.model.columns
    reader = TableReader(columns, choice.left_out, choice.name, p.target, least)
    asked = copy.copy(m)
    asked.set_params(cv=PENALTY_FOLDS, alphas=float(np.mean(m.alpha_)) * PENALTY_FACTORS)
    X, Y, _ = reader(choice.train, None, None)
    assert Y is not None
    solution: Any = m.fitted_.solution  # over features, as kinds that add are
    phi = solution.phi
    stream = begin(RidgeSettings.of(asked), phi, Folds.by_hash(PENALTY_FOLDS), X, Y, True)
    model = summed_moments(stream, data, reader)
    ends = fold(data, GatherEnds(reader))
    m.fitted_ = FittedRidge(model.alone())
    y = np.array([ends.low, ends.high])
    return Regressor(m, p.target, *prediction_bounds(y)), model.total.count


def _classes(p: Classifier, choice: SampleChoice, data: TablePartitions) -> tuple[Predictor, int]:
    """Rounds over all rows, which begin at the model of the sample."""
    m: KernelLogistic = copy.copy(p.estimator)
    classes = np.asarray(m.classes_)
    reader = TableReader(choice.model.columns, choice.left_out, choice.name, classes=classes)
    X, codes, w = reader(choice.train, None, None)
    assert codes is not None
    some = PartitionSample(np.arange(len(X)), X.data, codes, w)
    totals = ClassTotals(classes, np.bincount(codes, w, minlength=len(classes)))
    rows = ClassPartitions(data, totals, reader, m.solution_.phi, some)
    begun = m.solution_.coef, m.solution_.intercept
    solution, _, _ = summed_slopes(LogisticSettings.of(m), None, rows, begun)
    m.solution_ = solution
    return Classifier(m, p.n_classes), fold(data, GatherEnds(reader)).count


@dataclass(frozen=True, eq=False)
class Ends:
    """How many rows were summed, and the least and the largest of their targets."""

    count: int
    low: float
    high: float

    def __add__(self, o: Ends) -> Ends:
        return Ends(self.count + o.count, min(self.low, o.low), max(self.high, o.high))

    def arrays(self) -> dict[str, Array]:
        return {"count": np.array(self.count), "ends": np.array([self.low, self.high])}

    @classmethod
    def of_arrays(cls, arrays: dict[str, Array]) -> Ends:
        return cls(int(arrays["count"]), *map(float, arrays["ends"]))


@dataclass(frozen=True, eq=False)
class GatherEnds:
    """Those of a partition."""

    reader: TableReader
    kind = Ends

    @property
    def identity(self) -> str:
        return repr(("ends", self.reader.identity))

    def __call__(self, X: Any, y: Any, weight: Any, place: Place) -> Ends:
        rows = X if isinstance(X, TreatedRows) else self.reader.treated(*X)
        y = rows.y if self.reader.classes is None else rows.y[np.isin(rows.y, self.reader.classes)]
        y = y.astype(np.float64)
        return Ends(len(y), float(y.min(initial=np.inf)), float(y.max(initial=-np.inf)))
