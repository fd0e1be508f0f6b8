"""`mercer predict`: new rows in, predictions out, batch by batch and in order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path

from mercer.automl import TableModel
from mercer.cli.guard import UsageError
from mercer.cli.output import (
    check_apart,
    check_free,
    check_model,
    form_of,
    safe_batch,
    safe_schema,
    writer,
)
from mercer.cli.terminal import printable, progress
from mercer.store import load
from mercer.tables import CsvOptions, open_source
from mercer.tables.errors import many


def run(
    model: Path,
    data: Sequence[str],
    out: str,
    *,
    overwrite: bool = False,
    options: CsvOptions | None = None,
    threshold: str | None = None,
    spreadsheet: bool = False,
) -> int:
    """Write the predictions, for a spreadsheet so that it runs none of them; how many there are."""
    form_of(out)
    check_model(model)
    if out != "-":
        check_apart([Path(out)], [str(model), *data])
        check_free(Path(out), overwrite=overwrite)
    with progress(out != "-") as say:
        say("loading the model")
        found = load(model)
        if not isinstance(found, TableModel):
            raise UsageError(
                f"{model} holds a {type(found).__name__}, not a model of a table; give a file that mercer fit wrote."
            )
        how = replace(options or CsvOptions(), likely=found.result.decimal or None)
        source = replace(open_source(list(data), options=how), may_be_empty=True)
        job = decided(found, threshold).predicting(source)
        rows, batches = 0, job.batches()
        first = list(islice(batches, 1))  # before anything is written
        with writer(out, safe_schema(job.schema) if spreadsheet else job.schema) as write:
            for batch in chain(first, batches):
                write(safe_batch(batch) if spreadsheet else batch)
                rows += batch.num_rows
                say(many(rows, "row"))
    for text in job.warnings():
        print(f"mercer: {printable(' '.join(text.split()))}", file=sys.stderr)
    if out != "-":
        print(printable(f"{many(rows, 'prediction')}: {out}"))
    return rows


def decided(model: TableModel, threshold: str | None) -> TableModel:
    """The model with that threshold."""
    if threshold is None:
        return model
    try:
        value = float(threshold)
    except ValueError as error:
        raise UsageError(
            f"--threshold must be a probability from 0 to 1, got {threshold}."
        ) from error
    try:
        return model.with_threshold(value)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
