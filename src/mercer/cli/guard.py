"""One sentence on stderr and the documented exit status, whatever goes wrong inside a command; and
what is settled about memory before it.

Arrow's own allocator gives back what the thread that asks has freed, and the threads that read
files keep 40 to 80 MB; the system's gives back all of it. Where addresses are tight (ulimit -v),
less is taken, and a sentence comes at once where nothing could work: libraries reserve addresses
for every thread, and end the process, or try for ever, where they get none: that cannot be caught.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from mercer.cli.early import FAILED, INTERRUPTED
from mercer.cli.terminal import printable

LEAST = 900_000_000  # bytes: a small fit on one thread has been seen to take 760 million
EASY, A_THREAD = 3_000_000_000, 500_000_000  # beyond them nothing has to be spared
POOL = ("ARROW_DEFAULT_MEMORY_POOL", "system")
ONE = {
    POOL[0]: POOL[1],
    "MERCER_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
_ARENAS = -8  # of mallopt: M_ARENA_MAX
DONE, BAD_USAGE = 0, 2
SWALLOWED = 1.0  # seconds after which an interruption that has not arrived is raised again
_ALARM = getattr(signal, "SIGALRM", None)  # not on Windows
_PLAIN = {errno.ENOSPC: "the disk is full", errno.EISDIR: "it is a folder; give the name of a file"}
_NO_MEMORY = "not enough memory; give --memory less than this machine has, or fewer columns."


def make_do() -> None:
    """Before anything heavy is imported: on Linux the system's allocator for Arrow, where addresses
    are few one thread of each library, a MemoryError where they are too few.
    """
    if sys.platform.startswith("linux"):
        os.environ.setdefault(*POOL)
    limit = limited()
    if limit is None or limit >= EASY + A_THREAD * (os.cpu_count() or 1):
        return
    if limit < LEAST:
        needed = f"and Mercer needs {LEAST / 1e6:,.0f} MB; raise that limit."
        raise MemoryError(f"addresses are limited to {limit / 1e6:,.0f} MB (ulimit -v), {needed}")
    for name, value in ONE.items():
        os.environ.setdefault(name, value)
    with suppress(AttributeError, OSError):
        import ctypes

        ctypes.CDLL(None).mallopt(_ARENAS, 1)


def limited() -> int | None:
    """The bytes of addresses that this process may have; None for no limit."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_DATA, getrlimit
    except ImportError:  # Windows
        return None
    found = [
        soft
        for soft in (getrlimit(RLIMIT_AS)[0], getrlimit(RLIMIT_DATA)[0])
        if soft != RLIM_INFINITY
    ]
    return min(found) if found else None


class UsageError(Exception):
    """A flag that cannot be as it is."""


@contextmanager
def guarded() -> Iterator[None]:
    """Run a command: expected trouble becomes a sentence, Ctrl-C and TERM the word
    "interrupted"."""
    stopped: list[int] = []
    try:
        with _stoppable(stopped):
            make_do()
            yield
            sys.stdout.flush()
    except UsageError as error:
        leave(str(error), BAD_USAGE)
    except BrokenPipeError:
        _hush()  # whoever read the output has seen enough
    except KeyboardInterrupt:
        leave(INTERRUPTED, FAILED)
    except (ValueError, ImportError, MemoryError, OSError) as error:
        text = _NO_MEMORY if _starved(error) else sentence(error)
        leave(
            INTERRUPTED if stopped else text, BAD_USAGE if _typed(error) and not stopped else FAILED
        )
    except BaseException as error:
        if not stopped and not _starved(error):
            raise
        leave(
            INTERRUPTED if stopped else _NO_MEMORY, FAILED
        )  # an import that was cut short fails in ways of its own


def _typed(error: BaseException) -> bool:
    """Whether another word on the command line is the remedy: a file or a column that is not there,
    a metric of another task."""
    return bool(getattr(error, "usage", False))


def _starved(error: BaseException) -> bool:
    """Whether a library found no memory, in words of its own: to map its code, or to start a
    thread."""
    starved = (
        "failed to map segment",
        "can't start new thread",
        "cannot allocate memory",
        "unable to allocate",
        "libllvmlite",
    )
    return limited() is not None and any(words in str(error).lower() for words in starved)


def sentence(error: BaseException) -> str:
    """What went wrong, as one line of text.

    >>> sentence(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv: no such file or directory.'
    """
    if isinstance(error, OSError) and error.errno is not None:
        text = _PLAIN.get(error.errno, str(error.strerror))
        what = f"{error.filename}: " if error.filename else ""
        return _ended(what + (text[:1].lower() + text[1:]))
    if isinstance(error, MemoryError):
        return _ended(str(error) if "addresses" in str(error) else _NO_MEMORY)
    return _ended(" ".join(str(error).split()) or type(error).__name__)


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else text + "."


def leave(text: str, status: int) -> None:
    """A sentence on stderr, and the end."""
    sys.exit(leave_with(text, status))


def leave_with(text: str, status: int) -> int:
    """A sentence on stderr; the status."""
    with suppress(OSError):
        print(f"mercer: {printable(text)}", file=sys.stderr)
    return status


def finish(status: int) -> NoReturn:
    """The end of the process, without Python's own: a thread of a library that still reads ahead
    would abort it there."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _hush() -> None:
    """Nothing more can be written; without this Python would complain at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(DONE)


@contextmanager
def _stoppable(stopped: list[int]) -> Iterator[None]:
    """TERM stops a command as Ctrl-C does, so that unfinished files are removed; `stopped` notes
    the signals that came. A library may swallow the exception (an import that tries its luck), so
    the alarm raises it once more, until it has arrived here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        stopped.append(number)
        if _ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, SWALLOWED)
        raise KeyboardInterrupt

    signals = [signal.SIGTERM, signal.SIGINT] + ([] if _ALARM is None else [_ALARM])
    heard = [s for s in signals if signal.getsignal(s) is not signal.SIG_IGN]
    former = {s: signal.signal(s, stop) for s in heard}
    try:
        yield
    finally:
        if stopped and _ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in former.items():
            signal.signal(number, handler)
