"""`mercer fit`: checks that cost nothing first, then the work, then files that appear together."""
from __future__ import annotations

import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mercer import report as reports
from mercer.cli.guard import UsageError
from mercer.cli.output import check_free
from mercer.cli.progress import progress
from mercer.cli.summary import summary
from mercer.estimators.base import bytes_of
from mercer.product import TableModel, fit_table
from mercer.product.evidence import Evidence
from mercer.tables import DataError, Source, open_source
from mercer.tables.errors import nearest

TASKS = ("auto", "regression", "classification")


@dataclass(frozen=True)
class Asked:
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

    @property
    def model_path(self) -> Path:
        return self.out or Path(f"{stem(self.data[0])}.mercer")

    @property
    def report_path(self) -> Path:
        return self.report or (self.out.with_suffix(".html") if self.out else Path(f"{stem(self.data[0])}.html"))

    def check(self) -> None:
        """What can be said without reading the data."""
        if self.task not in TASKS:
            raise UsageError(f"--task must be one of {', '.join(TASKS)}, got {self.task}.")
        if not (math.isfinite(self.time) and self.time > 0):
            raise UsageError(f"--time must be a number of seconds > 0, got {self.time}.")
        if self.model_path.absolute() == self.report_path.absolute():
            raise UsageError(f"--out and --report are both {self.model_path}; give two names.")
        _memory(self.memory)
        for path in (self.model_path, self.report_path):
            check_free(path, overwrite=self.overwrite)

    def command(self) -> str:
        """The command that does the same again."""
        flags = {
            "--target": self.target, "--task": self.task if self.task != "auto" else None, "--metric": self.metric, "--id": self.id,
            "--weight": self.weight, "--group": self.group, "--time-column": self.time_column,
            "--test": self.test if self.test != "0.2" else None, "--time": f"{self.time:g}", "--memory": self.memory,
            "--seed": str(self.seed),
        }  # fmt: skip
        words = ["mercer", "fit", *self.data]
        for flag, value in flags.items():
            words += [flag, value] if value is not None else []
        for names in self.exclude:
            words += ["--exclude", names]
        return shlex.join([*words, "--out", str(self.model_path), "--report", str(self.report_path)])


def run(asked: Asked) -> Evidence:
    """Fit, write the model and the report, and print what was found."""
    asked.check()
    with progress() as say:
        model = fitted(asked, say)
        say("writing the model and the report")
        model.save(asked.model_path)
        reports.write(model.evidence, asked.report_path)
    if asked.as_json:
        print(json.dumps(model.evidence.as_dict(), ensure_ascii=False, indent=2, allow_nan=False))
    else:
        print(summary(model.evidence))
        print(f"\nmodel     {asked.model_path}\nreport    {asked.report_path}")
    return model.evidence


def fitted(asked: Asked, say: Any) -> TableModel:
    """The model of the data that the flags name."""
    say("opening the data")
    source = open_source(list(asked.data))
    share = holdout(asked.test)
    return fit_table(
        source, asked.target, task=asked.task, metric=asked.metric, exclude=excluded(asked.exclude, source), id=asked.id,
        weight=asked.weight, group=asked.group, time_column=asked.time_column, test=share, time=asked.time, memory=_memory(asked.memory),
        seed=asked.seed, progress=say, command=asked.command(),
    )  # fmt: skip


def holdout(test: str) -> float | Source:
    """A share, or the file that holds the test rows."""
    try:
        share = float(test)
    except ValueError:
        return open_source(test)
    if not 0 < share < 1:
        raise UsageError(f"--test must be a file, or a share between 0 and 1, got {test}.")
    return share


def excluded(given: Sequence[str], source: Source) -> tuple[str, ...]:
    """The names of columns: each flag holds one, or several between commas."""
    known, out = source.schema.names, []
    for text in given:
        out += [text] if text in known else [name.strip() for name in text.split(",") if name.strip()]
    for name in out:
        if name not in known:
            raise DataError(f'--exclude: there is no column "{name}"{nearest(name, known)}')
    return tuple(dict.fromkeys(out))


def _memory(text: str) -> float:
    try:
        return bytes_of(text)
    except ValueError as error:
        raise UsageError(f"--memory must be a number of bytes or text such as 4GB, got {text}.") from error


def stem(path: str) -> str:
    """The name of a file without its folders and suffixes.

    >>> stem("data/houses.csv.gz"), stem("part-*.parquet")
    ('houses', 'part-')
    """
    name = Path(path).name.split(".")[0]
    return "".join(c for c in name if c not in '*?[]<>:"|') or "model"
