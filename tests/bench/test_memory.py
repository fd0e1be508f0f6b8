"""Peak memory is that of the call alone."""

from functools import partial

import numpy as np

from bench.memory import peak_memory

MB = 2**20


def touch(n_bytes):
    return np.ones(n_bytes, dtype=np.uint8).sum()


def test_peak_memory_is_that_of_the_call_alone():
    ballast = touch(300 * MB)  # a peak of this process must not count
    assert ballast
    small, large = (peak_memory(partial(touch, n * MB)) / MB for n in (1, 120))
    assert small < 30
    assert 115 < large < 160


def test_peak_memory_leaves_the_warmup_out():
    assert peak_memory(partial(touch, 10 * MB), warmup=partial(touch, 200 * MB)) < 40 * MB
