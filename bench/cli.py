"""`mercer fit` from the file on, against grids of RBF machines and beside boosted trees; and a
million rows of csv.

The peers are given Mercer's treated columns and only the time of their search counts: reading and
treating are free for them. Their grid (PENALTIES x GAMMAS, three folds) is searched on GRID_ROWS of
the rows, and the best is then fitted to all training rows, or to as many as an hour allows; with
MERCER_BENCH_LONG=1 all rows are searched, which takes hours.
"""

import os
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.csv
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from bench import data
from bench.harness import Case, Measure, Quality
from bench.memory import peak_memory
from mercer.automl import fit_table
from mercer.automl.budget import Clock
from mercer.automl.data import Roles, prepare_data
from mercer.tables import open_source

SECONDS = 60
LONG = os.environ.get("MERCER_BENCH_LONG") == "1"
GRID_ROWS = None if LONG else 10_000  # None: all
HOUR = 3600.0
PENALTIES = (0.1, 1.0, 10.0, 100.0)  # C of SVC; 1/alpha of KernelRidge
GAMMAS = (0.02, 0.05, 0.1, 0.3)
TABLES = {  # file, target, metric, rows of the table
    "houses": ("537_houses.tsv.gz", "target", "r2", None),
    "adult": ("adult.tsv.gz", "target", "accuracy", None),
    "covtype": ("covtype.csv.xz", "Cover_Type", "accuracy", 100_000),
}


def file_of(name, rows, folder):
    """The path of a table; of fewer rows, a csv file of a random sample of it."""
    path = data.path(f"tables/{name}")
    if rows is None:
        return path
    table = data.table(name)
    few = Path(folder) / f"{name.split('.')[0]}.csv"
    table.sample(rows, random_state=0).to_csv(few, index=False)
    return few


def treated(path, target):
    """The rows as Mercer treats and splits them."""
    return prepare_data(
        open_source(path), Roles(target), 0.2, task="auto", memory=4e9, seed=0, clock=Clock(0)
    )


def grid(found, grid_rows, seconds=HOUR):
    """The best RBF machine of the grid, and how many rows it was fitted to: all, or as many as the
    seconds allow."""
    few = found.train if grid_rows is None else found.train.sample(grid_rows)
    with threadpool_limits(
        1
        # two threads of OpenBLAS crash in Cholesky factorisations of about 16,000 rows on some machines
    ):
        search = GridSearchCV(*peer(found), cv=3, n_jobs=2).fit(few.X, response(found, few))
        most = int(
            len(few) * (seconds / max(search.refit_time_, 1e-3)) ** 0.5
        )  # a fit of n rows takes at least n^2
        many = found.train.sample(max(most, len(few)))
        best = search.best_estimator_
        return (
            (best if len(many) == len(few) else best.fit(many.X, response(found, many))),
            len(many),
            search.best_params_,
        )


def peer(found):
    """A machine and its grid."""
    if found.columns.classes_:
        return SVC(cache_size=1000), {"C": PENALTIES, "gamma": GAMMAS}
    return KernelRidge(kernel="rbf"), {"alpha": [1 / p for p in PENALTIES], "gamma": GAMMAS}


def response(found, rows):
    """Codes of classes, or numbers in the units of the training rows."""
    return (
        rows.y if found.columns.classes_ else (rows.y - found.train.y.mean()) / found.train.y.std()
    )


def peer_score(found, model):
    y, predicted = response(found, found.held), model.predict(found.held.X)
    return (
        float(np.mean(predicted == y))
        if found.columns.classes_
        else float(1 - np.mean((predicted - y) ** 2) / np.var(y))
    )


def named(found, rows):
    """The grid, spelled out."""
    machine, settings = peer(found)
    values = ", ".join(
        f"{name} {'/'.join(f'{v:g}' for v in grid)}" for name, grid in settings.items()
    )
    return (
        f"an RBF {type(machine).__name__} grid ({values}; 3 folds of {rows:,} rows, then up to all)"
    )


def against_grid(name, rows=None, seconds=SECONDS, grid_rows=GRID_ROWS, folder=None):
    """Ours from the file on; the peer from treated rows on."""
    file, target, metric, most = TABLES[name]
    path = file_of(file, rows or most, folder)
    found, scores = treated(path, target), {}

    def ours():
        return fit_table(path, target, metric=metric, time=seconds)

    def check(model, machine):
        best, used, settings = machine
        scores["ours"], scores["trees"] = (
            model.result.chosen.holdout,
            model.result.contenders[-1].holdout,
        )
        theirs, kind = peer_score(found, best), model.result.chosen.kind
        told = ", ".join(f"{k} {v:g}" for k, v in settings.items())
        return Quality(
            f"holdout {metric} of {kind} against {told} on {used:,} rows",
            scores["ours"],
            theirs,
            slack=0.01 * abs(theirs),
        )

    searched = len(found.train) if grid_rows is None else min(grid_rows, len(found.train))
    title = (
        f"{name}, {len(found.train):,} rows, --time {seconds:g}, against {named(found, searched)}"
    )
    yield Case(
        title, ours, partial(grid, found, grid_rows), check, 5.0, repeats=1, warmup=lambda: None
    )
    if scores:
        yield Measure(
            f"{name}: holdout {metric} beside HistGradientBoosting",
            scores["ours"],
            scores["trees"],
            lower_is_better=False,
        )


def write_csv(path, n, seed=0):
    """Twenty numbers, three categories and a number to predict."""
    rng, step = np.random.default_rng(seed), 100_000
    with pyarrow.csv.CSVWriter(path, _batch(rng, 1).schema) as writer:
        for i in range(0, n, step):
            writer.write_batch(_batch(rng, min(step, n - i)))
    return path


def _batch(rng, n):
    X = rng.normal(size=(n, 20)).round(6)
    towns, y = (
        rng.integers(0, 40, size=(n, 3)),
        np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.3 * rng.normal(size=n),
    )
    columns = {f"x{j}": X[:, j] for j in range(20)} | {
        f"town{j}": [f"town {v}" for v in towns[:, j]] for j in range(3)
    }
    return pa.record_batch(columns | {"y": y.round(6)})


def fit_csv(path, memory="2GB", seconds=SECONDS):
    return fit_table(path, "y", memory=memory, time=seconds)


def parsing(path):
    """Seconds of one pass over the batches, with nothing done to them."""
    start = perf_counter()
    for _ in open_source(path).batches():
        pass
    return perf_counter() - start


def large(n, seconds=SECONDS):
    with tempfile.TemporaryDirectory() as folder:
        path, small = (
            write_csv(Path(folder) / "large.csv", n),
            write_csv(Path(folder) / "small.csv", 3_000),
        )
        start = perf_counter()
        model = fit_csv(path, seconds=seconds)
        total, once = perf_counter() - start, parsing(path)
        score = model.result.chosen.holdout
        verdict = None if score > 0.5 else f"holdout R^2 is only {score:.3f}"
        yield Measure(
            f"{n:,} rows of csv, all passes parsed ({3 * once:.1f} s) within the fit",
            3 * once,
            total,
            2.0,
            "s",
            quality=verdict,
        )
        grown = peak_memory(
            partial(fit_csv, path, "2GB", seconds), warmup=partial(fit_csv, small, "2GB", 1.0)
        )
        yield Measure(
            f"{n:,} rows of csv: memory above the baseline, against 2 GB",
            grown / 1e6,
            2000.0,
            1.0,
            "MB",
        )


def cases():
    with tempfile.TemporaryDirectory() as folder:
        for name in TABLES:
            yield from against_grid(name, folder=folder)
    yield from large(1_000_000)
