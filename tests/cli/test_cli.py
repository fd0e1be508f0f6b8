"""The command line: exit status, sentences, files that are whole or not there, and output that can be read again."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from mercer.cli import app
from mercer.cli.fit import Asked, stem
from mercer.cli.guard import guarded, sentence
from mercer.cli.output import draft
from mercer.datasets import diabetes


def call(*words):
    return CliRunner().invoke(app, [str(w) for w in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A csv file, and what `mercer fit` makes of it in little time."""
    place = tmp_path_factory.mktemp("cli")
    diabetes().write_csv(place / "d.csv")
    found = call("fit", place / "d.csv", "-t", "progression", "--time", "0.01", "--out", place / "d.mercer", "--report", place / "d.html")
    assert found.exit_code == 0, found.output
    (place / "stdout").write_text(found.stdout)
    return place


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


def test_json_is_the_evidence_and_nothing_else(folder, tmp_path):
    flags = ["--time", "0.01", "--out", tmp_path / "m.mercer", "--exclude", "age,sex", "--json"]
    found = call("fit", folder / "d.csv", "-t", "progression", *flags)
    evidence = json.loads(found.stdout)
    assert evidence["target"] == "progression"
    assert {c["kind"] for c in evidence["columns"] if c["name"] in ("age", "sex")} == {"excluded"}
    assert "--exclude age,sex" in evidence["command"]
    assert (tmp_path / "m.html").exists()


READERS = {
    "csv": pyarrow.csv.read_csv,
    "tsv": lambda p: pyarrow.csv.read_csv(p, parse_options=pyarrow.csv.ParseOptions(delimiter="\t")),
    "parquet": pyarrow.parquet.read_table,
    "arrow": pyarrow.feather.read_table,
    "feather": pyarrow.feather.read_table,
    "jsonl": lambda p: pyarrow.Table.from_pylist([json.loads(line) for line in p.read_text().splitlines()]),
}


@pytest.mark.parametrize("form", READERS)
def test_predictions_in_every_format_are_the_same(folder, tmp_path, form):
    found = call("predict", folder / "d.mercer", folder / "d.csv", "-o", tmp_path / f"p.{form}")
    assert found.exit_code == 0, found.output
    values = READERS[form](tmp_path / f"p.{form}")
    assert values.column_names == ["prediction", "lower", "upper"]
    assert values.num_rows == 442
    assert np.corrcoef(np.array(values["prediction"]), [row[-1] for row in diabetes().rows])[0, 1] > 0.6


def test_predictions_to_standard_output_are_csv(folder):
    lines = call("predict", folder / "d.mercer", folder / "d.csv", "-o", "-").stdout.splitlines()
    assert len(lines) == 443
    assert lines[0].replace('"', "") == "prediction,lower,upper"


def test_files_that_are_there_are_kept_unless_told_otherwise(folder, tmp_path):
    out = tmp_path / "p.csv"
    out.write_text("mine")
    found = call("predict", folder / "d.mercer", folder / "d.csv", "-o", out)
    assert found.exit_code == 2
    assert "--overwrite" in found.stderr
    assert out.read_text() == "mine"
    assert call("predict", folder / "d.mercer", folder / "d.csv", "-o", out, "--overwrite").exit_code == 0
    assert out.read_text() != "mine"


WRONG = {
    "no target": (["fit", "{d}"], 2, "--target"),
    "no such file": (["fit", "none.csv", "-t", "y"], 1, "none.csv"),
    "folder": (["fit", "{folder}", "-t", "y"], 1, "directory"),
    "misspelt target": (["fit", "{d}", "-t", "progresion"], 1, 'did you mean "progression"'),
    "misspelt column": (["fit", "{d}", "-t", "progression", "--exclude", "bmj"], 1, 'did you mean "bmi"'),
    "task": (["fit", "{d}", "-t", "progression", "--task", "ranking"], 2, "--task"),
    "metric": (["fit", "{d}", "-t", "progression", "--metric", "auc"], 1, "metric must be one of"),
    "share": (["fit", "{d}", "-t", "progression", "--test", "2"], 2, "--test"),
    "time": (["fit", "{d}", "-t", "progression", "--time", "-1"], 2, "--time"),
    "memory": (["fit", "{d}", "-t", "progression", "--memory", "much"], 2, "--memory"),
    "no folder for the model": (["fit", "{d}", "-t", "progression", "--out", "no/where.mercer"], 2, "not a folder"),
    "same name twice": (["fit", "{d}", "-t", "progression", "--out", "x", "--report", "x"], 2, "two names"),
    "not a model": (["predict", "{d}", "{d}", "-o", "{new}.csv"], 1, "not written by Mercer"),
    "other columns": (["predict", "{folder}/d.mercer", "{other}", "-o", "{new}.csv"], 1, "lacks"),
    "unknown format": (["predict", "{folder}/d.mercer", "{d}", "-o", "{new}.xlsx"], 2, ".xlsx"),
    "unknown command": (["explain"], 2, "explain"),
}


@pytest.mark.parametrize("case", WRONG)
def test_trouble_is_one_sentence_and_leaves_nothing_behind(folder, tmp_path, monkeypatch, case):
    words, status, text = WRONG[case]
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n3,4\n")
    names = {"d": folder / "d.csv", "folder": folder, "other": other, "new": tmp_path / "new"}
    found = call(*(w.format(**names) for w in words))
    assert found.exit_code == status, found.output
    assert text in found.stderr
    assert "Traceback" not in found.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.csv"]


UNREADABLE = {"empty": ("", "empty"), "header only": ("a,b\n", "no rows"), "ragged": ("a,b\n1,2\n3,4,5\n" + "1,2\n" * 50, "line 3")}


@pytest.mark.parametrize("case", UNREADABLE)
def test_files_that_cannot_be_read_are_named(tmp_path, monkeypatch, case):
    content, text = UNREADABLE[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(content)
    found = call("fit", "t.csv", "-t", "b")
    assert found.exit_code == 1
    assert text in found.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_unreadable_files_are_named(folder, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user reads everything")
    found = call("fit", path, "-t", "b")
    assert found.exit_code == 1
    assert "t.csv" in found.stderr


def test_a_full_disk_leaves_nothing_half_written(folder, tmp_path, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    found = call("predict", folder / "d.mercer", folder / "d.csv", "-o", tmp_path / "p.csv")
    assert found.exit_code == 1
    assert "disk is full" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_draft_leaves_the_old_file(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")

    def interrupted():
        with draft(path) as stream:
            stream.write(b"new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_ctrl_c_is_said_in_a_word(capsys):
    with pytest.raises(SystemExit) as stopped, guarded():
        raise KeyboardInterrupt
    assert stopped.value.code == 1
    assert "interrupted" in capsys.readouterr().err


def test_sentences_of_errors():
    assert sentence(MemoryError()).startswith("not enough memory")
    assert sentence(ValueError("two\n lines")) == "two lines."
    assert sentence(PermissionError(13, "Permission denied", "a")) == "a: permission denied."


def test_names_come_from_the_data():
    asked = Asked(("folder/my houses.csv.gz",), "y")
    assert (str(asked.model_path), str(asked.report_path)) == ("my houses.mercer", "my houses.html")
    assert "'folder/my houses.csv.gz'" in asked.command()
    assert stem("*.csv") == "model"


def test_a_stopped_process_says_so_and_leaves_nothing(folder, tmp_path):
    """A real process, a real signal, in the middle of the work."""
    words = [sys.executable, "-m", "mercer", "fit", str(folder / "d.csv"), "-t", "progression", "--out", str(tmp_path / "m.mercer")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (1, -signal.SIGINT)  # the latter where Python itself had not started yet
    assert "Traceback" not in err or process.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


def test_help_imports_nothing_heavy():
    code = "import sys; from mercer.cli import app; print(sorted({'numpy', 'sklearn', 'numba', 'pyarrow', 'scipy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_lists_the_commands_that_work():
    text = call("--help").stdout
    assert all(word in text for word in ("fit", "predict", "demo", "Exit status"))
    assert "gallery" not in text
    assert call("--version").stdout.startswith("mercer ")
