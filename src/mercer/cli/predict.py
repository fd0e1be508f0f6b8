"""`mercer predict`: new rows in, predictions out, batch by batch and in order."""
from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from mercer.cli.guard import UsageError
from mercer.cli.output import check_apart, check_free, form_of, writer
from mercer.cli.progress import progress
from mercer.product import TableModel
from mercer.store import load
from mercer.tables import CsvOptions, open_source


def run(model: Path, data: Sequence[str], out: str, *, overwrite: bool = False, options: CsvOptions | None = None) -> int:
    """Write the predictions; how many there are."""
    form_of(out)
    if out != "-":
        check_apart([Path(out)], [str(model), *data])
        check_free(Path(out), overwrite=overwrite)
    with progress(out != "-") as say:
        say("loading the model")
        found = load(model)
        if not isinstance(found, TableModel):
            raise UsageError(f"{model} holds a {type(found).__name__}, not a model of a table; give a file that mercer fit wrote.")
        job = found.predicting(replace(open_source(list(data), options=options), may_be_empty=True))
        schema = _typed(job.schema, found)
        rows, batches = 0, _checked(job)
        first = list(islice(batches, 1))  # before anything is written
        with writer(out, schema) as write:
            for batch in chain(first, batches):
                write(batch.cast(schema))
                rows += batch.num_rows
                say(f"{rows:,} rows")
    for text in job.warnings():
        print(f"mercer: {' '.join(text.split())}", file=sys.stderr)
    if out != "-":
        print(f"{rows:,} predictions: {out}")
    return rows


def _checked(job: Any) -> Iterator[Any]:
    """The predictions, while every column that they rest on can be read."""
    for batch in job.batches():
        job.watch.check()
        yield batch


def _typed(schema: Any, model: TableModel) -> Any:
    """Classes in the type that they had in training: whole numbers as such, true and false as such."""
    at = schema.get_field_index("prediction")
    return schema.set(at, schema.field(at).with_type(model.columns.target_.kind))
