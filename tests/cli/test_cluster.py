"""mercer fit --cluster and --checkpoint: what cannot be is one sentence with its status, and nothing is
half-written."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from mercer.automl import cluster
from mercer.cli import cluster as workers
from tests.cli.calls import call

distributed = pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def written(folder, **changes):
    """Three files, one without rows, one with other columns."""
    r = np.random.default_rng(0)
    for i, n in enumerate((300, 0, 300)):
        x = r.normal(size=n)
        columns = {"x": x, "z": np.arange(n), "y": np.sin(x) + 0.1 * r.normal(size=n)}
        columns |= {k: v(n) for k, v in changes.items()} if i == 2 else {}
        columns = {k: v for k, v in columns.items() if v is not None}
        parquet.write_table(pa.table(columns), folder / f"{i}.parquet")
    return str(folder / "*.parquet")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(cluster, "SAMPLE_ROWS", 200)
    monkeypatch.setattr(workers, "ANSWER", 2)


def fit(folder, data, *words):
    flags = ("-t", "y", "--time", "0.2", "--out", folder / "m.mercer")
    return call("fit", data, *flags, *words)


def refused(found, folder, status, told):
    assert found.exit_code == status, found.output
    text = " ".join(found.stderr.split())
    assert told in text
    assert text.count("mercer: ") == 1
    assert "Traceback" not in found.output
    assert not list(folder.glob("m.*"))


@pytest.mark.filterwarnings("ignore")  # of a cluster in this process, as it ends
def test_a_cluster_of_an_address_is_used(tmp_path):
    data = written(tmp_path)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0", protocol="tcp"
    ) as there:
        found = fit(tmp_path, data, "--cluster", there.scheduler_address)
    assert found.exit_code == 0, found.output
    assert "of a sample of 200 of 600 rows" in found.stdout
    assert "the saved one has learnt from 560 rows" in " ".join(found.stdout.split())
    assert (tmp_path / "m.mercer").exists()
    assert call("predict", tmp_path / "m.mercer", data, "--out", tmp_path / "p.csv").exit_code == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 601


def test_types_that_differ_are_widened_or_read_as_text(tmp_path):
    data = written(tmp_path, z=lambda n: np.arange(n) + 0.5)
    found = fit(tmp_path, data, "--checkpoint", tmp_path / "kept")
    assert found.exit_code == 0, found.output
    assert not list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere", "http://127.0.0.1"])
def test_an_unknown_address_is_bad_usage(address, tmp_path):
    found = fit(tmp_path, written(tmp_path), "--cluster", address)
    refused(found, tmp_path, 2, "no scheduler answers there")


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_without_workers_is_told(tmp_path):
    with distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=":0", protocol="tcp"
    ) as there:
        found = fit(tmp_path, written(tmp_path), "--cluster", there.scheduler_address)
    refused(found, tmp_path, 1, "has no worker; start one")


def test_a_column_that_one_file_lacks_is_named(tmp_path):
    data = written(tmp_path, z=lambda n: None)
    found = fit(tmp_path, data, "--checkpoint", tmp_path / "kept")
    refused(found, tmp_path, 1, '2.parquet lacks "z"')
    assert not (tmp_path / "kept").exists()


def test_without_dask_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "find_spec", lambda name: None)
    found = fit(tmp_path, written(tmp_path), "--checkpoint", tmp_path / "kept")
    refused(found, tmp_path, 2, "need Dask: pip install mercer[cli,dask]")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--refit", "--cluster", "local"), "--refit fits the held-out rows too"),
        (("--test", "-", "--cluster", "local"), "standard input (-) cannot be read"),
        (("--checkpoint", sys.executable), "is a file; give a folder"),
        (("--memory", "200MB", "--cluster", "local"), "takes --memory 600MB or more"),
    ],
)
def test_flags_that_exclude_each_other_are_bad_usage(words, told, tmp_path):
    refused(fit(tmp_path, written(tmp_path), *words), tmp_path, 2, told)


def test_a_damaged_file_leaves_nothing_half_written(tmp_path):
    data = written(tmp_path)
    path = tmp_path / "2.parquet"
    content = bytearray(path.read_bytes())
    content[4:100] = b"\xff" * 96  # of the rows, not the metadata at the end
    path.write_bytes(bytes(content))
    found = fit(tmp_path, data, "--checkpoint", tmp_path / "kept")
    refused(found, tmp_path, 1, "2.parquet")


@pytest.mark.long  # workers that import everything
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="a terminal's Ctrl-C reaches a group")
@pytest.mark.parametrize("after", [4.0, 12.0])
def test_ctrl_c_ends_workers_and_command(after, tmp_path):
    """As a terminal sends it, to all processes at once; the workers begin no traceback of theirs."""
    r = np.random.default_rng(0)
    x = r.normal(size=(150_000, 4))
    columns = {f"x{i}": x[:, i] for i in range(4)} | {"y": np.sin(x).sum(1)}
    parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    words = ["fit", tmp_path / "d.parquet", "-t", "y", "--cluster", "local", "--time", "60"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mercer", *map(str, words), "--out", str(tmp_path / "m.mercer")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(group(process.pid)) < 3 and time.monotonic() < deadline:  # itself and two more
        time.sleep(0.1)
    time.sleep(after)
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err == "mercer: interrupted; nothing was left half-written.\n"
    time.sleep(1)
    assert not group(process.pid)
    assert [path.name for path in tmp_path.iterdir()] == ["d.parquet"]


def group(leader):
    """The processes of a group that have not ended."""
    told = subprocess.run(["ps", "-eo", "pgid=,stat="], capture_output=True, text=True, check=True)
    lines = (line.split() for line in told.stdout.splitlines())
    return [line for line in lines if line[0] == str(leader) and not line[1].startswith("Z")]
