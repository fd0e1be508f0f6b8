"""A model chosen on a sample and summed over files: the sums are those of the rows in memory, for any
cut into files, and a fit begun again ends at the same bits."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import mercer
from mercer.automl import cluster
from mercer.automl.data import Roles
from mercer.automl.table_partitions import TablePartitions
from mercer.tables import open_source

pytest.importorskip("dask")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS, SAMPLE = 6_000, 1_500


def table(seed=0):
    r = np.random.default_rng(seed)
    X, c = r.normal(size=(ROWS, 3)), r.choice(list("abc"), ROWS)
    y = np.sin(2 * X[:, 0]) + X[:, 1] * (c == "a") + 0.1 * r.normal(size=ROWS) + 1e4
    names = {f"x{i}": X[:, i] for i in range(3)}
    # copies, missing cells, a constant column, missing targets
    names["x2"] = np.where(r.random(ROWS) < 0.05, np.nan, np.round(X[:, 2]))
    y = np.where(r.random(ROWS) < 0.01, np.nan, y)
    return pa.table(
        {
            **names,
            "c": c,
            "one": np.ones(ROWS),
            "when": np.arange(ROWS),
            "who": r.integers(0, 50, ROWS),
            "y": y,
            "k": np.where(np.isnan(y) | (y < 1e4), "lo", "hi"),
        }
    )


def written(folder, cuts, rows=None):
    """The table in files that end at those rows, of several row groups."""
    folder.mkdir()
    data = table()
    edges = [0, *cuts, data.num_rows]
    for i, (a, b) in enumerate(pairwise(edges)):
        parquet.write_table(
            data.slice(a, b - a), folder / f"p-{i:02d}.parquet", row_group_size=rows
        )
    return open_source(str(folder / "*.parquet"))


def options(**given):
    return {
        "task": "auto",
        "metric": None,
        "test": 0.2,
        "time": 0.5,
        "memory": "1GB",
        "seed": 0,
        "keep_rows": True,
        "command": "",
    } | given


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cluster, "SAMPLE_ROWS", SAMPLE)
    monkeypatch.setattr("mercer.automl.table_partitions.PART_ROWS", 400)


def chosen(source, tmp_path, **columns):
    """A choice, kept in a folder."""
    columns = {"target": "y", "exclude": ("k", "when", "who")} | columns
    data, folder = TablePartitions.of_source(source), tmp_path / "choice"
    folder.mkdir()
    cluster._choose(folder, data, source, Roles(**columns), lambda text: None, options())
    return cluster.SampleChoice.read(folder, 0), data


def left(choice, source):
    """Treated rows of all files that are summed, by what the choice says of each of them."""
    (batch,) = pa.Table.from_batches(source.batches()).combine_chunks().to_batches()
    rows = choice.model.columns.transform(batch)
    on = choice.left_out(rows.index, rows.group, rows.time)
    return rows.X[on], rows.y[on]


CUTS = [(), (1, 2, 500, 500, 3333), tuple(range(700, ROWS, 700))]


def test_sums_are_those_of_the_rows_in_memory_for_any_cut(tmp_path):
    source = written(tmp_path / "one", ())
    choice, data = chosen(source, tmp_path)
    model = cluster.summed(choice, data)
    m = model.predictor.estimator
    X, y = left(choice, source)
    X, y = np.concatenate([choice.train.X, X]), np.concatenate([choice.train.y, y])
    n_missing = int(np.isnan(table()["y"].to_numpy()).sum())
    n_sampled = len(choice.train) + len(choice.held)  # and some without a target
    assert model.result.rows_refitted == len(y)
    assert ROWS - n_missing - len(choice.held) == len(y)
    assert n_sampled < SAMPLE
    F = m.fitted_.solution.phi.features(mercer.inputs.Table(X)).astype(np.float64)
    z = model.predictor.target.to(y)
    F, z = F - F.mean(0), z - z.mean()
    A = F.T @ F + float(m.alpha_) * np.eye(F.shape[1])
    own = np.linalg.solve(A, F.T @ z)
    off = m.coef_ - own  # of the objective, whose minimum this is, float32 sums cost a millionth
    assert off @ A @ off < 1e-6 * (z @ z - own @ A @ own)
    for i, cuts in enumerate(CUTS[1:]):
        other = cluster.summed(
            choice, TablePartitions.of_source(written(tmp_path / f"cut{i}", cuts, 200))
        )
        np.testing.assert_allclose(
            other.predictor(choice.held.X), model.predictor(choice.held.X), atol=1e-6
        )


def test_the_sample_does_not_depend_on_the_cut(tmp_path):
    from mercer.automl.table_partitions import sampled_table

    found = [
        sampled_table(TablePartitions.of_source(written(tmp_path / f"{i}", cuts, 300)), SAMPLE, 3)
        for i, cuts in enumerate(CUTS)
    ]
    for some, last in found[1:]:
        assert last == found[0][1]
        assert np.array_equal(some.number, found[0][0].number)
        assert some.table.to_pandas().equals(found[0][0].table.to_pandas())


def test_classes_are_those_of_rounds_over_the_rows_in_memory(tmp_path):
    source = written(tmp_path / "cut", (500, 2600))
    choice, data = chosen(source, tmp_path, target="k", exclude=("y", "when", "who"))
    model = cluster.summed(choice, data)
    m = model.predictor.estimator
    X, y = left(choice, source)
    X, y = np.concatenate([choice.train.X, X]), np.concatenate([choice.train.y, y])
    assert model.result.rows_refitted == len(y)
    F = m.solution_.phi.features(mercer.inputs.Table(X)).astype(np.float64)
    s = 2.0 * y - 1
    p = 1 / (1 + np.exp(s * (F @ m.coef_.ravel() + m.intercept_)))
    slope = F.T @ (-s * p) + m.alpha * m.coef_.ravel()
    at_zero = np.abs(F.T @ (-s * 0.5)).max()
    assert np.abs(slope).max() < 1e-3 * at_zero
    assert "same held-out rows" in model.result.verdict


@pytest.mark.parametrize(("role", "column"), [("group", "who"), ("time_column", "when")])
def test_what_the_holdout_keeps_together_is_not_summed(role, column, tmp_path):
    source = written(tmp_path / "cut", (2600,))
    exclude = tuple({"k", "when", "who"} - {column})
    choice, data = chosen(source, tmp_path, exclude=exclude, **{role: column})
    X, _ = left(choice, source)
    model = cluster.summed(choice, data)
    assert model.result.rows_refitted == len(choice.train) + len(X)
    held = {"group": choice.left_out.groups, "time_column": np.array([choice.left_out.since])}[role]
    assert held is not None
    if role == "time_column":
        assert choice.left_out.since < ROWS
        assert len(choice.train) + len(X) <= choice.left_out.since
    else:
        assert len(X) < ROWS - SAMPLE - 400


def test_a_table_that_the_sample_holds_is_fitted_as_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "SAMPLE_ROWS", ROWS)
    source = written(tmp_path / "cut", (2600,))
    told = []
    model = cluster.fit_partitions(
        source,
        Roles("y", ("k", "when", "who")),
        progress=lambda text: None,
        notice=told.append,
        **options(),
    )
    assert model.result.rows_refitted == 0
    assert "more than 6,000 rows" in told[0]
    assert model.result.verdict.endswith(told[0])


def test_other_files_and_empty_ones_are_taken(tmp_path):
    folder = tmp_path / "csv"
    folder.mkdir()
    for i, rows in enumerate((3000, 3000)):
        table().slice(3000 * i, rows).drop_columns(["k", "who", "when"]).to_pandas().to_csv(
            folder / f"{i}.csv", index=False
        )
    data = TablePartitions.of_source(open_source(str(folder / "*.csv")))
    assert [p.stop for p in data.places] == [3000, 6000]
    source = written(tmp_path / "cut", (0, 10, 10))
    data = TablePartitions.of_source(source)
    assert data.rows == ROWS
    assert len(list(data.filled())) < len(data)


@pytest.mark.parametrize(
    ("cuts", "rows", "ends"),
    [
        ((), None, [1500, 3000, 4500, 6000]),
        ((), 100, list(range(400, 6001, 400))),
        ((5600,), None, [1400, 2800, 4200, 5600, 6000]),
    ],
    ids=["one group", "many", "a long one and a short one"],
)
def test_a_long_row_group_is_cut_where_there_are_few(cuts, rows, ends, tmp_path):
    source = replace(written(tmp_path / "d", cuts, rows), rows=700)  # of a batch
    data = TablePartitions.of_source(source)
    assert [p.stop for p in data.places] == ends
    assert len(set(data.keys)) == len(ends)
    pieces = [piece for part in data.graphs for piece, _ in part.pieces()]
    assert [len(part) for part in data.graphs] == np.diff([0, *ends]).tolist()
    at = np.concatenate([first + np.arange(batch.num_rows) for batch, first in pieces])
    assert np.array_equal(at, np.arange(ROWS))
    found = pa.Table.from_batches([batch for batch, _ in pieces]).to_pandas()
    assert found.equals(table().to_pandas()[found.columns])


SCRIPT = """
import sys
from mercer.automl import cluster, table_partitions
from mercer.cli import main
cluster.SAMPLE_ROWS, table_partitions.PART_ROWS = 1500, 200
sys.argv = ["mercer", "fit", *sys.argv[1:]]
if __name__ == "__main__":
    main()
"""


def start(tmp_path, kept, out):
    words = [str(tmp_path / "cut" / "*.parquet"), "-t", "y", "--exclude", "k,when,who"]
    words += ["--time", "0.1", "--out", str(out), "--overwrite", "--checkpoint", str(kept)]
    with (tmp_path / "log").open("a") as log:
        return subprocess.Popen([sys.executable, "-c", SCRIPT, *words], stdout=log, stderr=log)


@pytest.mark.parametrize(
    "kills", [2, pytest.param(20, marks=[pytest.mark.long])], ids=["two", "twenty"]
)
def test_kills_at_any_moment_change_no_bit(kills, tmp_path):
    written(tmp_path / "cut", (2000, 4000), 200)
    kept, out, rng = tmp_path / "kept", tmp_path / "m.mercer", np.random.default_rng(kills)
    began = time.monotonic()
    first = start(tmp_path, tmp_path / "other", out)
    assert first.wait(300) == 0, (tmp_path / "log").read_text()
    took = time.monotonic() - began
    done, in_sums, copied = 0, 0, None
    while done < kills or in_sums < kills // 8:
        assert done < 3 * kills
        out.unlink(missing_ok=True)
        before = sums(kept)
        process = start(tmp_path, kept, out)
        until = time.monotonic() + rng.uniform(0.4, 1.0) * took
        aimed = in_sums < kills // 8  # some as soon as a new sum of some rows is there
        while process.poll() is None and not (
            sums(kept) - before if aimed else time.monotonic() > until
        ):
            time.sleep(0.01)
            if copied is None and (found := list(kept.glob("choice-*"))):
                copied = tmp_path / "again" / found[0].name
                shutil.copytree(found[0], copied)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            done += 1
            process.wait()
            in_sums += bool(sums(kept))
        process.wait()
        if out.exists():  # done before the kill: the next begins anew, with another choice
            check(tmp_path, copied, out)
            copied = None
    out.unlink(missing_ok=True)
    last = start(tmp_path, kept, out)
    while last.poll() is None:
        if copied is None and (found := list(kept.glob("choice-*"))):
            copied = tmp_path / "again" / found[0].name
            shutil.copytree(found[0], copied)
        time.sleep(0.01)
    assert last.wait() == 0, (tmp_path / "log").read_text()
    check(tmp_path, copied, out)
    assert not list(kept.glob("choice-*"))


def sums(kept):
    return set(kept.glob("pass-*/0-*.npz"))


def check(tmp_path, copied, out):
    """The same bits as a run that nothing disturbs from the same choice on."""
    other = out.with_name("undisturbed.mercer")
    process = start(tmp_path, copied.parent, other)
    assert process.wait(300) == 0, (tmp_path / "log").read_text()
    a, b = mercer.load(out), mercer.load(other)
    assert np.array_equal(a.predictor.estimator.coef_, b.predictor.estimator.coef_)
    assert a.result.as_dict() | {"command": ""} == b.result.as_dict() | {"command": ""}
    other.unlink()
    shutil.rmtree(copied.parent)
