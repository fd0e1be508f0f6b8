"""`mercer fit`: checks that cost nothing first, then the work, then files that appear together."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mercer import report as reports
from mercer.automl import TableModel, budget, fit_table
from mercer.automl.data import Roles
from mercer.automl.metrics import METRICS
from mercer.automl.result import FitResult
from mercer.cli.cluster import fit_memory, workers
from mercer.cli.csvflags import flags as csv_flags
from mercer.cli.guard import UsageError
from mercer.cli.output import check_apart, check_free
from mercer.cli.summary import summary
from mercer.cli.terminal import in_json, printable, progress
from mercer.models.base import bytes_of
from mercer.store import commit
from mercer.store.files import id_of, packed
from mercer.tables import CsvOptions, DataError, Source, open_source
from mercer.tables.dates import time_form
from mercer.tables.errors import Misnamed, nearest

FOUND_OUT = CsvOptions()
TASKS = ("auto", "regression", "classification")


@dataclass(frozen=True)
class FitOptions:
    """The flags of `mercer fit`."""

    data: tuple[str, ...]
    target: str
    task: str = "auto"
    metric: str | None = None
    exclude: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    group: str | None = None
    time_column: str | None = None
    test: str = "0.2"
    time: float = 60.0
    memory: str = "4GB"
    seed: int = 0
    out: Path | None = None
    report: Path | None = None
    overwrite: bool = False
    as_json: bool = False
    csv: CsvOptions = FOUND_OUT
    rows: bool = True
    refit: bool = False
    cluster: str | None = None
    checkpoint: Path | None = None

    @property
    def model_path(self) -> Path:
        return self.out or Path(f"{stem(self.data[0])}.mercer")

    @property
    def report_path(self) -> Path:
        return self.report or (
            self.out.with_suffix(".html") if self.out else Path(f"{stem(self.data[0])}.html")
        )

    def check(self) -> None:
        """What can be said without reading the data."""
        if self.task not in TASKS:
            raise UsageError(f"--task must be one of {', '.join(TASKS)}, got {self.task}.")
        seconds(str(self.time))
        _known_metric(self.metric, self.task)
        _memory(self.memory)
        share(self.test)
        if (*self.data, self.test).count("-") > 1:
            raise UsageError(
                "standard input (-) is given more than once, and can be read only once; give a file for the other."
            )
        if self.refit and share(self.test) is None:
            raise UsageError(
                "--refit fits the held-out rows too, and rows of a --test file are never fitted; leave one of them out."
            )
        if self.partitioned:
            self._check_partitioned()
        self._check_files()

    @property
    def partitioned(self) -> bool:
        """Whether rows are summed over partitions."""
        return self.cluster is not None or self.checkpoint is not None

    def _check_partitioned(self) -> None:
        if "-" in (*self.data, self.test):
            raise UsageError(
                "standard input (-) cannot be read by several processes, or once more; give files with --cluster and --checkpoint."
            )
        if self.refit:
            raise UsageError(
                "--refit fits the held-out rows too, which sums over partitions leave out; leave it, or --cluster and --checkpoint, out."
            )
        if self.checkpoint is not None and self.checkpoint.is_file():
            raise UsageError(f"--checkpoint {self.checkpoint} is a file; give a folder.")

    def _check_files(self) -> None:
        both = (self.model_path, self.report_path)
        if os.path.realpath(both[0]) == os.path.realpath(both[1]):
            raise UsageError(f"--out and --report are both {self.model_path}; give two names.")
        check_apart(both, [*self.data, *([self.test] if share(self.test) is None else [])])
        for path in both:
            check_free(path, overwrite=self.overwrite)

    def command(self) -> str:
        """The command that does the same again."""
        flags = {
            "--target": self.target,
            "--task": self.task if self.task != "auto" else None,
            "--metric": self.metric,
            "--id": self.id,
            "--weight": self.weight,
            "--group": self.group,
            "--time-column": self.time_column,
            "--test": self.test if self.test != "0.2" else None,
            "--time": f"{self.time:g}",
            "--memory": self.memory,
            "--seed": str(self.seed),
            "--cluster": self.cluster,
            "--checkpoint": None if self.checkpoint is None else str(self.checkpoint),
        }
        words = ["mercer", "fit", *self.data]
        for flag, value in flags.items():
            words += [flag, value] if value is not None else []
        for names in self.exclude:
            words += ["--exclude", names]
        words += [*csv_flags(self.csv), *([] if self.rows else ["--no-rows"])]
        words += ["--refit"] if self.refit else []
        return shlex.join(
            [*words, "--out", str(self.model_path), "--report", str(self.report_path)]
        )


def run(asked: FitOptions) -> FitResult:
    """Fit, write the model and the report, and print what was found."""
    asked.check()
    notices: list[str] = []
    with progress() as say:
        model = fit_model(asked, say, notices.append)
        say("writing the model and the report")
        name = written(model, asked.model_path, asked.report_path, overwrite=asked.overwrite)
    for text in notices:
        print(f"mercer: {printable(text)}", file=sys.stderr)
    if asked.as_json:
        print(
            in_json(
                json.dumps(model.result.as_dict(), ensure_ascii=False, indent=2, allow_nan=False)
            )
        )
    else:
        print(printable(summary(in_lines(model.result))))
        print(
            printable(
                f"\nid        {name}\nmodel     {asked.model_path}\nreport    {asked.report_path}"
            )
        )
    return model.result


def written(model: TableModel, path: Path, report: Path, *, overwrite: bool = True) -> str:
    """Model and report as one commit, the model last; the id that both have."""
    parts = packed(model, "table model")
    name = id_of(parts.sha256())
    commit(
        {report: [reports.html(model.result, name).encode()], path: parts.pieces()},
        overwrite=overwrite,
    )
    return name


def fit_model(
    asked: FitOptions, say: Callable[[str], None], notice: Callable[[str], None]
) -> TableModel:
    """The model of the data that the flags name; `notice` hears of flags that had no effect."""
    say("opening the data")
    source = open_source(list(asked.data), options=asked.csv)
    held = holdout(asked, source.decimal)
    _check_time(source, asked.time_column)
    columns: dict[str, Any] = {
        "target": asked.target,
        "exclude": excluded(asked.exclude, source),
        "id": asked.id,
        "weight": asked.weight,
        "group": asked.group,
        "time_column": asked.time_column,
    }
    options: dict[str, Any] = {
        "task": asked.task,
        "metric": asked.metric,
        "test": held,
        "time": asked.time,
        "memory": _memory(asked.memory),
        "seed": asked.seed,
        "keep_rows": asked.rows,
        "command": asked.command(),
        "progress": say,
    }
    if not asked.partitioned:
        return fit_table(source, refit=asked.refit, **columns, **options)
    from mercer.automl.cluster import fit_partitions

    say("starting the cluster")
    with workers(asked.cluster, options["memory"]):
        options["memory"] = fit_memory(asked.cluster, options["memory"])
        return fit_partitions(
            source, Roles(**columns), checkpoint=asked.checkpoint, notice=notice, **options
        )


def share(test: str) -> float | None:
    """The share that is held out; None for the name of a file."""
    try:
        found = float(test)
    except ValueError:
        return None
    if not 0 < found < 1:
        raise UsageError(f"--test must be a file, or a share between 0 and 1, got {test}.")
    return found


def holdout(asked: FitOptions, decimal: str = "") -> float | Source:
    """A share, or the file that holds the test rows, with the target among its columns; decimals
    are as in the table where it does not show its own."""
    if (found := share(asked.test)) is not None:
        return found
    source = open_source(asked.test, options=replace(asked.csv, likely=decimal or None))
    if asked.target not in source.schema.names:
        raise DataError(
            f'{asked.test} has no column "{asked.target}"{nearest(asked.target, source.schema.names)}'
        )
    return source


def _check_time(source: Source, column: str | None) -> None:
    """That the first rows have numbers or dates there, before the whole table is read."""
    if column is not None and column in source.schema.names:
        time_form(next(replace(source, columns=(column,)).batches()).column(column), column)


def _known_metric(name: str | None, task: str) -> None:
    able = [m.name for m in METRICS.values() if task in ("auto", m.task)]
    if name is not None and name.lower().replace("-", "_").replace(" ", "_") not in able:
        kind = "" if task == "auto" else f" for {task}"
        raise UsageError(f"--metric must be one of {', '.join(able)}{kind}, got {name}.")


def in_lines(e: FitResult) -> FitResult:
    """For the terminal: names of columns and classes may hold line ends, which would break its
    lines."""
    return replace(
        e,
        target=_line(e.target),
        task_reason=_line(e.task_reason),
        holdout_rule=_line(e.holdout_rule),
        verdict=_line(e.verdict),
        importance=tuple((_line(name), loss, error) for name, loss, error in e.importance),
        warnings=tuple(map(_line, e.warnings)),
    )


def _line(text: str) -> str:
    return " ".join(text.split())


def excluded(given: Sequence[str], source: Source) -> tuple[str, ...]:
    """The names of columns: each flag holds one, or several between commas."""
    known, out = source.schema.names, []
    for text in given:
        out += (
            [text] if text in known else [name.strip() for name in text.split(",") if name.strip()]
        )
    for name in out:
        if name not in known:
            raise Misnamed(f'--exclude: there is no column "{name}"{nearest(name, known)}')
    return tuple(dict.fromkeys(out))


def _memory(text: str) -> float:
    try:
        found = bytes_of(text)
    except ValueError as error:
        raise UsageError(
            f"--memory must be a number of bytes or text such as 4GB, got {text}."
        ) from error
    try:
        return budget.check_memory(found)
    except ValueError as error:
        raise UsageError(f"--{error}") from error


def seconds(text: str) -> float:
    """A length of time, as --time is given.

    >>> seconds("90")
    90.0
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not (math.isfinite(found) and found > 0):
        raise UsageError(f"--time must be a number of seconds > 0, such as 60, got {text}.")
    return found


def stem(path: str) -> str:
    """The name of a file without its folders and suffixes.

    >>> stem("data/houses.csv.gz"), stem("part-*.parquet"), stem("-")
    ('houses', 'part-', 'model')
    """
    name = (
        "" if path == "-" or path.startswith(("/dev/", "/proc/")) else Path(path).name.split(".")[0]
    )
    return "".join(c for c in name if c not in '*?[]<>:"|') or "model"
