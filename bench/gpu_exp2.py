"""Powers of two on two units of the GPU: so many exponentials in eight as polynomials on the units
of products, the rest on the unit of special functions; G kernel values a second by the device's own
clock, and the error against float64 on some rows.

`./do bench gpu_exp2`, on a machine with a GPU; about a minute. `MERCER_BENCH_ROWS=2000` for smaller
tables.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.data import DataMissing
from bench.gpu import THREE
from bench.harness import Measure, Quality
from mercer.gpu.devices import interpreted, missing
from mercer.kernels import Gaussian, Matern

ROWS = int(float(os.environ.get("MERCER_BENCH_ROWS", "200_000")))
SOME = 500  # rows that are checked
SHARES = (0, 1, 2, 3)
BOUNDS = {"tf32": 5e-3, "float32": 5e-6}
CASES = [  # name, kernel, columns, precision, and launches beside the one that is chosen
    ("Gaussian", Gaussian(8**0.5), 8, "tf32", ()),
    ("Gaussian", Gaussian(8**0.5), 8, "float32", ()),
    ("Gaussian", Gaussian(32**0.5), 32, "float32", ()),
    ("Matern-3/2", Matern(4.0), 8, "tf32", ()),
    ("three terms", THREE, 8, "tf32", ((128, 64, 4, 3), (128, 128, 8, 3), (64, 64, 4, 3))),
    ("three terms", THREE, 32, "tf32", ((128, 128, 8, 3),)),
]


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_exp2 needs a GPU: {why}")
    rng = np.random.default_rng(0)
    for name, kernel, d, precision, shapes in CASES:
        X = rng.normal(size=(ROWS, d)).astype(np.float32)
        yield from _shares(f"{name}, d = {d}, {precision}", kernel, X, precision, shapes)


def _shares(name, kernel, X, precision, shapes) -> Iterator[Measure]:
    import torch

    from mercer.gpu import launch
    from mercer.gpu.choices import Shape
    from mercer.gpu.operator import GPUOperator

    op, chosen = GPUOperator(kernel, X, precision=precision), launch.shape_of
    v = torch.randn((len(X), 1), device=op.device, dtype=torch.float32)
    exact = GPUOperator(kernel, X[:SOME], X, precision="float64") @ v.double()
    for shape in (None, *shapes):
        if shape is not None:
            launch.shape_of = lambda *a, shape=shape: Shape(*shape)
        for share in SHARES if shape is None else (0, 2):
            tiles = replace(op.tiles, software=share)
            seconds = _seconds(lambda tiles=tiles: tiles.times(v))
            error = float((tiles.times(v)[0][:SOME] - exact).norm() / exact.norm())
            told = Quality("error", error, BOUNDS[precision], higher_is_better=False)
            label = f"{name}, {share}/8{'' if shape is None else f', {shape}'}"
            rate = len(X) ** 2 / seconds / 1e9
            yield Measure(label, rate, None, unit="G/s", lower_is_better=False, quality=told)
        launch.shape_of = chosen


def _seconds(f, repeats=5) -> float:
    """The median by the device's own clock, after one that compiles."""
    import time

    import torch

    f()
    times = []
    for _ in range(1 if interpreted() else repeats):
        if interpreted():
            start = time.perf_counter()
            f()
            times.append(time.perf_counter() - start)
            continue
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        f()
        ended.record()
        torch.cuda.synchronize()
        times.append(began.elapsed_time(ended) / 1e3)
    return float(np.median(times))
