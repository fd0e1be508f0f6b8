"""The product in Python: frames of the caller's library, scores, intervals, reports, notebooks, and
names that are public."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.metrics import mean_absolute_error
from typer.testing import CliRunner

import mercer
from mercer.automl import fit_table
from mercer.automl.frames import like
from mercer.automl.intervals import KEPT_RESIDUALS, margin
from mercer.automl.metrics import METRICS, number
from mercer.automl.verdict import sentence
from mercer.cli import app
from mercer.tables import DataError

AT_ONCE = 1e-3
ROOT = Path(__file__).parents[2]


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return pd.DataFrame(
        {
            "key": [f"k{i}" for i in range(n)],
            "x": x,
            "z": rng.normal(size=n),
            "y": x + 0.5 * rng.normal(size=n),
        }
    )


@pytest.fixture(scope="module")
def model():
    return fit_table(table(400), "y", id="key", time=AT_ONCE, command="mercer fit <b>")


def test_predictions_are_a_frame_of_the_callers_library_with_its_index(model):
    new = table(30, 1).set_index(pd.Index(range(100, 130), name="n"))
    found = model.predict(new)
    assert isinstance(found, pd.DataFrame)
    assert found.columns.tolist() == ["key", "prediction", "lower", "upper", "unusual"]
    assert found.index.equals(new.index)
    assert found["key"].tolist() == new["key"].tolist()
    assert isinstance(model.predict(pa.Table.from_pandas(new)), pa.Table)
    assert model.predict_interval(new).columns.tolist() == ["lower", "upper"]
    polars = pytest.importorskip("polars")
    assert isinstance(model.predict(polars.from_pandas(new)), polars.DataFrame)


def test_a_path_gives_a_pyarrow_table(model, tmp_path):
    table(30, 1).to_csv(tmp_path / "new.csv", index=False)
    assert isinstance(model.predict(tmp_path / "new.csv"), pa.Table)
    assert isinstance(like(pa.table({"a": [1]}), str(tmp_path / "new.csv")), pa.Table)


def test_intervals_of_any_coverage_cover_it_and_are_nested(model):
    new = table(3000, 2)
    widths = []
    for coverage in (0.5, 0.8, 0.9, 0.95):
        ends = model.predict_interval(new, coverage=coverage)
        assert np.mean((ends["lower"] <= new["y"]) & (new["y"] <= ends["upper"])) == pytest.approx(
            coverage, abs=0.13
        )
        widths.append((ends["upper"] - ends["lower"]).median())
    assert widths == sorted(widths)
    assert model.predict_interval(new[:3]).equals(model.predict(new[:3])[["lower", "upper"]])
    assert (
        model.predict_interval(new[:3], 0.999)["lower"].isna().all()
    )  # 80 residuals say nothing of that
    for bad in (0, 1, 1.5, float("nan"), "0.9"):
        with pytest.raises(ValueError, match=r"^coverage must be a share between 0 and 1, got"):
            model.predict_interval(new, bad)


@pytest.mark.parametrize("n", [5, 100, KEPT_RESIDUALS, KEPT_RESIDUALS + 1, 50_000])
def test_residuals_that_are_kept_tell_other_coverages_never_too_narrow(n):
    r = np.random.default_rng(0).exponential(size=n)
    found = margin(r, np.zeros(n))
    assert len(found.scores) <= KEPT_RESIDUALS
    for coverage in (0.1, 0.5, 0.9, 0.99, 0.999, 0.99999):
        exact = margin(r, np.zeros(n), coverage=coverage).width
        assert exact <= found.at(coverage).width <= 1.02 * exact + 1e-3


def test_score_is_the_metric_of_what_is_predicted(model):
    new = table(200, 3)
    f = model.predict(new)["prediction"]
    assert model.score(new) == pytest.approx(
        1 - np.sum((new["y"] - f) ** 2) / np.sum((new["y"] - new["y"].mean()) ** 2)
    )
    assert model.score(new, "mae") == pytest.approx(mean_absolute_error(new["y"], f))
    gone = new.assign(y=new["y"].where(np.arange(200) > 20))
    assert model.score(gone) == pytest.approx(model.score(new[21:]))
    with pytest.raises(ValueError, match="metric must be one of r2, rmse, mae"):
        model.score(new, metric="auc")
    with pytest.raises(DataError, match='lacks the target "y"'):
        model.score(new.drop(columns="y"))
    with pytest.raises(DataError, match="nothing to score"):
        model.score(new.assign(y=np.nan))


def test_a_model_writes_its_report_and_shows_itself_in_notebooks(model, tmp_path):
    model.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    shown = model._repr_html_()
    assert "Predicting <b>y</b>" in shown
    assert number(model.result.chosen.holdout, "r2") in shown
    assert "held-out rows" in repr(model)


def test_names_from_the_data_are_escaped_in_notebooks():
    evil = "<img src=x onerror=alert(1)>\x1b"
    data = table(60).rename(columns={"y": evil})
    shown = fit_table(data, evil, exclude=["key"], time=AT_ONCE)._repr_html_()
    assert "<img" not in shown
    assert "\x1b" not in shown


def test_without_rows_no_row_is_in_the_result():
    kept, left = (
        fit_table(table(80), "y", id="key", keep_rows=k, time=AT_ONCE).result for k in (True, False)
    )
    assert kept.worst
    assert kept.points
    assert left.worst == left.points == ()


def test_dir_shows_public_names_only():
    names = dir(mercer)
    assert set(mercer.__all__) <= set(names)
    assert {"datasets", "__version__"} <= set(names)
    assert all(not name.startswith("_") or name == "__version__" for name in names)
    assert not {"Any", "annotations", "import_module", "TYPE_CHECKING", "HOMES", "MODULES"} & set(
        names
    )
    assert all(hasattr(mercer, name) for name in names)


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.0004, "0.000"), (-0.0, "0.000"), (-0.0006, "-0.001"), (0.5, "0.500")]
)
def test_no_minus_before_a_zero(value, shown):
    assert number(value, "r2") == shown
    assert number(-0.0, "rmse") == "0"


@pytest.mark.parametrize(
    ("rows", "said"), [(1, "on 1 row that nothing"), (2000, "on 2,000 rows that nothing")]
)
def test_one_row_is_no_rows(rows, said):
    assert said in sentence(METRICS["r2"], "Linear", 0.5, 0.4, 0.6, rows)


def blocks(language):
    return re.findall(
        rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S
    )


def test_the_first_lines_of_the_readme_run_as_they_stand(tmp_path, monkeypatch):
    """In an empty folder, with a table that ships; only the seconds are fewer."""
    monkeypatch.chdir(tmp_path)
    first = next(block for block in blocks("python") if "fit_table" in block)
    names = {}
    exec(compile(re.sub(r"time=\d+", f"time={AT_ONCE}", first), "README.md", "exec"), names)
    assert names["model"].result.verdict
    assert {"diabetes.csv", "diabetes.html", "diabetes.mercer"} <= {
        path.name for path in tmp_path.iterdir()
    }


@pytest.mark.long
def test_the_commands_of_the_readme_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mercer.cli.demo.SECONDS", AT_ONCE)
    commands = next(block for block in blocks("") if block.startswith("mercer ")).splitlines()
    assert len(commands) > 1
    for line in commands:
        words = re.sub(r"--time \d+", f"--time {AT_ONCE}", line.split("#")[0]).split()
        done = CliRunner().invoke(app, words[1:])
        assert done.exit_code == 0, f"{line}: {done.output}"
