"""Progress: one changing line on a terminal, nothing in a pipe."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mercer.cli.terminal import printable


@contextmanager
def progress(show: bool = True) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done, on stderr while that is a terminal."""
    if not (show and sys.stderr.isatty()):
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting", spinner="dots") as status:
        yield lambda text: status.update(printable(text).replace("[", "\\["))
