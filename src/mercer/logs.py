"""The logger "mercer", quiet unless it is listened to: what long fits tell of their progress."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from threading import Lock

LOGGER = logging.getLogger("mercer")
LOGGER.addHandler(logging.NullHandler())
FORMAT = "%(name)s: %(message)s"


def logger(name: str) -> logging.Logger:
    """The part of a family: its lines are INFO.

    >>> logger("svm").name
    'mercer.svm'
    """
    return LOGGER.getChild(name)


class _Listening:
    """How many verbose calls are under way, and what there was before the first of them."""

    def __init__(self) -> None:
        self.lock, self.calls, self.level = Lock(), 0, logging.NOTSET
        self.handler: logging.Handler | None = None

    def begin(self) -> None:
        with self.lock:
            self.calls += 1
            if self.calls > 1:
                return
            self.level = LOGGER.level
            if not LOGGER.isEnabledFor(logging.INFO):
                LOGGER.setLevel(logging.INFO)
            if not heard():
                self.handler = logging.StreamHandler()  # to sys.stderr as it is now
                self.handler.setFormatter(logging.Formatter(FORMAT))
                LOGGER.addHandler(self.handler)

    def end(self) -> None:
        with self.lock:
            self.calls -= 1
            if self.calls:
                return
            LOGGER.setLevel(self.level)
            if self.handler is not None:
                LOGGER.removeHandler(self.handler)
                self.handler = None


_LISTENING = _Listening()


def heard() -> bool:
    """Whether lines reach a handler that someone else has set up."""
    above = logging.getLogger().handlers if LOGGER.propagate else []
    return any(not isinstance(h, logging.NullHandler) for h in [*LOGGER.handlers, *above])


@contextmanager
def telling(verbose: object) -> Iterator[None]:
    """Lines are told inside, where `verbose` is true: to the handlers that there are, else to
    stderr; afterwards everything is as it was.

    >>> with telling(False):
    ...     logger("svm").info("not told")
    """
    if not isinstance(verbose, Integral | bool) or verbose < 0:
        raise ValueError(f"verbose must be True, False or a whole number >= 0, got {verbose!r}.")
    if not verbose:
        yield
        return
    _LISTENING.begin()
    try:
        yield
    finally:
        _LISTENING.end()
