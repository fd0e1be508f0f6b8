"""The gallery as files: a page each and an index, whole or not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from mercer.gallery.html import index_html, page_html
from mercer.gallery.page import Page
from mercer.gallery.pages import PAGES
from mercer.gallery.slips import SLIPS, shown
from mercer.store.commit import beside, naming


def page_text(page: Page) -> str:
    """A page as HTML, with the slips that it names."""
    return page_html(page, PAGES, [(SLIPS[key], shown(key)) for key in page.slips])


def write(folder: Path, *, tell: Callable[[str], None] = lambda title: None) -> Path:
    """Write all pages into a folder, which is made where it is not there; the path of the index.

    Parameters
    ----------
    folder : Path
        Where the files go; pages that are there are replaced.
    tell : callable
        Called with the title of each page before it is made, and with "" at the end.

    Examples
    --------
    >>> import tempfile
    >>> index = write(Path(tempfile.mkdtemp()) / "gallery")
    >>> index.name, len(list(index.parent.glob("*.html"))) == len(PAGES) + 1
    ('index.html', True)
    """
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        tell(page.title)
        _write(folder / f"{page.slug}.html", page_text(page))
    index = folder / "index.html"
    _write(index, index_html(PAGES))
    tell("")
    return index


def _write(path: Path, text: str) -> None:
    draft = beside(path)
    try:
        with naming(path):
            draft.write_text(text, encoding="utf-8")
            os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
