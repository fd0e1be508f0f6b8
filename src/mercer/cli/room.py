"""What is settled about memory before anything is imported: Arrow's allocator, and what to do where addresses are limited (ulimit -v).

Arrow's own allocator gives back what the thread that asks has freed, and the threads that read files keep 40 to 80 MB; the system's
gives back all of it. Where addresses are tight, less is taken, and a sentence comes at once where nothing could work: libraries
reserve addresses for every thread, and end the process, or try for ever, where they get none: that cannot be caught.
"""
from __future__ import annotations

import os
import sys
from contextlib import suppress

LEAST = 900_000_000  # bytes: a small fit on one thread has been seen to take 760 million
EASY, A_THREAD = 3_000_000_000, 500_000_000  # beyond them nothing has to be spared
POOL = ("ARROW_DEFAULT_MEMORY_POOL", "system")
ONE = {
    POOL[0]: POOL[1], "MERCER_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}  # fmt: skip
_ARENAS = -8  # of mallopt: M_ARENA_MAX


def make_do() -> None:
    """Before anything heavy is imported: on Linux the system's allocator for Arrow, where addresses are few one thread of each library,
    a MemoryError where they are too few.
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
    found = [soft for soft in (getrlimit(RLIMIT_AS)[0], getrlimit(RLIMIT_DATA)[0]) if soft != RLIM_INFINITY]
    return min(found) if found else None
