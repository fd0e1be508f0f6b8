"""What fused tiles do beside `K @ v`: many right-hand sides, gradients by inputs and parameters,
votes and neighbours, in G kernel values a second, each with its error against float64 of the CPU on
some rows.

`./do bench gpu_tiles`, on a machine with a GPU; about a minute. `MERCER_BENCH_ROWS=2000` for
smaller tables.
"""

import os
import time
from collections.abc import Iterator

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure, Quality
from mercer.gpu.devices import interpreted, missing
from mercer.kernels import Gaussian, Laplace, Matern
from mercer.models import NadarayaWatson
from mercer.operators import KernelOperator

ROWS = int(float(os.environ.get("MERCER_BENCH_ROWS", "100_000")))
SOME = 200  # rows that are checked
SIDES = (2, 8, 16, 32, 64)
COLUMNS = (5, 20, 100)


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_tiles needs a GPU: {why}")
    rng = np.random.default_rng(0)
    for d in COLUMNS:
        X = rng.normal(size=(ROWS, d))
        yield from _sides(X, rng)
        yield from _gradients(X, rng)
    yield _votes(rng)


def _sides(X, rng) -> Iterator[Measure]:
    """K @ V for V of several columns."""
    from mercer.gpu.operator import GPUOperator

    d = X.shape[1]
    k, op = Gaussian(d**0.5), GPUOperator(Gaussian(d**0.5), X)
    for q in SIDES:
        V = rng.normal(size=(len(X), q))
        found, took = _timed(lambda V=V: op @ V)
        exact = KernelOperator(k, X[:SOME], X) @ V
        yield _rate(f"K @ V, d = {d}, {q} columns", len(X), took, _gap(found[:SOME], exact), 5e-6)


def _gradients(X, rng) -> Iterator[Measure]:
    """Input gradients, and pullbacks to one bandwidth and to one a column."""
    from mercer.gpu.operator import GPUOperator

    d, n = X.shape[1], len(X)
    A = rng.normal(size=n)
    for k in (Gaussian(d**0.5), Laplace(d**0.5), Laplace(float(d), norm=1)):
        own = (
            X if type(k) is Gaussian else X[: max(SOME, n // 10)]
        )  # in float64 where kinks ask for it
        op = GPUOperator(k, own, X)
        found, took = _timed(lambda op=op: op.input_gradients(A))
        exact = KernelOperator(k, X[:SOME], X).input_gradients(A)
        error = _gap(found[:SOME].cpu().numpy(), exact)
        name = f"input gradients of {type(k).__name__}, norm {getattr(k, 'norm', 2)}, d = {d}"
        yield _rate(name, n, took * n / len(own), error, 1e-4)
    for k in (Matern(d**0.5), Matern((d**0.5,) * d)):
        op, some = GPUOperator(k, X), GPUOperator(k, X[:SOME], X)
        _, took = _timed(lambda op=op: op.pullback(A, A))
        exact = KernelOperator(k, X[:SOME], X).pullback(A[:SOME], A)
        error = _gap(some.pullback(A[:SOME], A), exact)
        yield _rate(f"pullback to {len(exact)} bandwidths, d = {d}", n, took, error, 1e-3)


def _votes(rng) -> Measure:
    """Nadaraya-Watson at as many queries as points; the same model on the CPU by some of them."""
    X = rng.normal(size=(ROWS, 8))
    m = NadarayaWatson(Gaussian(0.5), device="cuda").fit(X, np.sin(X[:, 0]))
    found, took = _timed(lambda: m.predict(X))
    exact = m.set_params(device="cpu").predict(X[:SOME])
    return _rate("votes, d = 8", ROWS, took, _gap(found[:SOME], exact), 5e-6)


def _rate(name, n, seconds, error, bound) -> Measure:
    told = Quality("error", error, bound, higher_is_better=False)
    rate = n**2 / seconds / 1e9
    return Measure(
        f"{name}, n = {n:,}", rate, None, None, "G/s", lower_is_better=False, quality=told
    )


def _gap(ours, exact) -> float:
    return float(np.linalg.norm(np.asarray(ours) - exact) / np.linalg.norm(exact))


def _timed(f):
    """The result, and the best of three by the host's clock, answers at the host, after one that
    compiles."""
    import torch

    best = float("inf")
    for i in range(1 if interpreted() else 4):
        start = time.perf_counter()
        out = f()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        if i or interpreted():
            best = min(best, time.perf_counter() - start)
    return out, best
