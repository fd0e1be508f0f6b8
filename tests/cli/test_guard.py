"""Trouble is one sentence and an exit status, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from mercer.cli.guard import guarded, sentence
from tests.cli.calls import call

WRONG = {
    "no target": (["fit", "{d}"], 2, "--target"),
    "no such file": (["fit", "none.csv", "-t", "y"], 2, "none.csv"),
    "folder": (["fit", "{folder}", "-t", "y"], 2, "directory"),
    "misspelt target": (["fit", "{d}", "-t", "progresion"], 2, 'did you mean "progression"'),
    "misspelt column": (
        ["fit", "{d}", "-t", "progression", "--exclude", "bmj"],
        2,
        'did you mean "bmi"',
    ),
    "task": (["fit", "{d}", "-t", "progression", "--task", "ranking"], 2, "--task"),
    "metric": (["fit", "{d}", "-t", "progression", "--metric", "auc"], 2, "metric must be one of"),
    "share": (["fit", "{d}", "-t", "progression", "--test", "2"], 2, "--test"),
    "time": (["fit", "{d}", "-t", "progression", "--time", "-1"], 2, "--time"),
    "time with a unit": (
        ["fit", "{d}", "-t", "progression", "--time", "5s"],
        2,
        "mercer: --time must be a number of seconds > 0, such as 60, got 5s.",
    ),
    "memory": (["fit", "{d}", "-t", "progression", "--memory", "much"], 2, "--memory"),
    "unknown metric": (
        ["fit", "none.csv", "-t", "y", "--metric", "foo"],
        2,
        "--metric must be one of r2",
    ),
    "metric of another task": (
        ["fit", "none.csv", "-t", "y", "--metric", "auc", "--task", "regression"],
        2,
        "for regression",
    ),
    "share before reading": (["fit", "none.csv", "-t", "y", "--test", "1.5"], 2, "--test"),
    "delimiter": (
        ["fit", "{d}", "-t", "y", "--delimiter", "::"],
        2,
        "--delimiter must be one character",
    ),
    "decimal": (["fit", "{d}", "-t", "y", "--decimal", "x"], 2, "--decimal"),
    "encoding": (
        ["predict", "{folder}/d.mercer", "{d}", "-o", "-", "--encoding", "utf-9"],
        2,
        "--encoding",
    ),
    "weight of text": (
        ["fit", "{words}", "-t", "y", "--weight", "w"],
        1,
        'the weight "w" holds no numbers',
    ),
    "time of text": (["fit", "{words}", "-t", "y", "--time-column", "w"], 1, 'the time column "w"'),
    "test without target": (
        ["fit", "{words}", "-t", "y", "--test", "{other}"],
        1,
        'other.csv has no column "y"',
    ),
    "folder for a model": (
        ["predict", "{folder}", "{d}", "-o", "-"],
        2,
        "is a folder; give the name of a file",
    ),
    "no such model": (
        ["predict", "none.mercer", "{d}", "-o", "-"],
        2,
        "none.mercer does not exist",
    ),
    "no match": (["fit", "none*.csv", "-t", "y"], 2, "no file matches"),
    "no such pipe": (["fit", "/dev/fd/99", "-t", "y"], 2, "/dev/fd/99 does not exist"),
    "misspelt id": (["fit", "{d}", "-t", "progression", "--id", "ages"], 2, 'did you mean "age"'),
    "misspelt weight": (
        ["fit", "{d}", "-t", "progression", "--weight", "ages"],
        2,
        'did you mean "age"',
    ),
    "misspelt group": (
        ["fit", "{d}", "-t", "progression", "--group", "ages"],
        2,
        'did you mean "age"',
    ),
    "misspelt time": (
        ["fit", "{d}", "-t", "progression", "--time-column", "ages"],
        2,
        'did you mean "age"',
    ),
    "id and target": (
        ["fit", "{d}", "-t", "progression", "--id", "progression"],
        2,
        "the target cannot have another role",
    ),
    "two roles": (
        ["fit", "{d}", "-t", "progression", "--id", "age", "--group", "age"],
        2,
        "more than one role",
    ),
    "target left out": (
        ["fit", "{d}", "-t", "progression", "--exclude", "progression"],
        2,
        "leave it in",
    ),
    "regression of words": (
        ["fit", "{words}", "-t", "w", "--task", "regression"],
        2,
        "which a regression cannot predict",
    ),
    "test is the data": (
        ["fit", "{d}", "-t", "progression", "--test", "{d}"],
        2,
        "is training data as well",
    ),
    "no such test": (
        ["fit", "{d}", "-t", "progression", "--test", "none.csv"],
        2,
        "none.csv does not exist",
    ),
    "time of letters": (["fit", "{d}", "-t", "progression", "--time", "soon"], 2, "--time"),
    "seed": (["fit", "{d}", "-t", "progression", "--seed", "-1"], 2, "--seed"),
    "memory of nothing": (["fit", "{d}", "-t", "progression", "--memory", "0"], 2, "--memory"),
    "one sign for two": (
        ["fit", "{d}", "-t", "y", "--delimiter", "comma", "--decimal", ","],
        2,
        "cannot be both",
    ),
    "unknown flag": (["fit", "{d}", "-t", "y", "--quick"], 2, "--quick"),
    "standard input twice": (["fit", "-", "-t", "y", "--test", "-"], 2, "more than once"),
    "device": (
        ["fit", "{d}", "-t", "progression", "--report", os.devnull, "--overwrite"],
        2,
        "not a plain file",
    ),
    "far name": (["fit", "{other}", "-t", "y"], 2, 'the names are "a", "b"'),
    "one name for all": (["fit", "{spaced}", "-t", "y"], 2, "--delimiter"),
    "no folder for the model": (
        ["fit", "{d}", "-t", "progression", "--out", "no/where.mercer"],
        2,
        "not a folder",
    ),
    "same name twice": (
        ["fit", "{d}", "-t", "progression", "--out", "x", "--report", "x"],
        2,
        "two names",
    ),
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
    (tmp_path / "words.csv").write_text(
        "w,x,y\n"
        + "".join(f"{'red' if i % 2 else 'blue'},{i * i % 19},{i % 7}.5\n" for i in range(60))
    )
    (tmp_path / "spaced.csv").write_text("a b y\n1 2 3\n2 2 4\n")
    names = {"d": folder / "d.csv", "folder": folder, "new": tmp_path / "new"}
    names |= {name: tmp_path / f"{name}.csv" for name in ("other", "words", "spaced")}
    found = call(*(w.format(**names) for w in words))
    assert found.exit_code == status, found.output
    assert text in found.stderr
    assert "Traceback" not in found.output
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.csv", "spaced.csv", "words.csv"]


UNREADABLE = {
    "empty": ("", "empty"),
    "header only": ("a,b\n", "no rows"),
    "ragged": ("a,b\n1,2\n3,4,5\n" + "1,2\n" * 50, "line 3"),
}


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


def test_ctrl_c_is_said_in_a_word(capsys):
    with pytest.raises(SystemExit) as stopped, guarded():
        raise KeyboardInterrupt
    assert stopped.value.code == 1
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="alarms as Unix has them")
def test_ctrl_c_that_a_library_swallows_comes_again(capsys, monkeypatch):
    """An import that tries its luck caught it, and the fit went on to write its model."""
    monkeypatch.setattr("mercer.cli.guard.SWALLOWED", 0.05)
    before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)]

    def swallows():
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(20)
        time.sleep(20)

    with pytest.raises(SystemExit) as stopped, guarded():
        swallows()
    assert stopped.value.code == 1
    assert "interrupted" in capsys.readouterr().err
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)] == before


def test_sentences_of_errors():
    assert sentence(MemoryError()).startswith("not enough memory")
    assert sentence(ValueError("two\n lines")) == "two lines."
    assert sentence(PermissionError(13, "Permission denied", "a")) == "a: permission denied."


def test_a_stopped_process_says_so_and_leaves_nothing(folder, tmp_path):
    """A real process, a real signal, in the middle of the work; signals are heard there even where
    a shell in the background has them ignored."""
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    words = [
        sys.executable,
        "-c",
        f"import runpy, signal; {heard}; runpy.run_module('mercer', run_name='__main__')",
        "fit",
        str(folder / "d.csv"),
        "-t",
        "progression",
        "--out",
        str(tmp_path / "m.mercer"),
    ]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (
        1,
        -signal.SIGINT,
    )  # the latter where Python itself had not started yet
    assert "Traceback" not in err or process.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


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
    words = [
        sys.executable,
        "-c",
        code,
        "predict",
        str(folder / "d.mercer"),
        str(folder / "d.csv"),
        "-o",
        str(tmp_path / "p.csv"),
    ]
    found = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if megabytes < 900:
        assert (found.returncode, found.stderr.count("\n")) == (1, 1)
        assert "addresses are limited to 500 MB" in found.stderr
    else:
        assert found.returncode == 0, found.stderr
        assert (tmp_path / "p.csv").exists()
