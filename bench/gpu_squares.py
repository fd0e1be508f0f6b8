"""Z'Z of features in two float16 pieces: launches of `gpu.squares` beside two products of PyTorch,
by the device's own clock, each with the error of its diagonal and of all else against float64; then
parts of the pass over features: rows to the device, and the tile of cosines.

`./do bench gpu_squares`, on a machine with a GPU; half a minute. `MERCER_BENCH_ROWS=256` for fewer
rows.
"""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure, Quality
from mercer.gpu.devices import interpreted, missing
from mercer.gpu.features import FourierMoments
from mercer.gpu.squares import SquareShape, SquareSums
from mercer.gpu.stream import batches

ROWS = int(float(os.environ.get("MERCER_BENCH_ROWS", "65536")))
WIDTH = 4224 if ROWS > 1000 else 256
SHAPES = ((64, 8, 3), (32, 8, 3))


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_squares needs a GPU: {why}")
    import torch

    device = "cpu" if interpreted() else "cuda"
    angle = 6.283 * torch.rand((ROWS, WIDTH), device=device, dtype=torch.float32)
    Z = angle.cos()
    del angle
    H = Z.half()
    L = (Z - H.float()).half()
    exact = _exact(H, L)
    unit = torch.ones(WIDTH, dtype=torch.float64, device=device)
    for rows, warps, stages in SHAPES:
        sums = SquareSums.zero(WIDTH, device)
        sums = replace(sums, shape=SquareShape(rows, warps, stages))
        sums.add(H, L, unit, 0, ROWS)
        found = sums.whole()
        took = _seconds(lambda sums=sums: sums.add(H, L, unit, 0, ROWS))
        splits = len(sums.total)
        yield _measure(
            f"rows {rows}, {warps} warps, {stages} stages, {splits} splits", took, found, exact
        )
    yield _measure(
        "two products of PyTorch, float32", _seconds(lambda: _torch(H, L)), _torch(H, L), exact
    )
    for n in (1024, 8192):
        found = _torch(H[:n], L[:n])
        yield _measure(f"the same, {n:,} rows", 1.0, found, _exact(H[:n], L[:n]))
    yield from _parts(device)


def _measure(name, seconds, found, exact) -> Measure:
    gap = (found - exact).abs()
    scale = float(exact.diagonal().mean())
    diagonal = float(gap.diagonal().max()) / scale
    gap.fill_diagonal_(0.0)
    rest = float(gap.max()) / scale
    told = Quality(f"else {rest:.1e}, diagonal", diagonal, 1.0, higher_is_better=False)
    return Measure(f"Z'Z, {name}", seconds * 1e3, None, unit="ms", quality=told)


def _exact(H, L):
    total = 0.0
    for at in range(0, len(H), 8192):
        Z = H[at : at + 8192].double() + L[at : at + 8192].double()
        total = total + Z.T @ Z
    return total


def _torch(H, L):
    import torch

    if H.device.type == "cpu":
        cross = H.T.float() @ L.float()
        return (H.T.float() @ H.float()).double() + cross.double() + cross.T.double()
    cross = torch.mm(H.T, L, out_dtype=torch.float32)
    whole = torch.mm(H.T, H, out_dtype=torch.float32)
    return whole.double() + cross.double() + cross.T.double()


def _parts(device) -> Iterator[Measure]:
    """A pass over ten batches, of which one part alone is done."""
    import torch

    rng, D = np.random.default_rng(0), WIDTH - 128
    X = rng.standard_normal((10 * ROWS, 30), dtype=np.float32)
    cuts = [slice(at, at + ROWS) for at in range(0, len(X), ROWS)]
    took = _seconds(lambda: list(batches([X], cuts, device)))
    yield Measure("rows to the device, 30 columns, a batch", took * 100, None, unit="ms")
    made = FourierMoments(rng.normal(size=(D // 2, 30)), 0.02, np.zeros(D), device)
    side, work = made._frequencies(np.zeros(30)), made._workspace()
    there = torch.from_numpy(X[:ROWS]).to(device)
    ones = torch.ones(ROWS, device=device)
    took = _seconds(lambda: made._pieces(there, side, ones, work))
    yield Measure(
        f"cosines and sines of 30 columns, {D:,} features, a batch", took * 1e3, None, unit="ms"
    )
    y = np.zeros((len(X), 1))
    took = _seconds(
        lambda: made_with(made).fold_moments(X, y, None, np.zeros(len(X), np.uint8), 1), 2
    )
    yield Measure("all of it, a batch", took * 100, None, unit="ms")


def made_with(made):
    """With one target."""
    return replace(made, shift=np.append(made.shift, 0.0))


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
