"""`mercer gallery` writes all pages, keeps what is there, and opens the index where it may."""

import pytest

from mercer.cli import gallery
from mercer.gallery import PAGES, files
from tests.cli.calls import call


@pytest.fixture
def opened(monkeypatch):
    """What was opened; two pages stand for all, which the tests of the gallery make."""
    found = []
    monkeypatch.setattr(files, "PAGES", PAGES[:2])
    monkeypatch.setattr(gallery.webbrowser, "open", found.append)
    return found


def test_pages_and_index_are_written_and_opened_on_request(opened, tmp_path):
    place = tmp_path / "new"
    done = call("gallery", place, "--open")
    assert done.exit_code == 0
    written = {path.name for path in place.iterdir()}
    assert written == {"parabolic.html", "polynomial.html", "index.html"}
    assert done.stdout.splitlines()[-1].split() == ["index", str(place / "index.html")]
    assert opened == [(place / "index.html").absolute().as_uri()]


def test_nothing_is_opened_in_a_pipe_and_files_are_kept(opened, tmp_path):
    (tmp_path / "index.html").write_text("mine")
    refused = call("gallery", tmp_path)
    assert refused.exit_code == 2
    assert "give --overwrite" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert call("gallery", tmp_path, "--overwrite").exit_code == 0
    assert opened == []
