"""The pool and the BLAS guard: order, failures, nesting, limits, forks, and BLAS left as it was."""

import multiprocessing
import os
import threading
import warnings
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from mercer.ops import threads as module
from mercer.ops.threads import limit, n_threads, parallel_map, single_blas


def blas_threads():
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


@pytest.fixture(autouse=True)
def two_blas_threads(monkeypatch):
    """So that one thread differs from the usual, also on a machine with one core."""
    monkeypatch.delenv("MERCER_NUM_THREADS", raising=False)
    parallel_map(abs, [1])  # loads every BLAS, so that all are counted
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        yield
        assert blas_threads() == before


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("n", [0, 1, 2, 100])
def test_results_in_order(threads, n):
    with limit(threads):
        assert parallel_map(lambda i: i * i, range(n)) == [i * i for i in range(n)]


def test_as_many_threads_as_the_limit():
    meet = threading.Barrier(5, timeout=30)  # passes only when five threads are inside at once
    with limit(5):
        seen = parallel_map(lambda _: (meet.wait(), threading.get_ident())[1], range(5))
    assert len(set(seen)) == 5


def test_one_thread_is_the_callers():
    with limit(1):
        assert set(parallel_map(lambda _: threading.get_ident(), range(5))) == {
            threading.get_ident()
        }


def test_limit_goes_before_environment_goes_before_cores(monkeypatch):
    cores = n_threads()
    assert cores >= 1
    monkeypatch.setenv("MERCER_NUM_THREADS", "5")
    assert n_threads() == 5
    with limit(3):
        assert n_threads() == 3
        with limit(None):
            assert n_threads() == 3
        with limit(4):
            assert n_threads() == 4
    assert n_threads() == 5


def test_limit_belongs_to_its_thread():
    seen = []
    with limit(9):
        thread = threading.Thread(target=lambda: seen.append(n_threads()))
        thread.start()
        thread.join()
    assert seen != [9]


@pytest.mark.parametrize("n", [0, -1, 1.5, "two"])
def test_bad_limits(n, monkeypatch):
    with pytest.raises(ValueError, match=r"limit\(n\) must be"), limit(n):
        pass
    monkeypatch.setenv("MERCER_NUM_THREADS", str(n))
    with pytest.raises(ValueError, match="MERCER_NUM_THREADS must be"):
        n_threads()


def test_nested_calls_run_inline():
    def outer(i):
        with limit(4):
            return {
                threading.get_ident(),
                *parallel_map(lambda _: threading.get_ident(), range(10)),
            }

    with limit(3):
        assert all(len(idents) == 1 for idents in parallel_map(outer, range(20)))


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("error", [ValueError, IndexError, KeyboardInterrupt])
def test_a_failure_is_raised_and_ends_the_rest(threads, error):
    done = []

    def task(i):
        if i == 3:
            raise error("three")
        done.append(i)

    with limit(threads), pytest.raises(error, match="three"):
        parallel_map(task, range(100_000))
    assert len(done) < 100_000
    with limit(threads):
        assert parallel_map(abs, [-1, -2]) == [1, 2]


def test_tasks_see_the_callers_errstate():
    def divide(_):
        return np.float64(1.0) / np.float64(0.0)

    with limit(3), np.errstate(divide="ignore"):
        assert parallel_map(divide, range(20)) == [np.inf] * 20


@pytest.mark.parametrize("threads", [1, 3])
def test_blas_has_one_thread_inside(threads):
    assert set(blas_threads()) == {2}
    with limit(threads):
        inside = parallel_map(lambda _: blas_threads(), range(5))
    assert {n for counts in inside for n in counts} == {1}


def test_overlapping_callers_leave_blas_as_it_was():
    """Each enters while the other is inside, and leaves first or last in turn."""
    start = threading.Barrier(2)

    def caller():
        start.wait()
        for _ in range(200):
            with limit(2):
                parallel_map(lambda _: np.ones((8, 8)) @ np.ones((8, 8)), range(3))

    threads = [threading.Thread(target=caller) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert set(blas_threads()) == {2}


@contextmanager
def another_thread_inside():
    inside, leave = threading.Event(), threading.Event()

    def hold():
        with single_blas():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(30)
    try:
        yield
    finally:
        leave.set()
        thread.join()


def test_guard_counts_its_holders():
    with another_thread_inside():
        with single_blas(), single_blas():
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_first_in_first_out():
    """The thread that set the limit is not the one that restores it."""
    with ExitStack() as first, ExitStack() as last:
        first.enter_context(another_thread_inside())
        last.enter_context(single_blas())
        first.close()
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_others_may_set_limits_afterwards():
    with limit(2):
        parallel_map(abs, range(10))
    with threadpool_limits(1, user_api="blas"):
        assert set(blas_threads()) == {1}
    assert set(blas_threads()) == {2}


def test_guard_of_a_library_with_limits_per_thread(monkeypatch):
    """Such as MKL: each thread that works sets its own limit, and restores it."""

    class Library(threading.local):
        n = 4

        def get_num_threads(self):
            return self.n

        def set_num_threads(self, n):
            self.n = n

    library = Library()
    monkeypatch.setattr(module, "_blas", lambda per_thread: [library] if per_thread else [])
    meet = threading.Barrier(3, timeout=30)
    with limit(3):
        assert parallel_map(lambda _: (meet.wait(), library.n)[1], range(3)) == [1, 1, 1]
    assert library.n == 4


def test_guard_restores_after_an_error():
    with pytest.raises(ValueError, match="inside"), single_blas():
        raise ValueError("inside")
    assert set(blas_threads()) == {2}


def _in_child(queue):
    with limit(3):
        queue.put((parallel_map(lambda i: i + 1, range(10)), blas_threads()))


def _fork(target):
    """Run target(queue) in a forked child; newer Pythons warn about the pool's threads, which is
    the point here."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=target, args=(queue,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child.start()
    result = queue.get()
    child.join(30)
    assert child.exitcode == 0
    return result


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")


@needs_fork
def test_works_after_a_fork():
    with limit(3):
        parallel_map(abs, range(10))
    results, blas = _fork(_in_child)
    assert results == list(range(1, 11))
    assert set(blas) == {2}


@needs_fork
def test_a_fork_drops_the_holds_of_other_threads_only():
    with another_thread_inside():
        assert set(_fork(_in_child)[1]) == {2}
        with single_blas():
            assert set(_fork(_in_child)[1]) == {1}
