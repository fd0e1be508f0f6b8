"""The benchmark harness: fair order, no ratio without equal quality, results on disk."""

import json
from functools import partial

import numpy as np
import pytest

from bench import data
from bench.__main__ import main, names, run
from bench.harness import Case, Measure, Quality, Row
from bench.memory import peak_memory
from bench.report import line, table

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
    return clock


def case(name="c", ours=lambda: 1, peer=lambda: 2, check=lambda ours, peer: None, **options):
    return Case(name, ours, peer, check, **options)


def touch(n_bytes):
    return np.ones(n_bytes, dtype=np.uint8).sum()


def test_warms_both_then_interleaves_with_alternating_first_place():
    calls = []
    case(ours=lambda: calls.append("ours"), peer=lambda: calls.append("peer"), repeats=3).run()
    assert calls[:2] == ["ours", "peer"]
    assert calls[2:] == ["ours", "peer", "peer", "ours", "ours", "peer"]


def test_the_first_call_is_not_timed_and_the_best_counts(clock):
    naps = iter([1, 5, 3, 4])
    assert case(ours=lambda: clock.sleep(next(naps)), repeats=3).run().ours == 3


def test_warmup_replaces_the_first_calls():
    calls = []
    case(ours=lambda: calls.append("ours"), peer=None, repeats=1, warmup=lambda: calls.append("warm")).run()
    assert calls == ["warm", "ours"]


def test_setup_runs_before_every_call_outside_the_clock(clock):
    calls = []
    row = case(setup=lambda: (calls.append(1), clock.sleep(9)), ours=lambda: clock.sleep(1), repeats=2).run()
    assert len(calls) == 6
    assert row.ours == 1


def test_check_sees_the_results_of_both_sides():
    seen = []
    case(ours=lambda: "a", peer=lambda: "b", check=lambda ours, peer: seen.append((ours, peer))).run()
    assert seen == [("a", "b")]


@pytest.mark.parametrize(("target", "met"), [(3.0, True), (3.1, False), (None, None)])
def test_ratio_is_peer_over_ours(clock, target, met):
    row = case(ours=lambda: clock.sleep(2), peer=lambda: clock.sleep(6), target=target).run()
    assert (row.ratio, row.met) == (3, met)


@pytest.mark.parametrize("verdict", ["results differ", Quality("accuracy", 0.5, 0.9, 0.01), Quality("r2", np.nan, 0.9)])
def test_no_ratio_when_the_check_fails(verdict):
    row = case(check=lambda ours, peer: verdict).run()
    reason = verdict if isinstance(verdict, str) else verdict.failure
    assert (row.ratio, row.met, row.failure) == (None, None, reason)
    assert reason in line(row)
    assert "refused" in table([row])
    assert "x," not in line(row)


def test_a_check_that_returns_something_else_is_an_error():
    with pytest.raises(TypeError, match="returned True"):
        case(check=lambda ours, peer: True).run()


def test_quality_counts_in_its_own_direction():
    assert Quality("accuracy", 0.9, 0.905, slack=0.01).failure is None
    assert Quality("error", 0.2, 0.1, higher_is_better=False).failure
    assert Quality("error", 0.1, 0.2, higher_is_better=False).failure is None


@pytest.mark.parametrize(("lower_is_better", "ratio"), [(True, 4.0), (False, 0.25)])
def test_measure_ratio_is_above_one_where_ours_is_better(lower_is_better, ratio):
    assert Measure("error", 1.0, 4.0, lower_is_better=lower_is_better).run().ratio == ratio


def test_measure_of_zero_is_infinitely_better_or_equal():
    assert Measure("error", 0.0, 1.0).run().ratio == float("inf")
    assert Measure("error", 0.0, 0.0).run().ratio == 1.0


def test_without_a_peer_there_is_no_ratio():
    row = case(peer=None).run()
    assert row.ratio is None
    assert row.failure is None
    assert "ratio -" in line(row)


def test_repeats_must_be_positive():
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        case(repeats=0)


def test_table_has_a_column_for_each_heading():
    text = table([Row("a", "s", 1.0, 3.0, 2.0), Row("b", "MB", 4.0, 2.0, 2.0)])
    assert [text.split("\n")[i].split()[-1] for i in (1, 2)] == ["yes", "no"]
    assert "3.00x" in text


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


def test_peak_memory_is_that_of_the_call_alone():
    ballast = touch(300 * MB)  # a peak of this process must not count
    assert ballast
    small, large = (peak_memory(partial(touch, n * MB)) / MB for n in (1, 120))
    assert small < 30
    assert 115 < large < 160


def test_peak_memory_leaves_the_warmup_out():
    assert peak_memory(partial(touch, 10 * MB), warmup=partial(touch, 200 * MB)) < 40 * MB


def test_missing_data_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "absent"))
    with pytest.raises(data.DataMissing, match="set MERCER_DATA"):
        data.path("libsvm/a9a.xz")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    with pytest.raises(data.DataMissing, match=r"has no libsvm/a9a\.xz"):
        data.libsvm("a9a.xz")


def test_missing_data_fails_the_benchmark_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MERCER_DATA", str(tmp_path / "absent"))
    rows = run("toy", lambda: [case(name=str(data.cod_rna()))], tmp_path)
    assert "set MERCER_DATA" in rows[0].failure
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("suffix", "module"), [(".xz", "lzma"), (".bz2", "bz2")])
def test_libsvm_is_float32_with_int32_indices(suffix, module, tmp_path, monkeypatch):
    compress = pytest.importorskip(module).compress
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / f"toy{suffix}").write_bytes(compress(b"1 1:0.5 3:2\n-1 2:1\n"))
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    X, y = data.libsvm(f"toy{suffix}", n_features=4)
    assert (X.dtype, X.indices.dtype, X.indptr.dtype) == (np.float32, np.int32, np.int32)
    assert np.array_equal(X.toarray(), [[0.5, 0, 2, 0], [0, 1, 0, 0]])
    assert np.array_equal(data.libsvm(f"toy{suffix}", n_features=4, dense=True)[0], X.toarray())
    assert list(y) == [1, -1]


def test_uci_cv_splits_by_the_mask(tmp_path, monkeypatch):
    folder = tmp_path / "uci_cv" / "toy"
    folder.mkdir(parents=True)
    np.savetxt(folder / "data.csv.gz", np.arange(12).reshape(4, 3), delimiter=",")
    np.savetxt(folder / "test_mask.csv.gz", [[0, 1], [1, 0], [0, 0], [0, 0]], delimiter=",")
    monkeypatch.setenv("MERCER_DATA", str(tmp_path))
    split = data.uci_cv("toy", split=1)
    assert np.array_equal(split.X_test, [[0, 1]])
    assert np.array_equal(split.y, [5, 8, 11])


def test_standardized_uses_the_training_rows_only():
    split = data.Split(np.array([[0.0, 7], [2, 7]]), np.array([1.0, 3]), np.array([[5.0, 8]]), np.array([4.0]))
    scaled = split.standardized(target=True)
    assert np.array_equal(scaled.X, [[-1, 0], [1, 0]])
    assert np.array_equal(scaled.X_test, [[4, 1]])
    assert np.array_equal(scaled.y_test, [2])
    assert np.array_equal(split.standardized().y, split.y)
