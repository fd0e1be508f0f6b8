"""One sentence on stderr and the documented exit status, whatever goes wrong inside a command."""
from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

FAILED, BAD_USAGE = 1, 2


class UsageError(Exception):
    """A flag that cannot be as it is."""


@contextmanager
def guarded() -> Iterator[None]:
    """Run a command: expected trouble becomes a sentence, Ctrl-C and TERM the word "interrupted"."""
    try:
        with _stoppable():
            yield
            sys.stdout.flush()
    except UsageError as error:
        _leave(str(error), BAD_USAGE)
    except BrokenPipeError:
        _hush()  # whoever read the output has seen enough
    except (ValueError, ImportError, MemoryError, OSError) as error:
        _leave(sentence(error), FAILED)
    except KeyboardInterrupt:
        _leave("interrupted; nothing was left half-written.", FAILED)


def sentence(error: BaseException) -> str:
    """What went wrong, as one line of text.

    >>> sentence(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv: no such file or directory.'
    """
    if isinstance(error, OSError) and error.errno is not None:
        text = "the disk is full" if error.errno == errno.ENOSPC and not error.filename else str(error.strerror)
        what = f"{error.filename}: " if error.filename else ""
        return _ended(what + (text[:1].lower() + text[1:]))
    if isinstance(error, MemoryError):
        return "not enough memory; give --memory less than this machine has, or fewer columns."
    return _ended(" ".join(str(error).split()) or type(error).__name__)


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else text + "."


def _leave(text: str, status: int) -> None:
    with suppress(OSError):
        print(f"mercer: {text}", file=sys.stderr)
    sys.exit(status)


def _hush() -> None:
    """Nothing more can be written; without this Python would complain at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(FAILED)


@contextmanager
def _stoppable() -> Iterator[None]:
    """TERM stops a command as Ctrl-C does, so that unfinished files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)
