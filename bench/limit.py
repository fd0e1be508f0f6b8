"""`--memory` as the system sees it: the most resident anonymous memory of `mercer fit` beyond that
of the imported program.

Tables of 10^5 to 2 10^7 rows with columns drawn by a seed: numbers, counts, categories of few and
of very many levels, texts, dates, gaps. The largest files are of some gigabytes; they lie in the
temporary folder and go when they were fitted. `MERCER_BENCH_ROWS=1e6` leaves out tables of more
rows.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bench.harness import Measure
from bench.memory import imported, peak_of_command
from mercer.models.base import bytes_of

OVER = 1.1  # times the limit that are allowed
PIECE = 200_000  # rows that are written together
WORDS = np.array(["alpha", "beta", "gamma", "delta", "red fox", "blue whale", "quick", "lazy dog"])
# rows, suffix, task, limit, seconds of search
RUNS = (
    (10**5, "csv", "regression", "150MB", 5),
    (10**5, "csv", "binary", "150MB", 5),
    (10**5, "csv", "classes", "4GB", 10),
    (10**6, "csv", "regression", "150MB", 5),
    (10**6, "parquet", "classes", "200MB", 10),
    (10**6, "csv", "binary", "500MB", 10),
    (3 * 10**6, "csv", "regression", "200MB", 10),
    (3 * 10**6, "csv", "classes", "200MB", 10),
    (3 * 10**6, "csv", "regression", "1GB", 20),
    (2 * 10**7, "csv", "regression", "200MB", 20),
    (2 * 10**7, "parquet", "binary", "1GB", 20),
)


def cases() -> Iterator[Measure]:
    most = float(os.environ.get("MERCER_BENCH_ROWS", "inf"))
    baseline = imported("mercer.cli.fit")
    for seed, (rows, suffix, task, limit, seconds) in enumerate(
        run for run in RUNS if run[0] <= most
    ):
        with tempfile.TemporaryDirectory(prefix="mercer-bench-") as folder:
            path = Path(folder) / f"table.{suffix}"
            write(path, rows, task, seed)
            peak, size = fitted(path, limit, seconds) - baseline, path.stat().st_size / 1e6
        over = peak > OVER * bytes_of(limit)
        verdict = f"{peak / bytes_of(limit):.2f} times the limit" if over else None
        name = f"{task}, {rows:,} rows, {suffix} of {size:,.0f} MB, --memory {limit}"
        yield Measure(name, peak / 1e6, bytes_of(limit) / 1e6, 1 / OVER, "MB", quality=verdict)


def fitted(path: Path, limit: str, seconds: float) -> int:
    """The most anonymous memory of a fit."""
    out = ["--out", path.with_suffix(".mercer"), "--report", path.with_suffix(".html")]
    command = [
        sys.executable,
        "-m",
        "mercer",
        "fit",
        path,
        "--target",
        "y",
        "--id",
        "row",
        "--memory",
        limit,
        "--time",
        str(seconds),
        *out,
    ]
    peak, ended = peak_of_command(command)
    if ended.returncode:
        raise RuntimeError(f"mercer fit ended with status {ended.returncode}: {ended.stderr}")
    return peak


def write(path: Path, rows: int, task: str, seed: int = 0) -> None:
    """A table with a target y, piece by piece."""
    writer: Any = None
    for first in range(0, rows, PIECE):
        table = piece(min(PIECE, rows - first), first, task, seed)
        if writer is None:
            writer = (
                pyarrow.parquet.ParquetWriter
                if path.suffix == ".parquet"
                else pyarrow.csv.CSVWriter
            )(path, table.schema)
        writer.write_table(table)
    writer.close()


def piece(n: int, first: int, task: str, seed: int) -> Any:
    """n rows: the kinds of columns are drawn by the seed, and so are their values."""
    kinds, r = np.random.default_rng(seed), np.random.default_rng([seed, first])
    columns: dict[str, Any] = {"row": np.arange(first, first + n)}
    signal = np.zeros(n)
    for j, kind in enumerate(
        ["number", "number", "number", "gaps", "category", *kinds.choice(list(DRAWN), 5)]
    ):
        columns[f"{kind} {j}"], part = DRAWN[kind](r, n)
        signal += (-1) ** j * part
    signal += np.sin(3 * np.asarray(columns["number 0"])) + np.asarray(
        columns["number 1"]
    ) * np.asarray(columns["number 2"])
    columns["y"] = target(signal + 0.3 * r.normal(size=n), task)
    return pa.table(columns)


def target(values: Any, task: str) -> Any:
    """Numbers as they are, or two or five classes."""
    if task == "regression":
        return values
    cuts, names = (
        ([0.0], ["no", "yes"])
        if task == "binary"
        else ([-2.0, -0.5, 0.5, 2.0], ["a", "b", "c", "d", "e"])
    )
    return np.array(names)[np.searchsorted(cuts, values)]


def _number(r: np.random.Generator, n: int) -> tuple[Any, Any]:
    x = r.normal(size=n)
    return x, 0.3 * x


def _gaps(r: np.random.Generator, n: int) -> tuple[Any, Any]:
    x, gone = np.exp(r.normal(size=n)), r.random(n) < 0.1
    return pa.array(x, mask=gone), np.where(gone, 0.0, 0.1 * x)


def _category(r: np.random.Generator, n: int) -> tuple[Any, Any]:
    k = r.integers(0, 20, n)
    return np.char.add("k", k.astype(str)), 0.05 * k - 0.5


def _codes(r: np.random.Generator, n: int) -> tuple[Any, Any]:
    return np.char.add("item-", r.integers(0, 200_000, n).astype(str)), np.zeros(n)


def _text(r: np.random.Generator, n: int) -> tuple[Any, Any]:
    words = WORDS[r.integers(0, len(WORDS), (n, 4))]
    return [" ".join(row) for row in words.tolist()], np.zeros(n)


def _date(r: np.random.Generator, n: int) -> tuple[Any, Any]:
    days = r.integers(0, 3000, n)
    return (np.datetime64("2015-01-01") + days).astype(str), days / 3000 - 0.5


def _count(r: np.random.Generator, n: int) -> tuple[Any, Any]:
    k = r.poisson(5, n)
    return k, 0.1 * (k - 5)


DRAWN = {
    "number": _number,
    "gaps": _gaps,
    "category": _category,
    "codes": _codes,
    "text": _text,
    "date": _date,
    "count": _count,
}
