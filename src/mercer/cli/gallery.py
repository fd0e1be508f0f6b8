"""`mercer gallery`: the interactive pages, written into a folder and opened."""

from __future__ import annotations

import sys
import tempfile
import webbrowser
from pathlib import Path

from mercer.cli.demo import check_folder
from mercer.gallery import PAGES, write


def run(folder: Path | None = None, *, overwrite: bool = False, show: bool | None = None) -> Path:
    """Write all pages; the path of the index is printed last, and opened on a terminal, or where
    `show` asks for it."""
    place = Path(tempfile.mkdtemp(prefix="mercer-gallery-")) if folder is None else folder
    names = [*(f"{page.slug}.html" for page in PAGES), "index.html"]
    check_folder(place, [place / name for name in names], overwrite=overwrite)
    index = write(place, tell=_tell if sys.stderr.isatty() else _quiet)
    print(f"{len(PAGES)} pages, no network needed\n\nindex    {index}")
    if sys.stdout.isatty() if show is None else show:
        webbrowser.open(index.absolute().as_uri())
    return index


def _quiet(title: str) -> None:
    """Nothing: there is no terminal."""


def _tell(title: str) -> None:
    """One line that the next replaces; without a title it vanishes."""
    print(f"\r\x1b[K{title}", end="", file=sys.stderr, flush=True)
