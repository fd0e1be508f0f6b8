"""The one thread pool of the package, and the guard that holds BLAS at one thread beside it."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_limit: ContextVar[int | None] = ContextVar("mercer_thread_limit", default=None)
_inside: ContextVar[bool] = ContextVar("mercer_inside_a_task", default=False)
_lock = threading.Lock()


def n_threads() -> int:
    """Threads a call may use: `limit`, else MERCER_NUM_THREADS, else the cores this process may run
    on.

    >>> with limit(3):
    ...     n_threads()
    3
    """
    if _inside.get():
        return 1  # a task never starts tasks of its own
    return _limit.get() or _from_environment() or _cores()


@contextmanager
def limit(n: int | None) -> Iterator[None]:
    """Use at most n threads inside the block, in this thread and the tasks it starts; None changes
    nothing."""
    token = _limit.set(_limit.get() if n is None else _positive(n, "limit(n)"))
    try:
        yield
    finally:
        _limit.reset(token)


def parallel_map(f: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """[f(item) for item in items], shared between threads, with BLAS at one thread.

    The first exception takes the waiting items away and is raised here. A call made inside a task
    runs in that task. What f computes never depends on the number of threads.

    >>> parallel_map(abs, [-2, 1, -3])
    [2, 1, 3]
    """
    todo = deque(enumerate(items))
    results: dict[int, R] = {}
    helpers = min(n_threads(), len(todo)) - 1
    _run_all(lambda: _work(f, todo, results), todo, helpers)
    return [results[i] for i in range(len(results))]


def _run_all(work: Callable[[], None], todo: deque[Any], helpers: int) -> None:
    # The caller works too: a busy pool can then delay a call but never block it. Each helper has a
    # copy of the caller's context, hence its limits and its np.errstate.
    futures = [_submit(work) for _ in range(helpers)]
    try:
        work()
    finally:
        todo.clear()
        started = [future for future in futures if not future.cancel()]
        wait(started)
    for future in started:
        future.result()


def _submit(work: Callable[[], None]) -> Future[None]:
    with _lock:
        return _pool().submit(copy_context().run, work)


def _work(f: Callable[[T], R], todo: deque[tuple[int, T]], results: dict[int, R]) -> None:
    token = _inside.set(True)
    try:
        with single_blas():
            for i, item in _drain(todo):
                results[i] = f(item)
    except BaseException:
        todo.clear()
        raise
    finally:
        _inside.reset(token)


def _drain(todo: deque[T]) -> Iterator[T]:
    while True:
        try:
            item = todo.popleft()
        except IndexError:
            return
        yield item


@contextmanager
def single_blas() -> Iterator[None]:
    """Hold BLAS at one thread, in the whole process, while anyone is inside; the last to leave
    restores it.

    >>> with single_blas():
    ...     pass
    """
    if _thread.hold.holders:  # it is held already, and by this thread, until it leaves
        yield
        return
    with _lock:
        _process.enter()
    _thread.hold.enter()
    try:
        yield
    finally:
        _thread.hold.leave()
        with _lock:
            _process.leave()


class _Hold:
    """Counts its holders, so that overlapping ones cannot restore a value that another of them
    set."""

    def __init__(self, per_thread: bool) -> None:
        self.per_thread = per_thread
        self.holders = 0
        self.former: list[int] = []

    def enter(self) -> None:
        if self.holders == 0:
            self.former = [library.get_num_threads() for library in _blas(self.per_thread)]
            self.set([1] * len(self.former))
        self.holders += 1

    def leave(self, but: int | None = None) -> None:
        before, self.holders = self.holders, self.holders - 1 if but is None else but
        if self.holders == 0 and before > 0:
            self.set(self.former)

    def set(self, counts: list[int]) -> None:
        for library, count in zip(_blas(self.per_thread), counts, strict=True):
            _set(library, count)


class _OfThread(threading.local):
    """What this thread holds: limits that hold for one thread only, and its share of those for the
    process."""

    def __init__(self) -> None:
        self.hold = _Hold(per_thread=True)


_process = _Hold(per_thread=False)
_thread = _OfThread()


def _set(library: Any, count: int) -> None:
    # threadpoolctl 3.8 lets one thread at a time set OpenBLAS and ignores the others; the guard
    # acts for all of them.
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(count)
    release(force=True)


@cache
def _blas(per_thread: bool) -> list[Any]:
    """The BLAS libraries of this process whose limit is per thread, or not; finding them takes
    milliseconds."""
    import scipy.linalg  # noqa: F401  SciPy brings a BLAS of its own, which must be loaded to be found
    from threadpoolctl import ThreadpoolController

    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    return [library for library in libraries if _is_per_thread(library) == per_thread]


def _is_per_thread(library: Any) -> bool:
    return library.internal_api == "mkl" or (library.internal_api, library.threading_layer) == (
        "openblas",
        "openmp",
    )


@cache
def _pool() -> ThreadPoolExecutor:
    # Threads start when they are needed, so a generous bound lets a limit above the number of cores
    # be kept.
    return ThreadPoolExecutor(max_workers=max(32, _cores()), thread_name_prefix="mercer")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _from_environment() -> int | None:
    text = os.environ.get("MERCER_NUM_THREADS", "").strip()
    return _positive(text, "MERCER_NUM_THREADS") if text else None


def _positive(value: int | str, name: str) -> int:
    if str(value).isdecimal() and int(value) > 0:
        return int(value)
    raise ValueError(f"{name} must be a whole number of at least 1, but it is {value!r}.")


def _after_fork() -> None:
    """A child has neither the pool's threads nor the other threads' holds on BLAS."""
    _pool.cache_clear()
    _process.leave(but=_thread.hold.holders)
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_after_fork
    )
