"""A step of a Gaussian process's marginal likelihood on a GPU, with its slopes: 20,000 rows beside
GPyTorch (float32, its defaults), 200,000 rows alone; log p(y) beside that of a Cholesky factor in
float64.

Each step by the pivots of its preconditioner, chosen and given, and what it is made of; and what the
seconds of `mercer.costs.pivots` were measured by.

`./do bench gpu_gp`, on a machine with a GPU; about a minute. `MERCER_BENCH_ROWS=2000` leaves out
larger tables.
"""

import math
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from bench.data import DataMissing
from bench.harness import Measure, Quality
from mercer.gpu.devices import interpreted, missing
from mercer.inputs import Table
from mercer.kernels import Gaussian
from mercer.models.gp.quadrature import estimated_likelihood

ROWS = ((2_000, None), (20_000, None), (200_000, 20.0))  # and the seconds asked for
COLUMNS, NOISE = 10, 0.1
STEPS = 3
# of the preconditioner, whose parts are timed
RANKS = {2_000: (None, 200), 20_000: (None, 1600, 1200, 800, 400), 200_000: (None, 3000, 1600)}
PROFILED, KERNELS = 20_000, 30  # rows of a step whose kernels are told, the longest first
PIECES = 1024  # pivots at which seconds are taken apart
GPYTORCH = {
    "its defaults": {},
    "to 1e-3": {
        "cg_tolerance": 1e-3, "max_cg_iterations": 2000, "num_trace_samples": 16,
        "max_preconditioner_size": 100, "max_lanczos_quadrature_iterations": 100,
    },
}  # fmt: skip


def cases() -> Iterator[Measure]:
    if (why := missing()) is not None:
        raise DataMissing(f"bench gpu_gp needs a GPU: {why}")
    most = float(os.environ.get("MERCER_BENCH_ROWS", "inf"))
    for n, asked in ROWS:
        if n <= most:
            yield from _step(n, asked)
            yield from _parts(n)
            yield from _pieces(n)
    if most >= PROFILED:
        yield from _kernels(PROFILED)


def _step(n: int, asked: float | None) -> Iterator[Measure]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, COLUMNS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + math.sqrt(NOISE) * rng.normal(size=n)
    gpu = "cpu" if interpreted() else "cuda"
    kernel, rows = Gaussian(math.sqrt(COLUMNS)), Table(X)

    def ours():
        return estimated_likelihood(kernel, rows, y[:, None], NOISE, 1.0, gpu=gpu)

    found, took = timed(ours)
    name = f"likelihood and slopes, n = {n:,}, d = {COLUMNS}"
    if asked is not None:
        yield Measure(f"{name} (peer: seconds asked for)", took, asked, 1.0, "s")
        return
    exact = _cholesky(X, y, gpu)
    told = abs(found.log - exact) / n
    for how, settings in GPYTORCH.items():
        peer, log = _gpytorch(X, y, gpu, settings)
        theirs = float("nan") if log is None else abs(log - exact) / n
        quality = Quality(f"error of log p a row (theirs {theirs:.1e})", told, 0.005, 0.0, False)
        label = f"{name} (peer: GPyTorch, {how})"
        yield Measure(label, took, peer, 3.0 if n == 20_000 else None, "s", quality=quality)


def _cholesky(X, y, device) -> float:
    """log p(y) exactly."""
    import torch

    T = torch.from_numpy(X).to(device)
    K = torch.exp(-0.5 / COLUMNS * torch.cdist(T, T).square_())
    K.diagonal().add_(NOISE)
    L = torch.linalg.cholesky(K)
    z = torch.linalg.solve_triangular(L, torch.from_numpy(y).to(device)[:, None], upper=False)
    logdet = 2 * float(L.diagonal().log().sum())
    return -0.5 * (float(z.square().sum()) + logdet + len(y) * math.log(2 * math.pi))


def _gpytorch(X, y, device, settings) -> tuple[float | None, float | None]:
    """Seconds of one step there, and log p(y)."""
    try:
        import gpytorch
    except ImportError:
        return None, None
    import torch

    x, t = (torch.from_numpy(A).float().to(device) for A in (X, y))

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, t, likelihood)
            self.mean = gpytorch.means.ZeroMean()
            self.kernel = gpytorch.kernels.RBFKernel()

        def forward(self, rows):
            return gpytorch.distributions.MultivariateNormal(self.mean(rows), self.kernel(rows))

    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(device)
    model = Model(likelihood).to(device)
    likelihood.noise, model.kernel.lengthscale = NOISE, math.sqrt(COLUMNS)
    model.train()
    likelihood.train()
    of = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def step():
        model.zero_grad()
        loss = -of(model(x), t)
        loss.backward()
        return float(loss.detach())

    with ExitStack() as stack:
        for key, value in settings.items():
            stack.enter_context(getattr(gpytorch.settings, key)(value))
        loss, took = timed(step)
    return took, -loss * len(y)


def _parts(n: int) -> Iterator[Measure]:
    """What a step is made of, by the rank of its preconditioner."""
    import torch

    from mercer.gpu import quadrature
    from mercer.gpu.operator import GPUOperator
    from mercer.gpu.solve import GPUSolver

    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, COLUMNS)), rng.normal(size=(n, 1))
    op, d = GPUOperator(Gaussian(math.sqrt(COLUMNS)), X), np.full(n, NOISE)
    target = torch.from_numpy(y).to(op.device)
    for rank in RANKS[n]:
        solver = GPUSolver(tol=1e-4, rank=rank)
        system, made = timed(lambda solver=solver: solver.init(op, d, 17))
        drawn, normals = timed(lambda s=system: quadrature.normals(s, 16, 0))
        found, probed = timed(lambda s=system, E=drawn: quadrature.jacobi(s, E, target, 100, 1e-3))
        solved, took = timed(lambda s=system, x=found.begun: s.solve_there(target, x))
        U = torch.cat([solved[0], found.solved], dim=1)
        slopes = timed(lambda U=U: op.pullback(U, U))[1]
        steps = f"{len(found.alphas)} steps of probes and targets {probed:.4f}, {solved[3]} more {took:.4f}"
        told = f"preconditioner {made:.4f}, normals {normals:.4f}, {steps}, slopes {slopes:.4f}"
        whole = made + normals + probed + took + slopes
        how = f"{system.P.rank:,} pivots {'as chosen' if rank is None else 'as given'}"
        yield Measure(f"n = {n:,}, {how}: {told}: sum", whole, None, unit="s")


def _pieces(n: int) -> Iterator[Measure]:
    """Seconds of the parts of a preconditioner and of a step."""
    import torch

    from mercer.gpu import solve
    from mercer.gpu.operator import GPUOperator

    rank = min(PIECES, n)
    X = np.random.default_rng(n).normal(size=(n, COLUMNS))
    op = GPUOperator(Gaussian(math.sqrt(COLUMNS)), X)
    cols = torch.arange(128, device=op.device)
    system = solve.GPUSolver(rank=rank).init(op, np.full(n, NOISE))
    S, H, root = system.P.S, system.P.root @ system.P.root.T, system.P.root
    one = torch.eye(len(root), dtype=root.dtype, device=root.device)
    V, v = (torch.randn((n, q), dtype=torch.float64, device=op.device) for q in (16, 1))
    parts = {
        "128 columns": lambda: solve._columns(op, S[:, :0], cols, S.dtype),
        "what pivots explain of them": lambda: S @ S[cols].T,
        "S'S in float64": lambda: S.double().T @ S.double(),
        "its root": lambda: torch.linalg.cholesky(H),
        "the inverse": lambda: torch.linalg.solve_triangular(root, one, upper=False),
        "K @ V of 16": lambda: op @ V,
        "K @ V of 16, by norm": lambda: op.normwise(V),
        "K @ v": lambda: op @ v,
        "P^-1 V of 16": lambda: system.P.solve(V),
        "P^-1 v": lambda: system.P.solve(v),
        "a step of 16, of many launches": _stepped(system, V)._forward,
        "a step of 16": _stepped(system, V).repeat,
        "a step of one, of many launches": _stepped(system, v)._forward,
        "a step of one": _stepped(system, v).repeat,
        "a new operator and K @ v": lambda: GPUOperator(op.kernel, op.X) @ v,
        "slopes of 17": lambda: op.pullback(torch.cat([V, v], 1), torch.cat([V, v], 1)),
    }
    for name, f in parts.items():
        yield Measure(f"n = {n:,}, {system.P.rank:,} pivots: {name}", timed(f)[1], None, unit="s")


def _stepped(system, B):
    """Conjugate gradients, begun."""
    from mercer.gpu.conjugate import ConjugateGradients

    made = ConjugateGradients(system, B)
    made.start(B, system.P.solve(B), B.new_zeros(B.shape[1]))
    for _ in made.steps(2):
        pass
    return made


def _kernels(n: int) -> Iterator[Measure]:
    """What a step spends on the device, by kernels, and how long it is idle."""
    import torch

    if interpreted():
        return
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, COLUMNS)), rng.normal(size=(n, 1))
    kernel, rows = Gaussian(math.sqrt(COLUMNS)), Table(X)

    def step():
        return estimated_likelihood(kernel, rows, y, NOISE, 1.0, gpu="cuda")

    took = timed(step)[1]
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    found = [e for e in profile.key_averages() if e.device_time_total > 0]
    busy = sum(e.device_time_total for e in found) * 1e-6
    yield Measure(f"n = {n:,}: kernels on the device, of {took:.4f} s", busy, None, unit="s")
    for e in sorted(found, key=lambda e: -e.device_time_total)[:KERNELS]:
        name = f"n = {n:,}: {e.count} of {e.key[:60]}"
        yield Measure(name, e.device_time_total * 1e-6, None, unit="s")


def timed(f):
    """The result, and the median of some steps after one that compiles."""
    import torch

    times = []
    for _ in range(1 if interpreted() else STEPS + 1):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        start = time.perf_counter()
        out = f()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return out, float(np.median(times[1:] or times))
