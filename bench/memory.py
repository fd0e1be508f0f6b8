"""Peak memory of a call, in a process of its own; and of a command, as the system sees it."""

import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

STEP = 0.02  # seconds between two looks at a command


def peak_memory(call: Callable[[], Any], warmup: Callable[[], Any] | None = None) -> int:
    """Bytes by which the resident memory of a fresh process grew, at its highest, while `call` ran.

    `call` must pickle: a function of a module, or a `functools.partial` of one. What it imports or
    compiles counts, unless `warmup` has done so on a small input.
    """
    # A forkserver's child starts small and inherits neither the peak nor the threads of this
    # process.
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
    """Linux can set the peak back to what is resident now; elsewhere the warm-up's peak is the
    baseline."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def imported(module: str) -> int:
    """Resident anonymous bytes of a Python that has imported a module and done nothing else."""
    code = f"import {module}, sys; sys.path.insert(0, {os.getcwd()!r}); from bench.memory import anonymous; print(anonymous('self'))"
    return int(
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, text=True
        ).stdout
    )


def peak_of_command(
    command: Sequence[str | Path], **settings: Any
) -> tuple[int, "subprocess.CompletedProcess[str]"]:
    """The most resident anonymous bytes that a command and its children had together, looked at
    every 20 ms; and how it ended."""
    most = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **settings
    ) as process:
        while process.poll() is None:
            most = max(most, sum(anonymous(pid) for pid in _family(process.pid)))
            time.sleep(STEP)
        out, err = process.communicate()
    return most, subprocess.CompletedProcess(command, process.returncode, out, err)


def anonymous(pid: int | str) -> int:
    """RssAnon of a process in bytes; 0 where it has ended. Pages of files, which the system may
    drop, do not count."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def _family(pid: int) -> Iterator[int]:
    """A process and all that it started, but for copies of itself: a child shows its parent's
    memory, which would count twice, until it runs a program of its own.
    """
    yield pid
    with suppress(OSError):
        own = _command(pid)
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                for child in (task / "children").read_text().split():
                    if _command(int(child)) != own:
                        yield from _family(int(child))


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
