"""The command line: exit status, sentences, files that are whole or not there, and output that can be read again."""

import hashlib
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

from mercer.cli import app, early
from mercer.cli.early import sentence_for_ctrl_c
from mercer.cli.fit import FitOptions, stem
from mercer.cli.guard import UsageError, guarded, sentence
from mercer.cli.output import check_free, draft, naming
from mercer.datasets import diabetes


def call(*words, **settings):
    return CliRunner().invoke(app, [str(w) for w in words], **settings)


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


def test_json_is_the_result_and_nothing_else(folder, tmp_path):
    flags = ["--time", "0.01", "--out", tmp_path / "m.mercer", "--exclude", "age,sex", "--json"]
    found = call("fit", folder / "d.csv", "-t", "progression", *flags)
    result = json.loads(found.stdout)
    assert result["target"] == "progression"
    assert {c["kind"] for c in result["columns"] if c["name"] in ("age", "sex")} == {"excluded"}
    assert "--exclude age,sex" in result["command"]
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
    assert values.column_names == ["prediction", "lower", "upper", "unusual"]
    assert values.num_rows == 442
    assert np.corrcoef(np.array(values["prediction"]), [row[-1] for row in diabetes().rows])[0, 1] > 0.6


def test_predictions_to_standard_output_are_csv(folder):
    lines = call("predict", folder / "d.mercer", folder / "d.csv", "-o", "-").stdout.splitlines()
    assert len(lines) == 443
    assert lines[0].replace('"', "") == "prediction,lower,upper,unusual"


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
    "no such file": (["fit", "none.csv", "-t", "y"], 2, "none.csv"),
    "folder": (["fit", "{folder}", "-t", "y"], 2, "directory"),
    "misspelt target": (["fit", "{d}", "-t", "progresion"], 2, 'did you mean "progression"'),
    "misspelt column": (["fit", "{d}", "-t", "progression", "--exclude", "bmj"], 2, 'did you mean "bmi"'),
    "task": (["fit", "{d}", "-t", "progression", "--task", "ranking"], 2, "--task"),
    "metric": (["fit", "{d}", "-t", "progression", "--metric", "auc"], 2, "metric must be one of"),
    "share": (["fit", "{d}", "-t", "progression", "--test", "2"], 2, "--test"),
    "time": (["fit", "{d}", "-t", "progression", "--time", "-1"], 2, "--time"),
    "memory": (["fit", "{d}", "-t", "progression", "--memory", "much"], 2, "--memory"),
    "unknown metric": (["fit", "none.csv", "-t", "y", "--metric", "foo"], 2, "--metric must be one of r2"),
    "metric of another task": (["fit", "none.csv", "-t", "y", "--metric", "auc", "--task", "regression"], 2, "for regression"),
    "share before reading": (["fit", "none.csv", "-t", "y", "--test", "1.5"], 2, "--test"),
    "delimiter": (["fit", "{d}", "-t", "y", "--delimiter", "::"], 2, "--delimiter must be one character"),
    "decimal": (["fit", "{d}", "-t", "y", "--decimal", "x"], 2, "--decimal"),
    "encoding": (["predict", "{folder}/d.mercer", "{d}", "-o", "-", "--encoding", "utf-9"], 2, "--encoding"),
    "weight of text": (["fit", "{words}", "-t", "y", "--weight", "w"], 1, 'the weight "w" holds no numbers'),
    "time of text": (["fit", "{words}", "-t", "y", "--time-column", "w"], 1, 'the time column "w"'),
    "test without target": (["fit", "{words}", "-t", "y", "--test", "{other}"], 1, 'other.csv has no column "y"'),
    "folder for a model": (["predict", "{folder}", "{d}", "-o", "-"], 2, "is a folder; give the name of a file"),
    "no such model": (["predict", "none.mercer", "{d}", "-o", "-"], 2, "none.mercer does not exist"),
    "no match": (["fit", "none*.csv", "-t", "y"], 2, "no file matches"),
    "no such pipe": (["fit", "/dev/fd/99", "-t", "y"], 2, "/dev/fd/99 does not exist"),
    "misspelt id": (["fit", "{d}", "-t", "progression", "--id", "ages"], 2, 'did you mean "age"'),
    "misspelt weight": (["fit", "{d}", "-t", "progression", "--weight", "ages"], 2, 'did you mean "age"'),
    "misspelt group": (["fit", "{d}", "-t", "progression", "--group", "ages"], 2, 'did you mean "age"'),
    "misspelt time": (["fit", "{d}", "-t", "progression", "--time-column", "ages"], 2, 'did you mean "age"'),
    "id and target": (["fit", "{d}", "-t", "progression", "--id", "progression"], 2, "the target cannot have another role"),
    "two roles": (["fit", "{d}", "-t", "progression", "--id", "age", "--group", "age"], 2, "more than one role"),
    "target left out": (["fit", "{d}", "-t", "progression", "--exclude", "progression"], 2, "leave it in"),
    "regression of words": (["fit", "{words}", "-t", "w", "--task", "regression"], 2, "which a regression cannot predict"),
    "test is the data": (["fit", "{d}", "-t", "progression", "--test", "{d}"], 2, "is training data as well"),
    "no such test": (["fit", "{d}", "-t", "progression", "--test", "none.csv"], 2, "none.csv does not exist"),
    "time of letters": (["fit", "{d}", "-t", "progression", "--time", "soon"], 2, "--time"),
    "seed": (["fit", "{d}", "-t", "progression", "--seed", "-1"], 2, "--seed"),
    "memory of nothing": (["fit", "{d}", "-t", "progression", "--memory", "0"], 2, "--memory"),
    "one sign for two": (["fit", "{d}", "-t", "y", "--delimiter", "comma", "--decimal", ","], 2, "cannot be both"),
    "unknown flag": (["fit", "{d}", "-t", "y", "--quick"], 2, "--quick"),
    "standard input twice": (["fit", "-", "-t", "y", "--test", "-"], 2, "more than once"),
    "device": (["fit", "{d}", "-t", "progression", "--report", os.devnull, "--overwrite"], 2, "not a plain file"),
    "far name": (["fit", "{other}", "-t", "y"], 2, 'the names are "a", "b"'),
    "one name for all": (["fit", "{spaced}", "-t", "y"], 2, "--delimiter"),
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
    (tmp_path / "words.csv").write_text("w,x,y\n" + "".join(f"{'red' if i % 2 else 'blue'},{i * i % 19},{i % 7}.5\n" for i in range(60)))
    (tmp_path / "spaced.csv").write_text("a b y\n1 2 3\n2 2 4\n")
    names = {"d": folder / "d.csv", "folder": folder, "new": tmp_path / "new"}
    names |= {name: tmp_path / f"{name}.csv" for name in ("other", "words", "spaced")}
    found = call(*(w.format(**names) for w in words))
    assert found.exit_code == status, found.output
    assert text in found.stderr
    assert "Traceback" not in found.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.csv", "spaced.csv", "words.csv"]


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
    assert "p.csv: the disk is full" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_trouble_with_a_draft_is_told_of_the_file_asked_for(tmp_path):
    for trouble in (OSError(28, "No space left on device"), OSError(28, "No space left on device", ".m.mercer.12.part")):
        with pytest.raises(OSError, match="No space") as told, naming(tmp_path / "m.mercer"):
            raise trouble
        assert sentence(told.value) == f"{tmp_path / 'm.mercer'}: the disk is full."


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
    asked = FitOptions(("folder/my houses.csv.gz",), "y")
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


def test_ctrl_c_while_the_command_line_is_imported(tmp_path):
    """A module that typer needs is made to send the signal in the middle of its import, and to swallow what comes of it."""
    code = "import os, signal, time\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(5)\nexcept BaseException:\n    pass\n"
    (tmp_path / "typer.py").write_text(code + "raise ImportError('cut short')")
    words = [sys.executable, "-c", "from mercer.cli import main; main()"]
    found = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}, timeout=60)
    assert (found.returncode, found.stderr) == (1, "mercer: interrupted; nothing was left half-written.\n")


def test_an_import_leaves_signals_as_they_were():
    before = signal.getsignal(signal.SIGINT)
    with sentence_for_ctrl_c():
        during = signal.getsignal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    assert (during is early.stop) == (before is signal.default_int_handler)


def test_help_imports_nothing_heavy():
    code = "import sys; from mercer.cli import app; print(sorted({'numpy', 'sklearn', 'numba', 'pyarrow', 'scipy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_lists_the_commands_that_work():
    text = call("--help").stdout
    assert all(word in text for word in ("fit", "predict", "demo", "Exit status"))
    assert "gallery" not in text
    assert call("--version").stdout.startswith("mercer ")


def test_what_is_read_is_never_replaced(folder, tmp_path):
    data, test, link = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "link.csv"
    for path in (data, test):
        path.write_bytes((folder / "d.csv").read_bytes())
    link.hardlink_to(data)
    fit = ["fit", data, "-t", "progression", "--time", "0.01", "--overwrite"]
    calls = [
        [*fit, "--out", data], [*fit, "--report", link], [*fit, "--test", test, "--out", test],
        ["fit", tmp_path / "*.csv", *fit[2:], "--out", test], ["predict", folder / "d.mercer", data, "-o", link, "--overwrite"],
    ]  # fmt: skip
    for words in calls:
        found = call(*words)
        assert found.exit_code == 2
        assert "read by this command" in found.stderr
    assert data.read_bytes() == test.read_bytes() == (folder / "d.csv").read_bytes()
    model = tmp_path / "m.csv"
    model.write_bytes((folder / "d.mercer").read_bytes())
    assert call("predict", model, data, "-o", model, "--overwrite").exit_code == 2
    assert model.read_bytes() == (folder / "d.mercer").read_bytes()


def test_flags_say_how_csv_files_are_written(folder, tmp_path):
    odd = tmp_path / "s.csv"
    odd.write_bytes((folder / "d.csv").read_bytes().replace(b",", b"^"))
    flags = ["--delimiter", "^", "--decimal", ".", "--header", "--encoding", "utf-8"]
    found = call("fit", odd, "-t", "progression", "--time", "0.01", "--out", tmp_path / "m.mercer", "--json", *flags)
    assert found.exit_code == 0, found.output
    assert "--delimiter '^' --decimal . --encoding utf-8 --header" in json.loads(found.stdout)["command"]
    assert call("predict", tmp_path / "m.mercer", odd, "-o", "-", *flags).stdout.count("\n") == 443
    assert call("predict", tmp_path / "m.mercer", odd, "-o", "-").exit_code == 1
    bare = call("fit", folder / "d.csv", "-t", "progression", "--no-header", "--out", tmp_path / "n.mercer")
    assert "column_1" in bare.stderr


def test_outputs_that_cannot_be_written_are_told_before_the_work(monkeypatch, tmp_path):
    def refused(path, *args, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "open", refused)
    with pytest.raises(UsageError, match=r"m\.mercer cannot be written: permission denied; give a name in another folder"):
        check_free(tmp_path / "m.mercer", overwrite=True)
    monkeypatch.undo()
    check_free(tmp_path / "m.mercer", overwrite=True)
    assert not list(tmp_path.iterdir())


def test_a_header_without_rows_has_no_predictions(folder, tmp_path):
    (tmp_path / "h.csv").write_text((folder / "d.csv").read_text().splitlines()[0] + "\n")
    found = call("predict", folder / "d.mercer", tmp_path / "h.csv", "-o", "-")
    assert found.exit_code == 0, found.output
    assert found.stdout.replace('"', "").splitlines() == ["prediction,lower,upper,unusual"]
    found = call("predict", folder / "d.mercer", tmp_path / "h.csv", "-o", tmp_path / "p.parquet")
    assert "0 predictions" in found.stdout
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").num_rows == 0


def test_a_column_that_cannot_be_read_stops_predict(folder, tmp_path):
    lines = (folder / "d.csv").read_text().splitlines()
    at = lines[0].replace('"', "").split(",").index("bmi")
    rows = [line.split(",") for line in lines[1:]]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], *(",".join([*r[:at], f"w{i}", *r[at + 1 :]]) for i, r in enumerate(rows))]))
    for out in ("-", tmp_path / "p.csv"):
        found = call("predict", folder / "d.mercer", tmp_path / "t.csv", "-o", out)
        assert found.exit_code == 1
        assert 'no value of "bmi" reads as a number, which it was in training: "w0"' in found.stderr
        assert not found.stdout
    assert not (tmp_path / "p.csv").exists()


def test_classes_and_line_ends_in_names(tmp_path):
    """Whole numbers come back as such; a name of two lines breaks none."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 2))
    rows = "".join(f"{a:.4f},{b:.4f},{7 if a > 0 else 3}\n" for a, b in x)
    (tmp_path / "t.csv").write_text('"two\nlines",b,y\n' + rows)
    found = call("fit", tmp_path / "t.csv", "-t", "y", "--time", "0.01", "--out", tmp_path / "m.mercer")
    assert found.exit_code == 0, found.output
    assert "two lines (" in found.stdout
    assert call("predict", tmp_path / "m.mercer", tmp_path / "t.csv", "-o", tmp_path / "p.parquet").exit_code == 0
    said = pyarrow.parquet.read_table(tmp_path / "p.parquet")["prediction"]
    assert said.type == pyarrow.int64()
    assert np.mean(np.array(said) == np.where(x[:, 0] > 0, 7, 3)) > 0.9


def test_a_reader_that_has_seen_enough_is_no_failure(folder, tmp_path):
    head, *rows = (folder / "d.csv").read_text().splitlines()
    (tmp_path / "big.csv").write_text("\n".join([head, *rows * 60]))
    words = [sys.executable, "-m", "mercer", "predict", str(folder / "d.mercer"), str(tmp_path / "big.csv"), "-o", "-"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path)
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=60) == 0
    assert err == b""


def test_a_signal_in_an_import_is_an_interruption(capsys):
    """An import that is cut short may raise anything."""

    def cut_short():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1)
        except KeyboardInterrupt:
            raise ImportError("cut short") from None

    with pytest.raises(SystemExit) as stopped, guarded():
        cut_short()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "mercer: interrupted; nothing was left half-written.\n"


def test_ctrl_c_before_a_command_begins(monkeypatch, capsys):
    def cut_short(**options):
        raise KeyboardInterrupt

    entry = sys.modules["mercer.cli.app"]  # the module; mercer.cli.app is the application in it
    monkeypatch.setattr(entry, "app", cut_short)
    monkeypatch.setattr(entry, "finish", sys.exit)
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == "mercer: interrupted; nothing was left half-written.\n"


def test_tables_come_through_pipes(folder, tmp_path):
    """Fitted and predicted from standard input, a shell's pipe and a named one: the same as from the file."""
    data = (folder / "d.csv").read_bytes()
    flags = ["-t", "progression", "--time", "0.01", "--out", tmp_path / "m.mercer", "--json"]
    result = json.loads(call("fit", "-", *flags, input=data).stdout)
    assert result["rows_train"] + result["rows_holdout"] == 442
    assert "mercer fit - " in result["command"]
    known = call("predict", folder / "d.mercer", folder / "d.csv", "-o", "-").stdout
    assert call("predict", folder / "d.mercer", "-", "-o", "-", input=data).stdout == known
    fifo = tmp_path / "pipe.csv"
    os.mkfifo(fifo)
    words = [sys.executable, "-m", "mercer", "predict", str(folder / "d.mercer"), str(fifo), "-o", "-"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    fifo.write_bytes(data)
    assert process.communicate(timeout=60)[0] == known


def test_a_pipe_gives_the_model_a_plain_name():
    assert str(FitOptions(("-",), "y").model_path) == str(FitOptions(("/dev/fd/63",), "y").model_path) == "model.mercer"


def test_a_file_that_changes_while_it_is_fitted_is_refused(folder, tmp_path, monkeypatch):
    from mercer.automl import data

    path = tmp_path / "t.csv"
    path.write_bytes((folder / "d.csv").read_bytes())
    true = data.Columns.fit

    def meddled(self, source, *more):
        found = true(self, source, *more)
        with path.open("ab") as file:
            file.write(path.read_bytes().splitlines()[-1] + b"\n")
        return found

    monkeypatch.setattr(data.Columns, "fit", meddled)
    found = call("fit", path, "-t", "progression", "--time", "0.01", "--out", tmp_path / "m.mercer")
    assert found.exit_code == 1
    assert found.stderr == f"mercer: {path} has changed since it was opened; give a file that nothing writes to while it is read.\n"


def test_ctrl_c_while_the_flags_are_read():
    """typer would end with 130 and say nothing."""
    meddled = "typer.core.TyperGroup.invoke = lambda self, ctx: (os.kill(os.getpid(), signal.SIGINT), time.sleep(5))"
    code = f"import os, signal, sys, time, typer.core\n{meddled}\nsys.argv = ['mercer', 'demo']\nfrom mercer.cli import main\nmain()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stderr) == (1, "mercer: interrupted; nothing was left half-written.\n")


def test_the_process_ends_before_threads_can_abort_it(tmp_path):
    """A thread that is still at work in C when Python ends took the process down with it."""
    late = "import atexit, sys\nfrom mercer.cli import main\natexit.register(print, 'the end of Python')"
    code = f"{late}\nsys.argv = ['mercer', *sys.argv[1:]]\nmain()"
    (tmp_path / "h.csv").write_text("a,b,y\n")
    words = [sys.executable, "-c", code, "fit", "h.csv", "-t", "y"]
    found = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    assert "has columns but no rows" in found.stderr


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="limits of addresses as Linux has them")
@pytest.mark.parametrize("megabytes", [500, 1200])
def test_few_addresses_end_in_a_sentence_or_in_success(folder, tmp_path, megabytes):
    """1,200 MB span for ever, or aborted."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({megabytes}_000_000, {megabytes}_000_000))"
    code = f"{limit}\nimport sys\nsys.argv = ['mercer', *sys.argv[1:]]\nfrom mercer.cli import main\nmain()"
    words = [sys.executable, "-c", code, "predict", str(folder / "d.mercer"), str(folder / "d.csv"), "-o", str(tmp_path / "p.csv")]
    found = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if megabytes < 900:
        assert (found.returncode, found.stderr.count("\n")) == (1, 1)
        assert "addresses are limited to 500 MB" in found.stderr
    else:
        assert found.returncode == 0, found.stderr
        assert (tmp_path / "p.csv").exists()


ODD = ["007", " x ", "", "NA", "=1+1", "+2", "-3", "@SUM(A1)", "\tq", "1.234,5", 'a "b", c', "a;=2", "12345678901234567890", "é"]


@pytest.fixture(scope="module")
def identified(tmp_path_factory):
    """A model with an id, and the rows it is asked for."""
    place = tmp_path_factory.mktemp("ids")
    rng = np.random.default_rng(0)
    rows = [[f"r{i}", *map(float, x.round(4)), float((x[0] + x[1]).round(4))] for i, x in enumerate(rng.normal(size=(60, 2)))]
    pyarrow.csv.write_csv(pyarrow.table(dict(zip(["=id", "a", "b", "y"], zip(*rows, strict=True), strict=True))), place / "t.csv")
    found = call("fit", place / "t.csv", "-t", "y", "--id", "=id", "--time", "0.01", "--out", place / "m.mercer")
    assert found.exit_code == 0, found.output
    table = pyarrow.table({"=id": ODD, "a": rng.normal(size=len(ODD)), "b": rng.normal(size=len(ODD))})
    pyarrow.csv.write_csv(table, place / "n.csv")
    return place


def read_back(path):
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_ids_pass_through_as_they_are(identified, tmp_path):
    call("predict", identified / "m.mercer", identified / "n.csv", "-o", tmp_path / "p.csv")
    assert [row[0] for row in read_back(tmp_path / "p.csv")] == ["=id", *ODD]
    local = "=id;a;b\n" + "".join(f"{i}.{i:03d},5;{i},5;0,{i}\n" for i in range(1, 9))
    (tmp_path / "local.csv").write_text(local)
    call("predict", identified / "m.mercer", tmp_path / "local.csv", "-o", tmp_path / "q.csv")
    assert [row[0] for row in read_back(tmp_path / "q.csv")][1:] == [f"{i}.{i:03d},5" for i in range(1, 9)]


def test_large_whole_ids_of_json_keep_their_digits(identified, tmp_path):
    ids = [2**62 + 1, 5, 2**53 + 1, -7]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps({"=id": i, "a": 1, "b": 2}) + "\n" for i in ids))
    call("predict", identified / "m.mercer", tmp_path / "n.jsonl", "-o", tmp_path / "p.jsonl")
    assert [json.loads(line)["=id"] for line in (tmp_path / "p.jsonl").read_text().splitlines()] == ids
    (tmp_path / "n.jsonl").write_text('{"=id": 5, "a": 1, "b": 2}\n' * 30_000 + '{"=id": "x", "a": 1, "b": 2}\n')
    found = call("predict", identified / "m.mercer", tmp_path / "n.jsonl", "-o", tmp_path / "q.jsonl")
    assert found.exit_code == 1
    assert 'turns from whole numbers into "x"' in found.stderr


def test_spreadsheets_run_nothing_of_the_predictions(identified, tmp_path):
    found = call("predict", identified / "m.mercer", identified / "n.csv", "-o", tmp_path / "p.csv", "--spreadsheet-safe")
    assert found.exit_code == 0, found.output
    names, *rows = read_back(tmp_path / "p.csv")
    assert names[0] == "'=id"
    assert not [row[0] for row in rows if row[0].startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert [row[0].replace("'", "") for row in rows] == ODD
    assert [row[0] for row in rows if row[0].startswith("'")] == ["'=1+1", "'+2", "'-3", "'@SUM(A1)", "'\tq"]
    plain = call("predict", identified / "m.mercer", identified / "n.csv", "-o", tmp_path / "q.csv")
    assert plain.exit_code == 0
    assert [row[1:] for row in read_back(tmp_path / "q.csv")] == [names[1:], *(row[1:] for row in rows)]  # numbers as they are


# check
def test_check_says_what_a_model_holds_and_predicts_nothing(folder, monkeypatch):
    monkeypatch.setattr("mercer.automl.model.TableModel.outputs", None)
    found = call("check", folder / "d.mercer", "--report", folder / "d.html")
    assert found.exit_code == 0, found.output
    digest = hashlib.sha256((folder / "d.mercer").read_bytes()).hexdigest()
    for word in (digest, f"id        {digest[:16]}", "table model, sound", "automl.TableModel", "of this model"):
        assert word in found.stdout
    held = json.loads(call("check", folder / "d.mercer", "--json").stdout)
    assert held["sha256"] == digest
    assert held["classes"]["automl.TableModel"] == 1
    assert sum(a["bytes"] for a in held["arrays"]) < held["bytes"] == (folder / "d.mercer").stat().st_size


def test_check_of_what_is_no_sound_model_is_a_sentence(folder, tmp_path):
    data = bytearray((folder / "d.mercer").read_bytes())
    data[-1] ^= 1
    (tmp_path / "bad").write_bytes(data)
    bad, foreign = (tmp_path / "bad", 1, "is damaged"), (folder / "d.csv", 1, "was not written by Mercer")
    wrong = [bad, foreign, (tmp_path / "none", 2, "does not exist")]
    for path, status, says in wrong:
        found = call("check", path)
        assert found.exit_code == status
        assert says in found.stderr
    (tmp_path / "other.html").write_text("<p>0123456789abcdef")
    found = call("check", folder / "d.mercer", "--report", tmp_path / "other.html")
    assert found.exit_code == 1
    assert "is not the report of" in found.stderr


@pytest.mark.parametrize("number", [1, 2])
def test_a_full_disk_at_the_report_or_the_model_leaves_neither(folder, tmp_path, monkeypatch, number):
    real, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == number:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr("mercer.automl.fit._bytes", lambda model: 1)  # which writes a file, too
    monkeypatch.setattr(os, "fsync", full)
    found = call("fit", folder / "d.csv", "-t", "progression", "--time", "0.01", "--out", tmp_path / "m.mercer")
    assert found.exit_code == 1
    assert "the disk is full" in found.stderr
    assert os.listdir(tmp_path) == []
