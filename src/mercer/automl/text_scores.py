"""Scores of texts, filled in from all training rows: which columns have some, which rows are
scored by which model, and what is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer.automl.budget import Clock
from mercer.automl.documents import DocumentSample
from mercer.automl.frames import Table, enumerate_batches, only
from mercer.automl.rows import TableRows
from mercer.automl.text_names import named
from mercer.automl.text_race import PENALTIES, TextBudget, TextFit, TextTask, fit_text, parts_of
from mercer.inputs import Array
from mercer.tables import Columns
from mercer.tables.arrow import pa
from mercer.tables.encoders import TextEncoder
from mercer.tables.scale import Standardizer
from mercer.tables.texts import TextScoresEncoder, documents, scored_classes

MIN_ROWS = 60  # rows with fewer of which texts have no scores
MIN_SECONDS = 1.0  # with less time neither
TEXT_SHARE = 0.4  # of the time; more where there is nothing but text
ONLY_TEXT_SHARE = 0.7
MAX_TEXTS = 12  # columns that have scores
MEMORY_SHARE = 1 / 24  # of the memory, that documents may take
RARELY = 0.001  # of the rows: so few missing texts raise no indicator


@dataclass(eq=False)
class TextScorer:
    """What may be spent on texts, and what was found: for each column a dict of plain values, as
    the result shows it."""

    time: float  # of the whole fit
    memory: float
    seconds: float = field(default=0.0, init=False)  # spent
    found: list[dict[str, Any]] = field(default_factory=list, init=False)

    def expect(self, columns: Columns) -> DocumentSample | None:
        """Give every text of a table a place for its scores, and keep its documents; None where
        there is none, or where rows or time are too few."""
        names = _longest(columns)
        if not names or self.time < MIN_SECONDS or columns.n_rows_ < MIN_ROWS:
            return None
        for name in names:
            columns.set_encoder(name, _expecting(columns, name))
        return DocumentSample(names, MEMORY_SHARE * self.memory)

    def fill(
        self,
        columns: Columns,
        train: TableRows,
        held: TableRows,
        sample: DocumentSample,
        sources: tuple[Table, Table | None],
    ) -> None:
        """The scores of all rows, in place, and of rows to come in the columns: of sampled training
        rows by models of the other parts of the rows, of all others by the model of all parts.

        `sources` are the table and, where held-out rows come from one, the test table.
        """
        names, at = list(text_columns(columns)), np.searchsorted(train.row_id, sample.row_id)
        rows, alone = train.take(at), len(columns.encoders_) == len(sample.names)
        clock = Clock((ONLY_TEXT_SHARE if alone else TEXT_SHARE) * self.time)
        sampled = np.ones(len(train), bool)
        for k, name in enumerate(names):
            task = text_task(columns, rows, sample.keys(name))
            seconds, two = clock.left() / (len(names) - k), len(columns.classes_) == 2
            may = TextBudget(seconds, self.memory, two, len(names))
            found = fit_text(sample.column(name), task, may)
            first, encoder = text_columns(columns)[name]
            train.X[at, first : first + found.scores.shape[1]] = found.scores
            ngrams = named(found.model, found.strong, sample.column(name), encoder.outputs)
            told = _told(name, found, len(train)) | {"ngrams": ngrams}
            self.found.append(told)
            columns.set_encoder(name, encoder.with_scores(found.model), action=_action(told))
        self.seconds += clock.spent
        sampled[at] = False
        source, test = sources
        every = np.ones(len(held), bool)
        _score(columns, source, [(train, sampled), *[(held, every)] * (test is None)])
        if test is not None:
            _score(columns, test, [(held, every)])


def text_columns(columns: Columns) -> dict[str, tuple[int, TextScoresEncoder]]:
    """The columns that have scores of texts: the first feature that is one, and the encoder."""
    place = {t.name: i for i, t in enumerate(columns.treatments_)}
    return {
        name: (columns.origin_.index(place[name]) + e.n_sizes, e)
        for name, e in columns.encoders_.items()
        if isinstance(e, TextScoresEncoder)
    }


def _longest(columns: Columns) -> list[str]:
    """The columns of texts, of many those with the longest ones."""
    found = {n: e.length.mean for n, e in columns.encoders_.items() if isinstance(e, TextEncoder)}
    top = sorted(found, key=lambda name: -found[name])[:MAX_TEXTS]
    return [name for name in found if name in top]


def _expecting(columns: Columns, name: str) -> TextScoresEncoder:
    sizes = columns.encoders_[name]
    assert isinstance(sizes, TextEncoder)
    codes = scored_classes(columns.target_.counts) if columns.classes_ else ()
    outputs = tuple(columns.classes_[c] for c in codes) or ("target",)
    seen = next(t for t in columns.treatments_ if t.name == name)
    own = sizes.values is not None and sizes.values.gone
    gone = seen.n_missing >= max(3, RARELY * columns.n_rows_) and not own
    return TextScoresEncoder(sizes, outputs, gone)


def text_task(columns: Columns, rows: TableRows, keys: Array) -> TextTask:
    """What the documents of these rows, with these hashes, are to tell."""
    part, ordered = parts_of(keys, rows.y, rows.group, rows.time)
    if not columns.classes_:
        Y = Standardizer.of(rows.y)(rows.y)[:, None]
        return TextTask(Y, part, False, rows.weight, ordered)
    codes = np.array(scored_classes(columns.target_.counts))
    Y = np.where(rows.y[:, None] == codes, 1.0, -1.0)
    return TextTask(Y, part, True, rows.weight, ordered)


def _score(columns: Columns, source: Table, sides: Sequence[tuple[TableRows, Array]]) -> None:
    """One pass over a table: the scores of rows by the models of all parts, in place; a side has rows
    in order of their numbers, and says which of them are wanted."""
    sides, found = [side for side in sides if side[1].any()], text_columns(columns)
    for batch, begin in enumerate_batches(only(source, list(found))) if sides else ():
        for rows, wanted in sides:
            low, high = np.searchsorted(rows.row_id, [begin, begin + batch.num_rows])
            at = low + np.flatnonzero(wanted[low:high])
            some = batch.take(pa.array(rows.row_id[at] - begin))
            for name, (first, encoder) in found.items() if len(at) else ():
                assert encoder.scores is not None
                scores = encoder.scores(documents(some.column(name)))
                rows.X[at, first : first + scores.shape[1]] = scores


def _told(name: str, found: TextFit, rows: int) -> dict[str, Any]:
    """What was found, as plain values."""
    race = found.race
    return {
        "column": name,
        "alphabet": next(
            (b.alphabet for b in race.winner.kind.blocks if not isinstance(b, dict)), None
        ),
        "kind": race.winner.kind.name,
        "measure": "auc" if found.classes else "r2",
        "score": found.quality,
        "penalty": PENALTIES[race.winner.at],
        "tried": [[t.kind.name, t.score] for t in race.tried],
        "final": [[t.kind.name, t.score] for t in race.final],
        "skipped": [[kind, why] for kind, why in race.skipped],
        "rows": found.n_fitted,
        "of_rows": rows,
    }


def _action(told: dict[str, Any]) -> str:
    """In words."""
    measure = "area under the curve" if told["measure"] == "auc" else "R²"
    raced, again = (
        ", ".join(f"{kind} {score:.3f}" for kind, score in told[of]) for of in ("tried", "final")
    )
    more = f"; on more of them {again}" if again else ""
    fewer = (
        f" of {told['rows']:,} of the {told['of_rows']:,} rows, to keep to time and memory"
        if told["rows"] < told["of_rows"]
        else ""
    )
    gone = "".join(f"; {kind} not tried, for lack of {why}" for kind, why in told["skipped"])
    what = {None: "Text", "protein": "Protein sequence"}.get(
        told["alphabet"], f"{str(told['alphabet']).upper()} sequence"
    )
    over = "n-grams" if told["alphabet"] is None else "words of letters"
    return (
        f"{what}: scores of a linear model over its {over} ({told['kind']}){fewer}, while learning those of"
        f" models of other rows ({measure} {told['score']:.3f}); and its frequent values, its length and its"
        f" number of words. Raced on rows left out: {raced}{more}{gone}."
    )
