"""Ridge regression over random Fourier features of rows in host memory, on a GPU: seconds of the
pass beside its limit, the larger of the products on matrix units (at the rate of one large product
in the same run) and the rows over the bus (at the rate of one large copy).

`./do bench gpu_features`, on a machine with a GPU; about a minute. `MERCER_BENCH_ROWS=2000` for
fewer rows.
"""

import os
import time
from collections.abc import Iterator

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure, Quality
from mercer.gpu.devices import interpreted, missing
from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.lifts import RandomFourier
from mercer.models.maps import FittedMap

ROWS = int(float(os.environ.get("MERCER_BENCH_ROWS", "10_000_000")))
SHAPES = ((30, 4096), (10, 1024), (100, 2048))  # columns and features
SOME = 2000  # rows that a map is drawn for
CHECKED = 100_000  # rows whose moments are checked: rounding adds up


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_features needs a GPU: {why}")
    for d, D in SHAPES:
        yield _moments(d, D if ROWS > 10_000 else 128)


def _moments(d: int, D: int) -> Measure:
    rng = np.random.default_rng(d)
    X = rng.standard_normal((ROWS, d), dtype=np.float32)
    Y = np.sin(X[:, :1]).astype(np.float64)
    gpu = "cpu" if interpreted() else "cuda"
    phi = FittedMap.fit(RandomFourier(Gaussian(d**0.5), D, random_state=0), Table(X[:SOME]))
    shift = np.zeros(D + 1)
    fold = np.zeros(ROWS, np.uint8)

    def summed(n):
        return phi.fold_moments(Table(X[:n]), shift, Y[:n], None, fold[:n], 1, gpu)[0]

    checked = min(CHECKED, ROWS)
    S = _exact(phi, X[:checked], gpu)
    error = float(np.abs(summed(checked).S[:D, :D] - S).max() / np.abs(S).max())
    start = time.perf_counter()
    summed(ROWS)
    took = time.perf_counter() - start
    told = Quality("error", error, 1e-5, higher_is_better=False)
    name = f"Fourier features, n = {ROWS:,}, d = {d}, D = {D:,} (peer: the limit)"
    return Measure(name, took, _limit(d, D + 64, gpu), 0.7, "s", quality=told)


def _exact(phi, X, device):
    """Z'Z in float64, on the device."""
    import torch

    there = phi._there(np.zeros(phi.width), device)
    W = torch.from_numpy(there.W).to(device)
    total = 0.0
    for at in range(0, len(X), 20_000):
        angle = torch.from_numpy(X[at : at + 20_000]).to(device).double() @ W.T
        Z = there.scale * torch.cat([angle.cos(), angle.sin()], dim=1)
        total = total + Z.T @ Z
    return total.cpu().numpy()


def _limit(d: int, width: int, device: str) -> float:
    """Seconds of two products of float16 pieces, or of the rows over the bus."""
    import torch

    n = 1 << (16 if device == "cuda" else 8)
    H = torch.randn((n, width), device=device).half()
    by_products = _seconds(lambda: H.T @ H, device) * 2 * ROWS / n
    host = torch.randn((n * 16, d))
    host = host.pin_memory() if device == "cuda" else host
    by_bus = _seconds(lambda: host.to(device, copy=True), device) * ROWS / len(host)
    return max(by_products, by_bus)


def _seconds(f, device) -> float:
    import torch

    best = float("inf")
    for _ in range(10):
        start = time.perf_counter()
        f()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best
