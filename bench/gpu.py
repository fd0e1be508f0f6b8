"""Fused tiles on a GPU: products and exact ridge, each beside the figure that was asked for (the
ratio is ours over that) and with its error against float64; torch by chunks in the same run.

`./do bench gpu`, on a machine with a GPU, torch and triton; elsewhere it says what is missing.
"""

import time
from collections.abc import Iterator

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure, Quality
from mercer.gpu.devices import missing
from mercer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial

THREE = 0.5 * Gaussian(3.0) + 0.1 * Linear() * Polynomial(2, bias=0.5) + Matern(4.0)
PRODUCTS = [  # name, kernel, columns, rows, G values a second asked for in TF32 and at 1e-6
    ("Gaussian", Gaussian(3**0.5), 3, 200_000, 3000, 1700),
    ("Gaussian", Gaussian(8**0.5), 8, 200_000, 3000, 1700),
    ("Gaussian", Gaussian(20**0.5), 20, 200_000, None, None),
    ("Gaussian", Gaussian(32**0.5), 32, 200_000, 2500, 1200),
    ("Gaussian", Gaussian(128**0.5), 128, 200_000, 1200, 400),
    ("Gaussian", Gaussian(28.0), 784, 60_000, None, None),
    ("Gaussian", Gaussian(1.0), 3, 1_000_000, None, 1e3 / 0.6),
    ("three terms", THREE, 8, 200_000, 1500, None),
    ("three terms", THREE, 32, 200_000, 1500, None),
    ("Laplace", Laplace(2.0), 3, 100_000, None, None),
    ("Laplace", Laplace(6.0), 32, 100_000, None, None),
    ("Laplace, 1-norm", Laplace(32.0, norm=1), 32, 60_000, None, None),
]
BOUNDS = {"tf32": 5e-3, "float32": 5e-6}
RIDGE = [(100_000, 10, None), (1_000_000, 10, 45.0)]  # rows, columns, seconds asked for


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu needs a GPU: {why}")
    import torch

    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    g = torch.Generator("cuda")
    g.manual_seed(0)
    for name, k, d, n, *asked in PRODUCTS:
        yield from _products(torch, g, name, k, d, n, asked)
    for n, d, seconds in RIDGE:
        yield _ridge(torch, n, d, seconds)


def _products(torch, g, name, k, d, n, asked) -> Iterator[Measure]:
    """K @ v in G values a second, its error by 2,000 of its rows."""
    from mercer.gpu.operator import GPUOperator

    X, v = (torch.randn(s, device="cuda", generator=g) for s in ((n, d), (n,)))
    some = slice(0, 2000)
    exact = GPUOperator(k, X[some], X, precision="float64") @ v.double()
    for (precision, bound), floor in zip(BOUNDS.items(), asked, strict=True):
        op = GPUOperator(k, X, precision=precision)
        rate = n * n / _seconds(torch, lambda op=op, v=v: op @ v) / 1e9
        error = float(((op @ v)[some] - exact).norm() / exact.norm())
        told = Quality("error", error, bound, higher_is_better=False)
        label = f"{name}, n = {n:,}, d = {d}, {precision}"
        yield Measure(label, rate, floor, 1.0, "G/s", lower_is_better=False, quality=told)
    if type(k) is Gaussian and n <= 200_000:
        yield Measure(
            f"{name}, n = {n:,}, d = {d}, torch by chunks",
            _by_chunks(torch, k, X, v),
            None,
            unit="G/s",
        )


def _by_chunks(torch, k, X, v) -> float:
    """The formula in torch over chunks of rows."""

    def run():
        for at in range(0, len(X), 4096):
            torch.exp(-0.5 / k.bandwidth**2 * torch.cdist(X[at : at + 4096], X).square()) @ v

    return len(X) ** 2 / _seconds(torch, run, 1) / 1e9


def _ridge(torch, n, d, asked) -> Measure:
    """Exact ridge, alpha = 1, Gaussian(sqrt d): seconds in all, residual by float64 products."""
    from mercer.gpu.operator import GPUOperator
    from mercer.gpu.solve import GPUSolver

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    op = GPUOperator(Gaussian(float(np.sqrt(d))), X)
    found = GPUSolver().init(op, np.ones(n)).solve(y[:, None])
    took = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() / 1e9
    told = Quality("residual", found.residual, 1e-6, higher_is_better=False)
    label = f"ridge, n = {n:,}, d = {d}: {found.steps} steps, {peak:.2f} GB"
    return Measure(label, took, asked, 1.0, "s", quality=told)


def _seconds(torch, f, repeats=5) -> float:
    """The median of some runs by the device's own clock, after one that compiles."""
    f()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        f()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1e3)
    return float(np.median(times))
