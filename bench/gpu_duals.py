"""Exact duals and landmarks on a GPU beside the same on the CPU of that machine: seconds, gaps,
objectives, and where the time of the duals goes.

`./do bench gpu_duals`, on a machine with a GPU, or with `--only duals` or `--only landmarks`;
`MERCER_BENCH_ROWS=20000` leaves out larger tables, `MERCER_BENCH_PEER=0` the CPU's side. What was
measured is printed at once.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure, Quality
from mercer.gpu.devices import missing
from mercer.kernels import Gaussian, Laplace
from mercer.methods import Landmarks
from mercer.models import KernelRidge, KernelSVC, KernelSVR
from mercer.models.svm import blocks, device, fit, solver

# rows, columns, C, noise, classes, and whether the CPU solves it too
DUALS = (
    (20_000, 8, 1.0, 1.0, 2, True),
    (100_000, 8, 1.0, 1.0, 2, True),
    (30_000, 8, 1.0, 0.3, 5, True),
    (20_000, 100, 10.0, 0.3, 2, True),
    (50_000, 8, 1.0, 1.0, 2, True),
)
# rows, columns, landmarks, and whether the CPU solves it too
RIDGES = (
    (100_000, 10, 3_000, True),
    (200_000, 100, 5_000, False),
    (1_000_000, 10, 10_000, False),
)


def cases(only: Sequence[str] = ("duals", "landmarks")) -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_duals needs a GPU: {why}")
    most = float(os.environ.get("MERCER_BENCH_ROWS", "inf"))
    peer = os.environ.get("MERCER_BENCH_PEER", "1") != "0"
    if "duals" in only:
        for n, *problem, beside in DUALS:
            if n <= most:
                yield from _dual(n, *problem, beside and peer)
        if most >= 20_000:
            yield from _tube(20_000, peer)
    if "landmarks" in only:
        for n, *problem, beside in RIDGES:
            if n <= most:
                yield from _ridge(n, *problem, beside and peer)


def _rows(n, d, noise, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    return X, np.sin(2 * X[:, 0]) + 0.7 * X[:, 1] * X[:, 2] + noise * rng.normal(size=n)


def _warm(model, X, y, *, beside) -> None:
    """What is compiled once is no part of the figures; little memory means blocks on the CPU."""
    model("cuda").fit(X, y).predict(X[:100])
    if beside:
        model("cpu").set_params(memory_limit="20MB").fit(X, y).predict(X[:100])


def _dual(n, d, C, noise, classes, beside) -> Iterator[Measure]:
    X, f = _rows(n, d, noise)
    y = np.digitize(f, np.quantile(f, np.arange(1, classes) / classes))
    new = _rows(20_000, d, noise, 1)[0]

    def model(where):
        return KernelSVC(Gaussian(2.5 * (d / 8) ** 0.5), C=C, via="exact", device=where)

    some = slice(0, min(n, 2_100 * classes))
    _warm(model, X[some], y[some], beside=beside)
    name = f"KernelSVC, n = {n:,}, d = {d}, C = {C:g}, {classes} classes"
    with _parts() as parts:
        gpu, took = _timed(lambda: model("cuda").fit(X, y))
    s = gpu.plan_.settings
    counts = f"{s['support_vectors']:,} vectors, {s['rounds']} rounds, {s['steps']:,} steps"
    _tell(f"{name}: {took:.2f} s, {counts},")
    _tell(f"  gap {gpu.gap_:.1e}, {s['kernel_rows']}, {s['kernel_values']}; seconds of", parts)
    answers, asked = _timed(lambda: gpu.decision_function(new))
    same, cpu_took, cpu_asked = None, None, None
    if beside:
        cpu, cpu_took = _timed(lambda: model("cpu").fit(X, y))
        theirs, cpu_asked = _timed(lambda: cpu.decision_function(new))
        error = abs(gpu.objective_ / cpu.objective_ - 1)
        same = Quality("objectives differ by", error, cpu.gap_ + gpu.gap_, higher_is_better=False)
        far = float(np.abs(answers - theirs).max())
        agree = float(np.mean(_classes(answers) == _classes(theirs)))
        _tell(f"  scores differ by {far:.1e} at most, classes agree on {agree:.5f};")
        _tell(f"  cpu: gap {cpu.gap_:.1e}, {cpu.plan_.settings['kernel_rows']}")
    yield Measure(f"{name} (peer: CPU)", took, cpu_took, unit="s", quality=same)
    yield Measure(f"{name}, 20,000 answers (peer: CPU)", asked, cpu_asked, unit="s")


def _classes(f):
    return f > 0 if f.ndim == 1 else f.argmax(axis=1)


def _tube(n, beside) -> Iterator[Measure]:
    X, y = _rows(n, 8, 0.1)

    def model(where):
        return KernelSVR(Laplace(5.0), C=1.0, device=where)

    _warm(model, X[:3_000], y[:3_000], beside=beside)
    name = f"KernelSVR, Laplace, n = {n:,}, d = 8"
    with _parts() as parts:
        gpu, took = _timed(lambda: model("cuda").fit(X, y))
    _tell(f"{name}: {took:.2f} s, gap {gpu.gap_:.1e}; seconds of", parts)
    same, cpu_took = None, None
    if beside:
        cpu, cpu_took = _timed(lambda: model("cpu").fit(X, y))
        error = abs(gpu.objective_ / cpu.objective_ - 1)
        same = Quality("objectives differ by", error, cpu.gap_ + gpu.gap_, higher_is_better=False)
    yield Measure(f"{name} (peer: CPU)", took, cpu_took, unit="s", quality=same)


def _ridge(n, d, m, beside) -> Iterator[Measure]:
    X, y = _rows(n, d, 0.1)
    X = X.astype(np.float64)

    def model(where, m=m):
        return KernelRidge(
            Gaussian(d**0.5), alpha=1e-2, via=Landmarks(m, "uniform"), device=where,
            random_state=0,
        )  # fmt: skip

    _warm(lambda where: model(where, 100), X[:4_000], y[:4_000], beside=beside)
    gpu, took = _timed(lambda: model("cuda").fit(X, y))
    name = f"ridge over {m:,} landmarks, n = {n:,}, d = {d}"
    _tell(f"{name}: {took:.2f} s, {gpu.n_iter_} steps, residual {gpu.residual_:.1e}, {_memory()}")
    _tell(f"  {gpu.plan_.why}; {gpu.plan_.settings}")
    same, cpu_took = None, None
    answers, asked = _timed(lambda: gpu.predict(X[:20_000]))
    if beside:
        cpu, cpu_took = _timed(lambda: model("cpu").fit(X, y))
        theirs = cpu.predict(X[:20_000])
        error = float(np.abs(answers - theirs).max() / np.abs(theirs).max())
        same = Quality("answers differ by", error, 1e-5, higher_is_better=False)
        _tell(f"  cpu: {cpu.n_iter_} steps, residual {cpu.residual_:.1e}")
    yield Measure(f"{name} (peer: CPU)", took, cpu_took, unit="s", quality=same)
    yield Measure(f"{name}, 20,000 answers", asked, None, unit="s")


def _tell(*what) -> None:
    print(" ", *what, flush=True)


def _timed(f):
    start = time.perf_counter()
    found = f()
    return found, time.perf_counter() - start


def _memory() -> str:
    import torch

    if not torch.cuda.is_available():
        return "no memory of a device"
    most = torch.cuda.max_memory_allocated() / 1e9
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.empty_cache()
    return f"{most:.1f} GB of the device"


@contextmanager
def _parts() -> Iterator[dict[str, str]]:
    """Seconds of the parts of duals: products with kernel rows, blocks of them, steps inside; slopes
    have products of duals that go onto a bound in them."""
    spent: dict[str, list[float]] = {}
    kept, found = [], {}

    def watch(owner, attribute, name):
        inner = getattr(owner, attribute)
        kept.append((owner, attribute, inner))

        def timed(*args, **options):
            out, took = _timed(lambda: inner(*args, **options))
            spent.setdefault(name, []).append(took)
            return out

        setattr(owner, attribute, timed)

    watch(device.DeviceRows, "add", "products")
    watch(blocks.BlockSolver, "_square", "blocks")
    watch(blocks.BlockSolver, "_choose", "choices")
    watch(blocks.BlockSolver, "_slopes", "slopes")
    watch(blocks.BlockSolver, "__init__", "starts")
    watch(solver, "certified", "rounding")
    watch(fit, "operator_of", "operator")
    watch(fit, "support_of", "support")
    watch(blocks.smo, "pairs", "steps")
    watch(blocks, "evaluate", "gaps")
    try:
        yield found
    finally:
        for owner, attribute, inner in kept:
            setattr(owner, attribute, inner)
        found |= {k: f"{sum(v):.2f} in {len(v)}" for k, v in spent.items()}
