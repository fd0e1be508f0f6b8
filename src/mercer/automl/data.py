"""From files to rows of numbers: the holdout is told apart, the training rows decide the treatment,
both are written out treated."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer.automl import budget, splits
from mercer.automl.budget import Clock
from mercer.automl.collect import RowCollector, rows_left_out, with_missing
from mercer.automl.documents import (
    DocumentSample,
    document_columns,
    grouped_by_document,
    together,
)
from mercer.automl.frames import Table, enumerate_batches, in_batches, only
from mercer.automl.rows import BLOCK_ROWS, TableRows
from mercer.automl.splits import Holdout
from mercer.automl.text_scores import TextScorer
from mercer.automl.treat import fill_level_means
from mercer.inputs import Array
from mercer.ops.tiles import cuts
from mercer.stats import row_hashes
from mercer.tables import Columns, DataError
from mercer.tables.arrow import Batch, pa
from mercer.tables.dates import moments, time_form
from mercer.tables.errors import Misnamed, many, nearest
from mercer.tables.options import Judge
from mercer.tables.sketch import CELLS

MIN_TRAIN_ROWS = 10
MIN_HOLDOUT_ROWS = 5
FEW_DUPLICATES = 0.005  # of the held-out rows: so few copies change a score by less than its error
CHANCE_ROWS = 5_000  # rows by which chance is reckoned
HASHED_VALUES = 1 << 18  # of rows that are hashed together
EXPLAINED_BY_CHANCE = (
    3.0  # times what chance gives: columns go together, so that more rows are equal
)


@dataclass(frozen=True)
class Roles:
    """Which column is what."""

    target: str
    exclude: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    group: str | None = None
    time_column: str | None = None

    @property
    def named(self) -> tuple[str | None, ...]:
        """Columns that are no features."""
        return (self.target, self.id, self.weight, self.group, self.time_column, *self.exclude)

    def check(self, names: Sequence[str]) -> None:
        """Refuse names that are not there, with those most like them, and columns with two
        roles."""
        roles = {
            "target": self.target,
            "id": self.id,
            "weight": self.weight,
            "group": self.group,
            "time column": self.time_column,
        }
        for role, name in [*roles.items(), *(("exclude", name) for name in self.exclude)]:
            if name is not None and name not in names:
                raise Misnamed(f'{role}: there is no column "{name}"{nearest(str(name), names)}')
        for role, name in roles.items():
            if role != "target" and name is not None and name == self.target:
                raise Misnamed(
                    f'{role} and target are both "{name}"; the target cannot have another role.'
                )
        if self.target in self.exclude:
            raise Misnamed(f'exclude names the target "{self.target}"; leave it in.')


@dataclass(frozen=True, eq=False)
class TableData:
    """The treatment and the treated rows on both sides."""

    columns: Columns
    train: TableRows
    held: TableRows
    rule: str
    dropped: int
    unknown: int  # held-out rows of a class that no training row has
    duplicates: int = 0  # held-out rows that equal training rows, target and all
    expected_duplicates: float = 0.0  # how many would where each column were drawn by itself
    texts: tuple[dict[str, Any], ...] = ()  # what was found of columns of texts

    @property
    def alarming(self) -> int:
        """The copies, where they are more than columns of few values explain, and enough to change
        a score."""
        return (
            0
            if self.explained or self.duplicates <= FEW_DUPLICATES * len(self.held)
            else self.duplicates
        )

    @property
    def explained(self) -> bool:
        """Whether chance makes about as many."""
        return self.duplicates <= EXPLAINED_BY_CHANCE * self.expected_duplicates


def prepare_data(
    source: Table,
    roles: Roles,
    test: float | Table,
    *,
    task: str,
    memory: float,
    seed: int,
    clock: Clock,
    judge: Judge | None = None,
    texts: TextScorer | None = None,
) -> TableData:
    """Two passes over the data, three where groups or times decide the holdout, two more where there
    are texts to be scored; rows that memory does not hold wait on disk."""
    roles.check(source.schema.names)
    source = in_batches(source, memory)
    copied = () if texts is None else document_columns(source, roles.named)
    apart = _holdout(
        source, roles, test, memory, seed, copied
    )  # the target of a small table is read for it
    clock.say("reading the table")
    columns = Columns(
        roles.target,
        exclude=roles.exclude,
        id=roles.id,
        weight=roles.weight,
        group=roles.group,
        time_column=roles.time_column,
        task=task,
        random_state=seed,
    )
    some = min(CELLS, budget.sample_cells(memory))
    columns.fit(_training(source, apart), some, judge, tell_rows=False, points=source.points)
    budget.release_memory()
    clock.say("treating the columns")
    sample = None if texts is None else texts.expect(columns)
    alone = roles.group is roles.time_column is None
    copied = tuple(n for n in copied if n in columns.encoders_ and alone)
    train, held = _collected(source, columns, apart, memory, copied, sample)
    told = rows_left_out(columns, train, held, apart.test is not None)
    columns.warnings_ = (*source.said, *told, *columns.warnings_)
    columns.treatments_ = with_missing(columns, train, None if apart.test is not None else held)
    data = _table_data(
        columns, train, held, apart.rule, None if apart.test is not None else test, memory, seed
    )
    if texts is None or sample is None:
        return data
    clock.say("scoring the texts")
    texts.fill(columns, data.train, data.held, sample, (source, apart.test))
    return replace(data, texts=tuple(texts.found))


def _collected(
    source: Table,
    columns: Columns,
    apart: Holdout,
    memory: float,
    copied: Sequence[str],
    sample: DocumentSample | None,
) -> tuple[RowCollector, RowCollector]:
    """The rows to learn from and those held out, treated."""
    most, width = budget.buffer_bytes(memory), len(columns.feature_names_)
    train, held = (RowCollector(columns, most, copied, kept) for kept in (sample, None))
    for batch, first in enumerate_batches(in_batches(source, memory, width)):
        mask = apart.mask(batch, first)
        train.add(batch.filter(pa.array(~mask)), first + np.flatnonzero(~mask))
        held.add(batch.filter(pa.array(mask)), first + np.flatnonzero(mask), known=True)
    if apart.test is not None:
        columns.check(apart.test.schema, "the test file")
        for batch, first in enumerate_batches(in_batches(apart.test, memory, width)):
            held.add(batch, first + np.arange(batch.num_rows), known=True)
    return train, held


def _table_data(
    columns: Columns,
    train: RowCollector,
    held: RowCollector,
    rule: str,
    share: Any,
    memory: float,
    seed: int,
) -> TableData:
    rows, test = train.rows(), held.rows()
    rows, test = grouped_by_document(rows, test) if train.copied else (rows, test)
    if len(rows) < MIN_TRAIN_ROWS or len(test) < MIN_HOLDOUT_ROWS:
        few = f"{many(len(rows), 'row')} to learn from and {len(test):,} held out"
        few += " of some weight" * (train.weightless + held.weightless > 0)
        raise DataError(
            f"{few} are too few; give at least {MIN_TRAIN_ROWS} and {MIN_HOLDOUT_ROWS}{_in_all(share)}."
        )
    if not rows.X.shape[1]:
        raise DataError(
            "no column is left to predict from; see which were left out and why, and give columns that vary."
        )
    _check_splittable(rows, columns)
    some = test.sample(
        budget.holdout_rows(memory, rows.X.shape[1], test.vectors, len(columns.classes_)), seed
    )
    rule = (
        rule
        if some is test
        else f"{rule}; {len(some):,} of these {len(test):,} rows are judged, to keep to memory"
    )
    del test
    budget.release_memory()
    equal = duplicates(rows, some)
    expected = expected_duplicates(rows, some, columns.origin_) if equal else 0.0
    fill_level_means(columns, rows, some)  # of copies, those of either side differ
    return TableData(
        columns, rows, some, rule, train.dropped + held.dropped, held.unknown, equal, expected
    )


def _check_splittable(rows: TableRows, columns: Columns) -> None:
    """That training rows can be split by time, or by group."""
    named = (
        ("time", columns.time_column, rows.time)
        if rows.time is not None
        else ("group", columns.group, rows.group)
    )
    what, name, values = named
    if values is not None and all(
        np.all(values[s] == values[:1]) for s in cuts(len(values), BLOCK_ROWS)
    ):
        why = f'the training rows have one {what} only in "{name}" once the holdout is taken away, so nothing can be compared on others'
        raise DataError(f"{why}; give another column, or a test file.")


def _in_all(share: float | None) -> str:
    """How many rows with a target that takes.

    >>> _in_all(0.2)
    ', which takes 25 rows with a target in all'
    """
    if share is None:
        return ""
    most = max(
        math.ceil(MIN_TRAIN_ROWS / (1 - share) - 1e-9), math.ceil(MIN_HOLDOUT_ROWS / share - 1e-9)
    )
    return f", which takes {most:,} rows with a target in all"


def duplicates(train: TableRows, held: TableRows) -> int:
    """How many held-out rows are training rows as well, by a hash of all that the learners see of
    them."""
    wanted = np.concatenate(list(_hashed(held)))
    known, where = np.unique(wanted, return_inverse=True)
    seen = np.zeros(len(known), bool)
    for found in _hashed(train):
        at = np.minimum(np.searchsorted(known, found), len(known) - 1)
        seen[at[known[at] == found]] = True
    return int(seen[where].sum())


def expected_duplicates(train: TableRows, held: TableRows, origin: Sequence[int]) -> float:
    """How many held-out rows would equal a training row if columns and target were independent,
    with the values they have.

    >>> rows = TableRows(np.zeros((100, 1), np.float32), np.arange(100) % 2, np.arange(100))
    >>> round(expected_duplicates(rows, rows.take(slice(10)), [0]))
    10
    """
    few, many = held.sample(CHANCE_ROWS), train.sample(CHANCE_ROWS)
    p = _shares(many.y[:, None], few.y[:, None])
    for column in np.unique(np.asarray(origin)):
        mine = np.flatnonzero(np.asarray(origin) == column)
        p = p * _shares(many.X[:, mine], few.X[:, mine])
    return float(-np.expm1(len(train) * np.log1p(-np.minimum(p, 1 - 1e-12))).mean() * len(held))


def _shares(train: Array, held: Array) -> Array:
    """The share of the training rows that have the values of each held-out row."""
    known, counts = np.unique(row_hashes(np.asarray(train, np.float64)), return_counts=True)
    mine = row_hashes(np.asarray(held, np.float64))
    at = np.minimum(np.searchsorted(known, mine), len(known) - 1)
    return np.where(known[at] == mine, counts[at] / len(train), 0.0)


def _hashed(rows: TableRows) -> Iterator[Array]:
    for s in cuts(len(rows), max(16, HASHED_VALUES // (rows.X.shape[1] + 1))):
        yield row_hashes(np.concatenate([rows.X[s], rows.y[s, None]], axis=1, dtype=np.float64))


def _holdout(
    source: Table,
    roles: Roles,
    test: float | Table,
    memory: float,
    seed: int,
    copied: Sequence[str] = (),
) -> Holdout:
    """The rule that holds rows out: a file, the last ones, whole groups, or a random share, with
    equal texts of some columns on one side."""
    if not isinstance(test, float):
        _other(source, test)
        names = test.schema.names
        if roles.target not in names:
            near = nearest(roles.target, names)
            raise Misnamed(f'the test file has no column "{roles.target}", the target{near}')
        return splits.by_file(test)
    if roles.time_column is not None:
        column = only(source, (roles.time_column,))
        reader, most = time_reader(column, roles.time_column), budget.buffer_bytes(memory)
        last = splits.by_time(column, roles.time_column, test, reader, most)
        both = f'; time decides, so a group of "{roles.group}" may be on both sides'
        return last if roles.group is None else replace(last, rule=last.rule + both)
    if roles.group is not None:
        return splits.by_group(only(source, (roles.group,)), roles.group, test, seed)
    apart = splits.stratified(only(source, (roles.target,)), roles.target, test, seed)
    if not copied:
        return apart
    return together(apart, source, copied, test, seed, budget.buffer_bytes(memory))


def _other(source: Table, test: Table) -> None:
    """That no file is on both sides."""
    for path in test.paths:
        if any(os.path.samefile(path, other) for other in source.paths):
            raise Misnamed(
                f"the test file {path} is training data as well, so a score on it says nothing; give rows of their own."
            )


def time_reader(source: Table, column: str) -> Callable[[Batch], Array]:
    """A function that gives the times of a batch as numbers; the form of dates is that of the first
    rows."""
    form = time_form(next(source.batches()).column(column), column)
    return lambda batch: moments(batch.column(column), form)


def _training(source: Table, apart: Holdout) -> Iterator[Batch]:
    """The batches of training rows."""
    for batch, first in enumerate_batches(source):
        mask = apart.mask(batch, first)
        yield batch.filter(pa.array(~mask)) if mask.any() else batch
