"""`mercer demo`: a small real table, fitted, reported and predicted."""
from __future__ import annotations

import tempfile
from pathlib import Path

from mercer import datasets
from mercer.cli.fit import Asked
from mercer.cli.fit import run as fit
from mercer.cli.guard import UsageError
from mercer.cli.predict import run as predict
from mercer.product import TableModel
from mercer.store import load

SECONDS = 30.0  # more than every contender takes


def run(folder: Path | None = None) -> Path:
    """The whole path; the path of the report is printed last."""
    place = Path(tempfile.mkdtemp(prefix="mercer-demo-")) if folder is None else folder
    table, asked, out = datasets.digits(), _asked(place), place / "predictions.csv"
    check_own(place, asked, out, table)
    place.mkdir(parents=True, exist_ok=True)
    data = table.write_csv(place / "digits.csv")
    print(f"{len(table.rows):,} handwritten digits, {len(table.columns) - 1} columns of ink. Source: {table.source}.")
    print(f"\n$ {asked.command()}\n")
    fit(asked)
    print(f"\n$ mercer predict {asked.model_path} {data} -o {out}\n")
    predict(asked.model_path, [str(data)], str(out), overwrite=True)
    print(_first(out))
    print(f"\nreport    {asked.report_path}")
    return asked.report_path


def _asked(place: Path) -> Asked:
    target = datasets.digits().target
    data, model, page = (place / f"digits.{suffix}" for suffix in ("csv", "mercer", "html"))
    return Asked((str(data),), target, time=SECONDS, out=model, report=page, overwrite=True)


def check_own(place: Path, asked: Asked, out: Path, table: datasets.Dataset) -> None:
    """Refuse a folder with files of these names that the demo did not write."""
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place} is a file; give a folder.")
    there = [path for path in (asked.model_path, asked.report_path, out) if path.exists()]
    data = Path(asked.data[0])
    if data.exists() and not _same(data, table):
        raise UsageError(f"{data} exists and is not the demo's; give another folder.")
    if there and not _ours(asked):
        raise UsageError(f"{there[0]} exists and is not the demo's; give another folder.")


def _same(path: Path, table: datasets.Dataset) -> bool:
    """Whether a file is what the demo would write."""
    with tempfile.TemporaryDirectory() as folder:
        return path.is_file() and table.write_csv(Path(folder) / "own.csv").read_bytes() == path.read_bytes()


def _ours(asked: Asked) -> bool:
    """Whether the model there was made by this very command."""
    try:
        found = load(asked.model_path)
    except (ValueError, OSError):
        return False
    return isinstance(found, TableModel) and found.evidence.command == asked.command()


def _first(path: Path, lines: int = 3) -> str:
    """The first lines of a file, cut to the width of a screen."""
    with path.open(encoding="utf-8") as stream:
        return "\n".join(line.rstrip()[:100] for _, line in zip(range(lines), stream, strict=False))
