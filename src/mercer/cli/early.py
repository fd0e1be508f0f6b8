"""Ctrl-C while the command line is still being imported: a sentence and status 1, not a traceback
out of someone's import."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread

FAILED = 1
INTERRUPTED = "interrupted; nothing was left half-written."


@contextmanager
def sentence_for_ctrl_c() -> Iterator[None]:
    """At once and without unwinding, since an import that is cut short may swallow an exception or
    fail in ways of its own."""
    if (
        current_thread() is not main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def stop(number: int, frame: object) -> None:
    os.write(2, f"mercer: {INTERRUPTED}\n".encode())
    os._exit(FAILED)
