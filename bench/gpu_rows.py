"""Rows that lie on a GPU, the nearest of each, and structured frequencies there: seconds, and errors
beside the CPU.

`./do bench gpu_rows`, on a machine with a GPU; half a minute. `MERCER_BENCH_ROWS=500` for fewer rows.
"""

import os
from collections.abc import Iterator

import numpy as np

from bench.data import DataMissing
from bench.gpu_gp import timed
from bench.harness import Measure, Quality
from mercer.gpu.devices import interpreted, missing
from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.lifts import RandomFourier
from mercer.models import KernelRidge
from mercer.models.maps import FittedMap

ROWS = int(float(os.environ.get("MERCER_BENCH_ROWS", "100_000")))
COLUMNS = (1000, 2000, 4000, 8000)  # of rows for structured frequencies


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_rows needs a GPU: {why}")
    yield from _nearest()
    yield from _tensors()
    for d in COLUMNS if ROWS > 10_000 else (40,):
        yield from _structured(d)


def _nearest() -> Iterator[Measure]:
    """In one launch, beside blocks that are formed and sorted."""
    from mercer.gpu import neighbours
    from mercer.gpu.operator import GPUOperator

    X = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
    op = GPUOperator(Gaussian(8**0.5), X)
    some = GPUOperator(Gaussian(8**0.5), X[:2048], X)
    for k in (1, 5, 10, 30):
        (index, _), took = timed(lambda k=k: op.nearest(k))
        held, neighbours.MAX_KEPT = neighbours.MAX_KEPT, 0
        (want, _), before = timed(lambda k=k: some.nearest(k))
        neighbours.MAX_KEPT = held
        wrong = float((index[: len(want)] != want).double().mean())
        told = Quality("share that differs", wrong, 1e-3, 0.0, False)
        name = f"{k} nearest of {ROWS:,} rows, d = 8 (peer: blocks, by 2,048 rows)"
        yield Measure(name, took, before * ROWS / len(want), None, "s", quality=told)


def _tensors() -> Iterator[Measure]:
    """K @ v of tensors, and ridge of tensors beside that of arrays."""
    import torch

    place = "cpu" if interpreted() else "cuda:0"
    X = np.random.default_rng(0).normal(size=(ROWS, 10)).astype(np.float32)
    T, v = torch.from_numpy(X).to(place), torch.ones(ROWS, device=place)
    y = np.sin(X[:, 0]).astype(np.float32)
    k = Gaussian(10**0.5)
    there = timed(lambda: k.operator(T) @ v)[1]
    name = f"k.operator(X) @ v, n = {ROWS:,}, tensors (peer: arrays, device='cuda')"
    from mercer.gpu.operator import GPUOperator

    ones = np.ones(ROWS, np.float32)
    yield Measure(name, there, timed(lambda: GPUOperator(k, X) @ ones)[1], None, "s")
    block = slice(0, min(ROWS, 20_000))
    yield Measure(
        f"k(X), n = {block.stop:,}, a tensor", timed(lambda: k(T[block]))[1], None, unit="s"
    )
    m, w = KernelRidge(k, 1.0), KernelRidge(k, 1.0, device="cuda")
    ours, took = timed(lambda: m.fit(T, torch.from_numpy(y).to(place)).predict(T))
    theirs, arrays = timed(lambda: w.fit(X, y).predict(X))
    told = Quality(f"difference; {m.plan_.why:.60}", float(np.abs(ours.cpu().numpy() - theirs).max()), 1e-4, 0.0, False)  # fmt: skip
    yield Measure(
        f"ridge of {ROWS:,} tensors (peer: arrays)", took, arrays, None, "s", quality=told
    )


def _structured(d: int) -> Iterator[Measure]:
    """Moments of 8,192 features in blocks, beside one matrix of the same frequencies."""
    import torch

    from mercer.gpu import structured

    n, D = min(ROWS, 1 << 15), 8192 if ROWS > 10_000 else 128
    X = np.random.default_rng(d).normal(size=(n, d)).astype(np.float32)
    lift = RandomFourier(Gaussian(d**0.5), D, frequencies="structured", random_state=0)
    phi = FittedMap.fit(lift, Table(X[:100]))
    gpu, coef = "cpu" if interpreted() else "cuda", np.random.default_rng(0).normal(size=D) / D
    found = {}
    least = structured.MIN_BLOCK
    for how, floor in (("blocks", 256), ("matrix", 1 << 20)):
        structured.MIN_BLOCK = floor
        made = phi._there(np.zeros(D), gpu)
        side, work = made._frequencies(np.zeros(d)), made._workspace()
        T, root = torch.from_numpy(X).to(gpu), torch.ones(n, device=gpu)
        took = timed(lambda m=made, s=side, w=work, T=T, r=root: m._pieces(T, s, r, w))[1]
        found[how] = took, made.linear(X[:2000], coef[:, None])[:, 0]
        del made, side, work, T
    structured.MIN_BLOCK = least
    want = phi.linear(Table(X[:2000].astype(np.float64)), coef, 0.0)
    errors = [float(np.abs(out - want).max() / np.abs(want).max()) for _, out in found.values()]
    told = Quality(f"error (matrix: {errors[1]:.1e})", errors[0], 1e-4, 0.0, False)
    name = f"structured features, n = {n:,}, d = {d:,}, D = {D:,}, blocks (peer: a matrix)"
    yield Measure(name, found["blocks"][0], found["matrix"][0], None, "s", quality=told)
