"""The limit on memory: what is sized by it, and that a fit keeps to it as the system sees it."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from bench.limit import OVER, piece, write
from bench.memory import imported, peak_of_command
from mercer.automl import budget, fit_table
from mercer.automl.crossval import ridge_path
from mercer.automl.frames import Frame, in_batches
from mercer.automl.metrics import METRICS
from mercer.automl.predictors import ConstantPredictor
from mercer.automl.recipes import ALPHAS, LINEAR
from mercer.automl.refit import fit_all_rows, fit_streamed_rows
from mercer.automl.rows import TableRows
from mercer.automl.search import SearchProblem, try_recipe
from mercer.automl.splits import make_folds
from mercer.cli.fit import FitOptions
from mercer.cli.guard import UsageError
from mercer.models.base import bytes_of
from mercer.store import load
from mercer.tables import Columns, DataError, open_source

linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="resident anonymous memory is Linux's to tell"
)


def problem(n, p=3, seed=0, memory=4e9):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)).astype(np.float32)
    return SearchProblem(
        TableRows(X, X @ np.arange(1.0, p + 1) + rng.normal(size=n), np.arange(n)),
        METRICS["r2"],
        0,
        seed,
        memory,
    )


def kept_to(tmp_path, rows, suffix, task, limit, seconds, seed=0):
    """How much of the limit a fit took at its highest, beyond the imported program."""
    path = tmp_path / f"table.{suffix}"
    write(path, rows, task, seed)
    command = [
        sys.executable,
        "-m",
        "mercer",
        "fit",
        path,
        "--target",
        "y",
        "--memory",
        limit,
        "--time",
        str(seconds),
    ]
    peak, ended = peak_of_command([*command, "--out", tmp_path / "a.mercer"])
    assert ended.returncode == 0, ended.stderr
    return (peak - imported("mercer.cli.fit")) / bytes_of(limit)


@linux
def test_a_fit_keeps_to_its_limit(tmp_path):
    assert kept_to(tmp_path, 80_000, "csv", "regression", "150MB", 0.5) <= OVER


@linux
@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "suffix", "task", "limit", "seconds"),
    [
        (100_000, "csv", "classes", "150MB", 20),
        (1_000_000, "csv", "regression", "150MB", 10),
        (1_000_000, "parquet", "binary", "200MB", 20),
    ],
)
def test_larger_fits_keep_to_their_limits(tmp_path, rows, suffix, task, limit, seconds):
    assert kept_to(tmp_path, rows, suffix, task, limit, seconds, seed=rows) <= OVER


# too little
def test_a_limit_too_small_for_anything_is_one_sentence_at_once(tmp_path):
    with pytest.raises(
        UsageError,
        match=r"^--memory of 40 MB is too little to fit anything; the smallest that works is 150 MB\.$",
    ):
        FitOptions(("nowhere.csv",), "y", memory="40MB").check()
    with pytest.raises(ValueError, match="memory of 1 MB is too little"):
        fit_table(tmp_path / "nowhere.csv", "y", memory=1e6)


def test_batches_are_as_small_as_the_memory_asks(tmp_path):
    write(tmp_path / "a.csv", 20_000, "regression")
    write(tmp_path / "a.parquet", 20_000, "regression")
    for name in ("a.csv", "a.parquet"):
        source = in_batches(open_source(tmp_path / name), 3e7)
        batches = list(source.batches())
        assert sum(b.num_rows for b in batches) == 20_000
        assert max(b.nbytes for b in batches) < 2 * budget.batch_bytes(3e7)
        assert pa.Table.from_batches(batches).equals(
            pa.Table.from_batches(open_source(tmp_path / name).batches())
        )
    frame = in_batches(Frame(piece(5_000, 0, "regression", 0)), 3e7)
    assert sum(b.num_rows for b in frame.batches()) == 5_000


# fits
def test_a_stream_of_rows_gives_the_model_of_all_of_them():
    p = problem(20_000)
    f = _linear(p)
    few = p.sample(3_000)
    streamed = fit_streamed_rows(few, p.rows, len(p.rows), f, 3, 2e8)
    whole = fit_all_rows(p, f, 3, 4e9)
    assert np.allclose(streamed(p.rows.X[:50]), whole(p.rows.X[:50]), rtol=1e-4, atol=1e-3)
    assert streamed.low == whole.low


def _linear(p):
    from mercer.automl.candidates import feature_candidate

    return feature_candidate(p.sample(2_000), LINEAR, 3)


def test_a_constant_of_parts_is_that_of_all():
    rng = np.random.default_rng(0)
    y, codes, w = rng.normal(size=100), rng.integers(0, 3, 100), rng.random(100)
    for target, k in ((y, 0), (codes, 3)):
        for weight in (w, np.zeros(100)):
            parts = [(target[s], weight[s]) for s in (slice(0, 30), slice(30, 100))]
            assert np.allclose(
                ConstantPredictor.streamed(parts, k).values,
                ConstantPredictor.of(target, weight, k).values,
            )


def test_predictions_of_the_search_do_not_hold_those_of_other_penalties():
    tried = try_recipe(problem(200), LINEAR, 3)
    assert tried.predicted.base is None


def test_cross_validation_in_little_memory_says_the_same():
    p = problem(3_000, 6)
    split, Y = make_folds(p.rows), p.rows.y[:, None]
    lift = LINEAR.lift(6, 0)
    few, many = (ridge_path(lift, p.rows.X, Y, None, split, ALPHAS, memory=m) for m in (1e6, 4e9))
    assert np.allclose(few, many, rtol=1e-4, atol=1e-4)


def test_rows_beyond_the_memory_are_streamed_and_said(monkeypatch):
    monkeypatch.setattr(budget, "training_rows", lambda *_: 2_000)
    monkeypatch.setattr(budget, "holdout_rows", lambda *_: 500)
    e = fit_table(piece(8_000, 0, "regression", 3), "y", time=0.3).result
    kinds = {c.kind: c for c in e.contenders}
    assert e.rows_train > 6_000
    assert "; 500 of these 1,600 rows are judged, to keep to memory" in e.holdout_rule
    assert e.rows_holdout == 500
    assert kinds["constant"].note == kinds["linear"].note == ""  # of all rows
    assert "on 2,000 of 6,400 rows" in kinds["trees"].note


# predictions
@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = tmp_path_factory.mktemp("fitted") / "a.mercer"
    fit_table(piece(2_000, 0, "regression", 0), "y", id="row", time=0.3).save(path)
    return path


def test_predictions_read_small_batches_and_come_as_large_ones(fitted, monkeypatch):
    model, table = load(fitted), piece(70_000, 0, "regression", 0)
    read, transform = [], Columns.transform
    monkeypatch.setattr(
        Columns,
        "transform",
        lambda self, batch, **kw: read.append(batch.nbytes) or transform(self, batch, **kw),
    )
    batches = list(model.predict_batches(table))
    assert [b.num_rows for b in batches] == [65_536, 4_464]
    assert pa.Table.from_batches(batches).column("row").equals(table.column("row"))
    assert max(read) < 2 * budget.batch_bytes(100e6) < table.nbytes


def test_a_column_is_not_refused_for_the_first_small_batch_alone(fitted):
    table = piece(40_000, 0, "regression", 0)
    place = table.schema.get_field_index("number 0")
    odd = pa.array(["unreadable"] * 39_000 + ["1.5"] * 1_000)
    assert (
        sum(
            b.num_rows
            for b in load(fitted).predict_batches(table.set_column(place, "number 0", odd))
        )
        == 40_000
    )
    with pytest.raises(DataError, match='no value of "number 0" reads as a number'):
        list(
            load(fitted).predict_batches(
                table.set_column(place, "number 0", pa.array(["unreadable"] * 40_000))
            )
        )


@linux
def test_the_command_has_arrow_use_an_allocator_that_gives_back_what_other_threads_freed():
    code = "from mercer.cli.app import app; from mercer.cli.guard import make_do; make_do(); import pyarrow as pa\n"
    code += "print(pa.default_memory_pool().backend_name)"
    environment = {k: v for k, v in os.environ.items() if k != "ARROW_DEFAULT_MEMORY_POOL"}
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert told.strip() == "system"


@linux
@pytest.mark.long
@pytest.mark.parametrize(
    ("suffix", "out"), [("csv", "parquet"), ("parquet", "csv"), ("parquet", "jsonl")]
)
def test_predictions_of_any_number_of_rows_take_the_same_memory(tmp_path, fitted, suffix, out):
    few, many = (_predicted(tmp_path, fitted, rows, suffix, out) for rows in (200_000, 2_000_000))
    assert many <= 1.15 * few + 20e6


def _predicted(folder, model, rows, suffix, out):
    path = folder / f"{rows}.{suffix}"
    write(path, rows, "regression", 0)
    peak, ended = peak_of_command(
        [
            sys.executable,
            "-m",
            "mercer",
            "predict",
            model,
            path,
            "--out",
            folder / f"{rows}.out.{out}",
        ]
    )
    assert ended.returncode == 0, ended.stderr
    return peak - imported("mercer.cli.predict")
