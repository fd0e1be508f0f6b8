"""The command of the benchmarks: rows printed and on disk, and an exit status."""

import json
from functools import partial
from types import SimpleNamespace

import pytest

from bench import data
from bench.__main__ import main, names, run
from bench.harness import Case, Measure

MB = 2**20


class Clock:
    """Time that passes only when someone sleeps."""

    now = 0.0

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("bench.harness.perf_counter", lambda: clock.now)
    monkeypatch.setattr("bench.harness.gc", SimpleNamespace(collect=lambda: 0))
    return clock


def case(name="c", ours=lambda: 1, peer=lambda: 2, check=lambda ours, peer: None, **options):
    return Case(name, ours, peer, check, **options)


def test_run_prints_each_row_and_writes_json(tmp_path, capsys):
    run("toy", lambda: [case(), Measure("size", 1.0, 2.0, unit="MB")], tmp_path)
    out = capsys.readouterr().out
    written = json.loads((tmp_path / "toy.json").read_text())
    assert out.index("c: ours") < out.index("size: ours") < out.index("case")
    assert [row["name"] for row in written["rows"]] == ["c", "size"]
    assert written["rows"][1]["ratio"] == 2.0
    assert [file.name for file in tmp_path.iterdir()] == ["toy.json"]


def test_a_case_that_raises_fails_alone(tmp_path, capsys):
    rows = run("toy", lambda: [case(ours=lambda: 1 / 0), case(name="d")], tmp_path)
    assert [row.failure for row in rows] == ["ZeroDivisionError: division by zero", None]
    assert "Traceback" in capsys.readouterr().err


def test_exit_status_tells_of_a_failed_check(tmp_path, monkeypatch, capsys):
    cases = {"good": [case(target=1e9)], "bad": [case(check=lambda ours, peer: "differ")]}
    monkeypatch.setattr("bench.__main__.names", lambda: list(cases))
    monkeypatch.setattr("bench.__main__._cases", lambda name: lambda: cases[name])
    monkeypatch.setattr("bench.__main__.run", partial(run, folder=tmp_path))
    assert main(["good"]) == 0  # a missed target is no failure
    assert main(["bad"]) == 1
    assert main([]) == 1
    assert "== good" in capsys.readouterr().out


def test_unknown_name_is_bad_usage_and_lists_the_names(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["nothing-of-this-name"])
    assert stop.value.code == 2
    assert "no benchmark nothing-of-this-name; there are:" in capsys.readouterr().err


def test_listing_leaves_the_harness_out(capsys):
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == names()
    assert not {"harness", "data", "memory", "report", "__main__"} & set(names())


def test_missing_data_fails_the_benchmark_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "absent"))
    rows = run("toy", lambda: [case(name=str(data.cod_rna()))], tmp_path)
    assert "set MERCER_DATA" in rows[0].failure
    assert capsys.readouterr().err == ""
