"""Files appear whole or not at all."""

import os
import stat

import numpy as np
import pytest

import mercer.store.files as files
from mercer.kernels import Gaussian, Laplace
from mercer.lifts import Monomials
from mercer.store import load, save


@pytest.fixture
def old(tmp_path):
    """A file that is there, alone in its folder."""
    path = tmp_path / "m.mercer"
    save(Laplace(3.0), path)
    return path


def untouched(old):
    assert load(old) == Laplace(3.0)
    assert os.listdir(old.parent) == [old.name]


def failing(error):
    def fail(*args, **options):
        raise error

    return fail


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), PermissionError(13, "no"), KeyboardInterrupt()],
    ids=["full", "denied", "ctrl-c"],
)
def test_a_write_that_fails_leaves_what_was_there(old, monkeypatch, step, error):
    with monkeypatch.context() as m:
        m.setattr(files.os, step, failing(error))
        with pytest.raises(type(error)):
            save(Gaussian(), old)
    untouched(old)


def test_a_refused_object_leaves_what_was_there(old):
    with pytest.raises(ValueError, match="files hold no code"):
        save(Gaussian().warped(lambda X: X), old)
    untouched(old)


def test_an_overwrite_replaces_the_file_and_keeps_its_rights(old):
    old.chmod(0o640)
    save(Gaussian(2.0), old)
    assert load(old) == Gaussian(2.0)
    assert stat.S_IMODE(old.stat().st_mode) == 0o640


def test_without_overwrite_a_file_that_is_there_stays(old, monkeypatch):
    with pytest.raises(FileExistsError, match="is there already"):
        save(Gaussian(), old, overwrite=False)
    monkeypatch.setattr(
        files, "_check_target", lambda *a, **k: None
    )  # it comes up after the first look
    with pytest.raises(FileExistsError):
        save(Gaussian(), old, overwrite=False)
    untouched(old)


def test_without_overwrite_a_new_file_is_written(tmp_path, monkeypatch):
    save(Gaussian(2.0), tmp_path / "a", overwrite=False)
    monkeypatch.setattr(files.os, "link", failing(OSError(95, "not supported")))
    save(Gaussian(2.0), tmp_path / "b", overwrite=False)
    assert load(tmp_path / "a") == load(tmp_path / "b") == Gaussian(2.0)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_places_that_cannot_be_written_to(tmp_path, old):
    with pytest.raises(
        FileNotFoundError,
        match=r"none/m cannot be written: the folder .*none does not exist; make it first",
    ):
        save(Gaussian(), tmp_path / "none" / "m")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        save(Gaussian(), tmp_path)
    with pytest.raises(OSError, match=r"m\.mercer"):
        save(Gaussian(), old / "m")
    untouched(old)


def test_trouble_is_told_of_the_path_that_was_given(tmp_path, monkeypatch):
    """Not of the draft beside it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files.os, "fsync", failing(PermissionError(13, "Permission denied")))
    with pytest.raises(PermissionError) as e:
        save(Gaussian(), "m.mercer")
    assert e.value.filename == "m.mercer"


def test_a_link_keeps_pointing_to_the_file(tmp_path, old):
    (tmp_path / "link").symlink_to(old)
    save(Gaussian(2.0), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(old) == Gaussian(2.0)


def test_rights_of_a_new_file_are_those_of_any(tmp_path):
    save(Gaussian(), tmp_path / "m")
    (tmp_path / "other").touch()
    assert (tmp_path / "m").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_long_and_unicode_names(tmp_path):
    path = tmp_path / ("größe " * 25)
    save(Gaussian(2.0), str(path))
    assert load(path) == Gaussian(2.0)


def test_the_same_object_gives_the_same_bytes(tmp_path):
    phi = Monomials(2).fit(np.ones((2, 3)))
    for name in "ab":
        phi.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_path_is_named_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        FileNotFoundError,
        match=r"^nodir/x cannot be written: the folder nodir does not exist; make it first",
    ):
        save(Gaussian(), "nodir/x")
