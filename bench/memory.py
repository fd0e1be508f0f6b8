"""Peak memory of a call, in a process of its own."""

import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any


def peak_memory(call: Callable[[], Any], warmup: Callable[[], Any] | None = None) -> int:
    """Bytes by which the resident memory of a fresh process grew, at its highest, while `call` ran.

    `call` must pickle: a function of a module, or a `functools.partial` of one. What it imports or compiles counts,
    unless `warmup` has done so on a small input.
    """
    # A forkserver's child starts small and inherits neither the peak nor the threads of this process.
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_growth, call, warmup).result()


def _growth(call: Callable[[], Any], warmup: Callable[[], Any] | None) -> int:
    if warmup:
        warmup()
    _forget_peak()
    baseline = _peak()
    call()
    return _peak() - baseline


def _forget_peak() -> None:
    """Linux can set the peak back to what is resident now; elsewhere the warm-up's peak is the baseline."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
