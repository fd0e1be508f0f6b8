"""Rows as they are treated, batch by batch, and the count of those that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mercer.automl.documents import DocumentSample, document_hashes
from mercer.automl.rows import BLOCK_ROWS, GrowingArray, TableRows
from mercer.inputs import Array
from mercer.ops.tiles import cuts
from mercer.tables import Columns
from mercer.tables.arrow import Batch, pa
from mercer.tables.errors import many
from mercer.tables.treatment import DroppedRows, Treatment, weights


class RowCollector:
    """The rows of one side as they are treated, batch by batch; beyond `most` bytes on disk. Equal
    documents of `copied` columns are a group, and `sample` keeps documents."""

    def __init__(
        self,
        columns: Columns,
        most: float,
        copied: Sequence[str] = (),
        sample: DocumentSample | None = None,
    ) -> None:
        self.columns, self.most, self.dropped, self.unknown = columns, most, 0, 0
        self.weightless = 0  # rows of weight 0, which are as if they were not there
        self.copied, self.sample = copied, sample
        self.gone = DroppedRows()  # why
        self.X = GrowingArray(len(columns.feature_names_), most)
        self.rest: dict[str, GrowingArray] = {}

    def add(self, batch: Batch, number: Array, known: bool = False) -> None:
        """Treat a batch; rows without a target or of weight 0 are dropped and counted, and so are
        `known` ones of a class that training lacks."""
        if not batch.num_rows:
            return
        rows = self.columns.transform(batch)
        self.dropped += batch.num_rows - len(rows)
        weight = self.columns.weight
        heavy = weights(batch, weight) if weight and weight in batch.schema.names else None
        self.gone.add(batch.column(self.columns.target), heavy)
        row_id, group = number[rows.index], rows.group
        counts = np.ones(len(rows), bool) if rows.weight is None else rows.weight > 0
        self.weightless += len(rows) - int(counts.sum())
        if self.sample is not None:
            self.sample.add(batch, rows.index[counts], row_id[counts])
        if self.copied:
            group = document_hashes(batch.take(pa.array(rows.index)), self.copied, row_id)
        group = None if group is None else group.view(np.int64)
        found = {
            "y": rows.y,
            "row_id": row_id,
            "weight": rows.weight,
            "group": group,
            "time": rows.time,
            "odd": rows.odd,
        }
        some: Any = counts
        if known and rows.y is not None and self.columns.classes_:
            some = counts & (rows.y >= 0)
        self.unknown += int(counts.sum()) - int(some.sum())
        some = slice(None) if some.all() else some
        kept = rows.X[some]
        self.X.add(kept)
        for name, values in found.items():
            if values is not None:
                self.rest.setdefault(name, GrowingArray(1, self.most, values.dtype)).add(
                    values[some]
                )
        if sum(array.n_bytes for array in self._arrays) > self.most:
            for array in self._arrays:
                array.spill()

    @property
    def _arrays(self) -> list[GrowingArray]:
        return [self.X, *self.rest.values()]

    def rows(self) -> TableRows:
        X, found = self.X.array(), {name: array.vector() for name, array in self.rest.items()}
        y = found.get("y", np.zeros(0, np.int64 if self.columns.classes_ else np.float64))
        row_id, time = found.get("row_id", np.zeros(0, np.int64)), _timed(found.get("time"))
        return TableRows(
            X, y, row_id, found.get("weight"), found.get("group"), time, found.get("odd")
        )


def _timed(time: Array | None) -> Array | None:
    """Rows without a time come first."""
    if time is not None:
        first = np.fmin.reduce(time, initial=0.0)
        for s in cuts(len(time), BLOCK_ROWS):
            time[s] = np.where(np.isnan(time[s]), first, time[s])
    return time


def with_missing(
    columns: Columns, train: RowCollector, held: RowCollector | None
) -> tuple[Treatment, ...]:
    """Treatments, that of the target with as many missing as are told of: in all rows of the table,
    where the fit has counted those to learn from."""
    gone = train.gone if held is None else train.gone + held.gone
    infinite = 0 if columns.target_.numeric else gone.n_infinite
    missing = gone.n_untargeted - infinite + gone.n_texts
    return tuple(
        replace(t, n_missing=missing) if t.name == columns.target else t
        for t in columns.treatments_
    )


def rows_left_out(
    columns: Columns, train: RowCollector, held: RowCollector, by_file: bool
) -> tuple[str, ...]:
    """Sentences on rows that were left out, as many as were dropped: of the table, and where there
    is one, of the test file."""
    numeric = columns.target_.numeric
    for side in (train, held):
        side.gone.settle(side.dropped, numeric)
    named = (columns.target, columns.weight, numeric)
    light = _weightless(train.weightless + held.weightless, columns.weight)
    if not by_file:
        return (*(train.gone + held.gone).sentences(*named), *light)
    test = held.gone.sentences(*named, "rows of the test file")
    return (*train.gone.sentences(*named), *test, *light)


def _weightless(n: int, weight: str | None) -> tuple[str, ...]:
    """
    >>> _weightless(2, "w")
    ('2 rows have weight 0 by "w" and were left out.',)
    """
    have = "has" if n == 1 else "have"
    return (f'{many(n, "row")} {have} weight 0 by "{weight}" and were left out.',) * (n > 0)
