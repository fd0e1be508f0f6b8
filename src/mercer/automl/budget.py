"""What a fit may take: seconds, by a clock, and bytes, by what each stage was measured to take of a
limit on memory.

A limit is of resident anonymous memory beyond what the imported program has: pages of files, such
as those of rows that wait on disk, are the system's to keep or drop. `memory` in all of these is
`working(limit)`.
"""

from __future__ import annotations

import ctypes
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache

from threadpoolctl import threadpool_info, threadpool_limits

from mercer.ops.threads import limit, n_threads
from mercer.tables.arrow import pa

Progress = Callable[[str], None]
# compiled loops, threads, libraries' own buffers: 50 to 115 MB, the latter where loops are compiled
# for the first time
FIXED_BYTES = 90e6
MIN_MEMORY = 150e6  # the smallest limit under which everything that is smallest fits
# bytes for which there may be one more: about 9 MB of it were measured to be lost to buffers
BYTES_A_THREAD = 60e6
# the same for an arena of glibc's, each of which keeps what its threads have freed: up to eight a
# core took 1.35 of a limit of 150 MB
BYTES_AN_ARENA = 120e6
M_ARENA_MAX = -8  # of mallopt
# scikit-learn's: leaves, bins, bytes of a bin's sums
TREE_LEAVES = 31
TREE_BINS = 256
TREE_SUMS = 20
MAX_CANDIDATES = 8  # candidates whose predictions of the holdout are kept
MOMENT_BYTES = 8.0  # bytes of an entry of moments


class OutOfTime(Exception):
    """Time was up before something that may be left out was done."""


def silent(text: str) -> None:
    """Progress that nobody asked for."""


@dataclass
class Clock:
    """Seconds since it was made, and how many are left of the budget.

    >>> Clock(60).left(0.5) <= 30
    True
    """

    budget: float
    say: Progress = silent
    start: float = field(default_factory=time.perf_counter)

    @property
    def spent(self) -> float:
        return time.perf_counter() - self.start

    def left(self, share: float = 1.0) -> float:
        """Seconds until that share of the budget is spent; negative when it is."""
        return share * self.budget - self.spent

    def check(self) -> None:
        """Raise `OutOfTime` where the budget is spent."""
        if self.left() < 0:
            raise OutOfTime


def check_memory(limit: float) -> float:
    """The limit, or a sentence where it is too small for anything.

    >>> check_memory(1.4e8)
    Traceback (most recent call last):
    ...
    ValueError: memory of 140 MB is too little to fit anything; the smallest that works is 150 MB.
    """
    if limit < MIN_MEMORY:
        raise ValueError(
            f"memory of {limit / 1e6:,.3g} MB is too little to fit anything; the smallest that works is {MIN_MEMORY / 1e6:.0f} MB."
        )
    return limit


def working_memory(limit: float) -> float:
    """What is left for arrays.

    >>> working_memory(4e9)
    3910000000.0
    """
    return limit - FIXED_BYTES


# reading
def batch_bytes(memory: float) -> int:
    """Bytes of a batch of cells: each is copied, filtered, cut and read as numbers on its way, a
    column or more at a time."""
    return int(memory / 32)


def batch_rows(memory: float, cells: float, columns: int = 0) -> int:
    """Rows of a batch, by the bytes of a row's cells and, where it is known, the number of its
    treated columns.

    >>> batch_rows(1e8, 100), batch_rows(1e8, 100, 1_000)
    (31250, 260)
    """
    return max(256, int(batch_bytes(memory) / max(cells, 12.0 * columns, 1.0)))


def sample_cells(memory: float) -> int:
    """Cells of the sample from which treatments are decided: some texts of 20 bytes, and numbers
    that are read from them."""
    return int(memory / 8 / 24)


def buffer_bytes(memory: float) -> float:
    """Treated rows of one side that are held before they go to disk."""
    return memory / 12


# rows
def training_rows(memory: float, columns: int, vectors: int) -> int:
    """Training rows that are held at once, by all that is not a stream: they, those that do not
    validate, and a sample of these.

    >>> training_rows(3.9e9, 50, 2)
    1504629
    """
    return max(2_000, int(memory / 12 / (4 * columns + 8 * vectors)))


def holdout_rows(memory: float, columns: int, vectors: int, n_classes: int) -> int:
    """Held-out rows that are evaluated: their columns, what each candidate predicts of them, and
    what metrics take."""
    outputs = max(n_classes, 1)
    return max(
        1_000,
        int(
            memory
            / 5
            / (4 * columns + 8 * vectors + 8 * (MAX_CANDIDATES * (outputs + 1) + 4 * outputs + 14))
        ),
    )


# search
def max_features(memory: float, copies: int = 20) -> int:
    """Features of which so many square arrays fit into half: the moments of folds, their sums and
    factors.

    >>> max_features(3.9e9), max_features(6e7)
    (3491, 433)
    """
    return int(math.sqrt(memory / 2 / (MOMENT_BYTES * copies)))


def feature_cache_bytes(memory: float) -> float:
    """Features of rows that are kept between passes."""
    return min(float(512 << 20), memory / 6)


def max_rows(memory: float, bytes_a_row: float, share: float = 1 / 8) -> int:
    """Rows of so many bytes that a share of the memory holds."""
    return max(64, int(memory * share / bytes_a_row))


def max_cell_rows(memory: float, copies: float) -> int:
    """Rows of which a square array of so many bytes a pair fits into a third."""
    return int(math.sqrt(memory / 3 / copies))


# trees
def tree_rows(memory: float, columns: int, n_classes: int) -> int:
    """Rows that trees may be grown on: float32, float64, that again without those that stop them,
    and bins; scores and gradients.

    0 where their histograms alone are too much.
    """
    left = memory / 2 - float(TREE_LEAVES * TREE_BINS * TREE_SUMS) * columns
    rows = int(left / (22 * columns + 40 * max(n_classes, 1) + 24))
    return rows if rows >= 1_000 else 0


@contextmanager
def limited_threads(memory: float) -> Iterator[None]:
    """As many threads as there is memory for: each keeps buffers of its own, in Arrow, BLAS and the
    allocators.

    What is computed does not depend on their number.
    """
    most = max(2, int(memory / BYTES_A_THREAD))
    former = pa.cpu_count()
    if (mallopt := _of_glibc("mallopt")) is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(M_ARENA_MAX, max(2, int(memory / BYTES_AN_ARENA)))
    with limit(min(n_threads(), most)), threadpool_limits(most) if _many(most) else nullcontext():
        pa.set_cpu_count(min(former, most))
        try:
            yield
        finally:
            pa.set_cpu_count(former)


def _many(most: int) -> bool:
    """Whether a library would use more."""
    return any(library["num_threads"] > most for library in threadpool_info())


def release_memory() -> None:
    """Give memory that nothing uses back to the system: what the allocators keep would count in the
    next stage."""
    pa.default_memory_pool().release_unused()
    if (trim := _of_glibc("malloc_trim")) is not None:
        trim(0)


@cache
def _of_glibc(name: str) -> Callable[..., int] | None:
    """A function of glibc's, where that is the C library."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), name, None)
