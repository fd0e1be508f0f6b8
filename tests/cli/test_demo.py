"""The demo leaves files alone unless told otherwise, and the summary says things once."""

from dataclasses import replace

import pytest

from mercer import datasets
from mercer.automl import fit_table
from mercer.cli import demo
from mercer.cli.guard import UsageError
from mercer.cli.summary import summary


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = datasets.diabetes().write_csv(tmp_path_factory.mktemp("demo") / "d.csv")
    return fit_table(path, "progression", time=1e-3)


FILES = ["digits.csv", "digits.mercer", "digits.html", "predictions.csv"]


def check(place, overwrite=False):
    demo.check_folder(place, [place / name for name in FILES], overwrite=overwrite)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_there_is_kept(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match="give --overwrite"):
        demo.run(tmp_path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]


def test_files_are_replaced_where_that_is_asked_for(tmp_path):
    (tmp_path / "digits.html").write_text("")
    check(tmp_path, overwrite=True)
    check(tmp_path / "new")
    with pytest.raises(UsageError, match="is a file"):
        check(tmp_path / "digits.html")


def test_the_summary_names_a_metric_once_and_writes_numbers_out(fitted):
    wide = replace(fitted.result, interval={**fitted.result.interval, "median_width": 160_512.0})
    text = summary(wide)
    assert "metric    R² (1 is perfect" in text
    assert "160,500" in text
    assert "same seed may give another model" in text
