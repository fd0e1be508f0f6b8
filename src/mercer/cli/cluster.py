"""The workers of `mercer fit --cluster`: those of an address, or processes of this machine."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from mercer.cli.guard import UsageError
from mercer.engines.scheduler import WorkerError

ANSWER = 10  # seconds that a scheduler has to answer, and to show a worker
ENDING = 10  # seconds that workers have to end by themselves
LEAST = 600_000_000  # bytes of a worker: the program, and what the smallest fit takes
PROGRAM = 410_000_000  # bytes that a worker takes at rest: 398 to 411 MB were measured
ENDED = 0.95  # of a worker's limit, beyond which it is ended
QUIET = {
    "distributed.scheduler.worker-saturation": 1.0,  # who fails is told from who waits
    "distributed.worker.profile.enabled": False,  # 5 % of the work at 64 features
    "distributed.admin.large-graph-warning-threshold": "1GB",  # the sample travels with its tasks
}
# Of the workers begun here: sums of one thread cannot wait on disk, and a pause would be for good, as
# most of a small limit is taken at rest. A worker beyond its limit is ended, and that is told.
MEMORY = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": ENDED,
}


def fit_memory(asked: str | None, memory: float) -> float:
    """What a fit may take beyond the program: a limit of local workers holds the program too.

    >>> fit_memory("local", 1e9), fit_memory("tcp://host:8786", 1e9)
    (540000000.0, 1000000000.0)
    """
    return memory * ENDED - PROGRAM if asked == "local" else memory


@contextmanager
def workers(asked: str | None, memory: float) -> Iterator[None]:
    """A client of them, current while the block runs; none for None, when threads of this process
    read and sum."""
    if find_spec("dask") is None or find_spec("distributed") is None:
        raise UsageError("--cluster and --checkpoint need Dask: pip install mercer[cli,dask]")
    import dask

    settings = QUIET | (MEMORY if asked == "local" else {})
    with dask.config.set(settings), _one_sentence():
        if asked is None:
            yield
            return
        for name in ("distributed", "asyncio"):  # whatever goes wrong is told in one sentence
            logging.getLogger(name).setLevel(logging.CRITICAL)
        with _local(memory) if asked == "local" else _remote(asked):
            yield


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Workers that ended, as an error that commands expect."""
    try:
        yield
    except WorkerError as error:
        raise ValueError(str(error)) from error


@contextmanager
def _local(memory: float) -> Iterator[None]:
    """Processes of one thread, one for each core. Ctrl-C is of this process alone, which ends them."""
    if memory < LEAST:
        raise UsageError(
            f"--cluster local takes --memory {LEAST // 1_000_000}MB or more, which each of its workers may hold; "
            "give that, or --checkpoint alone."
        )
    from distributed import Client, LocalCluster

    n = os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))
    n = n or 1
    with deaf("SIGINT"):  # as are the threads begun here, and the workers that these start
        cluster = LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            dashboard_address=":0",
            memory_limit=int(memory),
            silence_logs=logging.CRITICAL,
        )
    client = None
    try:
        client = Client(cluster)
        cluster.scale(n)
        client.wait_for_workers(n)
        yield
    finally:
        with deaf("SIGALRM"):  # by which an interruption is raised again and again
            if client is not None:
                client.close(timeout=ENDING)
            cluster.close(timeout=ENDING)


@contextmanager
def deaf(name: str) -> Iterator[None]:
    """This thread, and those that begin in the block for good, do not hear the signal; it waits."""
    number = getattr(signal, name, None)
    if number is None or not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    # it hears again whatever thread begins it, and tells of semaphores of workers that were killed
    told = "ignore:resource_tracker:UserWarning"
    sys.warnoptions.append(told)
    resource_tracker.ensure_running()
    sys.warnoptions.remove(told)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _remote(address: str) -> Iterator[None]:
    from distributed import Client

    try:
        # one that never connects would stay the default client of the process
        Client(address, timeout=ANSWER, set_as_default=False).close()
        client = Client(address, timeout=ANSWER)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"--cluster {address}: no scheduler answers there; give its address, such as tcp://host:8786, or local."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=ANSWER)
        except TimeoutError as error:
            raise ValueError(
                f"the cluster at {address} has no worker; start one: dask worker {address}"
            ) from error
        yield
