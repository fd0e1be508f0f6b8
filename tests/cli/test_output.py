"""Files of the command line: whole or not there, and never over what is read."""

import os

import pytest

from mercer.cli.guard import UsageError, sentence
from mercer.cli.output import check_free, draft, naming
from tests.cli.calls import call


def test_files_that_are_there_are_kept_unless_told_otherwise(folder, tmp_path):
    out = tmp_path / "p.csv"
    out.write_text("mine")
    found = call("predict", folder / "d.mercer", folder / "d.csv", "-o", out)
    assert found.exit_code == 2
    assert "--overwrite" in found.stderr
    assert out.read_text() == "mine"
    assert (
        call("predict", folder / "d.mercer", folder / "d.csv", "-o", out, "--overwrite").exit_code
        == 0
    )
    assert out.read_text() != "mine"


def test_a_full_disk_leaves_nothing_half_written(folder, tmp_path, monkeypatch):
    def full(fd):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    found = call("predict", folder / "d.mercer", folder / "d.csv", "-o", tmp_path / "p.csv")
    assert found.exit_code == 1
    assert "p.csv: the disk is full" in found.stderr
    assert list(tmp_path.iterdir()) == []


def test_trouble_with_a_draft_is_told_of_the_file_asked_for(tmp_path):
    for trouble in (
        OSError(28, "No space left on device"),
        OSError(28, "No space left on device", ".m.mercer.12.part"),
    ):
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


def test_what_is_read_is_never_replaced(folder, tmp_path):
    data, test, link = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "link.csv"
    for path in (data, test):
        path.write_bytes((folder / "d.csv").read_bytes())
    link.hardlink_to(data)
    fit = ["fit", data, "-t", "progression", "--time", "0.01", "--overwrite"]
    calls = [
        [*fit, "--out", data],
        [*fit, "--report", link],
        [*fit, "--test", test, "--out", test],
        ["fit", tmp_path / "*.csv", *fit[2:], "--out", test],
        ["predict", folder / "d.mercer", data, "-o", link, "--overwrite"],
    ]
    for words in calls:
        found = call(*words)
        assert found.exit_code == 2
        assert "read by this command" in found.stderr
    assert data.read_bytes() == test.read_bytes() == (folder / "d.csv").read_bytes()
    model = tmp_path / "m.csv"
    model.write_bytes((folder / "d.mercer").read_bytes())
    assert call("predict", model, data, "-o", model, "--overwrite").exit_code == 2
    assert model.read_bytes() == (folder / "d.mercer").read_bytes()


def test_outputs_that_cannot_be_written_are_told_before_the_work(monkeypatch, tmp_path):
    def refused(path, *args, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(type(tmp_path), "open", refused)
    with pytest.raises(
        UsageError,
        match=r"m\.mercer cannot be written: permission denied; give a name in another folder",
    ):
        check_free(tmp_path / "m.mercer", overwrite=True)
    monkeypatch.undo()
    check_free(tmp_path / "m.mercer", overwrite=True)
    assert not list(tmp_path.iterdir())
