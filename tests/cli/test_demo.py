"""The demo leaves files alone unless told otherwise."""

import pytest

from mercer.cli import demo
from mercer.cli.guard import UsageError

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


def test_the_whole_path_ends_with_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(demo, "SECONDS", 1e-3)
    page = demo.run(tmp_path / "new")
    assert {path.name for path in page.parent.iterdir()} == set(FILES)
    said = capsys.readouterr().out
    assert "1,797 handwritten digits" in said
    assert said.splitlines()[-1] == f"report    {page}"
