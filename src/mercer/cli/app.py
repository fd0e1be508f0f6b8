"""The commands and their flags, read by typer; the work is in modules that each command imports
when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

try:
    import typer
except ImportError as error:  # pragma: no cover - the extra is installed where tests run
    raise SystemExit(
        "mercer: the command line needs typer, rich and pyarrow: pip install mercer[cli]"
    ) from error

from mercer.cli.early import FAILED, INTERRUPTED, sentence_for_ctrl_c
from mercer.cli.guard import DONE, finish, guarded, leave_with

EPILOG = "Exit status: 0 done, 1 failed or interrupted, 2 bad usage."
app = typer.Typer(
    name="mercer",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="From a table to a model and an honest number: what a lift adds over a linear model, scored on rows it never saw.",
    epilog=EPILOG,
)
FORMATS = "csv, tsv, parquet, arrow, feather, jsonl, json, xlsx or fasta; .gz .zst .xz .bz2; several files or globs; - for standard input"
THRESHOLD = "of two classes: the probability from which on the class that fit names is predicted"
MEMORY = "from 150MB on, beyond what the program itself takes: past it rows wait on disk; --cluster local: of each worker, from 600MB on"
METRICS = "r2, rmse, mae; accuracy, balanced_accuracy, log_loss, auc, average_precision"
Data = Annotated[list[str], typer.Argument(metavar="DATA", help=FORMATS)]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="replace files that are there")]
SpreadsheetSafe = Annotated[
    bool,
    typer.Option(
        "--spreadsheet-safe", help="texts that a spreadsheet would run as formulas are made texts"
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN", help="csv: between fields; tab for tabs", show_default="found out"
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN", help="csv: the decimal mark, . or a comma", show_default="found out"
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="csv: whether the first row has names",
        show_default="found out",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="csv: such as utf-8 or cp1252", show_default="found out"),
]


@app.command(epilog=EPILOG)
def fit(
    data: Data,
    target: Annotated[str, typer.Option("--target", "-t", help="the column to predict")],
    task: Annotated[str, typer.Option(help="auto, regression or classification")] = "auto",
    metric: Annotated[
        str | None,
        typer.Option(help=METRICS, show_default="r2; accuracy, or auc where a class is rare"),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="COLS", help="columns to leave out, between commas; may be repeated"),
    ] = None,
    id: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="identifies rows; not used to predict, passed through by predict"
        ),
    ] = None,
    weight: Annotated[str | None, typer.Option(metavar="COL", help="weights of rows")] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COL", help="kept whole in splits, unless --time-column is given"),
    ] = None,
    time_column: Annotated[
        str | None, typer.Option(metavar="COL", help="orders the rows: the last are held out")
    ] = None,
    test: Annotated[
        str, typer.Option(metavar="FILE|SHARE", help="the holdout: a file, or a share of the rows")
    ] = "0.2",
    time: Annotated[
        str,
        typer.Option(
            metavar="SECONDS", help="for search and fits; reading, judging and writing come on top"
        ),
    ] = "60",
    memory: Annotated[
        str,
        typer.Option(
            metavar="BYTES",
            help=MEMORY,
        ),
    ] = "4GB",
    seed: Annotated[
        int, typer.Option(min=0, help="of the holdout, the folds and random features")
    ] = 0,
    out: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="the model file", show_default="DATA.mercer"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="the report", show_default="DATA.html")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Annotated[bool, typer.Option("--json", help="print the result as JSON")] = False,
    no_rows: Annotated[
        bool,
        typer.Option(
            "--no-rows", help="no single rows of the table in the report; the model holds some"
        ),
    ] = False,
    refit: Annotated[
        bool,
        typer.Option(
            "--refit",
            help="fit the chosen model to all rows in the end, after its scores are taken",
        ),
    ] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local",
            help="above 100,000 rows: choose on a sample, then sum over all on a Dask cluster, tcp://HOST:PORT, or local processes",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="the same, and keep choice and sums in this folder, from which a fit begun again goes on",
        ),
    ] = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    header: Header = None,
    encoding: Encoding = None,
) -> None:
    """Fit a model to a table, and say how good it is on rows that it never saw."""
    with guarded():
        from mercer.cli.csvflags import csv_options
        from mercer.cli.fit import FitOptions, run, seconds

        asked = FitOptions(
            tuple(data),
            target,
            task,
            metric,
            tuple(exclude or ()),
            id,
            weight,
            group,
            time_column,
            test,
            seconds(time),
            memory,
            seed,
            out,
            report,
            overwrite,
            as_json,
            csv_options(delimiter, decimal, header, encoding),
            not no_rows,
            refit,
            cluster,
            checkpoint,
        )
        run(asked)


@app.command(epilog=EPILOG)
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="a file that mercer fit wrote")],
    data: Data,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="csv, tsv, parquet, arrow or jsonl by its suffix; - prints csv",
        ),
    ],
    threshold: Annotated[
        str | None, typer.Option(metavar="T", help=THRESHOLD, show_default="as fitted")
    ] = None,
    overwrite: Overwrite = False,
    spreadsheet_safe: SpreadsheetSafe = False,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    header: Header = None,
    encoding: Encoding = None,
) -> None:
    """Predict the target for new rows, in their order: prediction, lower and upper, or the
    probability of every class.

    The column unusual has a 1 for rows unlike any of training.
    """
    with guarded():
        from mercer.cli.csvflags import csv_options
        from mercer.cli.predict import run

        options = csv_options(delimiter, decimal, header, encoding)
        run(
            model,
            data,
            out,
            overwrite=overwrite,
            options=options,
            threshold=threshold,
            spreadsheet=spreadsheet_safe,
        )


@app.command(epilog=EPILOG)
def check(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="a file that mercer fit or save wrote")
    ],
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="whether this report is of that model")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print what is found as JSON")] = False,
) -> None:
    """Say what a model file holds, once every part of it is checked: classes, arrays, sums,
    versions. Nothing is predicted."""
    with guarded():
        from mercer.cli.check import run

        run(model, report, as_json=as_json)


@app.command(epilog=EPILOG)
def demo(
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="where to write", show_default="a new temporary folder"
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """The whole path on a small real table: fit, predict, report."""
    with guarded():
        from mercer.cli.demo import run

        run(folder, overwrite=overwrite)


@app.command(epilog=EPILOG)
def gallery(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="where to write", show_default="a new temporary folder"
        ),
    ] = None,
    overwrite: Overwrite = False,
    show: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open", help="open the index in a browser", show_default="on a terminal"
        ),
    ] = None,
) -> None:
    """Write interactive pages of what lifts and kernels do, and a playground; open the index."""
    with guarded():
        from mercer.cli.gallery import run

        run(folder, overwrite=overwrite, show=show)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"mercer {version('mercer')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="show the version and exit"
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


def main() -> None:
    """The console script; Ctrl-C before a command has begun is a word, too."""
    try:
        with sentence_for_ctrl_c():
            app(prog_name="mercer")
    except KeyboardInterrupt:
        finish(leave_with(INTERRUPTED, FAILED))
    except SystemExit as end:
        finish(end.code if isinstance(end.code, int) else FAILED if end.code else DONE)
    finish(DONE)
