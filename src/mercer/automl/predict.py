"""Predictions of one table, batch after batch, and what is odd about its rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

from mercer.automl import budget
from mercer.automl.frames import Table, in_batches
from mercer.tables import DataError, Source, Watch
from mercer.tables.arrow import Batch, Kind, Schema, flat, pa
from mercer.tables.errors import many, quoted
from mercer.tables.read.source import ROWS, even

if TYPE_CHECKING:
    from mercer.automl.model import TableModel

# by which the batches that are read are sized, as those of a fit: what allocators keep of a batch
# is a multiple of it
BATCH_MEMORY = 100e6
MAX_BATCH_BYTES = 1 << 24  # bytes of predictions that come at once
USUAL_RATE = 0.02  # unusual rows are about half as many among rows like those of training
FALSE_ALARM = 1e-3  # how seldom that is said in vain


class PredictionJob:
    """The predictions of one table, batch by batch."""

    def __init__(self, model: TableModel, source: Table) -> None:
        name = model.columns.id
        if isinstance(source, Source) and name is not None and name in source.schema.names:
            source = source.as_written(name)
        self.model, self.source = model, source
        self.report = model.columns.check(source.schema)
        self.watch = Watch(model.columns)
        self.n_unusual = 0

    @property
    def id(self) -> str | None:
        """The column that is passed through, where the table has it."""
        name = self.model.columns.id
        return name if name is not None and name in self.source.schema.names else None

    @property
    def schema(self) -> Schema:
        """The columns of the predictions; classes in the type that they had in training."""
        own = self.model.columns.target_.kind if self.model.classes else pa.float64()
        kinds = {"prediction": own, "unusual": pa.int64()}
        fields = [(name, kinds.get(name, pa.float64())) for name in self._names()]
        kind = self.source.schema.field(self.id).type if self.id is not None else None
        return pa.schema(([(self.id, _value_type(kind))] if self.id is not None else []) + fields)

    def _names(self) -> list[str]:
        own = [f"p_{label}" for label in self.model.classes] or ["lower", "upper"]
        names = ["prediction", *own, "unusual"]
        if self.id in names:
            raise DataError(
                f'the id column is named "{self.id}", like a column of the predictions; rename it.'
            )
        return names

    def batches(self) -> Iterator[Batch]:
        """Record batches; every row of the table has one row here, in the same order.

        A DataError where a column is filled and nothing in it can be read. Rows are read in
        small batches, however many come at once.
        """
        return even(self._small(), ROWS, MAX_BATCH_BYTES)

    def _small(self) -> Iterator[Batch]:
        schema = self.schema
        source = in_batches(
            self.source,
            BATCH_MEMORY,
            len(self.model.columns.feature_names_) + len(self.model.classes),
        )
        for batch in (b for b in source.batches() if b.num_rows):
            rows = self.model.columns.transform(batch, target=False, watch=self.watch)
            if (
                self.watch.n_rows >= ROWS
            ):  # fewer are too few to say that nothing in a column can be read, unless they are all
                self.watch.check()
            found = self.model.outputs(rows.X, rows.odd)
            self.n_unusual += int(np.sum(found["unusual"].to_numpy()))
            first = [flat(batch.column(self.id))] if self.id is not None else []
            yield pa.record_batch([*first, *found.values()], schema=schema)
            del batch, rows, found, first
            budget.release_memory()  # else what allocators keep would grow with the rows
        self.watch.check()

    def warnings(self) -> list[str]:
        """Sentences on extra columns, other types, cells not read, and drift; ask last."""
        told = [*self.source.said, *self.report.sentences()]
        role = self.model.columns.id
        if role is not None and self.id is None:
            told.append(
                f"the table lacks the id column {quoted([role])}, so predictions carry none."
            )
        return [*told, *self.oddities()]

    def oddities(self) -> list[str]:
        """Sentences on cells not read, on drift, and on what no longer holds for such rows."""
        report = self.watch.report()
        strange = [d.name for d in report.columns if d.large or self._gone(d.name)]
        mattering, told = (
            [name for name in strange if name in self._mattering()],
            [*report.warnings, *self._unlike()],
        )
        if not mattering:
            return told
        what = (
            "the probabilities may be far off"
            if self.model.classes
            else "the intervals and what was promised of them do not hold"
        )
        return [
            *told,
            f"these rows are unlike those of training in {quoted(mattering)}, so for them {what}.",
        ]

    def _unlike(self) -> list[str]:
        """How many rows are unlike any of training, where they are more than chance would make."""
        n, count = self.watch.n_rows, self.n_unusual
        if count <= binom.isf(FALSE_ALARM, n, USUAL_RATE):
            return []
        wider = "" if self.model.classes else ", and their intervals are wider"
        are = (
            "is unlike any row of training: it has"
            if count == 1
            else "are unlike any row of training: they have"
        )
        return [f"{count:,} of {many(n, 'row')} {are} a 1 in the column unusual{wider}."]

    def _gone(self, name: str) -> bool:
        """Whether a column that training had is missing in every row."""
        counts = self.watch.counts[name]
        return bool(
            counts[-1] == counts.sum() > 0 and self.model.columns.references_[name].shares[-1] < 0.5
        )

    def _mattering(self) -> set[str]:
        """The columns without which the score would be lower by more than its error."""
        return {name for name, loss, error in self.model.result.importance if loss > error}


def _value_type(kind: Kind) -> Kind:
    """The type of a column's values: those of a dictionary are what it stands for."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
