"""Text and progress for a terminal: what comes from the data cannot move the cursor, colour lines,
ring bells or turn its direction."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)  # all but tabs and line ends


def printable(text: str) -> str:
    """With a replacement character for every control character but tabs and line ends, and for lone
    surrogates.

    >>> printable("a\x1b[31mb\x9b1m")
    'a\ufffd[31mb\ufffd1m'
    """
    return _CONTROLS.sub("\ufffd", text)


def in_json(text: str) -> str:
    """JSON with its controls written as escapes, which mean the same.

    >>> in_json('"\x9b"')
    '"\\\\u009b"'
    """
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class Screen:
    """A binary stream to a terminal, on which only printable text arrives.

    >>> from io import BytesIO
    >>> below = BytesIO()
    >>> Screen(below).write("caf\u00e9 \x1b[2J".encode()), below.getvalue().decode()
    (10, 'caf\u00e9 \ufffd[2J')
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.closed = stream, False
        self.decoder = codecs.getincrementaldecoder("utf-8")(
            "replace"
        )  # a letter may be cut between two writes

    def write(self, data: bytes) -> int:
        self.stream.write(printable(self.decoder.decode(bytes(data))).encode())
        return len(data)

    def flush(self) -> None:
        self.stream.flush()


@contextmanager
def progress(show: bool = True) -> Iterator[Callable[[str], None]]:
    """A function that shows what is being done, on stderr while that is a terminal."""
    if not (show and sys.stderr.isatty()):
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting", spinner="dots") as status:
        yield lambda text: status.update(printable(text).replace("[", "\\["))
