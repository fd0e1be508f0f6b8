"""`mercer demo`: a small real table, fitted, reported and predicted."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from mercer import datasets
from mercer.cli.fit import FitOptions
from mercer.cli.fit import run as fit
from mercer.cli.guard import UsageError
from mercer.cli.output import check_free
from mercer.cli.predict import run as predict
from mercer.cli.terminal import printable

SECONDS = 30.0  # more than every contender takes


def run(folder: Path | None = None, *, overwrite: bool = False) -> Path:
    """The whole path; the path of the report is printed last. Files that are there are replaced
    only where that is asked for."""
    place = Path(tempfile.mkdtemp(prefix="mercer-demo-")) if folder is None else folder
    table, asked, out = datasets.digits(), _asked(place), place / "predictions.csv"
    check_folder(
        place, (Path(asked.data[0]), asked.model_path, asked.report_path, out), overwrite=overwrite
    )
    place.mkdir(parents=True, exist_ok=True)
    data = table.write_csv(place / "digits.csv")
    print(
        f"{len(table.rows):,} handwritten digits, {len(table.columns) - 1} columns of ink. Source: {table.source}."
    )
    print(f"\n$ {asked.command()}\n")
    fit(asked)
    print(f"\n$ mercer predict {asked.model_path} {data} -o {out}\n")
    predict(asked.model_path, [str(data)], str(out), overwrite=True)
    print(_first(out))
    print(f"\nreport    {asked.report_path}")
    return asked.report_path


def _asked(place: Path) -> FitOptions:
    target = datasets.digits().target
    data, model, page = (place / f"digits.{suffix}" for suffix in ("csv", "mercer", "html"))
    return FitOptions((str(data),), target, time=SECONDS, out=model, report=page, overwrite=True)


def check_folder(place: Path, files: Sequence[Path], *, overwrite: bool) -> None:
    """The rule of fit and predict, for all files at once and before anything is written."""
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place} is a file; give a folder.")
    for path in files if place.exists() else ():
        check_free(path, overwrite=overwrite)


def _first(path: Path, lines: int = 3) -> str:
    """The first lines of a file, cut to the width of a screen."""
    with path.open(encoding="utf-8") as stream:
        return "\n".join(
            printable(line).rstrip()[:100] for _, line in zip(range(lines), stream, strict=False)
        )
