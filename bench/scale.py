"""Ridge regression over the features of a Dask collection: CPU seconds of two worker processes beside
those of one process, what a task costs beside its work, and memory from 10^6 to 10^8 rows.

Rows are made where they are read, so that the largest collection is never held; shapes are drawn by
a seed. `MERCER_BENCH_ROWS=1e7` leaves out collections of more rows.
"""

import os
import time
from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np

from bench.harness import Measure
from mercer import KernelRidge
from mercer.engines.tree import runs
from mercer.kernels import Gaussian
from mercer.methods import Fourier

COLUMNS, FEATURES, PART = 20, 64, 100_000
SHARE, TASK_MS, FLAT = 0.85, 5.0, 1.1


def collection(rows: int, part: int, columns: int = COLUMNS) -> tuple[Any, Any]:
    """Rows that the number of their partition gives, and a smooth target."""

    def make(block: Any, block_info: Any = None) -> Any:
        rng = np.random.default_rng(block_info[0]["chunk-location"][0])
        return rng.normal(size=block.shape)

    blank = da.zeros((rows, columns), chunks=(part, columns))
    X = blank.map_blocks(make, dtype=float)
    return X, np.sin(X[:, 0]) + X[:, 1]


def fitted(rows: int, part: int, features: int, columns: int = COLUMNS) -> KernelRidge:
    m = KernelRidge(Gaussian(4.0), via=Fourier(features), random_state=0)
    return m.fit(*collection(rows, part, columns))


def worker_seconds(client: Any) -> float:
    return sum(client.run(time.process_time).values())


def rate(client: Any, rows: int, part: int, features: int, columns: int) -> Measure:
    """CPU seconds of one process over those of the workers, the better of three, in turn."""
    ours, peer, models = [], [], []
    for _ in range(3):
        began = worker_seconds(client)
        models.append(fitted(rows, part, features, columns))
        ours.append(worker_seconds(client) - began)
        began = time.process_time()
        with dask.config.set(scheduler="synchronous"):
            models.append(fitted(rows, part, features, columns))
        peer.append(time.process_time() - began)
    same = all(np.array_equal(models[0].coef_, m.coef_) for m in models)
    name = f"CPU of 2 workers beside 1 process: {rows:,} x {columns}, D = {features}"
    return Measure(
        name, min(ours), min(peer), SHARE, "CPU s", quality=None if same else "the models differ"
    )


def overhead(partitions: int) -> Measure:
    """Wall milliseconds of a task (a run of partitions) with next to no work, of whole fits: their
    graph, a first pass and the solution are in it."""

    def seconds() -> float:
        began = time.perf_counter()
        fitted(50 * partitions, 50, 4, 2)
        return time.perf_counter() - began

    tasks = len(runs(partitions))
    there = min(seconds() for _ in range(3))
    name = f"a task of {partitions // tasks} partitions, of {tasks}, 50 rows each"
    return Measure(name, 1000 * there / tasks, TASK_MS, 1.0, "ms")


def peak(rows: int) -> float:
    """The most resident bytes of two fresh workers."""
    with two_workers() as client:
        fitted(10 * PART, PART, FEATURES)
        fitted(rows, PART, FEATURES)
        return float(max(client.run(_resident).values()))


def _resident() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def two_workers() -> Any:
    return distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=":0")


def cases() -> Iterator[Measure]:
    most = float(os.environ.get("MERCER_BENCH_ROWS", "inf"))
    rng = np.random.default_rng(19)
    with two_workers() as client:
        fitted(2000, 1000, 32)  # imports and compiled loops of the workers
        for features in (64, 512):
            rows = int(rng.integers(4, 8)) * PART // (1 if features == 64 else 4)
            yield rate(client, 6 * rows, rows // 8, features, int(rng.integers(8, 32)))
        for partitions in (63, 400, 4000):
            yield overhead(partitions)
    small = peak(10**6)
    for rows in (10**7, 10**8):
        if rows <= most:
            name = f"resident memory of a worker, {rows:,} rows beside 10^6"
            yield Measure(name, peak(rows) / 1e6, small / 1e6, 1 / FLAT, "MB")
