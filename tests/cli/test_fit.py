"""mercer fit: the verdict, its files, names, pipes, and files that change on the way."""

import json
import os
import subprocess
import sys

import pytest

from mercer.cli.fit import FitOptions, stem
from tests.cli.calls import call


def test_fit_prints_the_verdict_and_writes_model_and_report(folder):
    text = (folder / "stdout").read_text()
    assert "regression" in text
    assert "95 % interval" in text
    assert "Gradient-boosted trees" in text
    assert text.rstrip().endswith("d.html")
    assert (folder / "d.mercer").stat().st_size > 1000
    page = (folder / "d.html").read_text(encoding="utf-8")
    assert "progression" in page
    assert "--target" in page


def test_json_is_the_result_and_nothing_else(folder, tmp_path):
    flags = ["--time", "0.01", "--out", tmp_path / "m.mercer", "--exclude", "age,sex", "--json"]
    found = call("fit", folder / "d.csv", "-t", "progression", *flags)
    result = json.loads(found.stdout)
    assert result["target"] == "progression"
    assert {c["kind"] for c in result["columns"] if c["name"] in ("age", "sex")} == {"excluded"}
    assert "--exclude age,sex" in result["command"]
    assert (tmp_path / "m.html").exists()


def test_a_fit_to_all_rows_is_asked_for_and_said(folder, tmp_path):
    words = ["fit", folder / "d.csv", "-t", "progression", "--time", "0.01", "--refit"]
    found = call(*words, "--out", tmp_path / "m.mercer")
    assert found.exit_code == 0, found.output
    assert "model before it was fitted to all rows" in found.stdout
    assert "--refit" in (tmp_path / "m.html").read_text(encoding="utf-8")
    (tmp_path / "t.csv").write_bytes((folder / "d.csv").read_bytes())
    refused = call(*words, "--test", tmp_path / "t.csv", "--out", tmp_path / "n.mercer")
    assert refused.exit_code == 2
    assert "never fitted" in refused.output


def test_paired_differences_stand_beside_the_scores(folder):
    lines = (folder / "stdout").read_text().splitlines()
    head = next(line for line in lines if "chosen minus it" in line)
    trees = next(line for line in lines if line.strip().startswith("Gradient-boosted trees"))
    assert " to " in trees[head.index("cross-validated") :]


def test_names_come_from_the_data():
    asked = FitOptions(("folder/my houses.csv.gz",), "y")
    assert (str(asked.model_path), str(asked.report_path)) == ("my houses.mercer", "my houses.html")
    assert "'folder/my houses.csv.gz'" in asked.command()
    assert stem("*.csv") == "model"


def test_tables_come_through_pipes(folder, tmp_path):
    """Fitted and predicted from standard input, a shell's pipe and a named one: the same as from
    the file."""
    data = (folder / "d.csv").read_bytes()
    flags = ["-t", "progression", "--time", "0.01", "--out", tmp_path / "m.mercer", "--json"]
    result = json.loads(call("fit", "-", *flags, input=data).stdout)
    assert result["rows_train"] + result["rows_holdout"] == 442
    assert "mercer fit - " in result["command"]
    known = call("predict", folder / "d.mercer", folder / "d.csv", "-o", "-").stdout
    assert call("predict", folder / "d.mercer", "-", "-o", "-", input=data).stdout == known
    fifo = tmp_path / "pipe.csv"
    os.mkfifo(fifo)
    words = [
        sys.executable,
        "-m",
        "mercer",
        "predict",
        str(folder / "d.mercer"),
        str(fifo),
        "-o",
        "-",
    ]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    fifo.write_bytes(data)
    assert process.communicate(timeout=60)[0] == known


def test_a_pipe_gives_the_model_a_plain_name():
    assert (
        str(FitOptions(("-",), "y").model_path)
        == str(FitOptions(("/dev/fd/63",), "y").model_path)
        == "model.mercer"
    )


def test_a_file_that_changes_while_it_is_fitted_is_refused(folder, tmp_path, monkeypatch):
    from mercer.automl import data

    path = tmp_path / "t.csv"
    path.write_bytes((folder / "d.csv").read_bytes())
    true = data.Columns.fit

    def meddled(self, source, *more, **options):
        found = true(self, source, *more, **options)
        with path.open("ab") as file:
            file.write(path.read_bytes().splitlines()[-1] + b"\n")
        return found

    monkeypatch.setattr(data.Columns, "fit", meddled)
    found = call("fit", path, "-t", "progression", "--time", "0.01", "--out", tmp_path / "m.mercer")
    assert found.exit_code == 1
    assert (
        found.stderr
        == f"mercer: {path} has changed since it was opened; give a file that nothing writes to while it is read.\n"
    )


@pytest.mark.parametrize("number", [1, 2])
def test_a_full_disk_at_the_report_or_the_model_leaves_neither(
    folder, tmp_path, monkeypatch, number
):
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == number:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr("mercer.automl.fit._bytes", lambda model: 1)  # which writes a file, too
    monkeypatch.setattr(os, "fsync", full)
    found = call(
        "fit",
        folder / "d.csv",
        "-t",
        "progression",
        "--time",
        "0.01",
        "--out",
        tmp_path / "m.mercer",
    )
    assert found.exit_code == 1
    assert "the disk is full" in found.stderr
    assert os.listdir(tmp_path) == []
