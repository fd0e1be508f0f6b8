"""Columns of any kind as a matrix of numbers: learned in one pass in bounded memory, applied batch
by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self, overload

import numpy as np

from mercer.inputs import Array
from mercer.ops.threads import parallel_map
from mercer.tables.arrow import Batch, Column, Schema, flat, pa
from mercer.tables.dates import moments
from mercer.tables.drift import DriftReport, ReferenceBins, Watch
from mercer.tables.encoders import Encoder, from_state
from mercer.tables.errors import DataError
from mercer.tables.finish import finish_fit
from mercer.tables.levels import LevelMeansEncoder
from mercer.tables.options import Judge
from mercer.tables.read.source import batches_of
from mercer.tables.schema import SchemaReport, check_roles, compared, need
from mercer.tables.sketch import CELLS, ColumnSketch, RowSample, hashes, missing_rows
from mercer.tables.target import Target
from mercer.tables.treatment import (
    MAX_CATEGORIES,
    DroppedRows,
    Rows,
    Treatment,
    weights,
)
from mercer.tables.values import text

TASKS = ("auto", "regression", "classification")
ROLES = ("id", "weight", "group", "time_column")


class Columns:
    """The treatment of a table: which columns there are, what becomes of each, and the numbers they
    turn into.

    Parameters
    ----------
    target : str
        The column to predict.
    exclude : sequence of str, default=()
        Columns to leave out.
    id, weight, group, time_column : str, default=None
        Columns with a role; they are no features (a date that orders the rows gives its cycles).
    task : {"auto", "regression", "classification"}, default="auto"
        What is asked; "auto" looks at the target.
    max_categories : int
        The most levels of a category that have a feature of their own.
    random_state : int, default=0
        The seed of the sample from which treatments are decided.

    Attributes
    ----------
    task_, task_reason_ : str
        What is predicted, and the rule that decided it.
    classes_ : tuple of str
        Of a classification.
    target_ : Target
        The column that is predicted.
    treatments_ : tuple of Treatment
        One for each original column, in order.
    feature_names_ : list of str
        The features.
    origin_ : list of int
        The position of the column that each comes from.
    n_rows_, n_dropped_ : int
        Rows with and without a target.
    warnings_ : tuple of str
        Sentences for the user.

    Examples
    --------
    >>> batch = pa.record_batch({"size": [1.0, 2.0, 3.0, 5.0], "price": [1.5, 2.5, 3.25, None]})
    >>> c = Columns("price").fit([batch])
    >>> c.task_, c.n_rows_, c.n_dropped_, c.transform(batch).X.shape
    ('regression', 3, 1, (3, 1))
    """

    target_: Target
    treatments_: tuple[Treatment, ...]
    encoders_: dict[str, Encoder]  # of the columns that have features, in order
    references_: dict[str, ReferenceBins]
    types_: dict[str, str]
    time_form_: str | None
    n_rows_: int
    n_dropped_: int
    warnings_: tuple[str, ...]

    def __init__(
        self,
        target: str,
        *,
        exclude: Sequence[str] = (),
        id: str | None = None,
        weight: str | None = None,
        group: str | None = None,
        time_column: str | None = None,
        task: str = "auto",
        max_categories: int = MAX_CATEGORIES,
        random_state: int = 0,
    ) -> None:
        if task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(TASKS)}; it is {task!r}.")
        if max_categories < 1:
            raise ValueError(f"max_categories must be at least 1; it is {max_categories}.")
        self.target, self.exclude, self.task = (
            target,
            (exclude,) if isinstance(exclude, str) else tuple(exclude),
            task,
        )
        self.id, self.weight, self.group, self.time_column = id, weight, group, time_column
        self.max_categories, self.random_state = max_categories, random_state

    def fit(
        self,
        source: Any,
        cells: int = CELLS,
        judge: Judge | None = None,
        tell_rows: bool = True,
        points: str = "",
    ) -> Self:
        """One pass over a `Source`, a pyarrow table or record batches; treatments are decided from
        a sample of so many cells.

        judge : the loss on rows left out, of features and of what is to be predicted; where it is
        given, it settles what is a choice (`mercer.tables.options`)
        tell_rows : whether warnings tell of rows that were left out; False where these are not all
        rows of the table, and whoever has the others tells
        points : "shown" or "given" where the file has decimal points, as a `Source` knows
        """
        sketches: dict[str, ColumnSketch] = {}
        sample, dropped = (
            RowSample(seed=self.random_state, cells=cells),
            DroppedRows(),
        )
        points = points or getattr(source, "points", "")
        for batch in batches_of(source):
            if not sketches:
                self.check_names(batch.schema.names)
                for name in batch.schema.names:
                    sketches[name] = ColumnSketch(label=name == self.target, points=points)
            dropped.add(
                batch.column(self.target), weights(batch, self.weight) if self.weight else None
            )
            kept = batch.filter(pa.array(~self._unlabelled(batch)))
            parallel_map(partial(_sketch, sketches, kept), list(sketches))
            sample.add(kept)
        if not dropped.n:
            raise DataError("there are no rows to learn from.")
        dropped.check(self.target, self.weight)
        finish_fit(self, sketches, sample, dropped, judge, tell_rows)
        return self

    def check_names(self, names: Sequence[str]) -> None:
        """That every column named in the settings is there, and in one role only."""
        asked = [
            ("target", self.target),
            *((r, getattr(self, r)) for r in ROLES),
            *(("exclude", e) for e in self.exclude),
        ]
        check_roles(asked, names)

    def _unlabelled(self, batch: Batch) -> Array:
        """Rows that cannot be learned from: without a target, or without a weight."""
        out = missing_rows(batch.column(self.target))
        return out | np.isnan(weights(batch, self.weight)) if self.weight else out

    @property
    def task_(self) -> str:
        return self.target_.task

    @property
    def task_reason_(self) -> str:
        return self.target_.reason

    @property
    def classes_(self) -> tuple[str, ...]:
        return self.target_.classes

    @property
    def feature_names_(self) -> tuple[str, ...]:
        return tuple(output for t in self.treatments_ for output in t.outputs)

    @property
    def origin_(self) -> tuple[int, ...]:
        return tuple(i for i, t in enumerate(self.treatments_) for _ in t.outputs)

    @property
    def used_(self) -> tuple[str, ...]:
        """The original columns that have features."""
        return tuple(self.encoders_)

    @property
    def level_means_(self) -> dict[str, tuple[int, LevelMeansEncoder]]:
        """The columns with a mean of the target at each level: the first feature that is one, and
        the encoder; the means are filled in by whoever has the rows (`with_level_means`)."""
        starts = dict(zip(self.used_, self._starts(), strict=False))
        return {
            name: (starts[name] + len(e.values.names(name)), e)
            for name, e in self.encoders_.items()
            if isinstance(e, LevelMeansEncoder)
        }

    def _starts(self) -> list[int]:
        """The first feature of every column that has some."""
        sizes = [len(t.outputs) for t in self.treatments_ if t.name in self.encoders_]
        return [0, *np.cumsum(sizes).tolist()]

    def with_level_means(self, name: str, means: Array) -> None:
        """Set the means of the levels of a column."""
        encoder = self.encoders_[name]
        assert isinstance(encoder, LevelMeansEncoder)
        self.encoders_[name] = encoder.with_means(means)

    def set_encoder(self, name: str, encoder: Encoder, action: str = "") -> None:
        """Put another encoder in the place of a column's, with other words on what it does."""
        self.encoders_[name] = encoder
        self.treatments_ = tuple(
            replace(t, outputs=encoder.names(name), action=action or t.action)
            if t.name == name
            else t
            for t in self.treatments_
        )

    def transform(self, batch: Batch, *, target: bool = True, watch: Watch | None = None) -> Rows:
        """A batch in numbers.

        Parameters
        ----------
        batch : a record batch (or table) with the columns of training, in any order; others are
        ignored
        target : whether to read the target and the weight, where the batch has them, and leave out
        rows without; False keeps every row
        watch : counts what was read, to compare it with training
        """
        names = batch.schema.names
        self.need(names)
        y = (
            self.target_.read(flat(batch.column(self.target)))
            if target and self.target in names
            else None
        )
        weight = (
            weights(batch, self.weight)
            if target and self.weight is not None and self.weight in names
            else None
        )
        keep = np.logical_and.reduce(
            [np.ones(batch.num_rows, bool), *(~np.isnan(v) for v in (y, weight) if v is not None)]
        )
        index = np.flatnonzero(keep)
        kept = batch if len(index) == batch.num_rows else batch.take(pa.array(index))
        X, unread, odd = self._matrix(kept, watch)
        return Rows(
            X,
            self._labels(y, index),
            None if weight is None else weight[index],
            self._group(kept),
            self._time(kept),
            self._id(kept),
            index,
            unread,
            odd,
        )

    def _labels(self, y: Array | None, index: Array) -> Array | None:
        if y is None or self.task_ == "regression":
            return None if y is None else y[index]
        return y[index].astype(np.int64)

    def _matrix(self, batch: Batch, watch: Watch | None) -> tuple[Array, dict[str, int], Array]:
        X = np.empty((batch.num_rows, len(self.feature_names_)), np.float32)
        todo = list(zip(self.used_, self._starts(), strict=False))
        filled = parallel_map(lambda item: self._fill(X, batch, item, watch), todo)
        if watch is not None:
            watch.n_rows += batch.num_rows
        odd = np.logical_or.reduce([np.zeros(batch.num_rows, bool), *(mask for _, mask in filled)])
        return (
            X,
            {name: count for (name, _), (count, _) in zip(todo, filled, strict=True) if count},
            odd,
        )

    def _fill(
        self, X: Array, batch: Batch, item: tuple[str, int], watch: Watch | None
    ) -> tuple[int, Array]:
        name, start = item
        column = flat(batch.column(name))
        values, unread = self.encoders_[name].read(column)
        found = self.encoders_[name].features(values)
        X[:, start : start + found.shape[1]] = found
        if watch is not None:
            watch.take(name, values, unread, column)
        return unread, self.references_[name].odd(values[:, 0])

    def _group(self, batch: Batch) -> Array | None:
        return (
            hashes(text(batch.column(self.group)).fill_null(""))
            if self.group in batch.schema.names
            else None
        )

    def _time(self, batch: Batch) -> Array | None:
        return (
            moments(batch.column(self.time_column), self.time_form_)
            if self.time_column in batch.schema.names
            else None
        )

    def _id(self, batch: Batch) -> Column:
        return flat(batch.column(self.id)) if self.id in batch.schema.names else None

    def need(self, names: Sequence[str], what: str = "the table") -> None:
        """Raise a DataError where a column that the features come from is not among the names."""
        need(self.used_, names, what)

    def check(self, schema: Schema, what: str = "the table") -> SchemaReport:
        """A new table's schema beside what training made of its columns; ones that features need
        and that lack raise a DataError.

        What a column was taken for counts, not how its file stored it: a number may come as text
        from a csv file.
        """
        self.need(schema.names, what)
        return compared(schema, self.types_, self.encoders_)

    def watch(self) -> Watch:
        """What counts new data on the way through `transform`, for its `report()` on drift."""
        return Watch(self)

    @overload
    def drift(self) -> Watch: ...
    @overload
    def drift(self, source: Any) -> DriftReport: ...
    def drift(self, source: Any = None) -> Watch | DriftReport:
        """The report on new data, a source or batches, beside the training data; without any, a
        `watch()`."""
        watch = self.watch()
        if source is None:
            return watch
        for batch in batches_of(source):
            watch.add(batch)
        return watch.report()

    def state(self) -> dict[str, Any]:
        """All that was learned, as plain JSON-able values."""
        settings = {
            name: getattr(self, name)
            for name in ("target", *ROLES, "task", "max_categories", "random_state")
        }
        return {
            "settings": settings | {"exclude": list(self.exclude)},
            "target": self.target_.state(),
            "treatments": [t.as_dict() for t in self.treatments_],
            "encoders": {name: e.state() for name, e in self.encoders_.items()},
            "references": {name: r.state() for name, r in self.references_.items()},
            "types": dict(self.types_),
            "time_form": self.time_form_,
            "n_rows": self.n_rows_,
            "n_dropped": self.n_dropped_,
            "warnings": list(self.warnings_),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The object that `state()` described."""
        self = cls(**state["settings"])
        self.target_ = Target.from_state(state["target"])
        self.treatments_ = tuple(Treatment.from_dict(t) for t in state["treatments"])
        self.encoders_ = {name: from_state(e) for name, e in state["encoders"].items()}
        self.references_ = {
            name: ReferenceBins.from_state(r) for name, r in state["references"].items()
        }
        self.types_, self.time_form_ = dict(state["types"]), state["time_form"]
        self.n_rows_, self.n_dropped_, self.warnings_ = (
            state["n_rows"],
            state["n_dropped"],
            tuple(state["warnings"]),
        )
        return self


def _sketch(sketches: dict[str, ColumnSketch], batch: Batch, name: str) -> None:
    sketches[name].add(batch.column(name))
