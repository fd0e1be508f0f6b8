"""What a terminal shows of the result: the scores in columns, the verdict, and not too many
warnings."""

from dataclasses import replace

import pytest

from mercer import datasets
from mercer.automl import fit_table
from mercer.automl.result import Contender, FitResult
from mercer.cli.summary import summary


@pytest.fixture
def result():
    rows = (
        Contender("Linear", "linear", "", 0.6, 0.01, 0.61, 0.58, 0.64, 0.5, False, ""),
        Contender(
            "Fourier features",
            "fourier",
            "",
            0.8,
            0.01,
            None,
            None,
            None,
            2.0,
            True,
            "fitted on 10 of 20 rows",
        ),
    )
    texts = {"version": "0", "command": "", "created": "", "target": "price", "task": "regression"}
    texts |= {
        "task_reason": "regression, as asked for.",
        "metric": "r2",
        "metric_note": "one is perfect",
    }
    more = {"holdout_rule": "a random fifth", "verdict": "It is good.", "plan": ""}
    counts = {
        "seed": 0,
        "rows_train": 1600,
        "rows_holdout": 400,
        "rows_dropped": 3,
        "model_bytes": 1,
        "memory_peak_bytes": None,
    }
    empty = dict.fromkeys(
        ("classes", "columns", "warnings", "worst", "points", "confusion", "calibration"), ()
    )
    times = {"latency_row_ms": 1.0, "latency_1000_ms": 2.0, "seconds": 3.0}
    other = {
        "higher_is_better": True,
        "contenders": rows,
        "lift_gain": None,
        "importance": (("size", 0.3, 0.01), ("age", -0.1, 0.01)),
    }
    interval = {
        "coverage_asked": 0.9,
        "coverage_measured": 0.91,
        "median_width": 12.5,
        "guarantee": "",
    }
    return FitResult(**texts, **more, **counts, **empty, **times, **other, interval=interval)


def test_a_formula_stands_below_the_verdict(result):
    assert "It is good.\n    y = 3 a*b" in summary(replace(result, formula="y = 3 a*b"))
    assert "\n    y = " not in summary(result)


def test_the_scores_stand_in_columns(result):
    text = summary(result)
    assert "price: regression, as asked for." in text
    assert "1,600 to learn from, 400 held out" in text
    assert "3 without a target" in text
    assert "  Linear" in text
    assert "* Fourier features" in text
    assert "0.580 to 0.640" in text
    assert "fitted on 10 of 20 rows" in text
    assert "It is good." in text
    assert "covered 91.0 %" in text
    assert "size (0.300)" in text
    assert "age" not in text
    lines = [line for line in text.splitlines() if "Linear" in line or "* Fourier" in line]
    assert len({len(line) for line in lines}) == 1


def test_of_many_warnings_the_first_are_shown(result):
    text = summary(
        replace(result, warnings=tuple(f"warning {i}" for i in range(20)), interval=None)
    )
    assert "warning 7" in text
    assert "warning 8" not in text
    assert "12 more" in text
    assert "covered" not in text


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = datasets.diabetes().write_csv(tmp_path_factory.mktemp("demo") / "d.csv")
    return fit_table(path, "progression", time=1e-3)


def test_the_summary_names_a_metric_once_and_writes_numbers_out(fitted):
    wide = replace(fitted.result, interval={**fitted.result.interval, "median_width": 160_512.0})
    text = summary(wide)
    assert "metric    R² (1 is perfect" in text
    assert "160,500" in text
    assert "same seed may give another model" in text


def test_a_learnt_metric_is_shown(result):
    assert "learnt metric" not in summary(result)
    shown = summary(replace(result, learnt=(("size", 0.7), ("age", 0.3), ("none", 0.0))))
    assert "learnt metric: size (70%), age (30%)." in shown
