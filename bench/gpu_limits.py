"""What limits the fused tiles, by the counters of Nsight Compute: the busy share of each unit in one
launch of every case.

`./do bench gpu_limits`, on a machine with a GPU and `ncu`; half a minute. Clocks are left as they are.
"""

import csv
import io
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure
from mercer.gpu.devices import missing
from mercer.kernels import Gaussian, Laplace

INSIDE = "MERCER_PROFILED"  # the environment's mark of the process that is profiled
ROWS = 100_000
UNITS = {  # what is told, and the counters that may tell it: the first that there is
    "matrix units": (
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
    ),
    "exponentials (XU)": ("sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",),
    "products (FMA)": (
        "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active",
    ),
    "comparisons (ALU)": (
        "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active",
    ),
    "float64": (
        "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
    ),
    "issue": ("smsp__issue_active.avg.pct_of_peak_sustained_active",),
    "L1 and shared": ("l1tex__throughput.avg.pct_of_peak_sustained_active",),
    "L2": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
    "DRAM": ("dram__throughput.avg.pct_of_peak_sustained_elapsed",),
    "warps": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
    "registers": ("launch__registers_per_thread",),
    "microseconds": ("gpu__time_duration.sum",),
}


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_limits needs a GPU: {why}")
    ncu = shutil.which("ncu")
    if ncu is None:
        raise DataMissing("bench gpu_limits needs ncu of Nsight Compute on the path.")
    names, rows = _names(), _profiled(ncu)
    if len(rows) != len(names):
        raise DataMissing(f"ncu told of {len(rows)} launches, not of {len(names)}.")
    for name, row in zip(names, rows, strict=True):
        busy = {unit: _value(row, counters) for unit, counters in UNITS.items()}
        took = busy.pop("microseconds")
        told = ", ".join(f"{unit} {v:.0f}" for unit, v in busy.items() if v == v)
        yield Measure(f"{name}: {told}; % busy, launch", took * 1e-6, None, unit="s")


def _profiled(ncu: str) -> list[dict[str, str]]:
    """The counters of each launch that `_launches` marks, by name."""
    asked = ",".join(_there(ncu))
    command = [
        ncu,
        "--clock-control",
        "none",
        "--profile-from-start",
        "off",
        "--csv",
        "--page",
        "raw",
    ]
    command += ["-k", "regex:product", "--metrics", asked, sys.executable, "-m", "bench.gpu_limits"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent.parent,
        env={**os.environ, INSIDE: "1"},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        raise DataMissing(f"ncu told nothing: {(done.stdout + done.stderr)[-2000:]}")
    found = list(csv.DictReader(io.StringIO("\n".join(lines))))
    units = found[0]  # the line below the names
    scale = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}
    time = UNITS["microseconds"][0]
    for row in found[1:]:
        row[time] = str(float(row[time].replace(",", "")) * scale.get(units[time], 1.0))
    return found[1:]


def _there(ncu: str) -> list[str]:
    """Of each unit the first counter that this version knows; all where it does not say."""
    told = subprocess.run(
        [ncu, "--query-metrics", "--chip", "gh100"], capture_output=True, text=True, check=False
    ).stdout
    known = {line.split()[0] for line in told.splitlines() if "__" in line}
    out = []
    for counters in UNITS.values():
        named = [c for c in counters if c.partition(".")[0] in known or c.startswith("launch__")]
        out += (named or list(counters))[:1] if known else list(counters)
    return out


def _value(row: dict[str, str], counters: tuple[str, ...]) -> float:
    for counter in counters:
        try:
            return float(row.get(counter, "").replace(",", ""))
        except ValueError:
            continue
    return float("nan")


def _names() -> list[str]:
    return [name for name, _ in _launches(make=False)]


def _launches(make: bool = True) -> Iterator[tuple[str, object]]:
    """Names, and what launches one kernel of ours each."""
    from bench.gpu import THREE

    shapes = [(Gaussian(d**0.5), f"Gaussian, d = {d}", d) for d in (3, 32, 128)]
    shapes += [(THREE, f"three terms, d = {d}", d) for d in (8, 32)]
    shapes += [(Laplace(32.0, norm=1), "Laplace of the 1-norm, d = 32", 32)]
    for k, name, d in shapes:
        for precision in ("tf32", "float32"):
            if "1-norm" in name and precision == "tf32":
                continue
            yield f"{name}, {precision}", _product(k, d, 1, precision) if make else None
    yield "Gaussian, d = 10, 16 sides", _product(Gaussian(3.0), 10, 16, None) if make else None
    yield "Gaussian, d = 10, float64", _product(Gaussian(3.0), 10, 1, "float64") if make else None
    yield "Gaussian, d = 10, a block formed", _block() if make else None
    for part in ("cosines", "moments"):
        yield f"features, d = 30, D = 4,096, {part}", _features(part) if make else None


def _product(k, d, q, precision):
    import torch

    from mercer.gpu.operator import GPUOperator

    g = torch.Generator("cuda")
    g.manual_seed(0)
    n = ROWS if precision != "float64" else ROWS // 4
    X, V = (torch.randn(s, device="cuda", generator=g) for s in ((n, d), (n, q)))
    op = GPUOperator(k, X, precision=precision)
    return lambda: op @ V


def _block():
    import torch

    from mercer.gpu.operator import GPUOperator

    op = GPUOperator(Gaussian(3.0), torch.randn((ROWS, 10), device="cuda"))
    cols = torch.arange(512, device="cuda")
    return lambda: op.block(slice(None), cols, torch.float32)


def _features(part):
    import torch

    from mercer.gpu import features
    from mercer.gpu.squares import SquareSums

    W, rows = np.random.default_rng(0).normal(size=(2048, 30)), 1 << 14
    made = features.FourierMoments(W, 1.0, np.zeros(4097), "cuda")
    side, work = made._frequencies(np.zeros(30)), made._workspace()
    X, root = torch.randn((rows, 30), device="cuda"), torch.ones(rows, device="cuda")
    made._pieces(X, side, root, work)
    if part == "cosines":
        return lambda: made._pieces(X, side, root, work)
    total = SquareSums.zero(made.width, "cuda")
    unit = torch.ones(made.width, dtype=torch.float64, device="cuda")
    return lambda: total.add(work.H, work.L, unit, 0, rows)


def _run_inside() -> None:
    """Each launch once to compile, and once while counters are read."""
    import torch

    for _, launch in _launches():
        launch()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        launch()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


if __name__ == "__main__" and os.environ.get(INSIDE):
    _run_inside()
