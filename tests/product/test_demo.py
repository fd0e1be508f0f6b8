"""The demo leaves other people's files alone, and the summary says things once."""

from dataclasses import replace

import pytest

from mercer import datasets
from mercer.cli import demo
from mercer.cli.guard import UsageError
from mercer.cli.summary import summary
from mercer.product import fit_table


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    path = datasets.diabetes().write_csv(tmp_path_factory.mktemp("demo") / "d.csv")
    return fit_table(path, "progression", time=1e-3)


def check(place):
    demo.check_own(place, demo._asked(place), place / "predictions.csv", datasets.digits())


@pytest.mark.parametrize("name", ["digits.csv", "digits.mercer", "digits.html", "predictions.csv"])
def test_a_file_of_another_is_kept(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match="not the demo's"):
        demo.run(tmp_path)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]


def test_the_model_of_another_command_is_kept(tmp_path, fitted):
    fitted.save(tmp_path / "digits.mercer")
    with pytest.raises(UsageError, match=r"digits\.mercer"):
        check(tmp_path)


def test_its_own_files_are_made_again(tmp_path, fitted):
    own = replace(fitted, evidence=replace(fitted.evidence, command=demo._asked(tmp_path).command()))
    own.save(tmp_path / "digits.mercer")
    datasets.digits().write_csv(tmp_path / "digits.csv")
    (tmp_path / "digits.html").write_text("")
    check(tmp_path)
    check(tmp_path / "new")
    with pytest.raises(UsageError, match="is a file"):
        check(tmp_path / "digits.html")


def test_the_summary_names_a_metric_once_and_writes_numbers_out(fitted):
    wide = replace(fitted.evidence, interval={**fitted.evidence.interval, "median_width": 160_512.0})
    text = summary(wide)
    assert "metric    R² (1 is perfect" in text
    assert "160,500" in text
    assert "same seed may give another model" in text
