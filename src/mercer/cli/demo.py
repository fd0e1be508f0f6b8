"""`mercer demo`: a small real table, fitted, reported and predicted."""
from __future__ import annotations

import tempfile
from pathlib import Path

from mercer import datasets
from mercer.cli.fit import Asked
from mercer.cli.fit import run as fit
from mercer.cli.predict import run as predict

SECONDS = 12.0


def run(folder: Path | None = None) -> Path:
    """The whole path; the path of the report is printed last."""
    place = Path(tempfile.mkdtemp(prefix="mercer-demo-")) if folder is None else folder
    place.mkdir(parents=True, exist_ok=True)
    table = datasets.digits()
    data = table.write_csv(place / "digits.csv")
    print(f"{len(table.rows):,} handwritten digits, {len(table.columns) - 1} columns of ink. Source: {table.source}.")
    asked = Asked((str(data),), table.target, time=SECONDS, out=place / "digits.mercer", report=place / "digits.html", overwrite=True)
    print(f"\n$ {asked.command()}\n")
    fit(asked)
    out = place / "predictions.csv"
    print(f"\n$ mercer predict {asked.model_path} {data} -o {out}\n")
    predict(asked.model_path, [str(data)], str(out), overwrite=True)
    print(_first(out))
    print(f"\nreport    {asked.report_path}")
    return asked.report_path


def _first(path: Path, lines: int = 3) -> str:
    """The first lines of a file, cut to the width of a screen."""
    with path.open(encoding="utf-8") as stream:
        return "\n".join(line.rstrip()[:100] for _, line in zip(range(lines), stream, strict=False))
